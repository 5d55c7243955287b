"""Chooses the neighbouring inputs of a function under audit: the user's own pairs, data of a named kind, or what fits it.

With `auto`, the signature proposes kinds (`signature.py`) and the first one with which the function runs is taken. Rows get the
columns that the code reads, each with the first type of values on which it runs.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

from dither.audit.replay.pairs import (
    ADD_REMOVE,
    Column,
    Given,
    Records,
    Source,
    numbers_near,
    source,
    whole_near,
    words_near,
)
from dither.audit.signature import Hints, kinds, read_hints

AUTO = "auto"
NEIGHBOURS = {
    "count": "the exact counts differ by 1",
    "bit": "any two values are neighbours, as in the local model",
    "bits": "any two values are neighbours, as in the local model",
    "item": "any two values are neighbours, as in the local model",
    "answers": "every answer differs by at most 1",
    "given": "pairs of your own, taken to be neighbours",
}
_UNITS = ("id", "unit", "user", "person", "patient", "customer", "member", "user_id", "person_id", "patient_id", "customer_id")
_TRIALS = 12
_PLANNED = 40  # systematic pairs that the black box screens, and random ones besides
_RANDOM, _ODD = 8, 6
Run = Callable[[Any], Any]


@dataclass(frozen=True)
class Inputs:
    """Where neighbouring inputs come from, and in words what neighbours are."""

    source: Source
    neighbours: str
    why: str = ""

    @property
    def words(self) -> str:
        """Describes the data and its neighbours for the report."""
        kind = self.source.name
        unit = getattr(self.source, "unit", "")
        of = f"one unit (all rows with one {unit})" if unit else "one cell by 1" if kind == "counts" else "one record"
        change = "replaced" if self.neighbours != ADD_REMOVE else "changed" if kind == "counts" else "added or removed"
        told = NEIGHBOURS.get(kind, f"neighbours have {of} {change}")
        return f"{kind}{f' ({self.why})' if self.why else ''}; {told}"

    def pairs(self, seed: int) -> tuple[tuple[Any, Any], ...]:
        """Returns the pairs that the black box screens: systematic ones, ordinary random ones and poisoned ones."""
        rng, origin = random.Random(seed), self.source
        chosen = [origin.built(pair) for pair in islice(origin.standard(), _PLANNED)]
        if not (isinstance(origin, Given) and chosen):
            calm = replace(origin, poisoned=False) if isinstance(origin, Records) else origin
            chosen += [calm.built(calm.pair(rng)) for _ in range(_RANDOM)]
            chosen += [origin.built(origin.pair(rng)) for _ in range(_ODD)]
        return tuple(_distinct(chosen))


def _distinct(pairs: list[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    seen: set[str] = set()
    for one, two in pairs:
        shown = repr((one, two))
        if shown not in seen and repr(one) != repr(two):
            seen |= {shown, repr((two, one))}
            yield one, two


def choose_inputs(function: Callable[..., Any], run: Run, data: str, given: Any, neighbours: str) -> Inputs:
    """Returns the inputs: `given` pairs if there are any, data of that kind, or with "auto" what the function takes."""
    if given is not None:
        return Inputs(Given(given), neighbours)
    hints = read_hints(function)
    if data != AUTO:
        return Inputs(_made(data, neighbours, hints, run, explicit=True), neighbours)
    proposed = kinds(function, hints)
    tried: list[tuple[float, Source]] = []
    for kind in proposed:
        made = _made(kind, neighbours, hints, run)
        tried.append((_share_that_runs(made, run), made))
        if tried[-1][0] >= 0.5 or len(proposed) == 1:
            return Inputs(made, neighbours, "read from the signature" if len(proposed) == 1 else "the first kind it runs on")
    return Inputs(max(tried, key=lambda one: one[0])[1], neighbours, "it runs on some of it only")


def _share_that_runs(origin: Source, run: Run) -> float:
    """Returns the share of ordinary inputs on which the function returns something."""
    rng = random.Random(1)
    calm = replace(origin, poisoned=False) if isinstance(origin, Records) else origin
    pairs = [calm.built(pair) for pair in islice(calm.standard(), _TRIALS // 2)]
    pairs += [calm.built(calm.pair(rng)) for _ in range(_TRIALS - len(pairs))]
    tried = [_runs(run, data) for pair in pairs for data in pair if len(repr(data)) > 2]
    return sum(tried) / max(1, len(tried))


def _runs(run: Run, data: Any) -> bool:
    try:
        run(data)
    except (Exception, SystemExit):
        return False
    return True


def _made(kind: str, neighbours: str, hints: Hints, run: Run, explicit: bool = False) -> Source:
    if kind == "frame" or (kind in ("rows", "table") and hints.columns and not explicit):
        return _of_columns(kind, neighbours, hints, run)
    hints = replace(hints, none=hints.none and (explicit or _runs(run, [1.0, None])))
    return source(kind, neighbours, hints=hints)


def _of_columns(kind: str, neighbours: str, hints: Hints, run: Run) -> Source:
    """Returns rows with the columns that the code reads; a column named like a person is the unit."""
    unit = next((name for name in hints.columns if name.lower() in _UNITS), "")
    names = [name for name in hints.columns if name != unit][:4] or ["value"]
    build = _BUILDERS[kind]([*([unit] if unit else []), *names])
    types = {"number": numbers_near(hints), "word": words_near(hints), "whole": whole_near(hints), "truth": _TRUTH}
    first: Source | None = None
    for chosen in product(types.values(), repeat=len(names)):
        made = Records(kind, dict(zip(names, chosen, strict=True)), build, neighbours, unit)
        first = first or made
        if _share_that_runs(made, run) >= 0.5:
            return made
    return first or source(kind if kind in ("rows", "table") else "table", neighbours)


_TRUTH = Column(lambda rng: rng.random() < 0.5, (None,), (True, False))


def _rows(names: Sequence[str]) -> Callable[[list[Any]], Any]:
    return list


def _table(names: Sequence[str]) -> Callable[[list[Any]], Any]:
    return lambda records: {name: [record[name] for record in records] for name in names}


def _frame(names: Sequence[str]) -> Callable[[list[Any]], Any]:
    pandas = importlib.import_module("pandas")
    return lambda records: pandas.DataFrame({name: [record[name] for record in records] for name in names})


_BUILDERS: Mapping[str, Callable[[Sequence[str]], Callable[[list[Any]], Any]]] = {
    "rows": _rows,
    "table": _table,
    "frame": _frame,
}

__all__ = ["AUTO", "Inputs", "choose_inputs"]
