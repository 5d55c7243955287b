"""Neighbour relations: the pairs of tables that a release must not distinguish.

    AddRemove()       one unit more or one less (unbounded privacy, the default)
    Replace(n)        one unit's data exchanged, everybody counted (bounded privacy; n public if given)
    Group(of, k)      up to k such changes one after the other: a household, a person with k records
    OneEdge()         graphs of the same nodes, with one edge more or less
    OneNode()         graphs with one node more or less, with all its edges and all rows about it

Losses under different relations do not add. A replacement is one removal and one addition, so a price under
add/remove holds under replace for two changes: `changes` is the number of additions and removals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import Any, SupportsIndex

from dither.errors import ArgumentError, Fix, Python
from dither.exact.numbers import items, whole

_MOST_PAIRS = 100_000

Table = tuple[Any, ...]  # one value for each unit


@dataclass(frozen=True)
class AddRemove:
    """One unit is in one table and not in the other.

    >>> print(AddRemove())
    tables that differ by one person being present or absent
    """

    name = "add-remove"  # in catalogs and receipts
    words = "added or removed"  # the change to one unit
    changes = 1  # additions or removals that lead from one neighbour to the other
    steps = 1  # single steps of this relation, for groups

    def __str__(self) -> str:
        return "tables that differ by one person being present or absent"

    def pairs(self, values: Iterable[Any], rows: SupportsIndex) -> list[tuple[Table, Table]]:
        """Returns every pair of neighbouring tables of at most `rows` of these values, one for each unit; order is left out.

        >>> AddRemove().pairs([0, 1], rows=1)
        [((), (0,)), ((), (1,))]
        """
        universe, most = _universe(values, rows, self.changes)
        smaller = [table for n in range(most) for table in combinations_with_replacement(universe, n)]
        return [(table, (*table, value)) for table in smaller for value in universe]


@dataclass(frozen=True)
class Replace:
    """One unit's data is exchanged for another's; the number of units stays as it is.

    `n` states the public number of units; None leaves it open (any number from 1).

    >>> print(Replace(n=1000))
    tables of 1000 people in which one person's data differs
    """

    n: int | None = None
    name = "replace"
    words = "replaced by another"
    changes = 2
    steps = 1

    def __post_init__(self) -> None:
        if self.n is not None:
            object.__setattr__(self, "n", whole(self.n, "n", least=1))

    def __str__(self) -> str:
        size = "of the same size" if self.n is None else f"of {self.n} people"
        return f"tables {size} in which one person's data differs"

    def pairs(self, values: Iterable[Any], rows: SupportsIndex) -> list[tuple[Table, Table]]:
        """Returns every pair of neighbouring tables of at most `rows` of these values (of exactly n if that is public).

        >>> Replace().pairs([0, 1], rows=2)
        [((0,), (1,)), ((0, 0), (0, 1)), ((1, 0), (1, 1))]
        """
        universe, most = _universe(values, rows if self.n is None else self.n, self.changes)
        sizes = range(1, most + 1) if self.n is None else (self.n,)
        rest = [table for n in sizes for table in combinations_with_replacement(universe, n - 1)]
        return [((*table, one), (*table, other)) for table in rest for one, other in combinations(universe, 2)]


@dataclass(frozen=True)
class Group:
    """Up to `k` steps of another relation: protects a household of k.

    >>> Group(Replace(), 4).changes
    8
    """

    of: AddRemove | Replace
    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.of, AddRemove | Replace):
            raise ArgumentError(
                f"of must be AddRemove() or Replace(), and it is a {type(self.of).__name__}.",
                fix=Fix("write {call}; a group of groups is one group of the product.", call=Python("Group(AddRemove(), k=4)")),
            )
        object.__setattr__(self, "k", whole(self.k, "k", least=1))

    @property
    def changes(self) -> int:
        return self.k * self.of.changes

    @property
    def steps(self) -> int:
        return self.k

    def __str__(self) -> str:
        return f"tables at most {self.k} steps apart, each step between {self.of}"


@dataclass(frozen=True)
class OneEdge:
    """One edge is in one graph and not in the other; the nodes are the same, and public. A node of degree d is d edges.

    >>> print(OneEdge())
    graphs of the same nodes that differ by one edge
    """

    name = "edge"
    words = "added or removed"

    def __str__(self) -> str:
        return "graphs of the same nodes that differ by one edge"


@dataclass(frozen=True)
class OneNode:
    """One node is in one graph and not in the other, with all its edges. Changing one edge takes two such steps.

    >>> print(OneNode())
    graphs that differ by one node, with all its edges, being present or absent
    """

    name = "node"
    words = "added or removed with its edges"

    def __str__(self) -> str:
        return "graphs that differ by one node, with all its edges, being present or absent"


GRAPHS: dict[str, OneEdge | OneNode] = {each.name: each for each in (OneEdge(), OneNode())}


def _universe(values: Iterable[Any], rows: SupportsIndex, changes: int) -> tuple[list[Any], int]:
    """Returns the values and the number of rows. Refuses what would give too many pairs to list."""
    universe, most = items(values, "values", fix="give the few values that a unit may have."), whole(rows, "rows", least=1)
    if not universe:
        raise ArgumentError("values must hold at least one value, and it is empty.", fix="give [0, 1].")
    if most > _MOST_PAIRS or math.comb(len(universe) + most - 1, most - 1) * len(universe) ** changes > _MOST_PAIRS:
        raise ArgumentError(f"There are more than {_MOST_PAIRS} such pairs.", fix="give fewer values or rows.")
    return universe, most


Neighbours = AddRemove | Replace | Group
BY_NAME: dict[str, AddRemove | Replace] = {each.name: each for each in (AddRemove(), Replace())}


def check_neighbours(neighbours: Neighbours) -> Neighbours:
    """Returns the relation. Refuses anything else (the class without brackets is a common mistake)."""
    if not isinstance(neighbours, AddRemove | Replace | Group):
        raise ArgumentError(
            f"neighbours must be AddRemove(), Replace(n) or Group(of, k), and it is {_type_words(neighbours)}.",
            fix="pass one of the three, with brackets.",
        )
    return neighbours


def relation_named(name: str) -> AddRemove | Replace:
    """Returns the relation of this name in a catalog.

    >>> relation_named("replace").changes
    2
    """
    if name in BY_NAME:
        return BY_NAME[name]
    raise ArgumentError(f"neighbours cannot be {name!r}.", fix='write "add-remove" or "replace".')


def _type_words(thing: object) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"


def one_step(neighbours: Neighbours) -> AddRemove | Replace:
    """Returns the relation of one step, without the group around it."""
    return neighbours.of if isinstance(neighbours, Group) else neighbours
