"""The command line on a ledger in PostgreSQL: the same day, with the address and the key named."""

from __future__ import annotations

from pathlib import Path

import pytest

from journey.hospital import BY_WARD, COUNT, built, run


def test_a_server_that_is_not_there_is_no_missing_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    nobody = ("--ledger", "postgresql://localhost:1/books?connect_timeout=2", "--key", "survey.key")
    done = run("quote", COUNT, "-e", "0.1", *nobody)
    assert (done.exit_code, done.stdout) == (4, "")
    assert not (tmp_path / "survey.key").exists()


@pytest.mark.slow
def test_the_day_on_a_server(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    for file in ("catalog.ledger", "catalog.ledger.key"):
        (tmp_path / file).unlink()
    where = ("--ledger", postgres_url)
    unsigned = run("init", *where)
    assert unsigned.exit_code == 2
    assert "--key" in unsigned.stderr
    quote = run("quote", COUNT, "-e", "0.1", *where, "--key", "survey.key")
    assert (quote.exit_code, "There is no ledger" in quote.stderr) == (0, True)
    for words in (("ask", COUNT, "-e", "0.1"), ("suggest", "patients.income", "-e", "0.1")):
        assert run(*words, *where, "--key", "survey.key").exit_code == 4  # nothing but init makes a ledger
    for word in ("budget", "history", "verify"):
        assert run(word, *where).exit_code == 4
    assert not (tmp_path / "survey.key").exists()
    made = run("init", *where, "--key", "survey.key")
    assert made.exit_code == 0, made.stderr
    assert run("ask", COUNT, "-e", "0.1", *where).exit_code == 2
    for words in (("quote", COUNT, "-e", "0.1"), ("ask", BY_WARD, "-e", "0.6", "--receipt", "receipt.json")):
        done = run(*words, *where, "--key", "survey.key")
        assert done.exit_code == 0, done.stderr
    assert run("ask", COUNT, "-e", "0.6", *where, "--key", "survey.key").exit_code == 3
    assert "ε = 0.6 of 1 spent" in run("budget", *where).stdout
    assert BY_WARD in run("history", *where).stdout
    assert run("verify", *where, "--receipt", "receipt.json").exit_code == 0
    assert "is there already" in run("init", *where, "--key", "survey.key").stderr
    assert not (tmp_path / "catalog.ledger").exists()
