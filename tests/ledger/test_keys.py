"""Keys and receipts: who signed, and what a wrong or missing key says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dither.errors import LedgerError
from dither.ledger import opening
from dither.ledger.receipts import Key, Receipt, is_signed
from ledger.asking import asked, declaration


def test_the_key_is_a_file_for_its_owner_only(tmp_path: Path) -> None:
    opening.create(tmp_path / "survey.ledger").close()
    key = tmp_path / "survey.ledger.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Key.read(key).public == opening.view(tmp_path / "survey.ledger").public_key


def test_a_key_that_is_there_is_kept(tmp_path: Path) -> None:
    first = Key.create(tmp_path / "a.key")
    assert Key.create(tmp_path / "a.key").public == first.public
    ledger = opening.create(tmp_path / "survey.ledger", key=tmp_path / "a.key")
    assert ledger.public_key == first.public
    assert not (tmp_path / "survey.ledger.key").exists()
    ledger.close()


def test_a_missing_or_wrong_key_is_told(tmp_path: Path) -> None:
    opening.create(tmp_path / "survey.ledger").close()
    Key.create(tmp_path / "other.key")
    (tmp_path / "text.key").write_text("none")
    cases = {"missing.key": "is missing", "other.key": "not the one", "text.key": "no key of a ledger", ".": "cannot be read"}
    for name, text in cases.items():
        with pytest.raises(LedgerError, match=text):
            opening.open(tmp_path / "survey.ledger", key=tmp_path / name)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    opening.create(tmp_path / "survey.ledger").close()
    key = tmp_path / "survey.ledger.key"
    key.chmod(mode)
    with pytest.raises(LedgerError, match="chmod 600"):
        opening.open(tmp_path / "survey.ledger")
    key.chmod(0o400)
    opening.open(tmp_path / "survey.ledger").close()


def test_drafts_of_the_dead_are_swept_away_and_nothing_else(tmp_path: Path) -> None:
    old = [f".survey.ledger.{'0' * 16}", f".survey.ledger.{'1' * 16}-wal", f".survey.ledger.key.{'2' * 16}"]
    kept = [f".other.ledger.{'0' * 16}", ".survey.ledger.notes", f"survey.ledger.{'0' * 16}", f".survey.ledger.{'3' * 16}"]
    for name in (*old, *kept):
        (tmp_path / name).write_text("")
        if name != kept[-1]:  # which somebody may be writing just now
            os.utime(tmp_path / name, (0, 0))
    opening.create(tmp_path / "survey.ledger").close()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*kept, "survey.ledger", "survey.ledger.key"}


def test_a_ledger_on_a_server_needs_its_key_named() -> None:
    with pytest.raises(LedgerError, match="key file named"):
        opening.create("postgresql://curator:secret@nowhere.invalid/db")


def test_the_text_of_a_key_does_not_show_it() -> None:
    key = Key.new()
    assert repr(key) == f"Key(public {key.public})"


def test_a_signature_has_one_spelling() -> None:
    key = Key.new()
    signature = key.sign("a")
    assert is_signed(key.public, "a", signature)
    wrong = [("b", signature), ("a", signature.upper()), ("a", signature + " "), ("a", ""), ("a", "zz"), ("a", signature[:-2])]
    for message, text in wrong:
        assert not is_signed(key.public, message, text)
    assert not is_signed("zz", "a", signature)


def test_a_receipt_reads_back() -> None:
    ledger = opening.memory()
    ledger.register(declaration())
    receipt = asked(ledger, "Zoë's", payload="[1]")
    again = Receipt.from_json(receipt.to_json())
    assert again == receipt
    assert again.verify(ledger.public_key)
    ledger.close()


def test_what_is_no_receipt_is_told() -> None:
    ledger = opening.memory()
    ledger.register(declaration())
    found = json.loads(asked(ledger, 1).to_json())
    ledger.close()
    body = found["body"]
    wrong = [{}, [], 1, None, found | {"more": 1}, {"body": body}, found | {"signature": 1}, found | {"body": [1]}]
    wrong += [
        found | {"body": body | change} for change in ({"receipt": 2}, {"more": 1}, {"entry": 3}, {"entry": {"number": 3}})
    ]
    wrong += [found | {"body": body | {"entry": {"number": "3", "hash": ""}}}]
    wrong += [found | {"body": {name: value for name, value in body.items() if name != missing}} for missing in body]
    good = json.dumps(found)
    again = good.replace('{"body":', '{"body": 1, "body":', 1), good.replace('"analyst":', '"analyst": "eve", "analyst":', 1)
    assert all(json.loads(text) == found for text in again), "a reader that takes the last one sees nothing wrong"
    Receipt.from_json(good)
    for text in [*map(json.dumps, wrong), *again, "", "{", "[" * 100_000]:
        with pytest.raises(LedgerError, match="no receipt"):
            Receipt.from_json(text)
