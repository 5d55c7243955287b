"""Each unit is bounded as the Work says, by a choice that depends on its own rows and the secret only.

Where a choice is made engines need not agree, so here each is held against the claims themselves: one unit alone gives
what the specification gives for the groups it keeps, exactly as many as allowed, and many units give the sum of each alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DIALECT, DuckDBDialect
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.sql.work import most_per_row
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import SCALE, UNIT, Bins, Cell, Distinct, Group, Quantised, Sums, Work
from engines.crowd import tie
from engines.places import DuckDBPlace, Place, PostgresPlace, fit
from engines.tables import KINDS, SECRET, by_key, in_python, rows
from engines.works import plain, works

MANY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
Table = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["few", "many", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Everything holds for both ways in which DuckDB chooses groups: that for few groups, and that for many."""
    if request.param == "postgres":
        with closing(PostgresPlace(request.getfixturevalue("postgres"))) as made:
            yield made
        return
    with pytest.MonkeyPatch.context() as patch, closing(DuckDBPlace()) as embedded:
        patch.setattr(DIALECT, "few_groups", DIALECT.few_groups if request.param == "few" else 0)
        yield embedded


CHOOSING = st.integers(1, 2).flatmap(lambda most: works(by_unit=True, max_groups=most, max_values=2))


def run(place: Place, work: Work, table: Table, public: Table, secret: bytes = SECRET) -> dict[Any, Group]:
    if "\\x00" in repr(work) and not place.holds("\0"):
        reject()
    return by_key(place.engine({"t": fit(place, table), "p": fit(place, public)}).run(work, secret))


def units_of(table: Table) -> list[int]:
    return sorted({row["who"] for row in table if row["who"] is not None})


def only(table: Table, unit: int) -> Table:
    return [row for row in table if row["who"] == unit]


def without(table: Table, unit: int) -> Table:
    return [row for row in table if row["who"] != unit]


COUNT = Sums((Cell(constant=1),), 2)


