"""The columns of an answer: their names and kinds, known from the plan before any number is drawn.

Kinds are those of the catalog: int, real, text, bool, date, timestamp. An aggregate is int if its truth is a whole number; a
key that is a number is int, because only whole numbers are grouped by; an output computed from them follows the functions'
own rules. So two answers of one plan have the same columns, whatever was drawn, also without a single row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dither.planning.releases.base import Noise, Reading
from dither.query.catalog import Key
from dither.query.facts import Facts
from dither.query.functions import columns
from dither.query.infer import known
from dither.query.nodes import Query

_ROWS = 1 << 32  # more than any table of people has
_LONG = 1 << 63


@dataclass(frozen=True)
class Field:
    """One column. `noisy`: it has a margin or is computed from noise; `long`: its whole numbers may exceed 64 bits."""

    name: str
    kind: str
    noisy: bool = False
    nullable: bool = True
    long: bool = False


def schema(
    query: Query,
    keys: Sequence[Facts],
    known_keys: Sequence[Sequence[Key]] | None,
    readings: Sequence[Reading],
    noises: Sequence[Noise],
) -> tuple[Field, ...]:
    """The columns in order. `keys` are the facts of the query's keys, `known_keys` their values where those are public."""
    shown = known_keys if known_keys is not None else [None] * len(keys)
    scope = {key.name: _key(facts, values) for key, facts, values in zip(query.keys, keys, shown, strict=True)}
    scope |= {reading.name: _aggregate(reading) for reading in readings}
    long = {reading.name for reading in readings if reading.largest(noises, _ROWS) >= _LONG}
    noisy = {reading.name for reading in readings}
    found = [(known(output.expression, scope), columns(output.expression)) for output in query.outputs]
    return tuple(_field(output.name, *each, noisy, long) for output, each in zip(query.outputs, found, strict=True))


def _field(name: str, facts: Facts, used: set[str] | frozenset[str], noisy: set[str], long: set[str]) -> Field:
    kind = "text" if facts.kind == "null" else facts.kind  # SQL's own answer to the kind of a bare NULL
    return Field(name, kind, bool(used & noisy), facts.nullable, kind == "int" and bool(used & long))


def _key(facts: Facts, values: Sequence[Key] | None) -> Facts:
    """NULL is a group of its own where it was declared, or where groups are found in the data."""
    nullable = facts.nullable if values is None else None in values
    if facts.kind in ("int", "real"):
        return Facts("int", facts.low, facts.high, nullable, whole=True)
    return Facts(facts.kind, facts.low, facts.high, nullable)


def _aggregate(reading: Reading) -> Facts:
    """A noisy number is never NULL, and has no bounds."""
    return Facts("int" if reading.whole else "real", nullable=False, whole=reading.whole)
