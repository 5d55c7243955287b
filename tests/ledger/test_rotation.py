"""Rotating the ledger's key: both keys sign, nothing signed before is lost, and a forged rotation is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import dither as dt
from dither.cli import app
from dither.errors import ArgumentError, LedgerError
from dither.ledger import copies, opening, rotation
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Keys, Receipt, message, rotation_message
from dither.ledger.records import Rotated
from dither.ledger.rules import StoredAnswer
from dither.ledger.state import sealed_text
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.ledger.witness import Witness
from ledger.asking import IDENTITY, KEY, Clock, Fake, abandoned, advanced, asked, declaration, opened_stream, request, reserved
from ledger.edits import canonical, ended, rechained

NEW, STRANGER = Key.new(), Key.new()


# --- what was signed stays signed, on every store ---------------------------------------------------------------


def test_answers_before_and_after_a_rotation_are_shown_again_and_verify(ledger: Ledger) -> None:
    before = asked(ledger, 1, payload="old")
    head = ledger.rotate(NEW, "cora", "once a year")
    after = asked(ledger, 2, payload="new")
    assert ledger.public_key == NEW.public
    for plan, payload, receipt in ((1, "old", before), (2, "new", after)):
        for analyst in ("ada", "bob", "bob"):
            shown = ledger.reserve(request(plan, analyst=analyst))
            assert isinstance(shown, StoredAnswer)
            assert (shown.payload, shown.receipt) == (payload, receipt)
        assert ledger.preview(request(plan), declaration(), (ledger.store.get("catalog"),)).refusal == ""
    assert before.verify(KEY.public)
    assert not before.verify(NEW.public)
    assert after.verify(NEW.public)
    report = verify(ledger.store, str(head), {"a": before, "b": after})
    assert report.problems == ()
    assert report.kinds["rotated/1"] == 1


def test_it_can_be_rotated_again_and_opened_again(ledger: Ledger, clock: Clock) -> None:
    receipts = [asked(ledger, 0)]
    keys = [KEY]
    for plan in (1, 2, 3):
        keys.append(Key.new())
        ledger.rotate(keys[-1], "cora")
        receipts.append(asked(ledger, plan))
    again = Ledger(ledger.store, keys[-1], clock)
    asked(again, 4)
    assert [key for _, key in again.keys().terms] == [key.public for key in keys]
    named = {str(place): receipt for place, receipt in enumerate(receipts)}
    for key in keys:
        assert verify(ledger.store, receipt=named, public_key=key.public).problems == ()
    assert not verify(ledger.store, public_key=STRANGER.public).ok


def test_the_old_key_signs_nothing_any_more(ledger: Ledger, clock: Clock) -> None:
    """A server that was started with the old key refuses before it charges, and says what to do."""
    server = Ledger(ledger.store, KEY, clock)
    asked(server, 1)
    ledger.rotate(NEW, "cora")
    head, spent = ledger.head(), ledger.balance().sums
    for refused in (lambda: server.reserve(request(2)), lambda: server.reserve(request(1)), server.reopen):
        with pytest.raises(LedgerError, match=f"rotated by entry {head.number}") as error:
            refused()
        assert "restart" in str(error.value)
        assert error.value.charged == "nothing"
    with pytest.raises(LedgerError, match="rotated by entry"):
        Ledger(ledger.store, KEY, clock)
    with pytest.raises(LedgerError, match="not the one"):
        Ledger(ledger.store, STRANGER, clock)
    assert (ledger.head(), ledger.balance().sums) == (head, spent)
    assert server.preview(request(1), declaration(), (ledger.store.get("catalog"),)).again  # reading goes on
    assert verify(ledger.store).ok


def test_a_question_that_is_being_answered_keeps_the_key_in_force(ledger: Ledger) -> None:
    held, head = reserved(ledger, 1), ledger.head()
    with pytest.raises(LedgerError, match="being answered"):
        ledger.rotate(NEW, "cora")
    assert ledger.head() == head
    held.touch()
    ledger.commit(held, "42")
    abandoned(ledger, 2)  # a dead one does not
    ledger.rotate(NEW, "cora")
    assert verify(ledger.store).ok


def test_a_key_is_in_force_once(ledger: Ledger) -> None:
    ledger.rotate(NEW, "cora")
    for key in (KEY, NEW):
        with pytest.raises(ArgumentError, match="signed this ledger already"):
            ledger.rotate(key, "cora")
    assert verify(ledger.store).ok


def test_streams_go_on_under_the_new_key(ledger: Ledger) -> None:
    key, secret = opened_stream(ledger), ledger.secret("running sums 1")
    advanced(ledger, key, 0, 1)
    ledger.rotate(NEW, "cora")
    advanced(ledger, key, 1, 2)
    ledger.rotate(Key.new(), "cora")
    advanced(ledger, key, 2, 3)
    assert ledger.secret("running sums 1") == secret
    assert [record.step for record, _ in ledger.stream_entries(key)] == [0, 1, 2, 3]
    assert verify(ledger.store).ok
    assert NEW.derive("running sums 1") != secret  # twin: without what was handed over it would be another


def test_a_ledger_without_entries_has_nothing_to_rotate(empty: Ledger) -> None:
    with pytest.raises(LedgerError, match="no catalog yet"):
        empty.rotate(NEW, "cora")


# --- forged rotations -------------------------------------------------------------------------------------------


@pytest.fixture
def rotated(clock: Clock) -> Ledger:
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, clock)
    ledger.register(declaration())
    asked(ledger, 1)
    ledger.rotate(NEW, "cora")
    return ledger


def forged(made: Ledger, by_old: Key | None, by_new: Key | None, **changes: str) -> Fake:
    """The ledger with another last entry: signed with these keys, and everything sealed with the new one."""
    fake = Fake.of(made.store)
    *rows, last = fake.kept
    body = canonical(json.loads(last.body) | changes)
    (row,) = rechained([*rows, last._replace(body=body)])[len(rows) :]
    text = rotation_message(row.hash)
    signed = [key.sign(text) if key else "0" * 128 for key in (by_old, by_new)]
    fake.kept = [*rows, row._replace(signature=" ".join(signed))]
    fields = json.loads(row.body)
    fake.texts["keys"] = canonical([[row.number, fields["new"]]])
    return ended(fake, fake.kept, by_new)


def follow(fake: Fake) -> Keys:
    identity = json.loads(fake.texts["ledger"])
    return Keys.follow(identity["ledger"], identity["public_key"], [(fake.kept[-1].body, fake.kept[-1].signature)])


FORGERIES: dict[str, tuple[Callable[[Ledger], Fake], str]] = {
    "only the old key": (lambda ledger: forged(ledger, KEY, None), "not signed with the new key"),
    "only the new key": (lambda ledger: forged(ledger, None, NEW), "not signed with the key before"),
    "a stranger in the old one's place": (lambda ledger: forged(ledger, STRANGER, NEW), "not signed with the key before"),
    "a stranger's new key": (
        lambda ledger: forged(ledger, None, STRANGER, new=STRANGER.public),
        "not signed with the key before",
    ),
    "a stranger alone": (
        lambda ledger: forged(ledger, STRANGER, STRANGER, old=STRANGER.public, new=STRANGER.public),
        "rotates a key that was not in force",
    ),
    "of another ledger": (lambda ledger: forged(ledger, KEY, NEW, ledger="5" * 32), "of another ledger"),
    "back to the same key": (lambda ledger: forged(ledger, KEY, KEY, new=KEY.public), "was in force before"),
}


@pytest.mark.parametrize("way", FORGERIES)
def test_a_forged_rotation_is_refused(rotated: Ledger, way: str) -> None:
    made, problem = FORGERIES[way]
    fake = made(rotated)
    assert any(problem in each for each in verify(fake).problems), verify(fake).problems
    with pytest.raises(LedgerError, match="not signed by the key before it and by the new one"):
        follow(fake)


def test_that_check_can_pass(rotated: Ledger) -> None:
    """The same forger with both keys makes what verifies."""
    fake = forged(rotated, KEY, NEW, words="another reason")
    assert verify(fake).problems == ()
    assert follow(fake).in_force == NEW.public


@pytest.mark.parametrize("signature", ["", " ", "{0}", "{0} {1} {1}", "{1} {0}", "{0}  {1}"])
def test_both_signatures_stand_in_their_order(rotated: Ledger, signature: str) -> None:
    fake = Fake.of(rotated.store)
    row = fake.kept[-1]
    fake.kept[-1] = row._replace(signature=signature.format(*row.signature.split(" ")))
    assert not verify(fake).ok
    with pytest.raises(LedgerError, match="not signed by the key before"):
        follow(fake)


def test_a_stolen_old_key_signs_no_later_answer(rotated: Ledger) -> None:
    receipt = asked(rotated, 2)
    forgery = Receipt(receipt.body, KEY.sign(message(receipt.body)))
    assert forgery.verify(KEY.public)
    keys = rotated.keys()
    assert keys.signed(receipt)
    assert not keys.signed(forgery)
    assert any("not signed with the ledger's key" in each for each in verify(rotated.store, receipt=forgery).problems)
    fake = Fake.of(rotated.store)
    fake.kept[-1] = fake.kept[-1]._replace(signature=forgery.signature)
    assert any("receipt that is not signed" in each for each in verify(fake).problems)


def test_a_new_key_signs_no_earlier_answer(rotated: Ledger) -> None:
    fake = Fake.of(rotated.store)
    first, body = rotated.receipt(4, "ada")[0], fake.kept[3]
    fake.kept[3] = body._replace(signature=NEW.sign(message(first.body)))
    assert not rotated.keys().signed(Receipt(first.body, fake.kept[3].signature))
    assert any("receipt that is not signed" in each for each in verify(fake).problems)


def test_a_list_of_keys_that_its_entries_do_not_prove_is_refused(rotated: Ledger, clock: Clock) -> None:
    """Whoever can write the file, and has no key, names another one."""
    texts, rows = rotated.store.state()[0], list(rotated.store.rows())
    texts["keys"] = canonical([[rows[-1].number, STRANGER.public]])
    texts["seal"] = STRANGER.seal(sealed_text(json.loads(texts["ledger"])["ledger"], texts))
    store = SQLite.memory(texts, rows)
    with pytest.raises(LedgerError, match="not those of its rotations"):
        Ledger(store, None, clock).keys()
    assert not verify(store).ok
    assert Ledger(rotated.store, None, clock).keys().in_force == NEW.public  # twin


def test_what_the_old_key_handed_over_cannot_be_changed(rotated: Ledger, clock: Clock) -> None:
    texts, rows = rotated.store.state()[0], list(rotated.store.rows())
    for changed in ("", "zz", texts["secrets"][:-2] + ("00" if texts["secrets"][-2:] != "00" else "11"), "00" * 40):
        store = SQLite.memory(texts | {"secrets": changed}, rows)
        with pytest.raises(LedgerError, match="handed over were changed"):
            Ledger(store, NEW, clock)
        assert any("handed over" in each for each in verify(store).problems)
    assert Ledger(SQLite.memory(texts, rows), NEW, clock).secret("running sums 1") == KEY.derive("running sums 1")


# --- files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger file with one answer."""
    with_answer(tmp_path / "survey.ledger")
    return tmp_path / "survey.ledger"


