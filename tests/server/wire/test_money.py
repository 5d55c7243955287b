"""What the wire charges: looking is free, asking is charged once, and nothing else is charged."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from server.serving import BY_WARD, COUNT, ages
from server.wire.talking import Raw, Wire, fields, wired

pytestmark = pytest.mark.slow
LOOKS = 10_000 if os.environ.get("DITHER_SEARCH") else 300


def parse(text: str, name: bytes = b"") -> bytes:
    return name + b"\0" + text.encode() + b"\0\0\0"


def state(wire: Wire) -> tuple[object, ...]:
    """Everything that a charge changes: the ledger's head, the budget, and all that the file of accounts holds."""
    desk = wire.running.desk
    with closing(sqlite3.connect(desk.store.path)) as accounts:
        return desk.survey.ledger.head(), str(desk.survey.budget), tuple(accounts.iterdump())


def test_describing_a_question_never_charges(wire: Wire) -> None:
    """Each is a question of its own, so nothing is remembered from one to the next."""
    before = state(wire)
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"], options="-c dither.epsilon=0.1")
        for number in range(LOOKS):
            raw.send(b"P", parse(ages(number)))
            raw.send(b"D", b"S\0")
            raw.send(b"B", b"\0\0\0\0\0\0\0\0")
            raw.send(b"D", b"P\0")
            raw.send(b"S")
            kinds = [kind for kind, _ in raw.until(b"Z")]
            assert kinds == [b"1", b"t", b"T", b"2", b"T", b"Z"]
    assert state(wire) == before


def test_that_check_can_fail(wire: Wire) -> None:
    """The same messages with Execute do charge: the head and the budget change, and the answer is kept for its owner."""
    before = state(wire)
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"], options="-c dither.epsilon=0.1")
        raw.send(b"P", parse(ages(987)))
        raw.send(b"B", b"\0\0\0\0\0\0\0\0")
        raw.send(b"E", b"\0\0\0\0\0")
        raw.send(b"S")
        assert b"D" in [kind for kind, _ in raw.until(b"Z")]
    assert all(now != then for now, then in zip(state(wire), before, strict=True))


def test_looking_in_other_ways_never_charges(wire: Wire) -> None:
    before = wire.spent()
    with wire.connect(autocommit=False) as link:
        link.execute(f"EXPLAIN {ages(901)}")
        link.execute(f"EXPLAIN (FORMAT text) {ages(902)}")
        link.execute(f"DECLARE c CURSOR FOR {ages(903)}")  # it asks at the first FETCH
        link.execute(f"SELECT * FROM ({ages(904)}) AS q LIMIT 0")
        link.execute(f"SELECT * FROM ({ages(905)}) AS q WHERE 0 = 1")
        link.execute("SELECT DISTINCT ward FROM people")
        link.execute("SELECT ward FROM people GROUP BY ward LIMIT 1001")
        link.execute("SHOW dither.budget")
        link.execute("SELECT * FROM people LIMIT 0")
    with wire.connect() as link, pytest.raises(psycopg.Error, match="EXPLAIN ANALYZE"):
        link.execute(f"EXPLAIN ANALYZE {ages(906)}")
    assert wire.spent() == before


def test_a_question_is_paid_once_and_its_portal_read_in_parts(tmp_path: Path) -> None:
    with wired(tmp_path) as wire, wire.connect(autocommit=False) as link:
        with link.cursor("c") as cursor:
            cursor.execute(BY_WARD)
            assert wire.spent() == "0"
            first = [cursor.fetchone(), cursor.fetchone()]
        assert wire.spent() == "1/10"
        assert link.execute(BY_WARD).fetchall() == first
        assert wire.spent() == "1/10"
        link.execute("SET dither.fresh = on")
        link.execute(BY_WARD)
        assert wire.spent() == "1/5"


def test_a_token_for_replays_can_never_spend(tmp_path: Path) -> None:
    with wired(tmp_path) as wire:
        token = wire.service.token("ada", "replay")
        with wire.connect() as link:
            asked = link.execute(BY_WARD).fetchall()
        before = wire.spent()
        with wire.connect(token=token) as link:
            assert link.execute(BY_WARD).fetchall() == asked
            for text in (COUNT, f"COPY ({COUNT}) TO STDOUT", f"SELECT n FROM ({COUNT}) AS q"):
                with pytest.raises(psycopg.Error):
                    link.execute(text)
            link.execute("SET dither.fresh = on")
            with pytest.raises(psycopg.Error, match="may not spend"):
                link.execute(BY_WARD)
            link.execute("SET dither.fresh = off")
            link.execute("BEGIN")
            link.execute(f"DECLARE c CURSOR FOR {COUNT}")
            with pytest.raises(psycopg.Error):
                link.execute("FETCH ALL FROM c")
        assert wire.spent() == before


