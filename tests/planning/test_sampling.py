"""Questions on a secret sample: the price by enumeration of all samples, margins by enumeration of all outcomes, identity."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.catalog.values import Rows as Public
from dither.exact.laws.base import Law
from dither.exact.laws.mixture import Mixture
from dither.mechanisms import Exponential, Geometric
from dither.mechanisms.sampled import amplified, before_sampling
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.records import identity
from dither.planning.releases.base import Linear, Noise
from dither.planning.releases.sampled import SampledMean, SampledSum, Spread
from dither.planning.releases.sums import Ratio
from dither.planning.sampling import on_sample
from dither.privacy.proof import verify
from laws.exactly import Claim
from planning.hand import ask, planned, query, run

Q = Fraction(1, 5)
PRICE = Price(Fraction(1, 2))
COUNT = query(ask("n", "count"))
Rows = list[dict[str, Any]]


def sampled(asked: Any, price: Price = PRICE, q: Fraction = Q, **more: Any) -> Plan:
    inside = Price(before_sampling(price.epsilon, q), price.delta / q)
    return on_sample(planned(asked, inside.epsilon, inside.delta, **more), price, q)


def person(number: int, rows: int = 1, age: int = 50) -> Rows:
    return [{"person": number, "age": age, "wage": 1.0, "region": "east", "town": "a"} for _ in range(rows)]


# --- the price, over all outcomes of the coins --------------------------------------------------------------------

Coins = Callable[[Sequence[Rows]], Iterator[tuple[Fraction, Rows]]]


def each_unit(units: Sequence[Rows]) -> Iterator[tuple[Fraction, Rows]]:
    """Every sample, and its probability: a coin for each unit."""
    for taken in itertools.product((True, False), repeat=len(units)):
        chance = math.prod((Q if coin else 1 - Q for coin in taken), start=Fraction(1))
        yield chance, [row for unit, coin in zip(units, taken, strict=True) if coin for row in unit]


def each_row(units: Sequence[Rows]) -> Iterator[tuple[Fraction, Rows]]:
    """The fault: a coin for each row."""
    return each_unit([[row] for unit in units for row in unit])


def law_of(plan: Plan, coins: Coins, units: Sequence[Rows]) -> Law:
    """The law of the released count: the noise's own law for every sample, mixed by the chances of the coins."""
    whole = replace(plan, work=replace(plan.work, sample=None))
    chances: dict[int, Fraction] = {}
    for chance, rows in coins(units):
        (group,) = run(whole, rows)
        exact = group.measures[0][0]
        chances[exact] = chances.get(exact, Fraction(0)) + chance
    (noise,) = plan.noises
    return Mixture(tuple(chances.values()), tuple(noise.mechanism.law(exact) for exact in chances))


UNITS = [person(1), person(2, rows=2), person(3, rows=5)]
PAIRS = [(tuple(UNITS[:n]), (*UNITS[:n], new)) for n in range(3) for new in (person(9), person(9, 2), person(9, 7))]


@pytest.mark.parametrize("max_rows", [1, 2])
def test_the_amplified_price_holds_for_every_pair_of_small_tables(max_rows: int) -> None:
    plan = sampled(COUNT, max_rows=max_rows)
    claim = Claim(plan.loss.epsilon(0), lambda units: law_of(plan, each_unit, units))
    proof = verify(claim, PAIRS)
    assert proof.holds
    assert float(proof.worst) == pytest.approx(0.5, rel=1e-4)  # so nothing is given away


@pytest.mark.parametrize("max_rows", [1, 2])
def test_a_price_ten_percent_too_small_is_refuted(max_rows: int) -> None:
    plan = sampled(COUNT, max_rows=max_rows)
    claim = Claim(plan.loss.epsilon(0) * Fraction(9, 10), lambda units: law_of(plan, each_unit, units))
    assert not verify(claim, PAIRS).holds


def test_coins_for_rows_instead_of_units_are_refuted() -> None:
    plan = sampled(COUNT)
    assert not verify(Claim(plan.loss.epsilon(0), lambda units: law_of(plan, each_row, units)), PAIRS).holds


@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "7/3", "20"])
@pytest.mark.parametrize("q", ["1/1000", "1/10", "1/2", "99/100"])
def test_the_noise_inside_is_covered_by_the_price_and_wastes_little(epsilon: str, q: str) -> None:
    price, share = Fraction(epsilon), Fraction(q)
    inside = before_sampling(price, share)
    assert amplified(inside, share) <= price
    assert amplified(inside * Fraction(10001, 10000), share) > price
    assert inside > price


