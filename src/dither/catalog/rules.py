"""Checks a declaration: columns, tables, references, budget. Every rule returns faults with a fix.

The rules see the declaration alone and open no source; check.py compares with schemas.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.catalog.edges import edge_faults
from dither.exact.numbers import encode_toml
from dither.text import did_you_mean, folded, visible

if TYPE_CHECKING:
    from dither.catalog.values import Budget, ColumnFacts, Table

Path = tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """One problem of a declaration. `path`, such as ("tables", "people", "max_rows"), gives its line in a file."""

    path: Path
    what: str
    fix: str


def listed(words: Iterable[str]) -> str:
    """Lists names for a fix, at most 30.

    >>> listed(["b", "a"])
    'a, b'
    """
    names = sorted(map(visible, words))
    return ", ".join(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")


KINDS = ("int", "real", "text", "bool", "date", "timestamp")
_OTHER_WORDS = {
    **dict.fromkeys(("string", "str", "varchar", "char", "object", "category"), "text"),
    **dict.fromkeys(("integer", "bigint", "int32", "int64", "long", "whole"), "int"),
    **dict.fromkeys(("float", "float64", "double", "decimal", "numeric", "number"), "real"),
    "boolean": "bool",
    "datetime": "timestamp",
    "day": "date",
}
LARGEST_KEY = 2**62  # a larger key is NULL in every engine
FIRST_DAY, LAST_DAY = -719162, 2932896  # the calendar of datetime.date, in days since 1970-01-01
LARGEST_BOUND = Fraction(2**500)  # doubles can square numbers up to it, and divide by numbers down to its inverse
MOST_STEPS = 2**52  # a double counts whole steps exactly up to here
LONGEST = 4096  # the default longest text, in characters
MOST_LONGEST = 2**20


def column_faults(path: Path, column: ColumnFacts) -> list[Fault]:
    """Returns every fault of one column's declaration."""
    name = ".".join(path[1:2] + path[3:4]) or path[-1]
    if column.kind is not None and (not isinstance(column.kind, str) or column.kind not in KINDS):
        other = _OTHER_WORDS.get(column.kind.lower()) if isinstance(column.kind, str) else None
        meant = f'write kind = "{other}"; the kinds are' if other else "write one of"
        return [Fault((*path, "kind"), f"{name} has no known kind.", f"{meant} {', '.join(KINDS)}.")]
    faults = [Fault((*path, part), f"{name}: {what}", fix) for part, what, fix in _bounds(column)]
    faults += [Fault((*path, part), f"{name}: {what}", fix) for part, what, fix in _values(column)]
    faults += [Fault((*path, "longest"), f"{name}: {what}", fix) for what, fix in _longest(column)]
    faults += [Fault((*path, part), f"{name}: {what}", fix) for part, what, fix in _cells(column)]
    return faults


