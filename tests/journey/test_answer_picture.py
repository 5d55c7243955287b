"""The picture of an answer: what is drawn, and that its caption is there in full, inside the picture."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from matplotlib.text import Text

from dither.charts.chart import MOST_COLUMNS, MOST_ROWS, Chart, chart_of
from dither.charts.figure import draw_figure

LONG = "charged ε = 0.5; left ε = 0.5; ± at 95 % confidence; not included in ±: " + ", ".join(
    f"people.income{i} is clipped to [0, 100000]" for i in range(8)
)


def overhang(caption: Text) -> float:
    """How far a text reaches over its figure's edges, in pixels."""
    figure = caption.get_figure()
    assert figure is not None
    figure.canvas.draw()
    box = caption.get_window_extent()
    return max(-box.x0, -box.y0, box.x1 - figure.bbox.x1, box.y1 - figure.bbox.y1)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("note", ["charged ε = 0.5", LONG, "M" * 40 + " " + "W" * 40])
def test_the_caption_is_shown_in_full(columns: int, note: str) -> None:
    figure = draw_figure(described({"region": ("text", ["north", "south"])}, columns, notes=[note]))
    caption = figure._supxlabel
    assert caption.get_text().replace("\n", "").replace(" ", "") == note.replace(" ", "")
    assert overhang(caption) <= 0
    axis = figure.axes[0]
    assert axis.get_tightbbox().y0 >= caption.get_window_extent().y1  # below the numbers of the axis, not over them


def test_that_check_can_fail() -> None:
    figure = draw_figure(described({"region": ("text", ["north"])}, notes=["short"]))
    figure._supxlabel.set_text(LONG)
    assert overhang(figure._supxlabel) > 0


DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(7 * week) for week in range(20)]


Keys = dict[str, tuple[str, list[Any]]]  # the kind and the values of each key, by its name


def described(keys: Keys, columns: int = 1, values: list[Any] | None = None, **more: Any) -> Chart:
    """A chart of the numbers 0, 1, 2, … ± 1, or of `values`, in each of the columns n0, n1, …"""
    rows = len(next(iter(keys.values()))[1])
    numbers = [float(row) for row in range(rows)] if values is None else values
    names = [f"n{i}" for i in range(columns)]
    margins = [None if value is None else 1.0 for value in numbers]
    answer = {
        "columns": [*keys, *names],
        "kinds": [*(kind for kind, _ in keys.values()), *["real"] * columns],
        "rows": [[*(plain(each[i]) for _, each in keys.values()), *[numbers[i]] * columns] for i in range(rows)],
        "cells": [[*(text(each[i]) for _, each in keys.values()), *[f"{numbers[i]} ± 1"] * columns] for i in range(rows)],
        "margins": dict.fromkeys(names, margins),
        "ranks": {},
        "left_out": [],
        "warning": None,
        "notes": ["note"],
    }
    return chart_of(answer | more)


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value


def text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def drawn(keys: Keys, columns: int = 1, **more: Any) -> Any:
    figure = draw_figure(described(keys, columns, **more))
    figure.canvas.draw()
    return figure


def labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_yticklabels()]


def test_dates_are_a_line_along_an_axis_of_dates() -> None:
    (axis,) = drawn({"day": ("date", DAYS)}).axes
    (line,) = axis.lines
    assert list(line.get_xdata()) == [(day - datetime.date(1970, 1, 1)).days for day in DAYS]
    assert axis.collections  # the band of margins
    assert [label.get_text() for label in axis.get_xticklabels()] == ["Jan 2026", "Apr"]


def test_few_dates_texts_and_unordered_numbers_are_rows() -> None:
    for kind, values in (("date", DAYS[:5]), ("text", list("abcdefghij")), ("int", list(range(9, -1, -1)))):
        (axis,) = drawn({"k": (kind, values)}).axes
        assert labels(axis) == [str(value) for value in values]


def test_a_null_among_dates_stands_apart_from_the_line() -> None:
    chart = described({"day": ("date", [*DAYS, None])})
    (panel,) = chart.columns[0].panels
    assert [point.label for point in panel.points if point.apart] == ["NULL"]
    assert chart.along is not None
    assert chart.along.ticks[-1][1] == "NULL"
    assert panel.points[-1].along == chart.along.ticks[-1][0]
    assert [len(each) for each in panel.segments()] == [len(DAYS)]


