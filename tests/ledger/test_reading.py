"""A user with read access can verify a ledger, and a truncated ledger is not written to."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import dither as dt
from dither.ledger import opening
from dither.ledger.verify.report import verify
from journey.paid import COUNT, opened, people, write

READ = """
import os, sys
from contextlib import closing
from dither.ledger import opening
from dither.ledger.verify.report import verify
opening.memory().close()  # whatever is loaded late is loaded now: the interpreter may be closed to others
os.setuid(65534)
with closing(opening.open_readonly(sys.argv[1])) as store:
    found = verify(store)
    print(len(found.problems), found.entries)
print(sorted(os.listdir(os.path.dirname(sys.argv[1]))))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people().to_parquet(tmp_path / "people.parquet")
    write(tmp_path)
    with opened(tmp_path) as survey:
        survey.ask(COUNT, epsilon="0.1")
        survey.ask(COUNT, epsilon="0.2")
    return tmp_path


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may only read")
def test_who_may_only_read_can_verify(folder: Path) -> None:
    for place in (folder, *folder.parents):  # pytest's own folders are closed to others
        if "pytest-of-" not in str(place):
            break
        place.chmod(0o755)
    (folder / "survey.ledger").chmod(0o644)
    before = sorted(os.listdir(folder))
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder / "survey.ledger")], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stdout.splitlines() == ["0 6", str(before)], done.stderr


def test_reading_changes_nothing_beside_an_open_session(folder: Path) -> None:
    with opened(folder) as survey:
        survey.ask(COUNT, epsilon="0.3")
        before = {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in folder.iterdir()}
        with closing(opening.open_readonly(folder / "survey.ledger")) as store:
            found = verify(store)
            assert list(found.problems) == []
            assert found.entries == survey.ledger.head().number
            with pytest.raises(dt.LedgerError, match="cannot be written"), store.transaction() as inside:
                inside.put("total", "{}")
        assert {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in folder.iterdir()} == before


HALF = """
import os, sqlite3, sys
half = sqlite3.connect(sys.argv[1], isolation_level=None)
half.execute("PRAGMA journal_mode = TRUNCATE")
half.execute("PRAGMA cache_size = 1")
half.execute("PRAGMA cache_spill = 1")
half.execute("BEGIN IMMEDIATE")
half.execute("DROP TRIGGER entries_stay")
for _ in range(50):
    half.execute("UPDATE entries SET signature = signature || hex(randomblob(3000))")
os.kill(os.getpid(), 9)  # the file is half written, and its journal is hot
"""


def test_half_a_write_is_told_by_who_only_reads_and_taken_back_by_who_writes(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", HALF, str(folder / "survey.ledger")], check=False)
    assert (folder / "survey.ledger-journal").stat().st_size > 0
    before = (folder / "survey.ledger").read_bytes()
    with pytest.raises(dt.LedgerError, match="in the middle of a write"):
        opening.view(folder / "survey.ledger")
    assert (folder / "survey.ledger").read_bytes() == before
    with opened(folder) as survey:
        survey.ask(COUNT, epsilon="0.3")
        assert verify(survey.ledger.store).ok


@pytest.mark.parametrize("cut", [True, False])
def test_a_ledger_whose_end_is_missing_is_not_written_on(folder: Path, cut: bool) -> None:
    with sqlite3.connect(folder / "survey.ledger") as edited:
        edited.execute("DROP TRIGGER entries_last")
        if cut:
            edited.execute("DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)")
    edited.close()
    with opened(folder) as survey:
        if not cut:  # the twin
            assert survey.ask(COUNT, epsilon="0.3")
            return
        with pytest.raises(dt.LedgerError, match=r"do not end where(.|\n)*Charged: nothing"):
            survey.ask(COUNT, epsilon="0.3")


def test_a_missing_ledger_is_not_replaced_without_a_word(tmp_path: Path) -> None:
    with pytest.raises(dt.LedgerError, match=r"second budget for the same people"):
        opening.open(tmp_path / "gone.ledger")
