"""Settings to a request: method, parameters, retriever, reranker and refinement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from rse_cli.adapters.ignore import compile_path_filter
from rse_cli.config import Settings
from rse_cli.core.methods import METHODS, MethodParams, choose_method_params
from rse_cli.core.params import RseParams
from rse_cli.core.refine import FAQ_BOOST
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError
from rse_cli.pipeline.query import Request
from rse_cli.pipeline.refinement import Refinement
from rse_cli.pipeline.retrieval import Query
from rse_cli.ports import Reranker


@dataclass(frozen=True, slots=True)
class Refining:
    """The flags that refine an answer, as given."""

    expand_short: bool = False
    complete_faq: bool = False
    dedupe: bool = False
    composite: bool = False
    min_score: float | None = None
    no_fallback: bool = False
    mmr: float | None = None
    rerank: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How every query of a command is answered.

    Parameters
    ----------
    method, preset : str, str or None
        The preset is None for methods without.
    params : MethodParams
        Of the method.
    make : callable
        Queries and paths to a request.
    """

    method: str
    preset: str | None
    params: MethodParams
    settings: Settings
    refinement: Refinement | None
    reranker: Reranker | None = None
    source_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Method and preset as they are printed: ``rse/balanced``, ``top-k``."""
        return self.method if self.preset is None else f"{self.method}/{self.preset}"

    def make_request(self, queries: tuple[Query, ...], paths: tuple[str, ...] | None) -> Request:
        """Return the request for queries that are answered together."""
        query = self.settings.query
        # The method `rse` has a ceiling of its own, which shapes the answer; others are cut at it.
        own_ceiling = isinstance(self.params, RseParams)
        return Request(
            queries,
            self.params,
            fill=query["fill"],
            limit=query["limit"],
            min_confidence=query["min_confidence"],
            paths=paths,
            method=self.method,
            max_chars=None if own_ceiling and self.refinement is None else query["max_chars"],
            retriever=query["retriever"],
            refinement=self.refinement,
            reranker=self.reranker,
            weigh_source=_weigh_by(self.source_weights),
        )


def plan_requests(settings: Settings, refining: Refining) -> Plan:
    """Check what was asked for and load the reranker.

    Raises
    ------
    UsageError
        If method, preset, parameters or steps don't fit together.
    ModelError
        If the reranker can't be loaded.
    """
    query, method = settings.query, settings.query["method"]
    if method not in METHODS:
        choose_method_params(method, None, {})
    # A preset that nobody named is the method's own default.
    named = settings.sources["query", "preset"] != "default"
    preset = query["preset"] if named else None
    params = choose_method_params(method, preset, collect_overrides(settings, method))
    if query["fill"] and method != "rse":
        raise UsageError(f"--fill goes with the method rse, not with {method}")
    if settings.sources["query", "retriever"].startswith("--") and not METHODS[method].takes_retriever:
        takers = ", ".join(name for name, one in METHODS.items() if one.takes_retriever)
        raise UsageError(f"--retriever goes with {takers}, not with {method}")
    reranker = None
    if refining.rerank is not None:
        from rse_cli.adapters.reranker import load_reranker

        reranker = load_reranker(refining.rerank)
    shown = (preset or "balanced") if METHODS[method].presets else None
    refinement = make_refinement(settings, refining, method)
    return Plan(method, shown, params, settings, refinement, reranker, settings.source_weights)


def make_refinement(settings: Settings, refining: Refining, method: str) -> Refinement | None:
    """Return the steps asked for, or None where the method's own default holds.

    Raises
    ------
    UsageError
        If a number lies outside its range.
    """
    faults = []
    if refining.mmr is not None and not 0 <= refining.mmr <= 1:
        faults.append(f"--mmr must lie in [0, 1], not {refining.mmr}")
    if refining.min_score is not None and not math.isfinite(refining.min_score):
        faults.append(f"--min-score must be a finite number, not {refining.min_score}")
    if refining.no_fallback and refining.min_score is None:
        faults.append("--no-fallback goes with --min-score")
    if faults:
        raise UsageError("; ".join(faults))
    if refining == Refining(rerank=refining.rerank):
        return None
    from rse_cli.core.ranking import CompositeWeights

    given = {name: value for name, value in settings.refine.items() if value is not None}
    boost = given.pop("faq_boost", FAQ_BOOST)
    return Refinement(
        expand_short=refining.expand_short,
        complete_faq=refining.complete_faq,
        faq_boost=boost,
        join=method != "dsrag",
        dedupe=refining.dedupe,
        composite=CompositeWeights(**given) if refining.composite else None,
        min_score=refining.min_score,
        fallback=not refining.no_fallback,
        mmr=refining.mmr,
        limit=settings.query["limit"],
    )


def describe_fallback(min_score: float) -> str:
    """Return the line that says that the floor of scores was lowered."""
    from rse_cli.core.ranking import compute_fallback

    return f"nothing reaches --min-score {min_score:g}; lowered once to {compute_fallback(min_score):g}"


def collect_overrides(settings: Settings, method: str) -> dict[str, Any]:
    """Return the parameters of ``[method]`` and ``--set``; the ceiling of ``--max-chars`` is one of `rse`."""
    overrides = dict(settings.methods[method])
    if method != "rse":
        return overrides
    ceiling, place = settings.query["max_chars"], settings.sources["query", "max_chars"]
    set_directly = settings.sources.get((method, "max_chars")) == "--set"
    if ceiling is not None and (place == "--max-chars" or not set_directly):
        overrides["max_chars"] = ceiling
    return overrides


def _weigh_by(weights: Mapping[str, float]) -> Callable[[str], float]:
    """Return the weight of a path: that of the last glob that matches, else 1."""
    compiled = [(compile_path_filter([glob], []), weight) for glob, weight in weights.items()]

    def weigh(path: str) -> float:
        return next((weight for passes, weight in reversed(compiled) if passes(path)), 1.0)

    return weigh
