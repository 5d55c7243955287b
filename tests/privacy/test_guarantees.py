"""Guarantees in numbers: each bound is reached by some mechanism, and half the epsilon would be exceeded."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError, PriceError
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.privacy.guarantees import Range, describe, factor, posterior, power, queries, tradeoff
from dither.privacy.losses import ZCDP, Approx, Pure
from dither.privacy.neighbours import AddRemove, Group, Replace

epsilons = st.fractions("1/100", 8, max_denominator=100)
rates = st.fractions(0, 1, max_denominator=200)


def belief(prior: Fraction, seen: int, yes: Law, no: Law) -> tuple[Fraction, Fraction]:
    """Bayes' rule by balls: bounds of the probability of `yes` after seeing an output."""
    with balls.working(256):
        a, b = yes.pmf(seen) * balls.ball(prior), no.pmf(seen) * balls.ball(1 - prior)
        found = a / (a + b)
        return balls.lower(found), balls.upper(found)


@given(epsilon=epsilons)
def test_e_to_the_epsilon_is_above_one_plus_epsilon_and_near_it_if_small(epsilon: Fraction) -> None:
    assert 1 + epsilon < factor(epsilon)
    if epsilon <= Fraction(1, 10):
        assert factor(epsilon) < 1 + epsilon + epsilon**2


@pytest.mark.slow
@given(epsilon=epsilons)
def test_membership_inference_is_bounded_and_randomized_response_reaches_the_bound(epsilon: Fraction) -> None:
    member, other = Categorical((Fraction(0), epsilon)), Categorical((epsilon, Fraction(0)))
    with balls.working(256):
        alarm, hit = balls.upper(other.pmf(1)), balls.upper(member.pmf(1))
    assert abs(power(Pure(epsilon), alarm) - hit) < Fraction(1, 2**50)
    assert power(Pure(epsilon / 2), alarm) < hit  # the twin: half the epsilon would be exceeded


@given(epsilon=epsilons, delta=st.fractions(0, "1/2", max_denominator=100), rate=rates)
def test_power_is_a_rate_above_guessing_and_grows(epsilon: Fraction, delta: Fraction, rate: Fraction) -> None:
    found = power(Approx(epsilon, delta), rate)
    assert rate <= found <= 1
    assert power(Approx(epsilon / 2, delta), rate) <= found
    assert power(Approx(epsilon, delta / 2), rate) <= found


def test_power_covers_every_test_of_geometric_noise() -> None:
    """All 2^11 tests on a clamped range, exactly: no rejection region beats the bound."""
    x, y = TwoSided(1), Moved(TwoSided(1), 1)
    with balls.working(128):
        chances = [(float(x.pmf(k)), float(y.pmf(k))) for k in range(-5, 6)]
    for region in range(1 << len(chances)):
        alarm, hit = (sum(c[side] for i, c in enumerate(chances) if region >> i & 1) for side in (0, 1))
        assert hit <= float(power(Pure(1), Fraction(min(alarm, 1.0)))) + 1e-12


def test_zcdp_losses_are_read_at_a_delta() -> None:
    loss = ZCDP("1/2")
    assert power(loss, "0.05", delta="1e-6") == power(Approx(loss.epsilon("1e-6"), "1e-6"), "0.05")
    with pytest.raises(PriceError, match="delta"):
        power(loss, "0.05")
    assert len(tradeoff(Pure(1))) == 5


@given(epsilon=epsilons, prior=st.fractions("1/100", "99/100", max_denominator=100))
def test_belief_in_presence_moves_by_at_most_e_to_the_epsilon(epsilon: Fraction, prior: Fraction) -> None:
    """A count with and without the person; the far outputs reach both ends."""
    with_person, without = Moved(TwoSided(1 / epsilon), 1), TwoSided(1 / epsilon)
    low, high = posterior(Pure(epsilon), prior)
    up, down = belief(prior, 7, with_person, without), belief(prior, -7, with_person, without)
    assert high == pytest.approx(up[1], abs=1e-15)
    assert low == pytest.approx(down[0], abs=1e-15)
    assert low <= down[1]
    assert up[0] <= high
    assert prior * Fraction(1) / factor(epsilon) <= low
    assert high <= prior * factor(epsilon)
    assert posterior(Pure(epsilon / 2), prior).high < up[0]  # the twin


def test_a_value_is_two_steps_away_under_add_remove_and_one_under_replace() -> None:
    """The sum of values -1 and +1: sensitivity 1 under add/remove, so the values are 2 apart."""
    epsilon, prior = Fraction(1, 2), Fraction(1, 3)
    plus, minus = Moved(TwoSided(1 / epsilon), 1), Moved(TwoSided(1 / epsilon), -1)
    seen = belief(prior, 9, plus, minus)[0]
    assert posterior(Pure(epsilon), prior, about="value").high >= seen
    assert posterior(Pure(epsilon), prior, about="value", neighbours=Replace()).high < seen
    under_replace = Moved(TwoSided(2 / epsilon), 1), Moved(TwoSided(2 / epsilon), -1)
    seen = belief(prior, 9, *under_replace)[0]
    assert posterior(Pure(epsilon), prior, about="value", neighbours=Replace()).high >= seen


