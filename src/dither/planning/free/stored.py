"""Decodes what a stored answer is about, from the text of its plan in the ledger (planning/records.py).

A plan has parts: the answer itself, its grouping sets, the estimates of what was left out, and in a list those of every
question. Each part is a release of its own, and its text says all there is to know: the rows, the unit, the keys, the bounds,
what was added up, and the noise. Left out are parts whose keys were found in the data: which groups they show was decided by
noise.

Texts are compared as they were encoded, so what counts as equal is what counts as equal for a repeated question.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.catalog.values import Key
from dither.errors import DitherError
from dither.mechanisms import L1, L2, Gaussian, Geometric, PerCoordinate
from dither.planning.records import FORMAT, encode
from dither.planning.releases.base import Release
from dither.planning.releases.keys import combinations
from dither.query.functions.casts import as_key
from dither.query.functions.registry import literal
from dither.query.nodes import Call, Column, Expression, Literal
from dither.query.work import Cell, Quantised, Sums

Mechanism = Geometric | Gaussian
# A part with other fields was made in another way, and its numbers may be no sums of its groups.
_FIELDS = {"source", "unit", "keys", "known", "max_groups", "releases", "shown", "price"}


def text_of(value: Any) -> str:
    """Returns the one text of encoded data, to compare it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True)
class Rows:
    """The rows that are asked about: a relation, as text, and the conditions that its rows meet, by their texts."""

    base: str
    conditions: Mapping[str, Expression]

    @classmethod
    def of(cls, source: Any) -> Rows:
        """Reads an encoded relation in normal form: there nested filters are one, and AND is flat."""
        if source.get("is") != "filter":
            return cls(text_of(source), {})
        condition = source["condition"]
        joined = condition.get("is") == "call" and condition["function"] == "and"
        parts = condition["arguments"] if joined else [condition]
        return cls(text_of(source["source"]), {text_of(part): expression(part) for part in parts})


@dataclass(frozen=True)
class StoredSums(Release):
    """Noisy sums that were released earlier. `slots`: how many earlier groups stand side by side in one group."""

    sums: Sums
    slots: int = 1

    @property
    def measure(self) -> Sums:
        return self.sums

    @property
    def each(self) -> int:
        """The number of cells in one earlier group."""
        return len(self.sums.cells)

    @property
    def cells(self) -> int:
        return self.each * self.slots

    @property
    def row(self) -> int:
        moves = zip(*(_values(cell) for cell in self.sums.cells), strict=True)
        return max(sum(map(abs, each)) for each in moves) or 1

    @property
    def signed(self) -> bool:
        return any(value < 0 for cell in self.sums.cells for value in _values(cell))

    @property
    def rows_per_unit(self) -> int:
        return self.sums.max_rows

    @property
    def words(self) -> str:
        return "stored numbers"


def _values(cell: Cell) -> tuple[int, int, int]:
    """Returns what a row adds to the cell at both ends of its grid, and if it is NULL: nothing lies beyond for sums."""
    if cell.argument is None:
        return (cell.constant,) * 3
    steps = cell.argument.steps
    return cell.constant, cell.constant + cell.linear * steps + cell.square * steps**2, cell.null


@dataclass(frozen=True)
class StoredRelease:
    """One release of a stored answer: its place among those of its part, what was added up, and its noise."""

    place: int
    sums: Sums
    mechanism: Mechanism


@dataclass(frozen=True)
class StoredPart:
    """One part of a stored answer. `entry`: of the answer in the ledger; `place`: of the part in the answer.

    `keys` and `known` are those of its groups. A total of grouping sets adds up finer groups, by the keys `finest` with the
    values `declared`: a row without a finest group is in no total. For others these are `keys` and `known`. Bounds were applied
    to the finest groups: at most `max_groups` of `all_groups`. `truth`: what was bounded, as text.
    """

    entry: int
    place: int
    rows: Rows
    unit: str | None
    keys: tuple[Expression, ...]
    known: tuple[tuple[Key, ...], ...]
    finest: tuple[Expression, ...]
    declared: tuple[tuple[Key, ...], ...]
    max_groups: int | None
    releases: tuple[StoredRelease, ...]
    truth: str

    @property
    def groups(self) -> list[tuple[Key, ...]]:
        """Its groups, in the order of the stored numbers."""
        return combinations(self.known)

    @property
    def all_groups(self) -> int:
        """How many groups there are by all keys."""
        return math.prod(map(len, self.declared))


def parts_of(entry: int, plan: str) -> Iterator[StoredPart]:
    """Yields the parts of a stored answer that can serve others; none if its plan is of another kind."""
    for place, found in enumerate(_parts(plan)):
        if found is not None:
            yield StoredPart(entry, place, *found)