@pytest.mark.parametrize("epsilon", [10**6, 10**6 + 1, 10**400])
def test_a_price_without_limit_is_its_own(epsilon: int) -> None:
    price, q = Fraction(epsilon), Fraction(1, 2)
    assert price <= before_sampling(price, q) <= price + 1
    assert amplified(before_sampling(price, q), q) <= price


def test_a_price_that_does_not_cover_the_noise_is_never_stated() -> None:
    made = planned(COUNT, before_sampling(PRICE.epsilon, Q))
    assert on_sample(made, PRICE, Q).loss == dt.Pure("1/2")
    with pytest.raises(ArithmeticError):
        on_sample(made, Price(Fraction(45, 100)), Q)
    with pytest.raises(ArithmeticError):
        on_sample(made, PRICE, Fraction(1, 4))


def test_all_releases_and_the_keys_are_amplified_together() -> None:
    asked = query(ask("n", "count"), ask("people", "count_units"), keys=("town",))
    price = Price(Fraction(1, 2), Fraction(1, 10**6))
    plan = sampled(asked, price)
    assert plan.loss == dt.Approx("1/2", "1e-6")
    assert plan.threshold is not None
    inside = planned(asked, before_sampling(price.epsilon, Q), price.delta / Q).loss
    epsilon, delta = inside.pair()
    assert amplified(epsilon, Q) <= price.epsilon
    assert delta * Q <= price.delta
    assert plan.zcdp.rho == planned(asked, before_sampling(price.epsilon, Q), price.delta / Q).zcdp.rho  # not amplified


def test_rho_is_that_of_the_pure_price_where_that_is_less() -> None:
    plan = sampled(COUNT)
    assert plan.zcdp.rho == Fraction(1, 8) < planned(COUNT, before_sampling(PRICE.epsilon, Q)).zcdp.rho


def test_only_units_that_are_added_or_removed_are_sampled() -> None:
    for more in ({"neighbours": "replace"}, {"by_unit": False}):
        with pytest.raises(TypeError):
            on_sample(planned(COUNT, 1, **more), PRICE, Q)


# --- margins, over all outcomes of coins and noise ------------------------------------------------------------------

CONFIDENCE = Fraction(19, 20)


def binomial(n: int, q: float) -> np.ndarray:
    k = np.arange(n + 1)
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)]
    return np.exp(np.array(logs) + k * math.log(q) + (n - k) * math.log1p(-q))


def geometric(noise: Noise, reach: int) -> np.ndarray:
    scale = noise.scale
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return law / law.sum()


def covered(plan: Plan, reading: Any, people: int, q: Fraction) -> float:
    """How often value ± margin holds the number of people, over all samples and all noise."""
    (noise,) = plan.noises
    reach = 40 * math.ceil(noise.scale)
    law = np.convolve(binomial(people, float(q)), geometric(noise, reach))
    cells = [np.arange(-reach, people + reach + 1)[:, None]]
    value = np.array(reading.values(plan.noises, cells), dtype=float)
    wide = np.array(reading.margins(plan.noises, cells, CONFIDENCE), dtype=float)
    return float(law[np.abs(value - people) <= wide].sum())


@pytest.mark.parametrize("people", [0, 1, 7, 40, 300, 3000])
@pytest.mark.parametrize("q", ["1/20", "1/3", "9/10"])
@pytest.mark.parametrize("epsilon", ["1/10", "5"])
def test_a_counts_margin_holds_the_whole_tables_count(people: int, q: str, epsilon: str) -> None:
    plan = sampled(COUNT, Price(Fraction(epsilon)), Fraction(q))
    assert covered(plan, plan.readings[0], people, Fraction(q)) >= CONFIDENCE


def test_a_margin_without_the_sampling_error_does_not_hold() -> None:
    """The twin: the noise alone, divided by q."""
    plan = sampled(COUNT, Price(Fraction(5)), Q)
    (reading,) = plan.readings
    assert isinstance(reading, SampledSum)
    inner = reading.inner(plan.noises)
    bare = replace(inner, terms=tuple(term._replace(weight=term.weight / Q) for term in inner.terms))
    assert covered(plan, bare, 300, Q) < 0.5


def test_a_spread_without_the_largest_share_of_one_unit_does_not_hold() -> None:
    """Ten units that add 100 each, or a thousand that add 1: the margin must allow for the former."""
    q, allowed = 0.2, Fraction(1, 20)

    def holds(spread: Spread) -> float:
        counts, law = np.arange(11) * 100.0, binomial(10, q)
        return float(law[(spread.lowest(counts) <= q * 1000) & (q * 1000 <= spread.highest(counts))].sum())

    assert holds(Spread.of(Fraction(1, 5), 100.0, allowed)) >= 0.95
    assert holds(Spread.of(Fraction(1, 5), 1.0, allowed)) < 0.9


