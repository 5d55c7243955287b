"""What can be wrong with a Work itself, whatever the rows are: found before anything is charged.

Text that no engine can hold, and grids that doubles cannot tell apart, would otherwise fail while the data is read.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from dither.errors import ArgumentError, QueryError
from dither.query.nodes import Literal
from dither.query.work import Quantised, Work


def check(work: Work) -> None:
    """Refuses what would fail on any data. Reads the Work only."""
    for part in _parts(work):
        if isinstance(part, Literal) and isinstance(part.value, str) and not storable(part.value):
            raise QueryError(_HALF, span=part.span, fix=_WHOLE)
        if isinstance(part, str) and not storable(part):
            raise ArgumentError(_HALF, fix=_WHOLE)
        if isinstance(part, Quantised):
            _check_grid(part)


_HALF = "A text of the question has half a character (a lone surrogate) in it, which no table can hold."
_WHOLE = "write whole characters."
_HALVES = re.compile("[\ud800-\udfff]")


def storable(text: str) -> bool:
    """Whether the text has whole characters only.

    >>> storable("é"), storable("\\ud800")
    (True, False)
    """
    return text.isascii() or _HALVES.search(text) is None


def _check_grid(grid: Quantised) -> None:
    """The grid in doubles, as engines compute with it: its step is above 0 and the number of its steps is a number."""
    try:
        low, high, step = float(grid.low), float(grid.low + grid.steps * grid.step), float(grid.step)
        if step > 0 and math.isfinite((high - low) / step):
            return
    except OverflowError:
        pass
    raise ArgumentError(
        "the steps of a number in this question are too small, or its bounds too large, for doubles.",
        fix="declare a larger step, or narrower bounds, for the column that is added up.",
    )


def _parts(work: Work) -> Iterator[Any]:
    """Every node, constant and name of a Work once: a question built in Python may use one part many times."""
    seen: set[int] = set()
    waiting: list[Any] = [work]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, (tuple, list)):
            waiting += part
        elif dataclasses.is_dataclass(part) and not isinstance(part, Literal):
            waiting += [getattr(part, field.name) for field in dataclasses.fields(part)]
