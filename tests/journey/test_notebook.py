"""What a notebook shows of a cell's last line is what print shows, and nothing in it is taken for HTML."""

from __future__ import annotations

from pathlib import Path

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
