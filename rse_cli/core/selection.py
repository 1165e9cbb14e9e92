"""From relevance to the answer: each query's best runs under a ceiling, united, filled up and put in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.lexical import Floats
from rse_cli.core.models import Run
from rse_cli.core.params import FILL_SEGMENT_COST, RseParams
from rse_cli.core.segments import UNIT_CHARS, choose_runs_on, count_chars, find_ground, fit_runs, price_chunks
from rse_cli.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A segment as rows of the candidate arrays.

    Parameters
    ----------
    start, end : int
        Half-open rows.
    score : float
        Sum of the values of the rows, less the cost of a segment.
    queries : tuple of int
        The queries that it answers.
    last_chars : int
        Characters kept of the last row; fewer than it has where the ceiling cuts it.
    """

    start: int
    end: int
    score: float
    queries: tuple[int, ...]
    last_chars: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen segments, best first, and what they were priced with.

    Parameters
    ----------
    choices : tuple of Choice
        By score, highest first; ties by position.
    penalties : tuple of float
        Per query, the penalty found.
    segment_cost : float
        The cost used, in characters.
    values : ndarray of shape (n,)
        Each row's value: of the query that chose it, else the greatest over the queries.
    """

    choices: tuple[Choice, ...]
    penalties: tuple[float, ...]
    segment_cost: float
    values: Floats


def select_segments(
    relevances: Sequence[Floats], chars: NDArray[np.int64], starts: NDArray[np.int64], params: RseParams, fill: bool
) -> Selection:
    """Choose the segments that answer the queries within ``params.max_chars``.

    Parameters
    ----------
    relevances : sequence of ndarray of shape (n,)
        Per query, the relevance of each candidate.
    chars : ndarray of shape (n,)
        Characters of each candidate.
    starts : ndarray of shape (n,)
        For each candidate, where its stretch of adjacent chunks starts.
    params : RseParams
        Penalty, cost and ceiling.
    fill : bool
        Use the ceiling up: price segments at the cost that suits a given length, let the penalty start at 0, then add
        the most relevant chunks that are left, the last one cut.

    Returns
    -------
    Selection
        No two segments overlap or touch; together they hold at most ``params.max_chars`` characters, exactly that many
        with `fill` where the candidates suffice.

    Examples
    --------
    >>> chars, starts = np.full(4, 100), np.zeros(4, int)
    >>> selection = select_segments([np.array([1.0, 0.9, 0.0, 0.8])], chars, starts, RseParams(max_chars=250), False)
    >>> [(choice.start, choice.end) for choice in selection.choices]
    [(0, 2)]
    """
    cost_chars = FILL_SEGMENT_COST if fill else params.segment_cost
    penalty = 0.0 if fill else params.irrelevant_chunk_penalty
    cost = cost_chars / UNIT_CHARS
    found = _share_ceiling(relevances, chars, starts, penalty, cost, params.max_chars)
    owners = np.zeros((len(relevances), len(chars)), np.bool_)
    kept = np.zeros(len(chars), np.int64)
    for query, share in enumerate(found):
        for run in share.runs:
            owners[query, run.start : run.end] = True
            kept[run.start : run.end] = chars[run.start : run.end]
    for share in found:
        if not share.runs and share.row is not None:
            kept[share.row] = max(kept[share.row], share.row_chars)
    if fill:
        fill_rows(kept, np.max(relevances, axis=0), chars, params.max_chars)
    penalties = tuple(share.penalty for share in found)
    values = _value_rows(relevances, chars, kept, penalties, owners)
    choices = [
        _make_choice(start, end, values, kept, owners, relevances, cost)
        for start, end in _find_kept(kept, chars, starts)
    ]
    choices.sort(key=lambda choice: (-choice.score, choice.start))
    return Selection(tuple(choices), penalties, cost_chars, values)


@dataclass(frozen=True, slots=True)
class _Share:
    """What one query gets: its runs, or where none fits its best row, cut at the share."""

    runs: list[Run]
    penalty: float
    row: int | None
    row_chars: int


def _share_ceiling(
    relevances: Sequence[Floats],
    chars: NDArray[np.int64],
    starts: NDArray[np.int64],
    penalty: float,
    cost: float,
    max_chars: int,
) -> list[_Share]:
    """Give every query an equal share of the ceiling; what the modest ones leave goes to the others."""
    sums = np.concatenate(([0], np.cumsum(chars)))
    grounds = [find_ground(relevance, chars, starts, penalty, cost) for relevance in relevances]
    wishes = [choose_runs_on(ground, penalty) for ground in grounds]
    wished = [count_chars(runs, sums) for runs in wishes]
    found: dict[int, _Share] = {}
    left = max_chars
    for done, query in enumerate(sorted(range(len(relevances)), key=wished.__getitem__)):
        most = left // (len(relevances) - done)
        runs, used_penalty = fit_runs(grounds[query], wishes[query], sums, penalty, most)
        row = int(np.argmax(relevances[query])) if len(chars) and not runs and most else None
        row_chars = 0 if row is None else min(int(chars[row]), most)
        left -= count_chars(runs, sums) + row_chars
        found[query] = _Share(runs, used_penalty, row, row_chars)
    return [found[query] for query in range(len(relevances))]


def fill_rows(kept: NDArray[np.int64], relevance: Floats, chars: NDArray[np.int64], max_chars: int) -> None:
    """Keep the most relevant rows that are left, the last one cut where the ceiling falls."""
    budget = max_chars - int(kept.sum())
    for row in np.argsort(-relevance, kind="stable").tolist():
        if budget <= 0:
            return
        more = min(int(chars[row] - kept[row]), budget)
        kept[row] += more
        budget -= more


def _value_rows(
    relevances: Sequence[Floats],
    chars: NDArray[np.int64],
    kept: NDArray[np.int64],
    penalties: Sequence[float],
    owners: NDArray[np.bool_],
) -> Floats:
    """Value of each row: the greatest over the queries that chose it, else over all; a cut row counts what is kept."""
    if not relevances:
        return np.zeros(len(chars))
    shown = np.where(kept > 0, kept, chars)
    values, of_owners = np.full(len(chars), -np.inf), np.full(len(chars), -np.inf)
    for relevance, penalty, chosen in zip(relevances, penalties, owners, strict=True):
        priced = price_chunks(relevance, shown, penalty)
        np.maximum(values, priced, out=values)
        np.maximum(of_owners, priced, out=of_owners, where=chosen)
    return np.where(of_owners > -np.inf, of_owners, values)


def _find_kept(kept: NDArray[np.int64], chars: NDArray[np.int64], starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return maximal runs of adjacent kept rows; a cut row ends its run."""
    spans: list[tuple[int, int]] = []
    for row in np.flatnonzero(kept).tolist():
        joins = spans and spans[-1][1] == row and starts[row] == starts[row - 1] and kept[row - 1] == chars[row - 1]
        if joins:
            spans[-1] = (spans[-1][0], row + 1)
        else:
            spans.append((row, row + 1))
    return spans


def _make_choice(
    start: int,
    end: int,
    values: Floats,
    kept: NDArray[np.int64],
    owners: NDArray[np.bool_],
    relevances: Sequence[Floats],
    cost: float,
) -> Choice:
    queries = np.flatnonzero(owners[:, start:end].any(axis=1)).tolist()
    # A row that no query's runs hold was a best row alone, or filled the answer up: it goes to whom it fits best.
    queries = queries or [int(np.argmax([relevance[start:end].max() for relevance in relevances]))]
    score = float(values[start:end].sum() - cost)
    return Choice(start, end, score, tuple(queries), int(kept[end - 1]))
