"""Compares dozens of neighbouring tables at once: every subset of a few people is a table.

Add-remove: d people who may or may not be there give 2^d tables and d 2^(d-1) neighbouring pairs. Replace: with j of d people
there, every two tables that differ in one person are a pair. Every table has its rows in another order. One table is asked
about twice, in two orders, and that pair must not differ at all. The table without any of these people comes first; all
mechanisms are frozen to their outputs for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

from dither.audit.ourselves.catalogs import CatalogSetup
from dither.audit.ourselves.compare import Move, leaks, moves
from dither.audit.ourselves.harness import CRASHED, Harness
from dither.audit.ourselves.observe import Observation
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.survey import Person

Table = frozenset[int]
PRICES: tuple[tuple[Any, Any], ...] = ((1, "1e-6"), (2, "1e-6"), ("1/10", "1e-9"), (1, 0), (8, "1e-9"), (1, None))
REFUSED: tuple[tuple[Any, Any], ...] = ((10**9, 0), (0, 0), (-1, 0), (float("nan"), 0), (1, 2), ("1e-400", 0))
FAILED = ("EngineError", CRASHED)  # no row may make the engine fail: a question that fails on some rows must be refused
CROWDED = 0.04  # the share of cases with a thousand rows and more
SAMPLED = 0.12  # the share of questions on a secret sample
RESPELLED = 0.1  # the share of questions that spell names in another case
LEGAL = 40  # questions generated at most until one is legal


@dataclass(frozen=True)
class Case:
    """A catalog, the people who are always there, those who may be, and a question with its price."""

    setup: CatalogSetup
    always: tuple[Person, ...]
    perhaps: tuple[Person, ...]
    question: Parts
    price: tuple[Any, Any]
    bounds: tuple[Any, Any] = (None, None)  # max_rows and max_groups of the question
    sample: str | None = None  # the question looks at a secret sample: each person is in it with this probability

    @property
    def everyone(self) -> tuple[Person, ...]:
        return (*self.perhaps, *self.always)

    def tables(self) -> list[Table]:
        """Returns who of `perhaps` is in each table; the table with none of them comes first."""
        size, everyone = len(self.perhaps), range(len(self.perhaps))
        sizes = (0, max(1, min(2, size - 1))) if self.setup.replace else range(size + 1)
        return [frozenset(chosen) for many in sizes for chosen in combinations(everyone, many)]

    def neighbours(self) -> Iterator[tuple[Table, Table]]:
        """Returns the pairs of tables that differ in one person."""
        return (pair for pair in combinations(self.tables(), 2) if self.near(*pair))

    def near(self, one: Table, two: Table) -> bool:
        """Tells whether these two tables are neighbours."""
        if self.setup.replace:
            return len(one ^ two) == 2 and len(one) == len(two)
        return len(one ^ two) == 1


@dataclass(frozen=True)
class Finding:
    """A forbidden difference between two neighbouring tables. `share`: as a share of the price, 1 is all of it."""

    case: Case
    pair: tuple[Table, Table]
    words: tuple[str, ...]
    share: float
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The result of one case. `reached` is the largest move as a share of the price."""

    pairs: int
    tables: int
    answered: bool
    reached: float
    moved: int
    finding: Finding | None = None


def compare(harness: Harness, case: Case, rng: random.Random) -> Comparison:
    """Compares every neighbouring pair of the case, up to the first finding."""
    observed: dict[Table, Observation] = {}
    finding = _observe_tables(harness, case, rng, observed)
    pairs, reached, moved = [], 0.0, 0
    for one, two in case.neighbours() if finding is None else ():
        distances = list(moves(observed[one], observed[two]))
        pairs.append((one, two))
        moved += any(move.by for move in distances)
        reached = max([reached, *(move.share for move in distances)])
        if wrong := excess(distances):
            finding = Finding(case, (one, two), *wrong)
            break
    answered = any(each.answer is not None for each in observed.values())
    return Comparison(len(pairs) + 1, len(observed) + 1, answered, reached, moved, finding)


def _observe_tables(harness: Harness, case: Case, rng: random.Random, observed: dict[Table, Observation]) -> Finding | None:
    """Asks about every table, the last one twice. Any difference with frozen mechanisms is a finding."""
    tables, text, always = case.tables(), str(case.question), range(len(case.perhaps), len(case.everyone))
    start = tables[1 if case.setup.replace else 0]  # with `replace`, the table with none of them has no neighbours
    harness.forget_plans()
    for number, table in enumerate([*tables, tables[-1]]):
        again = number == len(tables)
        if again:
            harness.forget_plans()  # planning must not depend on the rows
        harness.fill([*table, *always], rng, reorder=again)
        like = observed[tables[0]].trace if observed else None
        now = harness.ask(text, case.price, like, case.bounds, case.sample)
        if not observed and now.status.startswith(FAILED):
            return _find_failing_person(harness, case, rng)
        before = observed.get(start, now)
        words = leaks(before, now) if not case.setup.replace or table else []
        if again and _sorted(observed[table]) != _sorted(now):
            words.append("the order of rows")
        if words:
            near = table if again else next((one for one in observed if case.near(one, table)), table)
            return Finding(case, (near, table), tuple(words), float("inf"), tuple(_statuses(before, now)))
        observed.setdefault(table, now)
    return None


