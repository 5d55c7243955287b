"""Describes a catalog for those who may ask: everything that is declared, except where the data is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dither.catalog.declare import date_of, time_of
from dither.catalog.text import catalog_text
from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.curator import Curator

ELSEWHERE = "on-the-server"  # in place of a source


def describe(survey: Curator) -> dict[str, Any]:
    """Returns the catalog as data, and as TOML for programs that plan questions themselves.

    `hash` is the digest of the declaration that is in receipts. `toml` has the kinds that were read from the sources' schemas.
    """
    catalog, budget = survey.catalog, survey.catalog.budget
    return {
        "hash": survey.session.declaration.catalog_hash,
        "snapshot": catalog.snapshot,
        "neighbours": catalog.neighbours,
        "budget": {
            "epsilon": str(budget.epsilon),
            "delta": str(budget.delta),
            "per_analyst": None if budget.per_analyst is None else str(budget.per_analyst),
            "per_query": None if budget.per_query is None else str(budget.per_query),
            "least_epsilon": str(budget.least_epsilon),
        },
        "ledger": {"id": survey.ledger.ident, "public_key": survey.ledger.public_key},
        "tables": {name: _table(table, survey.engine.schema(name)) for name, table in catalog.tables.items()},
        "toml": catalog_text(_without_sources(catalog)),
        "declared": survey.session.declaration.text,
    }


def _without_sources(catalog: Catalog) -> Catalog:
    tables = {}
    for name, table in catalog.tables.items():
        made = object.__new__(Table)
        for part in Table.__dataclass_fields__:
            object.__setattr__(made, part, ELSEWHERE if part == "source" else getattr(table, part))
        tables[name] = made
    return replace(catalog, tables=tables, budget=_without_names(catalog))


def _without_names(catalog: Catalog) -> Any:
    """Returns the budget. Who may ask is no secret among those who may, and the digest depends on it."""
    return catalog.budget


def _table(table: Table, schema: Any) -> dict[str, Any]:
    unit = None if table.unit is None else {"column": table.unit.column, "references": table.unit.references}
    kinds = dict(schema)
    return {
        "public": table.public,
        "unit": "row" if table.by_row else unit,
        "edge": None if table.edges is None else {"ends": list(table.edges.ends), "unit": table.edges.unit},
        "max_rows": table.max_rows,
        "max_groups": table.max_groups,
        "most_rows": table.most_rows,
        "key": table.key,
        "rows": {"public": table.rows.public, "at_least": table.rows.at_least},
        "caps": {"max_rows": table.caps.max_rows, "max_groups": table.caps.max_groups},
        "columns": {name: _column(facts, kinds.get(name)) for name, facts in table.columns.items()},
        "undeclared": [name for name in kinds if name not in table.columns],
    }


def _column(facts: ColumnFacts, kind: str | None) -> dict[str, Any]:
    bounded = facts.low is not None and facts.high is not None
    return {
        "kind": facts.kind or kind,
        "between": [_end(facts, facts.low), _end(facts, facts.high)] if bounded else None,
        "step": None if facts.step is None else str(facts.step),
        "values": None if facts.values is None else [_value(value) for value in facts.values],
        "found": None if facts.found is None else [_value(value) for value in facts.found],
        "nullable": facts.nullable,
    }


def _end(facts: ColumnFacts, end: Any) -> str:
    if facts.kind == "date":
        return date_of(end).isoformat()
    return time_of(end).isoformat() if facts.kind == "timestamp" else str(end)


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, str)) else value.isoformat()
