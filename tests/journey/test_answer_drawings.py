"""One description, two renderers: answer.plot() and the console draw the same numbers, margins, ticks and titles."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.charts.chart import Chart, Point, chart_of
from dither.charts.figure import draw_figure
from dither.charts.svg import draw_columns, draw_shares
from dither.server.console.pages import picture

PEOPLE = 400
QUESTIONS = {
    "rows": "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region",
    "multiples": "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY region, smoker",
    "line": "SELECT month, COUNT(*) AS n FROM people GROUP BY month",
    "lines": "SELECT month, smoker, COUNT(*) AS n FROM people GROUP BY month, smoker",
    "numbers": "SELECT age, COUNT(*) AS n FROM people GROUP BY age",
    "one": "SELECT COUNT(*) AS n FROM people",
}


@pytest.fixture(scope="module")
def survey() -> Any:
    months = [datetime.date(2026, month, 1) for month in range(1, 13)]
    rows = {
        "id": list(range(PEOPLE)),
        "age": [20 + i % 60 for i in range(PEOPLE)],
        "region": [("north", "south", "east")[i % 3] for i in range(PEOPLE)],
        "smoker": [("no", "yes")[i // 3 % 2] for i in range(PEOPLE)],
        "month": [months[i % 12] for i in range(PEOPLE)],
    }
    columns = {
        "age": dt.between(20, 79),
        "region": dt.values("north", "south", "east"),
        "smoker": dt.values("no", "yes"),
        "month": dt.values(*months),
    }
    table = dt.Table(rows, unit="id", key="id", columns=columns)
    with dt.open(dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=100)), ledger=":memory:") as opened:
        yield opened


@pytest.fixture(params=QUESTIONS)
def chart(request: pytest.FixtureRequest, survey: Any) -> Chart:
    answer = survey.ask(QUESTIONS[request.param], epsilon=1)
    chart: Chart = answer.chart()
    return chart


def points(chart: Chart) -> list[Point]:
    return [point for column in chart.columns for panel in column.panels for point in panel.points]


def texts_of_svg(chart: Chart) -> list[str]:
    """Every text in the console's drawings, in order."""
    drawn = "".join(svg for column in draw_columns(chart) for _, svg in column.panels)
    return [unescape(found) for found in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]


def numbers_of_svg(chart: Chart) -> list[float]:
    """The numbers of all dots, read back from their places in the drawings."""
    found = []
    for column, drawing in zip(chart.columns, draw_columns(chart), strict=True):
        axis = column.axis
        for _, svg in drawing.panels:
            dots = [each for each in ElementTree.fromstring(svg).iter("circle") if "dot" in each.attrib["class"].split()]
            for dot in dots:
                if chart.along is None:
                    share = float(dot.attrib["cx"].rstrip("%")) / 100
                else:
                    share = 1 - (float(dot.attrib["cy"]) - 12) / 180
                found.append(axis.low + share * (axis.high - axis.low))
    return found


def numbers_of_figure(chart: Chart) -> list[float]:
    """The numbers that matplotlib has drawn."""
    found: list[float] = []
    for axis in draw_figure(chart).axes[: sum(len(column.panels) for column in chart.columns)]:
        if chart.along is None:
            found += [float(container.lines[0].get_xdata()[0]) for container in axis.containers if hasattr(container, "lines")]
        else:
            found += [float(number) for line in axis.lines for number in line.get_ydata()]
    return found


def agree(chart: Chart, drawn: list[float]) -> bool:
    expected = [point.value for point in points(chart) if point.value is not None]
    size = max(column.axis.high - column.axis.low for column in chart.columns)
    return len(drawn) == len(expected) and all(abs(a - b) < size / 500 for a, b in zip(drawn, expected, strict=True))


def test_both_renderers_draw_the_same_numbers(chart: Chart) -> None:
    assert agree(chart, numbers_of_figure(chart))
    if all(len(panel.points) <= 60 for column in chart.columns for panel in column.panels):
        assert agree(chart, numbers_of_svg(chart))


