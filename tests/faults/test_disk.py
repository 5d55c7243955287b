"""A ledger's file that cannot grow, be written or be locked: no answer, and what the error says of the charge is true."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree, which

import pytest

import dither as dt
from dither.ledger.stores import sqlite
from faults.mortal import question
from faults.programs import program
from faults.steps import around
from faults.told import charged, outcome, true
from journey.paid import opened, people, write


@pytest.fixture
def where(folder: Path) -> str:
    return str(folder / "survey.ledger")


def test_every_write_that_fails(folder: Path, where: str) -> None:
    """A real limit of the operating system, a little further each time, until there is room for the whole ask: first the
    journal cannot be written, then one page of the file after the other."""
    write(folder, epsilon=10**6)
    asked = program("limited.py", "size", str(folder))["asked"]
    found = charged(where)
    first, second = ([true(each, *found) for each in asked[start::2]] for start in (0, 1))
    assert len(first) > 8
    assert first[-1] == "answered"
    assert set(second) == {"answered"}  # with room again the same session goes on
    assert "charged" in first  # so failures after the charge were met,
    assert {"nothing", "perhaps"} & set(first)  # and failures before it
    assert all("disk" in what for _, what, *_ in asked[::2] if what != "answered")


ALONE = ("unshare", "--map-root-user", "--mount")


def can_mount() -> bool:
    """Whether this system lets anybody have a small disk of their own."""
    trial = "mkdir disk && mount -t tmpfs -o size=64k tmpfs disk"
    with tempfile.TemporaryDirectory() as place:
        command = [*ALONE, "sh", "-c", trial]
        return bool(which("unshare")) and not subprocess.run(command, cwd=place, capture_output=True, check=False).returncode


@pytest.mark.skipif(not can_mount(), reason="no disk of one's own here; the limit above fails each write in its stead")
def test_a_disk_that_is_really_full(folder: Path) -> None:
    write(folder, epsilon=10**6)
    found = program("full.py", str(folder), within=ALONE)
    assert found["texts"] == ["The ledger survey.ledger cannot grow: the disk is full.", "answered"]
    assert set(found["full"]) == {"nothing", "charged", "answered"}
    assert set(found["after"]) == {"answered"}  # with room again the same session goes on


@pytest.mark.parametrize(("step", "told"), [("reserve", "nothing"), ("commit", "charged")])
def test_a_full_disk(folder: Path, where: str, step: str, told: str) -> None:
    write(folder, epsilon=10**6)
    survey = opened(folder)
    survey.ask(question(0), epsilon="0.1")
    raw = survey.ledger.store._connected()  # type: ignore[attr-defined]

    def full(when: str) -> None:
        if when == f"before {step}":
            raw.execute(f"PRAGMA max_page_count = {raw.execute('PRAGMA page_count').fetchone()[0]}").fetchone()

    around(survey.ledger, step, full)
    found = []
    while not found or found[-1][1] == "answered":  # there may be room in the pages that are there
        found.append(outcome(survey, question(len(found) + 1)))
        raw.execute("PRAGMA max_page_count = 1000000").fetchone()
    assert "disk is full" in found[-1][1]
    assert true(found[-1], *charged(where)) == told
    assert true(outcome(survey, question(999)), *charged(where)) in ("answered", told)
    survey.ledger.close()


@pytest.mark.parametrize("locked", ["survey.ledger", "."])
def test_a_file_or_folder_that_may_not_be_written(locked: str) -> None:
    """Run as a user other than root, who may write everything."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        people(50).to_parquet(folder / "people.parquet")
        write(folder)
        asked = program("limited.py", "readonly", str(folder), locked)["asked"]
        answered = [again for _, what, *_, again in asked if what == "answered"]
        # In a locked folder the file itself may be written, and its journal is there already. A stored answer takes no writing.
        assert answered == ([False, True] if locked == "." else [True])
        for _, what, fix, says, _ in asked:
            if what == "answered":
                continue
            assert what in ("The ledger survey.ledger cannot be written.", "The ledger survey.ledger cannot be opened.")
            assert "access to the file and its folder" in fix
            assert says == "nothing"
        folder.chmod(0o755)
        (folder / "survey.ledger").chmod(0o644)
        survey = opened(folder)
        assert str(survey.budget.spent) == ("ε = 0.2" if locked == "." else "ε = 0.1")
        assert survey.ask(question(1), epsilon="0.1")
        survey.ledger.close()
    finally:
        folder.chmod(0o755)
        rmtree(folder)


HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(where: str) -> Iterator[None]:
    """Another process holds the file."""
    command = [sys.executable, "-c", HOLD, where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        try:
            yield
        finally:
            other.stdin.close()
            other.wait()


@pytest.mark.parametrize(("step", "told"), [("reserve", "nothing"), ("commit", "charged")])
def test_a_file_that_another_process_holds(
    folder: Path, where: str, step: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.05)
    survey = opened(folder)
    survey.ask(question(0), epsilon="0.1")
    holders = []

    def hold(when: str) -> None:
        if when == f"before {step}" and not holders:
            holders.append(held(where))
            holders[0].__enter__()

    around(survey.ledger, step, hold)
    found = outcome(survey, question(1))
    holders[0].__exit__(None, None, None)
    assert found[1] == "The ledger survey.ledger is locked by another process."
    assert true(found, *charged(where)) == told
    assert true(outcome(survey, question(1)), *charged(where)) == "answered"
    assert survey.budget.spent == dt.open(folder / "survey.toml").budget.spent
    survey.ledger.close()


def test_a_file_that_is_locked_for_readers_too(folder: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.05)
    survey = opened(folder)
    survey.ask(question(0), epsilon="0.1")
    survey.ledger.close()
    other = sqlite3.connect(where, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(dt.LedgerError, match=r"locked by another process(.|\n)*Charged: nothing"):
        opened(folder)
    other.close()
    assert os.path.getsize(where) > 0
    assert true(outcome(opened(folder), question(1)), *charged(where)) == "answered"
