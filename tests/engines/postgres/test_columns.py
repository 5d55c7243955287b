"""Stored values that a cast refuses, or would make one person of two."""

from __future__ import annotations

from typing import Any

import pytest

import dither as dt
from dither.engines.postgres import columns
from dither.engines.postgres.report import report_data
from engines.places import PostgresPlace

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgres"])
def place(request: pytest.FixtureRequest) -> Any:
    made = PostgresPlace(request.getfixturevalue("postgres"))
    yield made
    made.close()


def survey(place: PostgresPlace, **columns: Any) -> dt.Curator:
    table = dt.Table(place.address("t"), unit="id", max_rows=1, max_groups=1, columns=columns)
    return dt.open(dt.Catalog({"t": table}, dt.Budget(10**9)), ledger=":memory:")


HALF = ["2.4703282292062327e-324", "2.47032822920623271e-324", f"{5**1075}e-1075", f"{5**1075 + 1}e-1075", "1e-400"]


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("number", HALF, ids=lambda number: number[:24])
def test_numbers_around_half_of_the_smallest_double_are_read(place: PostgresPlace, number: str, sign: str) -> None:
    place.run(f"CREATE TABLE t (id bigint, n numeric); INSERT INTO t VALUES (1, 1.5), (2, '{sign}{number}')")
    with survey(place, n=dt.between(0, 10)) as asked:
        ((total,),) = asked.ask("SELECT SUM(n) AS s FROM t", epsilon=500).rows
    assert total == pytest.approx(1.5, abs=0.2)


def test_that_a_rounded_half_is_seen(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_TOO_SMALL", "'2.4703282292062327e-324'::numeric")
    place.run("CREATE TABLE t (id bigint, n numeric); INSERT INTO t VALUES (1, 1.5), (2, '2.47032822920623271e-324')")
    with survey(place, n=dt.between(0, 10)) as asked, pytest.raises(dt.EngineError):
        asked.ask("SELECT SUM(n) AS s FROM t", epsilon=1)


TWO = {
    "timestamp": ("2024-01-01 01:00", "2024-01-01 02:00", "date", 0),
    "timestamptz": ("2024-01-01 00:00+00", "2024-01-01 02:00+00", "date", 1),
    "text": ("2024-01-01 00:00", "2024-01-01T00:00:00", "timestamp", 0),
    "varchar(30)": ("2024-01-01 00:00:00", "2024-01-01 00:00:00.0", "timestamp", 1),
}


@pytest.mark.parametrize("type", TWO)
def test_different_identities_are_never_one_person(place: PostgresPlace, type: str) -> None:
    """A value that is not the only spelling of what it is read as is left out, as DuckDB leaves it out."""
    first, second, kind, kept = TWO[type]
    place.run(f"CREATE TABLE t (id {type}, g text); INSERT INTO t VALUES ('{first}', 'a'), ('{second}', 'b')")
    with survey(place, id=dt.column(kind=kind), g=dt.values("a", "b")) as asked:
        answer = asked.ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=500)
    assert [n for _, n in answer.rows] == [kept, 0]


PARENT = """
CREATE TABLE p (aid bigint PRIMARY KEY, pid bigint); CREATE TABLE kid () INHERITS (p);
INSERT INTO p VALUES (1, 1), (2, 2); CREATE TABLE t (id bigint); INSERT INTO t VALUES (1), (2);
"""
DOUBLES = "INSERT INTO kid SELECT 1, g FROM generate_series(3, 50) g"


def people(place: PostgresPlace) -> dt.Curator:
    parent = dt.Table(place.address("p"), unit="pid", key="aid", max_rows=1)
    child = dt.Table(place.address("t"), unit={"column": "id", "references": "p.aid"}, max_rows=1)
    return dt.open(dt.Catalog({"p": parent, "t": child}, dt.Budget(10**9)), ledger=":memory:")


def test_an_index_of_a_parent_says_nothing_of_the_rows_of_its_children(place: PostgresPlace) -> None:
    place.run(PARENT + DOUBLES)
    with pytest.raises(dt.CatalogError, match="not unique"):
        people(place)


@pytest.mark.parametrize("change", ["ALTER TABLE p DROP CONSTRAINT p_pkey", "CREATE TABLE later () INHERITS (p)"])
def test_a_lost_index_and_a_new_child_are_noticed_before_the_charge(place: PostgresPlace, change: str) -> None:
    place.run(PARENT)
    with people(place) as asked:
        asked.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
        place.run(change)
        with pytest.raises(dt.DitherError, match="Charged: nothing"):
            asked.ask("SELECT COUNT(*) AS n FROM t WHERE TRUE", epsilon=2, fresh=True)


def test_a_misspelt_table_is_told_the_nearest_name(place: PostgresPlace) -> None:
    place.run("CREATE TABLE visits (id bigint); CREATE TABLE other (id bigint)")
    for written, near in (("visit", "did you mean visits?"), ("nothing_like_it", "Fix: Name its schema")):
        table = dt.Table(place.address(written), unit="id", max_rows=1)
        with pytest.raises(dt.CatalogError) as refused:
            dt.open(dt.Catalog({"t": table}, dt.Budget(1)), ledger=":memory:")
        assert near in str(refused.value)


def test_rows_of_people_who_are_in_no_list_are_counted(place: PostgresPlace) -> None:
    place.run("CREATE TABLE p (id bigint); CREATE TABLE v (id bigint); INSERT INTO p VALUES (1); INSERT INTO v VALUES (1), (2)")
    unit = {"column": "id", "references": "p.id"}
    tables = {"p": dt.Table(place.address("p"), unit="id", max_rows=1), "v": dt.Table(place.address("v"), unit=unit)}
    (_, visits), error = report_data(dt.Catalog(tables, dt.Budget(1)))
    assert error is None
    assert (visits.unmatched, visits.parent) == (1, "p")