def kind_of(value: Any) -> str | None:
    """Returns the kind of a public value; None if it cannot be a key. A bool is not an int, a timestamp not a date."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, str):
        return "text"
    return "date" if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


def _bounds(column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    low, high, step = column.low, column.high, column.step
    if low is None or high is None:
        if low is not None or high is not None:
            yield "between", "only one bound is declared.", "declare both, as in between = [0, 120]."
        if step is not None:
            yield "step", "a step needs bounds to count from.", "declare between = [low, high] as well."
        return
    if column.kind in ("text", "bool"):
        yield "between", f"bounds make no sense for {column.kind}.", "declare values instead."
        return
    if column.kind == "timestamp" and step is not None:
        yield "step", "timestamps cannot be added up, so they have no step.", "leave step out."
        return
    if low >= high:
        turned = f"[{encode_toml(high)}, {encode_toml(low)}]" if low > high else "a range with more than one number"
        yield (
            "between",
            f"the lower bound {encode_toml(low)} is not below the upper bound {encode_toml(high)}.",
            f"write {turned}.",
        )
        return
    if max(abs(low), abs(high)) > LARGEST_BOUND or high - low < 1 / LARGEST_BOUND:
        what = "the bounds are beyond 2^500, or less than 2^-500 apart: no sum or mean could be taken over them."
        yield "between", what, "write what such a value can be at most, as in between = [0, 250000]."
        return
    if column.kind in ("int", "date"):
        if any(part is not None and part.denominator != 1 for part in (low, high, step)):
            yield "between", f"bounds and step of kind {column.kind} must be whole.", 'write whole numbers, or kind = "real".'
        if max(abs(low), abs(high)) > LARGEST_KEY:
            yield "between", "a bound is beyond 2^62.", "declare narrower bounds."
    if column.kind in ("date", "timestamp") and not (low >= FIRST_DAY and high < LAST_DAY + 1):
        yield "between", "a bound is outside the years 1 to 9999.", "declare dates of the calendar."
    if step is not None:
        yield from _step(low, high, step)


def _step(low: Fraction, high: Fraction, step: Fraction) -> Iterator[tuple[str, str, str]]:
    if step <= 0:
        yield "step", f"the step must be above 0, and it is {encode_toml(step)}.", "write a step such as 1 or 0.01."
        return
    count = (high - low) / step
    if count.denominator != 1:
        outward = low + step * -(-count.numerator // count.denominator)
        yield (
            "step",
            f"the range is not a whole number of steps of {encode_toml(step)}.",
            f"write between = [{encode_toml(low)}, {encode_toml(outward)}], or another step.",
        )
    if count > MOST_STEPS:
        yield "step", "the range has more than 2^52 steps.", "write a larger step or narrower bounds."


def _values(column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    values = column.values
    if values is None:
        return
    known = [value for value in values if value is not None]
    kinds = {kind_of(value) for value in known}
    if not known:
        yield "values", "no value is listed.", 'list the public values, as in values = ["north", "south"].'
    elif None in kinds:
        yield "values", "a value is neither text, a whole number, true or false, nor a date.", "list values of one such kind."
    elif len(kinds) > 1:
        yield "values", f"the values are of several kinds: {', '.join(sorted(map(str, kinds)))}.", "list values of one kind."
    elif column.kind not in (None, *kinds):
        yield "values", f"the values are {kinds.pop()}, the column is {column.kind}.", "make values and kind agree."
    else:
        yield from _each_value(values, known)
        yield from _values_and_bounds(column, known)
    if any(value is None for value in values) and not column.nullable:
        yield "null", "NULL is declared a public value and impossible at once.", "leave one of the two out."


def _longest(column: ColumnFacts) -> Iterator[tuple[str, str]]:
    longest = column.longest
    if isinstance(longest, bool) or not isinstance(longest, int) or not 1 <= longest <= MOST_LONGEST:
        yield f"longest must be a whole number of characters from 1 to {MOST_LONGEST:,}.", "write longest = 20000."
    elif longest != LONGEST and column.kind not in (None, "text"):
        yield f"longest is for text, and the column is {column.kind}.", "leave longest out."
    elif any(isinstance(value, str) and len(value) > longest for value in column.values or ()):
        yield "a public value is longer than longest.", "write a larger longest."


def _cells(column: ColumnFacts) -> Iterator[tuple[str, str, str]]:
    """Yields the settings of cells that make no sense for the column's kind."""
    cells, kind = column.cells, column.kind
    if cells.format is not None and kind not in (None, "date", "timestamp"):
        yield "format", f"format is for dates, and the column is {kind}.", 'leave format out, or write kind = "date".'
    for part in ("decimal", "thousands"):
        if getattr(cells, part) is not None and kind not in (None, "int", "real"):
            yield part, f"{part} is for numbers, and the column is {kind}.", f'leave {part} out, or write kind = "real".'


def _each_value(values: tuple[Any, ...], known: list[Any]) -> Iterator[tuple[str, str, str]]:
    twice = sorted(str(value) for value, times in Counter(values).items() if times > 1)
    if twice:
        yield "values", f"listed twice: {', '.join(twice[:5])}.", "list every value once."
    if any(isinstance(value, int) and not fits_key(value) for value in known):
        yield "values", "a value is beyond 2^62.", "list smaller whole numbers."
    if any(isinstance(value, str) and not fits_key(value) for value in known):
        yield "values", "a value is not text that a database can hold.", "list values without zero bytes or half characters."


def fits_key(value: object) -> bool:
    """Returns whether every engine can compare a group's key with this value."""
    if isinstance(value, str):
        return "\0" not in value and not _has_half_character(value)
    return not isinstance(value, int) or abs(value) <= LARGEST_KEY


