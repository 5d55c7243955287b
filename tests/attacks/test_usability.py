"""PITFALLS, usability that costs privacy or trust: bounds that are used, honest counts, light imports."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dither as dt
from attacks.paths import ask, catalog, open_observed

ROOT = Path(__file__).parents[2]
COUNT = "SELECT COUNT(*) AS n FROM t"


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_truncation_keeps_as_many_groups_as_it_charges_for(groups: int) -> None:
    table = {"u": [1] * 20, "k": list(range(20))}
    seen = ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k", table, {"k": dt.between(0, 19)}, max_rows=1, max_groups=groups)
    assert seen.plan is not None
    assert sum(sum(group.measures[0]) for group in seen.groups) == groups == seen.plan.bounding.touched


def test_counts_are_not_clamped_at_zero() -> None:
    """About half of two hundred empty groups have a negative count."""
    table = {"u": [1], "k": [0]}
    seen = ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k", table, {"k": dt.between(0, 200)}, "0.1", max_rows=1, max_groups=1)
    assert seen.answer is not None
    below = sum(int(str(n)) < 0 for n in seen.answer["n"])
    assert 60 < below < 140


def test_the_count_is_not_paid_twice_in_a_mean() -> None:
    """A mean alone, and a mean with its count: the same noise at the same price."""
    survey = open_observed(catalog({"u": [1, 2], "x": [1, 2]}, {"x": dt.between(0, 10)}, max_rows=1))
    alone, both = (survey.quote(f"SELECT AVG(x) AS a{more} FROM t", epsilon=1).plan for more in ("", ", COUNT(x) AS n"))
    assert [noise.mechanism for noise in both.noises] == [noise.mechanism for noise in alone.noises]


def test_a_plain_count_is_planned_in_few_steps() -> None:
    """Counts calls, which do not depend on the machine: seconds of planning would be millions of calls."""
    survey = open_observed(catalog({"u": [1, 2]}, {}, max_rows=1))
    survey.quote(COUNT, epsilon=1)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        survey.quote("SELECT COUNT(*) AS other FROM t", epsilon="1/3")
    finally:
        sys.setprofile(None)
    assert 100 < calls < 50_000


def test_dependencies_are_not_pinned_so_tightly_that_the_library_stops_importing() -> None:
    """No exact pin: the parser has a tested range (decision 11), and noise and budgets work without it."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert not [one for one in wanted if "==" in one]
    gone = (
        "import sys; sys.modules['sqlglot'] = None; import dither as dt; print(dt.Geometric(epsilon=1, sensitivity=1).loss())"
    )
    done = subprocess.run([sys.executable, "-c", gone], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Pure"), done.stderr


def test_no_rows_are_silently_left_out() -> None:
    rows = 250_003
    seen = ask(COUNT, {"x": [1] * rows}, {"x": dt.between(0, 1)}, unit="row")
    assert seen.only() == ((rows,),)


def test_a_bound_that_leaves_rows_out_is_told() -> None:
    survey = open_observed(catalog({"u": [1, 1, 1], "x": [1, 2, 3]}, {"x": dt.between(0, 10)}, max_rows=2))
    assert "2 rows" in str(survey.quote("SELECT SUM(x) AS s FROM t", epsilon=1))


BLAMED = {
    "SELECT SUM(x) AS s FROM t WHERE y > 1": ("y", "no usable column y"),
    "SELECT SUM(z) AS s FROM t": ("z", "no bounds"),
    "SELECT COUNT(*) AS n FROM persons": ("persons", "no table"),
    "SELECT x, COUNT(*) FROM t": ("x", "GROUP BY"),
    "SELECT COUNT(*) AS n FROM t WHERE x > 'a'": ("x > 'a'", "mixes a whole number and text"),
}


@pytest.mark.parametrize("question", BLAMED)
def test_an_error_names_what_is_wrong_where_it_stands(question: str) -> None:
    """The marks point at the faulty part of the question, and the text says what is wrong with it."""
    held = catalog({"u": [1], "x": [1], "z": [1]}, {"x": dt.between(0, 10), "z": dt.column()}, max_rows=1)
    with pytest.raises(dt.QueryError) as refusal:
        open_observed(held).ask(question, epsilon=1)
    lines = str(refusal.value).splitlines()
    place = next(i for i, line in enumerate(lines) if question in line)
    start, end = lines[place + 1].index("^"), lines[place + 1].rindex("^") + 1
    culprit, words = BLAMED[question]
    assert culprit in lines[place][start:end]
    assert words in str(refusal.value)
