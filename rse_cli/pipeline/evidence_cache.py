"""Cases to all that trials need: retrieval happens once per case, then the index is no longer asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import NOTHING, CachedCase, Outcome, Place, Target, measure_answer
from rse_cli.core.cases import ResolvedCase
from rse_cli.core.dsrag import RankedHit, select_dsrag
from rse_cli.core.dsrag_params import CHOICES, DsragParams
from rse_cli.core.folds import name_groups
from rse_cli.core.methods import MethodParams
from rse_cli.core.metrics import union_spans
from rse_cli.core.params import RseParams
from rse_cli.core.refine import join_passages
from rse_cli.core.relevance import default_min_confidence, measure_known_share
from rse_cli.core.search_space import GRIDS
from rse_cli.core.shared_columns import Shelf
from rse_cli.dataclass import dataclass
from rse_cli.pipeline.named_methods import list_hits, rank_blocks
from rse_cli.pipeline.query import Request
from rse_cli.pipeline.retrieval import Query, Retrieval, retrieve
from rse_cli.pipeline.scoring import Scored, find_confident, score_candidates
from rse_cli.pipeline.selecting import Material, find_selector
from rse_cli.ports import Snapshot, make_key

Blocks = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Where each block of a document starts and ends, in characters."""


@dataclass(frozen=True, slots=True)
class RankedCase:
    """A case as the method `dsrag` sees it.

    Parameters
    ----------
    target : Target
        What it should find.
    ranked : mapping of str to list
        By what blocks are ranked by (``relevance``, ``cosine``), the hits of each query.
    blocks : mapping of int to (ndarray, ndarray)
        Per document the characters where its blocks start and end.
    """

    target: Target
    ranked: Mapping[str, list[list[RankedHit]]]
    blocks: Mapping[int, Blocks]


@dataclass(frozen=True, slots=True)
class Cache:
    """What was kept of all cases, in their order; each part only where a method needs it.

    Parameters
    ----------
    targets : tuple of Target
        What they should find.
    evidence : tuple of CachedCase
        For the method `rse`.
    ranked : tuple of RankedCase
        For `dsrag`.
    grids : mapping of (str, MethodParams) to list of Outcome
        For the other methods, every set of parameters that can be tried.
    max_chars, limit : int or None
        What cuts the answers of methods without a ceiling of their own, and the most segments.
    """

    targets: tuple[Target, ...]
    evidence: tuple[CachedCase, ...]
    ranked: tuple[RankedCase, ...]
    grids: Mapping[tuple[str, MethodParams], list[Outcome]]
    max_chars: int | None
    limit: int | None


def list_grid(method: str, base: MethodParams) -> list[MethodParams]:
    """Return the current parameters of a method and every point of its grid, without repeats."""
    names = list(GRIDS[method])
    points = [replace(base, **dict(zip(names, values, strict=True))) for values in product(*GRIDS[method].values())]
    return list(dict.fromkeys([base, *points]))


