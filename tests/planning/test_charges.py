"""The price a ledger is charged is that of the objects that draw, stated both ways."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.mechanisms import Exponential, Gaussian, Geometric
from dither.planning.plan import Plan
from dither.planning.program import charge, mechanisms
from dither.planning.releases.base import Noise
from dither.planning.releases.ranks import rank_scores, width_runs
from dither.privacy.losses import ZCDP, total
from dither.query.work import SCALE, Bins
from planning.hand import ask, planned, query

DELTA = Fraction(1, 10**6)
ASKED = [
    ask("n", "count"),
    ask("a", "avg", "wage"),
    ask("s", "sum", "age"),
    ask("m", "median", "age"),
    ask("v", "var_samp", "wage"),
]


@st.composite
def plans(draw: Any) -> Plan:
    chosen = draw(st.lists(st.sampled_from(ASKED), min_size=1, max_size=3, unique=True))
    keys = draw(st.sampled_from([(), ("region",), ("region", "age"), ("town",)]))
    # At a delta of a tenth one number gets Gaussian noise on its own curve.
    deltas = [DELTA, Fraction(1, 10)] if keys == ("town",) else [Fraction(0), DELTA, Fraction(1, 10)]
    delta = draw(st.sampled_from(deltas))
    epsilon = draw(st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2)]))
    return planned(
        query(*chosen, keys=keys),
        epsilon,
        delta,
        max_groups=draw(st.sampled_from([1, 3, 60])),
        neighbours=draw(st.sampled_from(["add-remove", "replace"])),
    )


def by_hand(plan: Plan) -> tuple[Fraction, Fraction]:
    """rho and slack added up by the formulas, without asking a loss."""
    rho, slack = Fraction(0), Fraction(0)
    for noise in plan.noises:
        mechanism = noise.mechanism
        if isinstance(mechanism, Gaussian):
            rho += mechanism.sensitivity.squares(None) / (2 * mechanism.variance)
        elif isinstance(mechanism, Exponential):
            parts = (mechanism.epsilon, noise.width.epsilon)  # type: ignore[attr-defined]
            rho += sum(noise.groups * (noise.steps * epsilon) ** 2 / 8 for epsilon in parts)
        else:
            moves = mechanism.sensitivity.separate(None)
            rho += mechanism.epsilon**2 / 2 / (moves[0] if moves else 1)
    if plan.threshold is not None:
        rho, slack = rho + plan.threshold.epsilon**2 / (2 * plan.threshold.keys_per_unit), plan.threshold.delta
    return rho, slack


@given(plans())
def test_both_prices_are_those_of_the_noise_that_is_drawn(plan: Plan) -> None:
    stated = charge([plan])
    assert (stated.epsilon, stated.delta) == plan.loss.pair()  # type: ignore[attr-defined]
    assert (stated.rho, stated.slack) == by_hand(plan)
    assert stated.epsilon <= plan.price.epsilon
    assert stated.delta <= plan.price.delta


@given(plans())
def test_all_gaussian_noise_of_a_plan_stays_within_its_price_together(plan: Plan) -> None:
    smooth = [noise.mechanism for noise in plan.noises if isinstance(noise.mechanism, Gaussian)]
    if smooth and len(smooth) == len(plan.noises) and plan.threshold is None:
        together = smooth[0].curve() if len(smooth) == 1 else total([each.vector() for each in smooth])
        assert together.delta(plan.price.epsilon) <= plan.price.delta


@given(plans())
def test_less_noise_would_be_seen_in_the_charge(plan: Plan) -> None:
    """The twin: the same plan with one mechanism exchanged for one of half the noise has another second price."""
    place = next((i for i, n in enumerate(plan.noises) if isinstance(n.mechanism, Geometric)), None)
    if place is None:
        return
    old = plan.noises[place].mechanism
    louder = replace(plan.noises[place], mechanism=Geometric(epsilon=old.epsilon * 2, sensitivity=old.sensitivity))  # type: ignore[union-attr]
    changed = replace(plan, noises=(*plan.noises[:place], louder, *plan.noises[place + 1 :]))
    assert changed.zcdp.rho > plan.zcdp.rho


@given(plans(), plans())
def test_plans_run_together_cost_the_sum(one: Plan, other: Plan) -> None:
    both, first, second = charge([one, other]), charge([one]), charge([other])
    assert both.epsilon == first.epsilon + second.epsilon
    assert both.delta == first.delta + second.delta
    assert both.slack == first.slack + second.slack
    assert both.rho == (first.rho or 0) + (second.rho or 0)


@given(plans())
def test_every_mechanism_has_a_record_it_can_be_told_by(plan: Plan) -> None:
    records = mechanisms([plan])
    assert len(records) == len(plan.noises) + (plan.threshold is not None)
    for noise, record in zip(plan.noises, records, strict=False):
        assert record["mechanism"] == noise.mechanism.tag
        assert (record["groups"], record["steps"]) == (noise.groups, noise.steps)
        if isinstance(noise.mechanism, Geometric):
            assert Fraction(record["epsilon"]) == noise.mechanism.epsilon
        if isinstance(noise.mechanism, Gaussian):
            assert Fraction(record["variance"]) == noise.mechanism.variance


def test_public_questions_cost_nothing() -> None:
    assert charge([]).epsilon == 0
    assert charge([]).rho == 0
    with pytest.raises(TypeError):
        charge([replace(planned(query(ask("n", "count"))), loss=ZCDP(1))])


# --- the price of a choice, held against the laws of two neighbouring tables ----------------------------------------------


def joint(noise: Noise, histogram: dict[int, int]) -> Any:
    """The probabilities of all pairs of a value and the width of its margin."""
    share, steps, slack = noise.of.p, noise.of.grid.steps, noise.of.slack(noise.width)  # type: ignore[attr-defined]
    values = chances(noise.mechanism, rank_scores(histogram, share, np.arange(steps + 1)))
    widths = (width_runs(histogram, share, value, steps, slack) for value in range(steps + 1))
    return np.concatenate([p * chances(noise.width, each.scores, each.counts) for p, each in zip(values, widths, strict=True)])  # type: ignore[attr-defined]


def chances(mechanism: Any, scores: Any, counts: Any = 1) -> Any:
    exponent = float(mechanism.epsilon) * scores.astype(float) / (2 * float(mechanism.sensitivity))
    weight = counts * np.exp(exponent - exponent.max())
    return weight / weight.sum()


def concentrated(noise: Noise, one: dict[int, int], other: dict[int, int]) -> float:
    """The largest D_a / a found between the two laws from which a quantile is chosen: no rho below it is a price."""
    if noise.of.p is None or not isinstance(noise.of.measure, Bins):
        raise TypeError("a quantile is asked")
    p, q = (joint(noise, histogram) for histogram in (one, other))
    orders = (1.001, 1.5, 2.0, 4.0, 16.0)
    return max(float(np.log((a**m * b ** (1 - m)).sum())) / (m - 1) / m for m in orders for a, b in ((p, q), (q, p)))


@st.composite
def replaced(draw: Any) -> tuple[Noise, dict[int, int], dict[int, int]]:
    """A quantile's noise, and the histograms of a group before and after one person in it is replaced."""
    which = draw(
        st.sampled_from([ask("m", "median", "age"), ask("t", "max", "age"), ask("q", "quantile", "age", Fraction(3, 10))])
    )
    plan = planned(query(which), Fraction(1, 10), DELTA, neighbours="replace")
    bins = plan.noises[0].of.measure.argument.steps  # type: ignore[union-attr]
    rest = draw(st.lists(st.sampled_from([0, bins // 2, bins]), max_size=4))
    made = []
    for mine in draw(st.tuples(st.sampled_from([0, bins // 2, bins]), st.sampled_from([0, bins // 2, bins]))):
        made.append({b: SCALE * [*rest, mine].count(b) for b in {*rest, mine}})
    return plan.noises[0], made[0], made[1]


@given(replaced())
def test_the_second_price_of_a_quantile_covers_a_person_replaced_within_a_group(case: Any) -> None:
    noise, one, other = case
    assert concentrated(noise, one, other) <= float(noise.loss.zcdp().rho)


@given(replaced())
def test_the_first_price_of_a_quantile_covers_its_value_and_its_margin_together(case: Any) -> None:
    noise, one, other = case
    p, q = joint(noise, one), joint(noise, other)
    seen = (p > 1e-250) & (q > 1e-250)
    assert float(np.abs(np.log(p[seen] / q[seen])).max()) <= float(noise.loss.epsilon()) * (1 + 1e-9) + 1e-9


def test_that_two_separate_draws_would_be_too_cheap_a_price() -> None:
    """Someone on the right is replaced by someone on the left, two in the middle: one draw moves by two steps."""
    noise = planned(query(ask("m", "median", "age")), Fraction(1, 10), DELTA, neighbours="replace").noises[0]
    bins = noise.of.measure.argument.steps  # type: ignore[union-attr]
    found = concentrated(noise, {0: SCALE, bins // 2: 2 * SCALE, bins: SCALE}, {0: 2 * SCALE, bins // 2: 2 * SCALE})
    separate = total([noise.mechanism.loss(), noise.width.loss()])  # type: ignore[attr-defined]
    assert found > float(separate.repeat(noise.times).zcdp().rho)


@pytest.mark.parametrize("delta", [Fraction(0), DELTA])
def test_who_counts_people_pays_for_one_each_however_many_rows_they_may_have(delta: Fraction) -> None:
    many, one = (planned(query(ask("c", "count_units")), 1, delta, max_rows=rows) for rows in (20, 1))
    assert many.noises[0].mechanism == one.noises[0].mechanism
    rows = planned(query(ask("n", "count")), 1, delta, max_rows=20)
    assert rows.noises[0].scale > 19 * one.noises[0].scale  # the twin: rows are counted as often as they may be there