def _has_half_character(text: str) -> bool:
    """Returns whether a text has half a surrogate pair, which Python allows and databases do not."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _values_and_bounds(column: ColumnFacts, known: list[Any]) -> Iterator[tuple[str, str, str]]:
    if column.low is None or column.high is None:
        return
    if not all(kind_of(value) == "int" for value in known):
        yield "between", "bounds go with whole-number values only.", "leave between or values out."
    elif any(not column.low <= value <= column.high for value in known):
        yield "between", "a public value lies outside the bounds.", "widen between, or leave it out: the values imply it."


NEIGHBOURS = ("add-remove", "replace")
WIDEST_NOISE = 10**12  # in steps: what the samplers draw
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_Faults = Iterator[Fault]


def faults(
    tables: Mapping[str, Table],
    budget: Budget | None,
    neighbours: str = "add-remove",
    snapshot: object = "",
    unread: frozenset[str] = frozenset(),
) -> list[Fault]:
    """Returns every fault of a declaration. `unread` names tables that the reader of the file already refused."""
    found = list(_budget(budget)) if budget is not None else []
    if not isinstance(neighbours, str) or neighbours not in NEIGHBOURS:
        neighbours = ""  # it may not be text, and is compared below
        found.append(Fault(("privacy", "neighbours"), "neighbours is unknown.", 'write "add-remove" or "replace".'))
    if not isinstance(snapshot, str):
        found.append(Fault(("snapshot",), "snapshot must be text.", 'write snapshot = "2026-11".'))
    names = [*tables, *unread]
    if not names:
        found.append(Fault(("tables",), "No table is declared.", "add a [tables.NAME] with a source and a unit."))
    found += _same_but_for_case(("tables",), names, "tables")
    unit = _known_unit(tables.values())
    for name, table in tables.items():
        found += _table(name, table, unit)
        found += _countable(name, table, budget)
        found += _rows(name, table, neighbours)
        found += _edge(name, tables, unread)
    found += _cycles(tables)
    found += [Fault(*each) for each in edge_faults(tables, neighbours, unread)]
    if neighbours == "replace" and not unread and not any(table.rows.public for table in tables.values()):
        what = "Replacing one person by another keeps the number of people, so that number must be declared public."
        found.append(Fault(("privacy", "neighbours"), what, "declare rows = { public = N } for the table with one row each."))
    return found


def _budget(budget: Budget) -> _Faults:
    path = ("budget",)
    if budget.epsilon <= 0:
        what = f"epsilon must be above 0, and it is {encode_toml(budget.epsilon)}."
        yield Fault((*path, "epsilon"), what, "write epsilon = 1, or another total for all questions.")
    if not 0 <= budget.delta < 1:
        what = f"delta must be at least 0 and below 1, and it is {encode_toml(budget.delta)}."
        yield Fault((*path, "delta"), what, "write delta = 1e-6, or leave it out for pure epsilon-DP.")
    for part, cap in (("per_analyst", budget.per_analyst), ("per_query", budget.per_query)):
        if cap is not None and not 0 < cap <= max(budget.epsilon, Fraction(0)):
            what = f"{part} must be above 0 and at most epsilon, and it is {encode_toml(cap)}."
            yield Fault((*path, part), what, "write a share of epsilon, or leave it out.")
    yield from _least(budget)
    declared: object = budget.left_out
    if not isinstance(declared, bool):
        yield Fault((*path, "left_out"), "left_out must be true or false.", "write left_out = false, or leave it out.")
    if budget.analysts is not None:
        yield from _analysts(budget.analysts)


def _least(budget: Budget) -> _Faults:
    path, least = ("budget", "least_epsilon"), budget.least_epsilon
    if budget.epsilon <= 0:
        return  # reported already; the default follows from it
    if not 0 < least <= budget.epsilon:
        what = f"least_epsilon must be above 0 and at most epsilon, and it is {encode_toml(least)}."
        yield Fault(path, what, "write the least that one question may cost, or leave it out.")
        return
    for part, cap in (("per_query", budget.per_query), ("per_analyst", budget.per_analyst)):
        if cap is not None and 0 < cap < least:
            what = f"{part} is {encode_toml(cap)} and a question costs at least {encode_toml(least)}, so none could be asked."
            yield Fault(("budget", part), what, f"write least_epsilon = {encode_toml(cap)} or less, or a larger {part}.")


def _analysts(names: tuple[str, ...]) -> _Faults:
    path, fix = ("budget", "analysts"), 'write analysts = ["ana", "ben"], or leave it out to let anyone ask.'
    if not names:
        yield Fault(path, "analysts is empty, so nobody could ask.", fix)
    for name in sorted(set(names)):
        if not is_name(name):
            what = f"analysts: {name[:60]!r} is not a valid name: it is empty, longer than 200 letters, or has odd spaces."
            yield Fault(path, what, fix)
        if names.count(name) > 1:
            yield Fault(path, f"analysts names {name} twice.", "keep one of them.")


def is_name(name: str) -> bool:
    """Returns whether a text can be an analyst's name, which is printed in tables and compared exactly."""
    return bool(name) and len(name) <= 200 and name.isprintable() and name == name.strip()