def _find_failing_person(harness: Harness, case: Case, rng: random.Random) -> Finding:
    """Adds one person after the other, to find whose rows make the engine fail."""
    before: Observation | None = None
    for number, person in enumerate([{}, *case.everyone]):
        harness.fill(range(number), rng)
        like = before.trace if before else None
        now = harness.ask(str(case.question), case.price, like, case.bounds, case.sample)
        if before is not None and now.status != before.status:
            alone = replace(case, always=case.everyone[: number - 1], perhaps=(person, {}))
            return Finding(alone, (frozenset({1}), frozenset({0})), ("status",), float("inf"), tuple(_statuses(before, now)))
        before = now
    nobody = frozenset[int]()
    words = ("it fails whatever the rows are",)
    return Finding(replace(case, always=()), (nobody, nobody), words, float("inf"), (now.status,))


Violation = tuple[tuple[str, ...], float, tuple[str, ...]]  # what differs, its share of the price, and details


def judge(before: Observation, after: Observation, *, alike: bool = False) -> Violation | None:
    """Returns what is wrong with one pair, if anything. The second run was frozen to the first. `alike`: only order differs."""
    words = leaks(before, after)
    if alike and _sorted(before) != _sorted(after):
        words.append("the order of rows")
    if words:
        return tuple(words), float("inf"), tuple(_statuses(before, after))
    return excess(list(moves(before, after)))


def excess(distances: list[Move]) -> Violation | None:
    """Returns the moves that are farther than was priced."""
    wrong = [move for move in distances if move.by > move.most]
    if not wrong:
        return None
    return tuple(move.words for move in wrong), max(move.share for move in wrong), tuple(map(_show_move, wrong))


def _sorted(observed: Observation) -> list[str]:
    """Returns the integers in a fixed order."""
    groups = [*observed.groups, *(group for _, each in observed.others for group in each)]
    plain = [(g.key, g.units, [sorted(m.items()) if isinstance(m, Mapping) else m for m in g.measures]) for g in groups]
    return sorted(map(repr, plain))


def _show_move(move: Move) -> str:
    return f"{move.words} = {move.by}, priced for {move.most}"


def _statuses(one: Observation, two: Observation) -> Iterator[str]:
    """Yields the two statuses, if they differ."""
    if one.status != two.status:
        yield f"without: {' '.join(one.status.split())}"
        yield f"with: {' '.join(two.status.split())}"


# --- generated ----------------------------------------------------------------------------------------------------


def any_people(setup: CatalogSetup, rng: random.Random) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
    """Generates the people who are always there, and those who may be. Now and then there are a thousand rows and more."""
    if rng.random() < CROWDED:
        return crowd(setup, rng)
    always = tuple(setup.person(number, rng) for number in range(1, 1 + rng.choice([0, 1, 3, 6])))
    size = rng.choice([5, 6]) if setup.replace else rng.choice([4, 5, 5])
    return always, tuple(setup.person(70 + number, rng) for number in range(size))


def crowd(setup: CatalogSetup, rng: random.Random) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
    """Generates a thousand rows and more, and one person with hundreds who may be there: small tables hide wrong rounding."""
    always: list[Person] = []
    while sum(len(rows) for person in always for rows in person.values()) < 1000:
        always.append(setup.person(1000 + len(always), rng))
    perhaps = [setup.person(70 + number, rng) for number in range(4)]
    heavy = max(perhaps, key=lambda person: sum(map(len, person.values())))
    place = perhaps.index(heavy)
    if not any(setup.is_single(name) for name in heavy):
        perhaps[place] = {name: [dict(row) for row in rows for _ in range(25)] for name, rows in heavy.items()}
    return tuple(always), tuple(perhaps)


def any_bounds(rng: random.Random) -> tuple[Any, Any]:
    """Generates bounds of a question: mostly the catalog's, now and then a number, or those that the question chooses."""
    if rng.random() < 0.7:
        return None, None
    return rng.choice([None, None, 1, 3, "auto", "auto"]), rng.choice([None, 1, 2, 5, "auto", "auto"])


def any_sample(setup: CatalogSetup, rng: random.Random) -> str | None:
    """Generates the probability of a sample: mostly none, and none where people are replaced, which is refused."""
    if setup.replace or rng.random() >= SAMPLED:
        return None
    return rng.choice(["1/2", "1/10", "9/10"])


def respell(question: Parts, setup: CatalogSetup, rng: random.Random) -> Parts:
    """Returns the question with names of tables and columns in another case, each time they occur."""
    names = {name for schema in setup.schemas.values() for name in schema.names} | set(setup.schemas)
    longest = sorted(names, key=len, reverse=True)
    pattern = re.compile(r"('[^']*')|\b(" + "|".join(map(re.escape, longest)) + r")\b")

    def other(found: re.Match[str]) -> str:
        return found[0] if found[1] else str(rng.choice([found[0].upper(), found[0].title(), found[0].swapcase(), found[0]]))

    def spelled(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(spelled, value))
        return pattern.sub(other, value) if isinstance(value, str) else value

    return Parts(*(spelled(getattr(question, each.name)) for each in fields(question)))


def any_question(harness: Harness, rng: random.Random, sample: str | None = None) -> tuple[Parts, tuple[Any, Any]]:
    """Generates a question: mostly a legal one, now and then any, or one with a forbidden price."""
    if harness.setup.maker is None:
        raise TypeError("this setup generates no questions")
    maker, kind = harness.setup.maker(rng.randrange(2**32)), rng.random()
    if kind < 0.03:
        return maker.parts(1.0), rng.choice(PRICES)
    if kind < 0.05:
        return maker.parts(0.0), rng.choice(REFUSED)
    price = rng.choice(PRICES)
    for _ in range(LEGAL):
        made = maker.parts(0.05)
        if rng.random() < RESPELLED:
            made = respell(made, harness.setup, rng)
        if harness.is_answerable(str(made), price, sample):
            return made, price
    return made, price
