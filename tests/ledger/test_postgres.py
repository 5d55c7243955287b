"""What only the PostgreSQL store has: serial whatever the server's defaults are, clear about refusals, made once."""

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
from dither.ledger.stores import postgres_sql as said
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.postgres_wire import Address
from ledger.postgres_server import Server, with_default


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
from dither.ledger.stores.postgres import Postgres

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
