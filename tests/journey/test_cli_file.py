"""`dither ask --file`: the questions of a file at one price."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dither.query.sql.gate import statements
from journey.hospital import BY_WARD, COUNT, built, run

FILE = f"""-- how many; and where
{COUNT};
/* by ward; all of them */ {BY_WARD}; -- the end
"""


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "questions.sql").write_text(FILE, encoding="utf-8")
    return built(tmp_path)


def test_semicolons_in_comments_and_texts_separate_nothing() -> None:
    assert statements(FILE) == [COUNT, BY_WARD]
    assert statements("SELECT ';' ; ;\n;SELECT 1 -- ;") == ["SELECT ';'", "SELECT 1"]
    assert statements("-- nothing;\n;") == []


def test_a_file_is_asked_at_one_price(hospital: Path) -> None:
    quoted = run("quote", "--file", "questions.sql", "-e", "0.2")
    assert "ε = 0.2 for 2 questions" in quoted.stdout
    asked = run("ask", "--file", "questions.sql", "-e", "0.2")
    assert asked.exit_code == 0, asked.stderr
    assert asked.stdout.count("charged ε = 0.1") == 2
    assert "in all: charged ε = 0.2 for 2 questions" in asked.stderr
    again = run("ask", "--file", "-", "-e", "0.2", "--format", "json", stdin=FILE)
    data = json.loads(again.stdout)
    assert (data["replayed"], len(data["answers"])) == (True, 2)


def test_weights_and_files_of_answers(hospital: Path) -> None:
    words = ("ask", "--file", "questions.sql", "-e", "0.4", "--weights", "3, 1", "--out", "answers.json")
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    data = json.loads(Path("answers.json").read_text(encoding="utf-8"))
    assert [each["price"]["epsilon"] for each in data["answers"]] == ["3/10", "1/10"]
    assert run(*words[:-1], "answers.txt").exit_code == 0
    assert "in all" in Path("answers.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("ask", COUNT, "--file", "questions.sql", "-e", "1"), "do not go together"),
        (("ask", "--file", "missing.sql", "-e", "1"), "cannot be read"),
        (("ask", "--file", "empty.sql", "-e", "1"), "has no questions"),
        (("ask", "--file", "questions.sql", "-e", "1", "--format", "csv"), "several tables"),
        (("ask", "--file", "questions.sql", "-e", "1", "--weights", "1"), "each has one weight"),
        (("ask", COUNT, "-e", "1", "--weights", "1"), "list of questions"),
        (("ask", "--file", "bad.sql", "-e", "1"), "Question 2: "),
    ],
)
def test_what_cannot_be_asked_charges_nothing(hospital: Path, words: tuple[str, ...], what: str) -> None:
    Path("empty.sql").write_text("-- nothing;", encoding="utf-8")
    Path("bad.sql").write_text(f"{COUNT}; SELECT nothing FROM patients", encoding="utf-8")
    done = run(*words)
    assert done.exit_code in (1, 2)
    assert what in done.stderr
    assert "Charged: nothing" in done.stderr
    assert json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"] == "0"
