"""From exact integers to the released table: noise once, in one place; everything after it is post-processing.

`release` draws. `table` reads values, applies HAVING, ORDER BY, LIMIT and the outputs to noisy numbers, keys in order.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.planning.releases.keys import shown
from dither.query.catalog import Key
from dither.query.functions import evaluate_all, evaluator
from dither.query.work import Group

Value = None | bool | int | float | str | datetime.date | datetime.datetime


@dataclass(frozen=True)
class Noisy:
    """What was released: keys in order, and for each noise the noisy integers. Public from here on."""

    keys: tuple[tuple[Key, ...], ...]
    cells: tuple[NDArray[Any], ...] = field(compare=False)


@dataclass(frozen=True)
class Table:
    """The finished table: names, rows, and where each row's group stands in the release (for margins)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    places: tuple[int, ...]


def choose_keys(plan: Plan, found: Mapping[tuple[Key, ...], Group]) -> list[tuple[Key, ...]]:
    """The keys that are shown: the public ones, or those that the threshold lets through."""
    if not plan.query.keys:
        return [()]
    return shown(plan.work.known, plan.threshold, {key: group.units or 0 for key, group in found.items()})


@dataclass(frozen=True)
class Draw:
    """The two places where a plan draws at random. An auditor is given them, and may hand in others."""

    keys: Callable[[Plan, Mapping[tuple[Key, ...], Group]], list[tuple[Key, ...]]] = choose_keys
    noise: Callable[[Noise, Sequence[Any]], NDArray[Any]] = Noise.release


DRAW = Draw()


def release(plan: Plan, groups: Sequence[Group], draw: Draw = DRAW) -> Noisy:
    """Adds the noise. Which groups there are is public, or decided by the threshold."""
    found = {group.key: group for group in groups}
    keys = draw.keys(plan, found)
    cells = []
    for place, noise in enumerate(plan.noises):
        empty = noise.of.nothing
        cells.append(draw.noise(noise, [found[key].measures[place] if key in found else empty for key in keys]))
    return Noisy(tuple(keys), tuple(cells))


def table(plan: Plan, noisy: Noisy) -> Table:
    """Values, then HAVING, ORDER BY, OFFSET and LIMIT on them, then the outputs."""
    query = plan.query
    columns: dict[str, list[Value]] = {key.name: [values[i] for values in noisy.keys] for i, key in enumerate(query.keys)}
    for reading in plan.readings:
        columns[reading.name] = list(reading.values(plan.noises, noisy.cells)) if noisy.keys else []
    names = list(columns)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    places = list(range(len(rows)))
    if query.having is not None:
        holds = evaluator(query.having)
        places = [i for i in places if holds(rows[i]) is True]
    for order in reversed(query.order):
        value = evaluator(order.expression)
        known = [i for i in places if value(rows[i]) is not None]
        known.sort(key=lambda i: _sortable(value(rows[i])), reverse=order.descending)
        places = known + [i for i in places if value(rows[i]) is None]
    places = places[query.offset :]
    if query.limit is not None:
        places = places[: query.limit]
    finished = tuple(evaluate_all([output.expression for output in query.outputs], [rows[i] for i in places]))
    return Table(tuple(output.name for output in query.outputs), finished, tuple(places))


def _sortable(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value
