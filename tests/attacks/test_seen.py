"""Attacks that once broke dither, and must fail now (PITFALLS, "Seen in this project")."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.ledger import opening
from dither.ledger.receipts import Key
from dither.ledger.verify.entries import entry, text_of
from dither.ledger.verify.report import verify
from dither.ledger.verify.walk import Walk
from dither.query.work import Work
from journey.paid import Broken, opened, people, write
from journey.preloaded import command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(50).to_parquet(tmp_path / "people.parquet")
    write(tmp_path)
    opened(tmp_path).close()
    return tmp_path


def question(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age > {number}"


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = command(*words, "--catalog", "survey.toml")
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def spent(folder: Path) -> Fraction:
    with dt.open(folder / "survey.toml") as survey:
        return survey.budget.spent.epsilon


def test_a_failure_after_the_charge_is_not_repeated(folder: Path) -> None:
    """It revealed the exact value, at any price, any number of times."""
    with opened(folder) as survey:
        survey.engine = engine = Broken(ValueError())
        for number in range(10):
            with pytest.raises(dt.DitherError):
                survey.ask(question(number), epsilon="0.001")
        assert engine.calls == 1


@pytest.mark.parametrize("option", ["--out", "--receipt"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_outputs_are_not_written_over_the_ledgers_log(folder: Path, option: str, force: tuple[str, ...]) -> None:
    for number in range(2):
        with opened(folder) as survey:
            survey.ask(question(number), epsilon="0.4")
            for ending in ("-wal", "-journal", "-shm", "", ".key"):
                done = shell(folder, "ask", question(0), "-e", "0.4", option, f"survey.ledger{ending}", "-f", "csv", *force)
                assert done.returncode == 2
    assert spent(folder) == Fraction(4, 5)
    with opened(folder) as survey, pytest.raises(dt.BudgetError):
        survey.ask(question(9), epsilon="0.4")


def test_two_names_are_one_budget(folder: Path) -> None:
    with opened(folder) as survey:
        survey.ask(question(0), epsilon="0.1")
        os.link(folder / "survey.ledger", folder / "twin.ledger")
        (folder / "twin.ledger.key").write_bytes((folder / "survey.ledger.key").read_bytes())
        (folder / "twin.ledger.key").chmod(0o600)
        assert shell(folder, "ask", question(1), "-e", "0.9", "-l", "twin.ledger").returncode == 4
        (folder / "twin.ledger").unlink()
        survey.ask(question(2), epsilon="0.9")
        assert survey.budget.spent.epsilon == 1


def test_a_capital_letter_makes_no_other_table(tmp_path: Path) -> None:
    def catalog(name: str, unit: str) -> dt.Catalog:
        rows = {"person_id": [1, 1, 2], "age": [3, 4, 5]}
        table = dt.Table(rows, unit=unit, max_rows=1 if unit == "row" else 30, columns={"age": dt.between(0, 9)})
        return dt.Catalog({name: table}, dt.Budget(epsilon=1))

    with dt.open(catalog("people", "person_id"), ledger=tmp_path / "c.ledger", make=True) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon="0.5")
    for name in ("people", "People", "PEOPLE"):
        with pytest.raises(dt.LedgerError, match="unit of people"):
            dt.open(catalog(name, "row"), ledger=tmp_path / "c.ledger")


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_an_interrupt_at_the_lock_leaves_it_free(folder: Path) -> None:
    """Ctrl-C while another process holds the lock is delivered right after the lock is acquired."""
    survey = opened(folder)
    survey.ask(question(1), epsilon="0.1")  # so that the next one reaches the lock at once
    holder = sqlite3.connect(folder / "survey.ledger", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")

    def press() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        holder.execute("ROLLBACK")

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        survey.ask(question(0), epsilon="0.1")
    thread.join()
    assert "nothing" in str(stopped.value)
    holder.execute("BEGIN IMMEDIATE")  # at once, while the exception is still held
    holder.execute("ROLLBACK")
    holder.close()
    assert survey.ask(question(0), epsilon="0.1")
    survey.close()


def test_the_same_question_at_once_is_paid_once(folder: Path) -> None:
    with opened(folder) as survey:

        def slow(engine: Engine, work: Work) -> Any:
            time.sleep(0.2)
            return STEPS.run(engine, work)

        survey.steps = Steps(run=slow)
        start = threading.Barrier(8)

        def ask(_: int) -> Any:
            start.wait()
            return survey.ask(question(0), epsilon="0.1").rows

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(8)))
        assert all(rows == found[0] for rows in found)
        assert survey.budget.spent.epsilon == Fraction(1, 10)


def test_sums_made_again_by_the_checkers_own_code_are_found(folder: Path) -> None:
    """Entries cut off, with recomputed sums and the old seal, another key's seal, or none."""
    with opened(folder) as survey:
        for number in range(3):
            survey.ask(question(number), epsilon="0.1")
    with opened(folder) as survey:
        rows, state = list(survey.ledger.store.rows()), survey.ledger.store.state()[0]
        assert verify(survey.ledger.store).ok
    identity = {name: value for name, value in _loaded(state["ledger"]).items() if name != "format"}
    for length in range(2, len(rows), 2):
        store = opening.open_readonly(folder / "survey.ledger")
        walk = Walk(store, identity)
        for row in rows[:length]:
            assert list(walk.step(row, entry(row))) == []
        store.close()
        last = rows[length - 1]
        head = text_of({"number": last.number, "hash": last.hash, "time": entry(last)["time"]})
        for seal in (state["seal"], Key.new().seal("x"), "0" * 64):
            made = walk.state() | {"ledger": state["ledger"], "head": head, "leases": "{}", "seal": seal}
            _rewrite(folder / "survey.ledger", length, made)
            assert shell(folder, "verify").returncode == 1
            done = shell(folder, "ask", question(7), "-e", "0.1")
            assert (done.returncode, done.stdout) == (4, "")


def _loaded(text: str) -> dict[str, str]:
    return dict(json.loads(text))


def _rewrite(path: Path, length: int, state: dict[str, str]) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    guard = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_last'").fetchone()[0]
    raw.execute("DROP TRIGGER entries_last")
    raw.execute("DELETE FROM entries WHERE number > ?", (length,))
    raw.execute(guard)
    raw.execute("DELETE FROM state")
    raw.executemany("INSERT INTO state VALUES (?, ?)", state.items())
    raw.close()
