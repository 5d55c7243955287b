"""Every output after a charge says what was charged: answers, proposals, failures, interruptions."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dither as dt
from dither import curator, finish
from dither.answer import Answer
from dither.cli import output
from dither.engines.duckdb.engine import DuckDB
from dither.errors import DitherError
from dither.ledger.ledger import Ledger
from journey.hospital import BY_WARD, COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent() -> Fraction:
    return Fraction(json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"])


def stop(error: type[BaseException]) -> Any:
    def stopped(*_: object, **__: object) -> None:
        raise error

    return stopped


def stop_at(patched: pytest.MonkeyPatch, step: str) -> None:
    """The named step of whatever is opened from here on is interrupted."""
    opened = curator.open

    def stopping(*args: Any, **options: Any) -> curator.Curator:
        survey = opened(*args, **options)
        survey.steps = replace(survey.steps, **{step: stop(KeyboardInterrupt)})
        return survey

    patched.setattr(curator, "open", stopping)


def test_a_proposal_says_what_it_cost_and_what_is_left(hospital: Path) -> None:
    first, again = (run("suggest", "patients.income", "-e", "0.25") for _ in range(2))
    assert "charged ε = 0.25" in first.stdout
    assert "charged ε = 0.25" in first.stderr
    assert "ε = 0.25 of 1 spent, 0.75 left" in first.stderr
    assert "charged nothing, given again from entry" in again.stderr
    assert "ε = 0.25 of 1 spent, 0.75 left" in again.stderr


@pytest.mark.parametrize("where", ["run", "release", "commit"])
@pytest.mark.parametrize("words", [("ask", COUNT, "-e", "0.1"), ("suggest", "patients.income", "-e", "0.1")])
def test_who_interrupts_is_told_what_it_cost(
    hospital: Path, monkeypatch: pytest.MonkeyPatch, where: str, words: tuple[str, ...]
) -> None:
    with monkeypatch.context() as patched:
        if where == "commit":
            patched.setattr(Ledger, where, stop(KeyboardInterrupt))
        else:
            stop_at(patched, where)
        done = run(*words)
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Charged: ε = 0.1, and it stays charged." in done.stderr
    assert spent() == Fraction(1, 10)


@pytest.mark.parametrize("where", ["table", "Answer"])
def test_who_interrupts_what_is_paid_is_told_so_too(hospital: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    with monkeypatch.context() as patched:
        if where == "table":
            stop_at(patched, where)
        else:
            patched.setattr(finish, where, stop(KeyboardInterrupt))
        done = run("ask", COUNT, "-e", "0.1")
    assert (done.exit_code, done.stdout) == (130, "")
    assert "Charged: ε = 0.1, and the answer is kept: asking the same again shows it." in done.stderr
    assert spent() == Fraction(1, 10)


def test_who_interrupts_the_writing_is_told_that_the_answer_is_kept(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for paid in ("ε = 0.1", "nothing, it was given again"):
        with monkeypatch.context() as patched:
            patched.setattr(output, "write_answer", stop(KeyboardInterrupt))
            done = run("ask", COUNT, "-e", "0.1")
        assert f"Charged: {paid}; the answer is kept" in done.stderr
        assert spent() == Fraction(1, 10)


def test_who_interrupts_before_that_is_charged_nothing(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "prepare", stop(KeyboardInterrupt))
        done = run("ask", COUNT, "-e", "0.1")
    assert done.exit_code == 130
    assert "Charged: nothing, unless `dither history` shows a new entry." in done.stderr
    assert spent() == 0


@pytest.mark.parametrize(("failure", "words"), [(OSError, "cannot be written"), (OverflowError, "in this form")])
def test_an_answer_that_is_not_written_says_its_price(
    hospital: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception], words: str
) -> None:
    for charged in ("ε = 0.1", "nothing, it was given again"):
        with monkeypatch.context() as patched:
            patched.setattr(output, "_text", stop(failure))
            lost = run("ask", COUNT, "-e", "0.1", "--out", "answer.csv")
        assert lost.exit_code == 4
        assert words in lost.stderr
        assert lost.stderr.rstrip().endswith(f"Charged: {charged}.")
    assert run("ask", COUNT, "-e", "0.1", "--out", "answer.csv").exit_code == 0
    assert spent() == Fraction(1, 10)


@pytest.mark.parametrize("failure", [OSError, ValueError, DitherError("The picture cannot be written there.")])
def test_a_picture_that_fails_comes_after_the_price(
    hospital: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    monkeypatch.setattr(Answer, "plot", stop(failure))
    done = run("ask", COUNT, "-e", "0.1", "--plot", "answer.png")
    assert done.exit_code in (2, 4)
    assert "±" in done.stdout
    assert "charged ε = 0.1" in done.stderr
    assert spent() == Fraction(1, 10)


def test_a_price_in_a_quota_is_said_where_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.5")
    run("ask", BY_WARD, "-e", "0.2", "--analyst", "ana")
    first, again = (run("ask", BY_WARD, "-e", "0.2", "--analyst", "ben").stderr for _ in range(2))
    assert "charged nothing" in first
    assert "its price, ε = 0.2, counts in the quota of ben" in first
    assert "counts in the quota" not in again


def test_numbers_beyond_64_bits_are_no_reason_to_fail_after_a_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 100")
    catalog = tmp_path / "catalog.toml"
    text = catalog.read_text(encoding="utf-8").replace(
        "weight   = { between = [0, 200] }", "weight = { between = [0, 1e25], step = 1e18 }"
    )
    catalog.write_text(text, encoding="utf-8")
    question = "SELECT ward, SUM(weight) AS s, COUNT(*) AS n FROM patients GROUP BY ward"
    done = run("ask", question, "-e", "1", "--format", "parquet")
    assert done.exit_code == 0, done.stderr
    found = pq.read_table(io.BytesIO(done.stdout_bytes)).to_pydict()
    with dt.open("catalog.toml") as survey:
        answer = survey.ask(question, epsilon=1)
    assert any(abs(value) > 2**63 for value in answer["s"])  # type: ignore[arg-type, operator]
    assert found["s"] == [float(value) for value in answer["s"]]  # type: ignore[arg-type]
    assert answer.to_polars()["s"].to_list() == found["s"]
    assert found["n"] == answer["n"]
