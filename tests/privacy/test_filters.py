"""Budgets: exact arithmetic, every price in the right terms, no copies, no races."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError, PriceError
from dither.privacy import parts
from dither.privacy.filters import ApproxFilter, Caps, Charge, Filter, Odometer, PureFilter, Sums, ZCDPFilter
from dither.privacy.losses import ZCDP, Approx, Curve, Loss, Pure, total

FRESH: list[Callable[[], Filter]] = [lambda: PureFilter(1), lambda: ZCDPFilter(1), lambda: ApproxFilter(1, "1e-6"), Odometer]


def test_ten_times_a_tenth_is_exactly_one() -> None:
    budget = PureFilter(epsilon=1)
    assert all(budget.try_spend(Pure(0.1)) for _ in range(10))
    assert (budget.spent, budget.left) == (Pure(1), Pure(0))
    assert not budget.try_spend(Pure("1e-30"))
    assert budget.try_spend(Pure(0))
    assert sum([0.1] * 10) != 1  # the twin: what floats would have said


def test_a_tiny_spend_does_not_vanish() -> None:
    budget = PureFilter(epsilon=1)
    assert budget.try_spend(Pure("1e-17"))
    assert budget.spent == Pure("1e-17")
    assert not budget.try_spend(Pure(1))
    assert 1.0 + 1e-17 == 1.0  # the twin


def test_a_refusal_spends_nothing_and_smaller_ones_still_fit() -> None:
    budget = ApproxFilter(epsilon=1, delta="1e-6")
    assert not budget.try_spend(Approx("1/2", "2e-6"))
    assert budget.spent == Approx(0, 0)
    assert budget.try_spend(Approx("1/2", "1e-6"))
    assert not budget.try_spend(Approx("1/4", "1e-12"))
    assert budget.try_spend(Pure("1/2"))
    assert budget.left == Approx(0, 0)


def test_a_zcdp_budget_prices_pure_losses_by_their_best_rho() -> None:
    budget = ZCDPFilter(rho=1)
    assert budget.try_spend(Pure(1))
    assert budget.try_spend(Pure(1, rho="1/8"))
    assert budget.try_spend(Curve.of(parts.Gaussian(Fraction(1, 2))))
    assert budget.left == ZCDP(1 - Fraction(1, 2) - Fraction(1, 8) - Fraction(1, 4))


@pytest.mark.parametrize(
    ("budget", "loss"),
    [
        (PureFilter(1), ZCDP("1/100")),
        (PureFilter(1), Approx("1/100", "1e-9")),
        (PureFilter(1), Curve.of(parts.Gaussian(Fraction(1, 100)))),
        (ZCDPFilter(1), Approx("1/100", "1e-9")),
        (ZCDPFilter(1), ZCDP("1/100", "1e-9")),
        (ApproxFilter(1, "1e-6"), ZCDP("1/100")),
        (Odometer(), ZCDP("1/100")),
    ],
)
def test_a_loss_in_another_currency_is_refused_with_a_way_out(budget: Filter, loss: Loss) -> None:
    before = budget.spent
    with pytest.raises(PriceError, match="Fix"):
        budget.try_spend(loss)
    assert budget.spent == before


def test_an_approx_loss_without_delta_is_pure() -> None:
    assert PureFilter(1).try_spend(Approx(1, 0))


class _Cheating(Pure):
    def epsilon(self, delta: object = 0) -> Fraction:
        return Fraction(-1)


class _Floating(Pure):
    def epsilon(self, delta: object = 0) -> Fraction:
        return 0.1  # type: ignore[return-value]


@pytest.mark.parametrize("loss", [0.1, "0.1", None, Pure, float("nan"), Fraction(1, 10), _Cheating(1), _Floating(1)])
def test_what_is_not_a_price_is_refused(loss: object) -> None:
    budget = PureFilter(1)
    with pytest.raises(ArgumentError):
        budget.try_spend(loss)  # type: ignore[arg-type]
    assert budget.spent == Pure(0)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "abc", True, None])
def test_a_budget_must_be_a_positive_number(epsilon: object) -> None:
    for make in (PureFilter, ZCDPFilter, lambda e: ApproxFilter(e, "1e-6")):
        with pytest.raises(ArgumentError):
            make(epsilon)  # type: ignore[arg-type]


def test_a_delta_budget_of_one_is_refused() -> None:
    with pytest.raises(ArgumentError, match="delta"):
        ApproxFilter(1, 1)


@pytest.mark.parametrize("make", FRESH)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_object_that_is_copied_by_the_framework(
    make: Callable[[], Filter], duplicate: Callable[[Filter], object]
) -> None:
    with pytest.raises(ArgumentError, match="two copies could each be spent"):
        duplicate(make())


def test_a_forked_child_cannot_spend_the_parents_budget() -> None:
    budget = PureFilter(1)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            budget.try_spend(Pure(1))
            os.write(writing, b"spent")
        except ArgumentError:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"refused"
    assert budget.try_spend(Pure(1))


def test_many_threads_cannot_overdraw_it() -> None:
    budget, admitted = PureFilter(1), []
    gate = threading.Barrier(8)

    def spend() -> None:
        gate.wait()
        admitted.extend(budget.try_spend(Pure("1/100")) for _ in range(50))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert admitted.count(True) == 100
    assert budget.left == Pure(0)


@given(st.lists(st.fractions(0, 1, max_denominator=50), max_size=30))
def test_whatever_is_asked_the_admitted_sum_stays_within_the_budget(asked: list[Fraction]) -> None:
    budget, meter = PureFilter(1), Odometer()
    admitted = [epsilon for epsilon in asked if budget.try_spend(Pure(epsilon))]
    assert Pure(sum(admitted)) == budget.spent
    assert sum(admitted) <= 1
    assert total([budget.spent, budget.left]) == Pure(1)
    assert all(meter.try_spend(Pure(epsilon)) for epsilon in asked)
    assert meter.spent == Pure(sum(asked))
    assert meter.left is None


def test_an_odometer_never_refuses_and_caps_delta_at_one() -> None:
    meter = Odometer()
    assert all(meter.try_spend(Approx(100, "0.6")) for _ in range(3))
    assert meter.spent == Approx(300, 1)
    assert "300" in repr(meter)


@pytest.mark.parametrize(
    ("budget", "half"),
    [(PureFilter(1), Pure("1/2")), (ZCDPFilter(1), ZCDP("1/2")), (ApproxFilter(1, "1e-6"), Approx("1/2", "1e-7"))],
)
def test_every_budget_states_spent_and_left_as_losses_that_add_up_to_it(budget: Filter, half: Loss) -> None:
    whole = budget.left
    assert budget.try_spend(half)
    assert budget.spent == half
    assert budget.left is not None
    assert total([budget.spent, budget.left]) == whole
    assert not budget.try_spend(total([budget.left, Pure("1e-30")]))  # the twin: the smallest bit more
    assert budget.try_spend(budget.left)
    assert budget.spent == whole


def test_budgets_print_what_is_spent_and_left() -> None:
    budget = PureFilter(1)
    budget.try_spend(Pure("1/4"))
    assert repr(budget) == "PureFilter(spent epsilon 0.25, left epsilon 0.75)"
    assert repr(ZCDPFilter(2)) == "ZCDPFilter(spent rho 0, left rho 2)"
    assert "left epsilon 1, delta 1e-6" in repr(ApproxFilter(1, "1e-6"))


class Free(Fraction):
    """A number that adds nothing and is never too much."""

    def __add__(self, other: object) -> Fraction:
        return Fraction(0)

    __radd__ = __add__

    def __gt__(self, other: object) -> bool:
        return False


class Generous(Pure):
    """A loss that states its price in such a number."""

    def epsilon(self, delta: object = 0) -> Fraction:
        return Free(1)

    def pair(self) -> tuple[Fraction, Fraction]:
        return Free(1), Fraction(0)


@pytest.mark.parametrize("loss", [Pure(Free(1)), Generous(1)], ids=["a price", "a loss"])
def test_a_price_with_arithmetic_of_its_own_is_spent_in_full(loss: Pure) -> None:
    for budget in (PureFilter(1), ApproxFilter(1, "1e-6")):
        assert budget.try_spend(loss)
        assert not budget.try_spend(loss)
    budget = PureFilter(Free(1))
    assert [budget.try_spend(Pure(1)) for _ in range(2)] == [True, False]


ON_GRID = st.fractions(0, 1, max_denominator=32)


def admitted_by(caps: Caps, charges: list[Charge]) -> list[bool]:
    """Returns the answer of a ledger with these caps to each charge in order."""
    used, said = Sums(), []
    for charge in charges:
        said.append(caps.rule(used.plus(charge)) is not None)
        used = used.plus(charge) if said[-1] else used
    return said


@given(st.lists(st.tuples(ON_GRID, ON_GRID.map(lambda d: d / 33)), max_size=12))
def test_filters_are_cases_of_the_rule_of_ledgers(asked: list[tuple[Fraction, Fraction]]) -> None:
    """Each filter admits exactly what a ledger with its one line admits."""
    delta = Fraction(1, 20)
    approx, pure, zcdp = ApproxFilter(1, delta), PureFilter(1), ZCDPFilter(1)
    both = admitted_by(Caps(Fraction(1), delta_sums=delta), [Charge(e, d) for e, d in asked])
    assert [approx.try_spend(Approx(e, d)) for e, d in asked] == both
    alone = admitted_by(Caps(Fraction(1)), [Charge(e, Fraction(0)) for e, _ in asked])
    assert [pure.try_spend(Pure(e)) for e, _ in asked] == alone
    smooth = admitted_by(Caps(Fraction(0), rho_max=Fraction(1)), [Charge(Fraction(2), Fraction(0), e) for e, _ in asked])
    assert [zcdp.try_spend(ZCDP(e)) for e, _ in asked] == smooth


def test_that_comparison_can_fail() -> None:
    tenths = [Charge(Fraction(1, 10), Fraction(0))] * 10
    assert admitted_by(Caps(Fraction(1)), tenths) == [True] * 10
    assert admitted_by(Caps(Fraction(99, 100)), tenths) == [True] * 9 + [False]
