"""A PostgreSQL server that is lost in the middle of an ask: no answer that is not kept, no release that is not paid, and
what the error says of the charge is true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import dither as dt
from dither.curator import Curator
from dither.ledger.stores.postgres import Postgres
from faults.mortal import question
from faults.steps import around
from faults.told import charged, outcome, true
from journey.paid import second_time, write
from ledger.cut_wire import Wire
from ledger.postgres_server import Server


@pytest.fixture
def wire(postgres: Server) -> Iterator[Wire]:
    wire = Wire(parse_qs(urlsplit(postgres.uri).query)["host"][0])
    yield wire
    wire.close()


@pytest.fixture
def survey(folder: Path, postgres_url: str, wire: Wire) -> Iterator[Curator]:
    """A survey whose ledger is behind the wire."""
    write(folder, epsilon=10**6)
    dt.open(folder / "survey.toml", postgres_url, key=folder / "survey.key", make=True).ledger.close()
    schema = postgres_url.partition("#")[2]
    address = f"postgresql://postgres@127.0.0.1:{wire.port}/postgres?sslmode=disable&gssencmode=disable#{schema}"
    survey = dt.open(folder / "survey.toml", address, key=folder / "survey.key")
    survey.ask(question(0), epsilon="0.1")
    yield survey
    survey.ledger.close()


@pytest.fixture
def direct(postgres_url: str, survey: Curator) -> Iterator[Postgres]:
    store = Postgres.open(postgres_url)
    yield store
    store.close()


def settled(direct: Postgres) -> None:
    """The server has done with the session that was cut."""
    with direct.transaction():
        pass


def cut_anywhere(
    survey: Curator, wire: Wire, direct: Postgres, where: str, way: str, stride: int
) -> set[tuple[str, int, bool]]:
    """What comes of asks that are cut after so many messages: what is told, how often it is paid, whether it is kept."""
    met, left = set(), 0
    while True:
        text = question(left + 1)
        survey.budget  # noqa: B018 - on a connection that is open: what is cut below is an ordinary one
        wire.cut(**{way: left})
        told = outcome(survey, text)
        if wire.whole():
            assert true(told, *charged(where)) == "answered"
            return met
        settled(direct)
        paid, kept = charged(where, whole=False)
        met.add((true(told, paid, kept), paid[text], text in kept))
        again = outcome(survey, text)
        assert again[-1] == (text in kept)  # what was kept is given, and nothing else is: it is paid for
        assert charged(where, whole=False)[0][text] == paid[text] + (text not in kept)
        left += stride


@pytest.mark.parametrize(("way", "stride"), [("asked", 1), ("told", 4), pytest.param("told", 1, marks=pytest.mark.long)])
def test_a_wire_cut_after_any_message_of_an_ask(
    way: str, stride: int, survey: Curator, wire: Wire, direct: Postgres, postgres_url: str
) -> None:
    met = cut_anywhere(survey, wire, direct, postgres_url, way, stride)
    # A connection that is lost before its transaction has the lock is opened again, so that the ask is answered. A price that
    # was perhaps written is looked for on a new connection, and given back. Cut on the way there, the word to commit had
    # reached the server or not; cut on the way back it had.
    done = {True} if way == "told" else {True, False}
    assert met == {("answered", 1, True), ("nothing", 0, False)} | {("charged", 1, was) for was in done}


@pytest.mark.parametrize("way", ["asked", "told"])
def test_a_wire_cut_while_a_price_is_given_back(
    way: str, survey: Curator, wire: Wire, direct: Postgres, postgres_url: str
) -> None:
    """The catalog changes while the price is paid, so it is cancelled; then the connection is lost as well."""
    met, left = set(), 0
    while True:
        text = question(left + 1)
        survey.budget  # noqa: B018
        around(survey.ledger, "give_up", lambda when: when == "before give_up" and wire.cut(**{way: left}))  # noqa: B023
        survey.session.current = second_time(True, False)
        told = outcome(survey, text)
        del survey.ledger.give_up  # type: ignore[attr-defined]
        whole = wire.whole()
        settled(direct)
        paid, kept = charged(postgres_url, whole=whole)
        met.add((true(told, paid, kept), paid[text]))
        if whole:
            break
        left += 1
    assert met == {("nothing", 0), ("perhaps", 0), ("charged", 1)} | ({("perhaps", 1)} if way == "asked" else set())


@pytest.mark.parametrize(("step", "told"), [("reserve", "nothing"), ("give_up", "charged"), ("commit", "charged")])
def test_a_server_that_loses_its_power(folder: Path, postgres: Server, postgres_url: str, step: str, told: str) -> None:
    """Stops the server as a power cut does: it loses its memory, but nothing that it acknowledged."""
    survey = dt.open(folder / "survey.toml", postgres_url, key=folder / "survey.key", make=True)
    survey.ask(question(0), epsilon="0.1")
    around(survey.ledger, step, lambda when: when == f"before {step}" and postgres.stop("immediate"))
    if step == "give_up":
        survey.session.current = second_time(True, False)
    try:
        found = outcome(survey, question(1))
    finally:
        postgres.start()
    del survey.ledger.__dict__[step]
    survey.session.current = lambda: True
    assert true(found, *charged(postgres_url)) == told
    assert charged(postgres_url)[0][question(0)] == 1
    assert true(outcome(survey, question(1)), *charged(postgres_url)) == "answered"
    survey.ledger.close()
