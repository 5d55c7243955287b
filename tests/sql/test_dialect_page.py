"""docs/queries.md lists the dialect as a table: every example is answered, free or refused as it says, and so is its fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import dither as dt
from sql.test_queries_page import PAGE, section, survey


class Form(NamedTuple):
    """A row of the table."""

    name: str
    example: str
    outcome: str  # answered, free or refused
    instead: tuple[str, ...]  # what the page proposes to ask


def forms(page: str) -> list[Form]:
    """Returns the rows of the table. A | inside a question is written \\|."""
    found = []
    for line in section(page, "The dialect, form by form").splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[1].startswith("`"):
            word = re.match(r"answered|free|refused", cells[2])
            assert word is not None, line
            example = cells[1].removeprefix("`").removesuffix("`")
            found.append(Form(cells[0], example, word[0], tuple(re.findall(r"`(SELECT [^`]+)`", cells[2]))))
    return found


FORMS = forms(PAGE)


@pytest.fixture(scope="module")
def curator() -> Iterator[dt.Curator]:
    with survey(PAGE) as found:
        yield found


def outcome(curator: dt.Curator, question: str) -> str:
    try:
        quoted = curator.quote(question, epsilon="0.1")
    except dt.QueryError:
        return "refused"
    return "answered" if quoted.epsilon else "free"


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_the_page_says_what_happens(curator: dt.Curator, form: Form) -> None:
    assert outcome(curator, form.example) == form.outcome
    assert (form.outcome == "refused") == bool(form.instead)
    for question in form.instead:
        assert outcome(curator, question) == "answered"


def test_a_free_form_leaves_no_entry(curator: dt.Curator) -> None:
    for form in FORMS:
        if form.outcome == "free":
            curator.ask(form.example)
    assert curator.ledger.head().number == 0


def test_that_check_can_fail(curator: dt.Curator) -> None:
    wrong = PAGE.replace("| rows | `SELECT * FROM people` | refused", "| rows | `SELECT * FROM people` | answered")
    rows = next(form for form in forms(wrong) if form.name == "rows")
    assert outcome(curator, rows.example) != rows.outcome
    assert len(FORMS) >= 30
