"""Verification finds every edit, and no problem in an unedited ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.errors import LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Receipt, message
from dither.ledger.records import hash_of
from dither.ledger.stores.base import Row
from dither.ledger.stores.postgres import Postgres
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from ledger.asking import IDENTITY, KEY, Clock, Fake, identity
from ledger.edits import canonical, ended, rechained, story
from ledger.postgres_server import Server


def test_an_untouched_ledger_has_no_problems(empty: Ledger) -> None:
    receipt = story(empty)
    report = verify(empty.store, head=str(empty.head()), receipt=receipt, public_key=KEY.public)
    assert report.problems == ()
    assert report.ok
    assert report.entries == empty.balance().entries == 18
    assert report.head == str(empty.head())
    assert report.open == 1
    assert report.kinds == {
        "opened/1": 1,
        "catalog/1": 2,
        "reserved/1": 7,
        "committed/1": 3,
        "cancelled/1": 1,
        "replayed/1": 1,
        "failed/1": 1,
        "reopened/1": 1,
        "lapsed/1": 1,
    }
    assert report.spent["epsilon"] == Fraction(2013, 100)


def test_an_untouched_copy_has_none_either(fake: Fake) -> None:
    """The twin of the tests below: an unedited copy has no problems."""
    assert verify(fake).problems == ()


# --- one field, one row -------------------------------------------------------------------------------------------


def edits(value: Any) -> list[Any]:
    """Other values in the place of one, some of the same type."""
    if isinstance(value, str):
        return [value + "x", value[:-1], value.swapcase(), "", None, 0] if value else ["x"]
    return [value + 1, value - 1, -value, str(value), 0]


@pytest.mark.slow
def test_every_edited_field_is_found(fake: Fake) -> None:
    tried = 0
    for place, row in enumerate(fake.kept):
        for name in Row._fields:
            for value in edits(getattr(row, name)):
                if value != getattr(row, name) or type(value) is not type(getattr(row, name)):
                    rows = [*fake.kept[:place], row._replace(**{name: value}), *fake.kept[place + 1 :]]
                    if all(isinstance(each.number, int) for each in rows):
                        assert not verify(Fake(rows, fake.texts)).ok, (row.number, name, value)
                        tried += 1
    assert tried > 300


def leaves(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else None
    if inner is None or not found:
        yield path, found
        return
    for key, value in inner:
        yield from leaves(value, (*path, key))


def changed(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(found) if isinstance(found, dict) else list(found)
    copy[path[0]] = changed(found[path[0]], path[1:], value)
    return copy


def other(value: Any) -> Any:
    """A value of the same type that is another one and still looks right."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "1/3"
    if isinstance(value, str) and len(value) >= 16 and not set(value) - set("0123456789abcdef"):
        return ("1" if value[0] == "0" else "0") + value[1:]
    return str(Fraction(value) + 1) if isinstance(value, str) and value[:1].isdigit() and "-" not in value else f"{value}x"


@pytest.mark.slow
def test_every_edited_fact_is_found_even_if_its_hash_is_made_again(fake: Fake) -> None:
    tried = 0
    for place, row in enumerate(fake.kept):
        found = json.loads(row.body)
        for path, value in leaves(found):
            body = canonical(changed(found, path, other(value)))
            assert body != row.body
            rows = [*fake.kept[:place], row._replace(body=body, hash=hash_of(body)), *fake.kept[place + 1 :]]
            assert not verify(Fake(rows, fake.texts)).ok, (row.number, path)
            tried += 1
    assert tried > 150


def test_a_chain_that_is_made_again_is_not_signed(fake: Fake) -> None:
    for place in range(len(fake.kept)):
        rows = fake.kept[:place] + fake.kept[place + 1 :]
        assert not verify(ended(fake, rechained(rows))).ok, place
    assert rechained(fake.kept) == fake.kept  # the twin: making it again as it was changes nothing


