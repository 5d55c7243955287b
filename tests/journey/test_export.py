"""Answers in documents and spreadsheets: Markdown, LaTeX and Excel, with margins, and with every text escaped."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_calamine import CalamineWorkbook

import dither as dt
from dither.answer import Answer
from dither.export import excel, latex, markdown
from journey.hospital import BY_WARD, built, run

ROWS = np.arange(600)
NAMES = ("a|b", "=1+1", "50 % & more_")


@pytest.fixture(scope="module")
def answer() -> Iterator[Answer]:
    frame = {"id": ROWS, "name": np.array(NAMES)[ROWS % 3], "age": ROWS % 90}
    table = dt.Table(frame, unit="id", max_rows=1, columns={"name": dt.values(*NAMES), "age": dt.between(0, 120)})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10)), ledger=":memory:") as survey:
        yield survey.ask("SELECT name, COUNT(*) AS n, AVG(age) AS age FROM t GROUP BY name", epsilon=1)


def test_markdown_has_the_cells_with_margins_and_the_notes(answer: Answer) -> None:
    lines = answer.to_markdown().splitlines()
    assert lines[:2] == ["| name | n | age |", "|:---|---:|---:|"]
    assert lines[3] == f"| 50 % & more\\_ | {answer.cells()[1][1]} | {answer.cells()[1][2]} |" or "50 %" in lines[2]
    assert any(line.startswith("| a\\|b | ") and " ± " in line for line in lines)
    assert lines[-1].startswith("- ± at 95 % confidence; charged ε = 1")


def test_latex_has_the_cells_with_margins_and_the_notes(answer: Answer) -> None:
    text = answer.to_latex()
    assert text.startswith("\\begin{tabular}{lrr}\n\\hline\nname & n & age \\\\\n")
    assert "50 \\% \\& more\\_ & " in text
    assert "a\\textbar{}b & " in text
    assert text.count(" $\\pm$ ") >= 6
    assert "charged $\\varepsilon$ = 1" in text


def test_excel_has_numbers_their_margins_and_what_they_are(answer: Answer, tmp_path: Path) -> None:
    answer.to_excel(tmp_path / "answer.xlsx")
    book = CalamineWorkbook.from_path(str(tmp_path / "answer.xlsx"))
    head, *rows = book.get_sheet_by_name("Answer").to_python()
    assert head == ["name", "n", "n_margin", "age", "age_margin"]
    assert [row[0] for row in rows] == [row[0] for row in answer]
    assert [row[1] for row in rows] == answer["n"]
    assert [row[4] for row in rows] == pytest.approx(answer.margins()["age"], rel=1e-14)  # Excel keeps 16 digits
    about = dict(book.get_sheet_by_name("About").to_python())
    assert about["question"].startswith("SELECT name")
    assert about["price"] == "ε = 1"
    with pytest.raises(dt.DitherError, match="is there already"):
        answer.to_excel(tmp_path / "answer.xlsx")
    with pytest.raises(dt.DitherError, match="cannot be written"):
        answer.to_excel(tmp_path / "nowhere" / "answer.xlsx")


def test_a_key_is_no_formula_no_command_and_no_column(tmp_path: Path) -> None:
    evil = "=HYPERLINK(1)|\\input{x}\n|"
    (tmp_path / "x.xlsx").write_bytes(excel([("k", "text", [evil])], [("note", evil)]))
    sheet = CalamineWorkbook.from_path(str(tmp_path / "x.xlsx"))
    assert sheet.get_sheet_by_name("Answer").to_python() == [["k"], [evil]]
    assert b"<f>" not in (tmp_path / "x.xlsx").read_bytes()
    assert markdown(["k"], [[evil]], [False], []).splitlines()[2].replace("\\|", "").count("|") == 2
    assert "\\input" not in latex(["k"], [[evil]], [False], [])


def test_what_excel_has_no_number_for_is_text_or_empty(tmp_path: Path) -> None:
    values: list[Any] = [None, float("inf"), 10**20, True, datetime.date(1890, 1, 2), datetime.date(2026, 1, 2)]
    (tmp_path / "x.xlsx").write_bytes(excel([("v", "date", values)], []))
    _, *rows = CalamineWorkbook.from_path(str(tmp_path / "x.xlsx")).get_sheet_by_name("Answer").to_python()
    assert [row[0] for row in rows] == ["", "", str(10**20), True, "1890-01-02", datetime.date(2026, 1, 2)]


@pytest.mark.parametrize(("ending", "start"), [("md", b"| ward"), ("tex", b"\\begin{tabular}"), ("xlsx", b"PK")])
def test_the_command_line_writes_them_by_their_ending(
    ending: str, start: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    done = run("ask", BY_WARD, "-e", "0.1", "--out", f"answer.{ending}")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / f"answer.{ending}").read_bytes().startswith(start)
    refused = run("ask", BY_WARD, "-e", "0.1", "--out", "answer.ods")
    assert refused.exit_code == 2


@pytest.mark.usefixtures("recorded")
def test_an_empty_table_says_how_many_people_a_group_needs() -> None:
    frame = {"id": ROWS[:30], "town": np.array(["A", "B", "C"])[ROWS[:30] % 3]}
    table = dt.Table(frame, unit="id", max_rows=1, columns={"town": dt.column()})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10, delta="1e-6")), ledger=":memory:") as survey:
        by_town = "SELECT town, COUNT(*) AS n FROM t GROUP BY town"
        empty = survey.ask(by_town, epsilon="0.01")
        assert len(empty) == 0
        rule = empty.plan.threshold
        assert rule is not None
        assert empty.notes()[0].startswith(f"no group is shown: a group of about {rule.margin('0.95')} people is needed.")
        hidden = survey.ask(f"{by_town} HAVING COUNT(*) > 1000", epsilon=9)
        assert len(hidden) == 0
        assert "HAVING" in hidden.notes()[0] or not hidden.noisy.keys


def test_notes_begin_with_what_matters(answer: Answer) -> None:
    assert answer.notes()[-1].startswith("± at 95 % confidence; charged ε = 1; left ε = 9")
    assert answer.footer().splitlines() == answer.notes()
