"""Drafts a catalog from the schemas of sources, and from which key columns have no value twice.

The draft is valid and errs on the side of privacy: no bounds, no values, nothing public. Its comments say what the curator must
fill in, from public knowledge and never from the data. References between tables are proposed in comments:

    the unit's column in two tables      refer to the table that looks like the list of people
    columns of one name                  InvoiceLine.InvoiceId -> Invoice.InvoiceId
    names that differ in a prefix        orders.o_custkey -> customer.c_custkey
    a name and the table's own id        visits.person_id -> people.id

A table can refer only to one whose owner is known, and only to a column without repeated values that has the referring ones:
`Keys` says so from the data, for the curator who drafts. Without it (data that cannot be read) names and kinds alone decide.
A wrong reference is refused when the catalog is opened.

`Found` says how a CSV file is written. Without its settings for the whole file it could not be read, so they are declared;
those of columns are proposed in comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from dither.catalog.check import UNSUPPORTED, ReadSchema, Schema, is_csv
from dither.catalog.file import DELTA, SPARK
from dither.catalog.reading import Read, read_source
from dither.catalog.rules import listed
from dither.catalog.text import key, quoted
from dither.errors import CatalogError, Fix, Shell
from dither.text import did_you_mean

_KEY = re.compile(r"(^|_)(id|key|no|nr|num|number|code|uuid|guid)$|(?<=[a-z])(Id|ID|Key|No|Nr|key)$", re.ASCII)
_PREFIX = re.compile(r"^[A-Za-z]{1,3}_(?=.)", re.ASCII)
_ITS_OWN = ("id", "key", "uuid", "guid")  # names of a table's own key that say nothing of the table
_KINDS = ("int", "text")  # kinds that can identify people or rows

End = tuple[str, str]  # a table and a column


class Keys(Protocol):
    """What is known of key columns from the data; for the curator only."""

    def unique(self, end: End) -> bool:
        """Whether no value of the column stands in two rows."""
        ...

    def held(self, child: End, parent: End) -> bool:
        """Whether nearly all values of the child's column are in the parent's."""
        ...


@dataclass(frozen=True)
class Found:
    """How a source is written, as far as its first rows show; for the curator only. `read`: settings without which it cannot be
    read. `columns`: settings under which the cells of a column are read as numbers or dates, one or several to choose from."""

    read: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


# By table: its source, how it is read and the kinds of key columns.
ReadKeys = Callable[[Mapping[str, tuple[str, Read, Schema]]], AbstractContextManager[Keys | None]]
FindSettings = Callable[[str], Found]


def references(schemas: Mapping[str, Schema], unit: str, keys: Keys | None = None) -> dict[str, list[tuple[str, End]]]:
    """Guesses, for each table, which of its columns may lead to its person, and where to."""
    owners = [name for name, schema in schemas.items() if schema.get(unit) in _KINDS]
    if not owners:
        return {}
    guesses: dict[str, list[tuple[str, End]]] = {}
    parents = [name for name in owners if keys is None or keys.unique((name, unit))]
    if parents:
        parent = min(parents, key=lambda name: _rank_as_people(name, schemas[name], unit))  # the first of equals
        alike = (name for name in owners if name != parent and schemas[name][unit] == schemas[parent][unit])
        guesses = {name: [(unit, (parent, unit))] for name in alike if _holds(keys, (name, unit), (parent, unit))}
    known = list(owners)
    while new := {name: pairs for name in schemas if name not in known and (pairs := _keys(name, schemas, unit, known, keys))}:
        guesses |= new
        known += new
    return guesses


def _holds(keys: Keys | None, child: End, parent: End) -> bool:
    return keys is None or (keys.unique(parent) and keys.held(child, parent))


def key_columns(schema: Schema, unit: str) -> dict[str, str]:
    """Returns the columns that may be keys, by name and kind, and their kinds."""
    return {column: kind for column, kind in schema.items() if kind in _KINDS and (column == unit or _is_key(column))}


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


def _keys(
    name: str, schemas: Mapping[str, Schema], unit: str, known: Sequence[str], keys: Keys | None
) -> list[tuple[str, End]]:
    """Returns the columns of a table that may point to a table of known owner, for the curator to choose from.
    Leaves out columns named for the table itself: the key of regions does not point to the people who live there."""
    own = {column for column, kind in schemas[name].items() if column != unit and kind in _KINDS and _is_key(column)}
    own = {column for column in own if not _named_for(name, column)}
    shared = [
        (column, (other, target))
        for column in schemas[name]
        if column in own
        for other in known
        for target in _targets(column, other, schemas[other])
        if schemas[other][target] == schemas[name][column] and _holds(keys, (name, column), (other, target))
    ]
    if keys is None:
        shared = [(column, end) for column, end in shared if end[1] == column or _named_for(end[0], column)]
    named = [(column, end) for column, end in shared if _named_for(end[0], column) or _named_for(end[0], end[1])]
    return named[:1] or shared  # visit_id is the key of visits


def _targets(column: str, table: str, schema: Schema) -> Iterator[str]:
    """Returns the columns of a table that a column of this name may point to, by their names."""
    for target in schema:
        same = target == column or (_is_key(target) and _bare(target) == _bare(column) and _bare(target) not in _ITS_OWN)
        if same or (target.lower() in _ITS_OWN and _named_for(table, column)):
            yield target


def _bare(column: str) -> str:
    """Returns a column's name without a short prefix that all columns of its table share.

    >>> _bare("o_custkey"), _bare("ps_partkey"), _bare("person_id")
    ('custkey', 'partkey', 'person_id')
    """
    return _PREFIX.sub("", column, count=1)


def _is_key(column: str) -> bool:
    return _KEY.search(column) is not None


def _named_for(table: str, column: str) -> bool:
    """Returns whether a column is named for a table.

    >>> _named_for("visits", "visit_id"), _named_for("patients", "patient"), _named_for("visits", "patient")
    (True, True, False)
    >>> _named_for("orders", "o_orderkey"), _named_for("Track", "TrackId"), _named_for("customer", "c_custkey")
    (True, True, False)
    """
    stem = _KEY.sub("", _bare(column)).rstrip("_").lower() or column.lower()
    return table.lower() in (stem, f"{stem}s", f"{stem}es", f"{stem[:-1]}ies" if stem.endswith("y") else stem) or (
        stem == "person" and table.lower() in ("people", "persons")
    )


_HEAD = """\
# A first catalog. Data that is not declared here cannot be used in a question.
# Fill in what the comments ask for, from public knowledge and never by looking at the data; then run: dither check
# A column as {} can be filtered and counted. To add numbers up: { between = [0, 120] }, perhaps with step = 0.01.
# To group by a column: { values = ["north", "south"] }; dates: { between = [1900-01-01, 2030-12-31] }.
# How many rows and groups of one person count is chosen for each question; max_rows and max_groups set it for a table.
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
#   age = { kind = "int", between = [0, 120] }     price = { kind = "real" }     born = { kind = "date" }
# "reads as" says how the first rows of a column are written: write it in place of {} if that holds for every row."""
_KIND_WORDS = {"int": "whole number", "real": "number", "bool": "true or false", "timestamp": "date and time"}


