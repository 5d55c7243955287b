"""docs/queries.md lists every function, aggregate and type of the SQL, and the fluent steps; its examples are answered."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import dither as dt
from dither.query import fluent, nodes
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
    return re.findall(r"`([^`]+)`", text)


def unlisted(page: str) -> set[str]:
    """Words that a question may use and the page does not list."""
    told = {word for span in spans(section(page, "All functions")) for word in re.findall(r"([A-Z_]+)\(", span)}
    types = {span for span in spans(section(page, "All functions")) if span in expressions.TYPES}
    return (WORDS - told) | (set(expressions.TYPES) - types)


def test_every_function_aggregate_and_type_is_listed() -> None:
    assert unlisted(PAGE) == set()


def test_that_check_can_fail() -> None:
    assert unlisted(PAGE.replace("`SQRT(x)`, ", "").replace("`DECIMAL`, ", "")) == {"SQRT", "DECIMAL"}


def test_no_function_is_listed_that_is_not_there() -> None:
    told = {word for span in spans(section(PAGE, "All functions")) for word in re.findall(r"([A-Z_]+)\(", span)}
    assert told - WORDS == {"IF", "IIF", "CAST", "EXTRACT"}


def test_every_entry_of_the_registry_has_a_spelling() -> None:
    spelled = {*expressions.FUNCTIONS.values(), *expressions.BINARY.values(), *expressions.TYPES.values(), *FORMS}
    assert set(FUNCTIONS) == spelled
    assert [form for form in FORMS.values() if form not in section(PAGE, "All functions")] == []


def test_every_step_of_the_fluent_form_is_listed() -> None:
    told = {word for span in spans(section(PAGE, "In Python")) for word in re.findall(r"(?:^|survey)\.(\w+)\(", span)}
    steps = {name for name, value in vars(fluent.Asking).items() if callable(value) and not name.startswith("_")}
    assert told == steps | {"table"}


def test_every_aggregate_of_the_fluent_form_means_the_sql_beside_it() -> None:
    told = set()
    for line in section(PAGE, "In Python").split("| aggregate |")[1].split("\n"):
        cells = line.strip("|").split(" | ")
        if "dt." in cells[0]:
            asked, sql = spans(cells[0]), spans(cells[1])
            assert [repr(eval(one, {"dt": dt})) for one in asked] == sql[: len(asked)]
            told |= {one.split("(")[0].removeprefix("dt.") for one in asked}
    assert told == set(fluent.__all__) - {"Asked", "Asking", "table"}


def survey(step: str | None) -> dt.Curator:
    """Tables with the columns that the examples name, and hardly a row."""
    numbers, places = np.array([1, 2]), np.array(["north", "south"])
    region, cost = dt.values("north", "south"), dt.between(0, 500, step=step)
    unit = {"column": "person_id", "references": "people.person_id"}
    named = {"person_id": numbers, "region": places, "age": numbers}
    people = dt.Table(named, unit="person_id", columns={"region": region, "age": dt.between(0, 120)})
    paid = {"person_id": numbers, "region": places, "cost": numbers * 0.5}
    visits = dt.Table(paid, unit=unit, max_rows=20, max_groups=5, columns={"region": region, "cost": cost})
    regions = dt.Table({"name": places, "coast": np.array([True, False])}, public=True, key="name")
    tables = {"people": people, "visits": visits, "regions": regions}
    return dt.open(dt.Catalog(tables=tables, budget=dt.Budget(epsilon=1)), ledger=":memory:")


def test_subqueries_on_the_page_are_answered_with_the_step_it_asks_for() -> None:
    examples = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S)[0].splitlines()
    assert len(examples) == 6
    with survey("0.01") as stepped, survey(None) as plain:
        for example in examples:
            stepped.quote(example, epsilon="0.1")
        with pytest.raises(dt.QueryError, match="declare bounds and a step for cost"):
            plain.quote(examples[1], epsilon="0.1")
        plain.quote(examples[1].replace("SUM(v.cost)", "SUM(ROUND(v.cost))"), epsilon="0.1")
