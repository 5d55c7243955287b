"""Makes a counterexample small: fewer rows, a shorter question, NULL for values that do not matter.

Greedy: leaves something out if a finding of the same kind remains. Rows are exchanged in one open harness, so that a trial
costs two questions. Only new values need another harness.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dither.audit.ourselves.cases import Case, Finding, judge
from dither.audit.ourselves.harness import Harness
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.survey import Person, Row
from dither.curator import STEPS, Steps

Atom = tuple[str, Row]  # one row and its table
PLAIN = 4  # with so few rows, single values are replaced by NULL


@dataclass(frozen=True)
class Small:
    """A pair of tables and the question: the rows of both, and those of each alone."""

    both: tuple[int, ...]
    one: tuple[int, ...]
    two: tuple[int, ...]
    question: Parts


Holds = Callable[[Small], bool]


def shrink(finding: Finding, seed: int = 0, steps: Steps = STEPS) -> Finding:
    """Returns the smallest finding that was reached, or the same one if it cannot be repeated."""
    atoms, small = _start(finding)
    best = finding
    with Harness(finding.case.setup, [{name: [row]} for name, row in atoms], steps) as harness:

        def holds(trial: Small) -> bool:
            nonlocal best
            smaller = _trial(harness, finding, atoms, trial, seed)
            best = smaller or best
            return smaller is not None

        small = _fewer(small, holds)
    for place in (*small.two, *small.one) if len(small.both + small.one + small.two) <= PLAIN else ():
        for column in list(atoms[place][1]):
            name, row = atoms[place]
            if row[column] is None or column.endswith("_id") or column == "person":
                continue
            plainer = [*atoms[:place], (name, {**row, column: None}), *atoms[place + 1 :]]
            with Harness(finding.case.setup, [{name: [row]} for name, row in plainer], steps) as harness:
                smaller = _trial(harness, finding, plainer, small, seed)
            if smaller is not None:
                atoms, best = plainer, smaller
    return best


def _start(finding: Finding) -> tuple[list[Atom], Small]:
    """Returns all rows of the pair, and which table has them."""
    one, two = finding.pair
    atoms: list[Atom] = []

    def places(people: list[Person]) -> tuple[int, ...]:
        start = len(atoms)
        atoms.extend((name, row) for person in people for name, rows in person.items() for row in rows)
        return tuple(range(start, len(atoms)))

    people = finding.case.perhaps
    both = places([*(people[i] for i in sorted(one & two)), *finding.case.always])
    first, second = (places([people[i] for i in sorted(side)]) for side in (one - two, two - one))
    return atoms, Small(both, first, second, finding.case.question)


def _trial(harness: Harness, finding: Finding, atoms: list[Atom], small: Small, seed: int) -> Finding | None:
    """Returns the finding for these rows and this question, if it is of the same kind."""
    rng, price = random.Random(seed), finding.case.price
    bounds, sample = finding.case.bounds, finding.case.sample
    harness.forget_plans()
    harness.fill([*small.both, *small.one], rng, reorder=True)
    before = harness.ask(str(small.question), price, None, bounds, sample)
    harness.fill([*small.both, *small.two], rng, reorder=True)
    after = harness.ask(str(small.question), price, before.trace, bounds, sample)
    violation = judge(before, after, alike=not small.one and not small.two)
    if violation is None or (violation[1] == float("inf")) != (finding.share == float("inf")):
        return None
    two, one, both = (_person(atoms, places) for places in (small.two, small.one, small.both))
    case = Case(harness.setup, (both,), (two, one), small.question, price, bounds, sample)
    return Finding(case, (frozenset({1}), frozenset({0})), *violation)


def _person(atoms: list[Atom], places: tuple[int, ...]) -> Person:
    person: Person = {}
    for place in places:
        name, row = atoms[place]
        person.setdefault(name, []).append(row)
    return person


# --- leaving out ---------------------------------------------------------------------------------------


def _fewer(small: Small, holds: Holds) -> Small:
    """Leaves out the common rows at once, parts of the question, then rows in large lots first, then parts again."""
    if small.both and holds(replace(small, both=())):
        small = replace(small, both=())
    small = _shorter(small, holds)
    small = replace(small, two=_needed(small.two, lambda rows: holds(replace(small, two=rows))))
    small = replace(small, one=_needed(small.one, lambda rows: holds(replace(small, one=rows))))
    small = replace(small, both=_needed(small.both, lambda rows: holds(replace(small, both=rows))))
    return _shorter(small, holds)


def _shorter(small: Small, holds: Holds) -> Small:
    while True:
        trials = (replace(small, question=question) for question in small.question.simpler())
        better = next((trial for trial in trials if holds(trial)), None)
        if better is None:
            return small
        small = better


def _needed(rows: tuple[int, ...], holds: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """Returns the rows that are needed: leaves out lots of half, a quarter, ... down to single rows."""
    lot = len(rows)
    while lot:
        place = 0
        while place < len(rows):
            fewer = rows[:place] + rows[place + lot :]
            if holds(fewer):
                rows = fewer
            else:
                place += lot
        lot = min(lot // 2, len(rows))
    return rows


# --- in words ---------------------------------------------------------------------------------------------------


def show_finding(finding: Finding) -> str:
    """Shows a finding so that it can be checked by hand."""
    atoms, small = _start(finding)
    lines = [
        f"question  {finding.case.question}",
        f"price     epsilon = {finding.case.price[0]}, delta = {finding.case.price[1]}",
    ]
    if finding.case.bounds != (None, None):
        lines.append("bounds    max_rows = {}, max_groups = {}".format(*finding.case.bounds))
    if finding.case.sample is not None:
        lines.append(f"sample    {finding.case.sample}")
    for words, places in (("both      ", small.both), ("only D    ", small.one), ("only D'   ", small.two)):
        lines += _rows(words, [atoms[place] for place in places])
    return "\n".join([*lines, *(f"found     {text}" for text in finding.details or finding.words)])


def _rows(words: str, atoms: list[Atom]) -> Iterator[str]:
    """Yields one line for each row; equal rows share a line."""
    lines = [f"{words}{name}: {_row(row)}" for name, row in atoms]
    return (line if lines.count(line) == 1 else f"{line} ({lines.count(line)} times)" for line in dict.fromkeys(lines))


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in row.items() if value is not None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:30]}... ({len(text)} characters)"
