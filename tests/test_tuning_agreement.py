"""What `rse tune` measures from cached evidence is what `rse check` measures by asking: to the last digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rse_cli.adapters.cases import scan_cases
from rse_cli.cli.wiring import is_english_only, load_index_encoder, open_index
from rse_cli.core.cached_cases import answer_case
from rse_cli.core.cases import Case, ResolvedCase
from rse_cli.core.methods import METHODS, MethodParams, choose_method_params
from rse_cli.core.metrics import DocumentSpan
from rse_cli.core.params import PRESETS, RseParams
from rse_cli.core.search_space import GRIDS, make_space
from rse_cli.core.tuning_objective import MEASURES, measure_outcomes
from rse_cli.pipeline.cached_answers import make_evaluate
from rse_cli.pipeline.check import check_cases, encode_cases
from rse_cli.pipeline.evidence_cache import Cache, CacheBuilder, list_grid
from rse_cli.pipeline.expectations import resolve_cases
from rse_cli.pipeline.query import Request
from rse_cli.pipeline.retrieval import Query
from rse_cli.ports import Snapshot
from tests.fake_encoder import FakeEncoder
from tests.test_query_pipeline import DOCUMENTS, SUBJECTS, build

CHECKED = tuple(name for name in MEASURES if name not in ("f1", "f2"))

Asked = Sequence[tuple[Query, ...]]


def measure_by_asking(
    snapshot: Snapshot, cases: Sequence[ResolvedCase], queries: Asked, request: Request, method: str, params: Any
) -> list[list[float]]:
    """Every metric of every case as `rse check` has it; a case that expects nothing has only whether it is silent."""
    results = check_cases(
        snapshot, cases, queries, lambda asked: replace(request, queries=asked, method=method, params=params)
    )
    return [[one.measures.get(name, one.measures["passed"]) for name in (*CHECKED, "silent")] for one in results]


def measure_from_cache(cache: Cache, fill: bool, method: str, trials: Sequence[Any], *, fast: bool) -> np.ndarray:
    """The same of each trial from the cache, shape (n_trials, n_cases, n_metrics)."""
    names = (*CHECKED, "silent")
    outcomes = make_evaluate(cache, fill, 1, names)[0 if fast else 1](method, trials)
    passed = measure_outcomes("passed", outcomes, cache.targets)
    columns = [measure_outcomes(name, outcomes, cache.targets) for name in names]
    return np.stack([np.where(np.isnan(one), passed, one) for one in columns], axis=-1)


def assert_agreement(
    snapshot: Snapshot,
    cases: Sequence[ResolvedCase],
    queries: Asked,
    request: Request,
    method: str,
    trials: Sequence[MethodParams],
    max_chars: int | None = None,
) -> None:
    cache = CacheBuilder(snapshot, request, {method: trials[0]}, max_chars).build(cases, queries)
    request = replace(request, max_chars=max_chars)
    asked = [measure_by_asking(snapshot, cases, queries, request, method, params) for params in trials]
    for fast in (True, False):
        cached = measure_from_cache(cache, request.fill, method, trials, fast=fast)
        assert cached.tolist() == asked


# On made-up documents, where equal texts and ties are common


def resolve(snapshot: Snapshot, wanted: Sequence[tuple[str, int, tuple[int, int]]]) -> list[ResolvedCase]:
    """Cases that expect a stretch of one document or of several, or nothing."""
    paths = [record.path for record in snapshot.files()]
    return [
        ResolvedCase(
            Case(f"case-{at}", tuple(query.split("+"))),
            tuple(DocumentSpan(path, start, start + length) for path in paths[first::3] if length),
        )
        for at, (query, first, (start, length)) in enumerate(wanted)
    ]


WANTED = st.lists(
    st.tuples(
        st.sampled_from(
            [*SUBJECTS, "pump valve", "words for it", "valve+gear", "unknown gear things", "unknown", "泵"]
        ),
        st.integers(0, 2),
        st.tuples(st.integers(0, 600), st.sampled_from([0, 1, 50, 200, 1_000])),
    ),
    min_size=1,
    max_size=5,
)
UNIT = st.floats(0, 1, allow_nan=False)
REQUESTS = st.fixed_dictionaries(
    {
        "fill": st.booleans(),
        "limit": st.sampled_from([None, None, 1, 2]),
        "min_confidence": st.sampled_from([None, 0.0, 0.4]),
    }
)


@settings(max_examples=60, deadline=None)
@given(
    documents=DOCUMENTS,
    wanted=WANTED,
    points=st.lists(st.tuples(*[UNIT] * 10), min_size=1, max_size=9),
    max_chars=st.sampled_from([1, 7, 60, 150, 400, 1_000, 4_000]),
    options=REQUESTS,
)
def test_a_point_of_the_space_of_rse_measures_what_check_measures(
    documents: dict[str, str], wanted: Any, points: list[tuple[float, ...]], max_chars: int, options: dict[str, Any]
) -> None:
    snapshot = build(documents).snapshot()
    cases = resolve(snapshot, wanted)
    queries = encode_cases([one.case for one in cases], FakeEncoder(), english_only=True)
    space = make_space("rse", RseParams(max_chars=max_chars))
    trials = [space.decode(point) for point in points]
    assert_agreement(snapshot, cases, queries, Request((), RseParams(), **options), "rse", trials)


def test_among_equal_texts_the_order_is_that_of_check() -> None:
    same = "# Manual\n\n" + "".join(f"The {one} is cleaned with {one} oil. It lasts long.\n\n" for one in SUBJECTS)
    snapshot = build({"a.md": same[::-1], **{f"{name}.md": same for name in "bcdef"}}).snapshot()
    cases = resolve(snapshot, [(one, at, (0, 600)) for at in range(3) for one in (*SUBJECTS, "cleaned", "lasts long")])
    queries = encode_cases([one.case for one in cases], FakeEncoder(), english_only=True)
    space = make_space("rse", RseParams())
    trials = [space.decode(point) for point in np.random.default_rng(0).random((16, len(space.dimensions)))]
    for limit in (None, 2):
        assert_agreement(snapshot, cases, queries, Request((), RseParams(), limit=limit), "rse", trials)


@settings(max_examples=25, deadline=None)
@given(
    documents=DOCUMENTS,
    wanted=WANTED,
    points=st.lists(st.tuples(*[UNIT] * 10), min_size=1, max_size=4),
    max_chars=st.sampled_from([None, 150, 1_000]),
    limit=st.sampled_from([None, 1]),
)
def test_a_point_of_the_space_of_dsrag_measures_what_check_measures(
    documents: dict[str, str], wanted: Any, points: list[tuple[float, ...]], max_chars: int | None, limit: int | None
) -> None:
    snapshot = build(documents).snapshot()
    cases = resolve(snapshot, wanted)
    queries = encode_cases([one.case for one in cases], FakeEncoder(), english_only=True)
    base = choose_method_params("dsrag", None, {})
    space = make_space("dsrag", base, several=True)
    trials = [space.decode(point) for point in points]
    assert_agreement(snapshot, cases, queries, Request((), base, limit=limit), "dsrag", trials, max_chars)


@pytest.mark.parametrize("method", sorted(GRIDS))
def test_every_point_of_a_grid_measures_what_check_measures(method: str) -> None:
    text = "# Manual\n\n" + "".join(f"The {one} is cleaned with {one} oil. It lasts long.\n\n" for one in SUBJECTS * 3)
    snapshot = build({"a.md": text, "b.txt": text[200:900], "c.md": text[::-1]}).snapshot()
    cases = resolve(snapshot, [("pump", 0, (100, 300)), ("valve+gear", 1, (0, 50)), ("oil", 0, (0, 0))])
    queries = encode_cases([one.case for one in cases], FakeEncoder(), english_only=True)
    base = METHODS[method].params()
    for max_chars in (None, 500):
        assert_agreement(snapshot, cases, queries, Request((), base), method, list_grid(method, base), max_chars)


# On an index of real documents with the real model


@pytest.fixture(scope="module")
def real(sample: Path) -> tuple[Snapshot, list[ResolvedCase], Asked]:
    index = open_index(str(sample / ".rse"))
    snapshot = index.store.snapshot()
    cases, faults = scan_cases(sample / "cases.yaml")
    assert not faults
    encoder = load_index_encoder(index, for_query=True)
    return snapshot, resolve_cases(snapshot, cases), encode_cases(cases, encoder, is_english_only(index.manifest))


@pytest.mark.parametrize(("fill", "limit", "max_chars"), [(False, None, 4_000), (True, None, 2_000), (False, 2, 700)])
def test_random_points_measure_on_real_evidence_what_check_measures(
    real: tuple[Snapshot, list[ResolvedCase], Asked], fill: bool, limit: int | None, max_chars: int
) -> None:
    snapshot, cases, queries = real
    rng = np.random.default_rng(max_chars)
    space = make_space("rse", RseParams(max_chars=max_chars))
    trials = [*PRESETS.values(), *(space.decode(point) for point in rng.random((9, len(space.dimensions))))]
    assert_agreement(snapshot, cases, queries, Request((), RseParams(), fill=fill, limit=limit), "rse", trials)


def test_an_unknown_word_lowers_the_confidence_of_a_cached_case_as_it_does_in_a_query(
    real: tuple[Snapshot, list[ResolvedCase], Asked],
) -> None:
    snapshot, cases, queries = real
    cache = CacheBuilder(snapshot, Request((), RseParams()), {"rse": RseParams()}).build(cases, queries)
    damped = [one for one in cache.evidence if one.known_shares[0] < 1]
    assert damped
    known = [replace(one, known_shares=(1.0,)) for one in damped]

    def count_answered(ones: Any) -> int:
        return sum(bool(answer_case(one, RseParams(), fill=False)) for one in ones)

    assert count_answered(damped) < count_answered(known)