@pytest.mark.parametrize(("low", "high"), [(3, 3), (0, 30), (200, 5), (150, 150)])
@pytest.mark.parametrize("q", ["1/10", "1/2"])
def test_a_means_margin_holds_the_whole_tables_mean(low: int, high: int, q: str) -> None:
    """The worst tables: everybody is at one of the bounds. The noise is negligible; all samples are gone through."""
    plan = sampled(query(ask("a", "avg", "wage")), Price(Fraction(1000)), Fraction(q))
    (reading,), steps = plan.readings, plan.noises[0].of.row
    a, b = np.meshgrid(np.arange(high + 1), np.arange(low + 1), indexing="ij")
    law = np.outer(binomial(high, float(Fraction(q))), binomial(low, float(Fraction(q)))).ravel()
    cells = np.stack([a.ravel(), b.ravel()], axis=1) * steps
    truth = -10 + 60 * high / (high + low)
    value = np.array(reading.values(plan.noises, [cells]))
    wide = np.array(reading.margins(plan.noises, [cells], CONFIDENCE), dtype=float)
    assert law[np.abs(value - truth) <= wide + 1e-9].sum() >= 0.95
    least, most = reading.bounds(plan.noises, [cells], CONFIDENCE)
    assert law[(least - 1e-9 <= truth) & (truth <= most + 1e-9)].sum() >= 0.95


def test_a_mean_with_the_margin_of_its_noise_does_not_hold() -> None:
    plan = sampled(query(ask("a", "avg", "wage")), Price(Fraction(1000)), Q)
    (reading,), steps = plan.readings, plan.noises[0].of.row
    assert isinstance(reading, SampledMean)
    law = np.outer(binomial(50, 0.2), binomial(50, 0.2)).ravel()
    a, b = np.meshgrid(np.arange(51), np.arange(51), indexing="ij")
    cells = np.stack([a.ravel(), b.ravel()], axis=1) * steps
    value = np.array(reading.of.values(plan.noises, [cells]))
    wide = np.array(reading.of.margins(plan.noises, [cells], CONFIDENCE), dtype=float)
    assert law[np.abs(value - 20) <= wide].sum() < 0.5


def test_estimates_are_divided_by_q_and_means_are_not() -> None:
    plan = sampled(query(ask("n", "count"), ask("s", "sum", "age"), ask("a", "avg", "age")))
    (noise,) = plan.noises
    cells = [np.array([[40 * noise.of.row // 4, 40 * noise.of.row * 3 // 4, 0]])]
    count, total, mean = (reading.values(plan.noises, cells)[0] for reading in plan.readings)
    assert (count, total, mean) == (200, 6000, 30.0)


def test_a_public_minimum_of_rows_says_nothing_about_a_sample() -> None:
    plan = sampled(query(ask("a", "avg", "wage")), rows=Public(at_least=100))
    (reading,) = plan.readings
    assert isinstance(reading, SampledMean)
    assert isinstance(reading.of, Ratio)
    assert reading.of.least == 1


def test_computed_numbers_have_margins_by_intervals_only() -> None:
    """Noise and sample are not independent across numbers: no law of weighted sums may be used."""
    plan = sampled(query(ask("n", "count"), ask("a", "avg", "age")))
    for reading in plan.readings:
        assert reading.linear(plan.noises) is None
        assert reading.quotient(plan.noises) is None
    assert not any(isinstance(reading, Linear) for reading in plan.readings)
    assert not any(isinstance(noise.mechanism, Exponential) for noise in plan.noises)
    assert isinstance(plan.noises[0].mechanism, Geometric)


# --- identity ---------------------------------------------------------------------------------------------------


def test_the_sample_is_part_of_the_identity() -> None:
    texts = [
        identity([made]).text for made in (planned(COUNT, PRICE.epsilon), sampled(COUNT), sampled(COUNT, q=Fraction(1, 4)))
    ]
    assert len(set(texts)) == 3
    assert '"sample"' not in texts[0]
    assert '"sample":{"is":"number","value":"1/5"}' in texts[1]
    assert identity([sampled(COUNT)]).text == texts[1]


def test_the_text_of_a_sampled_question_is_for_ever() -> None:
    file = Path(__file__).parent.parent / "golden" / "sampled_identity.txt"
    assert identity([sampled(COUNT)]).text + "\n" == file.read_text(encoding="utf-8")
