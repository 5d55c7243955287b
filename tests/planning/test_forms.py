"""Differences, weighted sums and quotients have margins from the joint law of their noise: against its exact convolution."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.planning import forms, margins, outputs
from dither.planning.outputs import Computed, Noisy, release, table
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise, noise_reach
from dither.query.nodes import Aggregate, Call, Column, Expression, Literal, Named
from planning.hand import ask, planned, query, run
from planning.test_margins import SURE, people
from planning.test_small_groups import EAST, NORTH


def minus(a: Expression, b: Expression) -> Call:
    return Call("sub", (a, b))


def times(weight: int, a: Expression) -> Call:
    return Call("mul", (Literal(weight), a))


def computed(expression: Expression, *aggregates: Aggregate, epsilon: Any = 1, **more: Any) -> tuple[Plan, Computed]:
    plan = planned(replace(query(*aggregates), outputs=(Named("z", expression),)), epsilon, **more)
    (output,) = outputs.outputs(plan)
    assert isinstance(output, Computed)
    return plan, output


def stated(plan: Plan, rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Returns a value and its margin."""
    noisy = release(plan, run(plan, rows))
    finished = table(plan, noisy)
    (wide,) = outputs.margins(plan, noisy, finished, SURE)["z"]
    assert wide is not None
    return float(finished.rows[0][0]), wide  # type: ignore[arg-type]


