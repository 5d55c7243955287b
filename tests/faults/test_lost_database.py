"""PostgreSQL as the engine, when things go wrong: lost connections, a killed server, Ctrl-C, other writers, changed tables.

A question is stopped where it hurts: after its charge, its statement waits for a lock that the test holds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import dither as dt
from dither.curator import STEPS, Curator, Steps
from dither.engines.base import Engine
from dither.engines.postgres import connection as connection_file
from dither.engines.postgres.connection import Connection, Row
from dither.errors import ClosedError, EngineError
from dither.query.nodes import Column
from dither.query.work import Bins, Cell, Distinct, Group, Quantised, Sums, Work
from engines.places import READER, PostgresPlace
from engines.tables import KINDS, SECRET
from engines.works import plain
from faults.told import charged, outcome, true
from journey.paid import CATALOG, COUNT, MEANS, people
from journey.preloaded import ROOT
from ledger.postgres_server import Server

PEOPLE = {"person": "int", "household": "int", "age": "int", "region": "text", "town": "text"}


@pytest.fixture(scope="module")
def database(postgres: Server) -> Iterator[PostgresPlace]:
    with closing(PostgresPlace(postgres)) as place:
        yield place


@pytest.fixture
def folder(database: PostgresPlace, tmp_path: Path) -> Path:
    """The survey of journey/paid.py with its people in PostgreSQL."""
    database.make("people", PEOPLE)
    database.fill("people", people().to_dict("records"), PEOPLE)
    text = CATALOG.format(epsilon=10, more="", unit="person", high=120)
    written = text.replace('"people.parquet"', f'"{database.address("people")}"')
    (tmp_path / "survey.toml").write_text(written, encoding="utf-8")
    return tmp_path


@pytest.fixture
def survey(folder: Path) -> Iterator[Curator]:
    with dt.open(folder / "survey.toml", folder / "survey.ledger", make=True) as session:
        yield session


# --- a statement that waits -------------------------------------------------------------------------------------


def waiting(database: PostgresPlace) -> list[int]:
    """Returns the server's processes that wait for a lock, with a statement of the engine's role."""
    listed = "SELECT pid FROM pg_stat_activity WHERE usename = %s AND wait_event_type = 'Lock' AND state = 'active'"
    return [row[0] for row in database.server.sql(listed, READER)]


def until(met: Callable[[], object]) -> None:
    """Waits for a condition. A minute is more than any machine needs."""
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


@contextmanager
def locked(database: PostgresPlace) -> Iterator[None]:
    """Lets no statement read the people."""
    with psycopg.connect(database.server.uri) as link:
        link.execute(f"LOCK TABLE {database.schema}.people IN ACCESS EXCLUSIVE MODE".encode())
        yield
        if not link.closed:
            link.rollback()


def stopped(survey: Curator, database: PostgresPlace, stop: Callable[[int], object], question: str = COUNT) -> BaseException:
    """Asks, and stops the server's process while the question's statement runs there. Returns what the analyst is told."""

    def hold(engine: Engine, work: Work) -> Sequence[Group]:
        with locked(database):
            helper = threading.Thread(target=lambda: (until(lambda: waiting(database)), stop(waiting(database)[0])))
            helper.start()
            try:
                return STEPS.run(engine, work)
            finally:
                helper.join()

    survey.steps = Steps(run=hold)
    try:
        with pytest.raises(dt.DitherError) as told:
            survey.ask(question, epsilon="0.1")
    finally:
        survey.steps = STEPS
    return told.value


WAYS = {"terminated": "pg_terminate_backend", "cancelled": "pg_cancel_backend"}


@pytest.mark.parametrize("way", WAYS)
def test_a_question_whose_connection_is_lost_stays_charged_and_closes(
    way: str, survey: Curator, database: PostgresPlace, folder: Path
) -> None:
    told = stopped(survey, database, lambda pid: database.server.sql(f"SELECT {WAYS[way]}(%s)", pid))
    assert isinstance(told, EngineError)
    assert str(told) == str(EngineError("ε = 0.1"))
    assert told.__context__ is None
    assert survey.closed
    assert charged(str(folder / "survey.ledger"))[0][COUNT] == 1
    with pytest.raises(ClosedError):
        survey.ask(MEANS, epsilon="0.1")
    survey.reopen()
    assert survey.ask(COUNT, epsilon="0.1").rows  # on a new connection
    assert charged(str(folder / "survey.ledger"))[0][COUNT] == 2


def test_a_server_that_is_killed_during_a_question(survey: Curator, database: PostgresPlace, folder: Path) -> None:
    server = database.server
    try:
        told = stopped(survey, database, lambda pid: server.stop("immediate"))
        assert str(told) == str(EngineError("ε = 0.1"))
        survey.reopen()
        assert true(outcome(survey, MEANS), *charged(str(folder / "survey.ledger"))) == "nothing"  # there is no server
    finally:
        server.start()
    database.make("people", PEOPLE)  # a table that is not logged is empty after a crash
    database.fill("people", people().to_dict("records"), PEOPLE)
    with dt.open(folder / "survey.toml", folder / "survey.ledger") as again:
        assert true(outcome(again, MEANS), *charged(str(folder / "survey.ledger"))) == "answered"


def test_a_connection_that_is_lost_between_questions_is_opened_again(survey: Curator, database: PostgresPlace) -> None:
    survey.ask(COUNT, epsilon="0.1")
    ended = database.server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", READER)
    assert ended
    assert survey.ask(MEANS, epsilon="0.1").rows
    assert not survey.closed


# --- Ctrl-C -----------------------------------------------------------------------------------------------------


ASKING = """
import sys
import dither as dt
from dither.curator import STEPS, Steps

