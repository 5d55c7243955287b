"""Writes a catalog as TOML, and computes the digest that names it in ledgers and receipts."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dither.catalog.declare import date_of, time_of
from dither.catalog.reading import AS_IS, DEFAULT, LINES, TEXT_FILE, Cells, Read
from dither.catalog.rules import LONGEST
from dither.catalog.values import Budget, Catalog, ColumnFacts, Edges, Key, Table, TableCaps, least_price
from dither.errors import CatalogError
from dither.exact.numbers import encode_toml

_BARE = re.compile(r"[A-Za-z0-9_-]+$")
_ADDED_LATER = ("per_query", "analysts", "least_epsilon", "left_out")
_LATER_FACTS = {"longest": LONGEST, "cells": AS_IS}  # facts added later enter only if declared
_NEVER = object()
_FACTS = tuple(name for name, part in ColumnFacts.__dataclass_fields__.items() if part.compare)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def catalog_text(catalog: Catalog) -> str:
    """Returns TOML text that reads back as this catalog. Refuses a catalog with a frame, which has no path."""
    budget = catalog.budget
    lines = [f"snapshot = {quoted(catalog.snapshot)}", ""] if catalog.snapshot else []
    lines += ["[budget]", f"epsilon = {encode_toml(budget.epsilon)}"]
    lines += [f"delta = {encode_toml(budget.delta)}"] if budget.delta else []
    lines += [f"per_analyst = {encode_toml(budget.per_analyst)}"] if budget.per_analyst is not None else []
    lines += [f"per_query = {encode_toml(budget.per_query)}"] if budget.per_query is not None else []
    lines += (
        [f"least_epsilon = {encode_toml(budget.least_epsilon)}"] if budget.least_epsilon != least_price(budget.epsilon) else []
    )
    lines += [] if budget.left_out else ["left_out = false"]
    lines += [f"analysts = [{', '.join(map(quoted, budget.analysts))}]"] if budget.analysts is not None else []
    if catalog.neighbours != "add-remove":
        lines += ["", "[privacy]", f"neighbours = {quoted(catalog.neighbours)}"]
    for name, table in catalog.tables.items():
        lines += ["", f"[tables.{key(name)}]", *_table(name, table)]
        lines += [f"[tables.{key(name)}.read]", *_read(table.read)] if table.read != DEFAULT else []
        if table.columns:
            lines += [f"[tables.{key(name)}.columns]"]
            lines += [f"{key(column)} = {_column(facts)}" for column, facts in table.columns.items()]
    return "\n".join(lines) + "\n"


def catalog_hash(catalog: Catalog) -> str:
    """Returns the digest of a declaration. Equal catalogs have equal digests, in whatever order they were written.

    The data and the paths of the sources do not enter; `snapshot` labels the version of the data.
    """
    return hashlib.sha256(catalog_json(catalog).encode()).hexdigest()


def catalog_json(catalog: Catalog) -> str:
    """Encodes a declaration, without its sources, as the canonical JSON text that is hashed."""
    return json.dumps(_canonical(catalog), sort_keys=True, ensure_ascii=True)


def quoted(text: str) -> str:
    """Returns a TOML string.

    >>> print(quoted('say "hi"'))
    "say \\"hi\\""
    """
    return '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else _escaped(c)) for c in text) + '"'


def key(name: str) -> str:
    """Returns a TOML key, quoted only if it must be."""
    return name if _BARE.match(name) else quoted(name)


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"


def _table(name: str, table: Table) -> list[str]:
    if not isinstance(table.source, (str, os.PathLike)):
        what = f"{name} is a frame in memory and has no path to write into a file."
        raise CatalogError([(None, what, "save it as Parquet and name the file as the source.")])
    lines = [f"source = {quoted(os.fspath(table.source))}"]
    if table.edges is not None:
        lines += _edges(table.edges)
    elif table.by_row:
        lines.append('unit = "row"')
    elif table.unit is not None:
        column, parent = quoted(table.unit.column), table.unit.references
        bare = column if table.unit.column != "row" else f"{{ column = {column} }}"
        lines.append(f"unit = {{ column = {column}, references = {quoted('.'.join(parent))} }}" if parent else f"unit = {bare}")
        lines += [f"max_rows = {table.max_rows}"] if table.max_rows is not None else []
        lines += [f"max_groups = {table.max_groups}"] if table.max_groups is not None else []
        lines += [f"most_rows = {table.most_rows}"] if table.most_rows is not None else []
    lines += ["public = true"] if table.public else []
    declared = {"public": table.rows.public, "at_least": table.rows.at_least}
    facts = ", ".join(f"{part} = {value}" for part, value in declared.items() if value is not None)
    lines += [f"rows = {{ {facts} }}"] if facts else []
    lines += [f"key = {quoted(table.key)}"] if table.key is not None else []
    limits = {"max_rows": table.caps.max_rows, "max_groups": table.caps.max_groups}
    caps = ", ".join(f"{part} = {value}" for part, value in limits.items() if value is not None)
    lines += [f"caps = {{ {caps} }}"] if caps else []
    return lines


def _edges(edges: Edges) -> list[str]:
    lines = [f"edge = [{', '.join(map(quoted, edges.ends))}]", f"unit = {quoted(edges.unit)}"]
    if edges.nodes is not None:
        lines.append(
            f"nodes = {_column(edges.nodes) if isinstance(edges.nodes, ColumnFacts) else quoted('.'.join(edges.nodes))}"
        )
    limits = {"nodes": edges.at_most.nodes, "edges": edges.at_most.edges}
    said = ", ".join(f"{part} = {value}" for part, value in limits.items() if value is not None)
    return [*lines, f"at_most = {{ {said} }}"] if said else lines


def _read(read: Read) -> list[str]:
    given = [(part, getattr(read, part)) for part in read.given((*TEXT_FILE, *LINES))]
    return [f"{part} = {_setting(value)}" for part, value in given] + _cells(read.cells)


def _cells(cells: Cells) -> list[str]:
    given = [(part, getattr(cells, part)) for part in Cells.__dataclass_fields__]
    return [f"{part} = {_setting(value)}" for part, value in given if value is not None]


def _setting(value: Any) -> str:
    return f"[{', '.join(map(quoted, value))}]" if isinstance(value, tuple) else _value(value)


def _column(facts: ColumnFacts) -> str:
    parts = [f"kind = {quoted(facts.kind)}"] if facts.kind is not None else []
    if facts.low is not None and facts.high is not None:
        written: dict[str | None, Callable[[Fraction], str]] = {
            "date": lambda end: date_of(end).isoformat(),
            "timestamp": lambda end: time_of(end).isoformat(),
        }
        ends = [written.get(facts.kind, encode_toml)(end) for end in (facts.low, facts.high)]
        parts.append(f"between = [{', '.join(ends)}]")
    parts += [f"step = {encode_toml(facts.step)}"] if facts.step is not None else []
    if facts.values is not None:
        parts.append(f"values = [{', '.join(_value(value) for value in facts.values if value is not None)}]")
        parts += ['null = "group"'] if None in facts.values else []
    parts += _reading(facts)
    return f"{{ {', '.join(parts)} }}" if parts else "{}"


def kept_settings(facts: ColumnFacts) -> tuple[str, ...]:
    """Returns the settings of a column that stay as declared when its bounds or values are replaced: how its cells are read.

    >>> kept_settings(ColumnFacts("real", Fraction(0), Fraction(9), cells=Cells(decimal=",", na=("-",))))
    ('kind = "real"', 'decimal = ","', 'na = ["-"]')
    """
    return (*([f"kind = {quoted(facts.kind)}"] if facts.kind is not None and not facts.implied else []), *_reading(facts))


def _reading(facts: ColumnFacts) -> list[str]:
    parts = ["null = false"] if not facts.nullable else []
    parts += [f"longest = {facts.longest}"] if facts.longest != LONGEST else []
    return parts + _cells(facts.cells)


def _value(value: Key) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _canonical(value: Any) -> Any:
    """Returns a value that JSON encodes in one way only. Types are named, so that 1, "1" and true differ."""
    if isinstance(value, (Catalog, Table)):
        parts = {name: getattr(value, name) for name in value.__dataclass_fields__ if name != "source"}
        later = {"read": DEFAULT, "caps": TableCaps(), "edges": None, "most_rows": None}  # fields added later, as below
        return {name: _canonical(part) for name, part in parts.items() if name not in later or part != later[name]}
    if isinstance(value, Budget):  # fields added later enter only if declared, so that older digests stay the same
        parts = {name: getattr(value, name) for name in value.__dataclass_fields__}
        parts["least_epsilon"] = None if value.least_epsilon == least_price(value.epsilon) else value.least_epsilon
        parts["left_out"] = None if value.left_out else False
        return {name: _canonical(part) for name, part in parts.items() if part is not None or name not in _ADDED_LATER}
    if isinstance(value, ColumnFacts):
        return {
            name: _canonical(getattr(value, name)) for name in _FACTS if getattr(value, name) != _LATER_FACTS.get(name, _NEVER)
        }
    if hasattr(value, "__dataclass_fields__"):
        return {name: _canonical(getattr(value, name)) for name, part in value.__dataclass_fields__.items() if part.compare}
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_canonical(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Fraction):
        return {"number": str(value)}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else {"text": str(value)}
