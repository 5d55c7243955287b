"""Neighbouring tables through the engine: the integers move by at most the claimed sensitivity, for every aggregate."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.audit.ourselves import compare
from dither.mechanisms import Gaussian
from dither.planning.plan import Plan
from dither.planning.releases.mode import Mode
from dither.planning.releases.quantiles import Several
from dither.planning.releases.ranks import rank_scores, width_runs
from dither.query.nodes import Call, Column, Literal
from dither.query.work import Bins, Group
from planning.hand import REGIONS, ask, planned, query, run

MANY = (
    ask("n", "count"),
    ask("na", "count", "age"),
    ask("avg", "avg", "age"),
    ask("sum", "sum", "wage"),
    ask("var", "var_samp", "wage"),
    ask("sd", "stddev_pop", "age"),
    ask("kinds", "count_distinct", "age"),
    ask("people", "count_units"),
    ask("median", "median", "wage"),
    ask("low", "min", "age"),
    ask("first", "quantile", "wage", Fraction(1, 4)),
    ask("third", "quantile", "wage", Fraction(3, 4)),
    ask("top", "max", "wage"),
    ask("out", "clipped", "age"),
    ask("both", "corr", "age", second="wage"),
    ask("slope", "regr_slope", "wage", second="age"),
    ask("together", "covar_samp", "wage", second="wage"),
    ask("bent", "skewness", "wage"),
    ask("peak", "kurtosis", "age"),
    ask("growth", "geomean", Call("clamp", (Column("wage"), Literal(1), Literal(50)))),
    ask("most", "mode", "region"),
    ask("usual", "mode", "age"),
)
SUMS = (ask("sum", "sum", "wage"), ask("units", "count_units"), ask("kinds", "count_distinct", "town"))

value = st.one_of(st.none(), st.integers(-(10**6), 10**6), st.sampled_from([0, 1, 60, 119, 120, 2**62, -(2**62)]))
wage = st.one_of(st.none(), st.sampled_from([float("nan"), float("inf"), -float("inf"), -0.0, 1e308]), st.floats(-30, 80))


@cache
def rows_of(person: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries(
        {
            "person": st.just(person),
            "age": value,
            "wage": wage,
            "region": st.sampled_from([*REGIONS, "elsewhere", None]),
            "town": st.sampled_from(["a", "b", "c", "d"]),
        }
    )
    return st.lists(row, max_size=9)


def moves(plan: Plan, before: list[Group], after: list[Group]) -> None:
    """Compares every measure with what its noise was calibrated for."""
    left, right = {g.key: g for g in before}, {g.key: g for g in after}
    for place, noise in enumerate(plan.noises):
        draft = noise.of
        pairs = [
            (left[k].measures[place] if k in left else None, right[k].measures[place] if k in right else None)
            for k in left.keys() | right.keys()
        ]
        if isinstance(draft, Mode):
            changed = [draft.scores(b or {}) - draft.scores(a or {}) for a, b in pairs]
            assert sum(int(np.abs(change).max()) for change in changed) <= noise.times * noise.mechanism.sensitivity
            one_way = all(min((change > 0).sum(), (change < 0).sum()) == 0 for change in changed)
            assert one_way or plan.bounding.neighbours.changes > 1
            continue
        if isinstance(draft, Several):
            found = list(
                compare.list_moves(draft, noise, [(a or {}, b or {}) for a, b in pairs], plan.bounding.neighbours.changes)
            )
            assert [each for each in found if each.by > each.most] == []
            continue
        if isinstance(draft.measure, Bins):
            for mechanism, move in ((noise.mechanism, _score_move), (noise.width, _width_move)):
                assert sum(move(noise, a or {}, b or {}) for a, b in pairs) <= noise.times * mechanism.sensitivity
            continue
        changes = [abs(y - x) for a, b in pairs for x, y in zip(_cells(a, b), _cells(b, a), strict=True)]
        total, squares = sum(changes), sum(c * c for c in changes)
        assert total <= plan.bounding.total(draft.row, draft.cells, draft.signed)
        assert squares <= plan.bounding.squares(draft.row, draft.cells, draft.signed)  # whichever noise was chosen
        if isinstance(noise.mechanism, Gaussian):
            assert squares <= noise.mechanism.sensitivity.squares(None)
        else:
            assert total <= noise.mechanism.sensitivity.total(None)


def _cells(mine: Any, other: Any) -> tuple[int, ...]:
    if mine is None:
        return (0,) * len(other) if isinstance(other, tuple) else (0,)
    return mine if isinstance(mine, tuple) else (mine,)


def _score_move(noise: Any, a: Any, b: Any) -> int:
    places = np.arange(min(noise.of.grid.steps + 1, 5000))
    first, second = rank_scores(a, noise.of.p, places), rank_scores(b, noise.of.p, places)
    return int(np.abs(first - second).max())


def _width_move(noise: Any, a: Any, b: Any) -> int:
    """The largest move of a width's score, around values at the data and far from it."""
    steps, moved = noise.of.grid.steps, 0
    for value in {0, 1, steps // 2, steps, *a, *b}:
        slack = noise.of.slack(noise.width)
        scores = [width_runs(each, noise.of.p, value, steps, slack).scores.tolist() for each in (a, b)]
        moved = max(moved, *(abs(x - y) for x, y in zip(*scores, strict=True)))
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("aggregates", [MANY, SUMS], ids=["many", "sums"])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)], ids=["pure", "delta"])
@given(st.data())
@settings(max_examples=40)
def test_integers_move_by_at_most_the_claimed_sensitivity(neighbours: str, aggregates: Any, delta: Fraction, data: Any) -> None:
    keys = data.draw(st.sampled_from([(), ("region",), ("region", "age")] + ([("town",)] if delta else [])))
    plan = planned(
        query(*aggregates, keys=keys),
        1,
        delta,
        neighbours=neighbours,
        max_rows=data.draw(st.integers(1, 4)),
        max_groups=data.draw(st.integers(1, 3)),
    )
    others = [row for person in range(3) for row in data.draw(rows_of(person))]
    mine = data.draw(rows_of(77))
    instead = data.draw(rows_of(78)) if neighbours == "replace" else []
    moves(plan, run(plan, others + mine), run(plan, others + instead))


@given(st.data())
@settings(max_examples=40)
def test_rows_of_their_own_move_by_at_most_one_row(data: Any) -> None:
    plan = planned(query(*MANY, keys=("region",)), by_unit=False)
    others = [row for person in range(3) for row in data.draw(rows_of(person))]
    mine = data.draw(rows_of(77))[:1]
    moves(plan, run(plan, others + mine), run(plan, others))


def test_that_check_can_fail() -> None:
    """A plan for at most one row, on integers that were bounded to two."""
    honest, loose = (planned(query(ask("n", "count")), max_rows=m) for m in (1, 2))
    rows = [{"person": 7, "age": 1, "wage": 1.0, "region": "east", "town": "a"}] * 2
    with pytest.raises(AssertionError):
        moves(honest, run(loose, rows), run(loose, []))


def test_heavy_units_count_their_allowance_and_no_more() -> None:
    plan = planned(query(ask("n", "count"), ask("u", "count_units")), max_rows=3)
    rows = [{"person": p, "age": 1, "wage": 1.0, "region": "east", "town": "a"} for p in (1,) * 100 + (2,)]
    (group,) = run(plan, rows)
    assert group.measures == ((4,), (2,))
