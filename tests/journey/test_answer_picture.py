"""The picture of an answer: its caption is there in full, inside the picture."""

from __future__ import annotations

import pytest
from matplotlib.text import Text

from dither.plots import answer_picture

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