def test_one_person_counts_no_more_than_max_rows(place: Place) -> None:
    """Five rows of one person in one group, of which two count, in each kind of measure."""
    table = [{**dict.fromkeys(KINDS), "who": 1, "t": "a", "i": i, "x": float(i)} for i in range(5)]
    x = Quantised(Column("x"), Fraction(0), Fraction(1), 10)
    measures = (COUNT, Sums((Cell(x, linear=1),), 2), Bins(x, 2), Distinct(Column("i"), 2))
    work = Work(plain("t", "t"), (Named("t", Column("t")),), None, True, 3, measures)
    count, total, bins, different = run(place, work, table, [])[(("str", "a"),)].measures
    assert (count, total, different) == ((2,), (10 * 2 // 5,), 2)
    assert bins == dict.fromkeys(range(5), SCALE * 2 // 5)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_one_person_is_in_no_more_than_max_groups(place: Place, most: int) -> None:
    table = [{**dict.fromkeys(KINDS), "who": 1, "t": letter} for letter in "abcdefgh"]
    work = Work(plain("t", "t"), (Named("t", Column("t")),), None, True, most, (COUNT,))
    assert len(run(place, work, table, [])) == most


@pytest.mark.slow
@MANY
@given(work=CHOOSING, table=rows(units=2, most=20), public=rows(most=4))
def test_one_unit_alone_keeps_as_many_groups_as_allowed(place: Place, work: Work, table: Table, public: Table) -> None:
    for unit in units_of(table):
        kept = run(place, work, only(table, unit), public)
        held = {"t": fit(place, only(table, unit)), "p": fit(place, public)}
        whole = by_key(in_python(held).run(replace(work, max_groups=None), SECRET))
        assert len(kept) == (min(work.max_groups or 0, len(whole)) if work.keys else 1)
        for key, group in kept.items():
            expected = whole[key]
            assert group.units == expected.units
            for measure, ours, theirs in zip(work.measures, group.measures, expected.measures, strict=True):
                # The reference picks other values, but as many.
                assert ours == theirs if not isinstance(measure, Distinct) else ours == min(theirs, measure.max_values)  # type: ignore[type-var]


@pytest.mark.slow
@MANY
@given(work=CHOOSING, table=rows(units=3, most=20), public=rows(most=4))
def test_many_units_give_the_sum_of_each_alone(place: Place, work: Work, table: Table, public: Table) -> None:
    together = {key: _numbers(work, group) for key, group in run(place, work, table, public).items()}
    apart: dict[Any, Counter[Any]] = {}
    for unit in units_of(table):
        for key, group in run(place, work, only(table, unit), public).items():
            apart.setdefault(key, Counter()).update(_numbers(work, group))
    assert {key: _plain(found) for key, found in together.items() if _plain(found)} == {
        key: _plain(found) for key, found in apart.items() if _plain(found)
    }


def _numbers(work: Work, group: Group) -> Counter[Any]:
    """Everything that adds up: sums, weights, units; counts of distinct values do not."""
    found: Counter[Any] = Counter({"units": group.units or 0})
    for place, (measure, value) in enumerate(zip(work.measures, group.measures, strict=True)):
        if isinstance(measure, Sums):
            found.update({(place, i): number for i, number in enumerate(value)})  # type: ignore[arg-type]
        elif isinstance(measure, Bins):
            found.update({(place, b): weight for b, weight in value.items()})  # type: ignore[union-attr]
    return found


def _plain(found: Counter[Any]) -> dict[Any, int]:
    return {name: number for name, number in found.items() if number}


@pytest.mark.slow
@MANY
@given(work=CHOOSING, table=rows(units=3, most=20), public=rows(most=4))
def test_a_unit_that_leaves_moves_nothing_further_than_claimed(place: Place, work: Work, table: Table, public: Table) -> None:
    before = run(place, work, table, public)
    for unit in units_of(table)[:1]:
        after = run(place, work, without(table, unit), public)
        moved = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        assert len(moved) <= (work.max_groups or 0)
        for key in moved:
            for place, measure in enumerate(work.measures):
                assert _distance(measure, _value(before, key, place), _value(after, key, place)) <= _claim(measure)
            assert abs(_units(before, key) - _units(after, key)) <= 1


def _value(groups: dict[Any, Group], key: Any, place: int) -> Any:
    return groups[key].measures[place] if key in groups else None


def _units(groups: dict[Any, Group], key: Any) -> int:
    return (groups[key].units or 0) if key in groups else 0


def _distance(measure: Any, one: Any, two: Any) -> int:
    if isinstance(measure, Sums):
        zero = (0,) * len(measure.cells)
        return max((abs(a - b) for a, b in zip(one or zero, two or zero, strict=True)), default=0)
    if isinstance(measure, Bins):
        a, b = one or {}, two or {}
        return sum(abs(a.get(k, 0) - b.get(k, 0)) for k in a.keys() | b.keys())
    return abs((one or 0) - (two or 0))


def _claim(measure: Any) -> int:
    if isinstance(measure, Sums):
        return measure.max_rows * max(most_per_row(cell) for cell in measure.cells)
    return measure.max_rows * SCALE if isinstance(measure, Bins) else int(measure.max_values)


@MANY
@given(work=CHOOSING, table=rows(units=3, most=20), public=rows(most=4), data=st.data())
def test_the_choice_does_not_see_the_order_of_rows(place: Place, work: Work, table: Table, public: Table, data: Any) -> None:
    shuffled = list(data.draw(st.permutations(table)))
    assert run(place, work, table, public) == run(place, work, shuffled, public)


@MANY
@given(work=CHOOSING, table=rows(units=2, most=20), public=rows(most=4))
def test_ties_of_the_hash_let_nobody_over_the_bound(place: Place, work: Work, table: Table, public: Table) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for dialect in (DuckDBDialect, PostgresDialect):
            tie(dialect, patch)
        for unit in units_of(table):
            found = run(place, work, only(table, unit), public)
            assert len(found) <= (work.max_groups or 0) or not work.keys


def test_the_choice_follows_the_secret_and_is_even(place: Place) -> None:
    """Three groups, one kept: over many units each is kept about equally often, and another secret keeps others."""
    source = Compute(Scan("even", "t"), (Named(UNIT, Column("t.u")), Named("g", Column("t.g"))))
    for known in (None, (("a", "b", "c"),)):
        work = Work(source, (Named("g", Column("g")),), known, True, 1, (Sums((Cell(constant=1),), 1),))
        rows = [{"u": unit, "g": letter} for unit in range(9000) for letter in "abc"]
        engine = place.engine({"even": rows}, {"even": {"u": "int", "g": "text"}})
        counts = [{group.key: sum(group.measures[0]) for group in engine.run(work, secret)} for secret in (b"one", b"two")]
        assert all(sum(found.values()) == 9000 for found in counts)
        assert all(2700 <= number <= 3300 for found in counts for number in found.values())
        assert counts[0] != counts[1]


def test_without_the_bound_a_unit_moves_more_than_claimed(place: Place) -> None:
    """The twin: the same measurement, the bound left out, is noticed."""
    row = dict.fromkeys(KINDS)
    table = [{**row, "who": 1, "t": letter} for letter in "abc"]
    work = Work(plain("t", "t"), (Named("t", Column("t")),), None, True, 1, (Sums((Cell(constant=1),), 1),))
    assert len(run(place, work, table, [])) == 1
    assert len(run(place, replace(work, max_groups=None), table, [])) == 3
