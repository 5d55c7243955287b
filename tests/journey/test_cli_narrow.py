"""Narrow windows: nothing is cut, and nothing is broken inside a number, a price or a name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.cli.screen import around, wrap_words
from journey.hospital import COUNT, built, run
from journey.terminal import seen

WIDE = (
    "SELECT ward, COUNT(*) AS patients, AVG(weight) AS kilograms, SUM(weight) AS together FROM patients "
    "WHERE weight > 12.345678 GROUP BY ward"
)
ANALYST = "annabel-the-analyst"


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        built(folder, "epsilon = 1.0\ndelta = 1e-6\nper_analyst = 0.5")
        for question, price, analyst in ((COUNT, "0.123456", ANALYST), (WIDE, "0.2", ANALYST), (WIDE, "0.2", "ben")):
            assert run("ask", question, "-e", price, "--analyst", analyst).exit_code == 0
    return folder


def words(lines: list[str]) -> list[str]:
    return " ".join(lines).split()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_history_is_whole_in_any_window(hospital: Path, width: int) -> None:
    shown = [line for line in seen(hospital, width, "history") if line]
    lines = shown[: next(i for i, line in enumerate(shown) if line.startswith("head "))]
    assert all(len(line) <= width for line in shown)
    facts = ("answered", ANALYST, "ε = 0.123456", "ε = 0.2", "nothing", "shown again", "sum")
    for fact in facts:
        assert any(fact in line for line in lines), fact
    shown = words(lines)
    assert all(shown.count(word) >= WIDE.split().count(word) for word in WIDE.split())  # each in one piece
    assert "12.345678" in shown


def test_a_window_with_room_has_a_table(hospital: Path) -> None:
    wide, narrow = ("\n".join(seen(hospital, width, "history")) for width in (200, 60))
    assert "time (UTC)" in wide
    assert "time (UTC)" not in narrow


@pytest.mark.slow
@pytest.mark.parametrize("width", [30, 45, 60, 100])
def test_an_answer_is_never_cut(hospital: Path, width: int) -> None:
    plain = seen(hospital, 300, "ask", WIDE, "-e", "0.2", "--analyst", ANALYST)
    cells = [cell.strip() for line in plain for cell in line.split("  ") if " ± " in cell]
    assert len(cells) == 12
    narrow = seen(hospital, width, "ask", WIDE, "-e", "0.2", "--analyst", ANALYST)
    assert all(any(line.endswith(cell) or f"{cell}  " in line for line in narrow) for cell in cells)
    assert all(len(line) <= width for line in narrow)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_budget_is_whole_in_any_window(hospital: Path, width: int) -> None:
    narrow, wide = (seen(hospital, w, "budget", "--analyst", ANALYST) for w in (width, 200))
    assert all(len(line) <= width for line in narrow)
    numbers = [word for word in words(wide) if word[0].isdigit()]
    assert numbers == [word for word in words(narrow) if word[0].isdigit()]
    assert not any(line.endswith((" =", "ε", "ρ")) and "by" not in line for line in narrow)


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60])
def test_quotes_and_refusals_are_broken_between_words(hospital: Path, width: int) -> None:
    for asked in (("quote", WIDE, "-e", "0.2"), ("ask", COUNT, "-e", "7"), ("budget", "--ledger", "nowhere.ledger")):
        wide, narrow = (seen(hospital, w, *asked, *(("-a", ANALYST) if asked[0] != "budget" else ())) for w in (500, width))
        assert words(wide) == words(narrow)
        assert all(len(line) <= width or " " not in line.strip() for line in narrow)


def test_proposed_bounds_can_be_copied_from_any_window(hospital: Path) -> None:
    lines = seen(hospital, 40, "suggest", "patients.income", "-e", "0.01", "-a", ANALYST)
    end = next(i for i, line in enumerate(lines) if line.startswith("income = {"))
    pasted = tomllib.loads("\n".join(lines[: end + 1]))
    assert len(pasted["tables"]["patients"]["columns"]["income"]["between"]) == 2


def test_that_half_a_number_would_be_found() -> None:
    text = "it costs ε = 0.123456, δ = 5e-07; 19987 ± 40 at 95 % confidence"
    for width in range(20, 70):
        lines = wrap_words(text, width).splitlines()
        assert " ".join(lines) == text
        assert all(len(line) <= width for line in lines)
        for whole in ("ε = 0.123456", "δ = 5e-07", "19987 ± 40", "95 %"):
            assert any(whole in line for line in lines)
    assert wrap_words(text, None) == text


@pytest.mark.parametrize("width", [30, 50, 60, 200])
def test_a_caret_stays_below_what_it_points_at(hospital: Path, width: int) -> None:
    question = "SELECT ward, COUNT(*) AS patients, SUM(income) AS a_name_that_makes_the_line_long FROM patients GROUP BY ward"
    lines = seen(hospital, width, "ask", question, "-e", "0.1")
    assert all(len(line) <= width for line in lines)
    place = next(i for i, line in enumerate(lines) if "^" in line)
    start = lines[place].index("^")
    assert lines[place - 1][start : len(lines[place])] == "income"
    assert (lines[place - 1].strip() == question) == (width == 200)


@given(st.text("abc ", min_size=1, max_size=200), st.data(), st.integers(16, 120))
def test_a_line_is_cut_around_its_caret(text: str, data: st.DataObject, width: int) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    line, caret = around("    " + text, "    " + " " * start + "^" * (end - start), width)
    assert max(len(line), len(caret)) <= max(width, 4)
    pointed = line[caret.index("^") : len(caret)]
    assert pointed
    assert text[start:end].startswith(pointed)  # what is below the caret stands there in the question, too
    assert pointed == text[start:end] or len(pointed) == width - 6
    assert line.strip("…").replace("…", "")[4:].strip() in text


def test_a_head_is_whole_where_it_has_room(hospital: Path) -> None:
    (whole,) = (line for line in seen(hospital, 100, "history") if line.startswith("head "))
    assert len(whole.partition(":")[2]) == 64
    (short,) = (line for line in seen(hospital, 60, "history") if line.startswith("head "))
    assert whole.startswith(short.partition("…")[0])
    assert "dither verify" in short


def test_each_remark_in_a_file_is_one_line(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hospital)
    monkeypatch.setenv("COLUMNS", "40")
    told = run("ask", WIDE, "-e", "0.2", "--analyst", ANALYST).stderr.splitlines()
    assert any(line.startswith("not included in ±: ") and len(line) > 40 for line in told)
    assert any("; this is the answer" in line and "; left ε" in line for line in told)
