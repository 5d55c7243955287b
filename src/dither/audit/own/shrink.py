"""A counterexample made small: fewer people, fewer rows, NULL for what does not matter, a shorter question.

Greedy: a smaller case is kept when the same kind of thing is still found for it, and tried again until nothing helps or the
patience ends. Each trial asks about the two tables of one pair only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dither.audit.own.cases import Finding, compare
from dither.audit.own.questions import Parts
from dither.audit.own.room import Room
from dither.audit.own.survey import Person
from dither.audit.own.watch import Change
from dither.errors import DitherError

PATIENCE = 150  # trials


@dataclass(frozen=True)
class Small:
    """The two tables of a pair: what both have, and what each has alone."""

    both: tuple[Person, ...]
    one: Person
    two: Person
    question: Parts

    def size(self) -> int:
        return sum(len(rows) for person in (*self.both, self.one, self.two) for rows in person.values())


def shrink(found: Finding, seed: int = 0, change: Change | None = None, patience: int = PATIENCE) -> Finding:
    """The smallest finding that was reached; the very same if it cannot be found again on its own."""
    state, best, trials = _start(found), None, 0
    while trials < patience:
        for smaller in _smaller(state):
            trials += 1
            again = _trial(found, smaller, seed, change)
            if again is not None:
                state, best = smaller, again
                break
            if trials >= patience:
                break
        else:
            break
    return best or found


def _start(found: Finding) -> Small:
    one, two = found.pair
    people = found.case.perhaps
    both = (*(people[i] for i in sorted(one & two)), *found.case.always)
    alone = [next((people[i] for i in side), {}) for side in (one - two, two - one)]
    return Small(both, alone[0], alone[1], found.case.question)


def _trial(found: Finding, small: Small, seed: int, change: Change | None) -> Finding | None:
    """What is found for a smaller case, if it is something of the same kind."""
    old = found.case
    case = replace(
        old, always=small.both, perhaps=(small.two, small.one)[: 2 if old.world.replace else 1], question=small.question
    )
    try:
        with Room(case.world, case.everyone, change) as room:
            finding = compare(room, case, random.Random(seed)).finding
    except DitherError:
        return None
    same = finding is not None and (finding.share == float("inf")) == (found.share == float("inf"))
    return finding if same else None


# --- what may be smaller ----------------------------------------------------------------------------------------


def _smaller(state: Small) -> Iterator[Small]:
    """Smaller cases, those that save most first."""
    if state.both:
        yield replace(state, both=())
        for place in range(len(state.both)):
            yield replace(state, both=state.both[:place] + state.both[place + 1 :])
    yield from (replace(state, question=shorter) for shorter in state.question.simpler())
    yield from (replace(state, two=fewer) for fewer in _fewer(state.two))
    yield from (replace(state, one=fewer) for fewer in _fewer(state.one))
    if state.size() <= 6:
        yield from (replace(state, two=plainer) for plainer in _plainer(state.two))
        yield from (replace(state, one=plainer) for plainer in _plainer(state.one))


def _fewer(person: Person) -> Iterator[Person]:
    """Without a table, without half of its rows, without one row."""
    for name, rows in person.items():
        if rows:
            yield {**person, name: []}
        half = len(rows) // 2
        if half:
            yield {**person, name: rows[:half]}
            yield {**person, name: rows[half:]}
        if 2 < len(rows) < 8:
            yield from ({**person, name: rows[:place] + rows[place + 1 :]} for place in range(len(rows)))


def _plainer(person: Person) -> Iterator[Person]:
    """One value becomes NULL; identifiers stay."""
    for name, rows in person.items():
        for place, row in enumerate(rows):
            for column, value in row.items():
                if value is not None and not column.endswith("_id") and column != "person":
                    yield {**person, name: [*rows[:place], {**row, column: None}, *rows[place + 1 :]]}


def told(found: Finding) -> str:
    """A finding in words that can be checked by hand."""
    small = _start(found)
    lines = [f"question  {found.case.question}", f"price     epsilon = {found.case.price[0]}, delta = {found.case.price[1]}"]
    for words, people in (("both      ", small.both), ("only D    ", (small.one,)), ("only D'   ", (small.two,))):
        lines += [f"{words}{name}: {_row(row)}" for person in people for name, rows in person.items() for row in rows]
    return "\n".join([*lines, *(f"found     {text}" for text in found.details or found.words)])


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in row.items() if value is not None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"
