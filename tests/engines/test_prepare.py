"""What is wrong with a question itself is found before any row is read, by both engines."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings

from dither.engines.base import Engine
from dither.engines.duckdb.engine import DuckDB
from dither.engines.reference import Reference
from dither.errors import ArgumentError, QueryError
from dither.query.nodes import Call, Column, Compute, Filter, Literal, Named, Scan
from dither.query.work import Bins, Cell, Quantised, Sums, Work
from engines.tables import KINDS
from engines.works import works

PEOPLE = Compute(Scan("t", "t"), (Named("x", Column("t.x")), Named("t", Column("t.t"))))
COUNT = (Sums((Cell(constant=1),), 1),)


def engines() -> list[Engine]:
    """Without any table: whoever looks at a row fails."""
    return [DuckDB(duckdb.connect(), {"t": KINDS}), Reference({}, {"t": KINDS})]


def test_half_a_character_is_refused() -> None:
    wrong = Filter(PEOPLE, Call("eq", (Column("t"), Literal("a\ud800", (3, 7)))))
    known = Work(PEOPLE, (Named("t", Column("t")),), (("a", "\udfff"),), False, None, COUNT)
    for engine in engines():
        with pytest.raises(QueryError, match="half a character") as caught:
            engine.prepare(Work(wrong, (), None, False, None, COUNT))
        assert caught.value.span == (3, 7)
        with pytest.raises(ArgumentError, match="half a character"):
            engine.prepare(known)


@pytest.mark.parametrize(
    ("low", "step", "steps"),
    [
        (Fraction(0), Fraction(1, 10**400), 10),
        (Fraction(0), Fraction(10**400), 1),
        (-(Fraction(10) ** 400), Fraction(1), 1),
        (Fraction(-(10**308)), Fraction(10**308), 2),
        (Fraction(0), Fraction(1, 10**320), 10**630),
    ],
)
def test_grids_beyond_doubles_are_refused(low: Fraction, step: Fraction, steps: int) -> None:
    grid = Quantised(Column("x"), low, step, steps)
    for engine in engines():
        for measure in (Sums((Cell(grid, linear=1),), 1), Bins(grid, 1)):
            with pytest.raises(ArgumentError, match="doubles"):
                engine.prepare(Work(PEOPLE, (), None, False, None, (measure,)))


def test_sums_that_are_too_wide_are_refused() -> None:
    grid = Quantised(Column("x"), Fraction(0), Fraction(1), 2**90)
    with pytest.raises(ArgumentError, match="126 bits"):
        engines()[0].prepare(Work(PEOPLE, (), None, False, None, (Sums((Cell(grid, linear=1),), 1),)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(work=works())
def test_questions_that_can_be_run_pass(work: Work) -> None:
    for engine in (DuckDB(_NOTHING, dict.fromkeys("tp", KINDS)), Reference({}, dict.fromkeys("tp", KINDS))):
        engine.prepare(work)


_NOTHING = duckdb.connect()
