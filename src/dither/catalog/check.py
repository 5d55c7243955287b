"""Compares a catalog with the schemas of its sources: names, kinds, references. Reads no row.

`read_schema` is engines.registry.read_schema, passed in so that this package knows no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path as FilePath

from dither.catalog.file import Problem, file_text, parts, problems
from dither.catalog.reading import CELLS, EXCEL
from dither.catalog.rules import KINDS, Fault, column_faults, listed
from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.errors import CatalogError
from dither.text import did_you_mean, folded

Schema = Mapping[str, str]  # column -> kind, or UNSUPPORTED
ReadSchema = Callable[..., Schema]  # of a source, and of how it is read
UNSUPPORTED = "unsupported"
CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")  # all columns are text: declared bounds or values give the kind

# The kinds that a stored kind can be read as. A value that does not cast is NULL.
READ_AS: dict[str, tuple[str, ...]] = {
    "text": ("text", "int", "real", "bool", "date", "timestamp"),
    "int": ("int", "real"),
    "real": ("real", "int"),
    "bool": ("bool", "int"),
    "date": ("date", "timestamp"),
    "timestamp": ("timestamp", "date"),
}


def check(catalog: str | FilePath | Catalog, read_schema: ReadSchema) -> list[Problem]:
    """Returns every problem of a catalog (a file or a value) as (line or None, what, fix)."""
    if isinstance(catalog, Catalog):
        tables, lines, declared = catalog.tables, {}, []
    else:
        try:
            read = parts(file_text(FilePath(catalog)), base=FilePath(catalog).parent)
        except CatalogError as error:
            return list(error.problems)
        tables, lines, declared = dict(read.tables), dict(read.lines), list(read.problems)
    schemas, faults = read_schemas(tables, read_schema)
    faults += schema_faults(tables, schemas)
    unique = {**dict.fromkeys(declared), **dict.fromkeys(problems(faults, lines))}
    return sorted(unique, key=lambda problem: problem[0] or 0)


def show_problems(problems: list[Problem], name: str = "The catalog") -> str:
    """Shows the problems, or that there are none.

    >>> show_problems([])
    'The catalog is valid: every table, column and bound is as declared.'
    """
    if not problems:
        return f"{name} is valid: every table, column and bound is as declared."
    return str(CatalogError(problems, name=name))


def read_schemas(tables: Mapping[str, Table], read_schema: ReadSchema) -> tuple[dict[str, Schema], list[Fault]]:
    """Returns the schemas that can be read, and a fault for each source that cannot."""
    schemas: dict[str, Schema] = {}
    faults: list[Fault] = []
    for name, table in tables.items():
        try:
            schemas[name] = read_schema(table.source, table.read)
        except CatalogError as error:
            faults += [Fault(("tables", name, "source"), f"{name}: {what}", fix) for _, what, fix in error.problems]
    return schemas, faults


def schema_faults(tables: Mapping[str, Table], schemas: Mapping[str, Schema]) -> list[Fault]:
    """Returns where the declaration and the schemas disagree. Skips tables without a schema: `read_schemas` reports them."""
    faults: list[Fault] = []
    for name, schema in schemas.items():
        table, path = tables[name], ("tables", name)
        faults += _same_but_for_case(name, schema)
        for column, facts in table.columns.items():
            faults += _column((*path, "columns", column), facts, schema)
            faults += _typed_text((*path, "columns", column), facts, schema) if _has_types(table.source) else []
        for part, named in (("unit", table.unit.column if table.unit else None), ("key", table.key)):
            faults += _identifying((*path, part), table, named, schema) if named is not None else []
        faults += _reference(name, tables, schemas)
        faults += _graph(name, tables, schemas)
    return faults


def complete(catalog: Catalog, schemas: Mapping[str, Schema]) -> Catalog:
    """Fills in the kind of every usable column.

    Usable columns: the declared ones, the unit, the key, and those that other tables refer to; in a public table, all.
    """
    usable: dict[str, list[str]] = {name: [] for name in catalog.tables}
    for name, table in catalog.tables.items():
        usable[name] += [column for column in (table.unit and table.unit.column, table.key) if column]
        usable[name] += [column for column, kind in schemas[name].items() if table.public and kind != UNSUPPORTED]
        if table.unit and table.unit.references:
            usable[table.unit.references[0]].append(table.unit.references[1])
        if table.edges is not None and table.edges.listing is not None:
            usable[table.edges.listing[0]].append(table.edges.listing[1])
    tables = {}
    for name, table in catalog.tables.items():
        declared = {**{column: ColumnFacts() for column in usable[name]}, **_end_facts(table), **table.columns}
        known = {column: replace(facts, kind=kind_read(facts, schemas[name][column])) for column, facts in declared.items()}
        tables[name] = replace(table, columns=known)
    return replace(catalog, tables=tables)


def kind_read(facts: ColumnFacts, stored: str) -> str:
    """Returns the kind a column is read as: the declared one, `real` for text with bounds, else the stored one."""
    if facts.kind is not None:
        return facts.kind
    return "real" if stored == "text" and facts.low is not None else stored


def _column(path: tuple[str, ...], facts: ColumnFacts, schema: Schema) -> Iterator[Fault]:
    name, column = f"{path[1]}.{path[3]}", path[3]
    if column not in schema:
        yield _missing(path, path[1], column, schema)
        return
    stored = schema[column]
    if stored == UNSUPPORTED:
        what = f"{name} is of a type that questions cannot use."
        yield Fault(path, what, "leave it out, or store it as a number, text, bool, date or timestamp.")
        return
    kind = kind_read(facts, stored)
    if kind not in KINDS:
        return  # rules.py reports it
    if kind not in READ_AS[stored]:
        what = f"{name} is declared as {kind} and stored as {stored}."
        quotes = " Dates are written without quotes." if stored in ("date", "timestamp") and facts.values else ""
        yield Fault(path, what, f"declare it as {' or '.join(READ_AS[stored])}, or store it as {kind}.{quotes}")
    elif kind in ("date", "timestamp") and facts.kind is None and facts.low is not None:
        yield Fault((*path, "between"), f"{name} holds dates.", "write dates: between = [1900-01-01, 2030-12-31].")
    else:
        yield from _settings(path, facts, stored)
        yield from column_faults(path, replace(facts, kind=kind))


def _settings(path: tuple[str, ...], facts: ColumnFacts, stored: str) -> Iterator[Fault]:
    """Refuses settings for text where the source stores something else."""
    for part in CELLS:
        if stored != "text" and getattr(facts.cells, part) is not None:
            what = f"{path[1]}.{path[3]} is stored as {stored}, and {part} is for columns that are stored as text."
            yield Fault((*path, part), what, f"leave {part} out.")


def is_csv(source: object) -> bool:
    """Returns whether the ending of a source says CSV or Excel: files in which every column is text."""
    return isinstance(source, (str, PathLike)) and str(source).partition("#")[0].lower().endswith((*CSV, *EXCEL))


def _has_types(source: object) -> bool:
    """Returns whether a source stores types: a path or address other than CSV. A frame may be a CSV read as text."""
    return isinstance(source, (str, PathLike)) and not is_csv(source)


def _typed_text(path: tuple[str, ...], facts: ColumnFacts, schema: Schema) -> Iterator[Fault]:
    """Refuses numbers or dates declared for stored text: likely a mistake, which would make every value NULL."""
    if schema.get(path[3]) != "text" or not facts.implied or (facts.low is None and facts.values is None):
        return
    kind = kind_read(facts, "text")
    if kind == "text":
        return
    part = "values" if facts.values is not None else "between"
    first = next((value for value in facts.values or () if value is not None), None)
    text = f'write text, as in values = ["{first}"]' if part == "values" else "declare values = [...] instead"
    kinds = f'kind = "{kind}"' if kind != "real" else 'kind = "int" or kind = "real"'
    what = f"{path[1]}.{path[3]} is stored as text, and its {part} are not: what does not read as {kind} would be NULL."
    what = what.replace("between are", "bounds are")
    yield Fault((*path, part), what, f"{text}; or say {kinds} as well, if all of that text is meant so.")


def _identifying(path: tuple[str, ...], table: Table, column: str, schema: Schema) -> Iterator[Fault]:
    """Refuses a unit or key column that is missing, or whose kind has no exact equality."""
    if column not in schema:
        yield _missing(path, path[1], column, schema)
        return
    kind = kind_read(table.columns.get(column, ColumnFacts()), schema[column])
    if kind in ("real", UNSUPPORTED):
        what = f"{path[1]}.{column} cannot tell people apart: it is {'a decimal number' if kind == 'real' else 'unsupported'}."
        fix = f'if all are whole, declare {column} = {{ kind = "int" }} under its columns; rows with other values are left out.'
        yield Fault(path, what, fix if kind == "real" else f"name another {path[-1]}.")


def _reference(name: str, tables: Mapping[str, Table], schemas: Mapping[str, Schema]) -> Iterator[Fault]:
    unit = tables[name].unit
    if unit is None or unit.references is None or unit.references[0] not in schemas:
        return
    parent, column = unit.references
    path = ("tables", name, "unit")
    if column not in schemas[parent]:
        yield _missing(path, parent, column, schemas[parent])
        return
    yield from _identifying(("tables", parent, "columns", column), tables[parent], column, schemas[parent])
    if unit.column in schemas[name]:
        mine = kind_read(tables[name].columns.get(unit.column, ColumnFacts()), schemas[name][unit.column])
        theirs = kind_read(tables[parent].columns.get(column, ColumnFacts()), schemas[parent][column])
        if mine != theirs:
            what = f"{name}.{unit.column} is {mine} and {parent}.{column} is {theirs}, so no row would find its person."
            yield Fault(path, what, _one_kind((name, unit.column, mine), (parent, column, theirs), schemas))


def _end_facts(table: Table) -> dict[str, ColumnFacts]:
    """Returns the columns of both ends of an edge. They are read in the kind of the nodes if these are listed as labels."""
    if table.edges is None:
        return {}
    nodes = table.edges.nodes
    kind = (nodes.kind or "int") if isinstance(nodes, ColumnFacts) else None
    return {end: ColumnFacts(kind) for end in table.edges.ends}


def _graph(name: str, tables: Mapping[str, Table], schemas: Mapping[str, Schema]) -> Iterator[Fault]:
    """Refuses ends of edges that are missing, cannot be labels, or are of another kind than the nodes."""
    edges, schema, path = tables[name].edges, schemas[name], ("tables", name, "edge")
    if edges is None:
        return
    listing, wanted = edges.listing, None
    if listing is not None:
        parent, column = listing
        if parent not in schemas or column not in schemas[parent]:
            faults = [_missing(("tables", name, "nodes"), parent, column, schemas[parent])] if parent in schemas else []
            yield from faults
            return
        wanted = kind_read(tables[parent].columns.get(column, ColumnFacts()), schemas[parent][column])
        if wanted not in ("int", "text"):
            what = f"{parent}.{column} is {wanted}, and nodes are whole numbers or texts."
            yield Fault(("tables", name, "nodes"), what, "name another column, or declare its kind.")
            return
    for end, implied in _end_facts(tables[name]).items():
        if end not in schema:
            yield _missing(path, name, end, schema)
            continue
        kind, asked = kind_read(tables[name].columns.get(end, implied), schema[end]), wanted or implied.kind or ""
        if kind != asked or kind not in READ_AS.get(schema[end], ()):
            fix = f'write {end} = {{ kind = "{asked}" }} under [tables.{name}.columns].'
            fix = fix if asked in READ_AS.get(schema[end], ()) else f"store {name}.{end} as {asked}."
            yield Fault(path, f"{name}.{end} is {kind} and the nodes are {asked}, so no edge would find its nodes.", fix)


def _one_kind(mine: tuple[str, str, str], theirs: tuple[str, str, str], schemas: Mapping[str, Schema]) -> str:
    """Returns the fix that gives both ends of a reference one kind."""
    for (table, column, _), (_, _, kind) in ((mine, theirs), (theirs, mine)):
        if kind in READ_AS.get(schemas[table][column], ()):
            return f'write {column} = {{ kind = "{kind}" }} under [tables.{table}.columns].'
    return f"store {mine[0]}.{mine[1]} as {theirs[2]}, as {theirs[0]}.{theirs[1]} is."


def _missing(path: tuple[str, ...], table: str, column: str, schema: Schema) -> Fault:
    near = did_you_mean(column, schema)
    if column not in schema and any(name.strip() == column.strip() for name in schema):
        near += f"Write trim = true under [tables.{table}.read] to remove blanks around names and cells. "
    return Fault(path, f"{table} has no column {column}.", f"{near}Its columns are: {listed(schema)}.")


def _same_but_for_case(table: str, schema: Schema) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for column in schema:
        other = first.setdefault(folded(column), column)
        if other != column:
            what = f"{table} has two columns that differ only in case: {other} and {column}."
            yield Fault(("tables", table, "source"), what, "SQL reads both as one name: rename one in the source.")