@pytest.mark.parametrize("again", [False, True])
def test_every_dropped_swapped_or_doubled_row_is_found(fake: Fake, again: bool) -> None:
    count = len(fake.kept)
    for place in range(count):
        row, before, after = fake.kept[place], fake.kept[:place], fake.kept[place + 1 :]
        attempts = [before + after, [*before, row, row, *after], [*before, *after, row]]
        attempts += [[*before, after[0], row, *after[1:]]] if after else []
        for rows in attempts:
            if rows != fake.kept:
                made = rechained(rows) if again else rows
                assert not verify(ended(fake, made) if again else Fake(made, fake.texts)).ok, place


@pytest.mark.parametrize("number", [0, -4, -(2**62) - 1, -(2**63)])
def test_a_row_below_the_first_is_found(fake: Fake, number: int) -> None:
    assert not verify(Fake([fake.kept[3]._replace(number=number), *fake.kept], fake.texts)).ok


def test_every_edited_text_beside_the_entries_is_found(fake: Fake) -> None:
    books = {"ledger", "head", "caps", "catalog", "total", "history", "analyst:ada", "analyst:bob", "rolls", "seal"}
    books |= {"leases", "fuse"}
    rolls = {f"roll:{group}" for group in json.loads(fake.texts["rolls"])}
    assert books | rolls == set(fake.texts)
    for key, text in fake.texts.items():
        assert not verify(Fake(fake.kept, {name: kept for name, kept in fake.texts.items() if name != key})).ok, key
        if key == "seal":
            for place in range(128):
                edited = text[:place] + ("1" if text[place] == "0" else "0") + text[place + 1 :]
                assert not verify(Fake(fake.kept, fake.texts | {key: edited})).ok
            continue
        for path, value in leaves(json.loads(text)):
            edited = canonical(changed(json.loads(text), path, other(value)))
            assert not verify(Fake(fake.kept, fake.texts | {key: edited})).ok, (key, path)
        for edited in ("", "{}", "[]", "null", text + " "):
            assert not verify(Fake(fake.kept, fake.texts | {key: edited})).ok, (key, edited)
    assert not verify(Fake(fake.kept, fake.texts | {"analyst:eve": '{"epsilon":-1}'})).ok


# --- an older copy ------------------------------------------------------------------------------------------------


def older(length: int, fake: Fake, key: Key | None = None) -> Fake:
    """The ledger as it was after `length` entries, with the texts it had then; its seal only with the key."""
    from dither.ledger.verify.entries import entry
    from dither.ledger.verify.walk import Walk

    found = json.loads(fake.texts["ledger"])
    walk = Walk(fake, {name: found[name] for name in ("ledger", "public_key")})
    for row in fake.kept[:length]:
        assert list(walk.step(row, entry(row))) == []
    texts = walk.state() | {"ledger": fake.texts["ledger"], "seal": fake.texts["seal"]}
    if length > 2:
        asked = {str(number): found for number, (_, found) in walk.pending.items()}
        texts["leases"] = canonical(
            {n: [found["digest"][:16], found["token"][:16], "m", "1.x", 0] for n, found in asked.items()}
        )
    return ended(Fake([], texts), fake.kept[:length], key)


def test_a_cut_tail_is_found_with_the_public_key_alone(fake: Fake) -> None:
    """Cuts off entries and recomputes all sums, as someone who has the file but not the key."""
    for length in range(1, len(fake.kept)):
        assert not verify(older(length, fake)).ok, length


def test_an_older_copy_is_found_by_a_head_or_a_receipt_and_by_nothing_else(told: tuple[Ledger, Receipt], fake: Fake) -> None:
    ledger, receipt = told
    head = str(ledger.head())
    for length in range(1, len(fake.kept)):
        copy = older(length, fake, KEY)
        assert verify(copy).ok, length
        assert any("older copy" in problem for problem in verify(copy, head=head).problems)
        assert verify(copy, receipt=receipt).ok == (length >= receipt.body["entry"]["number"])
    assert verify(ledger.store, head=head, receipt=receipt).ok


def test_an_earlier_head_of_the_same_ledger_is_fine(told: tuple[Ledger, Receipt], fake: Fake) -> None:
    for row in fake.kept:
        assert verify(told[0].store, head=f"{row.number}:{row.hash}").ok
    assert not verify(told[0].store, head=f"3:{fake.kept[3].hash}").ok


