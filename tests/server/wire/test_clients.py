"""Real clients ask over the wire. Each of them is used as its own page shows it."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import psycopg
import pytest

from server.serving import BY_WARD, COUNT
from server.wire.talking import Wire

pytestmark = pytest.mark.slow
TOTAL = "SELECT COUNT(*) AS n FROM people WHERE age > {} AND ward = {}"
WARDS = ["north", "south"]


def test_psql_shows_an_answer_and_its_price(wire: Wire) -> None:
    found = wire.psql(BY_WARD)
    assert found.returncode == 0, found.stderr
    assert "north" in found.stdout
    assert "(2 rows)" in found.stdout
    assert "NOTICE:  ± at 95 % confidence; charged" in found.stderr or "charged nothing" in found.stderr


def test_psql_marks_the_place_of_a_mistake(wire: Wire) -> None:
    found = wire.psql("SELECT ward, SUM(income) FROM people GROUP BY ward")
    assert found.stderr.splitlines() == [
        "ERROR:  SUM(income) has no bounds, so one person could change it without limit.",
        "LINE 1: SELECT ward, SUM(income) FROM people GROUP BY ward",
        "                         ^",
        "DETAIL:  Charged: nothing.",
        "HINT:  declare bounds for people.income in the catalog, or write SUM(CLAMP(income, low, high)) "
        "with your own low and high.",
    ]


@pytest.mark.parametrize(
    "command", ["\\d", "\\d people", "\\d+ people", "\\dt", "\\l", "\\dn", "\\du", "\\df", "\\dp", "\\conninfo"]
)
def test_psql_describes_the_tables(wire: Wire, command: str) -> None:
    found = wire.psql(command)
    assert (found.returncode, found.stderr) == (0, "")
    if "people" in command:
        assert "double precision" in found.stdout
    if "+" in command:
        assert "between 0 and 100" in found.stdout
        assert "values: north, south" in found.stdout


def test_psql_is_refused_rows_and_told_what_to_ask(wire: Wire) -> None:
    found = wire.psql("SELECT * FROM people LIMIT 5")
    assert "ERROR:  This asks for rows, and rows are never shown." in found.stderr
    assert "HINT:  ask for aggregates" in found.stderr


def test_psql_explains_sets_and_shows(wire: Wire) -> None:
    found = wire.psql(f"EXPLAIN {BY_WARD}", "SET dither.margins = on", BY_WARD, "SHOW dither.budget", "SHOW dither.epsilon")
    assert "ε = 0.1, charged before any row is read" in found.stdout
    assert "n_margin" in found.stdout
    assert "total ε = 100000" in found.stdout
    assert "SET" in found.stdout.split()


def test_psql_without_a_price_is_told_how_to_name_one(wire: Wire) -> None:
    found = wire.psql(COUNT, env={"PGOPTIONS": ""})
    assert "HINT:  write SET dither.epsilon = 0.1, or SET dither.margin = 50 for the smallest price." in found.stderr


def test_psql_with_a_wrong_token_is_told_what_the_password_is(wire: Wire) -> None:
    found = wire.psql("SELECT 1", who="ben", env={"PGPASSWORD": "dth_" + "x" * 43})
    assert "FATAL:  This login is not right." in found.stderr
    assert "HINT:  The password is a token" in found.stderr


def test_psycopg_binds_parameters_in_text_and_binary(wire: Wire) -> None:
    with wire.connect() as link:
        asked = TOTAL.format("%s", "%s")
        text = link.execute(asked, (30, "north")).fetchall()
        assert link.execute(asked, (30, "north"), binary=True).fetchall() == text
        assert link.execute(TOTAL.format("%b", "%t"), (30, "north")).fetchall() == text
        assert link.execute(TOTAL.format(30, "'north'")).fetchall() == text  # the same question: its stored answer
        for _ in range(7):
            assert link.execute(asked, (30, "north"), prepare=True).fetchall() == text


def test_psycopg_gets_the_types_of_the_plan(wire: Wire) -> None:
    with wire.connect() as link:
        for binary in (False, True):
            found = link.execute("SELECT ward, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY ward", binary=binary)
            assert [each.type_code for each in found.description or ()] == [25, 20, 701]
            ward, n, a = found.fetchall()[0]
            assert (type(ward), type(n), type(a)) == (str, int, float)


def test_psycopg_reads_a_server_cursor_and_a_pipeline(wire: Wire) -> None:
    with wire.connect(autocommit=False) as link:
        with link.cursor("c") as cursor:
            cursor.execute(BY_WARD)
            assert [each.name for each in cursor.description or ()] == ["ward", "n"]
            assert [cursor.fetchone()[0], *(ward for ward, _ in cursor.fetchall())] == WARDS  # type: ignore[index]
        with link.cursor("d") as cursor:
            cursor.execute(TOTAL.format("%s", "%s"), (30, "north"))
            assert len(cursor.fetchall()) == 1
        with link.pipeline():
            first, second = link.execute(BY_WARD), link.execute("SELECT relname FROM pg_class WHERE relname = %s", ("people",))
        assert [ward for ward, _ in first.fetchall()] == WARDS
        assert second.fetchall() == [("people",)]


def test_a_question_that_fails_in_a_transaction_ends_it_as_in_postgresql(wire: Wire) -> None:
    with wire.connect(autocommit=False) as link:
        with pytest.raises(psycopg.Error) as refused:
            link.execute("SELECT SUM(income) FROM people")
        diag = refused.value.diag
        assert (diag.sqlstate, diag.statement_position, diag.message_detail) == ("42000", "12", "Charged: nothing.")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            link.execute(BY_WARD)
        link.rollback()
        with link.transaction():
            with pytest.raises(psycopg.Error), link.transaction():
                link.execute("SELECT income FROM people")
            assert [ward for ward, _ in link.execute(BY_WARD).fetchall()] == WARDS


def test_psycopg_copies_an_answer(wire: Wire) -> None:
    with wire.connect() as link:
        rows = link.execute(BY_WARD).fetchall()
        with link.cursor().copy(f"COPY ({BY_WARD}) TO STDOUT") as text:
            assert list(text.rows()) == [(ward, str(n)) for ward, n in rows]
        with link.cursor().copy(f"COPY ({BY_WARD}) TO STDOUT (FORMAT binary)") as binary:
            binary.set_types(["text", "int8"])
            assert list(binary.rows()) == rows
        with link.cursor().copy(f"COPY ({BY_WARD}) TO STDOUT WITH (FORMAT csv, HEADER)") as csv:
            assert b"".join(csv).decode().splitlines() == ["ward,n", *(f"{ward},{n}" for ward, n in rows)]


def test_asyncpg_asks_in_binary(wire: Wire) -> None:
    import asyncpg

    told = wire.address()
    told["database"] = told.pop("dbname")

    async def talk() -> list[Any]:
        link = await asyncpg.connect(**told, server_settings={"dither.epsilon": "0.1"})
        found = [await link.fetch(BY_WARD), await link.fetchval(TOTAL.format("$1", "$2"), 30, "north")]
        found.append(await link.fetch("SELECT relname FROM pg_class WHERE relname = $1", "people"))
        async with link.transaction():
            found.append([each["ward"] async for each in link.cursor(BY_WARD)])
        await link.reset()
        with pytest.raises(asyncpg.PostgresError) as refused:
            await link.fetch("SELECT SUM(income) FROM people")
        found.append((refused.value.sqlstate, refused.value.position, refused.value.detail))
        await link.close()
        return found

    rows, total, catalog, read, refused = asyncio.run(talk())
    assert [each["ward"] for each in rows] == read == WARDS
    assert isinstance(total, int)
    assert [each["relname"] for each in catalog] == ["people"]
    assert refused == ("42000", "12", "Charged: nothing.")


def test_pg8000_asks(wire: Wire) -> None:
    import pg8000.dbapi

    told = wire.address()
    told["database"] = told.pop("dbname")
    link = pg8000.dbapi.connect(**told)
    cursor = link.cursor()
    cursor.execute("SET dither.epsilon = 0.1")
    cursor.execute(TOTAL.format("%s", "%s"), (30, "north"))
    (total,) = cursor.fetchone()
    assert isinstance(total, int)
    assert any(b"charged" in notice[b"M"] for notice in link.notices)
    cursor.execute(BY_WARD)
    assert [ward for ward, _ in cursor.fetchall()] == WARDS
    link.close()


@pytest.mark.parametrize("driver", ["psycopg", "pg8000"])
def test_sqlalchemy_reflects_and_asks(wire: Wire, driver: str) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(wire.url(driver=f"postgresql+{driver}"))
    with engine.connect() as link:
        link.execute(sa.text("SET dither.epsilon = 0.1"))
        known = sa.MetaData()
        known.reflect(link)
        people = known.tables["people"]
        assert {each.name: str(each.type) for each in people.columns} == {
            "person": "BIGINT",
            "ward": "TEXT",
            "age": "BIGINT",
            "income": "DOUBLE PRECISION",
        }
        assert people.c.age.comment == "between 0 and 100"
        asked = sa.select(people.c.ward, sa.func.count().label("n")).where(people.c.age > 18).group_by(people.c.ward)
        assert [ward for ward, _ in link.execute(asked.order_by(people.c.ward).limit(10))] == WARDS
        inspector = sa.inspect(link)
        assert inspector.get_table_names() == ["people"]
        assert inspector.get_foreign_keys("people") == []
    engine.dispose()


def test_pandas_reads_an_answer_and_no_table(wire: Wire) -> None:
    import pandas as pd
    import sqlalchemy as sa

    engine = sa.create_engine(wire.url(driver="postgresql+psycopg"), connect_args={"options": "-c dither.epsilon=0.1"})
    frame = pd.read_sql(BY_WARD, engine)
    assert (list(frame.columns), list(frame.ward), str(frame.n.dtype)) == (["ward", "n"], WARDS, "int64")
    with pytest.raises(Exception, match="rows are never shown"):
        pd.read_sql_table("people", engine)
    engine.dispose()


def test_adbc_reads_arrow(wire: Wire) -> None:
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(wire.url() + "?options=-c%20dither.epsilon%3D0.1") as link, link.cursor() as cursor:
        cursor.execute(BY_WARD)
        found = cursor.fetch_arrow_table()
        assert (found.column_names, found.column("ward").to_pylist()) == (["ward", "n"], WARDS)
        assert str(found.schema.field("n").type) == "int64"
        assert link.adbc_get_table_schema("people").names == ["person", "ward", "age", "income"]


def test_dates_and_other_kinds_come_in_both_formats() -> None:
    """The kinds that the test's table lacks, through the same functions."""
    from dither.server.wire import protocol

    day, moment = datetime.date(1969, 7, 20), datetime.datetime(1969, 7, 20, 20, 17, 40, 5)
    for value, oid in ((day, protocol.DATE), (moment, protocol.TIMESTAMP), (True, protocol.BOOL), (2.5, protocol.FLOAT8)):
        assert protocol.parameter(protocol.binary(value, oid), 1, oid) == value
        assert protocol.parameter(protocol.text(value), 0, oid) == value
    for value in (0, 1, -1, 9999, 10_000, -(10**30) - 7):
        assert protocol.parameter(protocol.binary(value, protocol.NUMERIC), 1, protocol.NUMERIC) == value


def test_statements_of_one_text_see_each_others_cursors_and_names(wire: Wire) -> None:
    """What psqlODBC sends: a cursor is declared and read in one text, and DEALLOCATE ends what a message prepared."""
    with wire.connect() as link:
        for _ in range(2):
            found = link.pgconn.exec_(f'BEGIN;declare "C" cursor with hold for {BY_WARD};fetch 1 in "C"'.encode())
            assert (found.ntuples, found.get_value(0, 0)) == (1, b"north")
            link.execute("ROLLBACK")  # undoes the cursor too
        link.execute(f'BEGIN; DECLARE "C" CURSOR WITH HOLD FOR {BY_WARD}; COMMIT')
        assert [ward for ward, _ in link.execute('FETCH ALL FROM "C"').fetchall()] == WARDS
        link.execute('CLOSE "C"')
        for text in (BY_WARD, "SELECT 1"):
            link.pgconn.prepare(b"p", text.encode())
            link.execute('DEALLOCATE "p"')
            assert link.pgconn.prepare(b"p", text.encode()).error_message == b""
            link.execute("DEALLOCATE ALL")
