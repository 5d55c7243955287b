"""Streams in the ledger: charged once, advanced step by step, from where they are only, with their state."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.errors import ArgumentError, LedgerError
from dither.ledger import opening, state
from dither.ledger.copies import Evidence, back_up, restore
from dither.ledger.ledger import Ledger
from dither.ledger.records import StreamStep
from dither.ledger.stores.base import Row
from dither.ledger.streams import Position, StreamMovedError, decode_streams, encode_streams, state_key
from dither.ledger.verify.entries import entry
from dither.ledger.verify.report import verify
from dither.ledger.verify.walk import Walk
from ledger.asking import KEY, Clock, Fake, advanced, asked, continued, declaration, opened_stream, request, reserved
from ledger.edits import canonical


def test_a_stream_is_charged_once_and_its_steps_are_counted(ledger: Ledger) -> None:
    key = opened_stream(ledger)
    for at, step in ((0, 3), (3, 4), (4, 9)):
        advanced(ledger, key, at, step)
    found = ledger.stream(key)
    assert found is not None
    assert found == (Position(3, 9, 9, 10), "state 9")
    assert ledger.balance().sums.epsilon == Fraction("0.1") * ledger.balance().sums.unit
    assert [record.payload for record, _ in ledger.stream_entries(key)] == ["opened", "sums 0 3", "sums 3 4", "sums 4 9"]
    assert all(receipt.verify(KEY.public) for _, receipt in ledger.stream_entries(key))
    assert verify(ledger.store, receipt=ledger.stream_entries(key)[-1][1]).ok
    assert ledger.stream("0" * 64) is None
    assert ledger.stream_entries("0" * 64) == []


def test_it_continues_from_where_it_is_and_from_nowhere_else(ledger: Ledger) -> None:
    key = opened_stream(ledger)
    advanced(ledger, key, 0, 3)
    for at in (0, 2, 4):
        with pytest.raises(StreamMovedError, match="Charged: nothing"):
            reserved(ledger, **continued(key, at))
    with pytest.raises(StreamMovedError):
        opened_stream(ledger)
    with pytest.raises(LedgerError, match="no such stream"):
        reserved(ledger, **continued("0" * 64, 0))
    assert ledger.stream(key) is not None
    assert verify(ledger.store).ok


def test_of_two_that_were_reserved_one_is_entered(ledger: Ledger, clock: Clock) -> None:
    """A lease that ran out lets a second process in; the first can then enter nothing."""
    key = opened_stream(ledger)
    slow = reserved(ledger, **continued(key, 0))
    slow.touch()
    clock.move(seconds=100)
    other = Ledger(ledger.store, KEY, clock)
    advanced(other, key, 0, 1)
    with pytest.raises(LedgerError, match="given up"):
        ledger.advance(slow, "late", 1, "late state")
    assert [record.payload for record, _ in other.stream_entries(key)] == ["opened", "sums 0 1"]
    assert verify(ledger.store).ok


def test_a_stream_that_moved_before_the_commit_enters_nothing(ledger: Ledger) -> None:
    """Two reservations of one step with different digests: the commit itself compares the step."""
    key = opened_stream(ledger)
    one, two = (reserved(ledger, **continued(key, 0) | {"fresh": True}) for _ in range(2))
    one.touch()
    two.touch()
    ledger.advance(one, "one", 1, "state one")
    with pytest.raises(LedgerError, match="continued by somebody else"):
        ledger.advance(two, "two", 1, "state two")
    found = ledger.stream(key)
    assert found is not None
    assert found[1] == "state one"


def test_steps_are_paid_for_before_they_are_entered(ledger: Ledger) -> None:
    key = opened_stream(ledger)
    with pytest.raises(ArgumentError, match="charged when it is opened"):
        request(1, stream=StreamStep(key, 0))
    with pytest.raises(ArgumentError, match="charged when it is opened"):
        request(**continued(key, 0) | {"stream": StreamStep(key)})
    held = reserved(ledger, **continued(key, 0))
    held.touch()
    for step in (0, -1):
        with pytest.raises(ArgumentError, match="other steps"):
            ledger.advance(held, "x", step, "x")
    plain = reserved(ledger, 5)
    plain.touch()
    with pytest.raises(ArgumentError, match="no stream"):
        ledger.advance(plain, "x", 1, "x")


def test_a_backup_has_the_state_and_is_restored_with_it(tmp_path: Path) -> None:
    place = tmp_path / "l"
    opening.create(place).close()
    with_key = opening.open(place)
    with_key.register(declaration())
    key = opened_stream(with_key)
    advanced(with_key, key, 0, 2)
    with_key.close()
    back_up(place, tmp_path / "backup")
    place.unlink()
    restore(tmp_path / "backup", place, evidence=Evidence(), unchecked=True)
    again = opening.open(place)
    found = again.stream(key)
    assert found is not None
    assert (found[0].step, found[1]) == (2, "state 2")
    advanced(again, key, 2, 3)
    assert verify(again.store).ok
    again.close()


# --- verification ----------------------------------------------------------------------------------------------------


@pytest.fixture
def written(ledger: Ledger) -> Fake:
    """A ledger with a stream of three entries among others."""
    asked(ledger, 1)
    key = opened_stream(ledger)
    advanced(ledger, key, 0, 3)
    asked(ledger, 2, "0.01")
    advanced(ledger, key, 3, 4)
    return Fake(list(ledger.store.rows()), ledger.store.state()[0])


def test_every_edited_fact_of_a_step_is_found(written: Fake) -> None:
    assert verify(written).ok
    for place, row in enumerate(written.kept):
        if row.kind != "advanced/1":
            continue
        for name, value in json.loads(row.body).items():
            other = value + 1 if isinstance(value, int) else value[:-1] + ("0" if value[-1:] != "0" else "1")
            rows = [*written.kept]
            rows[place] = row._replace(body=canonical(json.loads(row.body) | {name: other}))
            assert not verify(Fake(rows, written.texts)).ok, name


def test_every_edited_text_of_a_stream_is_found(written: Fake) -> None:
    (key,) = decode_streams(written.texts["streams"])
    streams = decode_streams(written.texts["streams"])
    moved = [streams[key]._replace(**{name: number + 1}) for name, number in streams[key]._asdict().items()]
    texts = [{"streams": encode_streams({key: each})} for each in moved]
    texts += [{"streams": "{}"}, {"streams": "null"}, {state_key(key): "state 3"}, {state_key(key): "é"}]
    texts += [{state_key("1" * 64): "state"}, {"streams": encode_streams({"1" * 64: streams[key]} | streams)}]
    for each in texts:
        assert not verify(Fake(written.kept, written.texts | each)).ok, each
    for name in ("streams", state_key(key)):
        assert not verify(Fake(written.kept, {key: text for key, text in written.texts.items() if key != name})).ok


def found_by_walking(written: Fake, number: int, **changes: Any) -> str:
    """Returns the problems of one entry that was changed with the key: its meaning is wrong, not its hash."""
    identity = json.loads(written.texts["ledger"])
    walk = Walk(written, {name: identity[name] for name in ("ledger", "public_key")})
    for row in written.kept:
        fields = entry(row) | (changes if row.number == number else {})
        problems = "; ".join(walk.step(row, fields))
        if row.number == number:
            return problems
    return ""


def numbers(written: Fake) -> tuple[list[Row], list[Row]]:
    steps = [row for row in written.kept if row.kind == "advanced/1"]
    return steps, [written.kept[json.loads(row.body)["reserved"] - 1] for row in steps]


def test_the_rules_of_streams_are_checked(written: Fake) -> None:
    (first, second, third), _ = numbers(written)
    assert found_by_walking(written, second.number) == found_by_walking(written, first.number) == ""
    assert "nobody paid for" in found_by_walking(written, first.number, step=1)
    assert "nobody paid for" in found_by_walking(written, first.number, stream="1" * 64)
    assert "nobody paid for" in found_by_walking(written, second.number, stream="1" * 64)
    assert "does not follow" in found_by_walking(written, third.number, step=3)
    assert "does not follow" in found_by_walking(written, third.number, before=first.number)


def test_a_continuation_from_an_old_step_is_found(written: Fake) -> None:
    """As a ledger that let two processes continue from one step would have it."""
    (_, _, third), (_, reserved_second, reserved_third) = numbers(written)
    identity = json.loads(written.texts["ledger"])
    walk = Walk(written, {name: identity[name] for name in ("ledger", "public_key")})
    problems = []
    for row in written.kept:
        fields = entry(row)
        if row.number == reserved_third.number:
            fields["plan"] = entry(reserved_second)["plan"]
        problems += [problem for problem in walk.step(row, fields) if row.number == third.number]
    assert any("another step than the one it was at" in problem for problem in problems)


# --- what is stored --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"a":[1,2,3,4]}', '{"' + "1" * 64 + '":[0,1,2,3]}', "[" * 10_000])
def test_streams_that_cannot_be_read_are_told(text: str) -> None:
    with pytest.raises(LedgerError, match="cannot be read"):
        decode_streams(text)


def test_streams_are_read_back() -> None:
    streams = {"1" * 64: Position(3, 0, 3, 4), "2" * 64: Position(5, 9, 8, 10)}
    assert decode_streams(encode_streams(streams)) == streams
    assert decode_streams(None) == {}


def test_ledgers_without_streams_are_sealed_as_before() -> None:
    texts: dict[str, str | None] = dict.fromkeys(state.SEALED_KEYS, "x")
    assert "streams" not in state.sealed_text("l", texts)
    assert state.sealed_text("l", texts | {"streams": "y"}) != state.sealed_text("l", texts)