@pytest.mark.parametrize("h", [1, 2, 5])
def test_h_people_who_tell_about_each_other_are_h_times_as_exposed(h: int) -> None:
    epsilon, prior = Fraction(1, 4), Fraction(1, 10)
    ill, well = Moved(TwoSided(1 / epsilon), h), TwoSided(1 / epsilon)
    seen = belief(prior, h + 3, ill, well)[0]
    assert posterior(Pure(epsilon), prior, people=h).high >= seen
    if h > 1:
        assert posterior(Pure(epsilon), prior, people=h - 1).high < seen


def test_certainty_and_nothing_spent_stay() -> None:
    assert posterior(Pure(1), 0) == Range(Fraction(0), Fraction(0))
    assert posterior(Pure(1), 1) == Range(Fraction(1), Fraction(1))
    assert posterior(Pure(0), "1/3") == Range(Fraction(1, 3), Fraction(1, 3))


def test_the_number_of_queries_grows_with_the_margin_or_with_its_square() -> None:
    pure = [queries(Pure(1), margin) for margin in (50, 100, 200)]
    approx = [queries(Approx(1, "1e-6"), margin) for margin in (50, 100, 200)]
    assert pure[2] == pytest.approx(4 * pure[0], rel=0.1)
    assert approx[2] == pytest.approx(16 * approx[0], rel=0.1)
    assert all(many > few for few, many in zip(pure, approx, strict=True))


def test_one_more_pure_query_would_break_the_budget_or_the_margin() -> None:
    k = queries(Pure(1), 100)
    assert TwoSided(k).radius("0.95") <= 100 < TwoSided(k + 1).radius("0.95")
    assert queries(Pure("1/100"), 1) == 0


def test_enormous_margins_end_at_the_largest_noise() -> None:
    assert queries(Pure(1), 10**14) == 10**12
    assert queries(Approx(1, "1e-6"), 10**14) > 10**12
    assert queries(Pure(0), 10) == 0


@pytest.mark.parametrize("loss", [Pure("0.1"), Pure(3), Approx(1, "1e-6"), ZCDP("0.1"), Pure(5000)])
@pytest.mark.parametrize("neighbours", [AddRemove(), Replace(100)])
def test_every_loss_can_be_described(loss: Pure, neighbours: AddRemove) -> None:
    text = describe(loss, neighbours=neighbours)
    assert "household of four" in text
    assert str(neighbours) in text


def test_words_round_in_the_cautious_direction() -> None:
    assert "at most 1.106 (e^0.1, near 1 + 0.1)" in describe(Pure("0.1"))  # e^0.1 is 1.10517
    assert "between 47.5 % and 52.5 %" in describe(Pure("0.1"))  # 47.502 and 52.498


def test_bad_input_is_refused() -> None:
    for call in (
        lambda: power(Pure(1), 2),
        lambda: posterior(Pure(1), -1),
        lambda: posterior(Pure(1), "1/2", about="height"),  # type: ignore[arg-type]
        lambda: posterior(Pure(1), "1/2", neighbours=Group(AddRemove(), 2)),  # type: ignore[arg-type]
        lambda: posterior(Pure(1), "1/2", people=0),
        lambda: queries(Pure(1), 0),
        lambda: queries(Approx(1, 1), 10),
        lambda: queries(ZCDP(1), 10),  # type: ignore[arg-type]
        lambda: queries(Pure(1), 10, 1),
        lambda: factor(float("nan")),
    ):
        with pytest.raises(ArgumentError, match="Fix"):
            call()
    with pytest.raises(PriceError):
        posterior(ZCDP(1), "1/2")


def test_at_most_is_never_rounded_down() -> None:
    for delta in (Fraction(10**30 + 1, 3 * 10**37), Fraction(1, 3**700), Fraction("1e-6")):
        text = describe(Approx(Fraction(10**30, 3 * 10**30 - 1), delta))
        said = re.search(r"plus at most (\S+)\.\n", text)
        assert said is not None
        assert delta <= Fraction(said[1]) <= delta * Fraction(1001, 1000)
        four = re.search(r"four: epsilon (\S+), delta", text)
        assert four is not None
        assert Fraction(four[1]) >= 4 * Fraction(10**30, 3 * 10**30 - 1)


def test_an_epsilon_that_means_nothing_is_said_to() -> None:
    assert "protects nobody" in describe(Pure("1e6"))
    assert posterior(Pure("1e6").repeat(1000), "1/2") == (0, 1)
    assert posterior(Pure(9000), "1/2").high <= 1
    with pytest.raises(ArgumentError, match="epsilon"):
        factor("1e6")
