"""The commands of a curator and an analyst: output, streams and exit codes."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dither.cli import screen
from journey.hospital import BY_WARD, COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent(*words: str) -> Fraction:
    done = run("budget", "--format", "json", *words)
    assert done.exit_code == 0, done.stderr
    return Fraction(json.loads(done.stdout)["rules"]["sum"]["epsilon"]["spent"])


# --- setting up -------------------------------------------------------------------------------------------------


def test_init_drafts_a_catalog_and_makes_a_ledger_with_a_private_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("person_id,age\n1,20\n2,30\n", encoding="utf-8")
    done = run("init", "people.csv", "--unit", "person_id")
    assert (done.exit_code, done.stdout) == (0, "")
    assert (tmp_path / "catalog.ledger").exists()
    assert (tmp_path / "catalog.ledger.key").stat().st_mode & 0o077 == 0
    assert run("check").exit_code == 0
    assert run("ask", "SELECT COUNT(*) AS n FROM people", "-e", "0.1").exit_code == 0


def test_init_keeps_a_ledger_that_is_there(hospital: Path) -> None:
    assert run("ask", COUNT, "-e", "0.1").exit_code == 0
    again = run("init")
    assert again.exit_code == 0
    assert "is there already" in again.stderr
    assert spent() == Fraction(1, 10)


def test_the_budget_can_be_chosen_until_the_first_question(hospital: Path) -> None:
    catalog = hospital / "catalog.toml"
    assert run("quote", COUNT, "-e", "0.1").exit_code == 0  # a quote fixes nothing
    assert run("budget").exit_code == 0
    catalog.write_text(catalog.read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 2.0"), encoding="utf-8")
    assert run("ask", COUNT, "-e", "1.5").exit_code == 0
    catalog.write_text(catalog.read_text(encoding="utf-8").replace("epsilon = 2.0", "epsilon = 9.0"), encoding="utf-8")
    changed = run("ask", COUNT, "-e", "0.1")
    assert changed.exit_code == 4
    assert "budget is not the one this ledger was opened with" in changed.stderr
    assert spent() == Fraction(3, 2)


def test_check_tells_every_problem_and_its_line(hospital: Path) -> None:
    catalog = hospital / "catalog.toml"
    broken = catalog.read_text(encoding="utf-8").replace("weight ", "wieght ").replace("[0, 60]", "[60, 0]")
    catalog.write_text(broken, encoding="utf-8")
    done = run("check")
    assert done.exit_code == 1
    assert "has 2 problems" in done.stdout
    assert "line " in done.stdout


def test_only_check_with_data_names_the_line_of_a_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may see whether a catalog opens; which line is spoilt says how many rows stand before it."""
    monkeypatch.chdir(tmp_path)
    people = tmp_path / "people.csv"
    people.write_text("person_id,age\n1,20\n2,30\n", encoding="utf-8")
    assert run("init", "people.csv", "--unit", "person_id").exit_code == 0
    assert run("check", "--data").exit_code == 0
    told = set()
    for rows in (3, 700):
        people.write_text("person_id,age\n" + "1,20\n" * rows + "2,30,spoilt\n", encoding="utf-8")
        asked = run("ask", "SELECT COUNT(*) AS n FROM people", "-e", "0.1")
        assert asked.exit_code == 1
        told.add(asked.stderr)
        assert run("check").exit_code == 0
        checked = run("check", "--data")
        assert checked.exit_code == 1
        assert f"line {rows + 2} of" in " ".join(checked.stdout.split())
    assert len(told) == 1


def test_suggest_proposes_bounds_at_its_price(hospital: Path) -> None:
    done = run("suggest", "patients.income", "--epsilon", "0.5")
    assert done.exit_code == 0, done.stderr
    assert "income = { between = [" in done.stdout
    assert spent() == Fraction(1, 2)


# --- asking -----------------------------------------------------------------------------------------------------


def test_a_quote_is_free_and_says_if_the_budget_cannot_pay(hospital: Path) -> None:
    assert run("ask", COUNT, "-e", "0.75").exit_code == 0
    cheap, dear = run("quote", COUNT, "--margin", "40"), run("quote", COUNT, "--epsilon", "0.5")
    assert cheap.exit_code == 0
    assert "COUNT(*) ± 40" in cheap.stdout
    assert dear.exit_code == 3
    assert "refused" in dear.stdout
    assert spent() == Fraction(3, 4)


def test_a_quote_says_when_asking_would_be_free(hospital: Path) -> None:
    assert run("ask", COUNT, "-e", "0.75").exit_code == 0
    again = run("quote", COUNT, "-e", "0.75")  # the budget would not pay for it, and does not have to
    assert again.exit_code == 0
    assert "again: charged nothing" in again.stdout
    assert "again" not in run("quote", BY_WARD, "-e", "0.1").stdout


def test_an_answer_is_on_stdout_and_what_is_said_about_it_is_not(hospital: Path) -> None:
    done = run("ask", BY_WARD, "--epsilon", "0.5")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["ward", "n"]
    assert len(lines) == 6
    assert all("±" in line for line in lines[2:])
    assert "charged ε = 0.5" in done.stderr
    assert "█" in done.stderr


def test_csv_is_clean_and_has_the_margins(hospital: Path) -> None:
    done = run("ask", BY_WARD, "-e", "0.5", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["ward"] for row in rows] == ["births", "bones", "children", "hearts"]
    assert all(int(row["n"]) > 0 and float(row["n_margin"]) > 0 for row in rows)


