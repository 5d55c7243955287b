"""Drafts a catalog from the schemas of sources; reads no value.

The draft is valid and errs on the side of privacy: one row and one group per person, no bounds. Its comments say what
the curator must fill in, from public knowledge and never from the data. References between tables are guessed from the
names and kinds of columns, and proposed in comments:

    the unit's column in two tables      refer to the table that looks like the list of people
    a key-like column in two tables      refer to the table whose rows are known to belong to a person

A wrong reference is refused when the catalog is opened, because the referenced column must be unique.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from os import PathLike

from dither.catalog.check import UNSUPPORTED, ReadSchema, Schema, is_csv
from dither.catalog.rules import listed
from dither.catalog.text import key, quoted
from dither.errors import CatalogError, Fix, Shell
from dither.text import did_you_mean

_KEY = re.compile(r"(^|_)(id|key|no|nr|num|number|code|uuid|guid)$|[a-z](Id|ID|Key|No|Nr)$", re.ASCII)
_KINDS = ("int", "text")  # kinds that can identify people or rows


def references(schemas: Mapping[str, Schema], unit: str) -> dict[str, list[tuple[str, str]]]:
    """Guesses, for each table, the (column, parent table) pairs that may lead to its person."""
    owners = [name for name, schema in schemas.items() if schema.get(unit) in _KINDS]
    if not owners:
        return {}
    parent = min(owners, key=lambda name: _rank_as_people(name, schemas[name], unit))  # the first of equals
    guesses = {name: [(unit, parent)] for name in owners if name != parent and schemas[name][unit] == schemas[parent][unit]}
    known = list(owners)
    while new := {name: pairs for name in schemas if name not in known and (pairs := _keys(name, schemas, unit, known))}:
        guesses |= new
        known += new
    return guesses


def read_alike(schemas: Mapping[str, Schema], untyped: Collection[str]) -> dict[str, Schema]:
    """Reads a text column of an untyped table (CSV) as int if another table has an int column of that name:
    a reference between the two must declare it so.

    >>> read_alike({"people": {"id": "int"}, "visits": {"id": "text", "ward": "text"}}, ["visits"])["visits"]
    {'id': 'int', 'ward': 'text'}
    """
    whole = {column for name, schema in schemas.items() for column, kind in schema.items() if kind == "int"}
    return {
        name: {column: "int" if column in whole else kind for column, kind in schema.items()} if name in untyped else schema
        for name, schema in schemas.items()
    }


def _rank_as_people(name: str, schema: Schema, unit: str) -> tuple[bool, bool, int]:
    """Ranks a table by how much it looks like the list of people; the lowest rank looks most like it."""
    columns = list(schema)
    return not _named_for(name, unit), columns[0] != unit, sum(map(_is_key, columns))


def _keys(name: str, schemas: Mapping[str, Schema], unit: str, known: list[str]) -> list[tuple[str, str]]:
    """Returns the key-like columns that a table shares with a table of known owner, for the curator to choose from.
    Leaves out columns named for the table itself: the key of regions does not point to the people who live there."""
    keys = {column: kind for column, kind in schemas[name].items() if column != unit and kind in _KINDS and _is_key(column)}
    own = {column for column in keys if _named_for(name, column)}
    shared = [
        (column, other)
        for column, kind in keys.items()
        for other in known
        if column not in own and schemas[other].get(column) == kind
    ]
    for column, other in shared:
        if _named_for(other, column):  # visit_id is the key of visits
            return [(column, other)]
    return shared


def _is_key(column: str) -> bool:
    return _KEY.search(column) is not None


def _named_for(table: str, column: str) -> bool:
    """Returns whether a column is named for a table.

    >>> _named_for("visits", "visit_id"), _named_for("patients", "patient"), _named_for("visits", "patient")
    (True, True, False)
    """
    stem = _KEY.sub("", column).rstrip("_").lower() or column.lower()
    return table.lower() in (stem, f"{stem}s", f"{stem}es", f"{stem[:-1]}ies" if stem.endswith("y") else stem) or (
        stem == "person" and table.lower() in ("people", "persons")
    )


_HEAD = """\
# A first catalog, made from column names and types only. Data that is not declared here cannot be used in a question.
# Fill in what the comments ask for, from public knowledge and never by looking at the data; then run: dither check
# snapshot = "2026-11"     # a label for this version of the data: change it when the data changes

