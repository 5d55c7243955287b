"""Neighbouring tables by the dozen: every choice among a few people is a table, and those one unit apart are neighbours.

One more or one less: with d people who may or may not be there, 2^d tables have d 2^(d-1) neighbouring pairs. Replaced: with
j of d people there, every two tables that differ in one person are a pair. Every table has its rows in another order, and one
is asked about twice, in two orders: that pair must not differ at all. The table without any of them comes first; all
mechanisms are frozen to what they gave for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from dither.audit.ourselves.catalogs import World
from dither.audit.ourselves.compare import Moved, leaks, moves
from dither.audit.ourselves.harness import CRASHED, Room
from dither.audit.ourselves.observe import Seen
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.survey import Person

Table = frozenset[int]
PRICES: tuple[tuple[Any, Any], ...] = ((1, "1e-6"), (2, "1e-6"), ("1/10", "1e-9"), (1, 0), (8, "1e-9"), (1, None))
REFUSED: tuple[tuple[Any, Any], ...] = ((10**9, 0), (0, 0), (-1, 0), (float("nan"), 0), (1, 2), ("1e-400", 0))
FAILED = ("EngineError", CRASHED)  # no row may make the engine fail: what would fail on any rows is refused before
LEGAL = 40  # so many questions are made up at most until one is legal


@dataclass(frozen=True)
class Case:
    """A world, the people who are always there, those who may be, and a question with its price."""

    world: World
    always: tuple[Person, ...]
    perhaps: tuple[Person, ...]
    question: Parts
    price: tuple[Any, Any]

    @property
    def everyone(self) -> tuple[Person, ...]:
        return (*self.perhaps, *self.always)

    def tables(self) -> list[Table]:
        """Who of `perhaps` is there, in each table; nobody comes first."""
        size, everyone = len(self.perhaps), range(len(self.perhaps))
        sizes = (0, max(1, min(2, size - 1))) if self.world.replace else range(size + 1)
        return [frozenset(chosen) for many in sizes for chosen in combinations(everyone, many)]

    def neighbours(self) -> Iterator[tuple[Table, Table]]:
        """Pairs of tables that differ in one person."""
        return (pair for pair in combinations(self.tables(), 2) if self.near(*pair))

    def near(self, one: Table, two: Table) -> bool:
        """Whether these two tables are neighbours."""
        if self.world.replace:
            return len(one ^ two) == 2 and len(one) == len(two)
        return len(one ^ two) == 1


@dataclass(frozen=True)
class Finding:
    """What differs between two neighbouring tables although it must not. `share`: how much of the price, 1 being all."""

    case: Case
    pair: tuple[Table, Table]
    words: tuple[str, ...]
    share: float
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """One case from end to end: how many pairs were compared, how many tables asked about, how near the price they came."""

    pairs: int
    tables: int
    answered: bool
    reached: float
    moved: int
    finding: Finding | None = None


def compare(room: Room, case: Case, dice: random.Random) -> Compared:
    """Every neighbouring pair of the case. The first finding ends it."""
    seen: dict[Table, Seen] = {}
    finding = _asked(room, case, dice, seen)
    pairs, reached, moved = [], 0.0, 0
    for one, two in case.neighbours() if finding is None else ():
        found = list(moves(seen[one], seen[two]))
        pairs.append((one, two))
        moved += any(move.by for move in found)
        reached = max([reached, *(move.share for move in found)])
        if wrong := _too_far(found):
            finding = Finding(case, (one, two), *wrong)
            break
    answered = any(each.answer is not None for each in seen.values())
    return Compared(len(pairs) + 1, len(seen) + 1, answered, reached, moved, finding)


def _asked(room: Room, case: Case, dice: random.Random, seen: dict[Table, Seen]) -> Finding | None:
    """Asks about every table, the last one twice. Whatever differs although the mechanisms are frozen is a finding."""
    tables, text, always = case.tables(), str(case.question), range(len(case.perhaps), len(case.everyone))
    start = tables[1 if case.world.replace else 0]  # nobody at all is not a neighbour of those with somebody replaced
    room.forget()
    for number, table in enumerate([*tables, tables[-1]]):
        again = number == len(tables)
        if again:
            room.forget()  # planning must not have learnt anything from the rows
        room.put([*table, *always], dice, anew=again)
        now = room.ask(text, case.price, seen[tables[0]].trace if seen else None)
        if not seen and now.status.startswith(FAILED):
            return _failing(room, case, dice)
        before = seen.get(start, now)
        words = leaks(before, now) if not case.world.replace or table else []
        if again and _sorted(seen[table]) != _sorted(now):
            words.append("the order of rows")
        if words:
            near = table if again else next((one for one in seen if case.near(one, table)), table)
            return Finding(case, (near, table), tuple(words), float("inf"), tuple(_ends(before, now)))
        seen.setdefault(table, now)
    return None


def _failing(room: Room, case: Case, dice: random.Random) -> Finding:
    """The rows that are always there make the engine fail: whose are they? One person after the other comes in."""
    before: Seen | None = None
    for number, person in enumerate([{}, *case.everyone]):
        room.put(range(number), dice)
        now = room.ask(str(case.question), case.price, before.trace if before else None)
        if before is not None and now.status != before.status:
            alone = replace(case, always=case.everyone[: number - 1], perhaps=(person, {}))
            return Finding(alone, (frozenset({1}), frozenset({0})), ("status",), float("inf"), tuple(_ends(before, now)))
        before = now
    nobody = frozenset[int]()
    words = ("it fails whatever the rows are",)
    return Finding(replace(case, always=()), (nobody, nobody), words, float("inf"), (now.status,))


Judged = tuple[tuple[str, ...], float, tuple[str, ...]]  # what differs, as a share of the price, and in figures


def judge(before: Seen, after: Seen, *, alike: bool = False) -> Judged | None:
    """What is wrong with one pair, if anything; the second was frozen to the first. `alike`: they differ in order only."""
    words = leaks(before, after)
    if alike and _sorted(before) != _sorted(after):
        words.append("the order of rows")
    if words:
        return tuple(words), float("inf"), tuple(_ends(before, after))
    return _too_far(list(moves(before, after)))


def _too_far(found: list[Moved]) -> Judged | None:
    wrong = [move for move in found if move.by > move.most]
    if not wrong:
        return None
    return tuple(move.words for move in wrong), max(move.share for move in wrong), tuple(map(_told, wrong))


def _sorted(seen: Seen) -> list[str]:
    """The integers, in an order of their own."""
    plain = [(g.key, g.units, [sorted(m.items()) if isinstance(m, dict) else m for m in g.measures]) for g in seen.groups]
    return sorted(map(repr, plain))


def _told(move: Moved) -> str:
    return f"{move.words} = {move.by}, priced for {move.most}"


def _ends(one: Seen, two: Seen) -> Iterator[str]:
    """How the two ended, where that is what differs."""
    if one.status != two.status:
        yield f"without: {' '.join(one.status.split())}"
        yield f"with: {' '.join(two.status.split())}"


# --- made up ----------------------------------------------------------------------------------------------------


def people(world: World, dice: random.Random) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
    """Who is always there, and who may be."""
    always = tuple(world.person(number, dice) for number in range(1, 1 + dice.choice([0, 1, 3, 6])))
    size = dice.choice([5, 6]) if world.replace else dice.choice([4, 5, 5])
    return always, tuple(world.person(70 + number, dice) for number in range(size))


def question(room: Room, dice: random.Random) -> tuple[Parts, tuple[Any, Any]]:
    """Mostly a legal one; now and then any question, or one that the budget or good sense forbids."""
    maker, kind = room.world.maker(dice.randrange(2**32)), dice.random()
    if kind < 0.03:
        return maker.parts(1.0), dice.choice(PRICES)
    if kind < 0.05:
        return maker.parts(0.0), dice.choice(REFUSED)
    price = dice.choice(PRICES)
    for _ in range(LEGAL):
        made = maker.parts(0.05)
        if room.planned(str(made), price):
            return made, price
    return made, price
