"""Finds the stored answers that may serve a question, without looking at all of them.

A stored part serves only a question about the same relation and unit whose conditions include its own (`groups.serving`). So
parts are found by their relation, their unit and one of their conditions. Only digests are kept: a plan is decoded again when
it is needed.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dither.planning.free.stored import Rows, StoredPart

_Place = tuple[bytes, str | None, bytes]  # a relation, a unit, and one of the conditions
_NONE = b""  # in place of a condition: the part has none


@dataclass(frozen=True)
class StoredIndex:
    """The entries of stored answers by what they are about. Add them in order."""

    _entries: dict[_Place, list[tuple[int, frozenset[bytes]]]] = field(default_factory=dict)

    def add(self, parts: Iterable[StoredPart]) -> None:
        """Adds the parts of a stored answer."""
        for part in parts:
            conditions = frozenset(map(_digest, part.rows.conditions))
            place = (_digest(part.rows.base), part.unit, min(conditions, default=_NONE))
            self._entries.setdefault(place, []).append((part.entry, conditions))

    def find(self, rows: Rows, unit: str | None, after: int = 0) -> list[int]:
        """Returns the entries, in order, of answers with a part that may serve a question about these rows; only those after
        an entry."""
        return sorted(set(self._find(rows, unit, after)))

    def _find(self, rows: Rows, unit: str | None, after: int) -> Iterator[int]:
        base, conditions = _digest(rows.base), frozenset(map(_digest, rows.conditions))
        for one in (_NONE, *conditions):
            listed = self._entries.get((base, unit, one), [])
            for entry, own in listed[bisect.bisect_right(listed, after, key=lambda each: each[0]) :]:
                if own <= conditions:
                    yield entry


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
