"""What a notebook shows of a cell's last line: what print shows, with a chart, and nothing in it is taken for HTML."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dither as dt
from journey.paid import COUNT, opened


def test_a_quote_is_shown_as_it_is_printed(folder: Path) -> None:
    with opened(folder) as survey:
        quote = survey.quote(COUNT, epsilon="0.1")
    assert repr(quote) == str(quote)
    assert len(repr(quote)) < 1000
    assert "price          ε = 0.1" in quote._repr_html_()


def test_a_quote_is_text_to_a_notebook(folder: Path) -> None:
    with opened(folder) as survey:
        quote = survey.quote('SELECT COUNT(*) AS "<b>" FROM people', epsilon="0.1")
    assert "<b>" in str(quote)
    assert "<b>" not in quote._repr_html_()
    assert "&lt;b&gt;" in quote._repr_html_()


ALLOWED = {  # what a display may contain: no scripts, no links, no handlers
    "table": set(),
    "caption": set(),
    "thead": set(),
    "tbody": set(),
    "tr": set(),
    "th": set(),
    "td": {"style"},
    "p": set(),
    "br": set(),
    "strong": set(),
    "small": set(),
    "pre": set(),
    "details": {"open"},
    "summary": set(),
    "div": {"role", "aria-label", "style"},
    "img": {"alt", "src"},
}


class Tags(HTMLParser):
    """Collects what a browser would see as markup, and is not allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        given = dict(attrs)
        if tag not in ALLOWED or not set(given) <= ALLOWED[tag]:
            self.strange.append(f"{tag} {given}")
        if tag == "img" and not str(given["src"]).startswith("data:image/png;base64,"):
            self.strange.append("an image from elsewhere")

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    return tags


NAMES = ["<img src=x onerror=alert(1)>", "</td><script>alert(1)</script>", "'\" onload='x", "a $\\frac{$ b", "&amp; <b>"]


def hostile(**more: Any) -> dt.Curator:
    ids = np.arange(400)
    people = {"id": ids, "r": np.array(NAMES)[ids % 5], "s": np.array(NAMES)[ids % 2], "x": ids % 90}
    columns = {"r": dt.values(*NAMES), "s": dt.values(*NAMES), "x": dt.between(0, 120)}
    table = dt.Table(people, unit="id", key="id", columns=columns)
    return dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=50, **more)), ledger=":memory:")


def test_hostile_names_never_become_markup() -> None:
    with hostile() as survey:
        for keys in ("r", "r, s"):
            question = f'SELECT {keys}, COUNT(*) AS "{NAMES[0]}", AVG(x) AS x FROM t GROUP BY {keys}'
            for shown in (survey.quote(question, epsilon=1), survey.ask(question, epsilon=1)):
                found = parsed(shown._repr_html_())
                assert found.strange == []
                assert NAMES[0] in found.text
        assert "img" in found.seen  # with its chart
        both = survey.ask(["SELECT COUNT(*) AS n FROM t", question], epsilon=1)
        assert parsed(both._repr_html_()).strange == []


def test_that_check_can_fail() -> None:
    for name in NAMES[:3]:
        assert parsed(f"<td title='{name}'>{name}</td>").strange


def test_budgets_and_quotas_have_bars() -> None:
    with hostile(per_analyst=25) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM t", epsilon=10, analyst="<b>")
        for standing, share in ((survey.budget, "20.0%"), (survey.quota("<b>"), "40.0%")):
            html = standing._repr_html_()
            assert f"width:{share}" in html
            assert parsed(html).strange == []
            assert "left" in parsed(html).text


def test_proposals_are_shown_with_their_doubts() -> None:
    with hostile() as survey:
        good, poor = survey.suggest("t.x", epsilon=20), survey.suggest("t.x", epsilon="0.01")
    assert parsed(good._repr_html_()).strange == parsed(poor._repr_html_()).strange == []
    assert "between = [" in good._repr_html_()
    assert "<strong>" in poor._repr_html_()
    assert "TOO NOISY" in poor._repr_html_()


def test_an_answer_is_shown_without_matplotlib_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with hostile() as survey:
        answer = survey.ask("SELECT r, COUNT(*) AS n FROM t GROUP BY r", epsilon=1)
    assert "<table>" in answer._repr_html_()
    assert "<img" not in answer._repr_html_()
