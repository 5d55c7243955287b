"""One ledger, one file, one budget: whatever it is called, and whatever lies or is missing beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

import dither as dt
from dither.ledger.verify.report import verify
from journey.paid import opened, people, write

OTHER = """
import sys
import dither as dt
with dt.open(sys.argv[1], sys.argv[2], key=sys.argv[3]) as survey:
    try:
        survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 1", epsilon="0.9")
        print("answered")
    except dt.DitherError as error:
        print(error.what)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(50).to_parquet(tmp_path / "people.parquet")
    write(tmp_path)
    opened(tmp_path).close()
    return tmp_path


def other(folder: Path, ledger: Path, within: tuple[str, ...] = ()) -> str:
    """What another process is told that asks for 0.9 by another name of the ledger."""
    command = [
        *within,
        sys.executable,
        "-c",
        OTHER,
        str(folder / "survey.toml"),
        str(ledger),
        str(folder / "survey.ledger.key"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def test_a_hard_link_is_no_second_budget(folder: Path) -> None:
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
        os.link(folder / "survey.ledger", folder / "twin.ledger")
        assert "has a second name (a hard link)" in other(folder, folder / "twin.ledger")
        with pytest.raises(dt.LedgerError, match=r"second name(.|\n)*Charged: nothing"):
            survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.9")
        (folder / "twin.ledger").unlink()
        survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.9")
        assert verify(survey.ledger.store).spent["epsilon"] == 1


def test_the_name_of_a_draft_is_no_second_name(folder: Path) -> None:
    """Left by a creation that was killed between giving the file its name and taking the draft's away."""
    draft = folder / ".survey.ledger.0123456789abcdef"
    os.link(folder / "survey.ledger", draft)
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.1")
    assert not draft.exists()


@pytest.mark.slow
def test_a_symbolic_link_is_the_same_budget(folder: Path) -> None:
    (folder / "twin.ledger").symlink_to(folder / "survey.ledger")
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.2")
        assert other(folder, folder / "twin.ledger").startswith("The budget does not allow this question")


MOUNTED = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"')


def can_mount() -> bool:
    trial = ["unshare", "--map-root-user", "--mount", "true"]
    return bool(which("unshare")) and not subprocess.run(trial, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="no mounts of one's own here")
def test_one_file_mounted_elsewhere_is_the_same_budget(folder: Path) -> None:
    """What a container does that is given the ledger's file alone."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "survey.ledger").touch()
    mounted = (*MOUNTED, str(folder / "survey.ledger"), str(elsewhere / "survey.ledger"))
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.2")
        assert other(folder, elsewhere / "survey.ledger", mounted).startswith("The budget does not allow this question")
        survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.1")


@pytest.mark.slow
def test_what_a_clean_up_removes_beside_it_is_nothing(folder: Path) -> None:
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.2")
        for ending in ("-wal", "-shm", "-journal"):
            (folder / f"survey.ledger{ending}").unlink(missing_ok=True)
        assert other(folder, folder / "survey.ledger").startswith("The budget does not allow this question")
        survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.8")
        assert survey.budget.left.epsilon == 0


@pytest.mark.parametrize("content", [b"", b"something"])
def test_a_log_that_somebody_put_beside_it_stops_it(folder: Path, content: bytes) -> None:
    with opened(folder) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.2")
        (folder / "survey.ledger-wal").write_bytes(content)
        with pytest.raises(dt.LedgerError, match="write-ahead log"):
            survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.1")
        (folder / "survey.ledger-wal").unlink()
        survey.ask("SELECT COUNT(*) AS n FROM people WHERE age > 2", epsilon="0.1")
        assert verify(survey.ledger.store).ok


def test_a_ledger_that_was_switched_to_a_log_is_told(folder: Path) -> None:
    raw = sqlite3.connect(folder / "survey.ledger", isolation_level=None)
    assert raw.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    raw.close()
    with pytest.raises(dt.LedgerError, match="write-ahead log"):
        opened(folder)
    raw = sqlite3.connect(folder / "survey.ledger", isolation_level=None)
    raw.execute("PRAGMA journal_mode = DELETE")
    raw.close()
    opened(folder).close()


def test_a_copy_in_the_middle_of_a_write_does_not_verify_as_another_ledger(folder: Path) -> None:
    """A copy of the file alone is the ledger of a moment between two questions, or it is found out."""
    with opened(folder) as survey:
        for number in range(8):
            survey.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {number}", epsilon="0.1")
            shutil.copyfile(folder / "survey.ledger", folder / "copy.ledger")
            with dt.open(folder / "survey.toml", folder / "copy.ledger", key=folder / "survey.ledger.key") as copy:
                assert verify(copy.ledger.store).head == verify(survey.ledger.store).head
