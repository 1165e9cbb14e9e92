"""Relevance of all stacked cases under one trial, and the rows bright enough to begin or end a run.

The steps are those of `relevance`, in the same order of sums, so that they agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.batch_runs import BrightRows, Positions
from rse_cli.core.lexical import Floats
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import TOP_SHARE, balance_relevance, find_strongest, measure_confidence
from rse_cli.core.stacked_cases import N_COSINES, PIECES, Stack
from rse_cli.dataclass import dataclass

NEAR = 0.03
"""The three best of most cases lie within this share of the best."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """All rows of a stack under one trial, and what each of the m cases makes of them.

    Parameters
    ----------
    relevance : ndarray of shape (n,)
        Of each row.
    worth : ndarray of shape (n + 1,)
        Sum of relevance times characters before each row, and of all.
    highest : ndarray of shape (m,)
        Greatest relevance.
    best : ndarray of shape (m,)
        The first row that has it.
    answered : ndarray of bool, shape (m,)
        Whether the case reaches its floor of confidence.
    """

    relevance: Floats
    worth: Floats
    highest: Floats
    best: Positions
    answered: NDArray[np.bool_]


def weigh_rows(stack: Stack, params: RseParams) -> Weighed:
    """Weigh all rows of a stack as `combine_evidence`, `calibrate` and `spread_over_tables` do those of one case."""
    sizes, starts = stack.sizes, stack.bounds[:-1]
    z = _combine(stack, params)
    highest_z = np.maximum.reduceat(z, starts)
    answered = _find_answered(stack, highest_z, params)
    z -= np.repeat(highest_z, sizes)
    relevance = np.exp(z, out=z)
    relevance /= np.repeat(_average_tops(stack, relevance), sizes)
    if len(stack.tables):
        best = np.maximum.reduceat(relevance[stack.tables], stack.table_starts)
        counts = np.diff(np.concatenate((stack.table_starts, [len(stack.tables)])))
        relevance[stack.tables] = np.maximum(relevance[stack.tables], params.table_share * np.repeat(best, counts))
    worth = np.zeros(len(relevance) + 1)
    np.multiply(relevance, stack.chars, out=worth[1:])
    np.cumsum(worth[1:], out=worth[1:])
    highest = np.maximum.reduceat(relevance, starts)
    return Weighed(relevance, worth, highest, _find_first(stack, relevance, highest), answered)


def light_rows(stack: Stack, weighed: Sequence[Weighed], floor: Floats) -> tuple[BrightRows, Positions]:
    """Return the rows whose relevance exceeds the floor of their problem, and which of the stack each is.

    Parameters
    ----------
    stack : Stack
        The cases.
    weighed : sequence of Weighed
        One a trial.
    floor : ndarray of shape (n_trials · m,)
        Per problem; infinite for one that needs no rows.
    """
    m, sizes = len(stack.cases), stack.sizes
    parts: list[BrightRows] = []
    places: list[Positions] = []
    for number, one in enumerate(weighed):
        bright = np.flatnonzero(one.relevance > np.repeat(floor[number * m : (number + 1) * m], sizes))
        places.append(bright)
        parts.append(
            BrightRows(
                stack.owners[bright].astype(np.int64) + number * m,
                stack.find_places(bright),
                stack.stretches[bright].astype(np.int64),
                one.relevance[bright],
                stack.chars[bright].astype(np.float64),
                one.worth[bright],
                one.worth[bright + 1],
                stack.char_sums[bright],
                stack.char_sums[bright + 1],
            )
        )
    rows = BrightRows(*(np.concatenate([getattr(one, name) for one in parts]) for name in BrightRows.__slots__))
    return rows, np.concatenate(places)


def _find_answered(stack: Stack, highest_z: Floats, params: RseParams) -> NDArray[np.bool_]:
    """Return which cases reach their floor of confidence."""
    strongest = highest_z.tolist()
    for at in stack.doubtful:
        case = stack.cases[at]
        strongest[at] = find_strongest(case.evidence[0], params, case.known_shares[0], case.lexical[0])
    return np.array(
        [
            measure_confidence(top, case.lexical[0]) >= case.floors[0]
            for case, top in zip(stack.cases, strongest, strict=True)
        ]
    )


def _combine(stack: Stack, params: RseParams) -> Floats:
    """Return ``z`` as `combine_evidence` adds it up, but in place."""
    balances = [balance_relevance(params, case.known_shares[0], case.lexical[0]) for case in stack.cases]
    z = _add_up(stack.evidence[:N_COSINES], PIECES[:N_COSINES], params)
    z *= np.repeat([one.cosines for one in balances], stack.sizes)
    words = _add_up(stack.evidence[N_COSINES:], PIECES[N_COSINES:], params)
    words *= np.repeat([one.words for one in balances], stack.sizes)
    z += words
    return z


def _add_up(evidence: Sequence[Floats], pieces: Sequence[str], params: RseParams) -> Floats:
    total: Floats = getattr(params, f"weight_{pieces[0]}") * evidence[0]
    part = np.empty_like(total)
    for piece, row in zip(pieces[1:], evidence[1:], strict=True):
        total += np.multiply(row, getattr(params, f"weight_{piece}"), out=part)
    return total


def _average_tops(stack: Stack, p: Floats) -> Floats:
    """Return the mean of the three largest of each case, as `calibrate` takes it; the largest is 1."""
    sizes = stack.sizes
    near = np.flatnonzero(p > NEAR)
    owner = stack.owners[near].astype(np.int64)
    counts = np.bincount(owner, minlength=len(sizes))
    tops = np.empty(len(sizes))
    enough = counts >= TOP_SHARE
    for case in np.flatnonzero(~enough).tolist():
        part = p[stack.bounds[case] : stack.bounds[case + 1]]
        tops[case] = np.sort(part)[-TOP_SHARE:].mean()
    if enough.any():
        chosen = np.flatnonzero(enough[owner])
        values, cases = p[near[chosen]].copy(), owner[chosen]
        bounds = np.flatnonzero(np.concatenate(([True], np.diff(cases) != 0)))
        lengths = np.diff(np.concatenate((bounds, [len(cases)])))
        found = []
        for _ in range(TOP_SHARE):
            largest = np.maximum.reduceat(values, bounds)
            found.append(largest)
            equal = np.flatnonzero(values == np.repeat(largest, lengths))
            values[equal[np.concatenate(([True], np.diff(cases[equal]) != 0))]] = -np.inf
        # Smallest first, as a mean of the sorted values adds them.
        tops[enough] = ((found[2] + found[1]) + found[0]) / TOP_SHARE
    return tops


def _find_first(stack: Stack, relevance: Floats, highest: Floats) -> Positions:
    """Return the first row of greatest relevance of each case."""
    equal = np.flatnonzero(relevance == np.repeat(highest, stack.sizes))
    return equal[np.searchsorted(equal, stack.bounds[:-1])]
