"""Made-up data and its neighbours: one unit more, one less or another in its place; ordinary or poisoned; in another order.

Data is made of units, and a unit of records; what the audited code sees is built from the records of all units. So adding a
unit, taking one away and making a pair smaller are the same few lines for lists, rows and tables.
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

from dither.errors import ArgumentError

Record = Any
Unit = tuple[Record, ...]
ADD_REMOVE, REPLACE = "add-remove", "replace"


@dataclass(frozen=True)
class Column:
    """Ordinary values and poison. `plain` are the values a shrunk example should have if it can."""

    ordinary: Callable[[random.Random], Any]
    poison: tuple[Any, ...]
    plain: tuple[Any, ...]


def _number(dice: random.Random) -> float:
    return dice.choice(
        (float(dice.randint(0, 10)), round(dice.uniform(-5, 15), 2), dice.uniform(0, 1), dice.uniform(-1e3, 1e3))
    )


_FLOATS = (math.nan, math.inf, -math.inf, sys.float_info.max, -sys.float_info.max, 1e9, -1e9, 2.0**53, 5e-324, -0.0)
_INTS = (2**63 - 1, -(2**63), 2**62, 2**31 - 1, -(2**31), 10**9, -(10**9), 2**53 + 1)
NUMBER = Column(_number, _FLOATS, (0.0, 1.0, 10.0, 100.0, 1000.0))
NULLABLE = Column(_number, (None, *_FLOATS), (0.0, 1.0, 10.0, 100.0, 1000.0))
INTEGER = Column(lambda dice: dice.randint(-5, 15), _INTS, (0, 1, 10, 100))
WORD = Column(lambda dice: dice.choice("abcd"), ("zz", "", "a ", "A", None, "x" * 10_000, "\u0061\u0301"), ("a",))


@dataclass(frozen=True)
class Pair:
    """What both datasets have, what each has alone (None: nothing), where that stands, and how D′ is ordered."""

    both: tuple[Unit, ...]
    one: Unit | None
    two: Unit | None
    place: int = 0
    order: int = 0  # 0: as it comes; otherwise the seed of a shuffle of D′
    how: str = ""


class Source(Protocol):
    """Something pairs come from."""

    @property
    def name(self) -> str: ...

    def pair(self, dice: random.Random) -> Any: ...

    def built(self, pair: Any) -> tuple[Any, Any]: ...

    def smaller(self, pair: Any) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Records:
    """Data of independent units. `columns` with one entry named "" makes bare values instead of rows."""

    name: str
    columns: Mapping[str, Column]
    build: Callable[[list[Record]], Any]
    neighbours: str = ADD_REMOVE
    unit: str = ""  # the column that says whose row it is; without one every row is its own unit
    ordered: bool = False  # whether the order of the data is public, so that it must not be shuffled
    units: int = 8
    heavy: int = 40
    poisoned: bool = True

    def pair(self, dice: random.Random) -> Pair:
        size = dice.choice((0, 1, 2, 3, 5, self.units))
        both = tuple(self._unit(dice, place, self.poisoned and dice.random() < 0.05) for place in range(size))
        kinds = (
            ("ordinary", "poison", "heavy", "double", "moved", "crowd") if self.poisoned else ("ordinary", "double", "moved")
        )
        how = dice.choice([kind for kind in kinds if kind != "heavy" or self.unit])
        extra = both[0] if how == "double" and both and not self.unit else self._unit(dice, len(both), how == "poison")
        if how == "crowd":  # several of one poisoned kind: sums that overflow, wrap or saturate
            extra = self._unit(dice, len(both), True)
            both = tuple(extra if dice.random() < 0.5 else unit for unit in both) if not self.unit else both
        if how == "heavy":
            extra = tuple(record for _ in range(self.heavy) for record in self._unit(dice, len(both), False))
        other = self._unit(dice, len(both), False) if self.neighbours == REPLACE else None
        order = dice.randint(1, 2**31) if not self.ordered and (how == "moved" or dice.random() < 0.2) else 0
        if how == "moved" and dice.random() < 0.5:
            return Pair((*both, extra), None, None, 0, order, how)
        sides = (other, extra) if dice.random() < 0.5 else (extra, other)
        return Pair(both, sides[0], sides[1], dice.randint(0, len(both)), order, how)

    def corners(self, dice: random.Random) -> Iterator[Pair]:
        """One ordinary unit, and beside it on one side a unit with each poison in turn."""
        for name, column in self.columns.items() if self.poisoned else ():
            for value in column.poison:
                record = self._record(dice, 1, False)
                extra = ({**record, name: value} if name else value,)
                other = self._unit(dice, 1, False) if self.neighbours == REPLACE else None
                yield Pair((self._unit(dice, 0, False),), extra, other, 1, 0, "poison")

    def _unit(self, dice: random.Random, place: int, poison: bool) -> Unit:
        size = dice.randint(1, 3) if self.unit else 1
        return tuple(self._record(dice, place, poison) for _ in range(size))

    def _record(self, dice: random.Random, place: int, poison: bool) -> Record:
        hit = dice.choice(list(self.columns)) if poison else None
        values = {
            name: dice.choice(column.poison) if name == hit else column.ordinary(dice) for name, column in self.columns.items()
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
        """Fewer units first, then fewer records of the units that differ, then plainer values."""
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
                        break  # what comes after is less plain
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
class Answers:
    """Answers to several questions, each of which one unit moves by at most 1: the input of noisy max and sparse vector."""

    name: str = "answers"
    most: int = 6

    def pair(self, dice: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
        one = tuple(dice.randint(0, 4) for _ in range(dice.randint(1, self.most)))
        steps = dice.choice(((0, 1), (-1, 0), (-1, 0, 1), (-1, 1)))
        return one, tuple(value + dice.choice(steps) for value in one)

    def built(self, pair: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[Any, Any]:
        return list(pair[0]), list(pair[1])

    def smaller(self, pair: tuple[tuple[int, ...], tuple[int, ...]]) -> Iterator[Any]:
        one, two = pair
        for i in range(len(one)):
            if len(one) > 1:
                yield one[:i] + one[i + 1 :], two[:i] + two[i + 1 :]
            if one[i] != two[i]:
                yield one, (*two[:i], one[i], *two[i + 1 :])
            low = min(one[i], two[i])
            if low:
                yield (*one[:i], one[i] - low, *one[i + 1 :]), (*two[:i], two[i] - low, *two[i + 1 :])


@dataclass(frozen=True)
class Given:
    """Pairs that the caller makes: a list of them, or a function of a random.Random. They are not made smaller."""

    make: Callable[[random.Random], tuple[Any, Any]] | Sequence[tuple[Any, Any]]
    name: str = "given"
    turn: list[int] = field(default_factory=lambda: [0])

    def pair(self, dice: random.Random) -> tuple[Any, Any]:
        if callable(self.make):
            one, two = self.make(dice)
            return one, two
        self.turn[0] += 1
        one, two = self.make[(self.turn[0] - 1) % len(self.make)]
        return one, two

    def built(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return copy.deepcopy(pair)  # code may change what it is given, and the next run must not see it

    def smaller(self, pair: tuple[Any, Any]) -> Iterator[Any]:
        return iter(())


def _histogram(bins: Sequence[str]) -> Callable[[list[Record]], list[int]]:
    return lambda records: [records.count(name) for name in bins]


def _table(columns: Sequence[str]) -> Callable[[list[Record]], dict[str, list[Any]]]:
    return lambda records: {name: [record[name] for record in records] for name in columns}


def source(name: str, neighbours: str = ADD_REMOVE, ordered: bool = False, unit: str = "unit") -> Source:
    """Data by its name.

    >>> source("numbers").name
    'numbers'
    """
    rows = {"key": WORD, "value": NULLABLE}
    whose = [unit] if unit else []
    bins = Column(lambda dice: dice.choice("abcd"), ("a",), ("a",))
    made: dict[str, Callable[[], Source]] = {
        "numbers": lambda: Records(name, {"": NUMBER}, list, neighbours, "", ordered),
        "array": lambda: Records(name, {"": NUMBER}, lambda r: np.array(r, dtype=np.float64), neighbours, "", ordered),
        "integers": lambda: Records(name, {"": INTEGER}, list, neighbours, "", ordered),
        "words": lambda: Records(name, {"": WORD}, list, neighbours, "", ordered),
        "counts": lambda: Records(name, {"": bins}, _histogram("abcd"), neighbours, "", True, poisoned=False),
        "rows": lambda: Records(name, rows, list, neighbours, unit, ordered),
        "table": lambda: Records(name, rows, _table([*whose, *rows]), neighbours, unit, ordered),
        "answers": Answers,
    }
    if neighbours not in (ADD_REMOVE, REPLACE):
        raise ArgumentError(f"neighbours cannot be {neighbours!r}.", fix=f"write {ADD_REMOVE!r} or {REPLACE!r}.")
    if name not in made:
        raise ArgumentError(f"no data is called {name!r}.", fix=f"write one of {', '.join(made)}, or pass a source of pairs.")
    return made[name]()
