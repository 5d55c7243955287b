"""Laws that every mechanism keeps. They run over the registry, so a new mechanism is checked unasked."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from fractions import Fraction
from typing import Any

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import dither.mechanisms as package
from dither.errors import PriceError
from dither.exact.balls import ball, working
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.derived import Finite, Moved
from dither.exact.laws.geometric import Cut, TwoSided
from dither.exact.laws.mixture import Mixture
from dither.mechanisms import Example, Geometric, Mechanism, registry
from dither.privacy.losses import ZCDP, Approx, Loss, Pure
from dither.privacy.losses import total as together
from dither.privacy.proof import verify
from laws.exactly import BITS, Claim, renyi, spill, total, worst_ratio

EXAMPLES = [example for kind in registry() if kind.__module__.startswith("dither.") for example in kind.examples()]
NAMES = [f"{type(e.mechanism).__name__}-{i}" for i, e in enumerate(EXAMPLES)]
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
any_mechanism = st.sampled_from([example.mechanism for example in EXAMPLES])


def test_every_mechanism_is_in_the_registry_with_examples() -> None:
    shipped = {
        value
        for value in vars(package).values()
        if inspect.isclass(value) and issubclass(value, Mechanism) and value is not Mechanism
    }
    assert shipped <= set(registry())
    assert {type(example.mechanism) for example in EXAMPLES} == shipped


def sums_to_one(law: Law) -> bool:
    found = total(law)
    return found.contains(1) and found.rad() < arb(2) ** -200


@each_example
def test_the_law_sums_to_one(example: Example) -> None:
    assert all(sums_to_one(example.mechanism.law(x)) for x in (example.exact, *example.neighbours))


def test_that_check_sees_a_law_that_does_not() -> None:
    class Short(Cut):
        def pmf(self, k: int) -> arb:
            return super().pmf(k) * ball(Fraction(999, 1000))

    assert not sums_to_one(Short(3, 10))


def within_price(loss: Loss, x: Law, y: Law) -> bool:
    """Is no statement of the loss certainly broken between these two laws, in either direction?"""
    if isinstance(loss, Pure):
        with working(BITS):
            return not worst_ratio(x, y) > ball(loss.epsilon())
    if isinstance(loss, Approx):
        epsilon, delta = loss.pair()
        with working(BITS):
            return not any(spill(a, b, epsilon) > ball(delta) for a, b in ((x, y), (y, x)))
    assert isinstance(loss, ZCDP)
    orders = (Fraction(3, 2), Fraction(2), Fraction(5))
    with working(BITS):
        return not any(renyi(a, b, order) > ball(order * loss.rho) for order in orders for a, b in ((x, y), (y, x)))


@each_example
def test_neighbours_stay_within_the_price(example: Example) -> None:
    law = example.mechanism.law(example.exact)
    for neighbour in example.neighbours:
        assert within_price(example.mechanism.loss(), law, example.mechanism.law(neighbour))


@each_example
def test_the_verifier_agrees_for_pure_prices(example: Example) -> None:
    if isinstance(example.mechanism.loss(), Pure):
        assert verify(example.mechanism, [(example.exact, other) for other in example.neighbours]).holds


def test_both_checks_see_noise_ten_percent_short() -> None:
    planted = Claim(1, lambda x: Moved(TwoSided(Fraction(9, 10)), x))
    assert not within_price(planted.loss(), planted.law(0), planted.law(1))
    assert not verify(planted, [(0, 1)]).holds


def test_the_check_of_delta_and_of_rho_can_fail() -> None:
    x, y = Moved(TwoSided(1), 0), Moved(TwoSided(1), 1)
    exact_delta = spill(x, y, Fraction(1, 2))
    assert within_price(Approx("1/2", Fraction(float(exact_delta) * 1.01)), x, y)
    assert not within_price(Approx("1/2", Fraction(float(exact_delta) * 0.99)), x, y)
    assert not within_price(ZCDP("1/3"), x, y)


@settings(deadline=None)
@given(mechanism=any_mechanism, n=st.integers(1, 50))
def test_n_releases_cost_n_times_one(mechanism: Mechanism, n: int) -> None:
    assert together([mechanism.loss()] * n) == mechanism.loss().repeat(n)
    try:
        curve = mechanism.curve()
    except PriceError:
        assert isinstance(mechanism.loss(), ZCDP)
    else:
        assert together([curve] * n) == curve.repeat(n)


@settings(deadline=None)
@given(mechanism=any_mechanism)
def test_the_curve_of_a_pure_mechanism_never_exceeds_its_price(mechanism: Mechanism) -> None:
    loss = mechanism.loss()
    if isinstance(loss, Pure):
        assert mechanism.curve().epsilon(0) <= loss.epsilon()
        assert mechanism.curve().zcdp().rho == loss.zcdp().rho


def at_scale(mechanism: Any, scale: Fraction) -> Mechanism:
    """The same mechanism with this much noise; every parameter of with_scale has a field of its name."""
    names = [name for name in inspect.signature(mechanism.with_scale).parameters if name != "scale"]
    return mechanism.with_scale(scale, **{name: getattr(mechanism, name) for name in names})


SCALED = [e for e in EXAMPLES if hasattr(e.mechanism, "with_scale") and getattr(e.mechanism, "scale", None) is not None]


@pytest.mark.parametrize("example", SCALED, ids=[type(e.mechanism).__name__ for e in SCALED])
def test_more_noise_never_costs_more(example: Example) -> None:
    mechanism = example.mechanism
    price = [at_scale(mechanism, mechanism.scale * factor).loss().zcdp().rho for factor in (1, Fraction(11, 10), 3, 100)]
    assert price == sorted(price, reverse=True)
    assert price[0] > price[1]


@pytest.mark.parametrize("example", SCALED, ids=[type(e.mechanism).__name__ for e in SCALED])
def test_price_to_noise_and_back(example: Example) -> None:
    again = at_scale(example.mechanism, example.mechanism.scale)
    assert again == example.mechanism
    assert again.loss() == example.mechanism.loss()


@each_example
def test_a_release_is_a_value_of_the_law(example: Example) -> None:
    mechanism, law = example.mechanism, example.mechanism.law(example.exact)
    first, last = law.span()
    for _ in range(5):
        released = mechanism.release(example.exact)
        if first is None or last is None:
            steps = released / mechanism.outcome(1)
            assert steps == int(steps)
            assert mechanism.outcome(int(steps)) == released
        else:
            possible = [mechanism.outcome(k) for k in range(first, last + 1) if not law.pmf(k).is_zero()]
            assert released in possible


@each_example
def test_records_round_trip(example: Example) -> None:
    mechanism = example.mechanism
    names = {"Fraction": Fraction, **vars(package)}
    for again in (dataclasses.replace(mechanism), eval(repr(mechanism), names), pickle.loads(pickle.dumps(mechanism))):
        assert again == mechanism
        assert hash(again) == hash(mechanism)
        assert again.loss() == mechanism.loss()


@each_example
def test_records_are_frozen(example: Example) -> None:
    field = dataclasses.fields(example.mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(example.mechanism, field, 0)


def covered(law: Law, centre: int, m: int) -> arb:
    with working(BITS):
        return 1 - law.more_than(centre + m) - law.at_most(centre - m - 1)


@each_example
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_a_margin_of_noise_holds_and_is_the_smallest(example: Example, confidence: str) -> None:
    law = example.mechanism.law(example.exact)
    if law.span() != (None, None):
        return  # their margins mean something else, and are checked in their own files
    if isinstance(law, Mixture):
        return  # the margin is that of the mechanism inside, which is checked here as well
    assert isinstance(law, Moved)
    m = example.mechanism.margin(confidence) / example.mechanism.outcome(1)
    assert m == int(m)
    with working(BITS):
        wanted = ball(Fraction(confidence))
        assert covered(law, law.by, int(m)) >= wanted
        assert m == 0 or covered(law, law.by, int(m) - 1) < wanted


def test_that_a_margin_one_short_is_seen() -> None:
    noise = Geometric(epsilon=1, sensitivity=1)
    assert covered(noise.law(0), 0, noise.margin("0.95") - 1) < arb("0.95")


def test_a_table_with_an_impossible_value_is_not_within_any_price() -> None:
    sure = Finite((lambda: arb(1), lambda: arb(0)))
    assert not within_price(Pure(100), sure, Categorical((0, 0)))
