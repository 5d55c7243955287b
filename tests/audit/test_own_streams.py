"""Running sums, graphs and samples in the audit of dither itself: what is correct passes, and planted bugs are found."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.audit.ourselves.cases import Case, any_sample, compare
from dither.audit.ourselves.catalogs import CatalogSetup, small
from dither.audit.ourselves.graphs import FOR_EDGES, FOR_NODES, GraphCase, any_graph, compare_graphs
from dither.audit.ourselves.harness import Harness
from dither.audit.ourselves.observe import looser, with_changed_work
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.replay import run_harness
from dither.audit.ourselves.streams import HORIZON, QUESTIONS, StreamCase, any_stream, compare_streams
from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.graphs import counts, questions
from dither.graphs.smooth import SmoothNoise
from dither.mechanisms import L1
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Program, Run
from dither.query.nodes import Filter, WithinUnit
from dither.query.work import Ends, Group, Work

COUNT, SUM = QUESTIONS[:2]
DAILY = tuple((1, day, 10) for day in range(HORIZON))


# --- streams ----------------------------------------------------------------------------------------------------


def daily(question: str = COUNT, **changes: Any) -> StreamCase:
    """A person who comes every day, over three snapshots; some days are late once."""
    added = (DAILY[:4], ((2, 1, 3), *DAILY[4:7], DAILY[0]), DAILY[7:])
    return replace(StreamCase(added, (3, 6, 10), 1, question, {"epsilon": 1}, 1, 2), **changes)


def of_streams(case: StreamCase, steps: Steps = STEPS) -> Any:
    return compare_streams(case, random.Random(1), steps)


@pytest.mark.slow
def test_generated_streams_show_no_more_than_was_priced() -> None:
    shares = []
    for seed in range(25):
        rng = random.Random(seed)
        case = any_stream(rng)
        wrong, share = compare_streams(case, rng)
        assert wrong is None, f"{wrong}\n{case}"
        assert share is not None, "every stream is answered"
        shares.append(share)
    assert max(shares) == 1, "some pair uses all that was priced, so less would have been noticed"


def test_one_person_moves_all_that_a_stream_is_priced_for() -> None:
    assert of_streams(daily()) == (None, 1.0)
    wrong, share = of_streams(daily(SUM, instead=((), ((1, 5, -5),), ()), max_steps=1))
    assert (wrong, share) == (None, 1.0)


def test_steps_bounded_for_each_snapshot_alone_are_found() -> None:
    """The bug: the first k steps of what is new, instead of those of the whole history."""

    def forgetful(work: Work) -> Work:
        if not isinstance(work.source, Filter) or not isinstance(work.source.source, WithinUnit):
            return work
        return replace(work, source=work.source.source.source, max_groups=2)

    wrong, _ = of_streams(daily(), with_changed_work(forgetful))
    assert wrong is not None
    assert wrong[0] == ("steps of a stream that move",)


def test_rows_beyond_the_bound_of_a_step_are_found() -> None:
    case = daily(added=((DAILY[0],) * 4, (), ()))
    assert of_streams(case) == (None, 1.0)
    wrong, share = of_streams(case, with_changed_work(looser(rows=3)))
    assert wrong is not None
    assert (wrong[0], share) == (("one step of a stream",), 3.0)


def past_the_noise(of: int) -> Steps:
    """Returns steps that add to what is released the number of groups, or of edges, that the engine found."""
    found: list[int] = []

    def run(engine: Engine, work: Work) -> Sequence[Group]:
        groups = STEPS.run(engine, work)
        found.append(sum(len(each.pairs) if isinstance(each, Ends) else 1 for group in groups for each in group.measures))
        return groups

    def release(program: Program, run: Run, draw: Draw) -> Sequence[Noisy]:
        return [
            replace(each, cells=tuple(cells + of * found[-1] for cells in each.cells))
            for each in STEPS.release(program, run, draw)
        ]

    return Steps(run=run, release=release)


def test_sums_that_bypass_the_noise_are_found() -> None:
    assert of_streams(daily(), past_the_noise(0)) == (None, 1.0)
    wrong, _ = of_streams(daily(), past_the_noise(1))
    assert wrong is not None
    assert wrong[0] == ("noise",)


# --- graphs -----------------------------------------------------------------------------------------------------

NODES = tuple(range(1, 7))
STAR = tuple((1, node) for node in NODES[1:])


def of_graphs(case: GraphCase, steps: Steps = STEPS) -> Any:
    return compare_graphs(case, random.Random(1), steps)


def test_every_question_about_graphs_is_generated() -> None:
    made = [any_graph(random.Random(seed)) for seed in range(300)]
    assert {str(case.question) for case in made} == {str(each) for each in (*FOR_EDGES, *FOR_NODES)}
    assert {case.listed for case in made} == {"table", "range"}
    assert {case.unit for case in made} == {"edge", "node"}


@pytest.mark.slow
def test_generated_graphs_show_no_more_than_was_priced() -> None:
    shares = []
    for seed in range(40):
        rng = random.Random(seed)
        case = any_graph(rng)
        wrong, share = compare_graphs(case, rng)
        assert wrong is None, f"{wrong}\n{case}"
        shares.append(share)
    assert sum(share is not None for share in shares) > 35
    assert max(share for share in shares if share is not None) == 1


def test_a_histogram_priced_for_three_moves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = GraphCase(NODES, ((1, 2), (2, 3), (2, 4), (5, 2)), (1, 2), ("degree_histogram", {}), "1")
    assert of_graphs(case) == (None, 1.0)
    monkeypatch.setattr(counts, "HISTOGRAM", L1(3))
    wrong, _ = of_graphs(case)
    assert wrong is not None
    assert wrong[0] == ("nodes by degree: sum of moves",)


def test_edges_that_count_as_often_as_they_are_listed_are_found() -> None:
    """The bug: an engine that returns an edge twice because it stands there twice."""

    def twice(measure: Any) -> Any:
        return replace(measure, pairs=np.repeat(measure.pairs, 2, axis=0)) if isinstance(measure, Ends) else measure

    def run(engine: Engine, work: Work) -> Sequence[Group]:
        return [replace(group, measures=tuple(map(twice, group.measures))) for group in STEPS.run(engine, work)]

    case = GraphCase(NODES, ((1, 2), (2, 1)), (1, 2), ("edge_count", {}), "1")
    assert of_graphs(case) == (None, 1.0)
    wrong, _ = of_graphs(case, Steps(run=run))
    assert wrong is not None
    assert wrong[1] == 2


def test_degrees_that_are_not_bounded_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = GraphCase(NODES, STAR, (1,), ("edge_count", {"most_degree": 2, "left_out": False}), "1")
    assert of_graphs(case) == (None, 1.0)
    monkeypatch.setattr(questions, "project", lambda graph, theta: graph)
    wrong, _ = of_graphs(case)
    assert wrong is not None
    assert wrong[0] == ("edges: sum of moves",)


def test_a_bound_of_the_noise_that_follows_the_graph_too_closely_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: noise in proportion to what an edge changes in this graph, which a neighbour may not know of."""
    monkeypatch.setattr(SmoothNoise, "bound", lambda noise, levels: Fraction(max(levels.at(0), 1)))
    case = GraphCase(NODES, STAR[:3], (1, 4), ("stars", {"k": 3}), "1/10")
    wrong, _ = of_graphs(case)
    assert wrong is not None
    assert "3-stars: the bound of the noise" in wrong[0]