[budget]
epsilon = 1.0            # the total for all questions of all analysts, never renewed: CHOOSE it before the first question
# delta = 1e-6           # allows unknown group keys and Gaussian noise: well below 1 / number of people
# per_analyst = 0.25     # a quota for each analyst, for fairness
# per_query = 0.1        # the most that one question may cost
# least_epsilon = 1e-4   # the least that one question may cost: a ten-thousandth of epsilon if left out
# analysts = ["ana"]     # who may ask; leave it out to let anyone ask
"""

_CSV_HEAD = """\
# A CSV column is text until you declare its kind, as below. Bounds without kind = "int" mean numbers with fractions,
# which cannot be grouped by:
#   age = { kind = "int", between = [0, 120] }     price = { kind = "real" }     born = { kind = "date" }"""
_HINTS = {
    "int": "whole number. To add it up: { between = [low, high] }; to group by it: { values = [1, 2, 3] }",
    "real": "number. To add it up: { between = [low, high] }, perhaps with a step = 0.01",
    "text": 'text. To group by it: { values = ["a", "b"] }; if it holds numbers or dates: { kind = "int" }, "real" or "date"',
    "bool": "true or false",
    "date": "date. Perhaps { between = [1900-01-01, 2030-12-31] }",
    "timestamp": "date and time",
}


def draft(sources: Sequence[str], unit: str, read_schema: ReadSchema) -> str:
    """Returns the text of a drafted catalog. `unit`: the column that identifies the person, or "row" if each row is one."""
    sources = _paths(sources)
    if not isinstance(unit, str):
        raise CatalogError([(None, f"unit is a {type(unit).__name__}.", 'name a column, or write "row".')])
    schemas = _schemas(sources, read_schema)
    columns = {column for schema in schemas for column in schema}
    if unit != "row" and unit not in columns:
        fix = f"{did_you_mean(unit, columns)}The columns are: {listed(columns)}; or write row if every row is its own person."
        raise CatalogError([(None, f"No table has a column {unit}.", fix)])
    names = _names(sources)
    known = dict(zip(names, schemas, strict=True))
    alike = read_alike(known, [name for name, source in zip(names, sources, strict=True) if is_csv(source)])
    guesses = references(alike, unit) if unit != "row" else {}
    whole = {name: _whole(name, known[name], alike[name], guesses) for name in names}
    return _HEAD + "".join(
        _table(name, source, schema, unit, guesses.get(name, []), whole[name])
        for name, source, schema in zip(names, sources, schemas, strict=True)
    )


