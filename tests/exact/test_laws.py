"""Every law's probabilities are one law: they add up, agree with each other and with their logarithms."""

from __future__ import annotations

import gc
import pickle
import weakref
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact import balls, laws
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Coin, ExpCoin, Flat
from dither.exact.laws.derived import Clamped, Finite, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from exact.registry import EXAMPLES, middle, width

any_law = st.sampled_from(EXAMPLES)
steps = st.fractions(min_value=-3, max_value=3)


def value(law: Law, where: Fraction) -> int:
    return middle(law) + int(where * width(law))


def same(x: arb, y: arb, bits: int = 100) -> bool:
    """Do the balls overlap, and are they small enough for that to mean something?"""
    return bool(x.overlaps(y)) and bool((x - y).rad() < arb(2) ** -bits * (1 + abs(y)))


@given(law=any_law, where=steps)
def test_at_most_and_more_than_add_up_to_one(law: Law, where: Fraction) -> None:
    with balls.working(200):
        k = value(law, where)
        assert same(law.at_most(k) + law.more_than(k), arb(1))


@given(law=any_law, where=steps)
def test_the_distribution_function_rises_by_the_probability(law: Law, where: Fraction) -> None:
    with balls.working(400):
        k = value(law, where)
        assert same(law.at_most(k) - law.at_most(k - 1), law.pmf(k))
        assert same(law.more_than(k - 1) - law.more_than(k), law.pmf(k))


@given(law=any_law, where=steps)
def test_pieces_are_the_logarithm_of_the_probability(law: Law, where: Fraction) -> None:
    with balls.working(200):
        k = value(law, where)
        here = [p for p in law.pieces() if (p.first is None or p.first <= k) and (p.last is None or k <= p.last)]
        assert len(here) <= 1
        if here:
            assert same(here[0].at(k).exp(), law.pmf(k))
        else:
            assert law.pmf(k).is_zero()


@pytest.mark.parametrize("law", EXAMPLES, ids=str)
def test_probabilities_sum_to_one(law: Law) -> None:
    with balls.working(200):
        reach = min(60 * width(law), 3000)
        low, high = middle(law) - reach, middle(law) + reach
        inside = sum((law.pmf(k) for k in range(low, high + 1)), arb(0))
        assert same(inside + law.at_most(low - 1) + law.more_than(high), arb(1), 60)


@pytest.mark.parametrize("law", EXAMPLES, ids=str)
def test_nothing_lies_outside_the_span(law: Law) -> None:
    first, last = law.span()
    if first is not None:
        assert law.pmf(first - 1).is_zero()
        assert law.at_most(first - 1).is_zero()
        assert law.pmf(first) > 0
    if last is not None:
        assert law.pmf(last + 1).is_zero()
        assert law.more_than(last).is_zero()
        assert law.pmf(last) > 0
    for k in [law.draw() for _ in range(20)]:
        assert first is None or first <= k
        assert last is None or k <= last


@given(law=any_law, confidence=st.fractions(min_value="1/100", max_value="999/1000"))
@settings(deadline=None)
def test_radius_is_the_smallest_that_keeps_its_word(law: Law, confidence: Fraction) -> None:
    m = law.radius(confidence)

    def outside(m: int) -> arb:
        return law.more_than(m) + law.at_most(-m - 1)

    with balls.working(4096):
        assert not outside(m) > balls.ball(1 - confidence)
        assert m == 0 or not outside(m - 1) < balls.ball(1 - confidence)


@given(law=any_law, probability=st.fractions(min_value="1/10000000", max_value="99/100"))
@settings(deadline=None)
def test_upper_tail_is_the_smallest_that_keeps_its_word(law: Law, probability: Fraction) -> None:
    t = law.upper_tail(probability)
    with balls.working(4096):
        assert not law.more_than(t - 1) > balls.ball(probability)
        first, _ = law.span()
        assert t == first or not law.more_than(t - 2) < balls.ball(probability)


