"""Margins are honest: at least the stated confidence, and not much more where the law is known exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from distribution.allowance import share
from dither.catalog.values import Rows
from dither.errors import QueryError
from dither.exact.numbers import show_percent
from dither.planning import margins
from dither.planning.outputs import Noisy, explain, release, table
from dither.planning.outputs import margins as cell_margins
from dither.planning.plan import Plan
from dither.planning.releases.base import Linear
from dither.planning.releases.quantile import usable_share
from dither.query.nodes import Call, Column, Literal, Named
from planning.hand import ask, planned, query, run

TIMES = 4000
SURE = Fraction(19, 20)
TESTS = 40  # sampled checks in this file, which share its allowance


def fewest(times: int) -> float:
    """A coverage that 19/20 falls below with no more than the allowed probability."""
    return float(binom.ppf(share("other", TESTS), times, 0.95)) / times


def coverage(plan: Plan, exact: tuple[Any, ...], name: str, truth: float) -> tuple[float, float]:
    """How often value ± margin holds the truth, over many releases of the same integers, and the mean margin."""
    groups = [exact] * TIMES
    cells = [noise.release([g[i] for g in groups]) for i, noise in enumerate(plan.noises)]
    reading = plan.reading(name)
    assert reading is not None
    values = np.array(reading.values(plan.noises, cells), dtype=float)
    stated = reading.margins(plan.noises, cells, SURE)
    wide = np.array([math.inf if margin is None else margin for margin in stated])  # nothing said is nothing wrong
    return float(np.mean(np.abs(values - truth) <= wide)), float(np.mean(wide))


def people(n: int) -> list[dict[str, Any]]:
    return [
        {"person": i, "age": None if i % 10 == 0 else 20 + i % 60, "wage": float(i % 40), "region": "east", "town": "a"}
        for i in range(n)
    ]


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**5)], ids=["geometric", "gaussian"])
@pytest.mark.parametrize("size", [30, 2000])
def test_coverage_is_at_least_what_is_stated(size: int, delta: Fraction) -> None:
    aggregates = (
        ask("n", "count"),
        ask("na", "count", "age"),
        ask("s", "sum", "age"),
        ask("a", "avg", "age"),
        ask("v", "var_pop", "age"),
        ask("vs", "var_samp", "age"),
        ask("sd", "stddev_samp", "age"),
        ask("d", "count_distinct", "age"),
    )
    # Many groups per person make Gaussian noise the better choice.
    more = {"max_groups": 40, "max_rows": 1} if delta else {}
    plan = planned(query(*aggregates, keys=("region", "age") if delta else ()), 4, delta, **more)
    assert all(noise.gaussian for noise in plan.noises) == bool(delta)
    free = planned(query(*aggregates), 4)
    rows = people(size)
    (group,) = run(free, rows)
    ages = [row["age"] for row in rows if row["age"] is not None]
    mean = sum(ages) / len(ages)
    square = sum((age - mean) ** 2 for age in ages)
    truth = {"n": size, "na": len(ages), "s": sum(ages), "a": mean, "v": square / len(ages), "vs": square / (len(ages) - 1)}
    truth |= {"sd": math.sqrt(truth["vs"]), "d": len(set(ages))}
    for name, expected in truth.items():
        held, _ = coverage(plan, group.measures, name, expected)
        assert held >= fewest(TIMES), name


def test_margins_of_counts_and_sums_are_tight() -> None:
    plan = planned(query(ask("n", "count"), ask("s", "sum", "age")))
    (group,) = run(plan, people(500))
    ages = [row["age"] for row in people(500) if row["age"] is not None]
    most = float(SURE) + 7 * math.sqrt(0.05 * 0.95 / TIMES)
    assert coverage(plan, group.measures, "s", sum(ages))[0] <= most + 0.005
    assert coverage(plan, group.measures, "n", 500)[0] <= most + 0.03  # whole numbers: the margin is a whole number too


@pytest.mark.parametrize(("middle", "deviation"), [(40, 12), (30, 13), (60, 20), (80, 12)])
def test_the_margin_of_a_spread_is_not_wider_than_its_quote(middle: int, deviation: int) -> None:
    """Ages up to 120, at a third or so of the range, with a tenth of it or more as standard deviation."""
    plan = planned(query(ask("s", "stddev_samp", "age"), ask("v", "var_pop", "age")))
    bell = [round(middle + deviation * NormalDist().inv_cdf((i + 0.5) / 2000)) for i in range(2000)]
    rows = [{**row, "age": age} for row, age in zip(people(2000), bell, strict=True)]
    (group,) = run(plan, rows)
    for name, truth in (("s", float(np.std(bell, ddof=1))), ("v", float(np.var(bell)))):
        held, wide = coverage(plan, group.measures, name, truth)
        assert held >= fewest(TIMES)
        reading = plan.reading(name)
        assert reading is not None
        assert wide <= 1.05 * (reading.predicted(plan.noises, 2000, SURE) or 0)


def test_that_check_can_fail() -> None:
    plan, thrifty = planned(query(ask("a", "avg", "age"))), planned(query(ask("a", "avg", "age")), Fraction(1, 2))
    (group,) = run(plan, people(500))
    ages = [row["age"] for row in people(500) if row["age"] is not None]
    cells = [thrifty.noises[0].release([group.measures[0]] * TIMES)]
    values = np.array(plan.readings[0].values(plan.noises, cells), dtype=float)
    wide = np.array(plan.readings[0].margins(plan.noises, cells, SURE), dtype=float)
    assert np.mean(np.abs(values - sum(ages) / len(ages)) <= wide) < 0.9


def test_quantile_ranks_hold() -> None:
    plan = planned(query(ask("m", "median", "age")), 2)
    rows = people(300)
    (group,) = run(plan, rows)
    chosen = plan.readings[0].values(plan.noises, [plan.noises[0].release([group.measures[0]] * 500)])
    rank = plan.readings[0].rank(plan.noises, SURE)
    ages = sorted(row["age"] for row in rows if row["age"] is not None)

    def off(value: float) -> float:
        below, upto = sum(a < value for a in ages), sum(a <= value for a in ages)
        return max(0.0, below - len(ages) / 2, len(ages) / 2 - upto)

    assert np.mean([off(v) <= rank for v in chosen]) >= fewest(500)


def test_the_law_of_sums_is_the_closed_form() -> None:
    for count in (1, 2, 3, 5, 9):
        found = margins.laplace((1.0,) * count, 0.95)
        draws = np.random.default_rng(count).laplace(size=(200_000, count)).sum(axis=1)
        beyond = float(np.mean(np.abs(draws) > found))
        assert beyond <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200_000)
        assert beyond >= (0.044 if count <= 5 else 0.005)


def test_pairs_agree_with_the_law_of_sums() -> None:
    small = np.array([0.0, 1e-9, 0.1, 0.5, 0.999, 1.0])
    found = margins.two(np.ones(6), small, 0.9, False)
    for b, reach in zip(small.tolist(), found.tolist(), strict=True):
        assert reach == pytest.approx(margins.laplace((1.0, b), 0.9), rel=2e-3)


def test_nothing_is_undefined_in_empty_groups() -> None:
    aggregates = (ask("n", "count"), ask("a", "avg", "age"), ask("v", "var_samp", "age"), ask("m", "median", "age"))
    plan = planned(query(*aggregates, keys=("region",)), Fraction(1, 10))
    noisy = release(plan, [])
    finished = table(plan, noisy)
    assert [row[0] for row in finished.rows] == ["east", "north", "south"]
    assert all(math.isfinite(float(v)) for row in finished.rows for v in row[1:])
    for column in cell_margins(plan, noisy, finished, SURE).values():
        assert all(m is None or math.isfinite(m) for m in column)


def test_counts_may_be_negative() -> None:
    plan = planned(query(ask("n", "count"), keys=("region",)), Fraction(1, 100))
    assert any(v < 0 for _ in range(40) for _, v in table(plan, release(plan, [])).rows)


def test_a_public_number_of_rows_is_not_released_and_halves_the_noise() -> None:
    asked = query(ask("n", "count"), ask("a", "avg", "wage"))
    plan = planned(asked, neighbours="replace", rows=Rows(public=1000))
    (n, a) = table(plan, Noisy(((),), tuple(noise.release([(0,)]) for noise in plan.noises))).rows[0]
    assert n == 1000
    assert -11 < float(a) < -9  # type: ignore[arg-type]
    noise = plan.noises[0]
    assert noise.mechanism.sensitivity.total(None) == noise.of.row  # one value on its grid, once
    assert planned(query(ask("n", "count")), neighbours="replace", rows=Rows(public=1000)).loss.epsilon() == 0


def test_a_public_minimum_keeps_small_noisy_counts_from_spoiling_a_mean() -> None:
    plan = planned(query(ask("a", "avg", "wage")), rows=Rows(at_least=100))
    steps = plan.noises[0].of.row
    cells = [np.array([[steps * 3, steps * 2]])]  # a noisy count of 5, where 100 are public
    assert plan.readings[0].values(plan.noises, cells) == [pytest.approx(20 + 60 / (2 * 100))]


# --- the grid, and what is computed from several numbers -----------------------------------------------------------


def test_the_grid_is_part_of_the_margin() -> None:
    """Values that all lie a third of a step above the grid: without noise to speak of, the rounding is what is left."""
    rows = [{**row, "wage": 1 / 3 * 2**-16 + i % 7} for i, row in enumerate(people(400))]
    plan = planned(query(ask("n", "count"), ask("s", "sum", "wage"), ask("a", "avg", "wage")), 10**6)
    assert plan.noises[0].of.measure.cells[0].argument.step == 2**-16  # type: ignore[union-attr, index]
    noisy = release(plan, run(plan, rows))
    finished = table(plan, noisy)
    wide = cell_margins(plan, noisy, finished, SURE)
    total = math.fsum(row["wage"] for row in rows)
    (_, s, a) = finished.rows[0]
    assert 0 < abs(float(s) - total) <= wide["s"][0]  # type: ignore[arg-type, operator]
    assert 0 < abs(float(a) - total / 400) <= wide["a"][0]  # type: ignore[arg-type, operator]
    assert wide["s"][0] == pytest.approx(400 * 2**-17, rel=0.5)


def test_a_margin_that_also_counts_rows_keeps_part_of_the_doubt_for_them() -> None:
    """Where the noisy number of rows is far below zero the grid's part is nothing, and the noise's part is left: it may be
    wrong a little less often than is stated, because the rows may be wrong too."""
    plan = planned(query(ask("n", "count"), ask("s", "sum", "wage")))
    reading = plan.reading("s")
    assert isinstance(reading, Linear)
    none = [np.full((1, noise.of.cells), -(10**9) * noise.of.row) for noise in plan.noises]
    (wide,) = reading.margins(plan.noises, none, SURE)
    assert wide == reading.half(plan.noises, 1 - (1 - SURE) * Fraction(63, 64)) > reading.half(plan.noises, SURE)


def test_a_sum_without_a_count_says_what_the_grid_may_do() -> None:
    assert any("for each row" in text for text in planned(query(ask("s", "sum", "wage"))).margin_notes)
    assert not any("for each row" in text for text in planned(query(ask("s", "sum", "age"))).margin_notes)


def _computed(text: str, epsilon: int = 1) -> tuple[Plan, int]:
    made = {"share": Call("div", (Column("s"), Column("n"))), "percent": Call("mul", (Literal(100), Column("a")))}
    asked = query(ask("n", "count"), ask("s", "sum", "age"), ask("a", "avg", "age"))
    outputs = tuple(Named(name, made[name]) for name in text.split())
    return planned(replace(asked, outputs=outputs), epsilon), len(outputs)


def test_computed_numbers_have_margins_that_hold() -> None:
    plan, _ = _computed("share percent")
    rows = people(600)
    groups = run(plan, rows)
    ages = [row["age"] for row in rows if row["age"] is not None]
    truth = {"share": sum(ages) / len(rows), "percent": 100 * sum(ages) / len(ages)}
    held = {"share": 0, "percent": 0}
    for _ in range(400):
        noisy = release(plan, groups)
        finished = table(plan, noisy)
        wide = cell_margins(plan, noisy, finished, SURE)
        for (name, expected), value in zip(truth.items(), finished.rows[0], strict=True):
            held[name] += abs(float(value) - expected) <= wide[name][0]  # type: ignore[arg-type, operator]
    assert all(count / 400 >= fewest(400) for count in held.values())


def test_a_multiple_has_the_margin_of_what_it_is_a_multiple_of() -> None:
    plan, _ = _computed("percent")
    noisy = release(plan, run(plan, people(600)))
    finished = table(plan, noisy)
    reading = plan.reading("a")
    assert reading is not None
    low, high = (float(end[0]) for end in reading.bounds(plan.noises, noisy.cells, SURE))
    value = float(finished.rows[0][0])  # type: ignore[arg-type]
    assert cell_margins(plan, noisy, finished, SURE)["percent"][0] == pytest.approx(max(100 * high - value, value - 100 * low))


def test_a_divisor_that_may_be_zero_leaves_the_public_limits() -> None:
    """Ages lie between 0 and 120, so SUM(age) / COUNT(*) does too, wherever it is a number."""
    plan, _ = _computed("share")
    (group,) = run(plan, people(2))
    noisy = Noisy(((),), tuple(np.array([found]) for found in group.measures))  # as it may come out; large noise would not do
    finished = table(plan, noisy)
    value = float(finished.rows[0][0])  # type: ignore[arg-type]
    assert cell_margins(plan, noisy, finished, SURE)["share"] == [pytest.approx(max(value, 120 - value))]


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(-1, 2), None])
def test_shares_of_quantiles_lie_between_0_and_1(p: Fraction | None) -> None:
    with pytest.raises(QueryError, match="between 0 and 1"):
        planned(query(ask("q", "quantile", "age", p)))


def test_a_quantile_that_was_moved_says_so() -> None:
    plan = planned(query(ask("q", "quantile", "age", Fraction(1, 10**5)), ask("m", "median", "age"), ask("top", "max", "age")))
    assert [reading.notes[:1] for reading in plan.readings] == [("the 0.1 % quantile",), (), ("the 99 % quantile",)]
    assert "QUANTILE(age, 1e-05), as the 0.1 % quantile," in explain(plan, SURE)


@pytest.mark.parametrize("p", [Fraction("0.3333333333333333"), Fraction(1 / 3), Fraction("0.123456789012345678")])
def test_a_share_of_many_digits_is_rounded_and_not_drowned(p: Fraction) -> None:
    """Its denominator would push all scores beyond 64 bits, and the choice of a bin would be a die's."""
    plan = planned(query(ask("q", "quantile", "age", p)), 10)
    rows = [{"person": i, "age": i % 101, "wage": 0.0, "region": "north", "town": "a"} for i in range(1010)]
    groups = run(plan, rows)
    chosen = [float(str(table(plan, release(plan, groups)).rows[0][0])) for _ in range(20)]
    assert all(abs(value - 100 * float(p)) <= 5 for value in chosen)
    assert f"as the {show_percent(p.limit_denominator(1000))} quantile," in explain(plan, SURE)
    assert plan.readings[0].notes[0] == f"the {show_percent(usable_share(p))} quantile"


@pytest.mark.parametrize("scale", [0.05, 1e-3, 1e-6])
def test_sums_of_many_cells_with_little_noise_have_margins_without_a_warning(scale: float) -> None:
    """e^a is beyond doubles there, and q below them: numpy warns where they are multiplied, and warnings are errors here."""
    weights = np.array([1.0, 0.5, *[1 / 12] * 12])
    wide = margins.many(weights, np.full(14, scale), 0.95, False)
    rng = np.random.default_rng(15)
    drawn = rng.geometric(-np.expm1(-1 / scale), (2, 100_000, 14))
    off = np.abs((drawn[0] - drawn[1]) @ weights)
    assert np.quantile(off, 0.95) <= wide <= 10 * scale
    assert wide == pytest.approx(margins.many(weights[::-1], np.full(14, scale), 0.95, False))
