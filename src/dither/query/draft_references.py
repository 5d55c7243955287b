"""Which table a drafted one may point to, guessed from names and kinds of columns alone, for the curator to confirm.

    the unit's column in two tables      the one that looks like the list of people is pointed to
    a key-like column in two tables      the one whose rows belong to somebody, as far as is known, is pointed to

Nothing is looked at to find out, so it stays a comment in the draft: a reference that is wrong is found when the catalog is
opened, because what is pointed to has to be unique.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from dither.query.check import Schema

_KEY = re.compile(r"(^|_)(id|key|no|nr|num|number|code|uuid|guid)$|[a-z](Id|ID|Key|No|Nr)$", re.ASCII)
_KINDS = ("int", "text")  # what can tell people, or rows, apart


def references(schemas: Mapping[str, Schema], unit: str) -> dict[str, list[tuple[str, str]]]:
    """For each table the (column, parent table) that may lead to its person; nothing where there is nothing to guess."""
    owners = [name for name, schema in schemas.items() if schema.get(unit) in _KINDS]
    if not owners:
        return {}
    parent = min(owners, key=lambda name: _strangeness(name, schemas[name], unit))  # the first of equals
    found = {name: [(unit, parent)] for name in owners if name != parent and schemas[name][unit] == schemas[parent][unit]}
    known = list(owners)
    while new := {name: pairs for name in schemas if name not in known and (pairs := _keys(name, schemas, unit, known))}:
        found |= new
        known += new
    return found


def read_alike(schemas: Mapping[str, Schema], untyped: Collection[str]) -> dict[str, Schema]:
    """The schemas as if every column of an untyped table (a CSV: all is text) that has a namesake of whole numbers elsewhere
    were read as whole numbers, too: what a reference between the two has to declare.

    >>> read_alike({"people": {"id": "int"}, "visits": {"id": "text", "ward": "text"}}, ["visits"])["visits"]
    {'id': 'int', 'ward': 'text'}
    """
    whole = {column for name, schema in schemas.items() for column, kind in schema.items() if kind == "int"}
    return {
        name: {column: "int" if column in whole else kind for column, kind in schema.items()} if name in untyped else schema
        for name, schema in schemas.items()
    }


def _strangeness(name: str, schema: Schema, unit: str) -> tuple[bool, bool, int]:
    """How little a table looks like the list of those whom the unit's column names."""
    columns = list(schema)
    return not _named_for(name, unit), columns[0] != unit, sum(map(_is_key, columns))


def _keys(name: str, schemas: Mapping[str, Schema], unit: str, known: list[str]) -> list[tuple[str, str]]:
    """Key-like columns that a table shares with one whose rows belong to somebody: all of them, for the curator to choose from.
    Not what is named for the table itself: the key of regions does not point to whoever lives there."""
    keys = {column: kind for column, kind in schemas[name].items() if column != unit and kind in _KINDS and _is_key(column)}
    own = {column for column in keys if _named_for(name, column)}
    shared = [
        (column, other)
        for column, kind in keys.items()
        for other in known
        if column not in own and schemas[other].get(column) == kind
    ]
    for column, other in shared:
        if _named_for(other, column):  # visit_id is the key of visits, wherever else it stands
            return [(column, other)]
    return shared


def _is_key(column: str) -> bool:
    return _KEY.search(column) is not None


def _named_for(table: str, column: str) -> bool:
    """Whether a column's name says that it is this table's.

    >>> _named_for("visits", "visit_id"), _named_for("patients", "patient"), _named_for("visits", "patient")
    (True, True, False)
    """
    stem = _KEY.sub("", column).rstrip("_").lower() or column.lower()
    return table.lower() in (stem, f"{stem}s", f"{stem}es", f"{stem[:-1]}ies" if stem.endswith("y") else stem) or (
        stem == "person" and table.lower() in ("people", "persons")
    )
