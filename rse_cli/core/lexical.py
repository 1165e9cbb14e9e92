"""Text to terms, and BM25 over windows of chunks.

One tokenizer serves the index and the query, so that stems, numbers and CJK bigrams always agree.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.stemming import stem_word

Floats = NDArray[np.float64]

TERMS_VERSION = 2
"""Raised whenever `split_terms` gives other terms, so that an older index is rebuilt."""

STOP_WORDS = frozenset({
    "a", "an", "the", "of", "in", "on", "at", "to", "for", "and", "or", "is", "are", "was", "were", "be", "been",
    "by", "with", "as", "that", "this", "it", "its", "from", "what", "which", "who", "whom", "how", "did", "does",
    "do", "has", "have", "had", "than", "their", "his", "her", "they", "he", "she", "i", "you", "your", "our", "we",
    "not",
})  # fmt: skip

# Saturation and length normalisation; 0.8 and 0.75 won on the development questions of three collections,
# proximity has its own saturation, as it counts single neighbouring chunks.
K1 = 0.8
B = 0.75
PROXIMITY_K1 = 1.2
# A year in the query is a demand, not a topic: 1.5 won on annual reports and cost nothing elsewhere.
YEAR_FACTOR = 1.5

CJK = (
    "\u3040-\u30ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # han
    "\u1100-\u11ff\uac00-\ud7af"  # hangul
)
SOFT_HYPHEN = "\u00ad"  # where a word may be parted, which says nothing of the word
_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")
_QUESTION_WORDS = (
    "[为為]什[么麼]|什[么麼](?:[时時]候)?|哪一?[年月日天个個些里裡儿兒国國种種位所家座部支项項条條]?|[谁誰]|[几幾]|多少"
    "|怎[么麼]?[样樣]?|如何|[为為]何|何[时時地]|[吗嗎呢的了是]"
)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
# The T of an ISO 8601 time is no letter of a word: 2025-01-17T02:10.
_TIME = re.compile(r"(?<=[0-9]{2})t(?=[0-9]{2}:?[0-9]{2})")
_FORM = re.compile(r"(?<![^\W_])([0-9]+)-([a-z])(?![^\W_])")
_BROKEN = re.compile(r"([^\W\d_]{2,})-\r?\n[ \t]*([^\W\d_]{2,})")
_PERIOD = re.compile(r"(?:fy)?((?:19|20)[0-9]{2})(q[1-4])?")
_YEAR = re.compile(r"(?:fy)?(?:19|20)[0-9]{2}")


# Classes of that many characters take 5 ms to compile, which a query in English can do without.
@cache
def _compile_cjk(quantifier: str) -> re.Pattern[str]:
    return re.compile(f"[{CJK}]{quantifier}")


@cache
def _compile_words() -> re.Pattern[str]:
    return re.compile(
        rf"[{CJK}]+"
        r"|(?<![^\W_])[0-9]+-[a-zA-Z](?![^\W_])"  # 10-K
        rf"|(?:(?![{CJK}])[^\W_]|(?<=\w)[\u0300-\u036f])+(?:[.,][0-9]+)*"  # accents that stand apart from their letter
    )


@lru_cache(maxsize=200_000)
def _expand_word(word: str) -> tuple[str, ...]:
    """Return the terms that one lower-case word stands for, none for a stop word."""
    if word in STOP_WORDS:
        return ()
    if not word[0].isdigit() and word.isalpha():
        return (stem_word(word),)
    if _THOUSANDS.fullmatch(word):
        word = word.replace(",", "")
    period = _PERIOD.fullmatch(word)
    if period and period.group() != period.group(1):
        return (word, *filter(None, period.groups()))
    return (word,)


def split_terms(text: str) -> list[str]:
    """Return the terms of `text`, in order, with repeats.

    Words are lower-cased and stemmed (Snowball, English), stop words dropped; thousands separators go, ``10-K`` becomes
    ``10k``, ``FY2018`` also gives ``2018``. A word that a hyphen parts at the end of a line counts in parts and as a
    whole: nothing tells which it is. CJK runs give each character and each pair of neighbours.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    list of str
        Terms without white space.

    Examples
    --------
    >>> split_terms("The 10-K for FY2018 shows net sales of $32,765.")
    ['10k', 'fy2018', '2018', 'show', 'net', 'sale', '32765']
    >>> split_terms("检索结果 ok")
    ['检', '索', '结', '果', '检索', '索结', '结果', 'ok']
    >>> split_terms("a micro-\\nprocessor, micro\\u00adchip")
    ['micro', 'processor', 'microprocessor', 'microchip']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace(SOFT_HYPHEN, "")
    if "-\n" in text or "-\r" in text:
        text = _BROKEN.sub(r"\g<0> \1\2", text)
    text = _TIME.sub(" ", _FORM.sub(r"\1\2", text.lower()))
    if text.isascii():
        return _split_words(text)
    terms: list[str] = []
    start = 0
    for run in _compile_cjk("+").finditer(text):
        terms += _split_words(text[start : run.start()])
        characters = run.group()
        terms += characters
        terms += map("".join, itertools.pairwise(characters))
        start = run.end()
    return terms + _split_words(text[start:])


