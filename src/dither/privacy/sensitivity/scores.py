"""The sensitivity of a score function: how far one unit can move the score of any candidate.

    sensitivity = max over neighbouring tables D, D' and candidates r of |w(D, r) - w(D', r)|

By enumeration: all tables over a declared small universe of records, with at most n of them (add/remove) or exactly n
(replace).
The result is exact for such tables and says nothing of larger ones. By a declared bound: generated pairs are
checked, and one that breaks the bound is shown; none found is no proof. Either way `w` sees made-up tables only, never data.
A table is a multiset: `w` gets a tuple in the order of the universe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb
from typing import Any

from dither.errors import ArgumentError
from dither.exact.numbers import Number, items, positive, show, whole
from dither.exact.samplers import uniform
from dither.privacy.neighbours import AddRemove, Group, Neighbours, Replace, check_neighbours

Rows = tuple[Any, ...]
ScoreFunction = Callable[[Rows, Any], int | Fraction]
Pair = tuple[Rows, Rows]

_DEFAULT = AddRemove()
_MOST = 2_000_000  # scores that are computed


@dataclass(frozen=True)
class Score:
    """How far one unit moves a score. `pair` and `candidate` reach the largest move that was seen, which is `seen`.

    `proved`: all tables of the universe were compared. `monotone`: between any two neighbours that were compared, all
    scores move the same way, so that the exponential mechanism needs half the noise.
    """

    sensitivity: Fraction
    seen: Fraction
    monotone: bool
    proved: bool
    compared: int
    pair: Pair
    candidate: Any

    def __str__(self) -> str:
        kind = ", monotone" if self.monotone else ""
        if self.proved:
            return f"sensitivity {show(self.sensitivity)}{kind}: proved by all {self.compared} pairs of neighbours"
        seen = f"the largest move in {self.compared} generated pairs is {show(self.seen)}"
        return f"sensitivity {show(self.sensitivity)} as declared: {seen}"


def score(
    w: ScoreFunction,
    candidates: Sequence[Any],
    records: Sequence[Any],
    n: int,
    *,
    neighbours: Neighbours = _DEFAULT,
    declared: Number | None = None,
    pairs: int = 1000,
) -> Score:
    """Returns the sensitivity of `w(table, candidate)`, for tables of up to n of the `records`.

    Without `declared` all tables are compared. With it, that bound is checked on so many generated `pairs`.

    >>> votes = lambda table, candidate: table.count(candidate)
    >>> print(score(votes, "abc", "abc", 4))
    sensitivity 1, monotone: proved by all 60 pairs of neighbours
    """
    choices = _listed(candidates, "candidates")
    universe, size = _listed(records, "records"), whole(n, "n", least=1)
    relation, count = check_neighbours(neighbours), whole(pairs, "pairs", least=1)
    if size * count > _MOST and declared is not None:
        raise ArgumentError("So many records are too many to make up.", fix="give a smaller n, or fewer pairs.")
    if isinstance(relation, Group):
        raise ArgumentError(
            "A score is compared between tables one step apart.", fix="multiply its sensitivity by k for a group."
        )
    if isinstance(relation, Replace) and relation.n not in (None, size):
        raise ArgumentError(f"n must be {relation.n}, the size of the neighbours.", fix="give the same n twice, or once.")
    if declared is None:
        compared = _every(len(universe), size, relation, len(choices))
    else:
        bound, compared = (
            positive(declared, "declared"),
            _generated(len(universe), size, relation, count),
        )
    found = _compare(w, choices, universe, compared)
    if declared is None:
        return found
    if found.seen > bound:
        raise ArgumentError(
            f"w moves by {show(found.seen)} between neighbours, and {show(bound)} was declared: "
            f"candidate {_short(found.candidate)}, tables {_short(found.pair[0])} and {_short(found.pair[1])}.",
            fix="declare a larger bound, or change the score.",
        )
    return Score(bound, found.seen, found.monotone, False, found.compared, found.pair, found.candidate)


def _listed(values: Sequence[Any], name: str) -> list[Any]:
    found = items(list(values) if isinstance(values, str) else values, name, fix=f'list the {name}, as in ["a", "b"].')
    if not found:
        raise ArgumentError(f"{name} must not be empty.", fix="name at least one.")
    return found


Places = tuple[int, ...]  # a table, by the places of its records in the universe, sorted


def _every(universe: int, n: int, relation: AddRemove | Replace, candidates: int) -> Iterator[tuple[Places, Places]]:
    """Yields every pair of neighbours once."""
    sizes = [n - 1] if isinstance(relation, Replace) else list(range(n))
    tables = sum(comb(universe + size - 1, size) for size in sizes) if n <= 10**4 else _MOST
    if tables * universe**2 * candidates > _MOST:
        raise ArgumentError(
            "There are too many tables to compare them all.", fix="give fewer records or a smaller n, or declare a bound."
        )
    return _grown(universe, sizes, isinstance(relation, Replace))


def _grown(universe: int, sizes: list[int], replaced: bool) -> Iterator[tuple[Places, Places]]:
    for size in sizes:
        for table in combinations_with_replacement(range(universe), size):
            for record in range(universe):
                more = tuple(sorted((*table, record)))
                if not replaced:
                    yield table, more
                    continue
                for other in range(record):  # both share all records but one
                    yield tuple(sorted((*table, other))), more


def _generated(universe: int, n: int, relation: AddRemove | Replace, count: int) -> Iterator[tuple[Places, Places]]:
    """Yields pairs at random: tables of every size, each record drawn uniformly."""
    for _ in range(count):
        size = n - 1 if isinstance(relation, Replace) else uniform.below(n)
        shared = [uniform.below(universe) for _ in range(size)]
        more = tuple(sorted([*shared, uniform.below(universe)]))
        if isinstance(relation, Replace):
            yield tuple(sorted([*shared, uniform.below(universe)])), more
        else:
            yield tuple(sorted(shared)), more


def _compare(w: ScoreFunction, candidates: list[Any], universe: list[Any], pairs: Iterator[tuple[Places, Places]]) -> Score:
    known: dict[Places, list[Fraction]] = {}

    def scores(table: Places) -> list[Fraction]:
        if table not in known:
            rows = tuple(universe[place] for place in table)
            known[table] = [_value(w, rows, candidate) for candidate in candidates]
        return known[table]

    worst: tuple[Fraction, Places, Places, Any] = (Fraction(-1), (), (), None)
    monotone, count = True, 0
    for left, right in pairs:
        moves = [b - a for a, b in zip(scores(left), scores(right), strict=True)]
        place = max(range(len(moves)), key=lambda i: abs(moves[i]))
        monotone = monotone and (all(move >= 0 for move in moves) or all(move <= 0 for move in moves))
        count += 1
        if abs(moves[place]) > worst[0]:
            worst = abs(moves[place]), left, right, candidates[place]
    if not count:
        raise ArgumentError("The records have no two neighbouring tables.", fix="declare more records.")
    tables = (tuple(universe[place] for place in worst[1]), tuple(universe[place] for place in worst[2]))
    return Score(worst[0], worst[0], monotone, True, count, tables, worst[3])


def _value(w: ScoreFunction, rows: Rows, candidate: Any) -> Fraction:
    """Returns one score. The table is made up, so a failure may be shown."""
    try:
        value = w(rows, candidate)
    except Exception as error:
        raise ArgumentError(
            f"w fails on a table of {len(rows)} records: {type(error).__name__}.",
            fix="give a function of a tuple of records and a candidate that is defined for every table, also an empty one.",
        ) from None
    if not isinstance(value, (int, Fraction)):
        raise ArgumentError(
            f"w must return an int or a Fraction, and it returns a {type(value).__name__}.",
            fix="round the score to whole numbers.",
        )
    return Fraction(value)


def _short(thing: Any) -> str:
    text = repr(thing)
    return text if len(text) <= 60 else f"{text[:57]}..."
