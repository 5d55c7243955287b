"""`dither history`: one row for each question and how it ended, or the entries."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path

import pytest

from dither import curator, history
from dither.engines.duckdb.engine import DuckDB
from dither.errors import DitherError
from journey.hospital import BY_WARD, COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def rows(*words: str) -> list[dict[str, object]]:
    done = run("history", "--format", "json", *words)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def fail(*_: object) -> None:
    raise RuntimeError("the disk is on fire")


def test_there_is_one_row_for_each_asking(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("ask", COUNT, "-e", "0.1", "--analyst", "ana")
    run("ask", COUNT, "-e", "0.1", "--analyst", "ben")
    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", fail)
        assert run("ask", BY_WARD, "-e", "0.25", "--analyst", "eve").exit_code == 4
    found = rows()
    assert [row["state"] for row in found] == ["answered", "shown again", "failed"]
    assert [row["analyst"] for row in found] == ["ana", "ben", "eve"]
    assert [row["question"] for row in found] == [COUNT, COUNT, BY_WARD]
    assert [row["epsilon"] for row in found] == ["1/10", "0", "1/4"]
    assert [row["rule"] for row in found] == ["sum", None, "sum"]
    assert tuple(found[0]) == history.QUESTIONS
    table = run("history")
    assert [word in table.stdout for word in ("ε = 0.1", "nothing", "ε = 0.25", "committed")] == [True, True, True, False]
    assert table.stderr.startswith("head 7:")


def test_what_a_quota_paid_for_an_answer_shown_again_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.5")
    for analyst in ("ana", "ben", "ben", "ana"):  # ben's quota pays once, ana has paid, and nothing more is written
        assert run("ask", COUNT, "-e", "0.1", "--analyst", analyst).exit_code == 0
    assert [row["quota_epsilon"] for row in rows()] == ["1/10", "1/10"]
    assert [row["epsilon"] for row in rows()] == ["1/10", "0"]
    shown = [line for line in run("history").stdout.splitlines() if "shown again" in line]
    assert ["nothing; ε = 0.1 of the quota" in line for line in shown] == [True]
    for analyst in ("ana", "ben"):  # the list agrees with what the ledger says was used
        used = json.loads(run("budget", "--analyst", analyst, "--format", "json").stdout)["analyst"]["epsilon"]["spent"]
        assert Fraction(used) == sum(Fraction(str(row["quota_epsilon"])) for row in rows() if row["analyst"] == analyst)


def test_without_quotas_none_is_told(hospital: Path) -> None:
    for analyst in ("ana", "ben"):
        assert run("ask", COUNT, "-e", "0.1", "--analyst", analyst).exit_code == 0
    assert [row["quota_epsilon"] for row in rows()] == [None, None]
    assert "quota" not in run("history").stdout


def test_a_cancelled_question_says_that_its_price_was_given_back(hospital: Path) -> None:
    looks = iter((True, False))  # the files are those that were opened, and then, with the price paid, they are not
    with curator.open("catalog.toml", "catalog.ledger") as survey:
        survey.ask(COUNT, "0.1")
        survey.session.files = lambda: next(looks)
        with pytest.raises(DitherError, match="no longer those that were opened"):
            survey.ask(BY_WARD, "0.1")
    assert [row["state"] for row in rows()] == ["answered", "cancelled"]
    assert "given back" in run("history").stdout


def test_the_entries_are_listed_as_they_are(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1", "--analyst", "ana")
    run("ask", COUNT, "-e", "0.1", "--analyst", "ben")
    kinds = ["opened", "catalog", "reserved", "committed", "replayed"]
    entries = rows("--entries")
    assert [entry["what"] for entry in entries] == kinds
    assert entries[2]["question"] == COUNT
    assert [entry["analyst"] for entry in entries[2:]] == ["ana", None, "ben"]
    shown = run("history", "--entries", "--format", "csv", "--last", "2").stdout
    last = list(csv.DictReader(io.StringIO(shown)))
    assert [row["what"] for row in last] == kinds[-2:]
    assert tuple(last[0]) == history.ENTRIES
    assert "ε = 0.1" in run("history", "--entries").stdout


@pytest.mark.slow
def test_the_last_few_are_the_last_few_of_all(hospital: Path) -> None:
    asked = [f"SELECT COUNT(*) AS n FROM patients WHERE weight > {kg}" for kg in range(6)]
    for question in asked:
        assert run("ask", question, "-e", "0.01").exit_code == 0
    for analyst in "abcdefgh":  # entries that settle nothing and name what stands far back
        run("ask", asked[0], "-e", "0.01", "--analyst", analyst)
    every = rows()
    assert [row["question"] for row in every] == asked + [asked[0]] * 8
    for most in range(1, 16):
        assert rows("--limit", str(most)) == every[-most:]


def test_an_empty_ledger_has_no_history(hospital: Path) -> None:
    assert rows() == []
    assert rows("--entries", "--limit", "3") == []
