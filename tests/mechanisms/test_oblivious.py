"""Oblivious mechanisms: noise on a statistic and nothing else; no data make a release fail; `check` finds what is wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from distribution.allowance import share
from dither.audit import NOT_FOUND, VIOLATES, Target
from dither.audit.blackbox.attack import attack
from dither.errors import ArgumentError
from dither.exact import replay
from dither.exact.laws.base import Law
from laws.odd_calls import ODD

COUNT = dt.Geometric(epsilon=1, sensitivity=1)
BITS = dt.AddRemove().pairs([0, 1], rows=3)


def old(ages: Any) -> int:
    return sum(age >= 65 for age in ages)


def mean(values: Any) -> Fraction:
    return Fraction(sum(values), len(values))  # raises on an empty table


def what_comes(asked: dt.Oblivious, data: Any) -> type:
    """The type of the release, or of the error."""
    try:
        return type(asked.release(data))
    except Exception as problem:
        return type(problem)


@pytest.mark.parametrize("data", ODD, ids=lambda thing: type(thing).__name__)
@pytest.mark.parametrize("function", [old, mean, lambda data: data, lambda data: data["x"], lambda data: [1, 2]])
def test_no_data_make_a_release_fail(function: Any, data: Any) -> None:
    for mechanism in (COUNT, dt.Laplace(epsilon=1, sensitivity=1, grid="1/4"), dt.RandomizedResponse(epsilon=1)):
        assert what_comes(dt.Oblivious(function, mechanism), data) in (int, Fraction)


def test_that_a_plain_function_before_a_mechanism_does_fail() -> None:
    """The twin: without the wrapper the error tells an empty table from any other."""
    with pytest.raises(ZeroDivisionError):
        COUNT.release(mean([]))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        COUNT.release(mean([1, 2]))  # type: ignore[arg-type]


def test_a_release_of_another_shape_is_not_made() -> None:
    cells = dt.Oblivious(np.array, dt.Geometric(epsilon=1, sensitivity=1), otherwise=np.zeros(2, dtype=int))
    for data in ([1, 2], [1, 2, 3], [], [[1, 2]], None, ["a", "b"]):
        released = cells.release(data)
        assert released.shape == (2,)
        assert released.dtype == np.int64


def test_the_answer_goes_through_the_mechanism_and_nothing_else_does() -> None:
    asked = dt.Oblivious(old, COUNT)
    with replay.stream(b"oblivious"):
        expected = [COUNT.release(k) for k in (2, 2, 1, 0)]
    with replay.stream(b"oblivious"):
        assert [asked.release(data) for data in ([70, 80, 1], [65, 99], [70], [])] == expected
    assert asked.law([70, 80, 1]) == COUNT.law(2)


def test_otherwise_must_be_an_answer_that_the_mechanism_takes() -> None:
    with pytest.raises(ArgumentError, match="exact"):
        dt.Oblivious(old, COUNT, otherwise="none")
    with pytest.raises(ArgumentError, match="function"):
        dt.Oblivious(3, COUNT)  # type: ignore[arg-type]


def test_check_finds_a_statistic_that_moves_too_far() -> None:
    kept = dt.Oblivious(sum, COUNT).check(BITS)
    assert (kept.keeps, kept.moves) == (True, (1,))
    broken = dt.Oblivious(sum, COUNT).check(dt.AddRemove().pairs([0, 3], rows=2))
    assert (broken.keeps, broken.moves, broken.pair) == (False, (3,), ((), (3,)))
    assert "breaks its sensitivity" in str(broken)
    assert dt.Oblivious(sum, COUNT).check(dt.Replace().pairs([0, 1], rows=3)).keeps
    assert not dt.Oblivious(sum, COUNT).check(dt.Replace().pairs([-1, 1], rows=3)).keeps


def test_check_knows_every_norm_and_monotone_scores() -> None:
    def cells(data: Any) -> list[int]:
        return [data.count(0), data.count(1)]

    replaced, zeros = dt.Replace().pairs([0, 1], rows=3), (0, 0)
    grid = {"grid": 1}
    for norm, keeps in ((dt.L1(2, 2), True), (dt.L1(1, 2), False), (dt.L2("1.5", 2), True), (dt.L2("1.4", 2), False)):
        assert dt.Oblivious(cells, dt.Laplace(epsilon=1, sensitivity=norm, **grid), zeros).check(replaced).keeps is keeps
    for each, keeps in ((dt.PerCoordinate(2, 1), True), (dt.PerCoordinate(1, 1), False), (dt.PerCoordinate(2, "0.9"), False)):
        assert dt.Oblivious(cells, dt.Laplace(epsilon=1, sensitivity=each, **grid), zeros).check(replaced).keeps is keeps
    for monotone, keeps in ((False, True), (True, False)):
        choose = dt.Exponential(epsilon=1, sensitivity=1, monotone=monotone)
        assert dt.Oblivious(cells, choose, zeros).check(replaced).keeps is keeps
    assert dt.Oblivious(cells, dt.Exponential(epsilon=1, sensitivity=1, monotone=True), zeros).check(BITS).keeps


def test_check_counts_data_without_an_answer_and_sees_how_far_otherwise_is() -> None:
    """A mean of ages that is 0 for an empty table moves by 90 when the first person comes."""
    found = dt.Oblivious(mean, dt.Laplace(epsilon=1, sensitivity=45, grid=1)).check(dt.AddRemove().pairs([0, 90], rows=2))
    assert (found.keeps, found.moves, found.pair) == (False, (90,), ((), (90,)))
    assert found.otherwise == 2
    middle = dt.Oblivious(mean, dt.Laplace(epsilon=1, sensitivity=45, grid=1), otherwise=45)
    assert middle.check(dt.AddRemove().pairs([0, 90], rows=2)).keeps


@given(values=st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), limit=st.integers(0, 4))
def test_whatever_check_accepts_the_verifier_accepts(values: list[int], limit: int) -> None:
    """On every pair of neighbouring tables of at most two rows."""
    asked = dt.Oblivious(lambda data: sum(data) // 3, dt.Geometric(epsilon=1, sensitivity=limit + 1))
    pairs = dt.AddRemove().pairs(values, rows=2)
    assert asked.check(pairs).keeps == dt.verify(asked, pairs).holds


# --- mechanisms that depend on more than f ----------------------------------------------------------------------


class Rounded:
    """Noise on the number of ones, less of it if the table has an even number of rows."""

    def release(self, data: Any) -> int:
        return self.law(data).draw()

    def outcome(self, k: int) -> int:
        return k

    def loss(self) -> dt.Pure:
        return dt.Pure(2)

    def law(self, data: Any) -> Law:
        return dt.Geometric(epsilon=2 if len(data) % 2 == 0 else 1, sensitivity=1).law(sum(data))


def test_check_finds_a_mechanism_that_depends_on_more_than_f() -> None:
    asked = dt.Oblivious(sum, COUNT)
    found = asked.check(BITS, other=Rounded())
    assert found.depends
    assert found.witness is not None
    one, two = found.witness
    assert sum(one) == sum(two)
    assert len(one) % 2 != len(two) % 2
    assert "depends on more than f" in str(found)
    assert asked.check(BITS, other=asked).depends is False
    assert asked.check(BITS).depends is None


@pytest.mark.slow
def test_the_auditor_finds_it_from_outputs_alone() -> None:
    """For code without a law: on data with equal answers the claim is epsilon 0."""
    agreeing = dt.Oblivious(sum, COUNT).check(BITS).agreeing[:1]
    assert attack(Target("more", Rounded().release, Fraction(1, 100), pairs=agreeing), seconds=60).outcome == VIOLATES
    alone = dt.Oblivious(sum, COUNT).release
    assert (
        attack(Target("f alone", alone, Fraction(1, 100), pairs=agreeing), seconds=0.3, strict=share("audit", 10)).outcome
        == NOT_FOUND
    )


# --- generated neighbours ---------------------------------------------------------------------------------------


def test_generated_pairs_are_all_neighbours_there_are() -> None:
    tables = [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    added = {(tuple(sorted(one)), tuple(sorted(two))) for one, two in dt.AddRemove().pairs([0, 1], rows=2)}
    assert added == {
        (a, b) for a in tables for b in tables if len(b) == len(a) + 1 and all(b.count(v) >= a.count(v) for v in a)
    }
    replaced = {frozenset((tuple(sorted(one)), tuple(sorted(two)))) for one, two in dt.Replace(n=2).pairs([0, 1], rows=2)}
    assert replaced == {frozenset(((0, 0), (0, 1))), frozenset(((0, 1), (1, 1)))}
    with pytest.raises(ArgumentError, match="more than"):
        dt.AddRemove().pairs(range(100), rows=50)
