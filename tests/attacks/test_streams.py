"""Attacks on streams: reading their state, resuming from an old one, resuming twice, having a step drawn again."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.curator import Curator
from dither.exact import replay
from dither.ledger.ledger import Ledger
from dither.ledger.records import StreamStep
from dither.ledger.streams import state_key
from dither.ledger.verify.report import verify
from dither.ledger.witness import Witness
from dither.stream import Stream
from dither.streams import sealed
from dither.streams.program import Advance, Opening
from streams.visits import Visit, day, opened

SUM = "SELECT SUM(amount) FROM visits"
ROWS: list[Visit] = [(person, person % 7, 7) for person in range(5000)]


def stream_of(survey: Curator, **terms: Any) -> Stream:
    return survey.stream(SUM, **({"by": "day", "horizon": 10, "rho": "1/8"} | terms))


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Curator]:
    with open_in(tmp_path) as made:
        yield made


def open_in(folder: Path, **options: Any) -> Curator:
    return opened(ROWS, folder / "l", budget=dt.Budget(epsilon=20, delta="1e-6"), **options)


def state_of(stream: Stream) -> bytes:
    """Returns the state in clear, as only the holder of the key can."""
    position, text = stored(stream)
    return stream._resume(position, text).state()


def stored(stream: Stream) -> Any:
    found = stream._session.ledger.stream(stream._key)
    assert found is not None
    return found


# --- the state is in clear nowhere -----------------------------------------------------------------------------------


def secrets_of(state: bytes) -> list[bytes]:
    """Returns the secret numbers of a state, as texts of six digits or more."""
    fields = json.loads(state)
    numbers = [fields["total"], *fields["noise"]]
    return [text for number in numbers for text in (str(abs(number)).encode(), b"%x" % abs(number)) if len(text) > 5]


def leaks(content: bytes, secrets: list[bytes]) -> list[bytes]:
    """Returns the secrets in a file: as they are, or in base64 that is in it."""
    found = re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", content)
    decoded = b"".join(base64.b64decode(part[: len(part) // 4 * 4]) for part in found)
    return [each for each in secrets if each in content or each in decoded]


def all_files(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_no_file_entry_or_receipt_has_a_part_of_the_state(survey: Curator, tmp_path: Path) -> None:
    stream, secrets = stream_of(survey), []
    shown = b""
    for _ in range(4):
        answer = stream.next()
        secrets += secrets_of(state_of(stream))
        receipt = answer.receipt
        assert receipt is not None
        shown += receipt.to_json().encode() + repr(stream).encode() + repr(answer).encode() + str(stream.quote).encode()
    assert len(secrets) > 10
    assert leaks(all_files(tmp_path) + shown, secrets) == []


def test_that_a_state_in_clear_would_be_found(survey: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a cipher that does nothing."""
    monkeypatch.setattr(sealed, "seal", lambda state, key, context: state)
    monkeypatch.setattr(sealed, "unseal", lambda state, key, context: state)
    stream = stream_of(survey)
    stream.advance(until=day(3))
    assert leaks(all_files(tmp_path), secrets_of(state_of(stream)))


def test_released_sums_alone_do_not_give_the_noise(survey: Curator) -> None:
    """What is in the ledger is what was shown: no number of an entry is the exact sum."""
    stream = stream_of(survey)
    stream.advance(until=day(3))
    exact = json.loads(state_of(stream))["total"]
    payloads = [record.payload for record, _ in survey.ledger.stream_entries(stream._key)]
    assert [json.loads(text)["start"] for text in payloads] == [0, 0]
    assert str(exact) not in "".join(payloads)


# --- an old state, or a copy -----------------------------------------------------------------------------------------


def put(folder: Path, key: str, text: str) -> None:
    with closing(sqlite3.connect(folder / "l")) as link:
        link.execute("UPDATE state SET value = ? WHERE key = ?", (text, key))
        link.commit()


def test_an_old_state_is_refused_and_nothing_is_read(survey: Curator, tmp_path: Path) -> None:
    stream = stream_of(survey)
    stream.next()
    old = stored(stream)[1]
    stream.next()
    position, new = stored(stream)
    other = stream._seal(stream._resume(position, new), position.reserved - 1)  # of an attempt that was never entered
    for wrong in (old, other, new[:-8], "", "é", new.swapcase()):
        put(tmp_path, state_key(stream._key), wrong)
        with pytest.raises(dt.LedgerError, match=r"(?s)not the one after step 2.*Charged: nothing"):
            stream.next()
    assert len(stream.released()) == 2
    put(tmp_path, state_key(stream._key), new)
    assert stream.next().keys == (day(2),)


def test_the_state_of_another_stream_is_refused(survey: Curator, tmp_path: Path) -> None:
    one, other = stream_of(survey), stream_of(survey, max_groups=2)
    one.next()
    other.next()
    put(tmp_path, state_key(one._key), stored(other)[1])
    with pytest.raises(dt.LedgerError, match="not the one after step 1"):
        one.next()


def test_an_old_step_with_its_state_breaks_the_seal(survey: Curator, tmp_path: Path) -> None:
    stream = stream_of(survey)
    stream.next()
    old = survey.ledger.store.several("streams", state_key(stream._key))
    stream.next()
    for key, text in old.items():
        put(tmp_path, key, text)
    with pytest.raises(dt.LedgerError, match="changed by someone without its key"):
        stream.next()
    assert not verify(survey.ledger.store).ok


