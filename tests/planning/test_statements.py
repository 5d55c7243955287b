"""The SQL that DuckDB is given for every golden question. UPDATE_GOLDEN=1 writes what is printed now; read the difference."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.work import statements
from dither.errors import QueryError
from dither.planning.levels import finest
from dither.planning.lookups import look_up
from dither.planning.plan import plan
from dither.planning.price import Price
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from planning.test_golden import CATALOGS, cases
from sql.survey import CATALOG
from sql.test_golden import cases as parsed_cases

FILE = Path(__file__).parent.parent / "golden" / "statements.txt"
COLUMNS = {name: [(column, facts.kind) for column, facts in table.columns.items()] for name, table in CATALOG.tables.items()}


def schema(table: str) -> list[tuple[str, str]]:
    return [*COLUMNS[table], *(("person_id", "int") for _ in range(table == "visits"))]


def printed(word: str, text: str) -> str:
    catalog = CATALOGS[word]
    price = Price(Fraction(1, 2), catalog.budget.delta / 2)
    try:
        query = look_up(resolve(parse(text, catalog), catalog, text), lambda works: None, lambda work: ())  # empty tables
        if query.max_rows is None or query.max_groups is None:
            return "chooses its bounds"
        made = plan(finest(query), catalog, price)
    except QueryError:
        return "refused"
    return "\n".join(statement.text for statement in statements(made.work, schema, DIALECT))


def questions() -> list[tuple[str, str]]:
    """The questions of both golden files, each with the catalog it is asked of."""
    planned = [(word, text) for word, text, _ in cases()]
    return list(dict.fromkeys([*planned, *(("delta", text) for _, text, _ in parsed_cases("sql_to_nodes.txt"))]))


def test_statements_are_as_printed() -> None:
    found = "\n\n".join(f"{word}> {text}\n{printed(word, text)}" for word, text in questions()) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(found, encoding="utf-8")
    assert found.split("\n\n") == FILE.read_text(encoding="utf-8").split("\n\n")
