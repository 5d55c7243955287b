"""Generates data and its neighbours: one unit more, one less or replaced; ordinary or poisoned; in another order.

Data consists of units, and a unit of records. `build` makes the audited code's input from the records of all units. So adding
a unit, removing one and making a pair smaller are the same few lines for lists, rows and tables.
"""

from __future__ import annotations

import copy
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from dither.audit.replay.values import Answers, Counts, Items, bit_rows
from dither.audit.signature import Hints
from dither.errors import ArgumentError

Record = Any
Unit = tuple[Record, ...]
ADD_REMOVE, REPLACE = "add-remove", "replace"
_CALM = ("ordinary", "double", "moved")  # how the two sides of a pair differ
_POISONED = ("ordinary", "poison", "heavy", "double", "moved", "crowd")


@dataclass(frozen=True)
class Column:
    """How to make values: ordinary ones, poison, and `plain` ones, which shrinking prefers."""

    ordinary: Callable[[random.Random], Any]
    poison: tuple[Any, ...]
    plain: tuple[Any, ...]


def _number(rng: random.Random) -> float:
    return rng.choice((float(rng.randint(0, 10)), round(rng.uniform(-5, 15), 2), rng.uniform(0, 1), rng.uniform(-1e3, 1e3)))


_FLOATS = (math.nan, math.inf, -math.inf, sys.float_info.max, -sys.float_info.max, 1e9, -1e9, 2.0**53, 5e-324, -0.0)
_INTS = (2**63 - 1, -(2**63), 2**62, 2**31 - 1, -(2**31), 10**9, -(10**9), 2**53 + 1)
NUMBER = Column(_number, _FLOATS, (0.0, 1.0, 10.0, 100.0, 1000.0))
NULLABLE = Column(_number, (None, *_FLOATS), (0.0, 1.0, 10.0, 100.0, 1000.0))
INTEGER = Column(lambda rng: rng.randint(-5, 15), _INTS, (0, 1, 10, 100))
WORD = Column(lambda rng: rng.choice("abcd"), ("zz", "", "a ", "A", None, "x" * 10_000, "\u0061\u0301"), ("a",))


@dataclass(frozen=True)
class Pair:
    """Units of both datasets, the unit that each has alone (None: none), its place, and the order of D′."""

    both: tuple[Unit, ...]
    one: Unit | None
    two: Unit | None
    place: int = 0
    order: int = 0  # 0: unchanged; otherwise the seed of a shuffle of D′
    how: str = ""