def draft(
    sources: Sequence[str],
    unit: str,
    read_schema: ReadSchema,
    read_keys: ReadKeys | None = None,
    find: FindSettings = lambda _: Found(),
) -> str:
    """Returns the text of a drafted catalog. `unit`: the column that identifies the person, or "row" if each row is one."""
    sources = _paths(sources)
    if not isinstance(unit, str):
        raise CatalogError([(None, f"unit is a {type(unit).__name__}.", 'name a column, or write "row".')])
    written = [find(source) for source in sources]
    reads = [read_source(("read",), each.read)[0] for each in written]
    schemas = _schemas(sources, reads, read_schema)
    columns = {column for schema in schemas for column in schema}
    if unit != "row" and unit not in columns:
        fix = f"{did_you_mean(unit, columns)}The columns are: {listed(columns)}; or write row if every row is its own person."
        raise CatalogError([(None, f"No table has a column {unit}.", fix)])
    names = _names(sources)
    known = dict(zip(names, schemas, strict=True))
    alike = read_alike(known, [name for name, source in zip(names, sources, strict=True) if is_csv(source)])
    places = {
        name: (source, read, key_columns(alike[name], unit)) for name, source, read in zip(names, sources, reads, strict=True)
    }
    with nullcontext() if read_keys is None or unit == "row" else read_keys(places) as keys:
        guesses = references(alike, unit, keys) if unit != "row" else {}
        own = {name: _own_keys(name, places[name][2], keys) for name in names}
    whole = {name: _whole(name, known[name], alike[name], guesses) for name in names}
    return _HEAD + "".join(
        _table(Drafted(name, source, schema, unit, guesses.get(name, []), whole[name], own[name], found))
        for name, source, schema, found in zip(names, sources, schemas, written, strict=True)
    )


