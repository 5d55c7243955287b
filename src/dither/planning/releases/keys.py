"""Decides which groups are shown: all public ones, or those with enough units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dither.catalog.values import Key
from dither.errors import QueryError
from dither.mechanisms import Threshold
from dither.planning.releases.base import either
from dither.query.functions.base import Facts
from dither.query.nodes import Call, Expression, Literal, Named
from dither.query.resolve.joint import Joint

MOST_GROUPS = 100_000


@dataclass(frozen=True)
class Together:
    """Keys, by their places, that depend on each other: the combinations of their public values that a row can have."""

    places: tuple[int, ...]
    values: frozenset[tuple[Key, ...]]

    def allows(self, key: tuple[Key, ...]) -> bool:
        """Whether a row can have this key."""
        return tuple(key[place] for place in self.places) in self.values

    def of(self, kept: Sequence[int]) -> Together:
        """Returns what is left of it in groups by some of the keys."""
        own = [place for place in self.places if place in kept]
        inside = [self.places.index(place) for place in own]
        values = frozenset(tuple(key[place] for place in inside) for key in self.values)
        return Together(tuple(kept.index(place) for place in own), values)


def keys_to_show(
    known: list[tuple[Key, ...]], threshold: Threshold | None, units: Mapping[tuple[Key, ...], int]
) -> list[tuple[Key, ...]]:
    """Returns the keys to show, in order: the public ones, or those in `units` that pass the threshold."""
    if threshold is None:
        return known
    keys = sorted(units, key=key_order)
    if not keys:
        return []
    passed = threshold.release(np.array([units[key] for key in keys], dtype=np.int64))
    return [key for key, show in zip(keys, np.asarray(passed), strict=True) if show]


def public_keys(keys: Sequence[Named], known: Sequence[Facts]) -> tuple[tuple[Key, ...], ...] | None:
    """Returns the public values of each key, or None if one key must be discovered. Refuses no groups, and too many."""
    domains = [facts.values for facts in known]
    public = tuple(values for values in domains if values is not None)
    if len(public) < len(domains):
        return None
    for key, values in zip(keys, public, strict=True):
        if not values:
            raise QueryError(
                f"GROUP BY {key.name} has no group: no row can have a value of {key.name}.",
                span=key.expression.span,
                fix="group by another key, or leave this one out.",
            )
    count = math.prod(len(values) for values in public)
    if count > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY {key_names(keys)} has {count} public groups, and at most {MOST_GROUPS} are shown.",
            fix="group by fewer or coarser keys, such as a BUCKET.",
        )
    return public


def with_others(key: Expression, values: Sequence[Key]) -> Call:
    """Returns the key with NULL for all values but these, so that rows with other values have a group."""
    return Call("case", (either([Call("eq", (key, Literal(value))) for value in values]), key, Literal(None)))


def dependent(keys: Sequence[Named], known: tuple[tuple[Key, ...], ...], joint: Sequence[Joint]) -> tuple[Together, ...]:
    """Returns the keys that depend on each other, with the combinations of public values that a row can have. Refuses a
    question for which there is none."""
    found = []
    written = [key.expression for key in keys]
    for each in joint:
        inside = [place for place, key in enumerate(each.keys) if key in written]
        if each.rows is not None or not inside:  # its public table was not read, or it is about other grouping sets
            continue
        places = tuple(written.index(each.keys[place]) for place in inside)
        listed = [frozenset(known[place]) for place in places]
        projected = {tuple(key[place] for place in inside) for key in each.values}
        values = frozenset(key for key in projected if all(part in own for part, own in zip(key, listed, strict=True)))
        if not values:
            raise _impossible([keys[place] for place in places])
        if len(values) < math.prod(map(len, listed)):
            found.append(Together(places, values))
    return tuple(found)


def _impossible(keys: Sequence[Named]) -> QueryError:
    return QueryError(
        f"No public values of {key_names(keys)} meet the conditions of the question together, so there is no group.",
        span=keys[0].expression.span,
        fix="change the condition, or declare wider bounds or further `values` in the catalog.",
    )


def combinations(known: tuple[tuple[Key, ...], ...], together: Sequence[Together] = ()) -> list[tuple[Key, ...]]:
    """Returns every public group that a row can be in, in key order."""
    every = (key for key in itertools.product(*known) if all(each.allows(key) for each in together))
    return sorted(every, key=key_order)


def key_order(key: tuple[Key, ...]) -> tuple[tuple[bool, str, object], ...]:
    """Returns a sort key for keys of one shape: NULL comes last, and values of one kind stand together."""
    return tuple(
        (part is None, "" if isinstance(part, (bool, int)) else type(part).__name__, 0 if part is None else part)
        for part in key
    )


def key_names(keys: Sequence[Named]) -> str:
    return ", ".join(key.name for key in keys)
