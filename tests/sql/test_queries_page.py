"""docs/queries.md lists every function, aggregate and type of the SQL, and the fluent steps; its examples are answered."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import dither as dt
from dither.query import fluent, nodes, outer
from dither.query.functions.registry import FUNCTIONS
from dither.query.sql import expressions

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
WORDS = {*expressions.FUNCTIONS, *nodes.by_word()}
# What has a form of its own instead of a word and parentheses, and how the page writes it.
FORMS = {
    "neg": "`-x`",
    "not": "`NOT`",
    "is_null": "`IS [NOT] NULL`",
    "in_list": "`IN (…)`",
    "case": "`CASE WHEN … THEN … ELSE … END`",
    "like": "`x LIKE 'a%'`",
}


def section(page: str, title: str) -> str:
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def unlisted(page: str) -> set[str]:
    """Returns the words that a question may use and the page does not list."""
    told = {word for span in spans(section(page, "All functions")) for word in re.findall(r"([A-Z_]+[A-Z_0-9]*)\(", span)}
    types = {span for span in spans(section(page, "All functions")) if span in expressions.TYPES}
    return (WORDS - told) | (set(expressions.TYPES) - types)


def test_every_function_aggregate_and_type_is_listed() -> None:
    assert unlisted(PAGE) == set()


def test_that_check_can_fail() -> None:
    assert unlisted(PAGE.replace("`SQRT(x)`, ", "").replace("`DECIMAL`, ", "")) == {"SQRT", "DECIMAL"}


def test_no_function_is_listed_that_is_not_there() -> None:
    told = {word for span in spans(section(PAGE, "All functions")) for word in re.findall(r"([A-Z_]+[A-Z_0-9]*)\(", span)}
    assert told - WORDS == {"IF", "IIF", "CAST", "EXTRACT", "HISTOGRAM"}


def test_every_entry_of_the_registry_has_a_spelling() -> None:
    spelled = {*expressions.FUNCTIONS.values(), *expressions.BINARY.values(), *expressions.TYPES.values(), *FORMS}
    assert set(FUNCTIONS) == spelled
    assert [form for form in FORMS.values() if form not in section(PAGE, "All functions")] == []


def test_every_step_of_the_fluent_form_is_listed() -> None:
    told = {
        word
        for span in spans(section(PAGE, "Write questions in Python"))
        for word in re.findall(r"(?:^|survey)\.(\w+)\(", span)
    }
    steps = {name for name, value in vars(fluent.FluentQuestion).items() if callable(value) and not name.startswith("_")}
    assert told == steps | {"table"}


def test_every_aggregate_of_the_fluent_form_means_the_sql_beside_it() -> None:
    told = set()
    for line in section(PAGE, "Write questions in Python").split("| aggregate |")[1].split("\n"):
        cells = line.strip("|").split(" | ")
        if "dt." in cells[0]:
            asked, sql = spans(cells[0]), spans(cells[1])
            assert [repr(eval(one, {"dt": dt})) for one in asked] == sql[: len(asked)]
            told |= {one.split("(")[0].removeprefix("dt.") for one in asked}
    assert told == set(fluent.__all__) - {"FluentAggregate", "FluentQuestion", "quoted", "table"}


def survey(page: str) -> dt.Curator:
    """Opens the session of the page's examples."""
    opening = doctest.DocTestParser().get_doctest(section(page, "The tables of the examples"), {}, "tables", None, 0)
    assert doctest.DocTestRunner().run(opening, clear_globs=False).failed == 0
    found = opening.globs["survey"]
    assert isinstance(found, dt.Curator)
    return found


def test_every_question_on_the_page_is_answered() -> None:
    examples = [line for block in re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
    assert len(examples) >= 15
    with survey(PAGE) as curator:
        for example in examples:
            curator.quote(example, epsilon="0.1")


def test_a_sum_per_person_needs_the_step_that_the_page_asks_for() -> None:
    asked = (
        "SELECT AVG(CLAMP((SELECT SUM(v.cost) FROM visits v WHERE v.person_id = p.person_id), 0, 500)) AS spent FROM people p"
    )
    assert asked in PAGE
    with survey(PAGE.replace(', step="0.01")', ")")) as plain:
        with pytest.raises(dt.QueryError, match="declare bounds and a step for cost"):
            plain.quote(asked, epsilon="0.1")
        plain.quote(asked.replace("SUM(v.cost)", "SUM(ROUND(v.cost))"), epsilon="0.1")


def above(page: str) -> set[str]:
    """Returns the functions of a noisy table that the page does not list."""
    told = {word for span in spans(section(page, "Work on the noisy result")) for word in re.findall(r"\b([A-Z_]+)\b", span)}
    return set(outer.BY_WORD) - told


def test_every_function_of_a_noisy_table_is_listed() -> None:
    assert above(PAGE) == set()
    assert above(PAGE.replace("`DENSE_RANK()`, ", "")) == {"DENSE_RANK"}
