"""Spill folders go away with their owner, however it ends; nobody else's are touched."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dither.engines.duckdb import spill
from dither.engines.duckdb.spill import PREFIX, Spill, sweep

HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from dither.engines.duckdb.spill import Spill
print(Spill().folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _holder(place: Path) -> tuple[subprocess.Popen[str], Path]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(place)], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_killed_process_leaves_a_folder_that_is_swept(place: Path) -> None:
    process, folder = _holder(place)
    with process:
        (folder / "spilt").write_text("rows", encoding="utf-8")
        sweep()
        assert (folder / "spilt").exists()  # its owner is alive
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert folder.exists()
        sweep()
        assert not folder.exists()


def test_a_folder_is_its_owners_only_and_goes_with_it(place: Path) -> None:
    mine = Spill()
    assert stat.S_IMODE(os.stat(mine.folder).st_mode) == 0o700
    assert os.path.basename(mine.folder).startswith(PREFIX)
    sweep()
    assert os.path.exists(mine.folder)
    mine.remove()
    assert list(place.iterdir()) == []


def test_links_and_what_is_not_ours_are_left_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (elsewhere / "precious").touch()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    (place / f"{PREFIX}unlocked").mkdir()  # no lock in it: not made by us
    (place / f"{PREFIX}linked").mkdir()
    (place / f"{PREFIX}linked" / "lock").symlink_to(elsewhere / "lock")
    (place / "dither-older").mkdir()
    (place / f"{PREFIX}other").mkdir()
    (place / f"{PREFIX}other" / "lock").touch()
    mine = os.getuid()
    before = sorted(place.rglob("*"))
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    sweep()
    assert sorted(place.rglob("*")) == before
    monkeypatch.setattr(os, "getuid", lambda: mine)
    sweep()  # now the last one is ours, and nobody holds its lock
    assert sorted(place.rglob("*")) == [path for path in before if f"{PREFIX}other" not in str(path)]


def test_a_folder_that_is_being_made_is_not_swept(place: Path) -> None:
    made = place / "dither-making-abc"
    made.mkdir()
    sweep()
    assert made.exists()
    (made / "lock").touch()
    sweep()
    assert made.exists()
    long_ago = time.time() - 7200
    os.utime(made, (long_ago, long_ago))
    sweep()
    assert not made.exists()


def test_a_forked_child_takes_nothing_away(place: Path) -> None:
    mine = Spill()
    child = multiprocessing.get_context("fork").Process(target=mine.remove)
    child.start()
    child.join()
    assert child.exitcode == 0
    sweep()
    assert os.path.exists(mine.folder)
    mine.remove()


def _race(place: str, count: int) -> None:
    tempfile.tempdir = place
    for _ in range(count):
        made = Spill()
        sweep()
        Path(made.folder, "rows").touch()
        made.remove()


@pytest.mark.slow
def test_processes_that_make_and_sweep_at_once_do_not_meet(place: Path) -> None:
    racers = [multiprocessing.get_context("spawn").Process(target=_race, args=(str(place), 200)) for _ in range(3)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.exitcode for racer in racers] == [0, 0, 0]
    assert list(place.iterdir()) == []


def test_that_a_folder_without_a_lock_would_be_swept_from_under_its_owner(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an owner that takes no lock."""

    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor: int, how: int) -> None:
            pass

    monkeypatch.setattr(spill, "fcntl", NoLocks)
    mine = Spill()
    sweep()
    assert not os.path.exists(mine.folder)
    mine.remove()
