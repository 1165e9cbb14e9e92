"""The search finds what is planted, keeps what is held out apart, and recommends only what is no luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rse_cli.core.cached_cases import CachedCase, Outcome, Target
from rse_cli.core.folds import name_groups, split_folds
from rse_cli.core.gates import Gate
from rse_cli.core.method_params import TopKParams
from rse_cli.core.methods import METHODS, MethodParams
from rse_cli.core.params import RseParams
from rse_cli.core.relevance import Candidates, Evidence, find_runs
from rse_cli.core.search_space import GRIDS, Dimension, SearchSpace, make_space, round_digits
from rse_cli.core.settling import settle_best
from rse_cli.core.shared_columns import Shelf
from rse_cli.core.stacked_cases import stack_cases
from rse_cli.core.tuning import Plan, draw_points, search_best
from rse_cli.core.tuning_log import Evaluate, Log, Trial
from rse_cli.core.tuning_objective import Objective, find_front, score_trials
from rse_cli.pipeline.evidence_cache import Cache
from rse_cli.pipeline.tune import Asked, Tuned, open_log, tune_cases
from rse_cli.pipeline.tuning_front import trace_front
from rse_cli.pipeline.tuning_verdict import judge_gain, make_figures

PIECES = ("c0", "c1", "c4", "f0", "f4", "f12", "p1")


def make_case(rng: np.random.Generator, document: int, telling: Sequence[str]) -> CachedCase:
    """Forty chunks of 100 characters: one is expected, and only the telling pieces of evidence point to it.

    The others point to chunks elsewhere, so that whoever trusts them returns those.
    """
    n, right, wrong = 40, int(rng.integers(5, 15)), int(rng.integers(20, 35))
    evidence = {piece: rng.uniform(0.0, 0.3, n) for piece in PIECES}
    for piece in PIECES:
        evidence[piece][right if piece in telling else wrong] = 1.0
    numbers = np.full(n, document, np.int64)
    ords = np.arange(n)
    none = np.zeros((0, 0))
    return CachedCase(
        target=Target({document: [(100 * right, 100 * right + 100)]}, f"{document}.md"),
        evidence=(Evidence(**evidence),),
        lexical=(False,),
        known_shares=(1.0,),
        floors=(0.0,),
        candidates=Candidates(
            documents=numbers,
            ords=ords,
            chars=np.full(n, 100, np.int64),
            n_terms=np.zeros(n, np.int64),
            vectors=none.astype(np.float32),
            counts=none.astype(np.int32),
            fields=none.astype(np.int32),
            row_fields=none.astype(np.int32),
            is_row=np.zeros(n, np.bool_),
        ),
        starts=find_runs(numbers, ords)[0],
        start_chars=100 * ords,
    )


def make_cache(n_cases: int = 30, telling: Sequence[str] = ("f12", "p1"), seed: int = 0) -> Cache:
    rng = np.random.default_rng(seed)
    cases = tuple(make_case(rng, at // 3, telling) for at in range(n_cases))
    return Cache(tuple(case.target for case in cases), cases, (), {}, None, None)


def tune(cache: Cache, objective: Objective, given: RseParams | None = None, **asked: int) -> Tuned:
    params = given or RseParams(max_chars=300)
    wanted = Asked(objective, **{"trials": 400, "jobs": 2} | asked)
    log, exact = open_log(cache, wanted, (), lambda _: None, lambda: False)
    return tune_cases(cache, {"rse": params}, Trial("rse", params), wanted, log, exact)


SHORT = Objective("recall", (Gate("max", "chars", 150),))


# What is planted


def test_an_optimum_far_from_the_defaults_is_found() -> None:
    tuned = tune(make_cache(), SHORT)
    figures = {one.metric: one for one in tuned.figures}

    assert figures["recall"].current.mean == 0.0
    assert figures["recall"].training.mean == figures["recall"].held_out.mean == 1.0
    assert figures["chars"].held_out.mean <= 150
    assert tuned.refused == ""
    best = tuned.best.params
    assert isinstance(best, RseParams)
    misleading = best.weight_c0 + best.weight_c1 + best.weight_c4 + best.weight_f0 + best.weight_f4
    assert best.weight_f12 + best.weight_p1 > misleading


def test_where_nothing_is_planted_nothing_is_recommended() -> None:
    cache = make_cache(telling=())
    tuned = tune(cache, SHORT)
    assert [one.held_out.mean for one in tuned.figures if one.metric == "recall"] == [0.0]
    assert tuned.refused


def test_an_optimum_of_a_made_up_surface_is_found_in_every_kind_of_dimension() -> None:
    space = SearchSpace(
        "rse",
        RseParams(),
        (
            Dimension("weight_c0", 0.0, 12.0, "square"),
            Dimension("irrelevant_chunk_penalty", 0.005, 0.8, "log"),
            Dimension("max_chars", 100, 9_000, "log", whole=True),
            Dimension("table_share", choices=(0.0, 0.25, 0.5, 0.75)),
        ),
    )
    peak = (0.9, 0.15, 0.7, 0.9)
    targets = [Target({0: [(0, 10_000)]}, f"{at}") for at in range(6)]

    def evaluate(_: str, trials: Sequence[MethodParams]) -> np.ndarray:
        far = [max(abs(a - b) for a, b in zip(space.encode(one), peak, strict=True)) for one in trials]
        return np.array([[Outcome(1.0, 10_000 * max(0.0, 1 - one), 1.0, 1.0, 1.0)] * 6 for one in far])

    log = Log(evaluate, targets, ("recall",))
    log.add([Trial("rse", RseParams())])
    plan = Plan(1_200, 0, np.arange(6) % 2)
    found = search_best(log, [space], 0, Objective("recall"), plan, settle_best)
    assert log.values["recall"][found.best].mean() > 0.9
    assert getattr(log.trials[found.best].params, "table_share") == 0.75  # noqa: B009


def test_methods_of_few_choices_leave_their_trials_to_the_others() -> None:
    few = SearchSpace("top-k", TopKParams(), (Dimension("k", choices=(1, 2, 3)),))
    many = SearchSpace("rse", RseParams(), (Dimension("weight_c0", 0.0, 12.0, "square"),))

    def evaluate(_: str, trials: Sequence[MethodParams]) -> np.ndarray:
        hits = [9_000.0 if isinstance(one, TopKParams) else 5_000 + 400 * one.weight_c0 for one in trials]
        return np.array([[Outcome(1.0, one, 1.0, 1.0, 1.0)] * 6 for one in hits])

    log = Log(evaluate, [Target({0: [(0, 10_000)]}, f"{at}") for at in range(6)], ("recall",))
    log.add([Trial("rse", RseParams())])
    found = search_best(log, [few, many], 0, Objective("recall"), Plan(400, 0, np.arange(6) % 2), settle_best)
    assert len(log.trials) > 300
    assert log.trials[found.best].method == "rse"
    assert log.values["recall"][found.best].mean() > 0.95


def test_one_seed_gives_one_result_and_the_number_of_threads_does_not_matter() -> None:
    cache = make_cache()
    first, second = (tune(cache, SHORT, seed=7, jobs=jobs, trials=200) for jobs in (1, 3))
    assert first == second
    assert first.best != tune(cache, SHORT, seed=8, trials=200).best


def test_what_is_settled_on_gives_way_where_it_keeps_little_of_the_gain() -> None:
    cache = make_cache()
    asked = Asked(Objective("f1"), trials=64)
    log, _ = open_log(cache, asked, (), lambda _: None, lambda: False)
    [current] = log.add([Trial("rse", RseParams(0.5, 30.0, 4_000, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0))])
    space = make_space("rse", RseParams(), tables=False)

    def settle_worst(
        log: Log, _: SearchSpace, __: Sequence[int], known: Sequence[int], objective: Objective, cases: np.ndarray
    ) -> int:
        return known[int(np.argmin(log.score(known, objective, cases)))]

    found = search_best(log, [space], current, asked.objective, Plan(64, 0, np.arange(30) % 2), settle_worst)
    means = [float(log.values["f1"][number].mean()) for number in (current, found.best)]
    assert means[1] >= means[0]


def test_a_front_holds_settings_that_no_other_beats_and_measures_them_on_other_cases() -> None:
    cache = make_cache()
    asked = Asked(Objective("recall"), trials=300)
    log, _ = open_log(cache, asked, ("recall", "chars"), lambda _: None, lambda: False)
    given = Trial("rse", RseParams(max_chars=2_000))
    front = trace_front(
        cache, {"rse": given.params}, given, (Gate("min", "recall", 0), Gate("max", "chars", 0)), asked, log
    )

    recalls, chars = zip(*(one.training for one in front.points), strict=True)
    assert list(recalls) == sorted(recalls, reverse=True)
    assert list(chars) == sorted(chars, reverse=True)
    assert recalls[0] == 1.0
    assert front.n_held_out == 15
    assert front.by_document


def test_a_search_whose_time_is_up_still_settles() -> None:
    cache = make_cache()
    asked = Asked(SHORT, trials=10_000)
    log, exact = open_log(cache, asked, (), lambda _: None, lambda: True)
    given = Trial("rse", RseParams(max_chars=300))
    tuned = tune_cases(cache, {"rse": given.params}, given, asked, log, exact)
    assert tuned.n_trials < 100
    assert tuned.figures


def test_a_case_that_expects_nothing_holds_a_search_only_by_a_limit_and_is_always_reported() -> None:
    cache = make_cache()
    silent = replace(cache.evidence[0], target=Target({}), floors=(0.9,))
    cache = replace(cache, targets=(*cache.targets, silent.target), evidence=(*cache.evidence, silent))
    # The weights at which this case is silent are far below those of the defaults.
    given = RseParams(**{f"weight_{piece}": 0.5 for piece in PIECES}, max_chars=300)
    for limits, kept in (((), 0.0), ((Gate("min", "silent", 1.0),), 1.0)):
        tuned = tune(cache, Objective("f1", limits), given)
        assert tuned.objective.limits == limits
        [quiet] = [one for one in tuned.figures if one.metric == "silent"]
        assert (quiet.current.mean, quiet.training.mean) == (1.0, kept)
        assert bool(tuned.refused) == bool(limits)


def test_cases_share_their_columns_and_those_that_are_solved_together_lie_end_to_end() -> None:
    cases = [*make_cache(4).evidence]
    several = replace(cases[1], evidence=(cases[1].evidence[0], cases[2].evidence[0]))
    given = [cases[0], several, cases[2], cases[3]]
    rows = [[getattr(one, piece).tolist() for one in case.evidence for piece in PIECES] for case in given]
    starts = [case.starts.tolist() for case in given]
    shelf = Shelf()
    for case in given:
        shelf.add(case)
    shared = shelf.close()
    assert [[getattr(one, piece).tolist() for one in case.evidence for piece in PIECES] for case in shared] == rows
    assert [case.starts.tolist() for case in shared] == starts
    stack = stack_cases([shared[0], shared[2], shared[3]])
    for piece, column in zip(PIECES, stack.evidence, strict=True):
        assert all(np.shares_memory(column, getattr(one.evidence[0], piece)) for one in stack.cases)
    assert np.shares_memory(stack.chars, shared[3].candidates.chars)


def test_longer_answers_are_no_gain_in_recall() -> None:
    tuned = tune(make_cache(telling=PIECES), Objective("recall"), RseParams(max_chars=4_000))
    [limit] = tuned.objective.limits
    figures = {one.metric: one for one in tuned.figures}
    assert (limit.bound, limit.metric) == ("max", "chars")
    assert figures["chars"].training.mean <= limit.limit + 1e-9


def test_where_answers_are_filled_up_their_length_is_no_limit() -> None:
    tuned = tune(make_cache(telling=PIECES), Objective("recall"), RseParams(max_chars=500), fill=True, trials=64)
    assert tuned.objective.limits == ()
    assert {one.metric: one.training.mean for one in tuned.figures}["chars"] == 500


# The space


@pytest.mark.parametrize("method", ["rse", "dsrag", *GRIDS])
@given(at=st.lists(st.floats(0, 1), min_size=11, max_size=11))
def test_every_point_of_a_space_is_valid_and_comes_back(method: str, at: list[float]) -> None:
    space = make_space(method, METHODS[method].params(), several=True)
    params = space.decode(at[: len(space.dimensions)])
    assert space.decode(space.encode(params)) == params
    assert all(value == round_digits(value) for value in space.pick(params).values() if isinstance(value, float))


def test_points_are_the_same_for_a_seed_and_spread_over_all_of_the_cube() -> None:
    points = np.array(draw_points(10, 256, 3))
    assert points.tolist() == [list(one) for one in draw_points(10, 256, 3)]
    for column in points.T:
        assert np.bincount((column * 16).astype(int), minlength=16).tolist() == [16] * 16


# The split


@given(
    groups=st.lists(st.sampled_from(["", "a", "b", "c", "d", "e"]), min_size=2, max_size=40),
    k=st.integers(2, 6),
    seed=st.integers(0, 3),
)
def test_cases_of_one_document_are_held_out_together(groups: list[str], k: int, seed: int) -> None:
    targets = [Target({}, group) for group in groups]
    folds, by_document = split_folds(targets, k, seed)

    assert set(folds.tolist()) == set(range(int(folds.max()) + 1))
    assert 2 <= int(folds.max()) + 1 <= k
    named = set(groups) - {""}
    largest = max((groups.count(one) for one in named), default=0)
    assert by_document == (len(named) >= 3 and largest <= len(groups) / 2)
    if by_document:
        for name in named:
            assert len({int(fold) for fold, group in zip(folds, groups, strict=True) if group == name}) == 1
    else:
        sizes = np.bincount(folds)
        assert sizes.max() - sizes.min() <= 1
    assert split_folds(targets, k, seed)[0].tolist() == folds.tolist()


def test_cases_that_share_a_document_through_others_are_one_group() -> None:
    assert name_groups([["c", "d"], ["a", "b"], ["e"], ["b", "c"], []]) == ["a", "a", "e", "a", ""]


# The objective and the verdict


@given(
    means=st.lists(st.tuples(st.floats(0, 1), st.floats(1, 5_000)), min_size=1, max_size=8), limit=st.floats(10, 4_000)
)
def test_no_trial_that_misses_a_limit_beats_one_that_keeps_it(means: list[tuple[float, float]], limit: float) -> None:
    table = {name: np.array([[one[at]] for one in means]) for at, name in enumerate(("recall", "chars"))}
    scores = score_trials(table, Objective("recall", (Gate("max", "chars", limit),)), np.array([True]))
    kept = [chars <= limit + 1e-9 for _, chars in means]
    for (recall, _), score, keeps in zip(means, scores.tolist(), kept, strict=True):
        assert score == recall if keeps else score <= 0
    if any(kept):
        assert kept[int(np.argmax(scores))] or max(r for (r, _), k in zip(means, kept, strict=True) if k) == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    front = find_front(np.array(points, dtype=float), (1, -1))
    unbeaten = {(a, b) for a, b in points if not any((c >= a and d <= b) and (c, d) != (a, b) for c, d in points)}
    assert {points[at] for at in front} == unbeaten
    assert len(front) == len(unbeaten)


def judge(current: Sequence[float], held_out: Sequence[float], chars: float = 100.0, *limits: Gate) -> str:
    """The verdict on recalls before and after, over cases of 100 expected characters."""
    targets = [Target({0: [(0, 100)]})] * len(current)

    def make(recalls: Sequence[float], chars: float) -> np.ndarray:
        return np.array([[chars, 100 * one, 1.0, 1.0, 1.0] for one in recalls])

    outcomes = (make(current, 100.0), make(held_out, 100.0), make(held_out, chars))
    objective = Objective("recall", limits)
    return judge_gain(objective, make_figures(objective, outcomes, targets), unchanged=False)


def test_a_gain_within_the_noise_is_not_recommended() -> None:
    # Better by 0.05 on average, but for one case of twenty alone.
    assert judge([0.0] * 20, [1.0] + [0.0] * 19) == "its held-out gain in recall is within the noise"
    assert judge([0.5] * 20, [0.5] * 20) == "its held-out gain in recall is within the noise"
    assert judge([0.5] * 20, [0.4] * 20) == "its held-out gain in recall is within the noise"


def test_a_gain_in_most_cases_is_recommended() -> None:
    assert judge([0.5] * 20, [0.6] * 15 + [0.4] * 5) == ""


def test_a_gain_bought_by_missing_a_limit_is_not_recommended() -> None:
    limit = Gate("max", "chars", 200.0)
    assert judge([0.0] * 20, [1.0] * 20, 209.0, limit) == ""
    assert judge([0.0] * 20, [1.0] * 20, 211.0, limit) == "held out it misses chars ≤ 200: 211"


def test_the_log_keeps_nothing_of_a_batch_that_was_interrupted() -> None:
    def evaluate(_: str, trials: Sequence[MethodParams]) -> np.ndarray:
        if len(trials) > 1:
            raise KeyboardInterrupt
        return np.zeros((1, 1, 5))

    answer: Evaluate = evaluate
    log = Log(answer, [Target({0: [(0, 1)]})], ("recall",))
    log.add([Trial("rse", RseParams())])
    with pytest.raises(KeyboardInterrupt):
        log.add([Trial("rse", RseParams())] * 2)
    assert (len(log.trials), len(log.values["recall"])) == (1, 1)