def convolved(noises: list[tuple[Noise, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the values and probabilities of a weighted sum of noise."""
    law, size = np.ones(1), 0
    for noise, weight in noises:
        reach = math.ceil(noise.scale * 20)
        k = np.arange(-reach, reach + 1)
        each = np.zeros(2 * reach * abs(weight) + 1)
        each[:: abs(weight)] = np.exp(-np.abs(k) / noise.scale) / np.exp(-np.abs(k) / noise.scale).sum()
        law, size = np.convolve(law, each), size + reach * abs(weight)
    return np.arange(-size, size + 1), law


# Two releases: an OR is not proved disjoint, so the counts are no partition.
COUNTS = (Aggregate("a", "count", None, where=NORTH), Aggregate("b", "count", None, where=Call("or", (EAST, EAST))))


@pytest.mark.parametrize(("left", "right"), [(1, 1), (2, 3), (1, 10), (5, 0)])
def test_weighted_sums_reach_as_far_as_their_exact_law(left: int, right: int) -> None:
    plan, output = computed(minus(times(left, Column("a")), times(right, Column("b"))), *COUNTS)
    wide, form = stated(plan, people(50))[1], output.form(plan)
    assert form is not None
    assert sorted(abs(term.weight) for term in form.total.terms) == sorted(weight for weight in (left, right) if weight)
    values, law = convolved([(plan.noises[term.noise], int(term.weight)) for term in form.total.terms])
    smallest = min(reach for reach in range(10**4) if law[np.abs(values) <= reach].sum() >= SURE)
    assert smallest <= wide <= 1.02 * smallest + left + right  # one step for each variable: rounding of Laplace


def test_that_the_sum_of_intervals_is_wider() -> None:
    plan, _ = computed(minus(Column("a"), Column("b")), *COUNTS, epsilon=Fraction(1, 10))
    each = sum(float(reading.margins(plan.noises, [np.zeros((1, 2))], 1 - (1 - SURE) / 2)[0] or 0) for reading in plan.readings)
    assert stated(plan, people(50))[1] < 0.75 * each


def test_a_difference_of_counts_has_the_noise_of_the_null_cell() -> None:
    """COUNT(*) - COUNT(age), beside a mean: three cells of one release, and the difference is the third."""
    aggregates = (ask("n", "count"), ask("k", "count", "age"), ask("a", "avg", "age"))
    plan, output = computed(minus(Column("n"), Column("k")), *aggregates)
    form = output.form(plan)
    assert form is not None
    assert [(term.cell, term.weight) for term in form.total.terms] == [(2, Fraction(1, 120))]
    alone = float(plan.noises[0].mechanism.margin(SURE)) / 120
    value, wide = stated(plan, people(500))
    assert alone <= wide <= alone + 1  # the two counts are rounded before they are subtracted
    assert abs(value - 50) <= 20
    assert wide == outputs.predicted_margins(plan, None, SURE)["z"]


@pytest.mark.parametrize(
    ("expression", "aggregates"),
    [
        (minus(Column("a"), Column("b")), COUNTS),
        (minus(times(2, Column("a")), times(3, Column("b"))), COUNTS),
        (minus(Column("s"), times(7, Column("n"))), (ask("s", "sum", "age"), ask("n", "count"))),
        (Call("neg", (Call("div", (Column("a"), Literal(4))),)), COUNTS),
        (Call("add", (Column("a"), Literal(17))), COUNTS),
    ],
)
def test_the_quote_predicts_what_the_answer_states(expression: Expression, aggregates: tuple[Aggregate, ...]) -> None:
    plan, _ = computed(expression, *aggregates)
    assert {stated(plan, people(size))[1] for size in (0, 3, 500)} == {outputs.predicted_margins(plan, None, SURE)["z"]}


def test_a_difference_of_means_is_tighter_than_its_two_intervals() -> None:
    one, other = Aggregate("a", "avg", Column("age"), where=NORTH), Aggregate("b", "avg", Column("age"), where=EAST)
    plan, _ = computed(minus(Column("a"), Column("b")), one, other)
    rows = [{**row, "region": "north" if i % 2 else "east"} for i, row in enumerate(people(4000))]
    noisy = release(plan, run(plan, rows))
    (wide,) = outputs.margins(plan, noisy, table(plan, noisy), SURE)["z"]
    each = 1 - (1 - SURE) / 2
    ends = [reading.bounds(plan.noises, noisy.cells, each) for reading in plan.readings]
    apart = sum(float(high[0] - low[0]) / 2 for low, high in ends)
    assert wide is not None
    assert wide < 0.72 * apart


def test_quotients_with_one_divisor_are_one() -> None:
    """a / n - b / n is (a - b) / n, and 1 - a / n has the noise of a / n."""
    n = Column("n")
    plan, output = computed(minus(Call("div", (Column("a"), n)), Call("div", (Column("b"), n))), *COUNTS, ask("n", "count"))
    form = output.form(plan)
    assert form is not None
    assert form.alone
    assert len(form.quotients[0][1].places) == 3


def test_public_limits_of_quotients() -> None:
    share, output = computed(Call("div", (Column("a"), Column("n"))), *COUNTS[:1], ask("n", "count"), one_row=True)
    mean, over = computed(Call("div", (Column("s"), Column("n"))), ask("s", "sum", "age"), ask("n", "count"))
    heavy, several = computed(Call("div", (Column("a"), Column("n"))), *COUNTS[:1], ask("n", "count"), max_rows=2)
    beside = (*COUNTS[:1], ask("n", "count"), ask("m", "avg", "age"))
    joint, three = computed(Call("div", (Column("a"), Column("n"))), *beside, max_rows=2)
    free, any_ = computed(Call("div", (Column("a"), Column("b"))), *COUNTS)
    asked = ((share, output), (mean, over), (heavy, several), (joint, three), (free, any_))
    found = [each.form(plan).quotients[0][1].limits(plan.noises, True) for plan, each in asked]  # type: ignore[union-attr]
    assert found == [(0, 1), (0, 120), (0, 1), (0, Fraction(61440, 61437)), None]  # each of three cells is rounded down


def test_nullif_of_a_divisor_is_the_divisor() -> None:
    below = Call("nullif", (Column("n"), Literal(0)))
    plan, output = computed(Call("div", (Column("a"), below)), *COUNTS[:1], ask("n", "count"))
    plain, other = computed(Call("div", (Column("a"), Column("n"))), *COUNTS[:1], ask("n", "count"), one_row=True)
    assert output.form(plan) == other.form(plain)


def test_products_keep_their_intervals() -> None:
    plan, output = computed(Call("mul", (Column("a"), Column("b"))), *COUNTS)
    assert output.form(plan) is None
    assert stated(plan, people(50))[1] > 0


def test_a_divisor_is_not_zero_where_there_is_a_quotient() -> None:
    """STDDEV(x) / SQRT(COUNT(*)) has a margin even where the group may be empty: at least one row, if it is not NULL."""
    below = Call("sqrt", (Column("n"),))
    plan, _ = computed(Call("div", (Column("v"), below)), ask("v", "stddev_pop", "age"), ask("n", "count"))
    noisy = Noisy(((),), tuple(np.ones((1, noise.of.cells), dtype=np.int64) * noise.of.row for noise in plan.noises))
    (wide,) = outputs.margins(plan, noisy, table(plan, noisy), SURE)["z"]
    assert wide is not None
    assert 0 < wide <= 60


@pytest.mark.parametrize("gaussian", [False, True])
def test_many_sums_at_once_reach_as_far_as_one(gaussian: bool) -> None:
    law = margins.normal if gaussian else margins.laplace
    for scales in [(1.0,), (1.0, 1.0), (3.0, 1.0, 0.0), (1.0, 2.0, 3.0, 4.0), (1.0,) * 8]:
        (found,) = margins.reach(np.array(scales)[:, None], 0.95, gaussian)
        assert found == pytest.approx(law(scales, 0.95), rel=1e-6)


def test_the_interval_of_a_quotient_is_its_definition() -> None:
    """Every r inside is possible, and none outside: by the reach of N - r D, one r at a time."""
    plan, output = computed(Call("div", (Column("a"), Column("n"))), *COUNTS[:1], ask("n", "count"), one_row=True)
    form = output.form(plan)
    assert isinstance(form, forms.Form)
    one = form.quotients[0][1]
    noisy = [np.array([[37, 64]])]  # those of the north, and others
    low, high = one.interval(plan.noises, True, noisy, SURE)
    above, below = (float(part.estimate(noisy)[0]) for part in (one.above, one.below))

    def possible(r: Fraction) -> bool:
        off = one.above + one.below * -r
        return abs(above - float(r) * below) <= noise_reach(off.terms, plan.noises, SURE)

    inside = [Fraction(float(low[0])) + Fraction(i, 50) * Fraction(float(high[0] - low[0])) for i in range(1, 50)]
    assert all(possible(r) for r in inside)
    assert not any(
        possible(r) for r in (Fraction(float(low[0])) * Fraction(99, 100), Fraction(float(high[0])) * Fraction(101, 100))
    )


def test_sums_on_a_decimal_step_are_decimals() -> None:
    rows = {"x": [round(0.01 * i, 2) for i in range(400)]}
    catalog = dt.Catalog({"t": dt.Table(rows, unit="row", columns={"x": dt.between(0, 10, step="0.01")})}, dt.Budget(10**4))
    with dt.open(catalog, ledger=":memory:") as survey:
        for question in ("SELECT SUM(x) AS s FROM t", "SELECT SUM(x) AS s, COUNT(*) AS n FROM t"):
            for epsilon in ("0.9", "1.1", "1.3", 2, 3):
                answer = survey.ask(question, epsilon=epsilon)
                text = str(answer["s"][0])
                assert len(text.partition(".")[2]) <= 2, text