def split_query_terms(text: str) -> list[str]:
    """Return the terms of a query: as `split_terms`, without the words that only make a Chinese text a question.

    They are rare in documents and so would weigh more than what is asked for. On the questions of reading-zh that found
    0.7–1.7 points more in 150–600 characters; dropping the like of "when" or "should" gained nothing in English.

    Examples
    --------
    >>> split_query_terms("玩家用什么泡？")
    ['玩', '家', '用', '玩家', '家用', '泡']
    """
    return split_terms(text if text.isascii() else re.sub(_QUESTION_WORDS, " ", text))


def _split_words(text: str) -> list[str]:
    return [term for word in _WORD.findall(text) for term in _expand_word(word)]


def measure_cjk_share(text: str) -> float:
    """Return the share of CJK characters among the letters of `text`, in [0, 1]; 0 without letters.

    Examples
    --------
    >>> measure_cjk_share("检索 ab")
    0.5
    """
    if text.isascii():
        return 0.0
    letters = sum(character.isalpha() for character in text)
    return len(_compile_cjk("").findall(text)) / letters if letters else 0.0


def find_term_spans(text: str, terms: Collection[str]) -> list[tuple[int, int]]:
    """Return the half-open spans of the words in `text` that stand for one of `terms`, for marking.

    Examples
    --------
    >>> find_term_spans("Pumps, pumped: 泵站", {"pump", "泵"})
    [(0, 5), (7, 13), (15, 16)]
    """
    spans: list[tuple[int, int]] = []
    for match in _compile_words().finditer(text):
        start, word = match.start(), match.group()
        if _compile_cjk("").match(word):
            spans += [(start + at, start + at + 1) for at, character in enumerate(word) if character in terms]
        elif any(term in terms for term in split_terms(word)):
            spans.append(match.span())
    return spans


def compute_idf(terms: Sequence[str], frequencies: Sequence[int], n_chunks: int) -> Floats:
    """Return ``ln(1 + (N − df + 0.5)/(df + 0.5))`` per term (Robertson's idf, never negative).

    Parameters
    ----------
    terms : sequence of str
        Query terms.
    frequencies : sequence of int
        In how many chunks each occurs.
    n_chunks : int
        Chunks in the index.

    Examples
    --------
    >>> compute_idf(["gear"], [0], 1).round(4).tolist()
    [1.3863]
    """
    df = np.asarray(frequencies, dtype=np.float64)
    return np.log1p((n_chunks - df + 0.5) / (df + 0.5)) if len(terms) else df


def weigh_years(terms: Sequence[str], idf: Floats) -> Floats:
    """Return `idf` with the weights of years times 1.5.

    Examples
    --------
    >>> weigh_years(["fy2018", "sale"], np.array([1.0, 1.0])).tolist()
    [1.5, 1.0]
    """
    factors = [YEAR_FACTOR if _YEAR.fullmatch(term) else 1.0 for term in terms]
    return idf * np.asarray(factors, dtype=np.float64)


def count_terms(texts: Sequence[str | None], terms: Sequence[str]) -> NDArray[np.int32]:
    """Count each of `terms` in texts of terms joined by spaces.

    Returns
    -------
    ndarray of shape (len(texts), len(terms))

    Examples
    --------
    >>> count_terms(["gear box gear", None], ["gear", "oil"]).tolist()
    [[2, 0], [0, 0]]
    """
    columns = {term: column for column, term in enumerate(terms)}
    counts = np.zeros((len(texts), len(terms)), dtype=np.int32)
    if not columns:
        return counts
    for row, text in enumerate(texts):
        if text:
            for term in text.split(" "):
                column = columns.get(term)
                if column is not None:
                    counts[row, column] += 1
    return counts


