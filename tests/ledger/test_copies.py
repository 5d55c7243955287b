"""Backups and restored ledgers: a second budget is always detected."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, ClosedError, LedgerError, NoLedgerError
from dither.ledger import opening
from dither.ledger.copies import Evidence, back_up, restore
from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key, Receipt
from dither.ledger.records import Restored, parse
from dither.ledger.state import Head
from dither.ledger.stores.base import Row
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.ledger.witness import Witness
from ledger.asking import IDENTITY, abandoned, asked, declaration, request
from ledger.edits import story

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place without a ledger."""
    return str(tmp_path / "survey.ledger") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "curator.key"


@pytest.fixture
def lose(postgres_url: str, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes the ledger of a place away, as an accident does."""

    def lost(where: str) -> None:
        if opening.is_address(where):
            request.getfixturevalue("postgres").sql(f"DROP SCHEMA {where.partition('#')[2]} CASCADE")
        else:
            Path(where).unlink()

    return lost


def made(where: str | Path, key: Path) -> Ledger:
    ledger = opening.create(str(where), key)
    ledger.register(declaration())
    return ledger


def problems(where: str | Path, **evidence: Receipt | str) -> tuple[str, ...]:
    with closing(opening.open_readonly(str(where))) as store:
        return verify(store, **evidence).problems  # type: ignore[arg-type]


def nothing_at(where: str) -> bool:
    try:
        opening.find(where).close()
    except NoLedgerError:
        return True
    return False


# --- backups --------------------------------------------------------------------------------------------------------


def test_a_backup_is_the_ledger_of_one_moment(where: str, key: Path, tmp_path: Path) -> None:
    with closing(opening.create(where, key)) as ledger:
        receipt = story(ledger)
        head = back_up(where, tmp_path / "backup")
        assert head == ledger.head()
        rows, texts = list(ledger.store.rows()), ledger.store.state()
        asked(ledger, 9, "0.01", catalog_hash="c2")
    with closing(opening.open_readonly(tmp_path / "backup")) as store:
        assert (list(store.rows()), store.state()) == (rows, texts)
        assert verify(store, receipt=receipt).ok
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_questions_may_go_on_meanwhile(where: str, key: Path, tmp_path: Path) -> None:
    done = threading.Event()
    with closing(made(where, key)) as ledger:
        asked(ledger, "first", "0.001")

        def ask() -> None:
            for number in range(30):
                asked(ledger, number, "0.001")
            done.set()

        asking = threading.Thread(target=ask)
        asking.start()
        names = (tmp_path / f"backup {number}" for number in count())
        backups = [next(names)]
        back_up(where, backups[0])
        while not done.is_set():
            backups.append(next(names))
            back_up(where, backups[-1])
        asking.join()
    assert [problems(each) for each in backups] == [()] * len(backups)


def test_nobody_can_spend_from_a_backup(where: str, key: Path, tmp_path: Path) -> None:
    with closing(made(where, key)) as ledger:
        asked(ledger)
        back_up(where, tmp_path / "backup")
        store, signing = opening.open_readonly(tmp_path / "backup"), Key.read(key)
    with pytest.raises(LedgerError, match="is a backup, and a backup cannot be spent from"):
        opening.open(tmp_path / "backup", key)
    before = (tmp_path / "backup").read_bytes()
    with closing(Ledger(store, signing)) as forced, pytest.raises(LedgerError, match="cannot be written"):
        forced.reserve(request(2))
    assert (tmp_path / "backup").read_bytes() == before


def test_a_backup_replaces_nothing(where: str, key: Path, tmp_path: Path) -> None:
    with closing(made(where, key)) as ledger:
        asked(ledger)
        (tmp_path / "file").write_text("mine", encoding="ascii")
        os.symlink(tmp_path / "nowhere", tmp_path / "link")
        for name in ("file", "link", "curator.key"):
            with pytest.raises(ArgumentError, match="is there already"):
                back_up(where, tmp_path / name)
        for ending in ("-journal", "-wal", "-shm"):
            with pytest.raises(ArgumentError, match="database's log"):
                back_up(where, tmp_path / f"survey.ledger{ending}")
    assert (tmp_path / "file").read_text(encoding="ascii") == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_ledger_without_entries_is_not_backed_up(where: str, key: Path, tmp_path: Path) -> None:
    with closing(opening.create(where, key)), pytest.raises(LedgerError, match="has no entries yet"):
        back_up(where, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_copying_takes_no_memory_however_long_the_ledger_is(tmp_path: Path) -> None:
    rows = (Row(number, "reserved/1", "", f"{number:01000}", f"{number:064}", "") for number in range(1, 30_001))
    texts = IDENTITY | {"head": Head(30_000, f"{30_000:064}", "2026-11-15T12:00:00.000000Z").text()}
    SQLite.create(tmp_path / "survey.ledger", texts, rows).close()
    tracemalloc.start()
    try:
        back_up(tmp_path / "survey.ledger", tmp_path / "backup")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "backup").stat().st_size > 30_000_000
    assert peak < 5_000_000


# --- restoring ------------------------------------------------------------------------------------------------------


def test_a_restored_ledger_goes_on_and_says_so(where: str, key: Path, tmp_path: Path, lose: Callable[[str], None]) -> None:
    with closing(made(where, key)) as ledger:
        receipt = asked(ledger, 1, "0.6")
        back_up(where, tmp_path / "backup")
    lose(where)
    found = restore(tmp_path / "backup", where, key, Evidence(receipts={"the receipt": receipt}))
    assert (found.backup, found.checked) == (4, f"4:{receipt.body['entry']['hash']}")
    with closing(opening.open(where, key)) as ledger:
        assert ledger.head() == found.head
        row = ledger.store.entry(5)
        assert row is not None
        assert parse(row).record == Restored(4, found.checked)
        with pytest.raises(Exception, match=r"left ε = 0\.4"):
            asked(ledger, 2, "0.6")
        assert not isinstance(ledger.reserve(request(1, "0.6")), Exception)
        asked(ledger, 2, "0.4")
        report = verify(ledger.store, receipt=receipt)
        assert (report.problems, report.restored) == ((), 1)


def test_from_one_store_to_the_other(postgres_url: str, key: Path, tmp_path: Path, lose: Callable[[str], None]) -> None:
    with closing(made(postgres_url, key)) as ledger:
        for number in range(5):
            asked(ledger, number, "0.01", analyst="zoë")
        back_up(postgres_url, tmp_path / "one")
    restore(tmp_path / "one", tmp_path / "survey.ledger", key, unchecked=True)
    with closing(opening.open(tmp_path / "survey.ledger", key)) as ledger:
        receipt = asked(ledger, 9, "0.01", analyst="zoë")
        back_up(tmp_path / "survey.ledger", tmp_path / "two")
    lose(postgres_url)
    restore(tmp_path / "two", postgres_url, key, Evidence(receipts={"the receipt": receipt}))
    with closing(opening.open(postgres_url, key)) as ledger:
        asked(ledger, 10, "0.01", analyst="zoë")
        report = verify(ledger.store, receipt=receipt)
        assert (report.problems, report.restored) == ((), 2)


def test_questions_that_were_under_way_lapse(where: str, key: Path, tmp_path: Path, lose: Callable[[str], None]) -> None:
    with closing(made(where, key)) as ledger:
        abandoned(ledger, 1, "0.1")
        back_up(where, tmp_path / "backup")
    lose(where)
    restore(tmp_path / "backup", where, key, unchecked=True)
    with closing(opening.open(where, key)) as ledger:
        report = verify(ledger.store)
        assert (report.problems, report.open) == ((), 1)
        asked(ledger, 1, "0.1")  # the same question, charged anew
        report = verify(ledger.store)
        assert (report.problems, report.open, report.kinds["lapsed/1"]) == ((), 0, 1)
        assert report.spent["epsilon"] * 10 == 2


def test_three_that_were_under_way_close_the_catalog(tmp_path: Path, key: Path) -> None:
    place = tmp_path / "survey.ledger"
    with closing(made(place, key)) as ledger:
        held = [ledger.reserve(request(number, "0.1")) for number in range(3)]
        back_up(place, tmp_path / "backup")
        assert len(held) == 3
        del held
    place.unlink()
    restore(tmp_path / "backup", place, key, unchecked=True)
    with closing(opening.open(place, key)) as ledger:
        with pytest.raises(ClosedError):
            asked(ledger, 9, "0.1")
        assert ledger.reopen().dead == 3
        asked(ledger, 9, "0.1")
        assert verify(ledger.store).ok


def refuses(what: str, backup: Path, where: str | Path, key: Path, evidence: Evidence = Evidence(), **more: bool) -> None:  # noqa: B008
    with pytest.raises(LedgerError, match=what):
        restore(backup, where, key, evidence, **more)


def test_a_living_ledger_is_not_doubled(where: str, key: Path, tmp_path: Path) -> None:
    with closing(made(where, key)) as ledger:
        asked(ledger)
        back_up(where, tmp_path / "backup")
    refuses("There is a ledger in that place already", tmp_path / "backup", where, key, unchecked=True)
    with closing(opening.open_readonly(where)) as store:
        assert verify(store).restored == 0


def test_nor_beside_the_key_it_was_made_with(tmp_path: Path) -> None:
    place, key = tmp_path / "survey.ledger", tmp_path / "survey.ledger.key"
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, tmp_path / "backup")
    refuses("is still there: survey.ledger", tmp_path / "backup", tmp_path / "other.ledger", key, unchecked=True)
    shutil.copy(key, tmp_path / "copy")
    with pytest.raises(LedgerError, match="is still there"):
        restore(tmp_path / "backup", tmp_path / "other.ledger", tmp_path / "copy", unchecked=True, beside=[place])
    assert not (tmp_path / "other.ledger").exists()


def test_what_the_backup_lacks_is_told(where: str, key: Path, tmp_path: Path, lose: Callable[[str], None]) -> None:
    witness = Witness(tmp_path / "heads")
    witness.create()
    backup = tmp_path / "backup"
    made(where, key).close()
    with closing(opening.open(where, key, witness.path)) as ledger:
        early = asked(ledger, 1)
        head = str(back_up(where, backup))
        late = asked(ledger, 2)
        later = str(ledger.head())
    lose(where)
    refuses("could be spent twice", backup, where, key)
    refuses("lacks what is known", backup, where, key, Evidence({"the head": later}))
    refuses("lacks what is known", backup, where, key, Evidence({"the head": head}, {"the receipt": late}))
    refuses("lacks what is known", backup, where, key, Evidence(witness=witness))
    refuses("lacks what is known", backup, where, key, Evidence(witness=witness), unchecked=True)
    refuses("lacks what is known", backup, where, key, Evidence({"one": later, "two": head}, {"the receipt": early}))
    assert nothing_at(where)
    assert str(witness.newest(early.body["ledger"])) == f"5:{late.body['reserved']['hash']}"
    assert restore(backup, where, key, Evidence({"the head": head}, {"the receipt": early})).checked == head
    with closing(opening.open(where, key, witness.path)) as ledger, pytest.raises(LedgerError, match="the witness heads names"):
        asked(ledger, 3)


def test_a_witness_without_this_ledger_is_no_evidence(tmp_path: Path, key: Path) -> None:
    place, witness = tmp_path / "survey.ledger", Witness(tmp_path / "heads")
    witness.create()
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, tmp_path / "backup")
    place.unlink()
    refuses("could be spent twice", tmp_path / "backup", place, key, Evidence(witness=witness))
    found = restore(tmp_path / "backup", place, key, Evidence(witness=witness), unchecked=True)
    with closing(opening.open(place, key, witness.path)) as ledger:
        assert witness.newest(asked(ledger, 2).body["ledger"]) == Head(6, ledger.store.entry(6).hash)  # type: ignore[union-attr]
    assert len(witness.path.read_text(encoding="ascii").splitlines()) == 2
    assert found.checked == ""


def test_a_witness_that_fails_afterwards_is_told(tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, witness = tmp_path / "survey.ledger", Witness(tmp_path / "heads")
    witness.create()
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, tmp_path / "backup")
    place.unlink()

    def full(*_: object) -> None:
        raise LedgerError("The witness heads cannot be used.")

    monkeypatch.setattr(Witness, "add", full)
    with pytest.raises(LedgerError, match=r"The ledger is restored\. The witness heads cannot be used"):
        restore(tmp_path / "backup", place, key, Evidence(witness=witness), unchecked=True)
    assert problems(place) == ()


def test_the_journal_of_a_lost_ledger_is_not_written_into_the_new_one(tmp_path: Path, key: Path) -> None:
    place, journal = tmp_path / "survey.ledger", tmp_path / "survey.ledger-journal"
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, tmp_path / "backup")
    assert journal.stat().st_size == 0  # as SQLite leaves it, and harmless
    place.unlink()
    journal.write_bytes(b"half of a transaction")
    refuses("survey.ledger-journal is the log of a ledger", tmp_path / "backup", place, key, unchecked=True)
    assert journal.read_bytes() == b"half of a transaction"
    journal.unlink()
    restore(tmp_path / "backup", place, key, unchecked=True)


def test_what_is_no_whole_backup_is_refused(tmp_path: Path, key: Path) -> None:
    place, backup = tmp_path / "survey.ledger", tmp_path / "backup"
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, backup)
    place.rename(tmp_path / "moved")
    refuses("is a ledger and no backup", tmp_path / "moved", place, key, unchecked=True)
    Key.create(tmp_path / "other.key")
    refuses("another public key|not the one", backup, place, tmp_path / "other.key", unchecked=True)
    refuses("key file nobody.key is missing", backup, place, tmp_path / "nobody.key", unchecked=True)
    refuses("There is no ledger nowhere", tmp_path / "nowhere", place, key, unchecked=True)
    refuses("is no ledger", key, place, key, unchecked=True)
    with closing(sqlite3.connect(backup)) as link, link:
        link.execute("UPDATE state SET value = replace(value, '1', '2') WHERE key = 'total'")
    refuses("is damaged", backup, place, key, unchecked=True)
    assert not place.exists()


# --- told apart -----------------------------------------------------------------------------------------------------


def test_two_ledgers_of_one_past_are_told_apart_by_whatever_came_later(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    key, spare = tmp_path / "first.key", tmp_path / "spare"
    with closing(made(first, key)) as ledger:
        before = asked(ledger, 1)
        back_up(first, tmp_path / "backup")
    shutil.copy(key, spare)
    for place in (second, third):  # somewhere else, where nobody can see the first one
        restore(tmp_path / "backup", place, spare, unchecked=True)
    places, receipts, heads = (first, second, third), {}, {}
    for place in places:
        with closing(opening.open(place, key)) as ledger:
            receipts[place], heads[place] = asked(ledger, 2), str(ledger.head())
    for place in places:
        assert problems(place, receipt=before) == ()
        for other in places:
            assert (problems(place, receipt=receipts[other]) == ()) == (place == other)
            assert (problems(place, head=heads[other]) == ()) == (place == other)


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "back up", "restore", "restore elsewhere", "lose"]), st.integers(0, 5)),
    max_size=14,
)


class Curator:
    """Somebody with the commands, several places and one witness; `answers` are those that were ever given."""

    def __init__(self, folder: Path, watched: bool) -> None:
        self.folder, self.questions, self.backups = folder, count(), list[Path]()
        self.witness = Witness(folder / "heads") if watched else None
        if self.witness is not None:
            self.witness.create()
        self.key = folder / "curator.key"
        self.places = [folder / "0"]
        self.answers: list[tuple[Path, Receipt]] = []
        made(self.places[0], self.key).close()

    def step(self, what: str, which: int) -> None:
        place = self.places[which % len(self.places)]
        try:
            if what == "ask":
                with closing(opening.open(place, self.key, self.witness and self.witness.path)) as ledger:
                    self.answers.append((place, asked(ledger, next(self.questions), "0.4")))
            elif what == "back up":
                back_up(place, self.folder / f"backup {len(self.backups)}")
                self.backups.append(self.folder / f"backup {len(self.backups)}")
            elif what == "lose":
                place.unlink(missing_ok=True)
            elif self.backups:
                to = place if what == "restore" else self.folder / str(len(self.places))
                backup = self.backups[which % len(self.backups)]
                restore(backup, to, self.key, Evidence(witness=self.witness), unchecked=True)
                self.places.append(to)
        except Exception as error:
            if not isinstance(error, (LedgerError, ArgumentError)) and type(error).__name__ != "BudgetError":
                raise

    def unseen(self) -> list[tuple[Path, Receipt]]:
        """Pairs of a ledger that could still be spent from and an answer that was given, in which no receipt is missed."""
        return [
            (place, receipt)
            for place in {each for each in self.places if each.exists()}
            for _, receipt in self.answers
            if problems(place, receipt=receipt) == ()
        ]


@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_with_a_witness_no_sequence_buys_more_than_the_budget(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    curator = Curator(tmp_path_factory.mktemp("watched"), watched=True)
    for step in steps:
        curator.step(*step)
    assert len(curator.answers) <= 2  # of 0.4 each


@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_without_one_a_ledger_that_goes_beyond_it_lacks_a_receipt(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    curator = Curator(tmp_path_factory.mktemp("alone"), watched=False)
    for step in steps:
        curator.step(*step)
    seen = curator.unseen()
    for place in {each for each in curator.places if each.exists()}:
        has = [receipt for where, receipt in seen if where == place]
        assert len(has) <= 2
        if len(curator.answers) > 2:
            assert len(has) < len(curator.answers)
        with closing(opening.open_readonly(place)) as store:
            assert verify(store).ok


def test_that_the_steps_can_buy_more(tmp_path: Path) -> None:
    """The twin: without a witness copies can be spent, and every ledger then lacks a receipt."""
    steps = [("ask", 0), ("back up", 0), ("ask", 0), ("lose", 0), ("restore", 0), ("ask", 0)]
    for watched, most in ((False, 3), (True, 2)):
        folder = tmp_path / str(most)
        folder.mkdir()
        curator = Curator(folder, watched)
        for step in steps:
            curator.step(*step)
        assert len(curator.answers) == most


# --- one file -------------------------------------------------------------------------------------------------------


def test_a_second_name_is_no_second_budget(tmp_path: Path, key: Path) -> None:
    """With a log beside each name two names were two budgets, and verification found nothing."""
    place, twin = tmp_path / "survey.ledger", tmp_path / "twin.ledger"
    with closing(made(place, key)) as ledger:
        asked(ledger, 1, "0.1")
        os.link(place, twin)
        with pytest.raises(LedgerError, match="second name"):
            opening.open(twin, key)
        with pytest.raises(LedgerError, match="second name"):
            asked(ledger, 2, "0.9")
        with pytest.raises(LedgerError, match="second name"):
            opening.open_readonly(place)
        twin.unlink()
        asked(ledger, 2, "0.9")
    assert problems(place) == ()


def test_between_questions_everything_is_in_the_file(tmp_path: Path, key: Path) -> None:
    place = tmp_path / "survey.ledger"
    with closing(made(place, key)) as ledger:
        receipt = asked(ledger)
        others = [file for file in tmp_path.iterdir() if file.name not in (place.name, key.name)]
        assert [(file.name, file.stat().st_size) for file in others] == [("survey.ledger-journal", 0)]
        shutil.copy(place, tmp_path / "copy")
    assert problems(tmp_path / "copy", receipt=receipt) == ()


def test_reading_changes_nothing(tmp_path: Path, key: Path) -> None:
    place = tmp_path / "survey.ledger"
    with closing(made(place, key)) as ledger:
        asked(ledger)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()}
    with closing(opening.view(place)) as ledger:
        assert (len(list(ledger.history())), ledger.balance().entries) == (4, 4)
    assert problems(place) == ()
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in tmp_path.iterdir()} == before


# --- broken off -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 3, 4])
def test_an_interrupt_leaves_no_half(
    where: str, key: Path, tmp_path: Path, lose: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    with closing(made(where, key)) as ledger:
        asked(ledger)
        back_up(where, tmp_path / "backup")
    lose(where)
    whole, walks = SQLite.rows, count(1)

    def interrupted(self: SQLite, start: int = 1, stop: int | None = None) -> Iterator[Row]:
        walk = next(walks) if start == 1 else 0  # verification begins further down, and what follows the last entry above
        for row in whole(self, start, stop):
            if walk and row.number > at:
                raise KeyboardInterrupt
            yield row
        if walk:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SQLite, "rows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "backup", where, key, unchecked=True)
    assert nothing_at(where)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    assert restore(tmp_path / "backup", where, key, unchecked=True).head.number == 5


def test_a_killed_restore_leaves_nothing_under_the_name(tmp_path: Path, key: Path) -> None:
    place = tmp_path / "survey.ledger"
    with closing(made(place, key)) as ledger:
        asked(ledger)
        back_up(place, tmp_path / "backup")
    place.unlink()
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from dither.ledger import copies; from dither.ledger.stores import sqlite\n"
        "sqlite._publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "copies.restore(Path(sys.argv[1]), sys.argv[2], sys.argv[3], unchecked=True)"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "backup"), str(place), str(key)]
    assert subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=False).returncode == -9
    assert not place.exists()
    assert restore(tmp_path / "backup", place, key, unchecked=True).head.number == 5
    assert problems(place) == ()


def test_a_long_ledger_reaches_a_server_whole(postgres_url: str) -> None:
    rows = [Row(number, "reserved/1", f"q{number % 7}", f"{number:0900}", f"{number:064}", "s") for number in range(1, 3502)]
    with closing(opening.make(postgres_url, {"left": "1"}, iter(rows))) as store:
        assert (list(store.rows()), store.state()) == (rows, ({"left": "1"}, 3501))