def with_answer(where: Path) -> None:
    ledger = opening.create(where)
    ledger.register(declaration())
    asked(ledger, 1)
    ledger.close()


def test_the_key_file_is_replaced_and_the_old_one_kept(place: Path) -> None:
    key, before = Path(f"{place}.key"), Key.read(Path(f"{place}.key")).public
    made = rotation.rotate(place, None, "cora")
    assert made.retired == Path(f"{key}.until-{made.head.number}")
    assert Key.read(made.retired).public == before
    assert Key.read(key).public == made.public_key
    assert oct(key.stat().st_mode)[-3:] == "600"
    ledger = opening.open(place)
    asked(ledger, 2)
    assert verify(ledger.store).ok
    ledger.close()
    assert not Path(f"{key}.next").exists()


def test_a_key_that_was_left_from_an_attempt_is_not_in_force(place: Path) -> None:
    left = Key.create(Path(f"{place}.key.next"))
    ledger = opening.open(place)
    assert ledger.public_key != left.public
    ledger.close()
    assert rotation.rotate(place, None, "cora").public_key == left.public


def test_an_interrupted_rotation_is_finished_and_not_repeated(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(opening, "replace_key", crash)
        with pytest.raises(KeyboardInterrupt):
            rotation.rotate(place, None, "cora")
    made = rotation.rotate(place, None, "cora")
    assert made.resumed
    ledger = opening.open(place)
    assert len(ledger.keys().terms) == 2
    assert Key.read(made.retired).public == ledger.keys().terms[0][1]
    ledger.close()


def test_a_witness_has_the_rotation(place: Path, tmp_path: Path) -> None:
    """Whoever puts back a copy from before it, which the old key would open, is found out."""
    old = place.read_bytes()
    witness = Witness(tmp_path / "heads")
    witness.create()
    made = rotation.rotate(place, None, "cora", witness=tmp_path / "heads")
    place.write_bytes(old)
    ledger = opening.open(place, made.retired, tmp_path / "heads")
    with pytest.raises(LedgerError, match="does not have the entry"):
        ledger.reserve(request(2))
    ledger.close()


def test_backups_from_both_sides_of_a_rotation(place: Path, tmp_path: Path) -> None:
    copies.back_up(place, tmp_path / "before")
    made = rotation.rotate(place, None, "cora")
    copies.back_up(place, tmp_path / "after")
    os.rename(place, tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="before the key was rotated") as error:  # the present key, of which it never heard
        copies.restore(tmp_path / "before", place, unchecked=True)
    assert f"--key {made.retired}" in str(error.value)
    assert "named" not in str(error.value)
    Key.create(tmp_path / "stranger.key")
    with pytest.raises(LedgerError, match=r"another public key than stranger\.key\.\n  Fix: name the key") as error:
        copies.restore(tmp_path / "before", place, tmp_path / "stranger.key", unchecked=True)
    assert "rotated" not in str(error.value)
    with pytest.raises(LedgerError, match="lacks what is known"):
        copies.restore(tmp_path / "before", place, made.retired, copies.Evidence({"head": str(made.head)}))
    copies.restore(tmp_path / "before", tmp_path / "old", made.retired, unchecked=True)  # as the fix says
    copies.restore(tmp_path / "after", place, None, copies.Evidence({"head": str(made.head)}))
    ledger = opening.open(place)
    asked(ledger, 2)
    assert verify(ledger.store).ok
    ledger.close()


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_the_command_and_the_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Answers, marks of the data and verification go on over a rotation."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": range(100)}).to_csv("visits.csv", index=False)
    Path("catalog.toml").write_text(
        '[budget]\nepsilon = 9\n[tables.visits]\nsource = "visits.csv"\nunit = "id"\nmax_rows = 1\n', encoding="utf-8"
    )
    assert run("init").exit_code == 0
    count = "SELECT COUNT(*) AS n FROM visits"
    with dt.open("catalog.toml") as survey:
        first = survey.ask(count, epsilon=1)
    old = json.loads(run("verify", "-f", "json").stdout)["public_key"]
    assert run("rotate").exit_code == 2  # somebody is on record
    done = run("rotate", "--by", "cora", "--words", "once a year")
    assert done.exit_code == 0, done.output
    with dt.open("catalog.toml") as survey:
        assert survey.ask(count, epsilon=1).rows == first.rows
        survey.ask(count, epsilon=2)
    assert not recwarn.list  # the data is what it was
    found = json.loads(run("verify", "-f", "json").stdout)
    assert found["ok"]
    assert found["public_key"] != old
    assert run("verify", "--public-key", old).exit_code == 0
    assert "rotated    the key, once" in run("verify").stdout
    ledger = opening.view("catalog.ledger")
    (record,) = [each.record for each in ledger.history() if isinstance(each.record, Rotated)]
    assert (record.by, record.words, record.old) == ("cora", "once a year", old)
    ledger.close()
