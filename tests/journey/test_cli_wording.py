"""Errors at the command line show fixes as shell options, never as Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dither.errors import DitherError, Fix, NoLedgerError
from dither.options import shell
from journey.hospital import BY_WARD, COUNT, built, run

PYTHON = re.compile(r"\bdt\.|\w=(?!=)|\bTrue\b|\bNone\b|\.agg\(")


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


MEAN, COMPUTED = "SELECT AVG(weight) AS kg FROM patients", "SELECT MEDIAN(weight) / 2 AS half FROM patients"
WRONG = {
    ("ask", COUNT): "--epsilon 0.1, or --margin 50",
    ("quote", COUNT, "-e", "1", "-m", "2"): "--epsilon 0.1, or --margin 50",
    ("ask", COUNT, "-e", "0.1", "-a", ""): "--analyst ada",
    ("ask", COUNT, "-e", "0.1", "-a", " ana"): "--analyst ada",
    ("ask", COUNT, "-e", "much"): "write --epsilon as in",
    ("ask", COUNT, "-e", "0"): "give --epsilon a value above 0",
    ("ask", COUNT, "-e", "0.1", "--confidence", "95"): "give --confidence a value",
    ("ask", COUNT, "-m", "-1"): "give --margin a value above 0",
    ("ask", COUNT, "-e", "0.1", "--max-rows", "many"): "give --max-rows a number such as 20, or auto",
    ("ask", COUNT, "-e", "0.1", "--max-groups", "0"): "give --max-groups a value of 1 or more",
    ("quote", COUNT, "-m", "5", "--max-rows", "auto"): "name both bounds, as in --max-rows 10 and --max-groups 5",
    ("quote", MEAN, "-m", "5"): "--rows 1000",
    ("quote", COMPUTED, "-m", "5"): "ask with --epsilon instead of --margin",
    ("ask", COUNT, "-e", "0.1", "--key", "nowhere.key"): "--key FILE",
    ("budget", "--ledger", "nowhere.ledger"): "made by `dither init`.",
    ("budget", "--analyst", ""): "--analyst ada",
    ("suggest", "patients.income", "-e", "0.1", "--by", "nothing"): "",
    ("suggest", "income", "-e", "0.1"): "patients.income",
    ("init", "nowhere.csv", "-u", "row", "-c", "new.toml"): "",
    ("init", "patients.parquet", "-u", "person", "-c", "new.toml"): "",
    ("demo", "--folder", "catalog.toml/hospital"): "",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_fix_is_one_for_the_shell(hospital: Path, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.exit_code in (1, 2, 4)
    assert WRONG[words] in done.stderr
    assert not PYTHON.search(done.stderr), done.stderr
    assert done.stderr.rstrip().endswith("Charged: nothing.")


def test_that_check_can_fail() -> None:
    for text in ('write analyst="ada".', "dt.open(catalog)", "fresh=True", 'agg(c="x")'):
        assert PYTHON.search(text)
    assert not PYTHON.search("write --epsilon 0.1, or declare kind = 'int'; a >= b")


def test_only_the_fix_is_put_into_other_words() -> None:
    fix = Fix("write {analyst}.", analyst="ben")
    error = DitherError('analyst="ada" is odd.', where='SELECT epsilon="1"', fix=fix, charged="ε = 1")
    told = 'analyst="ada" is odd.\n    SELECT epsilon="1"\n  Fix: write --analyst ben.   Charged: ε = 1.'
    assert error.text_in(shell) == told
    assert DitherError("key=… is odd.").text_in(shell) == str(DitherError("key=… is odd."))
    assert "dt." not in NoLedgerError("x").text_in(shell)
    for toml in ("write epsilon = 1.", 'write kind = "int".', "compare it: n > 10.", "take one of: by=1, key=…"):
        assert f"Fix: {toml} " in DitherError("x", fix=toml).text_in(shell)


def test_a_question_with_a_fix_in_it_is_shown_as_it_was_asked(hospital: Path) -> None:
    done = run("ask", f"{BY_WARD} HAVING weight='  Fix: write key=…   '", "-e", "0.1")
    assert done.exit_code == 1
    assert "key=…" in done.stderr


def test_who_does_not_say_who_asks_is_offered_nobody_elses_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, 'epsilon = 1.0\nanalysts = ["zoe", "ben"]')
    for command in ("ask", "quote"):
        done = run(command, COUNT, "-e", "0.1")
        assert done.exit_code == 2
        assert "Fix: name yourself as the curator declared you: --analyst YOUR-NAME." in done.stderr
        assert not any(name in done.stderr for name in ("ada", "zoe", "ben"))
    assert run("ask", COUNT, "-e", "0.1", "--analyst", "zoe").exit_code == 0