def test_a_revoked_token_ends_at_once(tmp_path: Path) -> None:
    with wired(tmp_path) as wire, wire.service.accounts() as accounts, wire.connect() as link:
        link.execute(BY_WARD)
        (ident,) = [each["id"] for each in accounts.tokens("ada")]
        accounts.revoke(ident)
        for text in (BY_WARD, "SELECT 1", "SHOW dither.budget"):
            with pytest.raises(psycopg.Error, match="revoked"):
                link.execute(text)
        with pytest.raises(psycopg.OperationalError, match="not right"):
            wire.connect()


def test_a_full_budget_is_refused_with_its_own_state(tmp_path: Path) -> None:
    with wired(tmp_path, epsilon="0.15") as wire, wire.connect() as link:
        link.execute(BY_WARD)
        with pytest.raises(psycopg.Error) as refused:
            link.execute(COUNT)
        assert refused.value.diag.sqlstate == "53400"
        assert refused.value.diag.message_detail == "Charged: nothing."


def test_a_busy_server_refuses_before_it_charges_and_a_cancelled_question_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread, one place in the line. The question that runs is answered whatever happens."""
    with wired(tmp_path, threads=1, waiting=1, waiting_each=1) as wire:
        survey, began, go_on = wire.running.desk.survey, threading.Event(), threading.Event()
        own = survey.ask

        def slow(*given: object, **terms: object) -> object:
            began.set()
            go_on.wait(30)
            return own(*given, **terms)  # type: ignore[arg-type]

        monkeypatch.setattr(survey, "ask", slow)
        links = [wire.connect() for _ in range(3)]
        found: dict[int, object] = {}

        def ask(place: int) -> None:
            try:
                found[place] = links[place].execute(ages(place)).fetchall()
            except psycopg.Error as error:
                found[place] = error

        first, second = (threading.Thread(target=ask, args=(place,)) for place in (0, 1))
        first.start()
        assert began.wait(30)
        second.start()
        while wire.running.desk.asking.waiting < 1:
            pass
        ask(2)
        assert isinstance(found[2], psycopg.Error)
        assert found[2].diag.sqlstate == "53000"
        links[0].cancel_safe()  # ignored: it runs
        links[1].cancel_safe()  # given up: it waits
        go_on.set()
        first.join(30)
        second.join(30)
        assert isinstance(found[0], list)
        assert isinstance(found[1], psycopg.errors.QueryCanceled)
        assert found[1].diag.message_detail == "Charged: nothing."
        assert wire.spent() == "1/10"
        for link in links:
            link.close()


def test_a_lost_connection_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client goes away while its question runs: it is charged once, and the answer waits."""
    with wired(tmp_path) as wire:
        survey, began, go_on = wire.running.desk.survey, threading.Event(), threading.Event()
        own = survey.ask

        def slow(*given: object, **terms: object) -> object:
            began.set()
            go_on.wait(30)
            return own(*given, **terms)  # type: ignore[arg-type]

        monkeypatch.setattr(survey, "ask", slow)
        with Raw(wire.port) as raw:
            raw.log_in("ada", wire.service.tokens["ada"], options="-c dither.epsilon=0.1")
            raw.send(b"Q", COUNT.encode() + b"\0")
            assert began.wait(30)
        go_on.set()
        while wire.running.desk.asking.running:
            pass
        assert wire.spent() == "1/10"
        with wire.connect() as link:
            link.execute(COUNT)
        assert wire.spent() == "1/10"


def test_errors_of_our_own_say_nothing_but_that(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret 4711")

    monkeypatch.setattr("dither.server.wire.asking.Questions.ask", broken)
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"], options="-c dither.epsilon=0.1")
        raw.send(b"Q", COUNT.encode() + b"\0")
        found = raw.until(b"Z")
        (told,) = [fields(body) for kind, body in found if kind == b"E"]
        assert told["M"] == "The server could not do this."
        assert not any(b"4711" in body for _, body in found)
        raw.send(b"Q", b"SELECT 1\0")
        assert [kind for kind, _ in raw.until(b"Z")] == [b"T", b"D", b"C", b"Z"]
