"""Audits a catalog on generated tables: `dither audit catalog.toml --synthetic --questions questions.sql`.

Generates tables that fit the declaration, asks the analyst's own questions about many neighbouring ones through the real path,
and compares the exact integers with what the noise was priced for, and all the rest for equality. Reads no private row: types
come from the schemas of the sources where they can be opened, and from the declaration otherwise.

What differs from the curator's own catalog: the rows, the budget, which never runs out, and the ledger, which is in memory.
"""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves.cases import Case, Comparison, Finding, any_people, compare
from dither.audit.ourselves.catalogs import CatalogSetup
from dither.audit.ourselves.harness import Harness
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.shrink import show_finding, shrink
from dither.audit.ourselves.survey import Person, Row, kind_of
from dither.audit.verdict import NOT_FOUND, SHARE, VIOLATES, Verdict
from dither.catalog import file
from dither.catalog.values import Catalog, ColumnFacts, Table
from dither.curator import STEPS, Steps
from dither.engines.registry import read_schema
from dither.errors import ArgumentError, CatalogError, DitherError
from dither.query.sql.gate import statements

Progress = Callable[[float], None]
NOT_CHECKED = (
    "the declaration itself: whether the unit is the person, and whether what is declared public is",
    "your own rows: only generated ones were read",
    "questions that are not in the list, and tables that were not generated",
    "the noise: `dither audit dither` checks it",
)
_TYPES = {
    "int": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_DAY = datetime.date(2020, 2, 28)
_WORST: Mapping[str, tuple[Any, ...]] = {
    "int": (None, 2**63 - 1, -(2**63), 0, -1),
    "real": (None, float("nan"), float("inf"), -float("inf"), -0.0, 1e308, 5e-324),
    "text": (None, "", "a'b", "\0", "NORTH", "north ", "x" * 5000, "no\u0301rth"),
    "bool": (None, True, False),
    "date": (None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    "timestamp": (None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
}
_REACHED = 24  # rows of a heavy unit in each of its tables


# --- tables that fit a declaration --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """One table: its columns with their kinds and facts, and where its units come from."""

    name: str
    table: Table
    kinds: Mapping[str, str]

    @property
    def parent(self) -> tuple[str, str] | None:
        return None if self.table.unit is None else self.table.unit.references

    def value(self, column: str, rng: random.Random, how: str) -> Any:
        """Returns a value: an ordinary one inside its bounds, one at a bound, or one of the worst."""
        facts, kind = self.table.columns.get(column, ColumnFacts()), self.kinds[column]
        if how == "poisoned" and rng.random() < 0.5:
            return rng.choice(_WORST[kind])
        if facts.values:
            return rng.choice([*facts.values, *(["elsewhere"] if kind == "text" and how != "ordinary" else [])])
        if facts.low is not None and facts.high is not None:
            return _between(facts.low, facts.high, kind, rng, how)
        return _plain(kind, rng)


def _between(low: Fraction, high: Fraction, kind: str, rng: random.Random, how: str) -> Any:
    at = (
        Fraction(rng.randrange(101), 100)
        if how == "ordinary"
        else rng.choice([Fraction(1), Fraction(0), Fraction(3), Fraction(-2)])
    )
    number = low + at * (high - low)
    if kind == "date":
        return _date(number)
    if kind == "timestamp":
        return datetime.datetime.combine(_date(number), datetime.time(rng.randrange(24)))
    return float(number) if kind == "real" else str(number) if kind == "text" else round(number)


def _date(days: Fraction) -> datetime.date:
    first, last = datetime.date(1, 1, 1).toordinal(), datetime.date(9999, 12, 31).toordinal()
    return datetime.date.fromordinal(min(max(datetime.date(1970, 1, 1).toordinal() + int(days), first), last))


def _plain(kind: str, rng: random.Random) -> Any:
    day = _DAY + datetime.timedelta(days=rng.randrange(3))
    plain: dict[str, Any] = {
        "int": rng.randrange(10),
        "real": rng.randrange(100) / 4,
        "text": rng.choice("abcd"),
        "bool": rng.random() < 0.5,
        "date": day,
        "timestamp": datetime.datetime.combine(day, datetime.time(rng.randrange(24))),
    }
    return plain[kind]


@dataclass(frozen=True)
class Generator:
    """Generates units of a catalog: all rows of one person in every table, parents before children."""

    private: tuple[Columns, ...]

    def person(self, number: int, rng: random.Random) -> Person:
        """Returns one unit: ordinary, with the worst values, with many rows at its bounds, or with one row repeated."""
        alone = [one for one in self.private if one.table.by_row]
        shared = [one for one in self.private if not one.table.by_row]
        how = kind_of(number, rng)
        if alone and (not shared or number % 2):
            table = rng.choice(alone)
            return {table.name: [self._row(table, number, 0, None, rng, how)]}
        made: Person = {}
        for table in shared:
            made[table.name] = self._rows(table, made, number, rng, how)
        return made

    def _rows(self, table: Columns, made: Person, number: int, rng: random.Random, how: str) -> list[Row]:
        parents: list[Any] = [None]
        if table.parent is not None:
            parents = [row[table.parent[1]] for row in made[table.parent[0]]]
        if not parents:
            return []
        size = {"heavy": _REACHED, "repeated": 5}.get(how, rng.choice([1, 1, 2, 4]))
        if self._is_single(table):
            size = 1
        rows = [self._row(table, number, place, rng.choice(parents), rng, how) for place in range(size)]
        return [dict(rows[0]) for _ in rows] if how == "repeated" and not self._unique(table) else rows

    def _unique(self, table: Columns) -> set[str]:
        """Returns the columns whose values never repeat: a declared key, and what other tables refer to."""
        keys = {one.parent[1] for one in self.private if one.parent is not None and one.parent[0] == table.name}
        return keys | ({table.table.key} if table.table.key else set())

    def _is_single(self, table: Columns) -> bool:
        return table.table.unit is not None and table.table.unit.column in self._unique(table)

    def _row(self, table: Columns, number: int, place: int, parent: Any, rng: random.Random, how: str) -> Row:
        row = {name: table.value(name, rng, how) for name in table.kinds}
        for name in self._unique(table):
            row[name] = _identity(table.kinds[name], 1000 * number + place)
        unit = table.table.unit
        if unit is not None:
            row[unit.column] = _identity(table.kinds[unit.column], number) if table.parent is None else parent
        return row


def _identity(kind: str, number: int) -> Any:
    if kind == "text":
        return f"p{number}"
    if kind == "date":
        return _DAY + datetime.timedelta(days=number)
    return float(number) if kind == "real" else number


def setup_of(catalog: Catalog) -> CatalogSetup:
    """Returns how to generate tables of this catalog, and to open it with them."""
    kinds = _kinds(catalog)
    order = [name for name in _parents_first(catalog) if not catalog.tables[name].public]
    made = Generator(tuple(Columns(name, catalog.tables[name], kinds[name]) for name in order))
    if not order:
        raise ArgumentError("the catalog declares no private table.", fix="audit a catalog with a table that has a unit.")

    def with_tables(tables: Mapping[str, Any]) -> dt.Catalog:
        declared = {
            name: _with_source(table, tables[name]) if name in tables else table for name, table in catalog.tables.items()
        }
        budget = dt.Budget(10**6, "1/2" if catalog.budget.delta else 0, left_out=catalog.budget.left_out)
        return dt.Catalog(declared, budget, catalog.neighbours)

    schemas = {name: pa.schema({column: _TYPES[kind] for column, kind in kinds[name].items()}) for name in order}
    return CatalogSetup("a catalog", with_tables, schemas, {}, made.person, None, catalog.neighbours == "replace")


def _with_source(table: Table, rows: Any) -> Table:
    return Table(
        *(rows, table.unit, table.by_row, False, table.max_rows, table.max_groups),
        rows=table.rows,
        key=table.key,
        columns=table.columns,
        caps=table.caps,
    )


def _kinds(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Returns the kind of every column that questions may use: as stored, if the source can be opened, or as declared."""
    found: dict[str, dict[str, str]] = {}
    for name, table in catalog.tables.items():
        try:
            stored = dict(read_schema(table.source, table.read))
        except (DitherError, OSError):
            stored = {}
        named = [*table.columns, *([table.unit.column] if table.unit else []), *([table.key] if table.key else [])]
        named += [
            one.unit.references[1]
            for one in catalog.tables.values()
            if one.unit and one.unit.references and one.unit.references[0] == name
        ]
        found[name] = {
            column: _kind(table.columns.get(column, ColumnFacts()), stored.get(column)) for column in dict.fromkeys(named)
        }
    return found


def _kind(facts: ColumnFacts, stored: str | None) -> str:
    if facts.kind in _TYPES:
        return str(facts.kind)
    if stored in _TYPES:
        return str(stored)
    if facts.values:
        first = next((value for value in facts.values if value is not None), "")
        return "bool" if isinstance(first, bool) else "int" if isinstance(first, int) else "text"
    if facts.low is not None:
        whole = facts.low.denominator == 1 and (facts.step is None or facts.step.denominator == 1)
        return "int" if whole else "real"
    return "int"


def _parents_first(catalog: Catalog) -> Iterator[str]:
    done: set[str] = set()
    while left := [name for name in catalog.tables if name not in done]:
        ready = [name for name in left if _parent(catalog, name) in (None, *done)] or left
        for name in ready:
            done.add(name)
            yield name


def _parent(catalog: Catalog, name: str) -> str | None:
    unit = catalog.tables[name].unit
    return None if unit is None or unit.references is None else unit.references[0]


# --- the audit ----------------------------------------------------------------------------------------------------


def default_questions(setup: CatalogSetup, catalog: Catalog) -> list[str]:
    """Returns plain questions about every private table, if there is no list: counts, and sums of bounded columns by group."""
    made: list[str] = []
    for name in setup.schemas:
        table = catalog.tables[name]
        made.append(f'SELECT COUNT(*) AS n FROM "{name}"')
        groups = [column for column, facts in table.columns.items() if facts.values]
        sums = [
            column
            for column, facts in table.columns.items()
            if facts.low is not None and facts.kind not in ("date", "timestamp")
        ]
        made += [f'SELECT "{column}", COUNT(*) AS n FROM "{name}" GROUP BY "{column}"' for column in groups[:2]]
        made += [f'SELECT COUNT("{column}") AS n, AVG("{column}") AS a FROM "{name}"' for column in sums[:3]]
    return made


@dataclass
class _Tally:
    pairs: int = 0
    moved: int = 0
    reached: float = 0.0
    answered: int = 0
    refused: int = 0


def audit_catalog(
    path: str,
    questions: str | None,
    price: tuple[Any, Any],
    seconds: float,
    seed: int,
    progress: Progress,
    steps: Steps = STEPS,
) -> Iterator[Verdict]:
    """Yields one verdict on each question, asked about generated neighbours for its share of the time. Makes findings small."""
    catalog = _read(path)
    setup = setup_of(catalog)
    asked = default_questions(setup, catalog) if questions is None else _questions(questions)
    for place, question in enumerate(asked):
        yield _verdict_on(setup, question, price, seconds / len(asked), seed + place, steps)
        progress((place + 1) / len(asked))


def _read(path: str) -> Catalog:
    try:
        return file.read(path)
    except OSError:
        raise CatalogError([(None, f"{path} cannot be read.", "name a catalog file.")]) from None


def _questions(path: str) -> list[str]:
    try:
        found = statements(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"{path} cannot be read as text.", fix="name a file of questions in UTF-8.") from None
    if not found:
        raise ArgumentError(f"{path} has no questions.", fix="write SELECT statements, separated by semicolons.")
    return list(found)


def _verdict_on(setup: CatalogSetup, question: str, price: tuple[Any, Any], seconds: float, seed: int, steps: Steps) -> Verdict:
    start, rng, done = time.monotonic(), random.Random(seed), _Tally()
    finding: Finding | None = None
    refusal = ""
    while finding is None and (not done.pairs or time.monotonic() - start < seconds):
        always, perhaps = any_people(setup, rng)
        with Harness(setup, (*perhaps, *always), steps) as harness:
            refusal = _refusal(harness, question, price)
            if refusal:
                break
            case = Case(setup, always, perhaps, Parts("", (), "", mutilated=question), price)
            one = compare(harness, case, rng)
        _count(done, one)
        finding = one.finding
    return _verdict(
        question, price, done, shrink(finding, seed, steps) if finding else None, refusal, seed, time.monotonic() - start
    )


def _count(done: _Tally, one: Comparison) -> None:
    done.pairs, done.moved = done.pairs + one.pairs, done.moved + one.moved
    done.reached, done.answered = max(done.reached, one.reached), done.answered + one.answered


def _refusal(harness: Harness, question: str, price: tuple[Any, Any]) -> str:
    """Returns why the question is refused on any rows, or "". Reads no rows."""
    try:
        return harness.curator.quote(question, *price).refusal or ""
    except DitherError as error:
        return str(error).strip().splitlines()[0]


def _verdict(
    question: str, price: tuple[Any, Any], done: _Tally, finding: Finding | None, refusal: str, seed: int, seconds: float
) -> Verdict:
    """Returns the verdict in units of the price: `epsilon` is the largest share of it that a pair reached, 1 is all."""
    evidence: dict[str, Any] = {
        "pairs": done.pairs,
        "pairs whose integers differ": done.moved,
        SHARE: done.reached,
        "price": [str(part) for part in price],
        "seed": seed,
    }
    name, one_price = " ".join(question.split())[:120], (Fraction(1), Fraction(0))
    if finding is not None:
        case = finding.case
        one, two = (tuple(case.perhaps[i] for i in side) + case.always for side in finding.pair)
        evidence["counterexample"] = show_finding(finding)
        words = "; ".join(finding.words)
        return Verdict(name, "replay", VIOLATES, one_price, finding.share, 1.0, (one, two), words, evidence, seconds)
    why = (
        f"the question is refused: {refusal}" if refusal else "" if done.moved else "no generated neighbours moved its integers"
    )
    return Verdict(name, "replay", NOT_FOUND, one_price, done.reached, 1.0, None, "", evidence, seconds, open=why)


__all__ = ["NOT_CHECKED", "audit_catalog", "setup_of"]
