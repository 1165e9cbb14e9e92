"""How much two texts say the same, and passages without those that repeat a better one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace

from rse_cli.core.lexical import split_terms
from rse_cli.core.models import Chunk, Passage
from rse_cli.core.table_rows import identify_table

SAME_OVERLAP = 0.85
"""Overlap from which two passages say the same. Of 14,000 pairs of a page (4,000 characters) and a stretch of 30 to 300
characters elsewhere in its document, 0.6 % reach it, the longer ones of these true repeats."""


def collect_term_set(text: str) -> frozenset[str]:
    """Return the distinct terms of `text`: stems without stop words, CJK as characters and bigrams.

    Examples
    --------
    >>> sorted(collect_term_set("The pumps and a pump: 泵站"))
    ['pump', '泵', '泵站', '站']
    """
    return frozenset(split_terms(text))


def fold_spaces(text: str) -> str:
    r"""Return `text` with each run of white space as one space, none at its ends.

    Examples
    --------
    >>> fold_spaces(" a\n\n b ")
    'a b'
    """
    return " ".join(text.split())


def measure_jaccard(left: Set[str], right: Set[str]) -> float:
    """Return ``|A ∩ B| / |A ∪ B|``, in [0, 1]; 0 where both are empty.

    Examples
    --------
    >>> measure_jaccard({"a", "b"}, {"b", "c"})
    0.3333333333333333
    """
    shared = len(left & right)
    union = len(left) + len(right) - shared
    return shared / union if union else 0.0


def measure_overlap(left: Set[str], right: Set[str]) -> float:
    """Return ``|A ∩ B| / min(|A|, |B|)``, the overlap coefficient, in [0, 1]; 0 where one is empty.

    It sees a paragraph again inside a longer passage, which Jaccard doesn't.

    Examples
    --------
    >>> measure_overlap({"a", "b"}, {"a", "b", "c", "d"})
    1.0
    """
    least = min(len(left), len(right))
    return len(left & right) / least if least else 0.0


def drop_duplicates(
    passages: Sequence[Passage],
    texts: Sequence[str],
    threshold: float = SAME_OVERLAP,
    tables: Sequence[Hashable | None] | None = None,
) -> tuple[Passage, ...]:
    """Drop passages that say what a better one says.

    Two passages are duplicates if the text of one holds that of the other, white space folded, or if their sets of
    terms overlap by `threshold` or more, as a share of the smaller set. The one with the higher score stays, of equals
    the first, and answers the queries of both.

    Parameters
    ----------
    passages : sequence of Passage
        In any order.
    texts : sequence of str
        Their texts.
    threshold : float
        In (0, 1].
    tables : sequence of hashable or None, optional
        Per passage, the table that it is rows of (`find_tables`): rows of one table are no duplicates of each other.

    Raises
    ------
    ValueError
        If `threshold` lies outside its range, or there isn't one text and table per passage.

    Examples
    --------
    >>> passages = [Passage(0, 0, 1, 0, 9, 1.0), Passage(1, 0, 1, 0, 9, 2.0)]
    >>> [kept.document for kept in drop_duplicates(passages, ["Oil the pump.", "First oil  the pump."])]
    [1]
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"the overlap of duplicates lies above 0 and at most at 1, not at {threshold}")
    tables = [None] * len(passages) if tables is None else tables
    if not len(passages) == len(texts) == len(tables):
        raise ValueError("there must be one text and one table per passage")
    folded = [fold_spaces(text) for text in texts]
    terms = [collect_term_set(text) for text in texts]
    kept: dict[int, Passage] = {}
    for at in sorted(range(len(passages)), key=lambda at: (-passages[at].score, at)):
        for better, passage in kept.items():
            if tables[at] is not None and tables[at] == tables[better]:
                continue
            contained = folded[at] in folded[better] or folded[better] in folded[at]
            if contained or measure_overlap(terms[at], terms[better]) >= threshold:
                kept[better] = replace(passage, queries=tuple(sorted({*passage.queries, *passages[at].queries})))
                break
        else:
            kept[at] = passages[at]
    return tuple(kept[at] for at in sorted(kept))


def find_tables(passages: Sequence[Passage], chunks: Mapping[tuple[int, int], Chunk]) -> list[Hashable | None]:
    """Return for each passage the table that all its chunks are rows of, None where they aren't.

    Examples
    --------
    >>> chunks = {(0, at): Chunk(at, 6 * at, 6 * at + 6, "5 6 7\\n", row_terms=("price",)) for at in range(2)}
    >>> find_tables([Passage(0, 0, 2, 0, 12, 1.0)], chunks)
    [(0, ('price',))]
    """
    found: list[Hashable | None] = []
    for one in passages:
        rows = [chunks.get((one.document, ord_)) for ord_ in range(one.start_chunk, one.end_chunk)]
        tables = {identify_table(row) if row else None for row in rows}
        table = tables.pop()
        found.append((one.document, table) if table is not None and not tables else None)
    return found