@dataclass(slots=True)
class CacheBuilder:
    """Fills a cache case by case.

    Parameters
    ----------
    snapshot : Snapshot
        One version of the index.
    request : Request
        How queries are answered now; its method and parameters don't matter.
    methods : mapping of str to MethodParams
        The methods to be tried with their current parameters.
    max_chars : int or None
        What cuts the answers of methods without a ceiling of their own.
    """

    snapshot: Snapshot
    request: Request
    methods: Mapping[str, MethodParams]
    max_chars: int | None = None

    def build(
        self,
        cases: Sequence[ResolvedCase],
        queries: Sequence[tuple[Query, ...]],
        watch: Callable[[], None] = lambda: None,
    ) -> Cache:
        """Return the cache of all cases, given their queries; `watch` is called after each."""
        groups = name_groups([[span.path for span in one.spans] for one in cases])
        evidence = Shelf()
        ranked: list[RankedCase] = []
        targets: list[Target] = []
        grids: dict[tuple[str, MethodParams], list[Outcome]] = {
            (method, params): []
            for method, base in self.methods.items()
            if method in GRIDS
            for params in list_grid(method, base)
        }
        blocks: dict[int, Blocks] = {}
        for case, group, asked in zip(cases, groups, queries, strict=True):
            retrieval = retrieve(self.snapshot, asked, self.request.paths)
            scored = tuple(score_candidates(retrieval, at, RseParams()) for at in range(len(asked)))
            target = locate_target(case, group, retrieval)
            given = self.request.min_confidence
            silent = given is not None and not find_confident(scored, [given] * len(scored))
            targets.append(target)
            if "rse" in self.methods:
                evidence.add(self._keep_evidence(target, retrieval, scored))
            if "dsrag" in self.methods:
                kept = _rank_nothing(target, asked) if silent else self._keep_ranked(target, retrieval, scored, blocks)
                ranked.append(kept)
            if grids:
                material = Material(self.snapshot, retrieval, scored, tuple(range(len(asked))), self.request.retriever)
                for (method, params), outcomes in grids.items():
                    found = NOTHING if silent else self._try_grid(target, material, method, params)
                    outcomes.append(found)
            watch()
        return Cache(tuple(targets), evidence.close(), tuple(ranked), grids, self.max_chars, self.request.limit)

    def _keep_evidence(self, target: Target, retrieval: Retrieval, scored: Sequence[Scored]) -> CachedCase:
        given = self.request.min_confidence
        lexical = tuple(query.lexical for query in retrieval.queries)
        candidates = retrieval.candidates[0]
        none = np.zeros((0, 0))
        return CachedCase(
            target=target,
            evidence=tuple(one.evidence for one in scored),
            lexical=lexical,
            known_shares=tuple(measure_known_share(words, retrieval.statistics.n_chunks) for words in retrieval.words),
            floors=tuple(default_min_confidence(one) if given is None else given for one in lexical),
            # Vectors and counts have become evidence; they are most of the memory.
            candidates=replace(
                candidates,
                documents=candidates.documents.astype(np.int32),
                ords=candidates.ords.astype(np.int32),
                chars=candidates.chars.astype(np.int32),
                n_terms=np.zeros(0, np.int64),
                vectors=none.astype(np.float32),
                counts=none.astype(np.int32),
                fields=none.astype(np.int32),
                row_fields=none.astype(np.int32),
            ),
            starts=retrieval.starts.astype(np.int32),
            start_chars=retrieval.start_chars.astype(np.int32),
        )

    def _keep_ranked(
        self, target: Target, retrieval: Retrieval, scored: Sequence[Scored], blocks: dict[int, Blocks]
    ) -> RankedCase:
        by_kind = {kind: _rank_all(retrieval, scored, kind) for kind in CHOICES["similarity"]}
        documents = {int(hit[0]) for ranked in by_kind.values() for hits in ranked for hit in hits}
        for document in documents - blocks.keys():
            n_chunks = retrieval.records[document].n_chunks
            rows = self.snapshot.evidence([make_key(document, ord_) for ord_ in range(n_chunks)])
            opens = np.flatnonzero(np.concatenate(([True], np.diff(rows.blocks) != 0)))
            ends = np.concatenate((rows.start_chars[opens[1:]], rows.start_chars[-1:] + rows.chars[-1:]))
            blocks[document] = (rows.start_chars[opens], ends)
        return RankedCase(target, by_kind, {document: blocks[document] for document in documents})

    def _try_grid(self, target: Target, material: Material, method: str, params: MethodParams) -> Outcome:
        passages = join_passages(find_selector(method)(material, params).passages)[: self.request.limit]
        places = [Place(one.document, one.start_char, one.end_char) for one in passages]
        return measure_answer(target, cut_places(places, self.max_chars))


def _rank_nothing(target: Target, asked: tuple[Query, ...]) -> RankedCase:
    return RankedCase(target, {kind: [[] for _ in asked] for kind in CHOICES["similarity"]}, {})


def _rank_all(retrieval: Retrieval, scored: Sequence[Scored], similarity: str) -> list[list[RankedHit]]:
    """Return what `dsrag` is fed, per query."""
    if not len(retrieval.keys):
        return [[] for _ in retrieval.queries]
    return [list_hits(*rank_blocks(retrieval, query, one, similarity)) for query, one in enumerate(scored)]


def locate_target(case: ResolvedCase, group: str, retrieval: Retrieval) -> Target:
    """Return what a case expects by document number; documents without a candidate get numbers of their own."""
    numbers: dict[str, int] = {record.path: number for number, record in retrieval.records.items()}
    spans: dict[int, list[tuple[int, int]]] = {}
    for span in case.spans:
        number = numbers.setdefault(span.path, -1 - len(numbers))
        spans.setdefault(number, []).append((span.start_char, span.end_char))
    return Target({number: union_spans(found) for number, found in spans.items()}, group)


def answer_ranked(case: RankedCase, params: DsragParams, max_chars: int | None, limit: int | None) -> Outcome:
    """Return how the method `dsrag` meets a case with some parameters."""
    places = []
    for one in select_dsrag(case.ranked[params.similarity], params).segments[:limit]:
        starts, ends = case.blocks[int(one.path)]
        places.append(Place(int(one.path), int(starts[one.start_chunk]), int(ends[one.end_chunk - 1])))
    return measure_answer(case.target, cut_places(places, max_chars))


def cut_places(places: Sequence[Place], max_chars: int | None) -> list[Place]:
    """Keep places in order up to a ceiling, the last one cut at it.

    Examples
    --------
    >>> cut_places([Place(0, 0, 10), Place(0, 20, 30), Place(0, 40, 50)], 15)
    [Place(document=0, start_char=0, end_char=10), Place(document=0, start_char=20, end_char=25)]
    """
    kept: list[Place] = []
    left = max_chars
    for one in places:
        if left is None:
            kept.append(one)
        elif left > 0:
            end = min(one.end_char, one.start_char + left)
            kept.append(one._replace(end_char=end))
            left -= end - one.start_char
    return kept
