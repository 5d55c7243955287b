"""Prints a regular expression as a walk through a table of states: one step for each letter, whatever the text.

Spark matches by Java's backtracking matcher. Some texts would take it years, and others overflow its stack, so one row could
make a question slow or fail. Here the automaton of query/functions/patterns.py is made deterministic (the subset construction:
Rabin and Scott, 1959), and Spark folds a text's letters over its table. The table can be large: a pattern whose table has more
than MOST_CELLS places is refused before the charge.

A state stands between two letters: the automaton's states, before the ways without a letter, and what the last letter was. The
ways depend on the next letter (is it a line's end?), so they are followed when the next letter is known.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dither.query.functions.patterns import Automaton, Edge, closure, compiled, following

MOST_CELLS = 20_000
_LINE = 10
_START, _FEED, _LETTER = "start", "feed", "letter"  # what stands before a place
State = tuple[frozenset[int], str]
MATCHED: State = (frozenset({0}), _LETTER)  # a part of the text fits: nothing after it matters


class TooLargeError(ValueError):
    """The table of a pattern has too many places."""


@dataclass(frozen=True)
class Table:
    """Letters are in classes: `bounds` are the first code points of runs, `classes` the class of each run. `next` has the state
    after each state and class, state by state; `final` the states in which a text that ends here matches."""

    bounds: tuple[int, ...]
    classes: tuple[int, ...]
    next: tuple[int, ...]
    final: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of classes."""
        return max(self.classes) + 1

    def matches(self, text: str) -> bool:
        """Walks through the table as Spark does.

        >>> table("^(a+)+b$").matches("a" * 50), table("t.e").matches("dither")
        (False, True)
        """
        state = 0
        for letter in text:
            run = sum(bound <= ord(letter) for bound in self.bounds) - 1
            state = self.next[state * self.width + self.classes[run]]
        return state in self.final


@functools.lru_cache(maxsize=256)
def table(pattern: str) -> Table:
    """Returns the table of a pattern. Raises TooLargeError."""
    automaton, first = compiled(pattern)
    bounds, classes, letters = _alphabet(automaton)
    states: dict[State, int] = {(frozenset({first}), _START): 0}
    waiting, cells, final = list(states), [], []
    while waiting:
        state = waiting.pop(0)
        if (len(states) + 1) * len(letters) > MOST_CELLS:
            raise TooLargeError
        if _ends(automaton, state):
            final.append(states[state])
        for letter in letters:
            after = _step(automaton, first, state, letter)
            if after not in states:
                states[after] = len(states)
                waiting.append(after)
            cells.append(states[after])
    return Table(bounds, classes, tuple(cells), tuple(final))


def _alphabet(automaton: Automaton) -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
    """Returns the first code points of runs of letters, the class of each run, and a letter of each class."""
    sets = [step[0] for step in automaton.steps if step is not None]
    ends = {0, _LINE, _LINE + 1} | {end for each in sets for low, high in each.ranges for end in (low, high + 1)}
    bounds = tuple(sorted(end for end in ends if end <= 0x10FFFF))
    kinds: dict[tuple[bool, ...], int] = {}
    letters: list[int] = []
    classes = []
    for point in bounds:
        kind = (point == _LINE, *(each.has(point) for each in sets))
        if kind not in kinds:
            kinds[kind] = len(kinds)
            letters.append(point)
        classes.append(kinds[kind])
    return bounds, tuple(classes), letters


def _edges(before: str, *, last: bool, feed: bool) -> set[Edge]:
    """Returns the edges that a place is: `last` if the text ends here, `feed` if a line feed follows."""
    edges = {Edge(False), Edge(False, True)} if before == _START else {Edge(False, True)} if before == _FEED else set()
    return edges | ({Edge(True), Edge(True, True)} if last else {Edge(True, True)} if feed else set())


def _ends(automaton: Automaton, state: State) -> bool:
    return state == MATCHED or 0 in closure(automaton, set(state[0]), _edges(state[1], last=True, feed=False))


def _step(automaton: Automaton, first: int, state: State, letter: int) -> State:
    if state == MATCHED:
        return MATCHED
    reached = closure(automaton, set(state[0]), _edges(state[1], last=False, feed=letter == _LINE))
    if 0 in reached:
        return MATCHED
    return frozenset({*following(automaton, reached, letter), first}), _FEED if letter == _LINE else _LETTER
