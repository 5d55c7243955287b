"""Copies of a ledger or a session: some are detected alone, others only with a head or receipt kept elsewhere."""

from __future__ import annotations

import copy
import pickle
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

import dither as dt
from dither.curator import Curator
from dither.ledger import opening
from dither.ledger.ledger import Ending
from dither.ledger.receipts import Receipt
from dither.ledger.records import Request, Reserved
from dither.ledger.verify.report import verify
from faults.mortal import question
from faults.programs import program
from journey.paid import Broken, opened


def backup(where: Path, to: Path) -> None:
    """As the documents say it is done: the database, not the file."""
    source, target = sqlite3.connect(where), sqlite3.connect(to)
    source.backup(target)
    source.close()
    target.close()


def asked(survey: Curator, number: int) -> Receipt:
    return survey.ask(question(number), epsilon="0.4").receipt


def problems(where: Path, head: str | None = None, receipt: Receipt | None = None) -> tuple[str, ...]:
    ledger = opening.view(where)
    found = verify(ledger.store, head=head, receipt=receipt).problems
    ledger.close()
    return found


def head_of(survey: Curator) -> str:
    return verify(survey.ledger.store).head


def test_a_copy_that_is_used_beside_the_original(folder: Path) -> None:
    """Each copy verifies alone; only a receipt of one shows that there are two."""
    survey, other = opened(folder), folder / "other.ledger"
    common = asked(survey, 1)
    backup(folder / "survey.ledger", other)
    twin = dt.open(folder / "survey.toml", other, key=folder / "survey.ledger.key")
    here, there = asked(survey, 2), asked(twin, 3)
    assert survey.budget.spent.epsilon == twin.budget.spent.epsilon == Fraction(4, 5)  # and 1.2 in truth
    assert problems(folder / "survey.ledger", head_of(survey), here) == ()
    assert problems(other, head_of(twin), there) == problems(other, receipt=common) == ()
    for where, receipt, head in ((other, here, head_of(survey)), (folder / "survey.ledger", there, head_of(twin))):
        assert any("another past" in each for each in problems(where, receipt=receipt))
        assert any("another past" in each for each in problems(where, head=head))
    for each in (survey, twin):
        each.ledger.close()


def test_an_old_copy_that_is_put_back(folder: Path) -> None:
    where, old = folder / "survey.ledger", folder / "old"
    survey = opened(folder)
    first = asked(survey, 1)
    backup(where, old)
    second, head = asked(survey, 2), head_of(survey)
    survey.ledger.close()
    shutil.copyfile(old, where)
    assert problems(where) == problems(where, receipt=first) == ()  # it was right in its day
    assert any("older copy" in each for each in problems(where, head=head))
    assert any("older copy" in each for each in problems(where, receipt=second))
    again = opened(folder)
    asked(again, 2)  # nothing in it can tell: 1.2 in truth. But from then on it contradicts what was given out
    asked_later = problems(where, head=head) + problems(where, receipt=second)
    assert any("another past" in each for each in asked_later)
    again.ledger.close()


def test_an_open_session_notices_an_old_copy(folder: Path) -> None:
    where, old = folder / "survey.ledger", folder / "old"
    survey = opened(folder)
    asked(survey, 1)
    backup(where, old)
    asked(survey, 2)
    old.replace(where)
    for number in (2, 3):
        with pytest.raises(dt.LedgerError, match=r"moved or replaced|older copy") as caught:
            asked(survey, number)
        assert caught.value.charged == "nothing"
    survey.ledger.close()


def test_between_questions_the_file_is_the_whole_ledger(folder: Path) -> None:
    """Nothing lies beside it that a copy, a mount of the one file, or a clean-up could miss."""
    where, bare = folder / "survey.ledger", folder / "bare.ledger"
    survey = opened(folder)
    receipt, head = asked(survey, 1), head_of(survey)
    shutil.copyfile(where, bare)
    assert problems(bare, head=head, receipt=receipt) == ()
    of_the_key = {"survey.ledger.key", "survey.ledger.key.data"}  # the curator's, with the marks of the data
    beside = {each.name for each in folder.glob("survey.ledger*") if each.stat().st_size} - of_the_key
    assert beside == {"survey.ledger"}
    survey.ledger.close()