@dataclass(frozen=True)
class Drafted:
    """What a table's lines are made from. `whole`: columns that fit a reference only as whole numbers; `keys`: its own keys."""

    name: str
    source: str
    schema: Schema
    unit: str
    parents: Sequence[tuple[str, End]]
    whole: Sequence[str]
    keys: Sequence[str]
    found: Found


def _own_keys(name: str, columns: Schema, keys: Keys | None) -> list[str]:
    """Returns the columns of a table that have no value twice."""
    return [] if keys is None else [column for column in columns if keys.unique((name, column))]


def _whole(name: str, stored: Schema, read: Schema, guesses: Mapping[str, Sequence[tuple[str, End]]]) -> list[str]:
    """Returns the columns of proposed references that fit only if they are read as whole numbers."""
    ends = {
        column
        for child, pairs in guesses.items()
        for mine, (parent, theirs) in pairs
        for table, column in ((child, mine), (parent, theirs))
        if table == name
    }
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


def _schemas(sources: list[str], reads: list[Read], read_schema: ReadSchema) -> list[Schema]:
    """Returns every schema, or refuses with every source that cannot be read."""
    schemas: list[Schema] = []
    problems: list[tuple[int | None, str, str]] = []
    for source, read in zip(sources, reads, strict=True):
        try:
            schemas.append(read_schema(source, read))
        except CatalogError as error:
            problems += error.problems
    if problems:
        raise CatalogError(problems, name="The data")
    return schemas


def _table(drafted: Drafted) -> str:
    unit, schema, whole = drafted.unit, drafted.schema, drafted.whole
    lines = ["", f"[tables.{drafted.name}]", f"source = {quoted(str(drafted.source))}"]
    if unit == "row":
        lines.append('unit = "row"             # every row is its own person: CHECK that nobody has two rows')
    elif unit in schema:
        lines += _unit_lines(drafted)
    else:
        lines += _missing_unit_lines(drafted)
    if drafted.found.read:
        lines.append(f"[tables.{drafted.name}.read]".ljust(24) + " # how the file is written, as its first rows show: CHECK")
        lines += [f"{name} = {_toml(value)}" for name, value in drafted.found.read.items()]
    lines += [f"[tables.{drafted.name}.columns]", *([_CSV_HEAD] if is_csv(drafted.source) else [])]
    lines += [
        f"# {_number(column)} # needed with that reference: both ends are of one kind" for column in whole if column == unit
    ]
    lines += [
        f"{_number(column)} # a whole number, as where it refers to: CHECK"
        if column in whole
        else _column(column, kind, drafted.found)
        for column, kind in schema.items()
        if column != unit
    ]
    return "\n".join(lines) + "\n"


def _unit_lines(drafted: Drafted) -> list[str]:
    """Returns the unit lines of a table that has the unit's column."""
    line = f"unit = {quoted(drafted.unit)}".ljust(24)
    hint = [f"{line} # who is protected"]
    if drafted.parents:
        parent = drafted.parents[0][1][0]
        hint = [f"{line} # who is protected. If it points to a row of {parent}, write this line instead:"]
        hint += [f"# unit = {_reference(*guess)}" for guess in drafted.parents]
    if drafted.unit in drafted.keys:
        key_line = f"key = {quoted(drafted.unit)}".ljust(24)
        return [*hint, f"{key_line} # no person has two rows: checked whenever it is opened", "max_rows = 1"]
    return hint


