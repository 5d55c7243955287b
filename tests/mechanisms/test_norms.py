"""Rounding to a grid moves vectors further than their answers: the bounds hold, and are reached."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import L1, L2, PerCoordinate
from dither.mechanisms.base import steps

GRID = Fraction(1)
TINY = Fraction(1, 1000)


def moved(x: tuple[Fraction, ...], y: tuple[Fraction, ...]) -> tuple[int, ...]:
    """Whole steps between the rounded vectors."""
    return tuple(abs(steps(a, GRID) - steps(b, GRID)) for a, b in zip(x, y, strict=True))


def adversary(dimension: int, each: list[Fraction]) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Two vectors that differ by `each`, starting just below a rounding edge in every coordinate."""
    start = tuple(Fraction(1, 2) - TINY for _ in range(dimension))
    return start, tuple(a + b for a, b in zip(start, each, strict=True))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("bound", [Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(3)])
def test_the_extra_steps_of_l1_are_reached(dimension: int, bound: Fraction) -> None:
    # All coordinates but one take just enough to cross an edge; the last takes the rest.
    each = [TINY] * (dimension - 1) + [bound - TINY * (dimension - 1)]
    x, y = adversary(dimension, each)
    assert sum(abs(a - b) for a, b in zip(x, y, strict=True)) == bound
    claimed = L1(bound, dimension=dimension).total(GRID)
    assert sum(moved(x, y)) == claimed == math.ceil(bound) + dimension - 1
    assert sum(k * k for k in moved(x, y)) == L1(bound, dimension=dimension).squares(GRID)


def test_the_scalar_bound_for_a_vector_would_be_wrong() -> None:
    x, y = adversary(2, [TINY, 1 - TINY])
    assert sum(moved(x, y)) > math.ceil(1)


PARTS = 16


def furthest(d: int) -> int:
    """The most steps a coordinate can move when its answer moves by d/16, over all places to start from."""
    return max(abs(steps(Fraction(x + d, PARTS), GRID) - steps(Fraction(x, PARTS), GRID)) for x in range(PARTS))


@pytest.mark.parametrize("bound", [8, 16, 18, 24, 40])
def test_no_pair_of_plane_vectors_beats_the_bounds(bound: int) -> None:
    far = {d: furthest(d) for d in range(-bound, bound + 1)}
    value = Fraction(bound, PARTS)
    moves = {(c, d): (far[c], far[d]) for c in far for d in far}
    l1 = [k for (c, d), k in moves.items() if abs(c) + abs(d) <= bound]
    l2 = [k for (c, d), k in moves.items() if c * c + d * d <= bound * bound]
    assert max(a + b for a, b in l1) == L1(value, dimension=2).total(GRID)
    assert max(a * a + b * b for a, b in l1) == L1(value, dimension=2).squares(GRID)
    assert max(a + b for a, b in l2) <= L2(value, dimension=2).total(GRID)
    assert max(a * a + b * b for a, b in l2) <= L2(value, dimension=2).squares(GRID)
    assert max(a + b for a, b in moves.values()) == PerCoordinate(2, value).total(GRID)
    assert max(a * a + b * b for a, b in moves.values()) == PerCoordinate(2, value).squares(GRID)


reals = st.fractions(-5, 5, max_denominator=64)


@given(st.lists(st.tuples(reals, reals), min_size=1, max_size=6))
def test_no_pair_of_vectors_beats_the_bounds(pairs: list[tuple[Fraction, Fraction]]) -> None:
    x, y = zip(*pairs, strict=True)
    k, d = moved(x, y), len(pairs)
    apart = [abs(a - b) for a, b in pairs]
    if sum(apart) > 0:
        assert sum(k) <= L1(sum(apart), dimension=d).total(GRID)
        assert sum(i * i for i in k) <= L1(sum(apart), dimension=d).squares(GRID)
        root = Fraction(math.isqrt(math.ceil(sum(a * a for a in apart) * 10**12)) + 1, 10**6)
        assert sum(k) <= L2(root, dimension=d).total(GRID)
        assert sum(i * i for i in k) <= L2(root, dimension=d).squares(GRID)
        assert sum(k) <= PerCoordinate(d, max(apart)).total(GRID)


