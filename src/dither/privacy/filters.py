"""Filters: budgets that stay true when every question, and its price, is chosen after seeing earlier answers.

    PureFilter(epsilon)           admits a release while the sum of epsilon stays within the budget
    ZCDPFilter(rho)               the same for the sum of rho
    ApproxFilter(epsilon, delta)  the sums of epsilon and of delta
    Odometer()                    admits everything and reports the sums so far

Why a sum is enough under full adaptivity: given any transcript so far, the next release multiplies the ratio of
the two probabilities of the transcript by at most e^{epsilon_i}, and the filter bounds the sum on *every* path
before the release is made. For rho and for (epsilon, delta) the same induction runs over the divergence.
Spending comes first, the answer after it: `try_spend` says whether the release may be made.
Reference: Rogers, Roth, Ullman and Vadhan, NIPS 2016; Feldman and Zrnic, NeurIPS 2021; Whitehouse et al., ICML 2023.

A Curve is priced as one step: its parts were fixed in advance, the next step may depend on all of them.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from dither.errors import ArgumentError, PriceError
from dither.exact.numbers import Number, between, positive, rational, show
from dither.privacy.loss import Loss, checked
from dither.privacy.losses import Approx, Pure


class Amount(NamedTuple):
    """An epsilon and a delta."""

    epsilon: Fraction
    delta: Fraction


class Filter(ABC):
    """A budget that cannot be overdrawn, by any number of threads, nor doubled by copying it."""

    def __init__(self, budget: tuple[Fraction, ...] | None, size: int) -> None:
        self._budget = budget
        self._spent = (Fraction(0),) * size
        self._lock = threading.Lock()
        self._process = os.getpid()

    @abstractmethod
    def _price(self, loss: Loss) -> tuple[Fraction, ...]:
        """The loss in this filter's currency, or a PriceError that says how to state it."""

    def try_spend(self, loss: Loss) -> bool:
        """Spend the loss and return True, or leave the budget as it is and return False if it does not fit."""
        checked(loss)
        # A subclass of Fraction may add and compare as it likes; its two whole numbers, read once, are what counts.
        price = tuple(_plain(part) for part in self._price(loss))
        if any(part < 0 for part in price):
            raise ArgumentError(
                "loss must have a price that is an exact rational of at least 0.", fix="use a loss of this package."
            )
        self._same_process()
        with self._lock:
            after = tuple(spent + part for spent, part in zip(self._spent, price, strict=True))
            if self._budget is not None and any(a > b for a, b in zip(after, self._budget, strict=True)):
                return False
            self._spent = after
            return True

    def _same_process(self) -> None:
        # A forked child holds a copy of what was spent at the fork: both sides together could spend the budget twice.
        if os.getpid() != self._process:
            _refuse("is a copy made by a fork", "spend in the process that made the budget, or keep a ledger on disk")

    def _left(self) -> tuple[Fraction, ...] | None:
        spent = self._spent
        return None if self._budget is None else tuple(b - s for b, s in zip(self._budget, spent, strict=True))

    def __copy__(self) -> NoReturn:
        _refuse("cannot be copied")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        _refuse("cannot be copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        _refuse("cannot be pickled")


def _plain(part: Any) -> Fraction:
    """The part of a price as a plain Fraction; what is no rational is priced at -1, which no filter takes."""
    return Fraction(int(part.numerator), int(part.denominator)) if isinstance(part, Fraction) else Fraction(-1)


def _refuse(what: str, fix: str = "share the one object, or keep a ledger on disk") -> NoReturn:
    raise ArgumentError(f"This budget {what}: two copies could each be spent in full.", fix=f"{fix}.")


class PureFilter(Filter):
    """Pure epsilon-DP over all admitted releases together.

    >>> budget = PureFilter(epsilon=1)
    >>> [budget.try_spend(Pure("0.1")) for _ in range(11)].count(True), budget.left
    (10, Fraction(0, 1))
    """

    def __init__(self, epsilon: Number) -> None:
        super().__init__((positive(epsilon, "epsilon"),), 1)

    def _price(self, loss: Loss) -> tuple[Fraction, ...]:
        try:
            return (loss.epsilon(0),)
        except PriceError as error:
            raise PriceError(
                "This release has no pure epsilon, and the budget is pure.",
                fix="release with a pure mechanism (Geometric, Laplace), or declare an (epsilon, delta) budget.",
            ) from error

    @property
    def spent(self) -> Fraction:
        return self._spent[0]

    @property
    def left(self) -> Fraction:
        return self._budget[0] - self._spent[0] if self._budget else Fraction(0)

    def __repr__(self) -> str:
        return f"PureFilter(spent {show(self.spent)}, left {show(self.left)})"


class ZCDPFilter(Filter):
    """rho-zCDP over all admitted releases together; a pure epsilon costs its epsilon^2 / 2 or what its loss knows better.

    >>> budget = ZCDPFilter(rho="1/2")
    >>> budget.try_spend(Pure(1)), budget.left
    (True, Fraction(0, 1))
    """

    def __init__(self, rho: Number) -> None:
        super().__init__((positive(rho, "rho"),), 1)

    def _price(self, loss: Loss) -> tuple[Fraction, ...]:
        stated = loss.zcdp()
        if stated.slack:
            raise PriceError(
                f"This release fails with probability up to {show(stated.slack)}, and a zCDP budget has no delta.",
                fix="spend it from an ApproxFilter, or release with a mechanism that has no delta of its own.",
            )
        return (stated.rho,)

    @property
    def spent(self) -> Fraction:
        return self._spent[0]

    @property
    def left(self) -> Fraction:
        return self._budget[0] - self._spent[0] if self._budget else Fraction(0)

    def __repr__(self) -> str:
        return f"ZCDPFilter(spent {show(self.spent)}, left {show(self.left)})"


def _basic(loss: Loss) -> tuple[Fraction, Fraction]:
    """(epsilon, delta) as the loss states it. Choosing a delta for a zCDP loss or a curve is the caller's decision."""
    if isinstance(loss, Pure | Approx):
        return loss.pair()
    try:
        return loss.epsilon(0), Fraction(0)
    except PriceError as error:
        raise PriceError(
            "This loss leaves its delta open, and this budget adds up stated (epsilon, delta).",
            fix="choose the delta: Approx(loss.epsilon(delta), delta).",
        ) from error


class ApproxFilter(Filter):
    """(epsilon, delta)-DP over all admitted releases together, by the plain sums.

    >>> budget = ApproxFilter(epsilon=1, delta="1e-6")
    >>> budget.try_spend(Approx("1/2", "1e-6")), budget.try_spend(Approx("1/2", "1e-9")), budget.try_spend(Pure("1/2"))
    (True, False, True)
    """

    def __init__(self, epsilon: Number, delta: Number) -> None:
        super().__init__((positive(epsilon, "epsilon"), between(delta, "delta", 0, 1, open_high=True)), 2)

    def _price(self, loss: Loss) -> tuple[Fraction, ...]:
        return _basic(loss)

    @property
    def spent(self) -> Amount:
        return Amount(*self._spent)

    @property
    def left(self) -> Amount:
        return Amount(*(self._left() or (Fraction(0), Fraction(0))))

    def __repr__(self) -> str:
        return f"ApproxFilter(spent {_words(self.spent)}, left {_words(self.left)})"


class Odometer(Filter):
    """Never refuses; `spent` is valid at every moment, also one chosen from the answers.

    >>> meter = Odometer()
    >>> meter.try_spend(Pure("1/3")), meter.try_spend(Approx(3, "1e-6")), meter.loss()
    (True, True, Approx(epsilon=10/3, delta=1e-06))
    """

    def __init__(self) -> None:
        super().__init__(None, 2)

    def _price(self, loss: Loss) -> tuple[Fraction, ...]:
        return _basic(loss)

    @property
    def spent(self) -> Amount:
        return Amount(*self._spent)

    @property
    def left(self) -> None:
        return None

    def loss(self) -> Loss:
        """The total so far as a loss."""
        spent = self.spent
        return Approx(spent.epsilon, min(spent.delta, rational(1, "delta"))) if spent.delta else Pure(spent.epsilon)

    def __repr__(self) -> str:
        return f"Odometer(spent {_words(self.spent)})"


def _words(amount: Amount) -> str:
    return f"epsilon {show(amount.epsilon)}, delta {show(amount.delta)}"
