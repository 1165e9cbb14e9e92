"""Answers to all cases from what was cached, by any method."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rse_cli.core.cached_cases import Outcome
from rse_cli.core.dsrag_params import DsragParams
from rse_cli.core.lexical import Floats
from rse_cli.core.methods import MethodParams
from rse_cli.core.params import RseParams
from rse_cli.core.trials import Bench, make_bench, run_alone, run_trials
from rse_cli.core.tuning_log import Evaluate
from rse_cli.pipeline.evidence_cache import Cache, answer_ranked


def make_evaluate(cache: Cache, fill: bool, jobs: int, metrics: Sequence[str]) -> tuple[Evaluate, Evaluate]:
    """Return what answers all cases from a cache: the fast way for the search, and the pipeline's own for its result.

    Parameters
    ----------
    cache : Cache
        From `CacheBuilder`.
    fill : bool
        Whether answers use their ceiling up.
    jobs : int
        Threads.
    metrics : sequence of str
        What is measured; with `fill`, ranks, spans and documents are exact in the pipeline's own way alone.
    """
    ranked = "mrr" in metrics
    bench = make_bench(cache.evidence, fill, cache.limit, ranked=ranked) if cache.evidence else None
    exact_only = fill and not {"mrr", "spans", "document_recall"}.isdisjoint(metrics)

    def fast(method: str, trials: Sequence[MethodParams]) -> Floats:
        if method != "rse" or bench is None or exact_only:
            return exact(method, trials)
        params = [one for one in trials if isinstance(one, RseParams)]
        parts = [params[at : at + bench.batch] for at in range(0, len(params), bench.batch)]
        if jobs == 1 or len(parts) == 1:
            return run_trials(bench, params)
        with ThreadPoolExecutor(jobs) as pool:
            return np.concatenate(list(pool.map(lambda part: run_trials(bench, part), parts)))

    def exact(method: str, trials: Sequence[MethodParams]) -> Floats:
        return np.array([_answer_all(cache, bench, method, params) for params in trials], dtype=np.float64)

    return fast, exact


def _answer_all(cache: Cache, bench: Bench | None, method: str, params: MethodParams) -> list[Outcome]:
    if isinstance(params, RseParams) and bench is not None:
        return [run_alone(bench, at, params) for at in range(len(bench.cases))]
    if isinstance(params, DsragParams):
        return [answer_ranked(case, params, cache.max_chars, cache.limit) for case in cache.ranked]
    return cache.grids[method, params]
