"""The answer to a question about a graph: the noisy value, its margin and its price. It holds nothing exact."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dither.errors import ArgumentError
from dither.exact.numbers import Number, show, show_percent
from dither.mechanisms.base import Mechanism, check_confidence
from dither.privacy.losses import Pure


class Margins(Protocol):
    """States how far a noisy value may be off."""

    def margin(self, confidence: Fraction) -> int | Fraction | None: ...


@dataclass(frozen=True)
class Each:
    """The margin of each number, from its own noise; `unit` is what one step of the noise stands for."""

    mechanism: Mechanism
    unit: Fraction = Fraction(1)

    def margin(self, confidence: Fraction) -> int | Fraction:
        wide = self.unit * self.mechanism.margin(confidence)
        return int(wide) if wide.denominator == 1 else wide


@dataclass(frozen=True)
class Together:
    """The margin of `count` numbers at the same time (the union bound), which holds after they are put in order."""

    mechanism: Mechanism
    count: int

    def margin(self, confidence: Fraction) -> int | Fraction:
        return self.mechanism.margin(1 - (1 - confidence) / max(1, self.count))


@dataclass(frozen=True)
class Unknown:
    """No margin can be stated."""

    def margin(self, confidence: Fraction) -> None:
        return None


@dataclass(frozen=True, eq=False)
class GraphAnswer:
    """A noisy value. `value` is a number, an array or a dict; `margin` is for each number in it.

    Nothing is charged in a ledger: add up `loss()` of the answers that you give.
    """

    value: Any
    what: str
    unit: str
    price: Pure
    margins: Margins
    noise: tuple[dict[str, Any], ...]
    bounds: dict[str, int] = field(
        default_factory=dict
    )  # what is beyond them is left out, and the margin does not say how much

    def loss(self) -> Pure:
        """Returns the price, between graphs that differ by one edge or one node, as `unit` says."""
        return self.price

    def margin(self, confidence: Number = "0.95") -> int | Fraction | None:
        """Returns how far a number may be off, with at least this confidence. None: no margin can be stated."""
        return self.margins.margin(check_confidence(confidence))

    def record(self) -> dict[str, Any]:
        """Returns what was asked, at which price and with which noise, in plain values. It holds nothing exact."""
        price = {"epsilon": str(self.price.epsilon()), "noise": list(self.noise)}
        return {"graph": self.what, "unit": self.unit} | self.bounds | price

    def plot(self, path: str | PathLike[str], confidence: Number = "0.95") -> Path:
        """Draws an answer of many numbers, with the band of their margin."""
        from dither.plots import graph_picture  # matplotlib is an extra

        wide = self.margin(confidence)
        if not isinstance(self.value, np.ndarray) or wide is None:
            raise ArgumentError("This answer is one number, or has no margin.", fix="draw degrees: a histogram or a sequence.")
        note = f"where the exact numbers are, with {show_percent(check_confidence(confidence))} confidence"
        title = f"{self.what}, {self.unit} privacy, ε = {show(self.price.epsilon())}"
        return graph_picture(self.value.tolist(), float(wide), title, note, path)

    def __str__(self) -> str:
        wide = self.margin()
        told = f" ± {'?' if wide is None else show(Fraction(wide))}"
        value = f"{self.value}" if isinstance(self.value, (int, Fraction)) else f"{len(self.value)} numbers, each"
        left_out = "".join(f"; without what exceeds {name} = {bound}" for name, bound in self.bounds.items())
        return f"{self.what}: {value}{told} ({self.unit} privacy, ε = {show(self.price.epsilon())}{left_out})"
