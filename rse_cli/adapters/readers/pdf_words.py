"""Characters and words of PDF text: repair ligatures, spaces and controls, join words cut at a line end. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rse_cli.dataclass import dataclass

_REPAIRS: dict[int, str] = {
    **dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
    **dict.fromkeys((0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000, 0x2028, 0x2029), " "),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF), ""),
    **dict.fromkeys((0xF0B7, 0xF0A7, 0xF076, 0xF0D8), "•"),  # Symbol and Wingdings bullets in the private use area
    **dict.fromkeys((9, 10, 11, 12, 13), " "),
    **dict.fromkeys((*range(9), *range(14, 32), *range(127, 160)), ""),
}

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACED_WORD = re.compile(r"(?<!\S)(?:[^\W\d_] ){3,}[^\W\d_](?!\S)")
_WORD = re.compile(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*")
_HYPHENS = ("-", "‐", "\u00ad")
_SOFT_IN_NUMBER = re.compile(r"(?<=\d)\u00ad(?=\d)")
"""Fonts often give their visible hyphen the code of the soft one; between digits it can be nothing else."""

_COMPOUNDING = {
    *("cross", "customer", "double", "early", "fifty", "first", "five", "forty", "full", "half", "large", "least"),
    *("long", "most", "ninety", "one", "peak", "risk", "self", "seventy", "short", "single", "sixty", "third"),
    *("thirty", "three", "twenty", "two", "wholly", "year"),
}
"""Words that begin a compound at least twice as often as they are the first part of a longer word, counted in 1.4
million characters of reports, papers and speeches."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Lower-case words and hyphenated compounds that stand inside lines of the document."""

    words: frozenset[str]
    compounds: frozenset[str]


def clean_text(text: str) -> str:
    """Repair ligatures, spaces, controls and lone surrogates; a soft hyphen stays only at the end, for `join_lines`.

    Examples
    --------
    >>> clean_text("T a b l e  of ﬁnance\\x00")
    'Table  of finance'
    """
    repaired = _SURROGATE.sub("�", text.translate(_REPAIRS))
    repaired = _SOFT_IN_NUMBER.sub("-", repaired)
    repaired = _SPACED_WORD.sub(lambda match: match[0].replace(" ", ""), repaired)
    head, tail = repaired.rstrip(), ""
    if head.endswith("\u00ad"):
        tail = "\u00ad"
    return head.replace("\u00ad", "") + tail


def collect_words(texts: Iterable[str]) -> Vocabulary:
    """Collect the words of lines; the first and last of each may be parts, so of them only compounds count."""
    words: set[str] = set()
    compounds: set[str] = set()
    for text in texts:
        found = _WORD.findall(text.lower())
        words.update(found[1:-1])
        compounds.update(word.replace("‐", "-") for word in found if "-" in word or "‐" in word)
    return Vocabulary(frozenset(words - compounds), frozenset(compounds))


def join_lines(lines: Sequence[str], vocabulary: Vocabulary) -> str:
    """Join wrapped lines with spaces, and words cut at a line end without their hyphen.

    Examples
    --------
    >>> join_lines(["our long-", "term man-", "agement"], Vocabulary(frozenset(), frozenset({"long-term"})))
    'our long-term management'
    >>> join_lines(["in 2019-", "2020 the govern-", "ment"], Vocabulary(frozenset(), frozenset()))
    'in 2019-2020 the government'
    """
    text = ""
    for line in lines:
        if not text or not line:
            text += line
        elif text.endswith(_HYPHENS) and len(text) > 1 and text[-2].isalnum():
            text = _join_hyphenated(text, line, vocabulary)
        elif text.endswith("—") or (text.endswith("/") and line[0].isalnum()):
            text += line
        else:
            text = f"{text} {line}"
    return text.removesuffix("\u00ad")


def _join_hyphenated(text: str, line: str, vocabulary: Vocabulary) -> str:
    if not line[0].islower() or not text[-2].isalpha():
        # A number goes on with a number, "COVID-" with "19", "non-" with a name.
        return text.removesuffix("\u00ad") + ("-" if text.endswith("\u00ad") else "") + line
    if text.endswith("\u00ad"):
        return text[:-1] + line
    head, tail = text.rsplit(" ", 1)[-1][:-1].lower(), line.split(" ", 1)[0].lower().strip(".,;:)”\"'")
    last = re.split(r"[^\w]", head)[-1]
    solid, compound = last + tail, f"{last}-{tail}"
    known = solid in vocabulary.words
    halves = min(len(last), len(tail)) >= 4 and {last, tail} <= vocabulary.words
    # A hyphen is real if the compound stands elsewhere, if one part has a hyphen already, or if both are words.
    compounding = halves or last in _COMPOUNDING or "-" in head or "-" in tail
    keep = compound in vocabulary.compounds or (not known and compounding)
    return (text if keep else text[:-1]) + line
