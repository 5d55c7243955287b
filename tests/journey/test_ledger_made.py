"""A ledger is created on request only, once, and never in place of a lost one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import dither as dt
from dither.ledger import opening
from dither.ledger.receipts import Key
from journey.hospital import COUNT, built, run
from journey.preloaded import ROOT, command


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("ledger", ["catalog.ledgr", "sub/catalog.ledger", "../catalog.ledger"])
def test_a_wrong_path_is_no_fresh_budget(hospital: Path, ledger: str) -> None:
    (hospital / "sub").mkdir()
    before = names(hospital), names(hospital / "sub")
    with pytest.raises(dt.LedgerError) as refused:
        dt.open("catalog.toml", ledger=ledger)
    assert str(Path(ledger).absolute()) in refused.value.fix
    assert "relative to the working folder" in refused.value.fix
    assert "make=True" in refused.value.fix
    assert (names(hospital), names(hospital / "sub")) == before


def test_a_new_ledger_is_made_if_asked_and_only_if_there_is_none(hospital: Path) -> None:
    for spent in (0, 1):
        with dt.open("catalog.toml", ledger="new.ledger", make=True) as survey:
            assert survey.budget.spent.epsilon * 2 == spent
            survey.ask(COUNT, epsilon="0.5")
    made = [name for name in names(hospital) if "new" in name and (hospital / name).stat().st_size]
    assert made == ["new.ledger", "new.ledger.key", "new.ledger.key.data"]  # with the marks; beside them an empty journal


def test_a_key_without_its_ledger_is_a_lost_budget(hospital: Path) -> None:
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, epsilon="0.5")
    (hospital / "catalog.ledger").unlink()
    before = names(hospital)
    with pytest.raises(dt.LedgerError, match="is missing, and with it what was spent") as refused:
        dt.open("catalog.toml", make=True)
    assert "A lost key, or a lost ledger" in refused.value.fix
    done = run("init")
    assert (done.exit_code, "would be a second budget" in done.stderr) == (4, True)
    assert names(hospital) == before
    (hospital / "catalog.ledger.key").unlink()  # knowingly
    assert run("init").exit_code == 0


def test_who_was_killed_while_making_one_lost_no_budget(hospital: Path) -> None:
    """Leaves a key and the marker of an unfinished ledger: nothing can have been charged."""
    Key.create(Path("new.ledger.key"))
    mark = opening._marker_of(Path("new.ledger.key"))
    mark.touch()
    with dt.open("catalog.toml", ledger="new.ledger", make=True) as survey:
        assert not mark.exists()
        survey.ask(COUNT, epsilon="0.5")
    mark.touch()  # as if the maker was killed at its very end
    dt.open("catalog.toml", ledger="new.ledger").close()
    (hospital / "new.ledger").unlink()
    with pytest.raises(dt.LedgerError, match="second budget"):
        dt.open("catalog.toml", ledger="new.ledger", make=True)


@pytest.mark.slow
def test_eight_make_one(hospital: Path) -> None:
    words = command("init", "--ledger", "raced.ledger")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    clean |= {"PYTHONPATH": str(ROOT / "src")}
    makers = [subprocess.Popen(words, env=clean, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    told = [maker.communicate(timeout=120)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0] * 8, told
    assert sum("is there already" in text for text in told) == 7
    assert [name for name in names(hospital) if "raced" in name] == ["raced.ledger", "raced.ledger.key"]


def test_what_is_no_ledger_is_told_right_and_leaves_no_key(hospital: Path) -> None:
    (hospital / "folder").mkdir()
    (hospital / "link.ledger").symlink_to("gone.ledger")
    cases = {
        "folder": "is a folder, and a ledger is a file",
        "link.ledger": "gone.ledger, and there is no file",
        "no/such/x.ledger": "there is no folder no/such",
    }
    before = names(hospital)
    for where, text in cases.items():
        with pytest.raises(dt.LedgerError, match=text):
            dt.open("catalog.toml", ledger=where, make=True)
        done = run("init", "--ledger", where)
        assert (done.exit_code, text in done.stderr) == (4, True), done.stderr
    assert names(hospital) == before


@pytest.mark.parametrize("spelling", [":MEMORY:", ":Memory:", " :memory:"])
def test_memory_spelt_otherwise_is_no_file(hospital: Path, spelling: str) -> None:
    before = names(hospital)
    for make in (False, True):
        with pytest.raises(dt.ArgumentError, match=r'write ledger=":memory:"'):
            dt.open("catalog.toml", ledger=spelling, make=make)
    assert run("ask", COUNT, "-e", "0.1", "--ledger", spelling).exit_code == 2
    assert names(hospital) == before


@pytest.mark.parametrize("spelling", [":memory:", ":MEMORY:"])
def test_init_makes_nothing_in_memory(hospital: Path, spelling: str) -> None:
    done = run("init", "patients.parquet", "--unit", "patient", "--out", "new.toml", "--ledger", spelling)
    assert (done.exit_code, "The ledger is" in done.output) == (2, False)
    assert "name a file" in done.stderr
    assert not (hospital / "new.toml").exists()