def _known_unit(tables: Iterable[Table]) -> str:
    """Returns a unit column of the catalog, as an example for a fix."""
    units = (table.unit.column for table in tables if table.unit is not None)
    return next((column for column in units if isinstance(column, str) and column), "person_id")


def _table(name: str, table: Table, unit: str) -> _Faults:
    path = ("tables", name)
    if not _NAME.match(name):
        yield Fault(path, f"{name!r} is not a valid table name.", "use letters, digits and _, not starting with a digit.")
    protected = table.by_row or table.unit is not None or table.edges is not None
    if table.public and protected and table.edges is None:
        yield Fault((*path, "unit"), f"{name} is public and has a unit to protect.", "keep one of public and unit.")
    if not table.public and not protected:
        what = f"{name} declares neither a unit nor that it is public."
        fix = f'write unit = "{unit}", or another column that identifies the person; unit = "row" if each row is one person'
        yield Fault(path, what, f"{fix}; or public = true.")
    if table.by_row and table.unit is not None:
        yield Fault((*path, "unit"), f"{name} protects rows and a unit at once.", "keep one of the two.")
    for part, text in (("unit", table.unit.column if table.unit else "x"), ("key", table.key)):
        if text is not None and (not isinstance(text, str) or not text):
            yield Fault((*path, part), f"{name}.{part} must be a column's name.", f'write {part} = "person_id".')
    yield from _allowances(name, table)
    yield from _most_rows(name, table)
    yield from _caps(name, table)
    yield from _same_but_for_case((*path, "columns"), list(table.columns), f"columns of {name}")
    for column, facts in table.columns.items():
        yield from column_faults((*path, "columns", column), facts)


def _allowances(name: str, table: Table) -> _Faults:
    path = ("tables", name)
    for part, value in (("max_rows", table.max_rows), ("max_groups", table.max_groups)):
        if value is None:
            continue  # chosen for each question
        if not _is_whole(value) or value < 1:
            yield Fault((*path, part), f"{name}.{part} must be a whole number above 0.", f"write {part} = 1 or more.")
        elif table.public:
            implied = part == "max_groups" and value == table.max_rows == 1  # nobody may have written it
            if implied or table.by_row or table.unit is not None:
                continue  # what is wrong is said once
            yield Fault((*path, part), f"{name} is public, so nobody is bounded in it.", f"leave {part} out.")
        elif table.by_row and value != 1:
            yield Fault((*path, part), f"{name} protects rows: each is one row in one group.", f"leave {part} out.")


def _most_rows(name: str, table: Table) -> _Faults:
    """Checks how many rows of one person are kept: for tables with a unit column, and not below what questions count."""
    path, most = ("tables", name, "most_rows"), table.most_rows
    if most is None or table.edges is not None:
        return  # edges.py refuses it for edges
    if not _is_whole(most) or most < 1:
        yield Fault(path, f"{name}.most_rows must be a whole number above 0.", "write most_rows = 1000.")
    elif table.unit is None:
        yield Fault(path, f"{name} has no unit column, so no person has rows to leave out in it.", "leave most_rows out.")
    elif _is_whole(table.max_rows) and (table.max_rows or 0) > most:
        what = f"{name}.most_rows is {most}, below its max_rows of {table.max_rows}."
        yield Fault(path, what, f"write most_rows = {table.max_rows} or more.")


