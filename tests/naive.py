"""Slow, obvious oracles: what the fast code must agree with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rse_cli.core.lexical import K1, PROXIMITY_K1, YEAR_FACTOR, B


def best_total(values: Sequence[float], starts: Sequence[int], cost: float) -> float:
    """The greatest Σ values − cost · runs over every way to mark rows, runs never crossing a stretch."""
    best = 0.0
    for marks in itertools.product([False, True], repeat=len(values)):
        total = 0.0
        for at, mark in enumerate(marks):
            if mark:
                total += values[at]
                opens = at == 0 or not marks[at - 1] or starts[at] != starts[at - 1]
                total -= cost if opens else 0.0
        best = max(best, total)
    return best


def window(ords: Sequence[int], documents: Sequence[int], at: int, k: int) -> list[int]:
    """Rows within ±k of row `at` that are joined to it by rows of the same document without a gap."""
    rows = [at]
    for step in (-1, 1):
        here = at
        while 0 <= here + step < len(ords) and abs(here + step - at) <= k:
            if documents[here + step] != documents[at] or ords[here + step] != ords[here] + step:
                break
            here += step
            rows.append(here)
    return sorted(rows)


def idf(df: int, n_chunks: int) -> float:
    return math.log(1 + (n_chunks - df + 0.5) / (df + 0.5))


def is_year(term: str) -> bool:
    digits = term.removeprefix("fy")
    return len(digits) == 4 and digits.isdigit() and digits[:2] in ("19", "20")


def bm25f(
    occurrences: Mapping[str, float], length: float, mean: float, frequencies: Mapping[str, int], n_chunks: int
) -> float:
    """F of the design: Σ idf·X·(k1+1)/(X + k1·(1 − b + b·L/mean)) / ((k1+1)·Σ idf)."""
    weights = {term: idf(df, n_chunks) * (YEAR_FACTOR if is_year(term) else 1) for term, df in frequencies.items()}
    if not weights:
        return 0.0
    total = 0.0
    for term, weight in weights.items():
        x = occurrences[term]
        total += weight * x * (K1 + 1) / (x + K1 * (1 - B + B * length / mean))
    return total / ((K1 + 1) * sum(weights.values()))


def proximity(
    query: Sequence[str],
    occurrences: Mapping[str, float],
    length: float,
    mean: float,
    frequencies: Mapping[str, int],
    n_chunks: int,
) -> float:
    """P1 of the design, over the distinct unordered pairs of different neighbours in the query."""
    known = [term for term in query if term in frequencies]
    pairs = {frozenset(pair) for pair in itertools.pairwise(known) if pair[0] != pair[1]}
    if not pairs:
        return 0.0

    def saturate(term: str) -> float:
        x = occurrences[term]
        return x / (x + PROXIMITY_K1 * (1 - B + B * length / mean))

    total = weight = 0.0
    for a, b in (sorted(pair) for pair in pairs):
        least = min(idf(frequencies[a], n_chunks), idf(frequencies[b], n_chunks))
        total += least * math.sqrt(saturate(a) * saturate(b))
        weight += least
    return total / weight


def mean_cosine(query: np.ndarray, vectors: np.ndarray, chars: Sequence[int], rows: Sequence[int]) -> float:
    """Cosine of the query with the mean of the rows' vectors, weighted by characters."""
    mean = sum(np.float64(chars[row]) * vectors[row].astype(np.float64) for row in rows)
    return float(mean @ query.astype(np.float64) / np.linalg.norm(mean))
