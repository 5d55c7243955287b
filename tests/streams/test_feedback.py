"""Rounded feedback: its price holds on every output of small streams, and fails without its slack."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.streams.constants import BITS, buffers
from dither.streams.feedback import Buffers, Feedback, squares

ONE = 1 << BITS
# c = 1, 1/2, 3/8 (less 10^-8), and s = 4: the third step moves by 1 or by 2, which is more than by 3/2
SMALL = Buffers((ONE * 3 // 4, ONE * 3 // 4, 1, 1), (ONE // 4, ONE // 4 - 2, 1, 1), 4)
VARIANCE, REACH, ORDERS = 40, 70, (1.5, 2.0, 4.0)
Stream = Callable[[tuple[int, ...]], int]  # the next number, from the outputs so far


@lru_cache(maxsize=1 << 17)
def fed_back(rule: Buffers, noise: tuple[int, ...]) -> int:
    """R of the next step, after these n."""
    state: tuple[int, ...] = (0, 0, 0, 0)
    for n in noise:
        given_back = -rule.follow(state, [0])[0][0]
        (same,), state = rule.follow(state, [n + given_back])
        assert same == n
    return -rule.follow(state, [0])[0][0]


def outputs(one: Stream, other: Stream) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """All outputs of three steps: for each (o_1, o_2) its probability given `one`, and per o_3 that probability and the log
    ratio of all three."""

    def log_ratio(z: int, w: int) -> float:
        return (w * w - z * z) / (2 * VARIANCE)

    zs = np.arange(-REACH, REACH + 1)
    weight = np.exp(-(zs**2) / (2 * VARIANCE))
    weight /= weight.sum()
    for z1 in range(-REACH, REACH + 1):
        o1 = SMALL.scale * one(()) + z1
        w1 = o1 - SMALL.scale * other(())
        for z2 in range(-REACH, REACH + 1):
            n2 = z2 - fed_back(SMALL, (z1,))
            o2 = SMALL.scale * one((o1,)) + n2
            m2 = o2 - SMALL.scale * other((o1,))
            w2 = m2 + fed_back(SMALL, (w1,))
            moved = SMALL.scale * (one((o1, o2)) - other((o1, o2))) + fed_back(SMALL, (w1, m2)) - fed_back(SMALL, (z1, n2))
            so_far = log_ratio(z1, w1) + log_ratio(z2, w2)
            yield weight[z1 + REACH] * weight[z2 + REACH], weight, so_far + ((zs + moved) ** 2 - zs**2) / (2 * VARIANCE)


def divergence(one: Stream, other: Stream) -> float:
    """The largest Renyi divergence over its order, by brute force."""
    sums = dict.fromkeys(ORDERS, 0.0)
    for chance, weight, ratio in outputs(one, other):
        for order in ORDERS:
            sums[order] += chance * float((weight * np.exp((order - 1) * ratio)).sum())
    return max(math.log(total) / (order - 1) / order for order, total in sums.items())


def fixed(*numbers: int) -> Stream:
    return lambda seen: numbers[len(seen)]


def adaptive(*changed: int) -> Stream:
    """A stream that looks at earlier outputs; `changed` is added to it."""
    return lambda seen: (7 if seen and seen[-1] > 0 else 0) + changed[len(seen)]


def late(seen: tuple[int, ...]) -> int:
    """Changes the second step or the third, as the first output decides."""
    return int(len(seen) == 1 and seen[0] > 0) + int(len(seen) == 2 and seen[0] <= 0)


ALONE = (
    [(fixed(0, 0, 0), fixed(*step)) for step in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    + [(adaptive(1, 0, 0), adaptive(0, 0, 0)), (adaptive(0, 0, 0), adaptive(-1, 0, 0))]
    + [(fixed(0, 0, 0), late)]
)


def rho(contributions: int = 1, slack: Fraction | None = None, horizon: int = 3) -> float:
    return float(squares(SMALL, horizon, 1, contributions, SMALL.slack if slack is None else slack)) / (2 * VARIANCE)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ALONE)
def test_the_price_holds_on_small_streams(pair: tuple[Stream, Stream]) -> None:
    assert divergence(*pair) <= rho() < 0.3907


@pytest.mark.slow
def test_the_price_without_its_slack_is_exceeded() -> None:
    assert divergence(fixed(0, 0, 0), fixed(1, 0, 0)) > 0.2820 > 0.2782 > rho(slack=Fraction(0))


@pytest.mark.slow
def test_the_price_of_two_steps_of_one_unit_holds_and_twice_the_price_of_one_does_not() -> None:
    both = max(divergence(fixed(0, 0, 0), fixed(*steps)) for steps in ((1, 1, 0), (1, 0, 1), (0, 1, 1), (1, -1, 0)))
    assert 2 * rho() < both <= rho(2)


@given(
    before=st.lists(st.integers(-(2**45), 2**45), min_size=1, max_size=40),
    at=st.integers(0, 39),
    moved=st.integers(-(2**21), 2**21),
    horizon=st.sampled_from([2, 64, 1024, 1 << 20]),
)
def test_rounding_moves_no_step_further_than_its_slack(before: list[int], at: int, moved: int, horizon: int) -> None:
    rule, at = Buffers(*buffers(horizon), 1 << 20), at % len(before)
    column = [sum(w * Fraction(d, ONE) ** k for d, w in zip(rule.decays, rule.weights, strict=True)) / ONE for k in range(40)]
    one, other = (rule.follow((0,) * 4, []) for _ in range(2))
    for t, n in enumerate(before):
        back = [-rule.follow(state, [0])[0][0] for state in (one[1], other[1])]
        due = column[t - at - 1] * moved if t > at else Fraction(0)
        assert abs(back[1] - back[0] - due) < (rule.slack if t > at else 1)
        one = rule.follow(one[1], [n + back[0]])
        other = rule.follow(other[1], [n + back[1] + (moved if t == at else 0)])


def test_that_check_can_fail() -> None:
    """Rounding alone takes nearly 1: with slack below it, a step moves further than priced."""
    found = max(fed_back(SMALL, (n + 4, 0)) - fed_back(SMALL, (n, 0)) for n in range(8))
    assert found == 2 > 4 * 0.375 + 0.49


def test_the_slack_counts_every_floor() -> None:
    """One of the sum, and one of each buffer at each step, as the weights carry it on."""
    rule = Buffers(*buffers(1024), 1)
    carried = sum(w * (d / ONE) ** k for d, w in zip(rule.decays, rule.weights, strict=True) for k in range(30_000)) / ONE
    assert float(rule.slack) == pytest.approx(1 + carried / 2**16, abs=1e-8)
    assert rule.slack > 1


def test_noise_and_draws_determine_each_other() -> None:
    drawn = [5, -3, 0, 10**9, -(10**12)]
    noise, _ = Feedback.of(1024, Fraction(1), 1, 1, False).rule.follow((0,) * 4, drawn)
    rule = Feedback.of(1024, Fraction(1), 1, 1, False).rule
    assert [n + fed_back(rule, tuple(noise[:t])) for t, n in enumerate(noise)] == drawn


@pytest.mark.parametrize(("horizon", "contributions"), [(1, 1), (2, 1), (7, 3), (40, 5), (12, 30)])
def test_adjacent_steps_at_the_start_are_the_worst(horizon: int, contributions: int) -> None:
    rule = Buffers(*buffers(horizon), 16)
    c = [1.0] + [sum(w * d**k / ONE ** (k + 1) for d, w in zip(rule.decays, rule.weights, strict=True)) for k in range(horizon)]
    priced = float(squares(rule, horizon, 3, contributions, rule.slack))
    rng = np.random.default_rng(1)
    for _ in range(200):
        steps = rng.choice(horizon, size=min(contributions, horizon), replace=False)
        moved = [sum(c[t - j] for j in steps if j <= t) * 16 * 3 for t in range(horizon)]
        assert (
            sum((m + float(rule.slack) * (t > min(steps))) ** 2 for t, m in enumerate(moved) if t >= min(steps))
            <= priced * 1.0001
        )


@pytest.mark.parametrize("contributions", [1, 2, 5, 100])
@pytest.mark.parametrize("horizon", [1, 2, 64])
def test_steps_spread_over_segments_cost_no_more_than_the_price(horizon: int, contributions: int) -> None:
    segment = Feedback.of(horizon, Fraction(1), contributions, 1, True)
    for m in range(1, min(contributions, horizon) + 1):
        assert squares(segment.rule, horizon, 1, m, segment.rule.slack) <= Fraction(m, contributions) * segment.squares


def test_that_the_price_of_one_stream_would_not_do_for_segments() -> None:
    """In segments of one step each, every changed step of a unit costs the whole price of a segment, not half of it."""
    alone = Feedback.of(1, Fraction(1), 2, 1, False)
    assert squares(alone.rule, 1, 1, 1, alone.rule.slack) > Fraction(1, 2) * alone.squares


def test_the_mechanism_states_the_price_of_its_squares() -> None:
    made = Feedback.of(365, Fraction(1, 8), 3, 10, False)
    assert made.noise.zcdp().rho == Fraction(1, 8)
    assert made.noise.variance == Fraction(made.squares * 4)
    with_slack, without = (squares(made.rule, 365, 10, 3, slack) for slack in (made.rule.slack, Fraction(0)))
    assert without < with_slack <= made.squares < with_slack + 1


@pytest.mark.parametrize(("price", "largest"), [("1e-11", 1), ("1e-14", 1), ("1e-6", 2**28), ("1e12", 1), ("1e6", 2**40)])
def test_extreme_prices_get_a_fitting_scale(price: str, largest: int) -> None:
    assert Feedback.of(1024, Fraction(price), 1, largest, False).noise.zcdp().rho == Fraction(price)


def test_a_price_that_needs_more_noise_than_can_be_drawn_is_refused() -> None:
    with pytest.raises(ArgumentError, match="rho must be at least"):
        Feedback.of(1024, Fraction("1e-6"), 1, 2**40, False)


@pytest.mark.parametrize("wrong", [((ONE,) * 4, (1,) * 4), ((1,) * 4, (0, 1, 1, 1)), ((1,) * 4, (ONE // 2,) * 4)])
def test_buffers_that_the_proof_does_not_cover_are_refused(wrong: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="proof"):
        Buffers(*wrong, 1)


def test_deviations_are_those_of_the_inverse() -> None:
    made, inverse = Feedback.of(200, Fraction(1, 2), 1, 1, False), [1.0]
    pairs = list(zip(made.rule.decays, made.rule.weights, strict=True))
    c = [1.0] + [sum(w / ONE * (d / ONE) ** k for d, w in pairs) for k in range(199)]
    for t in range(1, 200):
        inverse.append(-sum(c[k] * inverse[t - k] for k in range(1, t + 1)))
    sums = np.cumsum(np.cumsum(inverse) ** 2)
    assert made.deviations == pytest.approx(np.sqrt(sums) * made.noise.noise_scale / made.scale, rel=1e-9)