def _whole(name: str, stored: Schema, read: Schema, guesses: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """Returns the columns of proposed references that fit only if they are read as whole numbers."""
    ends = {column for child, pairs in guesses.items() for column, parent in pairs if name in (child, parent)}
    return [column for column in stored if column in ends and stored[column] != read[column]]


def _paths(sources: object) -> list[str]:
    """Returns the paths of sources, given as a list or as one path."""
    given = [sources] if isinstance(sources, (str, PathLike)) else sources
    paths = [str(source) for source in given] if isinstance(given, (list, tuple)) and all(map(_is_path, given)) else []
    if not paths:
        raise CatalogError(
            [
                (
                    None,
                    "No data is named.",
                    Fix("name a file, as in: {init}.", init=Shell("dither init people.parquet --unit person_id")),
                )
            ]
        )
    return paths


def _is_path(source: object) -> bool:
    return isinstance(source, (str, PathLike))


def _schemas(sources: list[str], read_schema: ReadSchema) -> list[Schema]:
    """Returns every schema, or refuses with every source that cannot be read."""
    schemas: list[Schema] = []
    problems: list[tuple[int | None, str, str]] = []
    for source in sources:
        try:
            schemas.append(read_schema(source))
        except CatalogError as error:
            problems += error.problems
    if problems:
        raise CatalogError(problems, name="The data")
    return schemas


def _table(name: str, source: str, schema: Schema, unit: str, parents: Sequence[tuple[str, str]], whole: Sequence[str]) -> str:
    lines = ["", f"[tables.{name}]", f"source = {quoted(str(source))}"]
    if unit == "row":
        lines.append('unit = "row"             # every row is its own person: CHECK that nobody has two rows')
    elif unit in schema:
        lines += _unit_lines(unit, parents)
    else:
        lines += _missing_unit_lines(unit, parents)
    lines += [f"[tables.{name}.columns]", *([_CSV_HEAD] if is_csv(source) else [])]
    lines += [
        f"# {_number(column)} # needed with that reference: both ends are of one kind" for column in whole if column == unit
    ]
    lines += [
        f"{_number(column)} # a whole number, as where it refers to: CHECK" if column in whole else _column(column, kind)
        for column, kind in schema.items()
        if column != unit
    ]
    return "\n".join(lines) + "\n"


def _unit_lines(unit: str, parents: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the unit lines of a table that has the unit's column; `parents` are the guessed references."""
    line = f"unit = {quoted(unit)}".ljust(24)
    if parents:
        hint = [f"{line} # who is protected. If it points to a row of {parents[0][1]}, write this line instead:"]
        hint += [f"# unit = {_reference(*parent)}" for parent in parents]
    else:
        hint = [f"{line} # who is protected. If it points to a row of another table, write:"]
        hint += [f'#                        {{ column = {quoted(unit)}, references = "TABLE.COLUMN" }}']
    return [
        *hint,
        "max_rows = 1             # CHECK that each person has one row; if not, leave it out: each question then chooses",
    ]


def _missing_unit_lines(unit: str, parents: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the comments for a table without the unit's column, which stays closed until the curator declares one."""
    hint = [f"# It has no column {key(unit)}. SAY who is protected, one of:"]
    if parents:
        hint += [f"# unit = {_reference(*parent)}   # if it points to a row of {parent[1]}" for parent in parents]
        hint += ["# max_rows = 1             # with it, if each person has one row; otherwise each question chooses bounds"]
    else:
        hint += ['# unit = { column = "COLUMN", references = "TABLE.COLUMN" }   # and max_rows = 1 if each person has one row']
    return [*hint, "# public = true           # nobody's data: its rows may be shown to anyone"]


def _reference(column: str, table: str) -> str:
    return f"{{ column = {quoted(column)}, references = {quoted(f'{table}.{column}')} }}"


def _number(column: str) -> str:
    return f'{key(column)} = {{ kind = "int" }}'.ljust(24)


def _column(column: str, kind: str) -> str:
    if kind == UNSUPPORTED:
        return f"# {key(column)} is of a type that questions cannot use"
    return f"{key(column)} = {{}}".ljust(24) + f" # {_HINTS[kind]}"


def _names(sources: Sequence[str]) -> list[str]:
    """Returns a distinct table name for each source: its file name without the ending, as a word."""
    names: list[str] = []
    for source in sources:
        file, _, table = str(source).partition("#")
        stem = re.split(r"[\\/]", file.rstrip("/\\"))[-1].split(".")[0]
        word = re.sub(r"[^A-Za-z0-9_]+", "_", table.split(".")[-1] or stem).strip("_") or "data"
        word = word if not word[0].isdigit() else f"t_{word}"
        taken = {name.lower() for name in names}
        number = next(n for n in range(1, len(names) + 2) if (word if n == 1 else f"{word}_{n}").lower() not in taken)
        names.append(word if number == 1 else f"{word}_{number}")
    return names