def test_edges_counted_past_the_noise_are_found() -> None:
    case = GraphCase(NODES, STAR, (1, 2), ("edge_count", {}), "1")
    wrong, _ = of_graphs(case, past_the_noise(1))
    assert wrong is not None
    assert wrong[0] == ("noise",)


# --- samples ----------------------------------------------------------------------------------------------------


def sampled_case() -> tuple[CatalogSetup, Case]:
    setup = next(made for seed in range(50) if not (made := small(random.Random(seed))).replace and _by_unit(made))
    rng = random.Random(3)
    everyone = tuple(setup.person(number, rng) for number in range(1, 13))
    return setup, Case(
        setup, everyone[5:], everyone[:5], Parts("", ("COUNT(*) AS a0",), "t", "", ""), (1, "1e-6"), sample="1/2"
    )


def _by_unit(setup: CatalogSetup) -> bool:
    with Harness(setup, ()) as harness:
        return harness.is_answerable("SELECT COUNT(*) AS a0 FROM t", (1, "1e-6"), "1/2")


def compared(steps: Steps) -> Any:
    setup, case = sampled_case()
    with Harness(setup, case.everyone, steps) as harness:
        return compare(harness, case, random.Random(2))


@pytest.mark.slow
def test_questions_on_a_sample_move_no_more_than_was_priced() -> None:
    one = compared(STEPS)
    assert one.finding is None
    assert one.answered
    assert one.moved > 0, "somebody is in the sample"


@pytest.mark.slow
def test_a_sample_that_depends_on_other_rows_is_found() -> None:
    """The bug: who is in the sample depends on how many rows there are, so one person moves others in and out."""

    def run(engine: Engine, work: Work) -> Sequence[Group]:
        if work.sample is None:
            return STEPS.run(engine, work)
        (all_rows,) = STEPS.run(engine, replace(work, sample=None))
        rows = int(np.ravel(all_rows.measures[0])[0])  # type: ignore[arg-type]
        return STEPS.run(engine, replace(work, sample=Fraction(9, 10) if rows % 2 else Fraction(1, 10)))

    one = compared(Steps(run=run))
    assert one.finding is not None
    assert one.finding.share > 1


@pytest.mark.slow
def test_looser_bounds_on_a_sample_are_found() -> None:
    assert compared(with_changed_work(looser(rows=3))).finding is not None


def test_samples_are_asked_now_and_then_and_not_where_people_are_replaced() -> None:
    setup = small(random.Random(1))
    rng = random.Random(1)
    found = [any_sample(replace(setup, replace=False), rng) for _ in range(400)]
    assert {each for each in found if each} == {"1/2", "1/10", "9/10"}
    assert sum(each is None for each in found) > 300
    assert {any_sample(replace(setup, replace=True), rng) for _ in range(100)} == {None}


@pytest.mark.slow
def test_a_run_asks_about_samples() -> None:
    kinds = {kind for number in range(6) for kind in run_harness(3, number).by_setup}
    assert any("on a sample" in kind for kind in kinds)
