"""With a witness an older copy of the ledger answers nothing; files that are not a witness are not changed."""

from __future__ import annotations

import shutil
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, BudgetError, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.state import Head
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.ledger.witness import Witness, bring_up_to_date
from ledger.asking import IDENTITY, KEY, asked, declaration, request, reserved

NAME = "0" * 31 + "7"


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    found = Witness(tmp_path / "heads")
    found.create()
    return found


def made(path: Path, witness: Witness | None = None) -> Ledger:
    ledger = Ledger(SQLite.create(path, IDENTITY), KEY, witness=witness)
    ledger.register(declaration())
    return ledger


def opened(path: Path, witness: Witness | None) -> Ledger:
    return Ledger(SQLite.open(path), KEY, witness=witness)


def test_every_charge_is_witnessed_before_a_row_is_read(ledger: Ledger, witness: Witness) -> None:
    with_it = Ledger(ledger.store, KEY, witness=witness)
    held = reserved(with_it)
    assert witness.newest(NAME) == Head(held.number, held.hash)
    held.touch()
    with_it.commit(held, "42")
    asked(with_it, 2)
    assert len(witness.path.read_text(encoding="ascii").splitlines()) == 2


@pytest.mark.parametrize("watched", [True, False])
def test_an_older_copy_is_refused_where_there_is_a_witness(tmp_path: Path, witness: Witness, watched: bool) -> None:
    file, old = tmp_path / "survey.ledger", tmp_path / "old"
    ledger = made(file, witness)
    asked(ledger, 1)
    shutil.copy(file, old)
    asked(ledger, 2)
    ledger.close()
    shutil.copy(old, file)
    again = opened(file, witness if watched else None)
    if watched:
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"does not have the entry 5 that the witness heads names") as refused:
                again.reserve(request(3))
            assert refused.value.charged == "nothing"
        with pytest.raises(LedgerError, match="witness heads"):
            again.reserve(request(1))  # nor is an answer of before shown
    else:
        asked(again, 3)
    again.close()


def spent_with(folder: Path, steps: list[str], watched: bool) -> Fraction:
    """Returns all answers, while someone copies the ledger's file and puts copies back."""
    file, copy, questions = folder / "survey.ledger", folder / "copy", count()
    witness = Witness(folder / "heads") if watched else None
    if witness is not None:
        witness.create()
    ledger, spent = made(file, witness), Fraction(0)
    for step in steps:
        if step == "ask":
            try:
                asked(ledger, next(questions), "0.4")
                spent += Fraction("0.4")
            except (BudgetError, LedgerError):
                pass
            continue
        ledger.close()
        if step == "copy":
            shutil.copy(file, copy)
        elif step == "put back" and copy.exists():
            shutil.copy(copy, file)
        ledger = opened(file, witness)
    ledger.close()
    return spent


STEPS = st.lists(st.sampled_from(["ask", "ask", "copy", "put back"]), max_size=12)