def _missing_unit_lines(drafted: Drafted) -> list[str]:
    """Returns the comments for a table without the unit's column, which stays closed until the curator declares one."""
    hint = [f"# It has no column {key(drafted.unit)}. SAY who is protected, one of:"]
    if drafted.parents:
        hint += [f"# unit = {_reference(*guess)}   # if it points to a row of {guess[1][0]}" for guess in drafted.parents]
    else:
        hint += ['# unit = { column = "COLUMN", references = "TABLE.COLUMN" }']
    named = [column for column in drafted.keys if _named_for(drafted.name, column)] or list(drafted.keys)
    lookup = [] if drafted.parents else [f"key = {quoted(column)}" for column in named[:1]]
    return [
        *hint,
        "# public = true           # nobody's data: its rows may be shown to anyone",
        *(f"# {line.ljust(24)} # with it: private tables can be joined to it on this column" for line in lookup),
    ]


def _reference(column: str, parent: End) -> str:
    return f"{{ column = {quoted(column)}, references = {quoted('.'.join(parent))} }}"


def _number(column: str) -> str:
    return f'{key(column)} = {{ kind = "int" }}'.ljust(24)


def _toml(value: Any) -> str:
    """Returns a setting as TOML.

    >>> _toml(True), _toml(2), _toml(["NA", "-"]), _toml({"kind": "real", "decimal": ","})
    ('true', '2', '["NA", "-"]', '{ kind = "real", decimal = "," }')
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_toml(each)}' for name, each in value.items())} }}"
    if isinstance(value, str):
        return quoted(value)
    return f"[{', '.join(map(quoted, value))}]" if isinstance(value, list) else str(value).lower()


def _column(column: str, kind: str, found: Found) -> str:
    if found.columns.get(column):
        return f"{key(column)} = {{}}".ljust(24) + f" # reads as {' or '.join(map(_toml, found.columns[column]))}"
    if kind == UNSUPPORTED:
        return f"# {key(column)} is of a type that questions cannot use"
    if kind == "text":
        return f"{key(column)} = {{}}"
    return f"{key(column)} = {{}}".ljust(24) + f" # {_KIND_WORDS.get(kind, kind)}"


def _place_of(source: str) -> tuple[str, str]:
    """Returns the file of a source and the table in it, as far as there are any.

    >>> _place_of("spark:lake.visits#local[2]"), _place_of("delta:/lake/visits@12"), _place_of("shop.db#orders")
    (('', 'lake.visits'), ('/lake/visits', ''), ('shop.db', 'orders'))
    """
    if source.startswith(DELTA):
        return source.removeprefix(DELTA).rpartition("@")[0], ""
    if source.startswith(SPARK):
        name = source.removeprefix(SPARK).partition("#")[0]
        return (name, "") if "/" in name else ("", name)
    file, _, table = source.partition("#")
    return file, next(iter(parse_qs(urlsplit(file).query).get("table", [])), "") if "://" in file else table


def _names(sources: Sequence[str]) -> list[str]:
    """Returns a distinct table name for each source: its file name without the ending, as a word."""
    names: list[str] = []
    for source in sources:
        file, table = _place_of(str(source))
        stem = re.split(r"[\\/]", file.rstrip("/\\"))[-1].split(".")[0]
        word = re.sub(r"[^A-Za-z0-9_]+", "_", table.split(".")[-1] or stem).strip("_") or "data"
        word = word if not word[0].isdigit() else f"t_{word}"
        taken = {name.lower() for name in names}
        number = next(n for n in range(1, len(names) + 2) if (word if n == 1 else f"{word}_{n}").lower() not in taken)
        names.append(word if number == 1 else f"{word}_{number}")
    return names
