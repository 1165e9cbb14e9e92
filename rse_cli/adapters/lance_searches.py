"""What lance is asked to search, and what is made of its answers: nearest vectors, words, filters by path."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.ports import Keys, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION_ROWS = 8_192
"""Rows to a partition when the index is built, lance's own choice; rows added later go into those that are there."""

PROBED_PARTITIONS = 20
"""At least; all partitions up to 160,000 rows. Beyond, an unfiltered search is approximate."""

PROBED_SHARE = 2 / 3
"""Of the partitions. Recall at rank 200 of a million chunks, against comparing all: 20 of 122 partitions 0.87, 40 0.95,
60 0.983, 80 0.996, 100 0.999, for 37, 37, 43, 50 and 58 ms of CPU (flat: 3.3 s)."""

REFINE_FACTOR = 2
"""Twice as many rows are compared again by their exact vectors: recall 1.0 at rank 200 of 10,000 random vectors, 0.98
without. The distances of the index itself are no cosines at all, off by up to 0.9. Lance could compare them too, but
breaks ties at the last rank as it pleases, and reads vectors that a held snapshot has in memory."""

DISORDER = 0.007
"""Rows that differ by less in their cosines may change places in the index, whose numbers have 8 bits: at most 0.005
was seen in 700 searches of 10,000 and 100,000 chunks. Rank k and rank 2k lay at least 0.010 apart in them."""

EXACT_CHUNKS = PROBED_PARTITIONS * PARTITION_ROWS
"""Up to so many the search compares all."""

Search = dict[str, Any]
"""Arguments of a scan."""


def search_vectors(vector: Vectors, k: int, paths: Sequence[str] | None, n_chunks: int) -> Search:
    """Return the search for the rows among which the `k` nearest chunks are, see `rank_nearest`."""
    query = {
        "column": "vector",
        "q": _wrap_vector(np.asarray(vector, np.float32)),
        "k": k * REFINE_FACTOR,
        "metric": "cosine",
        # With `nprobes`, a filter would apply inside the probed partitions alone: 1 file in 400 lost 80 % of its
        # chunks. `minimum_nprobes` without a maximum searches all partitions.
        **({"nprobes": _count_probes(n_chunks)} if paths is None else {"minimum_nprobes": PROBED_PARTITIONS}),
    }
    return {"nearest": query, **_choose_rows(paths, k < 1)}


def rank_nearest(vector: Vectors, keys: Keys, vectors: Vectors) -> tuple[Keys, NDArray[np.float64]]:
    """Return keys and cosines of rows, the nearest to `vector` first, ties by key.

    No BLAS, whose sums differ with a row's place: a row has the same cosine whatever rows lie around it.
    """
    cosines = np.einsum("ij,j->i", vectors, np.asarray(vector, np.float32)).astype(np.float64)
    order = np.lexsort((keys, -cosines))
    return keys[order], cosines[order]


def is_undecided(cosines: NDArray[np.float64], k: int) -> bool:
    """Tell whether a search that compared all rows may have left one out that is as near as the `k`-th.

    Parameters
    ----------
    cosines : ndarray of shape (n,)
        Of the rows that it returned, best first.
    k : int
        How many are wanted; `REFINE_FACTOR` times as many were asked for.

    Examples
    --------
    >>> is_undecided(np.array([0.9, 0.8, 0.8, 0.8]), 2), is_undecided(np.array([0.9, 0.8, 0.8, 0.7]), 2)
    (True, False)
    """
    return 0 < k * REFINE_FACTOR <= len(cosines) and bool(cosines[k - 1] - cosines[-1] < DISORDER)


def search_terms(terms: Sequence[str], limit: int, paths: Sequence[str] | None) -> Search:
    """Return the search for the `limit` chunks that BM25 ranks highest for any of `terms`, see `rank_matching`."""
    if not terms:
        return _choose_rows(paths, True)
    return {"full_text_query": match_terms(terms), "limit": limit, **_choose_rows(paths, limit < 1)}


def is_tied(scores: NDArray[np.float32], k: int, limit: int) -> bool:
    """Tell whether a search for `limit` chunks may have left one out that scores as high as the `k`-th.

    Lance takes of equal scores what its threads come to first, another choice each time.

    Examples
    --------
    >>> is_tied(np.float32([3, 2, 2]), 2, 3), is_tied(np.float32([3, 2, 1]), 2, 3), is_tied(np.float32([2, 2]), 2, 3)
    (True, False, False)
    """
    return 0 < k < limit <= len(scores) and bool(np.partition(-scores, k - 1)[k - 1] == -scores.min())


def rank_matching(keys: Keys, scores: NDArray[np.float32], k: int) -> Keys:
    """Return the `k` keys of the highest scores, best first, ties by key."""
    return keys[np.lexsort((keys, -scores))][:k]


def match_terms(terms: Sequence[str]) -> Any:
    """Return the full-text query for any of `terms`; as an object, so that no term is read as syntax."""
    from lance.query import MatchQuery

    return MatchQuery(" ".join(terms), "terms")


def filter_paths(paths: Sequence[str]) -> str:
    """Return the filter for rows of `paths`."""
    return f"path IN ({quote_texts(paths)})" if paths else "false"


def filter_keys(keys: Iterable[int]) -> str:
    """Return the filter for rows with `keys`."""
    chosen = ",".join(map(str, keys))
    return f"gid IN ({chosen})" if chosen else "false"


def quote_texts(texts: Iterable[str]) -> str:
    """Return `texts` as literals of a filter, in which only ``'`` needs doubling."""
    return ",".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))


def _choose_rows(paths: Sequence[str] | None, none: bool) -> Search:
    """Return the filter of a search; it applies before the ranking."""
    chosen = "false" if none else None if paths is None else filter_paths(paths)
    return {"filter": chosen, "prefilter": True}


def _count_probes(n_chunks: int) -> int:
    return max(PROBED_PARTITIONS, math.ceil(n_chunks / PARTITION_ROWS * PROBED_SHARE))


def _wrap_vector(vector: Vectors) -> pa.Array:
    """Return a vector as an Arrow array over the same bytes; `pyarrow.array` would import numpy.ma (10 ms)."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.float32(), vector.size, [None, pa.py_buffer(np.ascontiguousarray(vector))])
