"""What only the PostgreSQL store has: serial whatever the server's defaults are, durable before it is told, one maker."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from dither.errors import LedgerError
from dither.ledger import postgres_sql as said
from dither.ledger.postgres import Postgres
from dither.ledger.postgres_link import Address
from dither.ledger.store import Row
from ledger.postgres_server import Server


def with_default(url: str, setting: str) -> str:
    """The same address for a role or database whose default is another one."""
    base, _, schema = url.partition("#")
    return f"{base}&options=-c%20{setting.replace(' ', '%5C%20').replace('=', '%3D')}#{schema}"


def row(number: int) -> Row:
    return Row(number, "committed/1", "", "{}", "", "")


@pytest.fixture
def store(postgres_url: str) -> Iterator[Postgres]:
    store = Postgres.create(postgres_url, {"left": "1"})
    yield store
    store.close()


# --- one after the other --------------------------------------------------------------------------------------------


def second_spender(first: Postgres, second: Postgres, postgres: Server) -> str | None:
    """What a second transaction finds left when it has begun while the first, which takes the last unit, was not over."""
    found: list[str | None] = []

    def spend() -> None:
        with second.transaction("left") as work:
            found.append(work.get("left"))

    thread = threading.Thread(target=spend)
    with first.transaction("left") as work:
        assert work.get("left") == "1"
        work.put("left", "0")
        thread.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while thread.is_alive() and not postgres.sql(waiting):
            time.sleep(0.01)
    thread.join()
    return found[0]


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_a_transaction_sees_all_before_it_at_any_default_level(
    level: str, store: Postgres, postgres: Server, postgres_url: str
) -> None:
    second = Postgres.open(with_default(postgres_url, f"default_transaction_isolation={level}"))
    assert second_spender(store, second, postgres) == "0"
    second.close()


def test_that_check_can_fail_without_the_level(
    store: Postgres, postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(said, "BEGIN", b"BEGIN")
    second = Postgres.open(with_default(postgres_url, "default_transaction_isolation=repeatable read"))
    assert second_spender(store, second, postgres) == "1"
    second.close()


def test_that_check_can_fail_without_the_lock(store: Postgres, postgres: Server, postgres_url: str) -> None:
    second = Postgres.open(postgres_url)
    second._sql.lock = second._sql.lock.replace(b" FOR UPDATE", b"")
    assert second_spender(store, second, postgres) == "1"
    second.close()


def test_a_lock_that_is_not_given_up_is_reported(store: Postgres, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said, "SESSION", said.SESSION.replace(b"30s", b"10ms"))
    second = Postgres.open(postgres_url)
    with store.transaction():
        with pytest.raises(LedgerError, match="locked by another transaction"), second.transaction():
            pass
        assert second.get("left") == "1"  # a read does not wait
    with second.transaction("left") as work:
        assert work.get("left") == "1"
    second.close()


# --- durable before it is told --------------------------------------------------------------------------------------


@pytest.fixture
def lazy(postgres: Server) -> Iterator[None]:
    """The server would otherwise write its log by itself a few times a second, and hide what was not waited for."""
    postgres.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    postgres.sql("SELECT pg_reload_conf()")
    yield
    postgres.sql("ALTER SYSTEM RESET wal_writer_delay")
    postgres.sql("SELECT pg_reload_conf()")


def told_and_kept(postgres: Server, url: str) -> tuple[int, int]:
    """Writers are told of their entries, then all that the server has only in its memory is gone: how many are there?"""
    told: list[int] = []

    def write(store: Postgres) -> None:
        for _ in range(10):
            with store.transaction("head") as work:
                number = int(work.get("head") or 0) + 1
                work.append(row(number))
                work.put("head", str(number))
            told.append(number)

    stores = [Postgres.open(url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, stores))
    postgres.stop("immediate")
    postgres.start()
    kept = [found.number for found in stores[0].rows()]
    for store in stores:
        store.close()
    assert kept == list(range(1, len(kept) + 1))
    assert sorted(told) == list(range(1, 41))
    return len(told), len(kept)


@pytest.mark.usefixtures("store", "lazy")
def test_what_was_told_survives_a_crash_of_the_server(postgres: Server, postgres_url: str) -> None:
    assert told_and_kept(postgres, postgres_url) == (40, 40)


@pytest.mark.usefixtures("store", "lazy")
def test_what_was_told_survives_where_commits_do_not_wait_by_default(postgres: Server, postgres_url: str) -> None:
    assert told_and_kept(postgres, with_default(postgres_url, "synchronous_commit=off")) == (40, 40)


@pytest.mark.usefixtures("store", "lazy")
def test_that_check_can_fail(postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said, "SETTLE", b"SELECT 1")
    told, kept = told_and_kept(postgres, postgres_url)
    assert kept < told


def read_before_and_after_a_crash(store: Postgres, postgres: Server, url: str) -> tuple[str | None, str | None]:
    """What a reader is told of transactions that nobody waited for, and what is there after a crash."""
    reader = Postgres.open(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(said, "SETTLE", b"SELECT 1")
        for number in range(20):
            with store.transaction() as work:
                work.put("left", str(number))
    told = reader.get("left")
    postgres.stop("immediate")
    postgres.start()
    kept = reader.get("left")
    reader.close()
    return told, kept


@pytest.mark.usefixtures("lazy")
def test_a_read_waits_for_what_it_tells(store: Postgres, postgres: Server, postgres_url: str) -> None:
    assert read_before_and_after_a_crash(store, postgres, postgres_url) == ("19", "19")


@pytest.mark.usefixtures("lazy")
def test_that_check_can_fail_too(store: Postgres, postgres: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said, "SETTLED", b"SELECT true")
    told, kept = read_before_and_after_a_crash(store, postgres, postgres_url)
    assert told == "19" != kept


# --- refused by the server ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_a_role_that_may_only_read(postgres_url: str) -> None:
    reader = Postgres.open(with_default(postgres_url, "default_transaction_read_only=on"))
    assert reader.state() == ({"left": "1"}, 0)
    with pytest.raises(LedgerError, match="read-only") as caught, reader.transaction() as work:
        work.put("left", "0")
    assert caught.value.charged == "nothing"
    assert reader.get("left") == "1"
    reader.close()


def spend(store: Postgres) -> None:
    with store.transaction() as work:
        work.put("left", "0")
        work.append(row(1))


@pytest.mark.parametrize(("code", "text"), [("53100", "disk is full"), ("53200", "resources"), ("XX000", "SQLSTATE XX000")])
def test_a_statement_the_server_refuses_leaves_nothing(
    code: str, text: str, store: Postgres, postgres: Server, postgres_url: str
) -> None:
    schema = postgres_url.partition("#")[2]
    body = f"BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '{code}'; END"
    postgres.sql(f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")
    made = f"CREATE TRIGGER refuse AFTER INSERT ON {schema}.entries FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
    postgres.sql(made)
    with pytest.raises(LedgerError, match=text) as caught:
        spend(store)
    assert caught.value.charged == "nothing"
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    postgres.sql(f"DROP TRIGGER refuse ON {schema}.entries")
    assert store.state() == ({"left": "1"}, 0)
    with store.transaction("left") as work:
        work.append(row(1))
    assert store.state() == ({"left": "1"}, 1)


def test_entries_can_neither_be_changed_nor_removed(store: Postgres, postgres: Server, postgres_url: str) -> None:
    schema = postgres_url.partition("#")[2]
    with store.transaction() as work:
        work.append(row(1))
    for text in ("UPDATE {}.entries SET body = ''", "DELETE FROM {}.entries", "TRUNCATE {}.entries"):
        with pytest.raises(Exception, match="entries are for ever"):
            postgres.sql(text.format(schema))


def swallow(store: Postgres) -> None:
    with store.transaction() as work:
        work.put("left", "0")
        work._sql.entry = b"SELECT 1 / %s"
        with suppress(LedgerError):
            work.entry(0)


def test_a_failure_that_was_swallowed_is_not_committed(store: Postgres) -> None:
    with pytest.raises(LedgerError, match="is over"):
        swallow(store)
    assert store.get("left") == "1"


# --- making and finding ---------------------------------------------------------------------------------------------


def test_of_many_makers_exactly_one_makes_it(postgres_url: str) -> None:
    ready = threading.Barrier(8)

    def make(name: int) -> str:
        ready.wait()
        try:
            Postgres.create(postgres_url, {"maker": str(name)}).close()
        except LedgerError as error:
            return error.what
        return str(name)

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(make, range(8)))
    store = Postgres.open(postgres_url)
    assert sorted(told)[0] == store.get("maker")
    assert sorted(told)[1:] == [f"There is a ledger {store.name} already."] * 7
    store.close()


def test_a_missing_ledger_is_not_made(postgres_url: str, postgres: Server) -> None:
    with pytest.raises(LedgerError, match="There is no ledger"):
        Postgres.open(postgres_url)
    assert not postgres.sql("SELECT 1 FROM pg_namespace WHERE nspname = %s", postgres_url.partition("#")[2])


def test_a_schema_that_is_there_without_a_ledger_is_used(postgres_url: str, postgres: Server) -> None:
    postgres.sql(f"CREATE SCHEMA {postgres_url.partition('#')[2]}")
    Postgres.create(postgres_url).close()
    Postgres.open(postgres_url).close()


def test_the_default_schema() -> None:
    assert Address.of("postgresql://db.example/survey").name == "postgresql://db.example/survey#dither"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:half#sesame@db.example/survey",
        "postgresql://me:sesame@db.example:port/survey?sesame",
        "postgresql://me:sesame@db.example/survey#pg_catalog",
        "postgresql://me:sesame@db.example/survey#Sesame; DROP",
        "postgresql://me:sesame@127.0.0.1:1/survey",
        "postgresql://me@127.0.0.1:1/survey?password=sesame",
        "mysql://me:sesame@db.example/survey",
    ],
)
def test_no_message_shows_the_password(url: str) -> None:
    with pytest.raises(LedgerError) as caught:
        Postgres.open(url)
    shown = [line for line in traceback.format_exception(caught.value) if "self." not in line]
    assert not any("sesame" in line.lower() for line in shown)


def test_no_name_shows_the_password() -> None:
    address = Address.of("postgresql://me:sesame@db.example/survey?password=sesame")
    store = Postgres(address)
    assert not any("sesame" in text for text in (repr(address), repr(store), store.name))


# --- forks ----------------------------------------------------------------------------------------------------------

FORK = """
import os, sys
from dither.errors import LedgerError
from dither.ledger.postgres import Postgres

store = Postgres.open(sys.argv[1])
def spend():
    with store.transaction("left") as work:
        work.put("left", str(int(work.get("left")) + 1))
spend()
if (child := os.fork()) == 0:
    spend()
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
spend()
with store.transaction("left") as work:
    work.put("left", "carried into the child")
    if (child := os.fork()) == 0:
        try:
            work.get("other")
        except LedgerError as error:
            os._exit(7 if "is over" in str(error) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    work.put("left", str(int(work.get("total") or 0) + 100))
store.close()
"""


def test_a_fork_has_its_own_connection(store: Postgres, postgres_url: str) -> None:
    """In a process of its own: forking the one that runs the tests would copy their threads' locks."""
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", FORK, postgres_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert store.get("left") == "100"
