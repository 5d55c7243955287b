"""Compares ways to ask many questions: one by one, as one vector, as a histogram, and by the best strategy.

Two numbers say it all. *Price*: what it costs if every number gets noise of scale 1/epsilon (or rho for one question). *Error*:
the root mean square error of the answers if all of it costs epsilon (or rho).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path

import numpy as np

from dither.exact.numbers import show, show_rounded
from dither.mechanisms.calibration import Share, rho_together
from dither.privacy.neighbours import AddRemove, Replace
from dither.workloads.asked import as_vector, each_alone
from dither.workloads.blocks import Record
from dither.workloads.design import design
from dither.workloads.factors import Floats
from dither.workloads.price import Price
from dither.workloads.workload import Workload


@dataclass(frozen=True)
class Way:
    """One way to ask all questions. `times`: its price, in prices of a single question; None if it has no such price."""

    name: str
    neighbours: str
    times: Fraction | None
    rmse: float
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The ways to ask a workload, side by side. It prints as a table."""

    workload: Workload
    price: Price
    ways: tuple[Way, ...]

    def best(self, neighbours: str = "add-remove") -> Way:
        """Returns the way with the least error."""
        return min((each for each in self.ways if each.neighbours == neighbours), key=lambda each: each.rmse)

    def __getitem__(self, key: tuple[str, str]) -> Way:
        name, neighbours = key
        return next(each for each in self.ways if (each.name, each.neighbours) == (name, neighbours))

    def __str__(self) -> str:
        unit = "ρ" if self.price.gaussian else "ε"
        lines = [self._title, ""]
        rows = [("", "neighbours", "price of noise 1/" + unit if unit == "ε" else "price", "error", "")]
        for way in self.ways:
            times = "" if way.times is None else f"{show(way.times)}{unit}"
            rows.append((way.name, way.neighbours, times, show_rounded(way.rmse), way.note))
        return "\n".join(lines + _columns(rows))

    __repr__ = __str__

    def plot(self, path: str | PathLike[str]) -> Path:
        """Draws the errors as a picture: a bar for each way."""
        from dither.plots import comparison_picture  # matplotlib is an extra

        bars = {
            name: [(way.name, way.rmse) for way in self.ways if way.neighbours == name] for name in ("add-remove", "replace")
        }
        return comparison_picture(self._title, bars, path)

    @property
    def _title(self) -> str:
        return f"{self.workload.size} questions about {self.workload.cells} cells, {_price_words(self.price)}"


def compare(workload: Workload, price: Price) -> Comparison:
    """Returns the ways to ask a workload at one price, with their errors."""
    ways = [way for neighbours in (AddRemove(), Replace()) for way in _ways(workload, price, neighbours)]
    return Comparison(workload, price, tuple(ways))


def _ways(workload: Workload, price: Price, neighbours: AddRemove | Replace) -> Sequence[Way]:
    replaced = isinstance(neighbours, Replace)
    name = neighbours.name
    vector = as_vector(workload, replaced)
    count = Fraction(workload.size)
    moved = vector.squares if price.gaussian else vector.total
    found = [
        Way("one by one", name, count, one_by_one(workload, price, replaced)),
        Way(
            "as one vector",
            name,
            Fraction(moved),
            _error(price, np.array([math.sqrt(moved) if price.gaussian else float(moved)])),
            "" if vector.exact else "at most",
        ),
    ]
    changes = 2 if replaced else 1
    each = _error(price, np.array([math.sqrt(changes) if price.gaussian else float(changes)])) ** 2
    found.append(Way("as a histogram", name, Fraction(changes), _added_up(workload, each)))
    best = design(workload, price, neighbours, Record())
    ratio = best.strategy.ratio
    note = "" if ratio is None or replaced else f"at most {ratio:.4f} times the least possible"
    found.append(Way("by a strategy", name, None, best.rmse, f"{best.strategy.name}{'; ' if note else ''}{note}"))
    return found


def one_by_one(workload: Workload, price: Price, replaced: bool = False) -> float:
    """Returns the root mean square error if every question is asked alone, at its share of the price."""
    moved = each_alone(workload, replaced)
    return _error(price, moved * float(workload.size) ** (0.5 if price.gaussian else 1))


def _error(price: Price, moved: Floats) -> float:
    """Returns the root mean square error of numbers that move so far, each with noise for the whole price."""
    mean = float((moved**2).mean())
    if price.gaussian:
        return math.sqrt(mean / (2 * float(_rho(price, int((moved**2).max())))))
    return math.sqrt(2 * mean) / float(price.epsilon or 1)


def _rho(price: Price, squares: int) -> Fraction:
    """Returns rho, or the most that one vector may have at (epsilon, delta) whose squared moves add up to so much."""
    if price.rho is not None or price.epsilon is None or price.delta is None:
        return price.rho or Fraction(0)
    return rho_together(price.epsilon, price.delta, (Share(Fraction(1), max(squares, 1), max(squares, 1)),))


def _added_up(workload: Workload, variance: float) -> float:
    """Returns the error of answers that are added up from a histogram with noise in every cell."""
    total = weight = 0.0
    for term in workload:
        each = math.prod(float(factor.squares().sum()) for factor in term.factors)
        total, weight = total + term.weight * each * variance, weight + term.weight * term.size
    return math.sqrt(total / weight)


def _price_words(price: Price) -> str:
    if price.rho is not None:
        return f"ρ = {show(price.rho)} in all"
    delta = "" if price.delta is None else f", δ = {show(price.delta)}"
    return f"ε = {show(price.epsilon or Fraction(0))}{delta} in all"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
