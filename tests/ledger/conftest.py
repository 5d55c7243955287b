"""Fixtures of the ledger's tests. A test that takes `store` or `ledger` runs on every store there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Receipt
from dither.ledger.stores.base import Store
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.sqlite import SQLite
from ledger.asking import IDENTITY, KEY, Clock, Fake, declaration
from ledger.edits import story

STORES = ("sqlite", "memory", "postgres")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store that knows its identity and has no entries."""
    made: Store
    if request.param == "sqlite":
        made = SQLite.create(tmp_path / "survey.ledger", IDENTITY)
    elif request.param == "memory":
        made = SQLite.memory(IDENTITY)
    else:
        made = Postgres.create(request.getfixturevalue("postgres_url"), IDENTITY)
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def empty(store: Store, clock: Clock) -> Ledger:
    """A ledger before its first catalog."""
    return Ledger(store, KEY, clock)


@pytest.fixture
def ledger(empty: Ledger) -> Ledger:
    """A ledger with a pure budget of 1."""
    empty.register(declaration())
    return empty


@pytest.fixture
def mixed(empty: Ledger) -> Ledger:
    """A ledger with a budget of (1, 1e-6)."""
    empty.register(declaration(delta="1e-6"))
    return empty


@pytest.fixture
def told(clock: Clock) -> Iterator[tuple[Ledger, Receipt]]:
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, clock)
    yield ledger, story(ledger)
    ledger.close()


@pytest.fixture
def fake(told: tuple[Ledger, Receipt]) -> Fake:
    return Fake.of(told[0].store)
