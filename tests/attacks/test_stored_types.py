"""No value that PostgreSQL can store makes a question fail. Types that questions cannot use are refused by the schema alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from attacks.stored import FOREIGN, IDENTIFYING, MADE, READ_AS, RELATIONS, SPECIMENS, Stored
from attacks.test_zoo import ANSWERED, NO_KIND, statuses
from dither.engines.postgres import columns
from dither.engines.registry import read_schema
from engines.places import PostgresPlace
from ledger.postgres_server import Server


@pytest.fixture(scope="module")
def zoo(postgres: Server) -> Iterator[PostgresPlace]:
    with closing(PostgresPlace(postgres)) as place:
        yield place


def store(zoo: PostgresPlace, specimen: Stored, odd: tuple[str, ...]) -> str:
    """Makes the table t of six people with an ordinary value, and one more for each odd one. Returns its address."""
    zoo.empty()
    rows = ", ".join(f"({n}, {n % 2 == 0}, {value})" for n, value in enumerate((*[specimen.usual] * 6, *odd), 1))
    try:
        if specimen.extension in ("citext", "hstore"):
            zoo.run(f"CREATE EXTENSION IF NOT EXISTS {specimen.extension} SCHEMA public")
        zoo.run(f"{MADE.get(specimen.needs, '')}; CREATE TABLE t (pid bigint, flag boolean, x {specimen.type})")
        zoo.run(f"INSERT INTO t VALUES {rows}")
    except psycopg.Error:
        if specimen.extension:
            pytest.skip(f"the server has no {specimen.extension}")
        raise
    return zoo.address("t")


def check(specimen: Stored, without: list[str], within: list[str]) -> None:
    assert without == within, specimen.type
    assert set(within) == {ANSWERED} if specimen.kind else within[0].startswith(NO_KIND), (specimen.type, within)


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.type)
def test_odd_values_change_no_status(zoo: PostgresPlace, specimen: Stored) -> None:
    without = statuses(store(zoo, specimen, ()))
    source = store(zoo, specimen, specimen.odd)
    assert read_schema(source)["x"] == (specimen.kind or "unsupported")
    check(specimen, without, statuses(source))


DECLARED = [(specimen, kind) for specimen, kinds in READ_AS.items() for kind in kinds]


@pytest.mark.parametrize(("specimen", "kind"), DECLARED, ids=lambda part: getattr(part, "type", part))
def test_odd_values_in_a_column_of_another_kind_change_no_status(zoo: PostgresPlace, specimen: Stored, kind: str) -> None:
    found = [statuses(store(zoo, specimen, odd), kind=kind) for odd in ((), specimen.odd)]
    assert found[0] == found[1]
    assert set(found[1]) == {ANSWERED}


@pytest.mark.parametrize("specimen", IDENTIFYING, ids=lambda specimen: specimen.type)
def test_odd_values_that_identify_change_no_status(zoo: PostgresPlace, specimen: Stored) -> None:
    found = [statuses(store(zoo, specimen, odd), unit="x") for odd in ((), specimen.odd)]
    assert found[0] == found[1]
    assert set(found[1]) == {ANSWERED}


def test_that_a_cast_that_raises_is_seen(zoo: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a numeric is read as a double without a look at its size."""
    monkeypatch.setattr(columns, "_real", lambda column, stored: columns.Reading(f"{column}::float8"))
    specimen = next(each for each in SPECIMENS if each.type == "numeric")
    found = [statuses(store(zoo, specimen, odd)) for odd in ((), specimen.odd)]
    assert set(found[0]) == {ANSWERED}
    assert found[1] != found[0]


@pytest.mark.long
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.type)
def test_no_single_odd_value_changes_a_status(zoo: PostgresPlace, specimen: Stored) -> None:
    without = statuses(store(zoo, specimen, ()))
    for odd in (*specimen.odd, *(() if specimen.needs == "share" else ("NULL",))):
        check(specimen, without, statuses(store(zoo, specimen, (odd,))))


# --- relations ----------------------------------------------------------------------------------------------------


def relation(zoo: PostgresPlace, make: str, odd: tuple[str, ...]) -> str:
    zoo.empty()
    zoo.run("CREATE TABLE base (pid bigint, flag boolean, x double precision)")
    for person, value in enumerate((*["1"] * 6, *odd), 1):
        zoo.run(f"INSERT INTO base VALUES ({person}, {person % 2 == 0}, {value})")
    zoo.run(make)
    return zoo.address("t")


@pytest.mark.parametrize("name", RELATIONS)
def test_odd_values_in_any_relation_change_no_status(zoo: PostgresPlace, name: str) -> None:
    found = [statuses(relation(zoo, RELATIONS[name], odd)) for odd in ((), ("'NaN'", "'inf'", "NULL", "5e-324", "-0.0"))]
    assert found[0] == found[1]
    assert set(found[0]) == {ANSWERED}


@pytest.mark.parametrize("name", FOREIGN)
def test_odd_values_in_a_foreign_table_change_no_status(zoo: PostgresPlace, name: str) -> None:
    host = parse_qs(urlsplit(zoo.server.uri).query)["host"][0]
    make = FOREIGN[name].format(host=host, schema=zoo.schema, folder=host)
    try:
        found = [statuses(relation(zoo, make, odd)) for odd in ((), ("'NaN'", "'inf'", "NULL"))]
    except psycopg.errors.FeatureNotSupported:
        pytest.skip(f"the server has no {name}")
    assert found[0] == found[1]
    assert set(found[0]) == {ANSWERED}
