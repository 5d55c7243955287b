"""SQL → plan, as people see it before they pay. UPDATE_GOLDEN=1 writes what is printed now; read the difference.

A question begins with the catalog it is asked of: "delta>" has a delta, "pure>" has none, "replace>" has 1000 people
and neighbours in which one of them is replaced.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

from dither.catalog.values import Budget, Catalog, Table
from dither.errors import QueryError
from dither.planning.outputs import explain
from dither.planning.plan import plan
from dither.planning.price import Price
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from sql.survey import CATALOG, PEOPLE

FILE = Path(__file__).parent.parent / "golden" / "plans.txt"
COUNTED = Table("people.parquet", unit="person_id", max_rows=1, rows={"public": 1000}, columns=PEOPLE.columns)
CATALOGS = {
    "delta": CATALOG,
    "pure": Catalog(CATALOG.tables, Budget(1)),
    "replace": Catalog({"people": COUNTED}, Budget(1), neighbours="replace"),
}


def explained(word: str, text: str) -> str:
    catalog = CATALOGS[word]
    price = Price(Fraction(1, 2), catalog.budget.delta / 2)
    try:
        made = plan(resolve(parse(text, catalog), catalog, text), catalog, price)
    except QueryError as error:
        return str(error.located(text))
    return explain(made, Fraction(19, 20))


def cases() -> list[tuple[str, str, str]]:
    """(catalog, question, expected) for each case of the file."""
    found = []
    for block in FILE.read_text(encoding="utf-8").strip().split("\n\n"):
        first, _, expected = block.partition("\n")
        word, _, text = first.partition("> ")
        found.append((word, text, expected))
    return found


def test_plans_are_as_printed() -> None:
    known = cases()
    if os.environ.get("UPDATE_GOLDEN"):
        blocks = [f"{word}> {text}\n{explained(word, text)}" for word, text, _ in known]
        FILE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
        return
    for word, text, expected in known:
        assert explained(word, text) == expected, text


def test_the_same_question_gives_the_same_plan() -> None:
    for word, text, _ in cases():
        assert explained(word, text) == explained(word, text)
