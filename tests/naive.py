"""Slow, obvious oracles: what the fast code must agree with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from fractions import Fraction

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


def span_scores(
    expected: Sequence[tuple[str, int, int]], retrieved: Sequence[tuple[str, int, int]]
) -> dict[str, float]:
    """Every metric of retrieved against expected spans, over plain sets of characters."""
    wanted = {(path, at) for path, start, end in expected for at in range(start, end)}
    found = {(path, at) for path, start, end in retrieved for at in range(start, end)}
    hits = [rank for rank, one in enumerate(retrieved, 1) if {(one[0], at) for at in range(one[1], one[2])} & wanted]
    documents = {path for path, _ in wanted}
    return {
        "recall": len(wanted & found) / len(wanted),
        "precision": len(wanted & found) / len(found) if found else 0.0,
        "iou": len(wanted & found) / len(wanted | found),
        "hit": float(bool(wanted & found)),
        "document_recall": len(documents & {path for path, _ in found}) / len(documents),
        "reciprocal_rank": 1 / hits[0] if hits else 0.0,
        "chars": float(len(found)),
        "n_spans": float(sum((path, at - 1) not in found for path, at in found)),
        "empty": float(not found),
    }


def dsrag_documents(ranked: Sequence[Sequence[tuple]], top_k: int) -> tuple[list[str], list[int]]:
    """Documents of each query's first hits, and where each ends when they are laid end to end."""
    documents: list[str] = []
    for hits in ranked:
        for document, *_ in hits[:top_k]:
            if document not in documents:
                documents.append(document)
    splits: list[int] = []
    for document in documents:
        last = max(chunk for hits in ranked for owner, chunk, *_ in hits if owner == document)
        splits.append((splits[-1] if splits else 0) + last + 1)
    return documents, splits


def dsrag_values(
    ranked: Sequence[Sequence[tuple]], documents: Sequence[str], splits: Sequence[int], params: Mapping
) -> list[list[float]]:
    """Per query and chunk: (exp(−rank/decay)·similarity − penalty)·max(length, 700)/700."""
    rows = []
    for hits in ranked:
        row = []
        for number, document in enumerate(documents):
            for chunk in range(splits[number] - (splits[number - 1] if number else 0)):
                rank, similarity, length = 1000, 0.0, 0
                for at, (owner, index, chars, cosine) in enumerate(hits):
                    if (owner, index) == (document, chunk):
                        rank, similarity, length = at, cosine, chars or 0
                value = math.exp(-rank / params["decay_rate"]) * similarity - params["irrelevant_chunk_penalty"]
                row.append(value * (max(length, 700) / 700 if params["chunk_length_adjustment"] else 1))
        rows.append(row)
    return rows


def add_up(values: Sequence[float]) -> float:
    """Sum from left to right; the built-in `sum` compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def dsrag_segments(values: Sequence[float], splits: Sequence[int], max_length: int) -> list[tuple[int, int, float]]:
    """Every segment that may be chosen for one query, with its sum, by start and then length."""
    return [
        (start, end, add_up(values[start:end]))
        for start in range(len(values))
        for end in range(start + 1, min(start + max_length, len(values)) + 1)
        if values[start] >= 0 and values[end - 1] >= 0 and not any(start < split < end for split in splits)
    ]


def dsrag_greedy(
    values: Sequence[Sequence[float]], splits: Sequence[int], max_length: int, budget: int, minimum_value: float
) -> list[tuple[int, int, int, float]]:
    """Round robin: (query, start, end, sum) in the order picked."""
    picks: list[tuple[int, int, int, float]] = []
    out: set[int] = set()
    while len(out) < len(values):
        for query, row in enumerate(values):
            if query in out:
                continue
            left = budget - sum(end - start for _, start, end, _ in picks)
            best = None
            for start, end, total in dsrag_segments(row, splits, max_length):
                free = all(end <= taken or start >= ends for _, taken, ends, _ in picks)
                if free and end - start <= left and (best is None or total > best[3]):
                    best = (query, start, end, total)
            if best is None or best[3] < minimum_value:
                out.add(query)
            else:
                picks.append(best)
    return picks


def dsrag_best_total(
    values: Sequence[Sequence[float]], splits: Sequence[int], max_length: int, budget: int, minimum_value: float
) -> float:
    """The greatest total of any set of segments that don't overlap and fit the budget, each for any query."""
    segments = [
        one for row in values for one in dsrag_segments(row, splits, max_length) if one[2] >= max(minimum_value, 0)
    ]

    def search(begin: int, left: int) -> float:
        """Best total of segments that start at `begin` or later."""
        rest = [(start, end, total) for start, end, total in segments if start >= begin and end - start <= left]
        return max([0.0] + [total + search(end, left - (end - start)) for start, end, total in rest])

    return search(0, budget)


def fuse(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, Fraction]]:
    """Reciprocal rank fusion in exact fractions: rows and scores, best first, ties by row."""
    scores: dict[int, Fraction] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, Fraction(0)) + Fraction(1, k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def average_runs(
    values: Sequence[float], stretch_ends: Sequence[int], max_length: int, overall: int, minimum: float
) -> list[tuple[int, int]]:
    """The naive rule, round by round: the allowed run of greatest total, the earlier, then the shorter on a tie."""
    chosen: list[tuple[int, int]] = []
    while True:
        left = overall - sum(end - start for start, end in chosen)
        allowed = [
            (-total, start, end)
            for start in range(len(values))
            for end in range(start + 1, stretch_ends[start] + 1)
            if end - start <= min(max_length, left)
            and (total := sum(values[start:end])) / (end - start) >= minimum
            and all(end <= other[0] or start >= other[1] for other in chosen)
        ]
        if not allowed:
            return sorted(chosen)
        _, start, end = min(allowed)
        chosen.append((start, end))


def mmr_order(scores: Sequence[float], terms: Sequence[Set[str]], trade_off: float) -> list[int]:
    """Maximal marginal relevance from its definition: every step scores every one that is left against all chosen."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    chosen: list[int] = []
    while len(chosen) < len(scores):
        worths = []
        for at in range(len(scores)):
            if at not in chosen:
                relevance = (scores[at] - low) / (high - low) if high > low else 1.0
                likeness = [len(terms[at] & terms[one]) / (len(terms[at] | terms[one]) or 1) for one in chosen]
                worths.append((trade_off * relevance - (1 - trade_off) * max(likeness, default=0.0), -at))
        chosen.append(-max(worths)[1])
    return chosen


def joined_stretches(spans: Sequence[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
    """Maximal stretches of (document, start, end) spans, two of which are one when they share an end or a character."""
    stretches = set(spans)
    while True:
        for one, other in itertools.permutations(stretches, 2):
            if one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]:
                stretches -= {one, other}
                stretches.add((one[0], min(one[1], other[1]), max(one[2], other[2])))
                break
        else:
            return stretches
