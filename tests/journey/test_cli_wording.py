"""No error at the command line speaks Python, whatever was typed: what to do is said as it is done in a shell."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dither.cli.wording import in_a_shell, refusal
from dither.errors import DitherError, NoLedgerError
from journey.hospital import BY_WARD, COUNT, built, run

SOURCE = Path(__file__).parents[2] / "src" / "dither"
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


def test_every_argument_that_an_error_names_has_its_option() -> None:
    """Fixes anywhere on the path from a question to its answer, read from the source."""
    found = 0
    for folder in ("ledger", "planning", "."):
        for path in (SOURCE / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg == "fix" and isinstance(node.value, ast.Constant):
                    found += "=" in node.value.value
                    left = set(re.findall(r"(\w+)=(?!=)", in_a_shell(node.value.value)))
                    assert not left & {"epsilon", "delta", "margin", "assume_rows", "analyst", "key", "fresh"}, node.value.value
    assert found > 5


def test_only_the_fix_is_put_into_other_words() -> None:
    error = DitherError('analyst="ada" is odd.', where='SELECT epsilon="1"', fix='write analyst="ben".', charged="ε = 1")
    assert refusal(error) == ('analyst="ada" is odd.\n    SELECT epsilon="1"\n  Fix: write --analyst ben.   Charged: ε = 1.')
    assert refusal(DitherError("key=… is odd.")) == str(DitherError("key=… is odd."))
    assert "dt." not in refusal(NoLedgerError("x"))
    for toml in ("write epsilon = 1.", 'write kind = "int".', "compare it: n > 10.", "write x >= 3 or y<=2."):
        assert in_a_shell(toml) == toml


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