def score_bm25(occurrences: Floats, lengths: Floats, mean_length: float, idf: Floats) -> Floats:
    """Return BM25F scores in [0, 1]: the share of the query's idf that each window covers.

    ``F = Σ idf·X·(k1+1) / (X + k1·(1 − b + b·L/mean L)) / ((k1+1)·Σ idf)``, k1 0.8, b 0.75 (Robertson and Zaragoza
    2009, divided by its upper bound).

    Parameters
    ----------
    occurrences : ndarray of shape (n, n_terms)
        ``X``: occurrences in the window, plus 1 for each field that holds the term.
    lengths : ndarray of shape (n,)
        ``L``: terms in the window.
    mean_length : float
        Mean of ``L`` over all chunks of the index.
    idf : ndarray of shape (n_terms,)
        Weights of the terms.

    Returns
    -------
    ndarray of shape (n,)
        0 where no term weighs anything.

    Examples
    --------
    >>> score_bm25(np.array([[1.0], [0.0]]), np.array([10.0, 10.0]), 10.0, np.array([2.0])).round(4).tolist()
    [0.5556, 0.0]
    """
    total = float(idf.sum())
    if total <= 0:
        return np.zeros(len(lengths))
    norm = K1 * (1 - B + B * lengths / max(mean_length, 1.0))
    scores: Floats = _sum_rows(occurrences / (occurrences + norm[:, None]), idf) / total
    return scores


def score_proximity(
    occurrences: Floats, lengths: Floats, mean_length: float, idf: Floats, query: Sequence[int]
) -> Floats:
    """Return in [0, 1] how far neighbouring terms of the query occur together.

    ``P = Σ min(idf_a, idf_b)·√(S_a·S_b) / Σ min(idf_a, idf_b)`` over the distinct pairs of adjacent query terms, with
    ``S = X / (X + k1·(1 − b + b·L/mean L))``, k1 1.2.

    Parameters
    ----------
    occurrences, lengths, mean_length, idf
        As in `score_bm25`, without fields and without the factor for years.
    query : sequence of int
        The query's terms in order, as columns of `occurrences`.

    Returns
    -------
    ndarray of shape (n,)
        0 for a query without two different neighbours.

    Examples
    --------
    >>> score_proximity(np.array([[1.0, 1.0]]), np.array([9.0]), 9.0, np.array([1.0, 2.0]), [0, 1]).round(4).tolist()
    [0.4545]
    """
    pairs = find_pairs(query)
    if not pairs:
        return np.zeros(len(lengths))
    norm = PROXIMITY_K1 * (1 - B + B * lengths / max(mean_length, 1.0))
    root = np.sqrt(occurrences / (occurrences + norm[:, None]))
    first, second = np.array(pairs).T
    weights = np.minimum(idf[first], idf[second])
    scores: Floats = _sum_rows(root[:, first] * root[:, second], weights) / weights.sum()
    return scores


def find_pairs(query: Sequence[int]) -> list[tuple[int, int]]:
    """Return the distinct pairs of different neighbours in a query.

    Examples
    --------
    >>> find_pairs([0, 1, 0, 0, 2])
    [(0, 1), (0, 2)]
    """
    return sorted({(min(a, b), max(a, b)) for a, b in itertools.pairwise(query) if a != b})


def _sum_rows(values: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of each row; unlike BLAS with the same bits wherever the row stands, so that ties tie."""
    sums: Floats = np.einsum("ij,j->i", np.ascontiguousarray(values), weights)
    return sums


def measure_windows(lengths: Sequence[int], widths: Sequence[int]) -> tuple[int, ...]:
    """Return for each k of `widths` the sum over a document's chunks of the terms within ±k chunks.

    Examples
    --------
    >>> measure_windows([1, 2, 3], [0, 1])
    (6, 14)
    """
    sums = np.concatenate(([0], np.cumsum(lengths)))
    n = len(lengths)
    at = np.arange(n)
    return tuple(int((sums[np.minimum(at + k + 1, n)] - sums[np.maximum(at - k, 0)]).sum()) for k in widths)