@settings(max_examples=15, deadline=None)
@given(steps=STEPS)
def test_no_copying_about_buys_more_than_the_budget(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    assert spent_with(tmp_path_factory.mktemp("watched"), steps, watched=True) <= 1


def test_that_check_can_fail(tmp_path: Path) -> None:
    steps = ["copy", "ask", "ask", "put back", "ask", "ask"]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert spent_with(tmp_path / "a", steps, watched=False) > 1
    assert spent_with(tmp_path / "b", steps, watched=True) <= 1


def test_of_two_copies_that_ask_at_once_only_the_first_answers(tmp_path: Path, witness: Witness) -> None:
    """Both compare before either is witnessed: the file's order decides, and the later one gives its price back or keeps it."""
    file, twin = tmp_path / "survey.ledger", tmp_path / "twin.ledger"
    first = made(file, witness)
    shutil.copy(file, twin)

    class Overtaken(Witness):
        def add(self, ledger: str, head: Head) -> None:
            reserved(first, 1)
            super().add(ledger, head)

    second = Ledger(SQLite.open(twin), KEY, witness=Overtaken(witness.path))
    with pytest.raises(LedgerError, match="witness heads"):
        second.reserve(request(2))
    asked(first, 3)
    for ledger in (first, second):
        ledger.close()


def test_a_charge_that_cannot_be_witnessed_is_given_back(tmp_path: Path) -> None:
    ledger = made(tmp_path / "survey.ledger")
    full = Ledger(ledger.store, KEY, witness=Witness(Path("/dev/full")))
    with pytest.raises(LedgerError, match="full is no witness"):
        full.reserve(request())
    assert ledger.balance().sums.epsilon == 0
    assert verify(ledger.store).ok
    ledger.close()


def test_a_witness_that_is_missing_stops_every_question(tmp_path: Path, witness: Witness) -> None:
    ledger = made(tmp_path / "survey.ledger", witness)
    witness.path.unlink()
    with pytest.raises(LedgerError, match="The witness heads is missing") as refused:
        ledger.reserve(request())
    assert refused.value.charged == "nothing"
    assert not witness.path.exists()
    ledger.close()


@pytest.mark.parametrize("content", [b"person_id,age\n1,2\n", b"SQLite format 3\0" * 9000, b"\n\n", b"\xff" * 70_000, b"12:ab"])
def test_what_is_no_witness_is_not_written_to(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    ledger = made(tmp_path / "survey.ledger")
    other = Ledger(ledger.store, KEY, witness=Witness(tmp_path / "people.csv"))
    with pytest.raises(LedgerError, match="is no witness"):
        other.reserve(request())
    with pytest.raises(LedgerError, match="is no witness"):
        bring_up_to_date(Witness(tmp_path / "people.csv"), ledger.store)
    assert (tmp_path / "people.csv").read_bytes() == content
    ledger.close()


def test_the_ledger_itself_and_its_journal_are_no_witness(tmp_path: Path) -> None:
    ledger = made(tmp_path / "survey.ledger")
    before = (tmp_path / "survey.ledger").read_bytes()
    with pytest.raises(LedgerError, match="is no witness"):
        bring_up_to_date(Witness(tmp_path / "survey.ledger"), ledger.store)
    assert (tmp_path / "survey.ledger").read_bytes() == before
    for ending in ("-journal", "-wal", "-shm"):
        with pytest.raises(ArgumentError, match="database's log"):
            Witness(tmp_path / f"survey.ledger{ending}")
    ledger.close()


def test_a_line_that_was_cut_off_does_not_take_the_next_one_along(witness: Witness) -> None:
    witness.add(NAME, Head(1, "a" * 64))
    with witness.path.open("a", encoding="ascii") as file:
        file.write(f"{NAME} 2:bbbb")
    witness.add(NAME, Head(3, "c" * 64))
    assert witness.newest(NAME) == Head(3, "c" * 64)


def test_the_newest_head_counts_however_many_lines_come_after_it(witness: Witness) -> None:
    """Anyone who may append could push the newest head out of sight of a reader of the end only."""
    with witness.path.open("a", encoding="ascii") as file:
        file.writelines(f"{NAME} {number}:{number:064x}\n" for number in range(1, 1000))
        file.write(f"{NAME} 5:{5:064x}\n" * 3000)
    for look in (witness, Witness(witness.path)):
        assert look.newest(NAME) == Head(999, f"{999:064x}")
        assert look.newest("1" * 32) is None
    witness.add("1" * 32, Head(1, "a" * 64))
    assert witness.newest("1" * 32) == Head(1, "a" * 64)
    assert witness.newest(NAME) == Head(999, f"{999:064x}")


def test_a_witness_that_was_cut_is_read_again(witness: Witness) -> None:
    witness.add(NAME, Head(7, "a" * 64))
    assert witness.newest(NAME) == Head(7, "a" * 64)
    witness.path.write_text("", encoding="ascii")
    assert witness.newest(NAME) is None
    witness.add(NAME, Head(3, "b" * 64))
    assert witness.newest(NAME) == Head(3, "b" * 64)


def test_a_witness_is_brought_up_to_date_once(ledger: Ledger, witness: Witness) -> None:
    asked(ledger)
    assert bring_up_to_date(witness, ledger.store) == (None, ledger.head())
    (line,) = witness.path.read_text(encoding="ascii").splitlines()
    seen, head = bring_up_to_date(witness, ledger.store)
    assert (str(seen), head) == (str(ledger.head()), ledger.head())
    assert witness.path.read_text(encoding="ascii") == f"{line}\n"


def test_a_ledger_of_another_name_is_not_compared(tmp_path: Path, witness: Witness) -> None:
    witness.add("1" * 32, Head(900, "a" * 64))
    ledger = made(tmp_path / "survey.ledger", witness)
    asked(ledger)
    ledger.close()


def test_making_a_witness_keeps_one_that_is_there(witness: Witness) -> None:
    witness.add(NAME, Head(1, "a" * 64))
    assert not witness.create()
    assert witness.newest(NAME) == Head(1, "a" * 64)
    assert witness.path.stat().st_mode & 0o777 == 0o600