def test_a_line_breaks_where_there_is_no_number_or_no_margin() -> None:
    values: list[Any] = [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    margins = {"n0": [1.0] * 5 + [None] + [1.0] * 3}
    (panel,) = described({"k": ("int", list(range(9)))}, values=values, margins=margins).columns[0].panels
    assert [[point.value for point in each] for each in panel.segments()] == [[1.0, 2.0], [4.0, 5.0], [6.0], [7.0, 8.0, 9.0]]
    assert [bool(each[0].ends) for each in panel.segments()] == [True, True, False, True]


def test_two_keys_are_small_multiples_on_one_scale() -> None:
    regions, days = ["north", "south", "east"] * 10, [day for day in DAYS[:10] for _ in range(3)]
    figure = drawn({"day": ("date", days), "region": ("text", regions)}, columns=2)
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        *("n0, region = north", "south", "east"),
        *("n1, region = north", "south", "east"),
    ]
    assert len({axis.get_ylim() for axis in figure.axes[:3]}) == 1
    for place, axis in enumerate(figure.axes[:3]):
        assert list(axis.lines[0].get_ydata()) == [float(3 * week + place) for week in range(10)]


def test_of_two_keys_without_order_the_shorter_one_has_the_panels() -> None:
    chart = described({"region": ("text", ["a", "a", "b", "b", "c", "c"]), "smoker": ("text", ["no", "yes"] * 3)})
    found = {panel.title: [point.value for point in panel.points] for panel in chart.columns[0].panels}
    assert found == {"no": [0.0, 2.0, 4.0], "yes": [1.0, 3.0, 5.0]}
    assert [point.label for point in chart.columns[0].panels[0].points] == ["a", "b", "c"]


def test_a_missing_combination_is_left_empty_and_a_repeated_one_is_not_hidden() -> None:
    chart = described({"r": ("text", ["a", "a", "b"]), "s": ("text", ["x", "y", "y"])})
    points = [point for panel in chart.columns[0].panels for point in panel.points]
    assert sorted(point.value for point in points if point.value is not None) == [0.0, 1.0, 2.0]
    assert len(points) == 4
    twice = described({"r": ("text", ["a", "a"]), "s": ("text", ["x", "x"])})
    assert [point.label for point in twice.columns[0].panels[0].points] == ["a, x", "a, x"]


def test_more_than_sixty_rows_are_drawn_and_what_is_not_is_said() -> None:
    (axis,) = drawn({"z": ("text", [f"z{i}" for i in range(150)])}).axes
    assert len(axis.get_yticks()) == 150
    long = described({"z": ("text", [f"z{i}" for i in range(MOST_ROWS + 5)])}, columns=MOST_COLUMNS + 1)
    assert len(long.columns[0].panels[0].points) == MOST_ROWS
    assert f"the first {MOST_ROWS} of {MOST_ROWS + 5} rows" in long.cut
    assert f"the first {MOST_COLUMNS} of {MOST_COLUMNS + 1} columns" in long.cut
    short = described({"z": ("text", ["a", "b"])})
    assert not short.cut
    assert "the first" in draw_figure(long)._supxlabel.get_text()


def cut(words: str, estimate: float | None, low: float, high: float | None) -> dict[str, Any]:
    found = {"seen": low > 0, "hidden": estimate is None, "beyond": "100" if high is None else None}
    return {"kind": "share not counted", "estimate": estimate, "low": low, "high": high, "title": words, "text": words, **found}


def spans(strip: Any) -> list[tuple[float, float]]:
    return [(round(bar.get_x()), round(bar.get_x() + bar.get_width())) for bar in strip.patches]


def test_what_was_left_out_is_drawn_with_its_interval() -> None:
    figure = drawn({"r": ("text", ["a", "b"])}, left_out=[cut("rows not counted: max_rows = 1", 0.6, 0.5, 0.8)])
    strip = figure.axes[-1]
    assert spans(strip) == [(50, 80)]
    assert strip.texts[0].get_text() == "rows not counted: max_rows = 1"


@pytest.mark.parametrize("estimate", [0.3, None])
def test_what_has_no_upper_end_is_drawn_without_one(estimate: float | None) -> None:
    """A few people may have so many rows that noise hides them: a closed bar would promise too much."""
    strip = drawn({"r": ("text", ["a", "b"])}, left_out=[cut("rows", estimate, 0.2, None)]).axes[-1]
    assert spans(strip)[-1][1] == 100
    assert strip.texts[0].get_text().endswith("there may be more")
    assert len([line for line in strip.lines if line.get_marker() == "o"]) == (estimate is not None)


def test_what_noise_hides_is_not_drawn_as_left_out() -> None:
    chart = described({"r": ("text", ["a", "b"])}, left_out=[cut("rows", 0.1, 0.0, 0.8)])
    assert chart.shares == ()


def test_names_are_not_read_as_formulas() -> None:
    names = ["$\\frac{$", "$x_1$", "a_b^c", "<b>"]
    figure = drawn({"$\\oops$": ("text", names * 2), "s": ("text", ["$1$"] * 4 + ["2"] * 4)})
    assert "$x_1$" in labels(figure.axes[0])
