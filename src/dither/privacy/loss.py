"""What every loss can say of itself. Its four kinds are in losses.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between

if TYPE_CHECKING:
    from dither.privacy.losses import ZCDP, Curve


class Loss(ABC):
    """A price. Frozen, hashable, exact; every conversion rounds up."""

    @abstractmethod
    def epsilon(self, delta: Number = 0) -> Fraction:
        """The smallest epsilon known at this delta, certified and rounded up."""

    @abstractmethod
    def delta(self, epsilon: Number) -> Fraction:
        """The smallest delta known at this epsilon, certified and rounded up, at most 1.

        delta(epsilon(d)) may exceed d by rounding: both are upper bounds, neither is the other's inverse.
        """

    @abstractmethod
    def zcdp(self) -> ZCDP:
        """The same release stated as zero-concentrated DP, which composes adaptively."""

    @abstractmethod
    def curve(self) -> Curve:
        """The same release as a loss curve, for tight composition fixed in advance."""

    @abstractmethod
    def repeat(self, n: SupportsIndex) -> Loss:
        """n such releases."""

    @abstractmethod
    def group(self, k: SupportsIndex) -> Loss:
        """The loss towards a group of k units."""

    @abstractmethod
    def __add__(self, other: object) -> Loss:
        """Both releases together."""


def upto(value: Number, name: str, most: int | Fraction) -> Fraction:
    """A number from 0 to `most`; what mechanisms state is one already, and is taken as it is."""
    if type(value) is Fraction and 0 <= value <= most:
        return value
    return between(value, name, 0, most)


def checked(loss: object) -> Loss:
    """The loss itself, refused if it is something else."""
    if not isinstance(loss, Loss):
        what = f"loss must be a loss such as Pure(0.1), and it is a {type(loss).__name__}."
        raise ArgumentError(what, fix="pass mechanism.loss().")
    return loss