@lru_cache(maxsize=64)
def _parts(plan: str) -> tuple[tuple[Any, ...] | None, ...]:
    """Returns the fields of each part, in the order of the stored numbers; None for a part that can serve no other.

    A question that chose its own bounds has none, because they are not in its plan; nor has a proposal of bounds.
    """
    try:
        read = json.loads(plan)
        if read["format"] != FORMAT:
            return ()
        if read["purpose"] == "several":
            each = [_parts(text) for text in read["programs"]]
            return tuple(part for parts in each for part in parts) if all(each) else ()
        return tuple(map(_read, read["parts"])) if read["purpose"] == "answer" else ()
    except (ValueError, KeyError, TypeError):
        return ()


def _read(part: Any) -> tuple[Any, ...] | None:
    """Returns the fields of a part behind its place; None if its keys are not declared, or if it is of another kind."""
    if set(part) - {"level"} != _FIELDS or part["shown"] is not None or (part["known"] is None and part["keys"]):
        return None
    try:
        keys = tuple(map(expression, part["keys"]))
        known = tuple(tuple(map(_key, values)) for values in part["known"] or ())
        level = range(len(keys)) if part.get("level") is None else part["level"]
        releases = tuple(_releases(part["releases"]))
        rows = Rows.of(part["source"])
    except (DitherError, ValueError, KeyError, TypeError):
        return None
    own, values = tuple(keys[place] for place in level), tuple(known[place] for place in level)
    truth = text_of([part[name] for name in ("source", "unit", "keys", "known", "max_groups")])
    return rows, part["unit"], own, values, keys, known, part["max_groups"], releases, truth


def _releases(encoded: Sequence[Any]) -> Iterator[StoredRelease]:
    """Yields the releases that are sums with noise on each number; others, such as quantiles, do not add up."""
    for place, one in enumerate(encoded):
        if set(one) == {"measure", "noise", "groups", "steps"} and one["measure"]["is"] == "sums":
            made = _mechanism(one["noise"])
            if made is not None:
                yield StoredRelease(place, sums(one["measure"]), made)


def _mechanism(record: Mapping[str, Any]) -> Mechanism | None:
    """Rebuilds the mechanism of a record, for its margins; None if it adds no noise to numbers."""
    if record["mechanism"] == Geometric.tag:
        return Geometric(epsilon=record["epsilon"], sensitivity=_norm(record["sensitivity"]))
    if record["mechanism"] == Gaussian.tag and "grid" not in record:
        return Gaussian(rho=record["rho"], sensitivity=_norm(record["sensitivity"]))
    return None


def _norm(record: Mapping[str, Any]) -> L1 | L2 | PerCoordinate:
    if record["norm"] == "PerCoordinate":
        return PerCoordinate(record["count"], record["each"])
    if record["norm"] == "L1":
        return L1(record["bound"], record.get("dimension"))
    if record["norm"] == "L2":
        return L2(record["bound"], record.get("dimension"))
    raise ValueError("another norm")


# --- nodes ------------------------------------------------------------------------------------------------------


def sums(encoded: Any) -> Sums:
    """Decodes sums."""
    where = encoded["where"]
    return Sums(tuple(map(_cell, encoded["cells"])), encoded["max_rows"], None if where is None else expression(where))


def _cell(encoded: Any) -> Cell:
    numbers = {name: int(_number(encoded[name])) for name in ("constant", "linear", "square", "null")}
    of = encoded["of"]
    if of is None:
        return Cell(None, **numbers)
    grid = Quantised(expression(of["expression"]), _number(of["low"]), _number(of["step"]), int(_number(of["steps"])))
    return Cell(grid, **numbers)


def expression(encoded: Any) -> Expression:
    """Decodes an expression.

    >>> expression(encode(Call("lt", (Column("t1.age"), Literal(Fraction(1, 2))))))
    Call(name='lt', arguments=(Column(name='t1.age', span=None), Literal(value=Fraction(1, 2), span=None)), span=None)
    """
    if encoded["is"] == "column":
        return Column(encoded["name"])
    if encoded["is"] == "call":
        return Call(encoded["function"], tuple(map(expression, encoded["arguments"])))
    return Literal(_constant(encoded))


def _constant(encoded: Any) -> Any:
    if encoded["is"] != "constant":
        raise ValueError("no constant")
    kind, value = encoded["kind"], encoded["value"]
    if kind in ("date", "timestamp"):
        made: type[datetime.date] = datetime.date if kind == "date" else datetime.datetime
        return made.fromisoformat(value)
    return int(_number(value)) if kind == "int" else _number(value) if kind == "decimal" else value


def _key(encoded: Any) -> Key:
    return as_key(literal(_constant(encoded)))


def _number(encoded: Any) -> Fraction:
    if isinstance(encoded, int):
        return Fraction(encoded)
    above, _, below = encoded["value"].partition("/")
    return Fraction(int(above, 0), int(below, 0))


def same_text(value: Expression | Quantised) -> str:
    """Returns the text of an expression or a grid in normal form, to compare it."""
    return text_of(encode(value))