def test_the_documents_say_so() -> None:
    docs = Path(__file__).parents[2] / "docs"
    for name, words in {
        "ledger.md": ("dither backup", "--head", "--receipt", "--witness", "the whole ledger put back to an earlier moment"),
        "known-limits.md": ("Rollback",),
    }.items():
        text = (docs / name).read_text(encoding="utf-8")
        for word in words:
            assert word in text


# --- what a process that ended had reserved ---------------------------------------------------------------------------


@pytest.mark.parametrize("settle", ["commit", "cancel"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_a_process_reserved_is_settled_by_nobody_else(
    kind: str, settle: str, folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret was only in that process. With a made-up secret the ledger does not verify."""
    where = folder / "survey.ledger" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    ended = dt.open(folder / "survey.toml", where, key=folder / "survey.key", make=True)
    ended.engine = Broken(KeyboardInterrupt())
    with monkeypatch.context() as dying:
        dying.setattr(ended.ledger, "give_up", lambda *_: Ending.CHARGED)  # nothing more is written
        with pytest.raises(KeyboardInterrupt):
            asked(ended, 1)
    ended.ledger.close()
    survey = dt.open(folder / "survey.toml", where, key=folder / "survey.key")
    *_, dead = survey.ledger.history()
    assert isinstance(dead.record, Reserved)
    report = verify(survey.ledger.store)
    assert (report.open, report.problems, report.spent["epsilon"]) == (1, (), Fraction(2, 5))
    names = ("question", "plan", "snapshot", "analyst", "tables", "unit", "neighbours", "mechanisms", "fresh")
    same = {name: getattr(dead.record, name) for name in names}
    forged = survey.ledger.attempt(Request(**same, catalog_hash=dead.record.catalog, charge=dead.record.loss))
    forged.place(dead, dead.hash)
    survey.ledger._reservations.discard(forged)
    with pytest.raises(dt.LedgerError, match="made up"):
        survey.ledger.commit(forged, "42") if settle == "commit" else survey.ledger.cancel(forged)
    assert verify(survey.ledger.store).open == 1
    survey.ledger._reservations.add(forged)  # as who runs the curator's Python could; then verification tells
    survey.ledger.commit(forged, "42") if settle == "commit" else survey.ledger.cancel(forged)
    assert verify(survey.ledger.store).problems
    survey.ledger.close()


# --- sessions ----------------------------------------------------------------------------------------------------------


def test_a_session_is_not_pickled_or_copied(folder: Path) -> None:
    survey = opened(folder)
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(dt.LedgerError, match=r"cannot be copied(.|\n)*Charged: nothing"):
            attempt(survey)
    alias = copy.copy(survey)  # shares the one ledger, so it spends from the one budget
    asked(alias, 1)
    assert alias.ledger is survey.ledger
    assert survey.budget.spent.epsilon == Fraction(2, 5)
    survey.ledger.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "memory"])
def test_a_fork_of_a_session(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """The child may look at the budget and open its own; with the parent's data it asks nothing, and pays nothing."""
    where = {"sqlite": str(folder / "survey.ledger"), "memory": ":memory:"}.get(kind) or request.getfixturevalue("postgres_url")
    found = program("forking.py", str(folder), where)
    refused = "This catalog was opened in another process, and a fork cannot read its data."
    assert found["child"][1:4] == [refused, "open the catalog in the process that asks.", "nothing"]
    assert found["parent"] == [["answered", "1/100"], ["answered", "1/50" if kind == "memory" else "3/100"]]
    if kind == "memory":
        assert "fork of it" in found["own"][1]
        return
    assert found["own"] == ["1/100", "answered"]
    assert found["noise"] == 3  # no two of the three answers have the same noise
