"""Whoever may only read a ledger can check it, and a ledger that was cut off is not written on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import dither as dt
from dither.ledger import opening
from dither.ledger.verify import verify
from journey.paid import COUNT, opened, people, write

READ = """
import os, sys
from contextlib import closing
from dither.ledger import opening
from dither.ledger.verify import verify
opening.memory().close()  # whatever is loaded late is loaded now: the interpreter may be closed to others
os.setuid(65534)
with closing(opening.readable(sys.argv[1])) as store:
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


def test_a_copy_is_as_whole_as_the_ledger_and_goes_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as survey:  # still open: what was written last is in the log beside the file
        survey.ask(COUNT, epsilon="0.3")
        monkeypatch.setattr(os, "access", lambda *_: False)
        store = opening.readable(folder / "survey.ledger")
        found = verify(store)
        assert list(found.problems) == []
        assert found.entries == survey.ledger.head().number
        copied = Path(store._path).parent  # type: ignore[attr-defined]
        store.close()
    del store
    assert copied != folder
    assert not copied.exists()


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
