"""After a server crash, everything acknowledged to a writer or reader is still there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dither.ledger.stores import postgres_sql as said
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres import Postgres
from ledger.postgres_server import Server, with_default


def row(number: int) -> Row:
    return Row(number, "committed/1", "", "{}", "", "")


@pytest.fixture
def store(postgres_url: str) -> Iterator[Postgres]:
    store = Postgres.create(postgres_url, {"left": "1"})
    yield store
    store.close()


@pytest.fixture
def lazy(postgres: Server) -> Iterator[None]:
    """Slows down the server's own log writer, which would hide a missing wait."""
    postgres.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    postgres.sql("SELECT pg_reload_conf()")
    yield
    postgres.sql("ALTER SYSTEM RESET wal_writer_delay")
    postgres.sql("SELECT pg_reload_conf()")


def told_and_kept(postgres: Server, url: str) -> tuple[int, int]:
    """Counts acknowledged entries, and those left after the server loses its memory."""
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
    """Returns what a reader sees of transactions that did not wait, and what is left after a crash."""
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