def announced(engine, work):
    print("charged", flush=True)
    sys.stdin.readline()
    return STEPS.run(engine, work)

survey = dt.open("survey.toml", "survey.ledger")
survey.steps = Steps(run=announced)
try:
    survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
except KeyboardInterrupt as stopped:
    print(stopped, flush=True)
"""


@contextmanager
def asking(folder: Path, database: PostgresPlace) -> Iterator[subprocess.Popen[str]]:
    """A process with a question whose statement waits on the server."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    line = [sys.executable, "-c", ASKING]
    with subprocess.Popen(line, cwd=folder, env=environment, text=True, **pipes) as child:  # type: ignore[call-overload]
        try:
            assert child.stdout.readline() == "charged\n"
            with locked(database):
                child.stdin.write("\n")
                child.stdin.flush()
                until(lambda: waiting(database))
                yield child
        finally:
            child.kill()


def test_an_interrupt_cancels_the_statement_on_the_server(survey: Curator, folder: Path, database: PostgresPlace) -> None:
    with asking(folder, database) as child:
        child.send_signal(signal.SIGINT)
        until(lambda: not waiting(database))  # while the lock is still held
        assert "stays charged" in child.communicate(timeout=60)[0]
    assert not survey.closed


def test_that_a_statement_nobody_cancels_would_be_seen(survey: Curator, folder: Path, database: PostgresPlace) -> None:
    """The twin: a killed process cancels nothing."""
    with asking(folder, database) as child:
        child.kill()
        child.wait(60)
        assert waiting(database)
    until(lambda: not waiting(database))


# --- rights -----------------------------------------------------------------------------------------------------


def made_so_far(database: PostgresPlace) -> list[tuple[object, ...]]:
    return database.server.sql("SELECT relnamespace::regnamespace::text, relname FROM pg_class ORDER BY 1, 2")


def test_a_role_that_can_only_select_is_enough_and_nothing_is_made(folder: Path, database: PostgresPlace) -> None:
    with psycopg.connect(database.server.uri, user=READER) as link, pytest.raises(psycopg.errors.InsufficientPrivilege):
        link.execute("CREATE TEMPORARY TABLE mine (x int)")
    with psycopg.connect(database.server.uri, user=READER) as link, pytest.raises(psycopg.errors.InsufficientPrivilege):
        link.execute(f"DELETE FROM {database.schema}.people".encode())
    before = made_so_far(database)
    with dt.open(folder / "survey.toml", folder / "survey.ledger", make=True) as survey:
        survey.quote(MEANS, epsilon="0.1")
        assert made_so_far(database) == before
        for question in (MEANS, COUNT, "SELECT COUNT(DISTINCT town) AS n, MEDIAN(age) AS m FROM people"):
            survey.ask(question, epsilon="0.1")
        assert made_so_far(database) == before
    assert database.server.sql(f"SELECT count(*) FROM {database.schema}.people") == [(400,)]


def test_a_role_without_rights_is_told_what_to_grant(folder: Path, database: PostgresPlace) -> None:
    database.run(f"REVOKE SELECT ON people FROM {READER}")
    with pytest.raises(dt.CatalogError, match="SELECT") as told:
        dt.open(folder / "survey.toml", folder / "survey.ledger", make=True)
    assert "Charged: nothing" in str(told.value)


