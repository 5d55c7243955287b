"""The answer to a question about a graph: the noisy value, its margin and its price. It holds nothing exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.numbers import Number, show, show_percent
from dither.ledger.receipts import Receipt
from dither.mechanisms.base import Mechanism, check_confidence
from dither.privacy.losses import Pure
from dither.privacy.neighbours import GRAPHS, OneEdge, OneNode

if TYPE_CHECKING:
    from dither.graphs.questions import Question


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


@dataclass(frozen=True)
class LeftOut:
    """What a bound leaves out, as far as a wider bound shows: so many `what` would count in addition. The truth may be more."""

    what: str
    name: str  # of the bound
    bound: int
    wider: int
    value: int
    margins: Each

    def margin(self, confidence: Number = "0.95") -> int | Fraction:
        """Returns how far the value may be off, with at least this confidence."""
        return self.margins.margin(check_confidence(confidence))

    def __str__(self) -> str:
        wide = self.margin()
        if self.value > wide:
            return f"{self.value} ± {wide} {self.what} or more: so many would count in addition with {self.name} = {self.wider}"
        most = max(int(self.value + wide), 0)
        return f"no sign of it: at most {most} {self.what} would count in addition with {self.name} = {self.wider}"


@dataclass(frozen=True, eq=False)
class GraphAnswer:
    """A noisy value. `value` is a number, an array or a dict; `margin` is for each number in it.

    If it was asked of `dt.Graph`, nothing is charged in a ledger: add up `loss()` of the answers that you give. If it was asked
    of a catalog, `charged` says what it cost, and `receipt` is its receipt.
    """

    value: Any
    what: str
    unit: str
    price: Pure
    margins: Margins
    noise: tuple[dict[str, Any], ...]
    bounds: dict[str, int] = field(default_factory=dict)  # what is beyond them is left out
    left_out: LeftOut | None = None
    axes: tuple[str, ...] = ()
    keys: tuple[tuple[Any, ...], ...] = ((),)
    notes: tuple[str, ...] = ()
    charged: str = ""
    remaining: str = ""
    receipt: Receipt | None = field(default=None, repr=False)

    @classmethod
    def of(cls, question: Question, noisy: Sequence[NDArray[Any]], unit: str, size: int, **more: Any) -> GraphAnswer:
        """Reads the answer from noisy numbers. `size`: the number of nodes, where it is public."""
        beside = None
        if question.beside:
            ((name, bound),) = question.bound.items()
            counted = "edges" if name == "most_degree" else question.what
            wider = question.wider * bound
            beside = LeftOut(counted, name, bound, wider, int(noisy[1][0, 0]), Each(question.noise_beside))
        return cls(
            question.value(noisy, size),
            question.what,
            unit,
            question.loss(),
            question.margins(noisy, size),
            tuple(noise.record() for noise in question.noises),
            dict(question.bound),
            beside,
            question.axes,
            tuple(question.keys(size)),
            **more,
        )

    def loss(self) -> Pure:
        """Returns the price, between graphs that differ by one edge or one node, as `unit` says."""
        return self.price

    @property
    def neighbours(self) -> OneEdge | OneNode:
        """What the price compares."""
        return GRAPHS[self.unit]

    def margin(self, confidence: Number = "0.95") -> int | Fraction | None:
        """Returns how far a number may be off, with at least this confidence. None: no margin can be stated."""
        return self.margins.margin(check_confidence(confidence))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of `rows`."""
        return (*self.axes, self.what)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """A row for each number, behind what it is about."""
        values = self.value.values() if isinstance(self.value, dict) else np.atleast_1d(np.asarray(self.value, dtype=object))
        return tuple((*key, value) for key, value in zip(self.keys, values, strict=True))

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

    def table(self) -> str:
        """Shows the numbers with their margins, one in a line."""
        wide = self.margin()
        told = "?" if wide is None else show(Fraction(wide))
        body = [["NULL" if part is None else str(part) for part in key] for *key, _ in self.rows]
        body = [[*key, f"{_shown(row[-1])} ± {told}"] for key, row in zip(body, self.rows, strict=True)]
        lines = [[*self.axes, self.what], *body]
        widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
        ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
        return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in ruled)

    def footer(self) -> list[str]:
        """Shows what the margin does not include, its confidence, and what was charged."""
        beyond = [f"what exceeds {name} = {bound}" for name, bound in self.bounds.items() if name != "largest"]
        missing = [*self.notes, *beyond]
        lines = [f"not included in ±: {', '.join(missing)}"] if missing else []
        lines += [f"left out by {self.left_out.name} = {self.left_out.bound}: {self.left_out}"] if self.left_out else []
        left = f"; {self.remaining}" if self.remaining else ""
        return [*lines, f"± at 95 % confidence; charged {self.charged}{left}"] if self.charged else lines

    def __str__(self) -> str:
        if self.charged:
            return "\n".join([self.table(), *self.footer()])
        wide = self.margin()
        told = f" ± {'?' if wide is None else show(Fraction(wide))}"
        value = f"{self.value}" if isinstance(self.value, (int, Fraction)) else f"{len(self.value)} numbers, each"
        left_out = "".join(f"; without what exceeds {name} = {bound}" for name, bound in self.bounds.items())
        beside = f"; left out: {self.left_out}" if self.left_out else ""
        return f"{self.what}: {value}{told} ({self.unit} privacy, ε = {show(self.price.epsilon())}{left_out}{beside})"


def _shown(value: Any) -> str:
    """Shows a number: whole ones in full, others with six digits."""
    exact = Fraction(value)
    return str(exact) if exact.denominator == 1 else f"{float(exact):.6g}"
