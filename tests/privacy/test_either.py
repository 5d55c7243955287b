"""The either-or rule holds against the worst analyst; a rule with two separate budgets does not.

The worst analyst is computed by dynamic programming: the best next move in each state (log ratio so far, sums so far).
So the number compared with delta is the exact worst case for the given moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import Gaussian, PerCoordinate
from dither.privacy.conversion import delta_of_zcdp, largest_rho
from dither.privacy.filters import GRID, Caps, Charge, Sums, up

Admits = Callable[[Sums, Sums], bool]  # (what pure moves cost, what other moves cost) so far, the move included

EPSILON, DELTA = Fraction(1, 2), Fraction(1, 50)
CAPS = Caps.of(EPSILON, DELTA)
STEP = Fraction(1, 16)  # every move shifts the log ratio by a whole number of these

# A move: (steps it shifts by, chance to give everything away, which statements it makes).
RESPONSE = (1, Fraction(0), "both")
STRONGER = (2, Fraction(0), "both")
LEAKY = (1, Fraction(1, 200), "both")
CONCENTRATED = (2, Fraction(0), "zcdp")  # priced by rho only, as Gaussian noise would be, at an epsilon that never fits
ALL_AT_ONCE = (8, Fraction(0), "both")
MOVES = (RESPONSE, STRONGER, LEAKY, CONCENTRATED, ALL_AT_ONCE)


def charge(move: tuple[int, Fraction, str]) -> Charge:
    shift, leak, stated = move
    epsilon = STEP * shift
    return Charge(epsilon if stated == "both" else Fraction(1000), leak, epsilon**2 / 2, leak)


def worst(admits: Admits) -> float:
    """The largest P(S) - e^epsilon Q(S) over all analysts and events: by the best move in every state."""

    @cache
    def value(place: int, pure: Sums, other: Sums) -> float:
        best = max(0.0, 1 - math.exp(float(EPSILON) - place * float(STEP)))
        for move in MOVES:
            cost, is_other = charge(move), move[2] == "zcdp"
            after = (pure, other.plus(cost)) if is_other else (pure.plus(cost), other)
            if admits(*after):
                up_chance = 1 / (1 + math.exp(-move[0] * float(STEP)))
                told = up_chance * value(place + move[0], *after) + (1 - up_chance) * value(place - move[0], *after)
                best = max(best, float(move[1]) + (1 - float(move[1])) * told)
        return best

    return value(0, Sums(), Sums())


def together(pure: Sums, other: Sums) -> Sums:
    return Sums(*(getattr(pure, f) + getattr(other, f) for f in ("epsilon", "delta", "rho", "slack", "unstated")))


def test_no_analyst_learns_more_than_the_budget() -> None:
    assert worst(lambda pure, other: CAPS.rule(together(pure, other)) is not None) <= DELTA


def test_two_purses_are_overdrawn() -> None:
    assert worst(lambda pure, other: CAPS.rule(pure) == "sum" and CAPS.rule(other) is not None) > DELTA


def test_ten_tenths_fit_and_nothing_after_them() -> None:
    caps, used = Caps.of(1, 0), Sums()
    for _ in range(10):
        used = used.plus(Charge(Fraction("0.1"), Fraction(0)))
        assert caps.rule(used) == "sum"
    for crumb in ("1e-30", "1e-300"):
        assert caps.rule(used.plus(Charge(Fraction(crumb), Fraction(0)))) is None


def test_pure_asks_and_small_gaussians_both_fit() -> None:
    caps, pure, smooth = Caps.of(1, "1e-6"), Sums(), Sums()
    for _ in range(10):
        pure = pure.plus(Charge(Fraction("0.1"), Fraction(0), Fraction("0.005")))
    assert caps.rule(pure) == "sum"
    small = Charge(Fraction("0.06"), Fraction("1e-8"), caps.rho_max / 400)
    for _ in range(400):
        smooth = smooth.plus(small)
    assert caps.rule(smooth) == "zcdp"
    assert caps.rule(smooth.plus(small)) is None


@given(st.fractions(Fraction(1, 100), 20), st.fractions(Fraction(1, 10**12), Fraction(99, 100)))
def test_the_layout_costs_delta_and_its_rho_is_certified(epsilon: Fraction, delta: Fraction) -> None:
    caps = Caps.of(epsilon, delta)
    assert caps.delta == delta
    assert caps.rho_max > 0
    assert delta_of_zcdp(caps.rho_max, epsilon) <= caps.delta_conversion


def test_the_certificate_is_tight_enough_to_fail() -> None:
    rho = largest_rho(Fraction(1), Fraction("1e-6"))
    assert delta_of_zcdp(rho * Fraction(1001, 1000), Fraction(1)) > Fraction("1e-6")


@given(st.fractions(Fraction(1, 1000), 50), st.sampled_from([Fraction(1, 10**k) for k in (1, 3, 6, 9, 15)]))
def test_the_largest_rho_is_what_a_plain_bisection_finds(epsilon: Fraction, delta: Fraction) -> None:
    """The budget has it, and noise on vectors spends no less of rho for the same price."""
    rho = largest_rho(epsilon, delta)
    assert Caps.of(epsilon, 4 * delta).rho_max == rho
    low, high = rho, rho * Fraction(100001, 100000)
    assert delta_of_zcdp(low, epsilon) <= delta < delta_of_zcdp(high, epsilon)
    noise = Gaussian(epsilon=epsilon, delta=delta, sensitivity=PerCoordinate(2, 1))
    assert noise.zcdp().rho >= rho
    assert noise.curve().delta(epsilon) <= delta


@given(st.lists(st.fractions(0, 5), max_size=20))
def test_sums_never_fall_below_what_was_charged(charges: list[Fraction]) -> None:
    used = Sums()
    for each in charges:
        used = used.plus(Charge(each, Fraction(0), each * each / 2))
    assert Fraction(used.epsilon, GRID) >= sum(charges)
    assert Fraction(used.epsilon, GRID) - sum(charges) <= Fraction(len(charges), GRID)
    for each in charges:
        used = used.minus(Charge(each, Fraction(0), each * each / 2))
    assert used == Sums()


@pytest.mark.parametrize("written", ["0.1", "1/3", "1/7", "1e-30", "2/31", "0.123456789012345678901234567890"])
def test_what_people_write_is_exact(written: str) -> None:
    assert Fraction(up(Fraction(written)), GRID) == Fraction(written)


def test_a_crumb_never_vanishes() -> None:
    assert up(Fraction(1, 10**400)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": Fraction(-1)},
        {"delta": Fraction(1)},
        {"slack": Fraction(1)},
        {"rho": Fraction(-1)},
        {"epsilon": float("nan")},
    ],
)
def test_charges_are_held_to_their_range(wrong: dict[str, Fraction]) -> None:
    with pytest.raises(ArgumentError):
        Charge(**({"epsilon": Fraction(1), "delta": Fraction(0)} | wrong))


def test_a_release_without_rho_closes_the_second_line() -> None:
    caps = Caps.of(1, "1e-6")
    assert caps.rule(Sums().plus(Charge(Fraction(2), Fraction(0), Fraction(1, 1000)))) == "zcdp"
    assert caps.rule(Sums().plus(Charge(Fraction(2), Fraction(0)))) is None


@pytest.mark.parametrize("first", ["epsilon", "delta"])
@pytest.mark.parametrize("second", ["rho", "slack"])
def test_a_line_holds_only_while_both_of_its_sums_do(first: str, second: str) -> None:
    """The looser sum of each line does not make up for the other."""
    caps = Caps.of(1, "1e-6")
    full = Sums(*(math.floor(cap * GRID) for cap in (caps.epsilon, caps.delta_sums, caps.rho_max, caps.delta_keys)))
    assert caps.rule(full) == "sum"
    assert caps.rule(replace(full, **{first: getattr(full, first) + 1})) == "zcdp"
    assert caps.rule(replace(full, **{name: getattr(full, name) + 1 for name in (first, second)})) is None


def test_a_delta_too_small_for_any_rho_leaves_the_first_line() -> None:
    caps = Caps.of(1, Fraction(1, 1 << 30_000))
    assert caps.rho_max == 0
    assert caps.rule(Sums(epsilon=GRID)) == "sum"
