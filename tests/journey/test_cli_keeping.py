"""`backup`, `restore`, `witness` and `reopen` in a shell, and what `budget`, `history` and `verify` say afterwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

import dither as dt
from dither.engines.duckdb.engine import DuckDB
from journey.hospital import BY_WARD, COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DITHER_WITNESS", raising=False)
    built(tmp_path)
    (tmp_path / "far").mkdir()
    return tmp_path


def good(*words: str) -> str:
    """Runs a command that must succeed, and returns its data and notes."""
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    return done.stdout + done.stderr


def refused(code: int, *words: str) -> str:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert done.stderr.rstrip().endswith("Charged: nothing.")
    return done.stderr


def spent() -> str:
    found: str = json.loads(run("budget", "-f", "json").stdout)["rules"]["sum"]["epsilon"]["spent"]
    return found


# --- reopen ---------------------------------------------------------------------------------------------------------


def broken(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Asks a question whose engine fails with a message that only the curator may see."""

    def run_(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(text)

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", run_)
        done = run("ask", COUNT, "-e", "0.1")
    assert done.exit_code == 4
    assert text not in done.output


def test_a_closed_catalog_is_told_and_reopened(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good("ask", BY_WARD, "-e", "0.1")
    broken(monkeypatch, "weight 91.5 of Zoë \x1b[2J is odd")
    assert "is closed to new questions" in refused(4, "ask", COUNT, "-e", "0.2")
    good("ask", BY_WARD, "-e", "0.1")  # a stored answer is still given
    assert "Entry 6 closed the catalog" in good("budget")
    assert json.loads(run("budget", "-f", "json").stdout)["closed"] == 6
    assert "closed     by entry 6" in good("verify")
    assert json.loads(run("verify", "-f", "json").stdout)["closed"] == 6
    done = run("reopen")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "weight 91.5 of Zoë \\x1b[2J is odd" in done.stderr
    assert "\x1b" not in done.stderr
    assert COUNT in done.stderr
    assert "Entry 6 had closed it." in done.stderr
    assert not (hospital / "catalog.ledger.failure").exists()
    assert "closed" not in run("budget").output
    assert json.loads(run("budget", "-f", "json").stdout)["closed"] is None
    good("ask", COUNT, "-e", "0.2")
    found = json.loads(run("verify", "-f", "json").stdout)
    assert (found["ok"], found["closed"], found["restored"]) == (True, None, 0)
    assert "reopened" in good("history", "--entries")


def test_there_may_be_nothing_to_reopen(hospital: Path) -> None:
    assert "is not closed" in good("reopen")
    good("ask", COUNT, "-e", "0.1")
    assert "is not closed" in good("reopen")
    assert json.loads(run("verify", "-f", "json").stdout)["entries"] == 4  # no entry for nothing


def test_reopening_needs_the_key(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "odd")
    (hospital / "catalog.ledger.key").rename(hospital / "elsewhere")
    assert "key file" in refused(4, "reopen")
    assert (hospital / "catalog.ledger.failure").exists()
    assert "Entry 4 had closed it." in good("reopen", "--key", "elsewhere")


def test_reopening_in_python(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "odd")
    with dt.open("catalog.toml") as survey:
        assert survey.closed
        assert "odd" in survey.diagnosis
        assert survey.reopen() == 4
        assert (survey.closed, survey.diagnosis) == (False, "")
        survey.ask(COUNT, epsilon="0.1")


# --- witness --------------------------------------------------------------------------------------------------------


def test_a_witness_from_the_first_day(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = good("witness", "far/heads")
    assert all(each in made for each in ("no entries yet", "--witness far/heads", "DITHER_WITNESS=far/heads", "dt.open("))
    good("ask", COUNT, "-e", "0.1", "--witness", "far/heads")
    good("suggest", "patients.income", "-e", "0.2", "--witness", "far/heads")
    assert len((hospital / "far" / "heads").read_text(encoding="ascii").splitlines()) == 2
    told = good("witness", "far/heads")
    assert "The ledger has entry 5, the newest that far/heads names." in told
    assert "The head of entry 6 is in far/heads now." in told
    assert "witness    far/heads: the ledger has its newest head" in good("verify", "--witness", "far/heads")
    with dt.open("catalog.toml", witness="far/heads") as survey:
        survey.ask(BY_WARD, epsilon="0.1")
    assert len((hospital / "far" / "heads").read_text(encoding="ascii").splitlines()) == 4


def test_an_old_copy_answers_nothing(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good("witness", "far/heads")
    monkeypatch.setenv("DITHER_WITNESS", "far/heads")
    good("ask", COUNT, "-e", "0.1")
    shutil.copy("catalog.ledger", "old")
    good("ask", BY_WARD, "-e", "0.2")
    shutil.copy("old", "catalog.ledger")
    for words in (
        ("ask", COUNT, "-e", "0.3"),
        ("suggest", "patients.income", "-e", "0.2"),
        ("reopen",),
        ("witness", "far/heads"),
    ):
        assert "does not have the entry 5 that the witness heads names" in refused(4, *words)
    done = run("verify")
    assert done.exit_code == 1
    assert "entry 5, which the witness far/heads names, is not there" in done.stdout
    monkeypatch.delenv("DITHER_WITNESS")
    assert run("verify").exit_code == 0  # alone it cannot be found


def test_what_is_no_witness_is_left_alone(hospital: Path) -> None:
    before = {file: file.read_bytes() for file in hospital.iterdir() if file.is_file()}
    for name in ("catalog.toml", "patients.parquet", "catalog.ledger", "catalog.ledger.key"):
        assert "is no witness" in refused(4, "witness", name)
        assert "is no witness" in refused(4, "ask", COUNT, "-e", "0.1", "--witness", name)
    for words in (("witness", "catalog.ledger-journal"), ("ask", COUNT, "-e", "0.1", "--witness", "catalog.ledger-journal")):
        assert "database's log" in refused(2, *words)
    assert "far cannot be used" in refused(4, "witness", "far")
    assert "is missing" in refused(4, "witness", "nowhere/heads")
    assert "is missing" in refused(4, "verify", "--witness", "nowhere")
    assert {file: file.read_bytes() for file in before} == before


def test_a_witness_beside_the_ledger_is_worth_a_word(hospital: Path) -> None:
    assert "Keep it elsewhere." in good("witness", "heads")
    assert "Keep it elsewhere." not in good("witness", "far/heads")
    assert "has no head of this ledger" in good("verify", "--witness", "heads")


def test_a_witness_is_not_overwritten_by_an_answer(hospital: Path) -> None:
    good("witness", "far/heads")
    good("ask", COUNT, "-e", "0.1", "--witness", "far/heads")
    before = (hospital / "far" / "heads").read_bytes()
    for option in ("--out", "--receipt"):
        for watched in (("--witness", "far/heads"), ()):
            refused(2, "ask", COUNT, "-e", "0.1", option, "far/heads", "--force", *watched)
    good("witness", "far/new")
    good("backup", "far/backup")
    (hospital / "far" / "new").write_bytes(b"")  # without a line it is known by its name alone
    refused(2, "ask", COUNT, "-e", "0.1", "--out", "far/new", "--force", "--witness", "far/new")
    refused(2, "ask", COUNT, "-e", "0.1", "--out", "far/backup", "--force")
    assert (hospital / "far" / "heads").read_bytes() == before


def test_nothing_is_put_among_the_data(hospital: Path) -> None:
    good("ask", COUNT, "-e", "0.1")
    catalog = hospital / "catalog.toml"
    text = catalog.read_text(encoding="utf-8")
    catalog.write_text(text.replace("visits.parquet", "far/*.parquet"), encoding="utf-8")
    for command in ("backup", "witness"):
        assert "would become part of the data of visits" in refused(2, command, "far/new.parquet")
    catalog.write_text("[nonsense", encoding="utf-8")
    good("backup", "far/backup")  # a ledger is kept whatever is wrong with its catalog


# --- backup and restore ---------------------------------------------------------------------------------------------


def test_a_backup_is_read_and_never_spent_from(hospital: Path) -> None:
    assert "has no entries yet" in refused(4, "backup", "far/backup")
    good("ask", COUNT, "-e", "0.1", "--receipt", "receipt.json")
    assert "is a backup up to entry 4" in good("backup", "far/backup")
    assert "is there already" in refused(2, "backup", "far/backup")
    there = ("--ledger", "far/backup")
    assert "ε = 0.1 of 1 spent" in good("budget", *there)
    assert COUNT in good("history", *there)
    good("verify", *there, "--receipt", "receipt.json")
    for words in (
        ("ask", COUNT, "-e", "0.2", "--key", "catalog.ledger.key"),
        ("ask", COUNT, "-e", "0.1", "--key", "catalog.ledger.key"),
        ("suggest", "patients.income", "-e", "0.2"),
        ("quote", COUNT, "-e", "0.2"),
        ("reopen", "--key", "catalog.ledger.key"),
        ("witness", "heads"),
    ):
        assert "is a backup" in refused(4, *words, *there)
    with pytest.raises(dt.LedgerError, match="is a backup"):
        dt.open("catalog.toml", ledger="far/backup", key="catalog.ledger.key")
    assert not (hospital / "heads").exists()


def test_a_lost_ledger_is_restored(hospital: Path) -> None:
    good("witness", "far/heads")
    good("ask", COUNT, "-e", "0.1", "--receipt", "receipt.json", "--witness", "far/heads")
    good("backup", "far/backup")
    head = json.loads(run("verify", "-f", "json").stdout)["head"]
    assert "There is a ledger in that place already" in refused(4, "restore", "far/backup", "--head", head)
    elsewhere = ("--ledger", "other.ledger", "--key", "catalog.ledger.key", "--head", head)
    assert "is still there: catalog.ledger" in refused(4, "restore", "far/backup", *elsewhere)
    (hospital / "catalog.ledger").unlink()
    assert "could be spent twice" in refused(4, "restore", "far/backup")
    assert "A head is written as" in refused(2, "restore", "far/backup", "--head", "4")
    assert "There is no receipt" in refused(2, "restore", "far/backup", "--receipt", "nowhere.json")
    evidence = ("--head", head, "--receipt", "receipt.json", "--witness", "far/heads")
    told = good("restore", "far/backup", *evidence)
    assert "which ends with entry 4" in told
    assert "The newest entry known from elsewhere is 4, and the backup has it." in told
    assert "restored   from a backup, once" in good("verify", *evidence)
    assert json.loads(run("verify", "-f", "json").stdout)["restored"] == 1
    assert "restored" in good("history", "--entries")
    assert spent() == "1/10"
    good("ask", COUNT, "-e", "0.1", "--witness", "far/heads")  # given again
    good("ask", COUNT, "-e", "0.9", "--witness", "far/heads")
    assert run("ask", BY_WARD, "-e", "0.1").exit_code == 3


def test_a_backup_that_is_too_old_is_refused_and_told(hospital: Path) -> None:
    good("witness", "far/heads")
    good("ask", COUNT, "-e", "0.5", "--witness", "far/heads")
    good("backup", "far/backup")
    good("ask", BY_WARD, "-e", "0.5", "--receipt", "late.json", "--witness", "far/heads")
    head = json.loads(run("verify", "-f", "json").stdout)["head"]
    (hospital / "catalog.ledger").unlink()
    for evidence in (("--head", head), ("--receipt", "late.json"), ("--witness", "far/heads")):
        for more in ((), ("--unchecked",)):
            done = refused(4, "restore", "far/backup", *evidence, *more)
            assert "lacks what is known from elsewhere" in done
            assert "is not there" in done
    assert not (hospital / "catalog.ledger").exists()
    assert "Nothing was compared." in good("restore", "far/backup", "--unchecked")
    good("ask", COUNT, "-e", "0.4", "--receipt", "new.json")
    # The second budget is open to anyone who kept something, and the witness lets nothing through.
    for evidence in (("--head", head), ("--receipt", "late.json"), ("--witness", "far/heads")):
        assert run("verify", *evidence).exit_code == 1
    assert "witness heads names" in refused(4, "ask", COUNT, "-e", "0.01", "--witness", "far/heads")
    assert run("verify", "--receipt", "new.json").exit_code == 0


@pytest.mark.slow
def test_on_a_server(hospital: Path, postgres_url: str, request: pytest.FixtureRequest) -> None:
    where = ("--ledger", postgres_url, "--key", "survey.key")
    good("init", *where)
    good("ask", COUNT, "-e", "0.1", *where, "--receipt", "receipt.json")
    good("backup", "far/backup", "--ledger", postgres_url)
    good("witness", "far/heads", "--ledger", postgres_url)
    evidence = ("--receipt", "receipt.json", "--witness", "far/heads")
    assert "in that place already" in refused(4, "restore", "far/backup", *where, *evidence)
    request.getfixturevalue("postgres").sql(f"DROP SCHEMA {postgres_url.partition('#')[2]} CASCADE")
    assert "needs the curator's key" in refused(2, "restore", "far/backup", "--ledger", postgres_url, *evidence)
    good("restore", "far/backup", *where, *evidence)
    good("ask", COUNT, "-e", "0.2", *where, "--witness", "far/heads")
    good("reopen", *where, "--witness", "far/heads")
    assert "restored   from a backup, once" in good("verify", "--ledger", postgres_url, *evidence)


def test_the_help_lists_them_in_order() -> None:
    told = good("--help")
    places = [told.index(f" {name} ") for name in ("verify", "backup", "restore", "witness", "reopen", "explain")]
    assert places == sorted(places)