def test_rights_on_the_declared_columns_are_enough(folder: Path, database: PostgresPlace) -> None:
    database.run(f"REVOKE SELECT ON people FROM {READER}; GRANT SELECT (person, age, region, town) ON people TO {READER}")
    with dt.open(folder / "survey.toml", folder / "survey.ledger", make=True) as survey:
        assert survey.ask(MEANS, epsilon="0.1").rows


def test_rights_that_are_taken_away_are_noticed_before_the_charge(
    survey: Curator, folder: Path, database: PostgresPlace
) -> None:
    database.run(f"REVOKE SELECT ON people FROM {READER}")
    assert true(outcome(survey, MEANS), *charged(str(folder / "survey.ledger"))) == "nothing"
    assert not survey.closed


# --- other writers ----------------------------------------------------------------------------------------------

X = Quantised(Column("i"), 0, 1, 10)
THREE = Work(plain("t", "t"), (), None, False, None, (Sums((Cell(constant=1),), 1), Bins(X, 1), Distinct(Column("i"), 9)))


def written_between(database: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """Runs three statements of one Work while someone adds rows after the first. Returns how many rows each one saw."""
    table = [{**dict.fromkeys(KINDS), "who": i, "i": i} for i in range(5)]
    engine, right = database.engine({"t": table}), Connection.rows
    engine.prepare(THREE)
    stored = database.server.sql("SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ '^t_'", database.schema)

    def rows(self: Connection, text: str, values: Sequence[object] = ()) -> list[Row]:
        found = right(self, text, values)
        for (name,) in stored:
            database.server.sql(f"INSERT INTO {database.schema}.{name} (who, i) VALUES (9, 9)")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "rows", rows)
        (group,) = engine.run(THREE, SECRET)
    (count,), bins, different = group.measures  # type: ignore[misc]
    return count, len(bins), different  # type: ignore[arg-type]


def test_all_statements_of_a_question_see_one_moment(database: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert written_between(database, monkeypatch) == (5, 5, 5)


def test_that_another_isolation_would_be_seen(database: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: each statement sees what was committed before it."""
    monkeypatch.setattr(connection_file, "_BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY")
    assert written_between(database, monkeypatch) == (5, 6, 6)


def test_all_works_of_a_question_see_one_moment(survey: Curator, database: PostgresPlace) -> None:
    """Everybody but one leaves after the first Work: the estimates of what was left out know nothing of it."""
    seen: list[list[Group]] = []

    def leave(engine: Engine, work: Work) -> Sequence[Group]:
        found = STEPS.run(engine, work)
        seen.append(list(found))
        database.run("DELETE FROM people WHERE person > 0")
        return found

    survey.steps = Steps(run=leave)
    answer = survey.ask([COUNT, "SELECT SUM(age) AS s, COUNT(*) AS n FROM people"], epsilon="2")
    assert len(seen) > 1
    assert all(abs(row[-1] - 400) < 100 for each in answer for row in each.rows)


# --- changed tables -----------------------------------------------------------------------------------------------

CHANGES = {
    "type": "ALTER TABLE people ALTER COLUMN age TYPE text",
    "narrower type": "ALTER TABLE people ALTER COLUMN age TYPE integer",
    "dropped column": "ALTER TABLE people DROP COLUMN town",
    "renamed column": "ALTER TABLE people RENAME COLUMN age TO years; ALTER TABLE people RENAME COLUMN household TO age",
    "renamed table": "ALTER TABLE people RENAME TO others",
    "another table": "DROP TABLE people; CREATE TABLE people (person bigint, age bigint, region text, town text)",
    "view": (
        "ALTER TABLE people RENAME TO others;CREATE VIEW people AS SELECT person, 1::bigint AS age, region, town FROM others"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_schema_is_noticed_before_the_charge(
    change: str, survey: Curator, folder: Path, database: PostgresPlace
) -> None:
    survey.ask(COUNT, epsilon="0.1")
    database.run(f"DROP TABLE IF EXISTS others CASCADE; {CHANGES[change]}")
    try:
        told = outcome(survey, MEANS)
        assert true(told, *charged(str(folder / "survey.ledger"))) == "nothing", told
        assert not survey.closed
    finally:
        database.run("DROP VIEW IF EXISTS people" if change == "view" else "DROP TABLE IF EXISTS people, others CASCADE")


def test_rows_that_come_and_go_are_the_curators_snapshot(survey: Curator, database: PostgresPlace) -> None:
    """Nothing is said of rows: that would tell of them."""
    survey.ask(COUNT, epsilon="0.1")
    database.run("DELETE FROM people WHERE person > 10")
    assert survey.ask(MEANS, epsilon="0.1").rows
