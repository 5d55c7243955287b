"""Which groups are shown: all public ones, or those that enough units have."""

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


def shown(
    known: tuple[tuple[Key, ...], ...] | None, threshold: Threshold | None, units: Mapping[tuple[Key, ...], int]
) -> list[tuple[Key, ...]]:
    """The keys to show, in order: every public one, or of those in `units` the ones that enough units have."""
    if threshold is None:
        return combinations(known or ())
    keys = sorted(units, key=key_order)
    if not keys:
        return []
    kept = threshold.release(np.array([units[key] for key in keys], dtype=np.int64))
    return [key for key, keep in zip(keys, np.asarray(kept), strict=True) if keep]


def public_keys(keys: Sequence[Named], known: Sequence[Facts]) -> tuple[tuple[Key, ...], ...] | None:
    """The public values of each key, or None if one of them has to be discovered."""
    domains = [facts.values for facts in known]
    found = tuple(values for values in domains if values is not None)
    if len(found) < len(domains):
        return None
    count = math.prod(len(values) for values in found)
    if count > MOST_GROUPS:
        raise QueryError(
            f"GROUP BY {names(keys)} has {count} public groups, and at most {MOST_GROUPS} are shown.",
            fix="group by fewer or coarser keys, such as a BUCKET.",
        )
    return found


def combinations(known: tuple[tuple[Key, ...], ...]) -> list[tuple[Key, ...]]:
    """Every public group, in key order."""
    return sorted(itertools.product(*known), key=key_order)


def key_order(key: tuple[Key, ...]) -> tuple[tuple[bool, str, object], ...]:
    """Sorts keys of one shape: NULL last, each kind among itself."""
    return tuple(
        (part is None, "" if isinstance(part, (bool, int)) else type(part).__name__, 0 if part is None else part)
        for part in key
    )


def names(keys: Sequence[Named]) -> str:
    return ", ".join(key.name for key in keys)