class Source(Protocol):
    """A source of neighbouring pairs."""

    @property
    def name(self) -> str: ...

    def standard(self) -> Iterator[Any]:
        """Yields systematic pairs, the most telling first."""
        ...

    def pair(self, rng: random.Random) -> Any: ...

    def built(self, pair: Any) -> tuple[Any, Any]: ...

    def smaller(self, pair: Any) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Records:
    """Data of independent units. `columns` with a single entry "" makes bare values instead of rows."""

    name: str
    columns: Mapping[str, Column]
    build: Callable[[list[Record]], Any]
    neighbours: str = ADD_REMOVE
    unit: str = ""  # the column that names the owner of a row; without it every row is its own unit
    ordered: bool = False  # the order of the data is public and must not be shuffled
    units: int = 8
    heavy: int = 40
    poisoned: bool = True
    sizes: tuple[int, ...] = ()  # numbers of records at which the code may change its behaviour

    def standard(self) -> Iterator[Pair]:
        """Yields one record more or less: of a kind of their own, of the same kind, and at each of the sizes."""
        for place, (name, column) in enumerate(self.columns.items()):
            for value in column.plain[:8]:
                rng = random.Random(place)
                one = self._plain(rng, 0, name, value)
                other = self._plain(rng, 1, name, column.plain[0]) if self.neighbours == REPLACE else None
                yield Pair((), one, other)
                yield Pair((one,), self._plain(rng, 1, name, value), other, 1)
                yield Pair((self._plain(rng, 0, name, column.plain[0]),) * 3, self._plain(rng, 3, name, value), other, 3)
        for size in dict.fromkeys((*self.sizes, 3, 12)):
            every = [self._plain(random.Random(0), place, "", None) for place in range(size + 1)]
            other = self._plain(random.Random(1), size, "", None) if self.neighbours == REPLACE else None
            yield Pair(tuple(every[:size]), every[size], other, size)

    def _plain(self, rng: random.Random, place: int, name: str, value: Any) -> Unit:
        """Returns a unit of one record with plain values, and with `value` in the named column."""
        first = {each: column.plain[min(1, len(column.plain) - 1)] for each, column in self.columns.items()}
        record = {**first, **({name: value} if value is not None else {})}
        if "" in record:
            return (record[""],)
        return ({self.unit: place, **record} if self.unit else record,)

    def pair(self, rng: random.Random) -> Pair:
        size = rng.choice((0, 1, 2, 3, 5, self.units))
        both = tuple(self._unit(rng, place, self.poisoned and rng.random() < 0.05) for place in range(size))
        how = rng.choice([kind for kind in (_POISONED if self.poisoned else _CALM) if kind != "heavy" or self.unit])
        both, extra = self._extra(rng, both, how)
        other = self._unit(rng, len(both), False) if self.neighbours == REPLACE else None
        order = rng.randint(1, 2**31) if not self.ordered and (how == "moved" or rng.random() < 0.2) else 0
        if how == "moved" and rng.random() < 0.5:
            return Pair((*both, extra), None, None, 0, order, how)
        sides = (other, extra) if rng.random() < 0.5 else (extra, other)
        return Pair(both, sides[0], sides[1], rng.randint(0, len(both)), order, how)

    def _extra(self, rng: random.Random, both: tuple[Unit, ...], how: str) -> tuple[tuple[Unit, ...], Unit]:
        """Returns the common units and the unit that only one side has."""
        if how == "double" and both and not self.unit:
            return both, both[0]
        extra = self._unit(rng, len(both), how == "poison")
        if how == "crowd":  # several of one poisoned kind: sums that overflow, wrap or saturate
            extra = self._unit(rng, len(both), True)
            both = tuple(extra if rng.random() < 0.5 else unit for unit in both) if not self.unit else both
        if how == "heavy":
            extra = tuple(record for _ in range(self.heavy) for record in self._unit(rng, len(both), False))
        return both, extra

    def corners(self, rng: random.Random) -> Iterator[Pair]:
        """Yields one ordinary unit and, on one side, a unit with each poison in turn."""
        for name, column in self.columns.items() if self.poisoned else ():
            for value in column.poison:
                record = self._record(rng, 1, False)
                extra = ({**record, name: value} if name else value,)
                other = self._unit(rng, 1, False) if self.neighbours == REPLACE else None
                yield Pair((self._unit(rng, 0, False),), extra, other, 1, 0, "poison")

    def _unit(self, rng: random.Random, place: int, poison: bool) -> Unit:
        size = rng.randint(1, 3) if self.unit else 1
        return tuple(self._record(rng, place, poison) for _ in range(size))

    def _record(self, rng: random.Random, place: int, poison: bool) -> Record:
        hit = rng.choice(list(self.columns)) if poison else None
        values = {
            name: rng.choice(column.poison) if name == hit else column.ordinary(rng) for name, column in self.columns.items()
        }
        if "" in values:
            return values[""]
        return {self.unit: place, **values} if self.unit else values

    def built(self, pair: Pair) -> tuple[Any, Any]:
        sides = []
        for extra in (pair.one, pair.two):
            units = [*pair.both[: pair.place], *([extra] if extra is not None else []), *pair.both[pair.place :]]
            sides.append([_copied(record) for unit in units for record in unit])
        if pair.order:
            random.Random(pair.order).shuffle(sides[1])
        return self.build(sides[0]), self.build(sides[1])

    def smaller(self, pair: Pair) -> Iterator[Pair]:
        """Yields fewer units first, then fewer records of the units that differ, then plainer values."""
        both = pair.both
        if len(both) > 3:
            yield replace(pair, both=both[: len(both) // 2], place=0)
            yield replace(pair, both=both[len(both) // 2 :], place=0)
        for i in range(len(both)):
            yield replace(pair, both=both[:i] + both[i + 1 :], place=min(pair.place, len(both) - 1))
        if pair.order:
            yield replace(pair, order=0)
        for side in ("one", "two"):
            unit = getattr(pair, side)
            yield from (_with(pair, side, fewer) for fewer in _fewer(unit or ()))
        for i, unit in enumerate(both):
            yield from (replace(pair, both=(*both[:i], new, *both[i + 1 :])) for new in self._plainer(unit))
        for side in ("one", "two"):
            yield from (_with(pair, side, new) for new in self._plainer(getattr(pair, side) or ()))

    def _plainer(self, unit: Unit) -> Iterator[Unit]:
        for i, record in enumerate(unit[:4]):
            for name, column in self.columns.items():
                old = record[name] if name else record
                for value in column.plain:
                    if repr(value) == repr(old):
                        break  # the values after it are less plain
                    new = {**record, name: value} if name else value
                    yield (*unit[:i], new, *unit[i + 1 :])


def _with(pair: Pair, side: str, unit: Unit) -> Pair:
    return replace(pair, one=unit) if side == "one" else replace(pair, two=unit)


def _fewer(unit: Unit) -> Iterator[Unit]:
    if len(unit) > 1:
        yield unit[: len(unit) // 2]
        yield unit[len(unit) // 2 :]
        yield unit[1:]


def _copied(record: Record) -> Record:
    return dict(record) if isinstance(record, dict) else record


@dataclass(frozen=True)
class Given:
    """Pairs from the caller: a list, or a function of a random.Random. They are not made smaller."""

    make: Callable[[random.Random], tuple[Any, Any]] | Sequence[tuple[Any, Any]]
    name: str = "given"
    turn: list[int] = field(default_factory=lambda: [0])

    def standard(self) -> Iterator[tuple[Any, Any]]:
        if not callable(self.make):
            yield from ((one, two) for one, two in self.make)

    def pair(self, rng: random.Random) -> tuple[Any, Any]:
        if callable(self.make):
            one, two = self.make(rng)
            return one, two
        self.turn[0] += 1
        one, two = self.make[(self.turn[0] - 1) % len(self.make)]
        return one, two

    def built(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return copy.deepcopy(pair)  # the function may change its input, and the next run must not see that

    def smaller(self, pair: tuple[Any, Any]) -> Iterator[Any]:
        return iter(())


def _histogram(bins: Sequence[str]) -> Callable[[list[Record]], list[int]]:
    return lambda records: [records.count(name) for name in bins]


def _table(columns: Sequence[str]) -> Callable[[list[Record]], dict[str, list[Any]]]:
    return lambda records: {name: [record[name] for record in records] for name in columns}


def _near(numbers: Sequence[float]) -> tuple[float, ...]:
    """Returns each number with its surroundings: code changes its behaviour at its constants."""
    return tuple(dict.fromkeys(near for one in numbers for near in (one, one + 1, one - 1, -one, 2 * one, one / 2)))


def _widened(column: Column, values: Sequence[Any]) -> Column:
    """Returns the column with further values among the ordinary ones."""
    if not values:
        return column
    chosen = tuple(values)

    def ordinary(rng: random.Random) -> Any:
        return rng.choice(chosen) if rng.random() < 0.4 else column.ordinary(rng)

    return Column(ordinary, column.poison, tuple(dict.fromkeys((*column.plain[:2], *chosen[:24], *column.plain[2:]))))


def numbers_near(hints: Hints) -> Column:
    """Returns a column of real numbers on and beside the constants of the code, with NULL if the code mentions None."""
    return _widened(NULLABLE if hints.none else NUMBER, _near(hints.numbers))


def words_near(hints: Hints) -> Column:
    return _widened(WORD, hints.words)


def whole_near(hints: Hints) -> Column:
    return _widened(INTEGER, [int(one) for one in _near(hints.numbers) if one == int(one)])


KINDS = ("numbers", "array", "integers", "words", "counts", "rows", "table", "answers", "count", "bit", "item", "bits")


def source(
    name: str, neighbours: str = ADD_REMOVE, ordered: bool = False, unit: str = "unit", hints: Hints | None = None
) -> Source:
    """Returns the source of data with that name. `hints` are constants of the audited code, to generate values beside them.

    >>> source("numbers").name
    'numbers'
    """
    if neighbours not in (ADD_REMOVE, REPLACE):
        raise ArgumentError(f"neighbours cannot be {neighbours!r}.", fix=f"write {ADD_REMOVE!r} or {REPLACE!r}.")
    known = hints or Hints()
    bins = Column(lambda rng: rng.choice("abcd"), ("a",), ("a", "b"))
    whole = tuple(int(one) for one in known.numbers if one == int(one))
    sizes = tuple(dict.fromkeys(near for one in whole if 1 < one <= 300 for near in (one, one - 1)))[:8]
    rows = {"key": words_near(known), "value": _widened(NULLABLE, _near(known.numbers))}

    def records(columns: Mapping[str, Column], build: Callable[[list[Record]], Any], owner: str = "") -> Source:
        return Records(name, columns, build, neighbours, owner, ordered, sizes=sizes)

    sources: dict[str, Callable[[], Source]] = {
        "numbers": lambda: records({"": numbers_near(known)}, list),
        "array": lambda: records({"": _widened(NUMBER, _near(known.numbers))}, lambda r: np.array(r, dtype=np.float64)),
        "integers": lambda: records({"": whole_near(known)}, list),
        "words": lambda: records({"": words_near(known)}, list),
        "counts": lambda: Records(name, {"": bins}, _histogram("abcd"), neighbours, "", True, poisoned=False),
        "rows": lambda: records(rows, list, unit),
        "table": lambda: records(rows, _table([*([unit] if unit else []), *rows]), unit),
        "answers": lambda: Answers(places=whole),
        "count": lambda: Counts(whole),
        "bit": lambda: Items((0, 1), name),
        "item": lambda: Items(known.words if len(known.words) > 1 else tuple(range(8)), name),
        "bits": lambda: Items(bit_rows(known.width or 2), name),
    }
    if name not in sources:
        raise ArgumentError(
            f"no data is called {name!r}.", fix=f"write one of {', '.join(sources)}, or pass a source of pairs."
        )
    return sources[name]()