def _caps(name: str, table: Table) -> _Faults:
    """Checks the limits on what a question may say: whole numbers, not below the table's own default."""
    path = ("tables", name, "caps")
    caps = {"max_rows": table.caps.max_rows, "max_groups": table.caps.max_groups}
    given = {part: cap for part, cap in caps.items() if cap is not None}
    if given and table.unit is None:
        yield Fault(path, f"{name} has no unit column, so questions set no bounds in it.", "leave caps out.")
        return
    for part, cap in given.items():
        declared = getattr(table, part)
        if not _is_whole(cap) or cap < 1:
            yield Fault((*path, part), f"{name}.caps.{part} must be a whole number above 0.", f"write {part} = 100.")
        elif _is_whole(declared) and declared > cap:
            what = f"{name}.{part} is {declared}, above its own cap of {cap}."
            yield Fault((*path, part), what, f"write {part} = {declared} or more under [tables.{name}.caps].")


def _countable(name: str, table: Table, budget: Budget | None) -> _Faults:
    """Refuses a `max_rows` that needs more than the widest noise: COUNT(*) at the whole budget has scale max_rows / epsilon."""
    rows = table.max_rows if _is_whole(table.max_rows) else None  # `_allowances` reports other types
    if rows is None or budget is None or budget.epsilon <= 0 or rows <= WIDEST_NOISE * budget.epsilon:
        return
    what = f"{name}.max_rows is too large: even the whole budget cannot pay for the noise of one count."
    yield Fault(("tables", name, "max_rows"), what, "write how many rows one person may count for, as in max_rows = 20.")


def _rows(name: str, table: Table, neighbours: str) -> _Faults:
    path = ("tables", name, "rows")
    declared = {"public": table.rows.public, "at_least": table.rows.at_least}
    given = {part: value for part, value in declared.items() if value is not None}
    if not given:
        return
    if len(given) > 1:
        yield Fault(path, f"{name}.rows says public and at_least.", "keep one: public is exact, at_least a minimum.")
    for part, value in given.items():
        if not _is_whole(value) or value < 1:
            yield Fault((*path, part), f"{name}.rows.{part} must be a whole number above 0.", f"write {part} = 100.")
    if table.public:
        yield Fault(path, f"{name} is public: its number of rows needs no declaration.", "leave rows out.")
    elif not table.by_row and table.max_rows != 1:
        what = f"{name}.rows is a fact about people only if each has one row."
        yield Fault(path, what, "write max_rows = 1, or leave rows out.")
    if "public" in given and neighbours != "replace":
        what = f"{name} has a public number of rows, but people may be added or removed."
        yield Fault(path, what, 'write neighbours = "replace" under [privacy], or rows = { at_least = N }.')


def _edge(name: str, tables: Mapping[str, Table], unread: frozenset[str]) -> _Faults:
    unit = tables[name].unit
    if unit is None or unit.references is None:
        return
    path, (parent, column) = ("tables", name, "unit"), unit.references
    if parent in unread:
        return
    if parent not in tables:
        what = f"{name} refers to {parent}.{column}, and there is no table {parent}."
        yield Fault(path, what, f"{did_you_mean(parent, tables)}Declared are: {listed(tables)}.")
    elif tables[parent].public:
        what = f"{name} refers to {parent}, which is public, so it cannot say whose row it is."
        yield Fault(path, what, f'write unit = "{unit.column}", or declare the unit of {parent}.')
    elif tables[parent].by_row:
        what = f"{name} refers to {parent}, which has no unit column."
        yield Fault(path, what, f'write unit = "{column}" and max_rows = 1 for {parent} instead of unit = "row".')


def _cycles(tables: Mapping[str, Table]) -> _Faults:
    for name in tables:
        seen, at = [name], name
        while (unit := tables[at].unit) is not None and unit.references and (at := unit.references[0]) in tables:
            if at == name:
                path = " -> ".join([*seen, name])
                what = f"{name} refers to itself: {path}."
                yield Fault(("tables", name, "unit"), what, "let one of these tables name its unit without references.")
            if at in seen:
                break
            seen.append(at)


def _same_but_for_case(path: tuple[str, ...], names: list[str], what: str) -> _Faults:
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(folded(str(name)), name)
        if other != name:
            fix = "SQL reads both as one name: rename one in the source and here."
            yield Fault((*path, name), f"Two {what} differ only in case: {other} and {name}.", fix)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
