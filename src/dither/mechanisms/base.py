"""What every mechanism is: noise and its price in one frozen object.

    release(exact)      the noisy answer; the only method that draws
    loss()              the price, exact or rounded up
    curve()             the price as a loss curve, for many releases fixed in advance
    law(exact)          the exact distribution of the release, on whole numbers
    outcome(k)          what `release` returns when the law's value is k (a grid multiple, a label, ...)
    margin(confidence)  how far the answer may be off

Every concrete class enters the registry when it is defined, so the laws in tests/laws run on it unasked;
`examples` gives those laws small instances with an exact input and inputs of neighbouring data.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.exact.law import Law
from dither.exact.numbers import Number, between
from dither.privacy.losses import Curve, Loss

_classes: list[type[Mechanism]] = []


class Mechanism(ABC):
    """Noise and its price. Frozen; equal fields mean the same mechanism."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _classes.append(cls)

    @abstractmethod
    def release(self, exact: Any) -> Any:
        """The noisy answer. Refuses by type and shape only, never by the value of the private answer."""

    @abstractmethod
    def loss(self) -> Loss:
        """What one release gives away."""

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


def sure(confidence: Number) -> Fraction:
    """A confidence, strictly between 0 and 1."""
    return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