def test_that_check_can_fail(chart: Chart) -> None:
    column = chart.columns[0]
    panel = column.panels[0]
    moved = replace(panel.points[0], value=(panel.points[0].value or 0.0) + (column.axis.high - column.axis.low) / 50)
    other = replace(panel, points=(moved, *panel.points[1:]))
    wrong = replace(chart, columns=(replace(column, panels=(other, *column.panels[1:])), *chart.columns[1:]))
    assert not agree(chart, numbers_of_figure(wrong))
    assert not agree(chart, numbers_of_svg(wrong))


def test_both_renderers_have_the_same_ticks_and_labels(chart: Chart) -> None:
    texts = texts_of_svg(chart)
    axes = draw_figure(chart).axes
    for column in chart.columns:
        for _, label in (*column.axis.ticks, *(chart.along.ticks if chart.along else ())):
            assert label in texts
    shown = {label.get_text() for axis in axes for label in (*axis.get_xticklabels(), *axis.get_yticklabels())}
    named = {point.label for point in points(chart)} if chart.along is None else set()
    assert shown <= {*texts, ""}
    assert named <= shown


def test_every_panel_is_well_formed_and_says_what_it_shows(chart: Chart) -> None:
    for drawing in draw_columns(chart):
        for _, svg in drawing.panels:
            root = ElementTree.fromstring(svg)
            assert root.attrib["role"] == "img"
            assert (root.findtext("title") or "").startswith(drawing.name)


def test_the_console_draws_the_chart_of_the_answer(survey: Any) -> None:
    """The page gets JSON and `plot` the answer: both come to the same chart."""
    answer = survey.ask(QUESTIONS["multiples"], epsilon=1)
    shown = picture(answer.as_data() | {"notes": answer.notes(), "cells": answer.cells()})
    assert shown["columns"] == [(each.name, list(each.panels)) for each in draw_columns(answer.chart())]
    assert [title for title, _ in shown["columns"][0][1]] == ["smoker = no", "smoker = yes"]


def test_what_was_left_out_is_drawn_in_both() -> None:
    rows = {"id": [i // 20 for i in range(4000)], "region": [("north", "south")[i // 20 % 2] for i in range(4000)]}
    table = dt.Table(rows, unit="id", max_rows=2, columns={"region": dt.values("north", "south")})
    with dt.open(dt.Catalog(tables={"visits": table}, budget=dt.Budget(epsilon=100)), ledger=":memory:") as survey:
        chart = survey.ask("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", epsilon=50).chart()
    assert chart.shares
    assert chart.shares[0].text in draw_shares(chart.shares)
    assert chart.shares[0].text in [each.get_text() for each in draw_figure(chart).axes[-1].texts]


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**400), 10**400)
KEYS = {
    "int": st.integers(-(10**20), 10**20),
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "date": st.dates().map(datetime.date.isoformat),
    "timestamp": st.datetimes().map(datetime.datetime.isoformat),
    "text": st.text(max_size=5),
}


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """JSON of an answer with one key in order, its NULL at the end."""
    kind = draw(st.sampled_from(sorted(KEYS)))
    keys: list[Any] = sorted(draw(st.sets(KEYS[kind], min_size=1, max_size=12))) + draw(st.sampled_from([[], [None]]))
    values = draw(st.lists(NUMBERS, min_size=len(keys), max_size=len(keys)))
    margins = draw(st.lists(st.none() | st.floats(0, 1e308), min_size=len(keys), max_size=len(keys)))
    rows = [list(pair) for pair in zip(keys, values, strict=True)]
    cells = [[str(each) for each in row] for row in rows]
    fixed = {"columns": ["k", "n"], "kinds": [kind, "real"], "ranks": {}, "left_out": [], "warning": None, "notes": []}
    return fixed | {"rows": rows, "cells": cells, "margins": {"n": margins}}


@given(answer=answers())
def test_every_answer_can_be_drawn(answer: dict[str, Any]) -> None:
    """Whatever the numbers are: every drawn one is on its axis, and the SVG is well formed."""
    chart = chart_of(answer)
    for column in chart.columns:
        assert column.axis.low < column.axis.high
        for point in column.panels[0].points:
            assert point.value is None or column.axis.low <= point.value <= column.axis.high
    for _, svg in (panel for column in draw_columns(chart) for panel in column.panels):
        ElementTree.fromstring(svg)