def test_json_has_the_receipt(hospital: Path) -> None:
    found = json.loads(run("ask", BY_WARD, "-e", "0.5", "--format", "json").stdout)
    assert found["columns"] == ["ward", "n"]
    assert found["receipt"]["body"]["loss"]["epsilon"] == "1/2"


def test_a_file_takes_the_form_its_ending_names(hospital: Path) -> None:
    done = run("ask", BY_WARD, "-e", "0.5", "--out", "wards.parquet")
    assert (done.exit_code, done.stdout) == (0, "")
    table = pq.read_table(hospital / "wards.parquet")
    assert table.column_names == ["ward", "n", "n_margin"]
    again = run("ask", BY_WARD, "-e", "0.5", "--format", "parquet")
    assert pq.read_table(io.BytesIO(again.stdout_bytes)).equals(table)


def test_a_margin_column_never_takes_a_name_of_the_question(hospital: Path) -> None:
    done = run("ask", "SELECT COUNT(*) AS n, COUNT(*) AS n_margin FROM patients", "-e", "0.5", "--format", "csv")
    head, row = (line.split(",") for line in done.stdout.splitlines())
    assert head == ["n", "n_margin_", "n_margin", "n_margin_margin"]
    assert row[0] == row[2]


def test_the_same_again_is_free_and_fresh_is_not(hospital: Path) -> None:
    first, again = run("ask", BY_WARD, "-e", "0.25"), run("ask", BY_WARD, "-e", "0.25")
    assert first.stdout == again.stdout
    assert "given again: charged nothing" in again.stderr
    assert spent() == Fraction(1, 4)
    assert run("ask", BY_WARD, "-e", "0.25", "--fresh").exit_code == 0
    assert spent() == Fraction(1, 2)


def test_consistent_counts_are_never_negative_and_cost_nothing_more(hospital: Path) -> None:
    """The wards of nobody: a plain count is negative in nearly every run."""
    question = f"{BY_WARD.split(' GROUP BY')[0]} WHERE weight > 1000 GROUP BY ward"
    for around in ("{}", "SELECT ward, n FROM ({}) t", "{} UNION ALL SELECT 'all', COUNT(*) FROM patients"):
        asked = around.format(question)
        plain = run("ask", asked, "-e", "0.01", "--format", "csv")
        done = run("ask", asked, "-e", "0.01", "--format", "csv", "--consistent")
        assert done.exit_code == 0
        assert plain.stdout.splitlines()[0] == done.stdout.splitlines()[0]
        assert len(plain.stdout.splitlines()) == len(done.stdout.splitlines())
        assert all(int(line.split(",")[1]) >= 0 for line in done.stdout.splitlines()[1:])
        assert "charged nothing" in done.stderr
        assert "not negative and adding up; ± includes it" in done.stderr


def test_a_question_may_come_through_standard_input(hospital: Path) -> None:
    done = run("ask", "-", "-e", "0.25", "--format", "csv", stdin=COUNT)
    assert done.stdout.startswith("n,n_margin\n")


def test_a_picture_of_the_answer(hospital: Path) -> None:
    assert run("ask", BY_WARD, "-e", "0.25", "--plot", "wards.png").exit_code == 0
    assert (hospital / "wards.png").read_bytes().startswith(b"\x89PNG")


# --- the books --------------------------------------------------------------------------------------------------


def test_verify_needs_neither_data_nor_key(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1", "--receipt", "receipt.json")
    for file in ("patients.parquet", "visits.parquet", "catalog.toml", "catalog.ledger.key"):
        (hospital / file).unlink()
    done = run("verify", "--receipt", "receipt.json")
    assert done.exit_code == 0, done.stderr
    assert "nothing wrong" in done.stdout
    assert "ε = 0.1" in done.stdout
    assert "ε = 0.1 of 1 spent" in run("budget").stdout


def test_a_verdict_for_programs(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1")
    run("ask", COUNT, "-e", "0.1", "--analyst", "ben")
    done = run("verify", "--format", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert (found["ok"], found["problems"], found["answered"], found["shown_again"]) == (True, [], 1, 1)
    assert (found["spent"]["epsilon"], found["head"].partition(":")[0]) == ("1/10", "5")
    with sqlite3.connect(hospital / "catalog.ledger") as database:
        database.execute("UPDATE state SET value = '{}' WHERE key = 'total'")
    database.close()
    meddled = run("verify", "--format", "json")
    assert meddled.exit_code == 1
    assert not json.loads(meddled.stdout)["ok"]
    assert json.loads(meddled.stdout)["problems"]


def test_an_old_copy_is_found_by_a_receipt_or_a_head_and_not_without(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1")
    (hospital / "old.ledger").write_bytes((hospital / "catalog.ledger").read_bytes())
    run("ask", BY_WARD, "-e", "0.1", "--receipt", "receipt.json")
    head = json.loads(run("budget", "--format", "json").stdout)["head"]
    assert run("verify", "--receipt", "receipt.json", "--head", head).exit_code == 0
    assert run("verify", "--ledger", "old.ledger").exit_code == 0  # nothing in it can tell
    for evidence in (("--receipt", "receipt.json"), ("--head", head)):
        found = run("verify", "--ledger", "old.ledger", *evidence)
        assert found.exit_code == 1
        assert "older copy" in found.stdout


# --- screens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spent", "cells"), [("0", 0), ("1/1000000", 1), ("1/2", 5), ("999999/1000000", 9), ("1", 10), ("3", 10)]
)
def test_the_bar_is_empty_or_full_only_when_the_budget_is(spent: str, cells: int) -> None:
    assert str(screen.bar(Fraction(spent), Fraction(1), 10)) == "█" * cells + "░" * (10 - cells)