def test_known_values() -> None:
    assert TwoSided(1).radius(Fraction(19, 20)) == 3
    assert float(TwoSided(1).probability(0)) == pytest.approx((1 - np.exp(-1)) / (1 + np.exp(-1)))
    variance = sum(2 * k * k * float(TwoSided(1).probability(k)) for k in range(1, 60))
    assert variance == pytest.approx(1.841347, abs=5e-7)  # the reference value for one count at epsilon 1
    assert float(Gaussian(1).probability(0)) == pytest.approx(1 / 2.5066282880429055, rel=1e-14)
    assert [Flat(6).radius(Fraction(k, 6)) for k in (1, 2, 5)] == [0, 1, 4]


def test_the_far_tail_keeps_its_digits() -> None:
    for law, k in ((TwoSided(1), 10**4), (Gaussian(100), 10**4), (Gaussian(10**12), 10**8), (OneSided(3), 10**5)):
        with balls.working(128):
            assert law.more_than(k) > 0
            assert law.more_than(k).rel_accuracy_bits() > 90


WRONG = [
    (lambda: TwoSided(0), "scale"),
    (lambda: TwoSided("1/1001"), "scale"),
    (lambda: TwoSided(10**12 + 1), "scale"),
    (lambda: OneSided(float("nan")), "scale"),
    (lambda: Cut(1, -1), "n"),
    (lambda: Cut(1, 1.5), "n"),
    (lambda: Gaussian(0), "variance"),
    (lambda: Gaussian(-1), "variance"),
    (lambda: Gaussian(10**25), "variance"),
    (lambda: Categorical(()), "log_weights"),
    (lambda: Flat(0), "n"),
    (lambda: Coin("3/2"), "p"),
    (lambda: ExpCoin(-1), "x"),
    (lambda: Moved(Flat(2), 0.5), "by"),
    (lambda: Finite((lambda: arb(0.25), lambda: arb(0.25))), "probabilities"),
    (lambda: Flat(2).draw(-1), "size"),
    (lambda: TwoSided(1).draw(2.0), "size"),
    (lambda: Flat(2**63 + 1).draw(3), "n"),
    (lambda: Moved(Flat(2), 2**62).draw(3), "by"),
    (lambda: Moved(Flat(2**63), -5).draw(3), "by"),
    (lambda: Clamped(Flat(2), 2**63, 2**64).draw(3), "low and high"),
    (lambda: TwoSided(1).radius(1), "confidence"),
    (lambda: TwoSided(1).upper_tail(0), "probability"),
]


@pytest.mark.parametrize(("make", "name"), WRONG)
def test_bad_arguments_are_named(make: object, name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name} must"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("law", EXAMPLES[:-1], ids=str)
def test_a_law_that_has_been_used_still_pickles_and_compares(law: Law) -> None:
    law.draw()
    again = pickle.loads(pickle.dumps(law))
    assert again == law
    assert hash(again) == hash(law)


def test_every_law_is_exported() -> None:
    assert {type(law).__name__ for law in EXAMPLES} == set(laws.__all__) - {"Law", "Piece"}


@pytest.mark.parametrize("law", EXAMPLES, ids=str)
def test_arrays_have_the_shape_asked_for(law: Law) -> None:
    first, last = law.span()
    if any(end is not None and abs(end) >= 2**63 for end in (first, last)) or (isinstance(law, Moved) and law.by >= 2**62):
        return
    for size in (0, 1, 7):
        found = law.draw(size)
        assert found.dtype == np.int64
        assert found.shape == (size,)
    assert isinstance(law.draw(), int)


@pytest.mark.parametrize("n", [2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 10**30])
def test_a_cut_beyond_every_draw_still_holds(n: int) -> None:
    drawn = Cut(10**12, n).draw(1000)
    assert ((drawn >= 0) & (drawn <= min(n, 2**63 - 1))).all()


@pytest.mark.slow
def test_a_law_and_its_table_are_not_kept_by_anybody_else() -> None:
    law = Finite((lambda: balls.ball(Fraction(1, 3)), lambda: balls.ball(Fraction(2, 3))))
    law.draw()
    law.draw(10)
    kept = weakref.ref(law)
    del law
    gc.collect()
    assert kept() is None