def test_that_a_state_bound_to_nothing_would_be_taken(survey: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without what a state is bound to, another state of the same step continues."""
    monkeypatch.setattr(Ledger, "context", lambda *_: b"")
    stream = stream_of(survey)
    stream.next()
    position = stored(stream)[0]
    forged = stream._seal(dt.RunningSum.of_terms(stream.plan.terms), position.reserved)
    put(tmp_path, state_key(stream._key), forged)
    with pytest.raises(dt.LedgerError):  # its step is still counted
        stream.next()
    running = dt.RunningSum.of_terms(stream.plan.terms)
    running.feed(0)
    put(tmp_path, state_key(stream._key), stream._seal(running, 99))
    assert stream.next().keys == (day(1),)


def test_a_copy_of_the_whole_ledger_is_noticed_by_its_witness(tmp_path: Path) -> None:
    """Without a witness it is not, as for every question: docs/known-limits.md."""
    with open_in(tmp_path) as survey:
        stream_of(survey).next()
    Witness(tmp_path / "heads").create()
    shutil.copy(tmp_path / "l", tmp_path / "copy")
    with open_in(tmp_path, witness=tmp_path / "heads") as survey:
        stream_of(survey).next()
    shutil.copy(tmp_path / "copy", tmp_path / "l")
    with open_in(tmp_path, witness=tmp_path / "heads") as survey, pytest.raises(dt.LedgerError, match="witness"):
        stream_of(survey).next()


# --- steps drawn again ----------------------------------------------------------------------------------------------


def test_a_step_is_never_drawn_again(survey: Curator) -> None:
    """An analyst who dislikes a sum cannot have another: advancing to a released step, from any session, draws nothing."""
    stream = stream_of(survey)
    first = stream.advance(until=day(2))
    for again in (stream, stream_of(survey)):
        assert len(again.advance(until=day(1))) == 0
        assert again.released().values == first.values


@pytest.mark.parametrize("person", [0, 1, 2])
def test_neighbours_see_the_same_and_sums_that_differ_by_what_is_priced(person: int, tmp_path: Path) -> None:
    """The whole path over three snapshots, late rows included, with and without one person, and with the same randomness."""
    added: list[list[Visit]] = [
        [(0, number, 9) for number in range(8)] + [(1, 1, 4)] * 5 + [(2, 5, -4)],
        [(1, 0, 5), (1, 4, 5), (2, 0, 3), (2, 4, -5), (3, 3, 8)],
        [(0, 3, 9), (1, 6, 2), (2, 7, 2), (3, 7, 8)],
    ]
    terms: dict[str, Any] = {"max_groups": 2, "max_rows": 2}
    plan, sides = None, []
    for without in (None, person):
        rows: list[Visit] = []
        seen: list[Any] = []
        for snapshot, (more, end) in enumerate(zip(added, (2, 5, 8), strict=True)):
            rows += [row for row in more if row[0] != without]
            with opened(rows, tmp_path / f"l{without}", str(snapshot), budget=dt.Budget(epsilon=20, delta="1e-6")) as survey:
                stream = stream_of(survey, **terms)
                with replay.stream(b"%d" % snapshot):
                    answer = stream.advance(until=day(end))
                seen.append((answer.keys, answer.margins, answer.charged, answer.notes, str(survey.budget)))
                plan, released = stream.plan, stream.released()
        sides.append((seen, [Fraction(value) / plan.worth for value in released.values]))
    (seen, sums), (other_seen, other) = sides
    assert seen == other_seen
    totals = [0, *(a - b for a, b in zip(sums, other, strict=True))]
    moved = [abs(b - a) for a, b in itertools.pairwise(totals) if a != b]
    assert plan is not None
    assert 0 < len(moved) <= plan.terms.contributions == 2
    assert max(moved) <= plan.terms.largest


def test_failed_steps_are_paid_for_once_and_show_nothing(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that fails shows no sum, and the next attempt starts from the state before it."""
    stream = stream_of(survey)
    stream.next()
    before = state_of(stream)
    real = Ledger.advance

    def fail(*_: Any) -> Any:
        raise dt.LedgerError("The disk is full.", fix="make room.")

    monkeypatch.setattr(Ledger, "advance", fail)
    with pytest.raises(dt.LedgerError, match=r"(?s)disk is full.*nothing more: the price of the stream"):
        stream.next()
    monkeypatch.setattr(Ledger, "advance", real)
    assert (state_of(stream), stream.step) == (before, 1)
    assert stream.next().keys == (day(1),)
    assert verify(survey.ledger.store).ok


def test_free_steps_without_a_paid_stream_are_refused(survey: Curator) -> None:
    """The ledger itself refuses a continuation of nothing, and an opening for nothing."""
    stream = stream_of(survey)
    running = dt.RunningSum.of_terms(stream.plan.terms)
    step = StreamStep(stream._key, 0)
    with pytest.raises(dt.LedgerError, match="no such stream"):
        survey.release(Advance(stream.plan, "x", 0, 1, running), "x", lambda paid: paid, stream=step, commit=lambda *_: None)  # type: ignore[arg-type,return-value]
    session = survey.session
    with pytest.raises(dt.ArgumentError, match="charged when it is opened"):
        session.request(Advance(stream.plan, "x", 0, 1, running), "x", stream=StreamStep(stream._key))
    with pytest.raises(dt.ArgumentError, match="charged when it is opened"):
        session.request(Opening(stream.plan, 1), "x", stream=step)
    assert survey.budget.spent.epsilon == 0
