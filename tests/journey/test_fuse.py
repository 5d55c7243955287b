"""The first failure after a charge closes the catalog until the curator reopens it: it reveals something unpriced."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import duckdb
import pytest

import dither as dt
from dither.curator import STEPS, Curator, Steps
from dither.engines.base import Engine
from dither.errors import ClosedError, EngineError
from dither.ledger.ledger import Ledger
from dither.ledger.verify.report import verify
from dither.query.work import Group, Work
from journey.paid import COUNT, MEANS, Broken, kinds, opened, people, write

FAILURES = [
    ValueError("Mrs Miller"),
    MemoryError("Mrs Miller"),
    RuntimeError("Mrs Miller"),
    OverflowError("Mrs Miller"),
    RecursionError("Mrs Miller"),
    duckdb.OutOfMemoryException("Mrs Miller"),
    duckdb.InterruptException("Mrs Miller"),
    duckdb.ConversionException("Mrs Miller"),
    TimeoutError("Mrs Miller"),
    EngineError(diagnosis="Mrs Miller"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(50).to_parquet(tmp_path / "people.parquet")
    write(tmp_path, epsilon=10)
    return tmp_path


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def survey(folder: Path, request: pytest.FixtureRequest) -> Iterator[Curator]:
    where = {"sqlite": folder / "survey.ledger", "memory": ":memory:"}.get(request.param)
    where = where or request.getfixturevalue("postgres_url")
    with dt.open(folder / "survey.toml", where, key=folder / "survey.key", make=True) as session:
        yield session


def fail(survey: Curator, error: BaseException = FAILURES[0], question: str = COUNT) -> str:
    """Returns what the analyst is told when the engine fails."""
    engine, survey.engine = survey.engine, Broken(error)
    try:
        with pytest.raises(dt.DitherError) as told:
            survey.ask(question, epsilon="0.1")
    finally:
        survey.engine = engine
    return str(told.value)


def test_a_failure_closes_and_stored_answers_are_still_given(survey: Curator) -> None:
    before = survey.ask(MEANS, epsilon="0.1")
    fail(survey)
    assert survey.closed
    for attempt in (
        lambda: survey.ask(COUNT, epsilon="0.1"),
        lambda: survey.ask(COUNT, epsilon="0.1", fresh=True),
        lambda: survey.suggest("people.age", epsilon="0.1"),
    ):
        with pytest.raises(ClosedError, match="Charged: nothing"):
            attempt()
    assert "closed to new questions" in survey.quote(COUNT, epsilon="0.1").refusal
    assert survey.ask(MEANS, epsilon="0.1").rows == before.rows
    assert survey.budget.spent.epsilon == Fraction(1, 5)
    assert survey.reopen() == next(entry.number for entry in survey.ledger.history() if entry.kind == "failed/1")
    assert not survey.ask(COUNT, epsilon="0.1").replayed
    assert kinds(survey.ledger)[4:] == ["reserved", "failed", "reopened", "reserved", "committed"]
    assert verify(survey.ledger.store).ok


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_whatever_fails_whoever_asks_sees_one_text(folder: Path, error: Exception) -> None:
    with opened(folder) as survey:
        told = fail(survey, error)
        assert told == str(EngineError("ε = 0.1"))
        assert survey.closed
        assert "Mrs Miller" in survey.diagnosis


def test_failures_after_the_engine_close_too(folder: Path) -> None:
    """Noise that does not fit, say: it may depend on the rows as well."""

    def broken(*_: object) -> NoReturn:
        raise OverflowError("17")

    with opened(folder) as survey:
        survey.steps = Steps(release=broken)
        with pytest.raises(EngineError):
            survey.ask(COUNT, epsilon="0.1")
        assert survey.closed


def test_it_stays_closed_for_everybody_until_it_is_reopened(folder: Path) -> None:
    with opened(folder) as early:
        with opened(folder) as survey:
            fail(survey)
        for session in (early, opened(folder)):
            with pytest.raises(ClosedError):
                session.ask(COUNT, epsilon="0.1")
        session.close()
        with opened(folder) as curator:
            curator.reopen()
        assert early.ask(COUNT, epsilon="0.1")


def test_who_asks_and_interrupts_does_not_close(survey: Curator) -> None:
    for number in range(5):
        engine, survey.engine = survey.engine, Broken(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt) as stopped:
            survey.ask(f"SELECT COUNT(*) AS n{number} FROM people", epsilon="0.1")
        assert "stays charged" in str(stopped.value)
        survey.engine = engine
    assert not survey.closed
    assert survey.ask(COUNT, epsilon="0.1")


def test_a_question_under_way_is_committed(folder: Path) -> None:
    """Another one fails while it runs."""
    with opened(folder) as survey, opened(folder) as unlucky:

        def slow(engine: Engine, work: Work) -> Sequence[Group]:
            fail(unlucky, question=MEANS)
            return STEPS.run(engine, work)

        survey.steps = Steps(run=slow)
        assert survey.ask(COUNT, epsilon="0.1").rows
        with pytest.raises(ClosedError):
            survey.ask("SELECT COUNT(*) AS m FROM people WHERE age > 3", epsilon="0.1")


def test_a_failure_that_the_ledger_cannot_be_told_closes_here_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise dt.LedgerError("The ledger is away.")

    with opened(folder) as survey:
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "give_up", away)
            fail(survey)
            with pytest.raises(ClosedError):
                survey.ask(MEANS, epsilon="0.1")
        with pytest.raises(ClosedError):  # and as soon as it is back, for everybody
            survey.ask(MEANS, epsilon="0.1")
        assert survey.closed


def test_the_diagnosis_is_for_the_curator_alone(folder: Path) -> None:
    with opened(folder) as survey:
        fail(survey)
        note = folder / "survey.ledger.failure"
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        assert "Mrs Miller" in note.read_text(encoding="utf-8")
        assert "Mrs Miller" not in "".join(row.body for row in survey.ledger.store.rows())
        survey.reopen()
        assert not note.exists()


def test_notes_that_others_could_read_are_closed_to_them(folder: Path) -> None:
    note = folder / "survey.ledger.failure"
    note.write_text("", encoding="utf-8")
    note.chmod(0o644)
    with opened(folder) as survey:
        fail(survey)
    assert stat.S_IMODE(note.stat().st_mode) == 0o600


@pytest.mark.parametrize("option", ["--out", "--receipt"])
def test_no_output_replaces_the_notes(folder: Path, option: str) -> None:
    with opened(folder) as survey:
        survey.ask(MEANS, epsilon="0.1")
        fail(survey)
    note = folder / "survey.ledger.failure"
    before = note.read_bytes()
    words = ["ask", MEANS, "-e", "0.1", "-f", "csv", option, str(note), "--force", "-c", str(folder / "survey.toml")]
    done = subprocess.run([sys.executable, "-m", "dither.cli", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, note.read_bytes()) == (2, "", before)


def test_a_source_that_breaks_while_it_is_read_closes(folder: Path) -> None:
    """A real failure: the file is spoilt under DuckDB's hands, between the last look at it and the reading."""
    with opened(folder) as survey:
        whole = (folder / "people.parquet").read_bytes()

        def spoilt(engine: Engine, work: Work) -> Sequence[Group]:
            (folder / "people.parquet").write_bytes(b"PAR1" + bytes(len(whole) - 8) + b"PAR1")
            return STEPS.run(engine, work)

        survey.steps = Steps(run=spoilt)
        with pytest.raises(EngineError):
            survey.ask("SELECT AVG(age) AS a FROM people", epsilon="0.1")
        assert survey.closed
        assert survey.diagnosis


@pytest.mark.slow
def test_another_process_sees_it_closed(folder: Path) -> None:
    with opened(folder) as survey:
        fail(survey)
    asked = [sys.executable, "-m", "dither.cli", "ask", COUNT, "-e", "0.1", "-c", str(folder / "survey.toml")]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "closed to new questions" in done.stderr
    assert "Charged: nothing" in done.stderr
