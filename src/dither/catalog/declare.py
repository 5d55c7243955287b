"""Declares columns in Python: between, values, column.

    columns={"age": dt.between(0, 120), "region": dt.values("north", "south"), "born": dt.column(format="%d.%m.%Y")}

Python and catalog files both go through `read_column`, so that they mean the same.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict, Unpack

from dither.catalog.reading import CELLS, Cells, has_time, read_cells
from dither.catalog.rules import LONGEST, Fault, Path, column_faults, kind_of, listed
from dither.catalog.spelling import in_python
from dither.catalog.values import ColumnFacts, Key
from dither.errors import CatalogError
from dither.exact.numbers import Number, parse_number
from dither.text import did_you_mean

_EPOCH = datetime.date(1970, 1, 1)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?.*")
_MICROSECONDS = 86_400_000_000  # of a day
_PARTS = ("kind", "between", "step", "values", "null", "longest", *CELLS)


class CellSettings(TypedDict, total=False):
    """How the cells of a text column are read: reading.Cells, as written."""

    format: str | Sequence[str] | None
    decimal: str | None
    thousands: str | None
    na: Sequence[str] | None
    trim: bool | None


def between(
    low: Number | datetime.date,
    high: Number | datetime.date,
    *,
    step: Number | None = None,
    kind: str | None = None,
    null: bool = True,
    **cells: Unpack[CellSettings],
) -> ColumnFacts:
    """Declares a column whose values are clipped to [low, high] in sums, on a grid of `step` if one is given.

    >>> between(0, 120).high
    Fraction(120, 1)
    """
    return column(between=(low, high), step=step, kind=kind, null=null, **cells)


def values(*public: Key, null: bool = True, longest: int | None = None, **cells: Unpack[CellSettings]) -> ColumnFacts:
    """Declares a column whose possible values are public: each is shown as a group, even if it is empty.

    None makes a group of the rows with NULL. Rows with other values are left out of groupings.

    >>> values("north", "south").kind
    'text'
    """
    return column(values=public, null=null, longest=longest, **cells)


def column(
    *,
    kind: str | None = None,
    between: tuple[Any, Any] | None = None,
    step: Number | None = None,
    values: tuple[Key, ...] | None = None,
    null: bool = True,
    longest: int | None = None,
    **cells: Unpack[CellSettings],
) -> ColumnFacts:
    """Declares a column, which makes it usable. All facts are optional.

    `longest`: a text with more characters is NULL; in a unit or key column its row is left out. Default: 4,096.
    `format`, `decimal`, `thousands`, `na`, `trim`: how its text is read, as in a catalog file.

    >>> column(format="%m/%d/%Y %H:%M").kind
    'timestamp'
    """
    given: dict[str, Any] = {"kind": kind, "between": between, "step": step, "values": values, "longest": longest, **cells}
    facts, faults = read_column(("column",), {**{part: it for part, it in given.items() if it is not None}, "null": null})
    if facts is None or faults:
        raise CatalogError([(None, fault.what.removeprefix("column: "), in_python(fault.fix)) for fault in faults])
    return facts


def read_column(path: Path, written: Any) -> tuple[ColumnFacts | None, list[Fault]]:
    """Reads the declaration of one column. Returns its facts (None if unreadable) and every fault."""
    name = ".".join(path[1:2] + path[3:4]) or path[-1]
    if not isinstance(written, Mapping):
        return None, [Fault(path, f"{name} must be a set of facts.", f"write {path[-1]} = {{ between = [0, 120] }}.")]
    unknown = [
        Fault((*path, part), f"{name}: {part} is not known.", f"{did_you_mean(part, _PARTS)}Known are: {listed(_PARTS)}.")
        for part in written
        if part not in _PARTS
    ]
    faults: list[Fault] = []

    def report(part: str, what: str, fix: str) -> None:
        faults.append(Fault((*path, part), f"{name}: {what}", fix))

    cells = read_cells(written, report)
    said = _kind_of_cells(cells) if written.get("kind") is None else written["kind"]
    low, high, kind = _read_between(written, said if isinstance(said, str) else None, report)
    step = _read_step(written, report)
    public, nullable = _read_values(written, report)
    if public and kind is None:
        kind = kind_of(next((value for value in public if value is not None), None))
    if said is not None and (kind is None or written.get("kind") is not None):
        kind = said
    if faults:
        return None, unknown + faults
    counts = [value for value in public or () if isinstance(value, int)]
    if low is None and kind == "int" and len(set(counts)) > 1:
        low, high = Fraction(min(counts)), Fraction(max(counts))  # the values imply the bounds
    longest = written.get("longest", LONGEST)
    facts = ColumnFacts(kind, low, high, step, public, nullable, longest, cells, implied=said is None)
    return facts, unknown + column_faults(path, facts)


def _kind_of_cells(cells: Cells) -> str | None:
    """Returns the kind that the settings of a column imply."""
    if cells.format:
        return "timestamp" if has_time(cells.format) else "date"
    return "real" if cells.decimal or cells.thousands else None


def days(date: datetime.date) -> Fraction:
    """Returns a date or timestamp as days since 1970-01-01, the unit of their bounds.

    >>> days(datetime.datetime(1970, 1, 2, 12))
    Fraction(3, 2)
    """
    whole = Fraction(date.toordinal() - _EPOCH.toordinal())
    if not isinstance(date, datetime.datetime):
        return whole
    past = date - datetime.datetime(date.year, date.month, date.day)
    return whole + Fraction(past // datetime.timedelta(microseconds=1), _MICROSECONDS)


def date_of(count: Fraction) -> datetime.date:
    """Returns the date of a number of days since 1970-01-01."""
    return _EPOCH + datetime.timedelta(days=math.floor(count))


def time_of(count: Fraction) -> datetime.datetime:
    """Returns the timestamp of a number of days since 1970-01-01."""
    midnight = datetime.datetime.combine(date_of(count), datetime.time())
    return midnight + datetime.timedelta(microseconds=int((count - math.floor(count)) * _MICROSECONDS))


def _read_between(
    written: Mapping[str, Any], said: str | None, report: Any
) -> tuple[Fraction | None, Fraction | None, str | None]:
    """Reads the bounds and the kind that they imply. `said`: the kind of the column, if anything else says it."""
    pair = written.get("between")
    if pair is None:
        return None, None, None
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        report("between", "between must be a lower and an upper bound.", "write between = [0, 120].")
        return None, None, None
    kinds = {"timestamp" if _is_time(end) else kind_of(end) for end in pair}
    if kinds <= {"date", "timestamp"}:
        kind = "timestamp" if said == "timestamp" or "timestamp" in kinds else "date"
        whole_day = kind == "timestamp" and not _is_time(pair[1])  # the upper bound is the day's last moment
        return days(pair[0]), days(pair[1]) + (1 - Fraction(1, _MICROSECONDS) if whole_day else 0), kind
    low, high = parse_number(pair[0]), parse_number(pair[1])
    if low is None or high is None or said in ("date", "timestamp"):
        dated = said in ("date", "timestamp") or any(isinstance(end, str) and _DATE.fullmatch(end) for end in pair)
        dates = "write dates without quotes: between = [1900-01-01, 2030-12-31]; in Python, datetime.date(1900, 1, 1)."
        fix = dates if dated else "write between = [0, 120]."
        report("between", "the bounds must be two finite numbers or two dates.", fix)
    return low, high, None


def _is_time(value: object) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is None


def _read_step(written: Mapping[str, Any], report: Any) -> Fraction | None:
    given = written.get("step")
    step = parse_number(given)
    if given is not None and step is None:
        report("step", "the step must be a finite number.", "write step = 1 or step = 0.01.")
    return step


def _read_values(written: Mapping[str, Any], report: Any) -> tuple[tuple[Key, ...] | None, bool]:
    null, given = written.get("null", True), written.get("values")
    if given is not None and (not isinstance(given, (list, tuple)) or any(isinstance(it, (list, dict)) for it in given)):
        report("values", "values must be a list.", 'write values = ["north", "south"].')
        return None, True
    if given is not None and any(isinstance(value, (float, Decimal)) for value in given):
        report(
            "values", "numbers with decimals cannot be keys.", "list whole numbers, or group by an expression such as FLOOR."
        )
        return None, True
    public = None if given is None else tuple(_python_value(value) for value in given)
    if isinstance(null, str) and null == "group":
        if public is None:
            report("null", 'null = "group" needs public values.', "list values = [...] as well.")
        return (*public, None) if public else None, True
    if not isinstance(null, bool):
        report("null", "null must be true, false or, with values, the word group.", "write null = false if it is never NULL.")
        return public, True
    return public, null


def _python_value(value: Any) -> Any:
    """Converts numpy's integers, bools and text to Python's types."""
    item = value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
    return str(item) if isinstance(item, str) else item