@pytest.mark.parametrize(("bound", "dimension"), [(1, 3), (2, 2), (3, 3), (5, 4)])
def test_whole_vectors_never_beat_the_unrounded_bounds_and_l2_reaches_its_own(bound: int, dimension: int) -> None:
    moves = [m for m in itertools.product(range(-bound, bound + 1), repeat=dimension) if any(m)]
    near = [m for m in moves if sum(i * i for i in m) <= bound**2]
    assert max(sum(map(abs, m)) for m in near) <= L2(bound, dimension=dimension).total(None) <= L2(bound).total(None)
    assert max(sum(i * i for i in m) for m in near) == L2(bound, dimension=dimension).squares(None)


@given(st.integers(1, 2**200), st.sampled_from([None, 2, 50]))
def test_a_sum_of_squares_is_kept_exactly(squares: int, dimension: int | None) -> None:
    norm = L2.of_squares(squares, dimension)
    assert norm.squares(None) == squares
    assert norm.dimension == dimension
    assert norm.value**2 >= squares


def test_a_root_of_few_digits_would_lose_squares() -> None:
    squares = 3 * 2**100
    assert L2(Fraction(math.isqrt(squares * 10**4), 100)).squares(None) != squares


@pytest.mark.parametrize("wrong", [0, -1, 2.5, None])
def test_impossible_sums_of_squares_are_refused(wrong: object) -> None:
    with pytest.raises(ArgumentError, match="squares"):
        L2.of_squares(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", [L1(3), L1("7/2", dimension=2), L2.of_squares(6), L2(2, dimension=3), PerCoordinate(2, 3)])
def test_no_whole_vector_moves_more_numbers_than_the_norm_says(norm: L1 | L2 | PerCoordinate) -> None:
    longest = norm.longest(None) or 8
    most = 0
    for moves in itertools.product(range(4), repeat=min(longest, 7)):
        total, squares = sum(moves), sum(k * k for k in moves)
        if isinstance(norm, PerCoordinate):
            allowed = sum(k > 0 for k in moves) <= norm.count and max(moves) <= norm.each
        else:
            allowed = total <= norm.value if isinstance(norm, L1) else squares <= norm.squares(None)
        if allowed:
            most = max(most, sum(k > 0 for k in moves))
    assert most == norm.moving(None)


def test_on_a_grid_every_declared_number_may_move() -> None:
    assert L2(1, dimension=5).moving(GRID) == L1(1, dimension=5).moving(GRID) == 5
    assert L2(1).moving(GRID) == L1(1).moving(GRID) == 1


def test_rounding_half_to_even_would_move_further_than_the_answers() -> None:
    assert round(Fraction(3, 2)) - round(Fraction(1, 2)) == 2
    assert steps(Fraction(3, 2), GRID) - steps(Fraction(1, 2), GRID) == 1 == L1(1).total(GRID)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), max_size=20), st.integers(-60, 60))
def test_arrays_round_exactly_as_single_numbers_do(values: list[float], exponent: int) -> None:
    grid = Fraction(2) ** exponent
    array = steps(np.array(values, dtype=np.float64), grid)
    limit = 1 << 52 if grid != 1 else 1 << 62
    assert array.tolist() == [max(-limit, min(steps(value, grid), limit)) for value in values]


def test_the_largest_float_below_one_half_rounds_down() -> None:
    below = 0.49999999999999994
    assert steps(np.array([below, -below, 0.5, -0.5]), GRID).tolist() == [0, 0, 1, 0]
    assert np.floor(np.array([below]) + 0.5) == 1  # what the short way would do


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10), st.sampled_from(["1/4", "0.01", "3", "7/3", "1e-30"]))
def test_integer_arrays_round_as_single_numbers_do_within_the_clamp(values: list[int], text: str) -> None:
    grid = Fraction(text)
    limit = 1 << 52 if text == "1/4" else 1 << 62
    for value, found in zip(values, steps(np.array(values, dtype=np.int64), grid).tolist(), strict=True):
        exact = math.floor(value / grid + Fraction(1, 2))
        assert found == exact or (abs(exact) > limit - 2 * 10**2 and abs(found) >= limit - 2 * 10**2 and found * exact > 0)


@pytest.mark.parametrize("wrong", [0, -1, "nan", "inf", float("nan"), float("inf"), None])
def test_impossible_sensitivities_are_refused(wrong: object) -> None:
    for norm in (L1, L2, lambda value: PerCoordinate(1, value)):
        with pytest.raises(ArgumentError, match="sensitivity"):
            norm(wrong)


def test_impossible_dimensions_and_counts_are_refused() -> None:
    for wrong in (0, -1, 1.5):
        with pytest.raises(ArgumentError, match="dimension"):
            L1(1, dimension=wrong)
        with pytest.raises(ArgumentError, match="count"):
            PerCoordinate(wrong, 1)
