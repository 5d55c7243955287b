"""Decides which groups are shown: all public ones, or those with enough units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from dither.catalog.values import Key
from dither.errors import QueryError
from dither.mechanisms import Threshold
from dither.query.functions.base import Facts
from dither.query.nodes import Named

MOST_GROUPS = 100_000


def keys_to_show(
    known: tuple[tuple[Key, ...], ...] | None, threshold: Threshold | None, units: Mapping[tuple[Key, ...], int]
) -> list[tuple[Key, ...]]:
    """Returns the keys to show, in order: all public ones, or those in `units` that pass the threshold."""
    if threshold is None:
        return combinations(known or ())
    keys = sorted(units, key=key_order)
    if not keys:
        return []
    passed = threshold.release(np.array([units[key] for key in keys], dtype=np.int64))
    return [key for key, show in zip(keys, np.asarray(passed), strict=True) if show]


def public_keys(keys: Sequence[Named], known: Sequence[Facts]) -> tuple[tuple[Key, ...], ...] | None:
    """Returns the public values of each key, or None if one key must be discovered. Refuses too many groups."""
    domains = [facts.values for facts in known]
    public = tuple(values for values in domains if values is not None)
    if len(public) < len(domains):
        return None
    count = math.prod(len(values) for values in public)
    if count > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY {key_names(keys)} has {count} public groups, and at most {MOST_GROUPS} are shown.",
            fix="group by fewer or coarser keys, such as a BUCKET.",
        )
    return public


def combinations(known: tuple[tuple[Key, ...], ...]) -> list[tuple[Key, ...]]:
    """Returns every public group, in key order."""
    return sorted(itertools.product(*known), key=key_order)


def key_order(key: tuple[Key, ...]) -> tuple[tuple[bool, str, object], ...]:
    """Returns a sort key for keys of one shape: NULL comes last, and values of one kind stand together."""
    return tuple(
        (part is None, "" if isinstance(part, (bool, int)) else type(part).__name__, 0 if part is None else part)
        for part in key
    )


def key_names(keys: Sequence[Named]) -> str:
    return ", ".join(key.name for key in keys)