HASH = "a" * 64


@pytest.mark.parametrize(
    "head",
    ["", "3", "3:", "x:y", f"-1:{HASH}", f"٣:{HASH}", f"{'9' * 30}:{HASH}", f"0:{'0' * 64}", f"03:{HASH}", f"3:{'A' * 64}"],
)
def test_what_is_no_head_is_refused(fake: Fake, head: str) -> None:
    """A head that is compared with nothing would pass for one that was found."""
    with pytest.raises(LedgerError, match="number:hash"):
        verify(fake, head=head)
    assert not verify(fake, head=f"3:{HASH}").ok


def test_a_receipt_of_another_ledger_is_found(told: tuple[Ledger, Receipt], clock: Clock) -> None:
    other = Ledger(SQLite.memory(identity("8")), KEY, clock)
    assert any("another ledger" in problem for problem in verify(told[0].store, receipt=story(other)).problems)
    other.close()


def test_an_edited_receipt_is_found(told: tuple[Ledger, Receipt]) -> None:
    receipt = told[1]
    for path, value in leaves(json.loads(json.dumps(dict(receipt.body)))):
        edited = Receipt(changed(dict(receipt.body), path, other(value)), receipt.signature)
        assert not verify(told[0].store, receipt=edited).ok, path
    mine = Key.new()
    forged = Receipt(receipt.body, mine.sign(message(receipt.body)))
    assert not verify(told[0].store, receipt=forged).ok


def test_a_ledger_with_another_key_is_found(fake: Fake) -> None:
    assert not verify(fake, public_key=Key.new().public).ok


# --- the file itself ----------------------------------------------------------------------------------------------


EDITS = (
    "UPDATE entries SET body = replace(body, '1/10', '1/20') WHERE number = 3",
    "DELETE FROM entries WHERE number = 18",
    "UPDATE state SET value = replace(value, 'epsilon\":', 'epsilon\":-') WHERE key = 'total'",
)


@pytest.mark.parametrize("statement", EDITS)
def test_an_edit_of_the_file_is_found(tmp_path: Path, clock: Clock, statement: str) -> None:
    ledger = Ledger(SQLite.create(tmp_path / "survey.ledger", IDENTITY), KEY, clock)
    story(ledger)
    assert verify(ledger.store).ok
    raw = sqlite3.connect(tmp_path / "survey.ledger", isolation_level=None)
    if "entries" in statement:
        with pytest.raises(sqlite3.IntegrityError, match="for ever"):  # by accident nothing is edited
            raw.execute(statement)
        raw.execute("DROP TRIGGER entries_stay")
        raw.execute("DROP TRIGGER entries_last")
    raw.execute(statement)
    raw.close()
    assert not verify(ledger.store).ok
    ledger.close()


COPY = "INSERT INTO entries SELECT {}, kind, question, body, hash, signature FROM entries WHERE number = 4"
ODD = (
    "INSERT INTO state VALUES (x'ff', '1')",
    "INSERT INTO state VALUES ('', '999')",
    "INSERT INTO state VALUES (char(27) || '[2J', '1')",
    "INSERT INTO state VALUES (CAST(x'ff' AS TEXT), '1')",
    "UPDATE state SET value = CAST(x'ff' AS TEXT) WHERE key = 'total'",
    "UPDATE state SET value = x'ff' WHERE key = 'ledger'",
    f"UPDATE state SET value = '{'[' * 100_000}' WHERE key = 'ledger'",
    f"UPDATE state SET value = '{'[' * 100_000}' WHERE key = 'total'",
    COPY.format(-(2**63)),
    COPY.format(-(2**62) - 1),
    COPY.format(2**63 - 1),
    "UPDATE entries SET body = CAST(x'ff' AS TEXT) WHERE number = 3",
    "UPDATE entries SET body = x'ff' WHERE number = 3",
    "UPDATE entries SET hash = CAST(hash AS BLOB) WHERE number = 18",
    "UPDATE entries SET signature = CAST(signature AS BLOB)",
    f"UPDATE entries SET body = '{'[' * 100_000}' WHERE number = 3",
)


