"""Filters: budgets that hold when each question and its price are chosen after seeing earlier answers.

A budget has one line or two. It admits a release if, with the release in its sums, some line holds:

    sum     sum of epsilon_i <= epsilon      and  sum of delta_i <= delta
    zcdp    sum of rho_i     <= rho          and  sum of slack_i <= slack

    PureFilter(epsilon)           the first line, with no delta
    ApproxFilter(epsilon, delta)  the first line
    ZCDPFilter(rho)               the second line, with no slack
    Odometer()                    no line: admits everything and reports the sums so far
    Caps.of(epsilon, delta)       either line: the rule of every ledger (docs/decisions/0004-either-or.md)

Why a sum is enough under full adaptivity: given any transcript so far, the next release multiplies the ratio of
the two probabilities of the transcript by at most e^{epsilon_i}, and the filter bounds the sum on *every* path
before the release is made. For rho and for (epsilon, delta) the same induction runs over the divergence. For both lines
together, split the transcripts by which line held at the last admission, and stop the process where that line would first
be broken; rho_max-zCDP is (epsilon, delta_conversion)-DP by the certified conversion.
Call `try_spend` before each release: it spends the loss and returns whether the release may be made.
References: Rogers, Roth, Ullman and Vadhan, NIPS 2016; Feldman and Zrnic, NeurIPS 2021; Whitehouse et al., ICML 2023.

Filters in memory add exact rationals. A ledger's sums are whole numbers of 1/GRID, so that a sum stays short after a million
questions. Each charge is rounded up to this grid. The numbers that people write (decimals of up to 36 places, and fractions
with denominators up to 32) are on the grid, so ten charges of 0.1 are exactly 1.

A Curve is priced as one step: its parts are fixed in advance, and the next step may depend on all of them.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from dither.errors import ArgumentError, PriceError
from dither.exact.numbers import Number, between, positive, show
from dither.privacy.conversion import largest_rho
from dither.privacy.losses import ZCDP, Approx, Loss, Pure, check_loss, check_up_to
from dither.privacy.parts.base import MOST, unchecked
from dither.process import Origin

GRID = 10**36 * math.lcm(*range(1, 33))
_NONE = Fraction(0)
MOST_QUESTIONS = 10_000  # the most questions that the sum of rho admits, however small their prices


@dataclass(frozen=True)
class Charge:
    """The most that one release costs, stated both ways: (epsilon, delta), and rho except with probability `slack`.

    >>> Charge.of(Pure("1/10"), Pure("1/10").zcdp())
    Charge(epsilon=Fraction(1, 10), delta=Fraction(0, 1), rho=Fraction(1, 200), slack=Fraction(0, 1))
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None
    slack: Fraction = _NONE

    def __post_init__(self) -> None:
        stated = {"epsilon": (self.epsilon, MOST), "delta": (self.delta, 1), "slack": (self.slack, 1)}
        for name, (value, most) in stated.items():
            object.__setattr__(self, name, check_up_to(value, name, most))
        if self.delta == 1 or self.slack == 1:
            raise ArgumentError("delta must be below 1, and it is 1.", fix="state a delta below 1.")
        if self.rho is not None:
            object.__setattr__(self, "rho", check_up_to(self.rho, "rho", MOST * MOST))

    @cached_property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Returns what the charge adds to each of the sums, rounded up."""
        rho, unstated = (_NONE, 1) if self.rho is None else (self.rho, 0)
        return up(self.epsilon), up(self.delta), up(rho), up(self.slack), unstated

    @classmethod
    def of(cls, stated: Pure | Approx, concentrated: ZCDP | None) -> Charge:
        """Returns the charge of a release whose loss is known both ways. Both must be losses of the same draws."""
        epsilon, delta = stated.pair()
        return cls(epsilon, delta) if concentrated is None else cls(epsilon, delta, concentrated.rho, concentrated.slack)

    def with_least_rho(self, least_rho: Fraction) -> Charge:
        """Returns the charge with a rho of at least `least_rho`. A charge of epsilon 0 stays free.

        >>> Charge(Fraction(1, 100), Fraction(0), Fraction(1, 20000)).with_least_rho(Fraction(1, 1000)).rho
        Fraction(1, 1000)
        """
        if not self.epsilon or self.rho is None or self.rho >= least_rho:
            return self
        return replace(self, rho=least_rho)


@dataclass(frozen=True)
class Sums:
    """The sums of all charges so far, in whole numbers of 1/GRID. `unstated` counts charges without a rho.

    >>> used = Sums()
    >>> for _ in range(10):
    ...     used = used.plus(Charge(Fraction("0.1"), Fraction(0)))
    >>> used.epsilon == GRID, Caps.of(1, 0).rule(used), Caps.of(1, 0).rule(used.plus(Charge(Fraction("1e-30"), Fraction(0))))
    (True, 'sum', None)
    """

    unit: ClassVar[int] = GRID

    epsilon: int = 0
    delta: int = 0
    rho: int = 0
    slack: int = 0
    unstated: int = 0

    def plus(self, charge: Charge) -> Sums:
        """Returns the sums with one more charge, each part rounded up."""
        return self._add(charge, 1)

    def minus(self, charge: Charge) -> Sums:
        """Returns the sums without a charge that was added before and released nothing."""
        return self._add(charge, -1)

    def _add(self, charge: Charge, sign: int) -> Sums:
        now = (self.epsilon, self.delta, self.rho, self.slack, self.unstated)
        return Sums(*(have + sign * more for have, more in zip(now, charge.parts, strict=True)))


@dataclass(frozen=True)
class Spent:
    """The same sums as exact rationals, for filters in memory. Each loss there states what its line needs."""

    unit: ClassVar[int] = 1
    unstated: ClassVar[int] = 0

    epsilon: Fraction = _NONE
    delta: Fraction = _NONE
    rho: Fraction = _NONE
    slack: Fraction = _NONE

    def plus(self, price: Spent) -> Spent:
        """Returns the sums with one more price."""
        return Spent(self.epsilon + price.epsilon, self.delta + price.delta, self.rho + price.rho, self.slack + price.slack)

    def minus(self, spent: Spent) -> Spent:
        """Returns what is left of these caps."""
        return Spent(self.epsilon - spent.epsilon, self.delta - spent.delta, self.rho - spent.rho, self.slack - spent.slack)


@dataclass(frozen=True)
class Line:
    """Caps on the sums; None is no cap."""

    name: str
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    slack: Fraction | None = None

    def holds(self, used: Sums | Spent) -> bool:
        """Returns whether these sums keep every cap. A line of rho fails if some charge has no rho."""
        if self.rho is not None and used.unstated:
            return False
        pairs = (
            (used.epsilon, self.epsilon),
            (used.delta, self.delta),
            (used.rho, self.rho),
            (used.slack, self.slack),
        )
        return all(cap is None or have * cap.denominator <= cap.numerator * used.unit for have, cap in pairs)


def admitting_line(lines: Iterable[Line], used: Sums | Spent) -> str | None:
    """Returns the name of the first line that holds, or None. Every release is admitted or refused here."""
    return next((line.name for line in lines if line.holds(used)), None)


@dataclass(frozen=True)
class Caps:
    """The budget and its layout, fixed before the first question."""

    epsilon: Fraction
    delta_sums: Fraction = _NONE
    delta_keys: Fraction = _NONE
    delta_conversion: Fraction = _NONE
    rho_max: Fraction = _NONE

    @classmethod
    def of(cls, epsilon: Number, delta: Number) -> Caps:
        """Returns the layout: half of delta for plain sums; for sums of rho a quarter for keys, a quarter to convert."""
        most, allowed = positive(epsilon, "epsilon"), between(delta, "delta", 0, 1, open_high=True)
        if not allowed:
            return cls(most)
        return cls(most, allowed / 2, allowed / 4, allowed / 4, largest_rho(most, allowed / 4))

    @property
    def delta(self) -> Fraction:
        """Returns the delta of the whole layout."""
        return self.delta_sums + self.delta_keys + self.delta_conversion

    @property
    def least_rho(self) -> Fraction:
        """Returns the least rho that a question is charged, so that rho admits at most 10,000. 0 in pure catalogs."""
        return self.rho_max / MOST_QUESTIONS

    def share(self, epsilon: Fraction) -> Caps:
        """Returns a share of the budget: a tenth of epsilon comes with a tenth of each delta and of rho."""
        # With a share of epsilon alone, a question of little epsilon and a large delta could spend all of rho.
        part = epsilon / self.epsilon
        rest = (self.delta_sums, self.delta_keys, self.delta_conversion, self.rho_max)
        return Caps(epsilon, *(part * each for each in rest))

    @property
    def lines(self) -> tuple[Line, ...]:
        """Returns the lines of this layout; the second only if some rho is (epsilon, delta_conversion)-DP."""
        plain = Line("sum", epsilon=self.epsilon, delta=self.delta_sums)
        return (plain, Line("zcdp", rho=self.rho_max, slack=self.delta_keys)) if self.rho_max else (plain,)

    def rule(self, sums: Sums) -> str | None:
        """Returns the line that these sums keep: "sum", else "zcdp", else None."""
        return admitting_line(self.lines, sums)


def up(value: Fraction) -> int:
    """Returns the smallest whole number of 1/GRID that is not below the value."""
    return -(-value.numerator * GRID // value.denominator)


class Filter(ABC):
    """A budget that no number of threads can overdraw and that cannot be copied.

    `spent` and `left` are losses of the kind that the budget adds up; `try_spend(left)` is always admitted.
    """

    def __init__(self, line: Line, cap: Spent | None) -> None:
        self._line = line
        self._cap = cap
        self._spent = Spent()
        self._lock = threading.Lock()
        self._origin = Origin()

    @abstractmethod
    def _price(self, loss: Loss) -> Spent:
        """Returns the loss in this filter's terms, or raises a PriceError that says how to state it."""

    @abstractmethod
    def _stated(self, sums: Spent) -> Loss:
        """Returns sums as a loss of this filter's kind."""

    @property
    def spent(self) -> Loss:
        """Returns what was spent, as one loss."""
        return self._stated(self._spent)

    @property
    def left(self) -> Loss | None:
        """Returns what is left, as one loss; None if there is no limit."""
        return None if self._cap is None else self._stated(self._cap.minus(self._spent))

    def __repr__(self) -> str:
        spent = self._spent  # read once: another thread may be spending
        rest = "" if self._cap is None else f", left {_show_loss(self._stated(self._cap.minus(spent)))}"
        return f"{type(self).__name__}(spent {_show_loss(self._stated(spent))}{rest})"

    def try_spend(self, loss: Loss) -> bool:
        """Spends the loss and returns True. Returns False and spends nothing if it does not fit."""
        price = _plain_fractions(self._price(check_loss(loss)))
        self._same_process()
        with self._lock:
            after = self._spent.plus(price)
            if admitting_line((self._line,), after) is None:
                return False
            self._spent = after
            return True

    def _same_process(self) -> None:
        # A forked child has a copy of the sums: parent and child together could spend the budget twice.
        if not self._origin.here:
            _refuse("is a copy made by a fork", "spend in the process that made the budget, or keep a ledger on disk")

    def __copy__(self) -> NoReturn:
        _refuse("cannot be copied")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        _refuse("cannot be copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _refuse("cannot be pickled")


def _plain_fractions(price: Spent) -> Spent:
    """Returns the price in plain Fractions: a subclass may override arithmetic. Reads numerator and denominator once."""
    parts = []
    for part in (price.epsilon, price.delta, price.rho, price.slack):
        if not isinstance(part, Fraction) or (plain := Fraction(int(part.numerator), int(part.denominator))) < 0:
            raise ArgumentError(
                "loss must have a price that is an exact rational of at least 0.", fix="use a loss of this package."
            )
        parts.append(plain)
    return Spent(*parts)


def _refuse(what: str, fix: str = "share the one object, or keep a ledger on disk") -> NoReturn:
    raise ArgumentError(f"This budget {what}: two copies could each be spent in full.", fix=f"{fix}.")


class PureFilter(Filter):
    """A budget of pure epsilon-DP for all admitted releases together.

    >>> budget = PureFilter(epsilon=1)
    >>> [budget.try_spend(Pure("0.1")) for _ in range(11)].count(True), budget.left
    (10, Pure(epsilon=Fraction(0, 1)))
    """

    def __init__(self, epsilon: Number) -> None:
        cap = positive(epsilon, "epsilon")
        super().__init__(Line("sum", epsilon=cap, delta=_NONE), Spent(epsilon=cap))

    def _price(self, loss: Loss) -> Spent:
        try:
            return Spent(epsilon=loss.epsilon(0))
        except PriceError as error:
            raise PriceError(
                "This release has no pure epsilon, and the budget is pure.",
                fix="release with a pure mechanism (Geometric, Laplace), or declare an (epsilon, delta) budget.",
            ) from error

    def _stated(self, sums: Spent) -> Loss:
        return _stated_loss(sums)


class ZCDPFilter(Filter):
    """A budget of rho-zCDP for all admitted releases together. A pure loss costs epsilon^2 / 2, or its own rho if smaller.

    >>> budget = ZCDPFilter(rho="1/2")
    >>> budget.try_spend(Pure(1)), budget.left
    (True, ZCDP(rho=Fraction(0, 1)))
    """

    def __init__(self, rho: Number) -> None:
        cap = positive(rho, "rho")
        super().__init__(Line("zcdp", rho=cap, slack=_NONE), Spent(rho=cap))

    def _price(self, loss: Loss) -> Spent:
        stated = loss.zcdp()
        if stated.slack:
            raise PriceError(
                f"This release fails with probability up to {show(stated.slack)}, and a zCDP budget has no delta.",
                fix="spend it from an ApproxFilter, or release with a mechanism that has no delta of its own.",
            )
        return Spent(rho=stated.rho)

    def _stated(self, sums: Spent) -> Loss:
        return unchecked(ZCDP, rho=sums.rho, slack=_NONE)


def _stated_price(loss: Loss) -> Spent:
    """Returns (epsilon, delta) as the loss states it. The caller must choose the delta of a zCDP loss or a curve."""
    if isinstance(loss, Pure | Approx):
        epsilon, delta = loss.pair()
        return Spent(epsilon, delta)
    try:
        return Spent(loss.epsilon(0))
    except PriceError as error:
        raise PriceError(
            "This loss leaves its delta open, and this budget adds up stated (epsilon, delta).",
            fix="choose the delta: Approx(loss.epsilon(delta), delta).",
        ) from error


class ApproxFilter(Filter):
    """A budget of (epsilon, delta)-DP for all admitted releases together, by the plain sums.

    >>> budget = ApproxFilter(epsilon=1, delta="1e-6")
    >>> budget.try_spend(Approx("1/2", "1e-6")), budget.try_spend(Approx("1/2", "1e-9")), budget.try_spend(Pure("1/2"))
    (True, False, True)
    """

    def __init__(self, epsilon: Number, delta: Number) -> None:
        cap = Spent(positive(epsilon, "epsilon"), between(delta, "delta", 0, 1, open_high=True))
        super().__init__(Line("sum", epsilon=cap.epsilon, delta=cap.delta), cap)

    def _price(self, loss: Loss) -> Spent:
        return _stated_price(loss)

    def _stated(self, sums: Spent) -> Loss:
        return unchecked(Approx, _epsilon=sums.epsilon, _delta=sums.delta)


class Odometer(Filter):
    """Adds up losses and never refuses. `spent` is valid at any moment, also one chosen from the answers.

    >>> meter = Odometer()
    >>> meter.try_spend(Pure("1/3")), meter.try_spend(Approx(3, "1e-6")), meter.spent
    (True, True, Approx(epsilon=10/3, delta=1e-6))
    """

    def __init__(self) -> None:
        super().__init__(Line("any"), None)

    def _price(self, loss: Loss) -> Spent:
        return _stated_price(loss)

    def _stated(self, sums: Spent) -> Loss:
        return _stated_loss(sums)


def _stated_loss(sums: Spent) -> Pure | Approx:
    """Returns sums of any size as a loss: pure without a delta, which is 1 at most."""
    if sums.delta:
        return unchecked(Approx, _epsilon=sums.epsilon, _delta=min(sums.delta, Fraction(1)))
    return unchecked(Pure, _epsilon=sums.epsilon, rho=sums.epsilon**2 / 2)


def _show_loss(loss: Loss) -> str:
    if isinstance(loss, ZCDP):
        return f"rho {show(loss.rho)}"
    if isinstance(loss, Approx):
        return f"epsilon {show(loss.pair()[0])}, delta {show(loss.pair()[1])}"
    return f"epsilon {show(loss.epsilon())}"
