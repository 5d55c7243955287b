"""What every mechanism is: noise and its price in one frozen object.

    release(exact)      the noisy answer; the only method that draws
    loss()              the price, exact or rounded up
    zcdp()              the price a second way, as zero-concentrated DP
    curve()             the price as a loss curve, for many releases fixed in advance
    law(exact)          the exact distribution of the release, on whole numbers
    outcome(k)          what `release` returns when the law's value is k (a grid multiple, a label, ...)
    margin(confidence)  how far the answer may be off
    record()            its tag and exact parameters, in plain values: what ledgers and receipts keep
    words(on, who)      a line of a plan: the noise, what it is on, how far one unit moves that, the price

A record outlives the code that wrote it: `tag` is one of a closed table (tests/mechanisms/test_records.py), chosen once and
never the name of a class.

Every concrete class enters the registry when it is defined, so the laws in tests/laws run on it unasked;
`examples` gives those laws small instances with an exact input and inputs of neighbouring data.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dither.exact.law import Law
from dither.exact.numbers import Number, between, show
from dither.privacy.losses import ZCDP, Curve, Loss

_classes: list[type[Mechanism]] = []


class Mechanism(ABC):
    """Noise and its price. Frozen; equal fields mean the same mechanism."""

    tag: ClassVar[str]
    gaussian: ClassVar[bool] = False  # whether the noise has normal tails, or exponential ones

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _classes.append(cls)

    @abstractmethod
    def release(self, exact: Any) -> Any:
        """The noisy answer. Refuses by type and shape only, never by the value of the private answer."""

    @abstractmethod
    def loss(self) -> Loss:
        """What one release gives away."""

    def zcdp(self) -> ZCDP:
        """The same release as zero-concentrated DP, for budgets that add up rho."""
        return self.loss().zcdp()

    def curve(self) -> Curve:
        """The tightest loss curve known, for composition fixed in advance."""
        return self.loss().curve()

    @abstractmethod
    def law(self, exact: Any) -> Law:
        """The exact law of one release at this exact answer."""

    def outcome(self, k: int) -> Any:
        """What `release` returns where `law` has the value k."""
        return k

    @abstractmethod
    def margin(self, confidence: Number) -> int | Fraction:
        """How far the release may be off, with at least this confidence."""

    def record(self) -> dict[str, Any]:
        """The mechanism by its tag, with what it needs to be built again."""
        given = {name: plain(value) for name, value in self.parameters().items() if value is not None}
        return {"mechanism": self.tag, **given}

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The parameters of the record, in its order; None is left out."""

    @abstractmethod
    def words(self, on: str = "the answer", who: str = "person") -> str:
        """The noise in words: what it is, on what, how far one unit moves that, at which price."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Example, ...]:
        """Small instances for the laws that run over every mechanism."""


@dataclass(frozen=True)
class Example:
    """A mechanism, an exact input, and inputs that neighbouring data could have had instead."""

    mechanism: Mechanism
    exact: Any
    neighbours: tuple[Any, ...]


def registry() -> tuple[type[Mechanism], ...]:
    """Every concrete mechanism, in the order of definition.

    >>> "Geometric" in [kind.__name__ for kind in registry()]
    True
    """
    return tuple(kind for kind in _classes if not inspect.isabstract(kind))


def plain(value: Any) -> Any:
    """A parameter as JSON holds it exactly: a rational as text, a norm as its own record, labels as texts."""
    if hasattr(value, "record"):
        return value.record()
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return str(value) if isinstance(value, Fraction) else value


def changes(who: str, moved: int | Fraction) -> str:
    return f"one {who} changes them by at most {show(Fraction(moved))} in all"


def epsilon_words(epsilon: Fraction) -> str:
    return f"ε = {show(epsilon)}"


def sure(confidence: Number) -> Fraction:
    """A confidence, strictly between 0 and 1."""
    return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