@pytest.mark.slow
@pytest.mark.parametrize("statement", ODD)
def test_what_no_ledger_writes_is_told_and_not_stumbled_over(tmp_path: Path, clock: Clock, statement: str) -> None:
    ledger = Ledger(SQLite.create(tmp_path / "survey.ledger", IDENTITY), KEY, clock)
    story(ledger)
    raw = sqlite3.connect(tmp_path / "survey.ledger", isolation_level=None)
    for guard in ("DROP TRIGGER entries_stay", "PRAGMA ignore_check_constraints = ON"):
        raw.execute(guard)
    raw.execute(statement)
    raw.close()
    found = verify(ledger.store).problems
    assert found
    assert all(problem.isprintable() for problem in found)
    ledger.close()


@pytest.mark.parametrize("key", ["ledger", "leases", "total"])
def test_numbers_that_json_does_not_have_are_told(fake: Fake, key: str) -> None:
    for name in ("NaN", "Infinity", "-Infinity"):
        edited = fake.texts[key].replace(":", f':{name},"more":', 1)
        assert not verify(Fake(fake.kept, fake.texts | {key: edited})).ok


CHANGES = (
    "DROP TRIGGER entries_stay",
    "DROP TRIGGER entries_last",
    "DROP INDEX entries_question",
    "CREATE TABLE more (x)",
    "ALTER TABLE state RENAME TO real; CREATE VIEW state AS SELECT * FROM real",
)


@pytest.mark.parametrize("statement", CHANGES)
def test_changed_tables_and_triggers_are_told(tmp_path: Path, clock: Clock, statement: str) -> None:
    ledger = Ledger(SQLite.create(tmp_path / "survey.ledger", IDENTITY), KEY, clock)
    story(ledger)
    raw = sqlite3.connect(tmp_path / "survey.ledger", isolation_level=None)
    raw.executescript(statement)
    raw.close()
    assert any("tables, triggers or indexes" in problem for problem in verify(ledger.store).problems)
    ledger.close()


ON_A_SERVER = (
    "DROP TRIGGER entries_stay ON {s}.entries",
    "ALTER TABLE {s}.entries DISABLE TRIGGER ALL",
    "ALTER TABLE {s}.entries SET UNLOGGED",
    "ALTER TABLE {s}.state ENABLE ROW LEVEL SECURITY",
    "CREATE TABLE {s}.child () INHERITS ({s}.entries)",
    "CREATE TABLE {s}.more (x int)",
    "DROP INDEX {s}.entries_question",
    "ALTER TABLE {s}.entries DROP CONSTRAINT entries_pkey",
    "CREATE TRIGGER more BEFORE UPDATE ON {s}.state FOR EACH STATEMENT EXECUTE FUNCTION {s}.entries_stay()",
    "DROP TRIGGER entries_stay ON {s}.entries; CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {s}.entries "
    "FOR EACH STATEMENT WHEN (false) EXECUTE FUNCTION {s}.entries_stay()",
    "CREATE OR REPLACE FUNCTION {s}.entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
)


@pytest.mark.parametrize("statement", ON_A_SERVER)
def test_the_same_on_a_server(postgres: Server, postgres_url: str, clock: Clock, statement: str) -> None:
    ledger = Ledger(Postgres.create(postgres_url, IDENTITY), KEY, clock)
    story(ledger)
    assert verify(ledger.store).ok
    for part in statement.split("; ") if "$$" not in statement else [statement]:
        postgres.sql(part.format(s=postgres_url.partition("#")[2]))
    assert any("tables, triggers or indexes" in problem for problem in verify(ledger.store).problems)
    ledger.close()


def test_caps_that_nobody_can_compute_with_are_told(fake: Fake) -> None:
    for text in ("9" * 900, "1/" + "9" * 900):
        body = json.loads(fake.kept[0].body)
        edited = canonical(body | {"caps": dict.fromkeys(body["caps"], text)})
        assert not verify(Fake([fake.kept[0]._replace(body=edited, hash=hash_of(edited)), *fake.kept[1:]], fake.texts)).ok
