"""The picture of an answer: its caption is there in full, inside the picture."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from matplotlib.text import Text

from dither.charts import MOST_ROWS, Key, Share, answer_picture, arrange

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
    panels = [(f"n{i}", [7.0, 8.0], [1.0, 2.0]) for i in range(columns)]
    figure = answer_picture(["north", "south"], panels, note)
    caption = figure._supxlabel
    assert caption.get_text().replace("\n", "").replace(" ", "") == note.replace(" ", "")
    assert overhang(caption) <= 0
    axis = figure.axes[0]
    assert axis.get_tightbbox().y0 >= caption.get_window_extent().y1  # below the numbers of the axis, not over them


def test_that_check_can_fail() -> None:
    figure = answer_picture(["north"], [("n", [7.0], [1.0])], "short")
    figure._supxlabel.set_text(LONG)
    assert overhang(figure._supxlabel) > 0


DAYS = [datetime.date(2026, 1, 1) + datetime.timedelta(7 * week) for week in range(20)]


def key(name: str, kind: str, values: list[Any]) -> Key:
    return Key(name, kind, tuple(values), tuple(map(str, values)))


def drawn(keys: list[Key], columns: int = 1, **more: Any) -> Any:
    rows = len(keys[0].values)
    panels = [(f"n{i}", [float(row) for row in range(rows)], [1.0] * rows) for i in range(columns)]
    figure = answer_picture(
        [", ".join(each) for each in zip(*(k.labels for k in keys), strict=True)], panels, "note", keys=keys, **more
    )
    figure.canvas.draw()
    return figure


def test_dates_are_a_line_along_an_axis_of_dates() -> None:
    (axis,) = drawn([key("day", "date", DAYS)]).axes
    (line,) = axis.lines
    assert list(line.get_xdata()) == DAYS
    assert axis.collections  # the band of margins
    assert "2026" in axis.xaxis.get_major_formatter().get_offset() + "".join(t.get_text() for t in axis.get_xticklabels())


def test_few_dates_texts_and_unordered_numbers_are_rows() -> None:
    for one in (key("day", "date", DAYS[:5]), key("r", "text", list("abcdefghij")), key("n", "int", list(range(9, -1, -1)))):
        (axis,) = drawn([one]).axes
        assert [label.get_text() for label in axis.get_yticklabels()] == list(one.labels)


def test_two_keys_are_small_multiples_on_one_scale() -> None:
    regions, days = ["north", "south", "east"] * 10, [day for day in DAYS[:10] for _ in range(3)]
    figure = drawn([key("day", "date", days), key("region", "text", regions)], columns=2)
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        *("n0, region = north", "south", "east"),
        *("n1, region = north", "south", "east"),
    ]
    assert len({axis.get_ylim() for axis in figure.axes[:3]}) == 1
    for place, axis in enumerate(figure.axes[:3]):
        assert list(axis.lines[0].get_ydata()) == [float(3 * week + place) for week in range(10)]


def test_of_two_keys_without_order_the_shorter_one_has_the_panels() -> None:
    plan = arrange([key("region", "text", ["a", "a", "b", "b", "c", "c"]), key("smoker", "text", ["no", "yes"] * 3)], [""] * 6)
    assert dict(plan.panels) == {"no": (0, 2, 4), "yes": (1, 3, 5)}
    assert plan.labels == ("a", "a", "b", "b", "c", "c")


def test_a_missing_combination_is_left_empty_and_a_repeated_one_is_not_hidden() -> None:
    figure = drawn([key("r", "text", ["a", "a", "b"]), key("s", "text", ["x", "y", "y"])])
    assert sum(len(axis.containers) for axis in figure.axes) == 3
    twice = arrange([key("r", "text", ["a", "a"]), key("s", "text", ["x", "x"])], ["a, x", "a, x"])
    assert dict(twice.panels) == {"": (0, 1)}


def test_more_than_sixty_rows_are_drawn_and_what_is_not_is_said() -> None:
    (axis,) = drawn([key("z", "text", [f"z{i}" for i in range(150)])]).axes
    assert len(axis.containers) == len(axis.get_yticks()) == 150
    long = drawn([key("z", "text", [f"z{i}" for i in range(MOST_ROWS + 5)])])
    assert len(long.axes[0].containers) == MOST_ROWS
    assert f"the first {MOST_ROWS} of {MOST_ROWS + 5} rows" in long._supxlabel.get_text().replace("\n", " ")


def spans(strip: Any) -> list[tuple[float, float]]:
    return [(round(bar.get_x()), round(bar.get_x() + bar.get_width())) for bar in strip.patches]


def test_what_was_left_out_is_drawn_with_its_interval() -> None:
    figure = drawn([key("r", "text", ["a", "b"])], left_out=[Share("rows not counted: max_rows = 1", 0.6, 0.5, 0.8)])
    strip = figure.axes[-1]
    assert spans(strip) == [(50, 80)]
    assert strip.texts[0].get_text() == "rows not counted: max_rows = 1"


@pytest.mark.parametrize("estimate", [0.3, None])
def test_what_has_no_upper_end_is_drawn_without_one(estimate: float | None) -> None:
    """A few people may have so many rows that noise hides them: a closed bar would promise too much."""
    strip = drawn([key("r", "text", ["a", "b"])], left_out=[Share("rows", estimate, 0.2, None)]).axes[-1]
    assert spans(strip)[-1][1] == 100
    assert strip.texts[0].get_text().endswith("or more")
    assert len([line for line in strip.lines if line.get_marker() == "o"]) == (estimate is not None)


def test_names_are_not_read_as_formulas() -> None:
    names = ["$\\frac{$", "$x_1$", "a_b^c", "<b>"]
    figure = drawn([key("$\\oops$", "text", names * 2), key("s", "text", ["$1$"] * 4 + ["2"] * 4)])
    assert "$x_1$" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
