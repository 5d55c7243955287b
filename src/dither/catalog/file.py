"""Reads a catalog file (TOML) into a Catalog, and reports every problem at once, with its line.

Fail closed: an unknown key is refused, with the nearest known name. Decimals are read as written. Relative sources are
relative to the file. tomllib gives no line numbers, so `lines` finds them in text that tomllib has accepted:

    lines(text)[("tables", "people", "columns", "age", "between")]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from dither.catalog.declare import read_column
from dither.catalog.reading import read_source
from dither.catalog.rules import NEIGHBOURS, Fault, Path, faults, listed
from dither.catalog.values import AtMost, Budget, Catalog, ColumnFacts, Edges, Rows, Table, TableCaps, Unit, amount
from dither.errors import CatalogError, Fix, Python, Shell
from dither.text import did_you_mean

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\r\n#]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")"{0,2}|\'\'\'.*?\'\'\'(?!\')\'{0,2}|"(?:[^"\\]|\\.)*"|\'[^\']*\'',
    re.DOTALL,
)


def lines(text: str) -> dict[Path, int]:
    """Returns the line of every key, table header and list item; items are numbered from "0".

    >>> lines('[a]\\nb = { c = 1,\\n d = [2] }')[("a", "b", "d")]
    3
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """Returns the line of the path, or of its nearest parent in the file."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


class _Scanner:
    """Scans the text once; `at` is the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._line = 1
        self._counted = 0

    def document(self) -> None:
        prefix: Path = ()
        self._skip(_BETWEEN)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                depth = 2 if self.text.startswith("[[", self.at) else 1
                self.at += depth
                prefix = self._key(())
                self.at += depth
            else:
                self._pair(prefix)
            self._skip(_BETWEEN)

    def _pair(self, prefix: Path) -> None:
        path = self._key(prefix)
        self.at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _key(self, prefix: Path) -> Path:
        """Reads a dotted key and records the line of each part."""
        path = prefix
        while True:
            self._skip(_BLANK)
            word = (_STRING if self.text[self.at] in "\"'" else _BARE).match(self.text, self.at)
            if word is None:  # impossible in well-formed text; stop rather than loop
                self.at = len(self.text)
                return path
            path = (*path, tomllib.loads(f"k={word[0]}")["k"] if word[0][0] in "\"'" else word[0])
            self.lines.setdefault(path, self._line_here())
            self.at = word.end()
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return path
            self.at += 1

    def _value(self, path: Path) -> None:
        start = self.text[self.at]
        if start == "{":
            self._inside("}", path)
        elif start == "[":
            self._inside("]", path)
        else:
            self._skip(_STRING if start in "\"'" else _SCALAR)

    def _inside(self, end: str, path: Path) -> None:
        """Reads the pairs of an inline table, or the items of a list."""
        self.at += 1
        self._skip(_BETWEEN)
        item = 0
        while self.at < len(self.text) and self.text[self.at] != end:
            if end == "}":
                self._pair(path)
            else:
                self.lines.setdefault((*path, str(item)), self._line_here())
                self._value((*path, str(item)))
                item += 1
            self._skip(_BETWEEN)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(_BETWEEN)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else len(self.text)

    def _line_here(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line


Problem = tuple[int | None, str, str]

_TOP = ("budget", "privacy", "engine", "tables", "snapshot", "service")
SPARK = "spark:"  # how the name of a table of Spark begins
DELTA = "delta:"  # how a version of a Delta table begins
_BUDGET = ("epsilon", "delta", "per_analyst", "per_query", "least_epsilon")
_EXAMPLE = 'dt.Catalog(tables={"people": dt.Table(...)}, budget=dt.Budget(epsilon=1))'
_DATA = (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".duckdb", ".db", ".ddb", ".json", ".xlsx", ".arrow")
_TABLE = ("source", "unit", "max_rows", "max_groups", "public", "rows", "key", "read", "columns", "caps", "most_rows")
_EDGES = ("edge", "nodes", "at_most")


def to_catalog(catalog: object) -> Catalog:
    """Returns a Catalog as it is, or reads it from a path; refuses anything else."""
    if isinstance(catalog, Catalog):
        return catalog
    if isinstance(catalog, (str, PathLike)):
        return read(FilePath(catalog))
    what = f"A catalog is a Catalog or the path of a catalog file, and this is a {type(catalog).__name__}."
    raise CatalogError([(None, what, Fix("write {it}.", it=Python(_EXAMPLE)))])


def read(path: str | FilePath) -> Catalog:
    """Reads a catalog file."""
    file = FilePath(path)
    return parse(file_text(file), base=file.parent, name=file.name)


def parse(text: str, *, base: FilePath | None = None, name: str = "The catalog") -> Catalog:
    """Reads a catalog from TOML text.

    >>> parse('[budget]\\nepsilon = 0.1\\n[tables.t]\\nsource = "t.csv"\\nunit = "row"').budget.epsilon
    Fraction(1, 10)
    """
    read = parts(text, base=base)
    if read.problems or read.budget is None:
        raise CatalogError(read.problems, name=name)
    return Catalog(read.tables, read.budget, read.neighbours, read.snapshot)


def file_text(path: FilePath) -> str:
    """Returns the text of a catalog file; refuses data files, folders and files it cannot read."""
    if path.name.lower().endswith(_DATA):
        fix = Fix("let `{init}` draft a catalog for it, and open that.", init=Shell(f"dither init {path} --unit COLUMN"))
        raise CatalogError([(None, f"{path} is a data file by its ending, not a catalog.", fix)])
    if path.is_dir():
        raise CatalogError([(None, f"{path} is a folder, not a catalog file.", "name the catalog file in it.")])
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        fix = Fix("write one, or let `{init}` draft it.", init=Shell("dither init DATA --unit COLUMN"))
        raise CatalogError([(None, f"There is no catalog file {path}.", fix)]) from None
    except UnicodeDecodeError:
        raise CatalogError([(None, f"{path} is not a text file in UTF-8.", "save it as UTF-8.")]) from None
    except (OSError, ValueError):  # ValueError: a zero character in the path
        raise CatalogError([(None, f"{path} cannot be read.", "look at its permissions.")]) from None


@dataclass(frozen=True)
class Parts:
    """The readable parts of a catalog, and all its problems."""

    tables: Mapping[str, Table]
    budget: Budget | None
    neighbours: str
    snapshot: str
    problems: tuple[Problem, ...]
    lines: Mapping[Path, int]


def parts(text: str, *, base: FilePath | None = None) -> Parts:
    """Reads as much as it can, so that one run shows every problem."""
    try:
        written = tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        return Parts({}, None, "add-remove", "", ((None, "The file nests too deeply.", "write it as in the guide."),), {})
    except ValueError as error:  # tomllib's error, or an integer with thousands of digits
        where = re.search(r"at line (\d+)", str(error))
        what = "This is not TOML: " + re.sub(r" \(at .*\)$", "", str(error).split(";")[0]) + "."
        return Parts({}, None, "add-remove", "", ((int(where[1]) if where else None, what, "correct the line."),), {})
    at = lines(text)
    reader = _Reader(base)
    reader.document(written)
    tables, unread = reader.tables, frozenset(reader.unread)
    found = reader.faults + faults(tables, reader.budget, reader.neighbours, reader.snapshot, unread)
    return Parts(tables, reader.budget, reader.neighbours, reader.snapshot, problems(found, at), at)


def problems(faults: list[Fault], at: Mapping[Path, int]) -> tuple[Problem, ...]:
    """Returns faults with their lines, in the order of the file."""
    unique = {(line_of(dict(at), fault.path), fault.what, fault.fix): None for fault in faults}
    return tuple(sorted(unique, key=lambda problem: problem[0] or 0))


class _Reader:
    """Collects values and faults while it walks the document."""

    def __init__(self, base: FilePath | None) -> None:
        self.base = base
        self.faults: list[Fault] = []
        self.tables: dict[str, Table] = {}
        self.unread: set[str] = set()
        self.budget: Budget | None = None
        self.neighbours = NEIGHBOURS[0]
        self.snapshot = ""
        self.spark = ""  # where Spark is

    def document(self, written: Mapping[str, Any]) -> None:
        self._report_unknown((), written, _TOP)
        if not isinstance(written.get("service", {}), dict):  # the server reads it: server/settings.py
            self._report(("service",), "service must hold named values.", "write a section [service].")
        self.budget = self._budget(written.get("budget"))
        privacy = self._section(("privacy",), written.get("privacy", {}), ("neighbours",))
        self.neighbours = self._text(("privacy", "neighbours"), privacy, NEIGHBOURS[0]) or NEIGHBOURS[0]
        self.snapshot = self._text(("snapshot",), written, "") or ""
        engine = self._section(("engine",), written.get("engine", {}), ("spark",))
        self.spark = self._text(("engine", "spark"), engine, "") or ""
        tables = written.get("tables", {})
        if not isinstance(tables, dict):
            self._report(("tables",), "tables must be sections.", "write [tables.people].")
            return
        for name, table in tables.items():
            read = self._table(name, table)
            if read is None:
                self.unread.add(name)
            else:  # its other faults are reported in the same run
                self.tables[name] = read

    def _budget(self, written: Any) -> Budget | None:
        if written is None:
            self._report(("budget",), "The budget is missing.", "add [budget] with epsilon = 1, the total for all questions.")
            return None
        section = self._section(("budget",), written, (*_BUDGET, "analysts", "left_out"))
        read: dict[str, Fraction] = {}
        for part in _BUDGET:
            value = amount(section[part]) if part in section else None
            if value is not None:
                read[part] = value
            elif part in section:
                self._report(("budget", part), f"{part} must be a finite number.", f'write {part} = 0.5 or {part} = "1/2".')
        if "epsilon" not in section:
            self._report(("budget",), "epsilon is missing.", "write epsilon = 1, the total for all questions.")
        analysts = self._names(("budget", "analysts"), section)
        left_out = section.get("left_out", True)  # rules.py refuses other values than true and false
        return Budget(**read, analysts=analysts, left_out=left_out) if "epsilon" in read else None

    def _table(self, name: str, written: Any) -> Table | None:
        path = ("tables", name)
        section = self._section(path, written, (*_TABLE, *_EDGES))
        if not isinstance(written, dict):
            return None
        source = self._text((*path, "source"), section, None)
        if not source:
            self._report(path, f"{name} has no source.", 'write source = "people.parquet".')
            return None
        edges = self._edges(name, section)
        unit = self._unit(name, section.get("unit")) if edges is None else None
        protected = unit if isinstance(unit, Unit) else None
        counts = {part: self._count((*path, part), section) for part in ("max_rows", "max_groups", "most_rows")}
        if unit is None and "unit" in section and edges is None:
            return None
        read, faults = read_source((*path, "read"), section.get("read", {}))
        self.faults += faults
        return Table(
            located(source, self.base, self.spark),
            unit=protected,
            by_row=unit == "row",
            public=self._flag((*path, "public"), section),
            rows=self._rows((*path, "rows"), section.get("rows", {})),
            key=self._text((*path, "key"), section, None),
            columns=self._columns(name, section.get("columns", {})),
            caps=self._caps((*path, "caps"), section.get("caps", {})),
            read=read,
            edges=edges,
            max_rows=counts["max_rows"],
            max_groups=counts["max_groups"],
            most_rows=counts["most_rows"],
        )

    def _edges(self, table: str, section: Mapping[str, Any]) -> Edges | None:
        """Reads what a table of edges declares; None for other tables."""
        path = ("tables", table)
        if "edge" not in section:
            for part in _EDGES[1:]:
                if part in section:
                    self._report((*path, part), f"{part} is for tables of edges.", 'write edge = ["from", "to"] as well.')
            return None
        ends, unit = section["edge"], section.get("unit", "")
        written = section.get("nodes")
        nodes: tuple[str, str] | ColumnFacts | None = None
        if isinstance(written, str):
            parent, dot, column = written.partition(".")
            if parent and dot and column:
                nodes = (parent, column)
            else:
                self._report((*path, "nodes"), f"{table}.nodes must name a table and a column.", 'write nodes = "people.id".')
                nodes = (table, "")
        elif written is not None:
            nodes, faults = read_column((*path, "nodes"), written)
            self.faults += faults
        limits = self._section((*path, "at_most"), section.get("at_most", {}), ("nodes", "edges"))
        counts = {part: self._count((*path, "at_most", part), limits) for part in ("nodes", "edges")}
        listed_ends: Any = tuple(ends) if isinstance(ends, list) else ends  # rules.py refuses what is not two names
        return Edges(listed_ends, unit if isinstance(unit, str) else "", nodes, AtMost(**counts))

    def _columns(self, table: str, written: Any) -> dict[str, ColumnFacts]:
        path = ("tables", table, "columns")
        if not isinstance(written, dict):
            self._report(path, f"{table}.columns must be a section.", f"write [tables.{table}.columns].")
            return {}
        columns: dict[str, ColumnFacts] = {}
        for name, declared in written.items():
            facts, faults = read_column((*path, name), declared)
            self.faults += faults
            if facts is not None:
                columns[name] = facts
        return columns

    def _unit(self, table: str, written: Any) -> Unit | str | None:
        path = ("tables", table, "unit")
        if written is None or written == "row":
            return written  # type: ignore[no-any-return]
        if isinstance(written, str) and written:
            return Unit(written)
        section = self._section(path, written, ("column", "references"))
        column, target = self._text((*path, "column"), section, None), self._text((*path, "references"), section, None)
        if not column:
            fix = 'write unit = "person_id", "row" or { column = "person_id", references = "people.person_id" }.'
            self._report(path, f"{table}.unit names no column.", fix)
            return None
        parent, dot, referenced = (target or "").partition(".")
        if target is not None and not (parent and dot and referenced):
            what = f"{table}.unit: references must name a table and a column."
            self._report((*path, "references"), what, f'write references = "table.{column}", with the table it points to.')
            return None
        return Unit(column, (parent, referenced) if target else None)

    def _rows(self, path: Path, written: Any) -> Rows:
        section = self._section(path, written, ("public", "at_least"))
        return Rows(self._count((*path, "public"), section), self._count((*path, "at_least"), section))

    def _caps(self, path: Path, written: Any) -> TableCaps:
        section = self._section(path, written, ("max_rows", "max_groups"))
        return TableCaps(self._count((*path, "max_rows"), section), self._count((*path, "max_groups"), section))

    # --- one value ---------------------------------------------------------------------------------------------

    def _section(self, path: Path, written: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(written, dict):
            self._report(path, f"{'.'.join(path)} must hold named values.", f"known are: {listed(known)}.")
            return {}
        self._report_unknown(path, written, known)
        return written

    def _report_unknown(self, path: Path, written: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in written:
            if key not in known:
                name = ".".join((*path, key))
                self._report((*path, key), f"{name} is not known.", f"{did_you_mean(key, known)}Known are: {listed(known)}.")

    def _text(self, path: Path, section: Mapping[str, Any], default: str | None) -> str | None:
        value = section.get(path[-1], default)
        if value is None or isinstance(value, str):
            return value
        self._report(path, f"{'.'.join(path)} must be text.", f'write {path[-1]} = "...".')
        return default

    def _names(self, path: Path, section: Mapping[str, Any]) -> list[str] | None:
        value = section.get(path[-1])
        if value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
            return value
        self._report(path, f"{'.'.join(path)} must be a list of names.", f'write {path[-1]} = ["ana", "ben"].')
        return None

    def _flag(self, path: Path, section: Mapping[str, Any]) -> bool:
        value = section.get(path[-1], False)
        if not isinstance(value, bool):
            self._report(path, f"{'.'.join(path)} must be true or false.", f"write {path[-1]} = true.")
        return value is True

    def _count(self, path: Path, section: Mapping[str, Any]) -> int | None:
        value = section.get(path[-1])
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self._report(path, f"{'.'.join(path)} must be a whole number.", f"write {path[-1]} = 1.")
        return None

    def _report(self, path: Path, what: str, fix: str) -> None:
        self.faults.append(Fault(path, what, fix))


def located(source: str, base: FilePath | None, spark: str = "") -> str:
    """Returns a source's path, relative to the catalog file; the table name after # stays. `spark`: where tables of Spark are.

    >>> located("spark:lake.visits", None, "local[2]")
    'spark:lake.visits#local[2]'
    >>> located("delta:visits@12", FilePath("/lake"))
    'delta:/lake/visits@12'
    """
    if source.startswith(SPARK):
        return f"{source}#{spark}" if spark else source
    begin = DELTA if source.startswith(DELTA) else ""
    file, mark, table = source.removeprefix(begin).partition("#")
    if base is None or "://" in source:
        return source
    return begin + str(base / FilePath(file).expanduser()) + mark + table
