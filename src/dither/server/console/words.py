"""The catalog in words: who is protected, what is declared of each column and what one can do with it, and made-up rows.

Everything here is made of `describe`, the public form of the catalog. A sample row is invented from declared values and bounds:
it shows what a row looks like, and is nobody's.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.exact.numbers import show

SAMPLES = 4
_SHOWN = 12  # values of a column
FUNCTIONS = (
    ("COUNT(*)", "rows"),
    ("COUNT(DISTINCT ", "distinct values"),
    ("COUNT_UNITS()", "people"),
    ("SUM(", "needs bounds"),
    ("AVG(", "needs bounds"),
    ("MEDIAN(", "needs bounds"),
    ("QUANTILE(", "x, 0.9"),
    ("MIN(", "an extreme quantile"),
    ("MAX(", "an extreme quantile"),
    ("STDDEV(", "needs bounds"),
    ("VARIANCE(", "needs bounds"),
    ("CLAMP(", "x, low, high"),
    ("BUCKET(", "x, width"),
)
WORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "HAVING",
        "ORDER BY",
        "LIMIT",
        "JOIN",
        "LEFT JOIN",
        "USING",
        "ON",
        "AND",
        "OR",
        "NOT",
    ),
    *(
        "AS",
        "IN",
        "IS NULL",
        "BETWEEN",
        "LIKE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "DISTINCT",
        "FILTER",
        "UNION ALL",
        "WITH",
    ),
)


@dataclass(frozen=True)
class ColumnWords:
    """A column as people read it: its kind, what is declared, and what one can do with it."""

    name: str
    kind: str
    declared: str
    use: str
    mark: str = ""  # "unit", "group", "sum" or "": what it is good for


@dataclass(frozen=True)
class TableWords:
    """A table as people read it. `samples` are made up."""

    name: str
    public: bool
    protects: str
    counts: str
    rows: str
    columns: tuple[ColumnWords, ...]
    samples: tuple[tuple[str, ...], ...]
    example: str


def unbounded(found: Sequence[TableWords]) -> str:
    """Returns the first column to propose bounds for: one that has none, such as people.income."""
    named = [(f"{table.name}.{each.name}", each.mark) for table in found for each in table.columns if each.mark != "unit"]
    return next((name for name, mark in named if not mark), named[0][0] if named else "")


def tables(described: Mapping[str, Any]) -> list[TableWords]:
    """Returns every table of a description in words."""
    found: Mapping[str, Any] = described["tables"]
    return [_table(name, each, found) for name, each in found.items()]


def _table(name: str, table: Mapping[str, Any], every: Mapping[str, Any]) -> TableWords:
    unit = None if table["public"] else unit_column(table)
    names = [*([unit] if unit else []), *table["columns"], *table["undeclared"]]
    columns = tuple(_column(each, table, unit, name) for each in dict.fromkeys(names))
    samples = tuple(
        tuple(_sample(table["columns"].get(each.name), each.name == unit, row, place) for place, each in enumerate(columns))
        for row in range(SAMPLES)
    )
    made = TableWords(name, table["public"], _protects(table, every), _counts(table), _rows(table), columns, samples, "")
    return TableWords(**{**made.__dict__, "example": examples_of(made)[-1]})


def unit_column(table: Mapping[str, Any]) -> str | None:
    unit = table["unit"]
    return unit["column"] if isinstance(unit, Mapping) else None


def _protects(table: Mapping[str, Any], every: Mapping[str, Any]) -> str:
    if table["public"]:
        return "A public table: its rows protect nobody, and its values are no secret."
    if table["edge"] is not None:
        what = "one edge" if table["edge"]["unit"] == "edge" else "one node with all its edges"
        return f"A graph: protected is {what}. It is asked in Python or a shell beside the data, not here."
    if table["unit"] == "row":
        return "Every row is protected: each is one person of its own."
    column, parent = table["unit"]["column"], table["unit"]["references"]
    if parent is None:
        return f"Protected is one {column}, with all their rows here and in other tables."
    return f"Protected is the one that each row's {column} names ({parent[0]}.{parent[1]}), with all their rows."


def _counts(table: Mapping[str, Any]) -> str:
    """Says how much one unit counts."""
    if table["public"] or table["unit"] == "row" or table["edge"] is not None:
        return ""
    rows = "" if table["max_rows"] is None else _many(table["max_rows"], "row") + " in each group"
    groups = "" if table["max_groups"] is None else _many(table["max_groups"], "group")
    parts = [part for part in (rows, f"at most {groups}" if groups else "") if part]
    if not parts:
        return "How many rows of one person count is for each question to say."
    caps = [f"{name} = {most}" for name, most in table["caps"].items() if most is not None]
    own = f"A question may set others, up to {' and '.join(caps)}." if caps else "A question may set others."
    return f"One person counts with at most {' and in '.join(parts)}. {own}"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rows(table: Mapping[str, Any]) -> str:
    if table["rows"]["public"] is not None:
        return f"It is public that there are {table['rows']['public']:,} rows."
    return (
        "" if table["rows"]["at_least"] is None else f"It is public that there are at least {table['rows']['at_least']:,} rows."
    )


# --- columns ----------------------------------------------------------------------------------------------------


def _column(name: str, table: Mapping[str, Any], unit: str | None, of: str) -> ColumnWords:
    facts = table["columns"].get(name)
    if name == unit:
        return ColumnWords(name, (facts or {}).get("kind") or "key", "who is protected", "never shown; joins tables", "unit")
    if facts is None:
        return ColumnWords(name, "", "not declared", "cannot be used until the curator declares it")
    kind = facts["kind"] or ""
    key = ", each value once" if table["key"] == name else ""
    values = facts["values"] if facts["values"] is not None else facts["found"]
    if values is not None:
        listed = ", ".join(_value(value) for value in values[:_SHOWN])
        more = f" and {len(values) - _SHOWN:,} more" if len(values) > _SHOWN else ""
        return ColumnWords(name, kind, f"{listed}{more}{key}", f"group by it: {_many(len(values), 'public group')}", "group")
    if facts["between"] is not None:
        low, high = map(_end, facts["between"])
        step = f", in steps of {show(Fraction(facts['step']))}" if facts["step"] else ""
        use = (
            "group by it in steps" if kind in ("date", "timestamp") else "add it up and average it; values outside are clipped"
        )
        return ColumnWords(name, kind, f"{low} to {high}{step}{key}", use, "sum")
    if table["public"]:
        return ColumnWords(name, kind, f"public{key}", "use it as in any SQL")
    if kind in ("int", "real"):
        use = f"filter by it; to add it up, write CLAMP({name}, low, high) with public bounds"
        return ColumnWords(name, kind, f"no bounds{key}", use)
    return ColumnWords(name, kind, f"no public values{key}", "filter by it")


def _end(text: str) -> str:
    try:
        return show(Fraction(text))
    except ValueError:
        return text


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sample(facts: Mapping[str, Any] | None, is_unit: bool, row: int, place: int) -> str:
    """Invents a cell: from the declared values in turn, or from places between the bounds."""
    if is_unit:
        return str(1001 + row)
    if facts is None or (facts["values"] is None and facts["found"] is None and facts["between"] is None):
        return "…"
    values = facts["values"] if facts["values"] is not None else facts["found"]
    if values is not None:
        return _value(values[(row * (place + 1)) % len(values)]) if values else "…"
    share = Fraction((2 + 3 * row + 5 * place) % 11 + 2, 16)
    return _between(facts, share)


def _between(facts: Mapping[str, Any], share: Fraction) -> str:
    low, high = facts["between"]
    if facts["kind"] in ("date", "timestamp"):
        first, last = datetime.datetime.fromisoformat(low), datetime.datetime.fromisoformat(high)
        moment = first + (last - first) * float(share)
        return moment.date().isoformat() if facts["kind"] == "date" else moment.isoformat(" ", "minutes")
    start, end = Fraction(low), Fraction(high)
    value = start + (end - start) * share
    step = (
        Fraction(facts["step"])
        if facts["step"]
        else Fraction(1 if facts["kind"] == "int" or end - start >= 50 else Fraction(1, 10))
    )
    return show(start + step * int((value - start) / step))


# --- for the editor ---------------------------------------------------------------------------------------------


def examples(found: Sequence[TableWords]) -> list[str]:
    """Returns questions about the first private table that can be answered."""
    private = next((table for table in found if not table.public), None)
    return [] if private is None else examples_of(private)


def examples_of(table: TableWords) -> list[str]:
    """Returns questions about one table: everybody, by groups, and a mean."""
    name = _name(table.name)
    key = next((_name(column.name) for column in table.columns if column.mark == "group"), None)
    number = next((column for column in table.columns if column.mark == "sum" and column.kind in ("int", "real")), None)
    found = [f"SELECT COUNT(*) AS n\nFROM {name}"]
    if key:
        found.append(f"SELECT {key}, COUNT(*) AS n\nFROM {name}\nGROUP BY {key}")
    if number:
        mean = f"AVG({_name(number.name)}) AS mean_{number.name if number.name.isidentifier() else 'value'}"
        found.append(
            f"SELECT {f'{key}, ' if key else ''}COUNT(*) AS n, {mean}\nFROM {name}" + (f"\nGROUP BY {key}" if key else "")
        )
    return found


def _name(name: str) -> str:
    """Returns a name as SQL writes it."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def completions(found: Sequence[TableWords]) -> dict[str, Any]:
    """Returns what the editor completes: columns, tables, functions and words."""
    columns = [
        {"label": _name(column.name), "detail": table.name, "info": f"{column.declared}: {column.use}"}
        for table in found
        for column in table.columns
    ]
    return {
        "columns": columns,
        "tables": [{"label": _name(table.name), "detail": "public table" if table.public else "table"} for table in found],
        "functions": [{"label": label, "detail": detail} for label, detail in FUNCTIONS],
        "words": list(WORDS),
    }
