"""The twin: everything that tools ask about the catalog, nothing of the data, and nothing of each other."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import psycopg
import pytest

from dither.errors import DitherError
from dither.server.wire.routing import Route
from server.serving import BY_WARD, COUNT
from server.wire.talking import Wire, wired
from server.wire.test_routing import HIDING

pytestmark = pytest.mark.slow
QUESTIONS = [
    COUNT,
    BY_WARD,
    "SELECT * FROM people",
    "SELECT SUM(income) FROM people",
    "TABLE people",
    "SELECT person FROM people",
]


def to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends every statement the wrong way."""
    monkeypatch.setattr("dither.server.wire.backend.route", lambda statement, tables, cursors: Route("twin", statement))


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_that_are_sent_the_wrong_way_meet_no_rows(wire: Wire, monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    to_the_twin(monkeypatch)
    with wire.connect() as link:
        found = link.execute(question).fetchall()
    assert found in ([], [(0,)], [(None,)])


def test_that_check_can_fail(wire: Wire) -> None:
    """The same question sent the right way does see people, under noise: 400 of them, and a scale of 10."""
    with wire.connect() as link:
        assert link.execute(COUNT).fetchone()[0] > 100  # type: ignore[index]


def test_the_twin_has_no_rows_in_any_table(wire: Wire) -> None:
    with wire.listening.twin._administer() as link:
        tables = [
            name
            for (name,) in link.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
            )
        ]
        assert tables == ["public.people"]
        assert [link.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables] == [0]


FORBIDDEN = [
    "SELECT pg_sleep(1)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('.')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('a', 'b')",
    "SELECT lo_create(0)",
    "SELECT lo_import('/etc/passwd')",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_locks",
    "SELECT * FROM pg_authid",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_export_snapshot()",
    "SELECT pg_reload_conf()",
    "SELECT pg_switch_wal()",
    "SELECT txid_current()",
    "CREATE TABLE x (a int)",
    "CREATE TEMP TABLE x (a int)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DO $$BEGIN PERFORM 1; END$$",
    "INSERT INTO people VALUES (1)",
    "ALTER ROLE CURRENT_USER SET statement_timeout = 0",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "COPY people TO '/tmp/x'",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY people FROM STDIN",
    "LOCK TABLE people",
    "NOTIFY a",
    "VACUUM",
    "CREATE ROLE x",
    "LOAD 'auto_explain'",
    "SELECT * INTO x FROM pg_class",
    "SELECT repeat('x', 1000000000) || repeat('y', 1000000000)",
    "SELECT count(*) FROM generate_series(1, 1000000000)",
    "SELECT * FROM generate_series(1, 100000000) ORDER BY 1 DESC",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_an_analyst_can_do_nothing_to_the_twin(wire: Wire, statement: str) -> None:
    with wire.connect() as link:
        if statement.startswith("SET"):
            link.execute(statement)  # it is ignored
            assert link.execute("SELECT current_user = session_user, current_user").fetchone()[0]  # type: ignore[index]
            assert link.execute("SELECT current_user <> 'postgres'").fetchone() == (True,)
            return
        with pytest.raises(psycopg.Error):
            link.execute(statement)


@pytest.mark.parametrize("text", HIDING)
def test_nor_can_a_statement_that_hides_from_the_routing(wire: Wire, text: str) -> None:
    with wire.connect() as link:
        link.execute(text.encode())
        assert link.execute("SHOW work_mem").fetchone() == ("4MB",)


@pytest.mark.parametrize(
    "statement", [each for each in FORBIDDEN if not each.startswith(("SET", "NOTIFY", "COPY people", "LOCK", "VACUUM"))]
)
def test_nor_could_they_if_every_statement_reached_it(wire: Wire, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """What the routing refuses is refused by the twin's own rights too, or hurts nobody."""
    to_the_twin(monkeypatch)
    with wire.connect() as link:
        if statement.startswith("ALTER ROLE"):
            return  # a role may change its own defaults; the connection's own clock still ends what takes too long
        with pytest.raises(psycopg.Error):
            link.execute(statement)


def test_that_the_twins_owner_can_do_these_things(wire: Wire) -> None:
    """The check above can fail: the same statements work for whoever has the rights."""
    with wire.listening.twin._administer() as link:
        assert link.execute("SELECT pg_ls_dir('.')").fetchall()
        assert link.execute("SELECT count(*) FROM pg_authid").fetchone()[0] > 1


def test_a_statement_that_takes_too_long_is_cancelled_whatever_the_role_says(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire.listening.twin, "seconds", 0.2)
    to_the_twin(monkeypatch)
    with wire.connect() as link:
        link.execute("SET statement_timeout = 0")
        with pytest.raises(psycopg.errors.QueryCanceled):
            link.execute("SELECT count(*) FROM pg_class a, pg_class b, pg_class c, pg_class d")
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_each_analyst_has_a_role_of_their_own_that_tells_no_name(wire: Wire) -> None:
    with wire.connect("ada") as ada, wire.connect("ben") as ben:
        roles = [link.execute("SELECT current_user::text").fetchone()[0] for link in (ada, ben)]  # type: ignore[index]
        assert len(set(roles)) == 2
        known = [
            name for (name,) in ada.execute("SELECT rolname::text FROM pg_roles WHERE rolname NOT LIKE 'pg\\_%'").fetchall()
        ]
        assert set(roles) <= set(known)
        # Keyed hashes: three letters of a name may stand in one by chance.
        assert [each for each in known if not re.fullmatch(r"postgres|analyst_[0-9a-f]{16}", each)] == []
        assert not {f"analyst_{hashlib.sha256(name).hexdigest()[:16]}" for name in (b"ada", b"ben")} & set(known)


def test_limits_of_a_role_hold(wire: Wire) -> None:
    with wire.connect() as link:
        shown = {
            name: link.execute(f"SHOW {name}").fetchone()[0]  # type: ignore[index]
            for name in (
                "statement_timeout",
                "default_transaction_read_only",
                "temp_file_limit",
                "track_activities",
                "work_mem",
            )
        }
    assert shown == {
        "statement_timeout": "2s",
        "default_transaction_read_only": "on",
        "temp_file_limit": "0",
        "track_activities": "off",
        "work_mem": "4MB",
    }


def test_a_twin_of_the_curators_own_is_filled_once_and_only_if_it_is_empty(tmp_path: Path, wire: Wire) -> None:
    """`twin` names a server. It gets the tables; another database with tables of others is left alone."""
    address = wire.listening.twin._address
    with wired(tmp_path, twin=address) as other, other.connect("ben") as link:
        assert link.execute("SELECT relname FROM pg_class WHERE relname = 'people'").fetchall() == [("people",)]
        assert link.execute(BY_WARD).fetchall()
    with wire.listening.twin._administer() as link:
        link.execute("CREATE DATABASE others")
    taken = address.replace("dbname=postgres", "dbname=others")
    with psycopg.connect(taken, autocommit=True) as link:
        link.execute("CREATE TABLE precious (a int)")
    from dither.server.wire.twin import Twin

    with pytest.raises(DitherError, match="did not make"):
        Twin(taken, b"secret").fill(wire.running.desk.survey)
    with psycopg.connect(taken, autocommit=True) as link:
        assert link.execute("SELECT count(*) FROM precious").fetchone() == (0,)


def test_a_twin_ends_with_the_server(tmp_path: Path) -> None:
    with wired(tmp_path, twin=None) as found:
        folder = Path(found.listening.twin._address.split("host=")[1].split()[0])
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0  # no other user of the machine reaches its socket
    assert not folder.exists()
