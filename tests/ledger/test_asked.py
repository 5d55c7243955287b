"""The ledger checks every declaration and request, whatever sends it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dither.errors import ArgumentError, BudgetError, DitherError
from dither.ledger import opening
from dither.ledger.reservations import Reservation
from dither.ledger.verify.report import verify
from dither.privacy.filters import Charge, Sums
from ledger.asking import declaration, request

WRONG = [-1, Fraction(-1, 10), float("nan"), float("inf"), "1e400", "-0.1", "nan", "", None, "1e-400x", [], Decimal("-0.1")]


@pytest.mark.parametrize("epsilon", [*WRONG, 0, "0", Fraction(0)])
def test_no_such_epsilon(epsilon: Any) -> None:
    with pytest.raises(DitherError):
        request(1, Charge(epsilon, Fraction(0), Fraction(0)))


def test_only_what_needs_no_noise_is_free() -> None:
    free = Charge(Fraction(0), Fraction(0), Fraction(0))
    ledger = opening.memory()
    ledger.register(declaration())
    assert isinstance(ledger.reserve(request(1, free, mechanisms=())), Reservation)
    assert ledger.balance().sums == Sums()
    assert verify(ledger.store).ok
    ledger.close()
    for parts in ((0, Fraction(1, 10)), (0, 0, 1), (0, 0), (0, Fraction(1, 10), 0), (0, 0, 0, Fraction(1, 10))):
        charge = Charge(*map(Fraction, parts))
        with pytest.raises(ArgumentError, match="epsilon"):
            request(1, charge, mechanisms=())


@pytest.mark.parametrize("delta", [*WRONG, 1, "1", Fraction(1), 2, "1.0", Fraction(3, 2)])
def test_no_such_delta(delta: Any) -> None:
    with pytest.raises(DitherError):
        request(1, Charge(Fraction(1, 10), delta))
    with pytest.raises(DitherError):
        request(1, Charge(Fraction(1, 10), Fraction(0), Fraction(1, 10), delta))


@pytest.mark.parametrize("rho", [wrong for wrong in WRONG if wrong is not None])
def test_no_such_rho(rho: Any) -> None:
    with pytest.raises(DitherError):
        request(1, Charge(Fraction(1, 10), Fraction(0), rho))


def test_prices_have_a_length() -> None:
    with pytest.raises(ArgumentError, match="digits"):
        request(1, Charge(Fraction(1, 10**1001), Fraction(0)))
    request(1, Charge(Fraction(1, 10**999), Fraction(0)))


def test_a_price_is_a_charge() -> None:
    for charge in (None, 0.1, (1, 0), "0.1"):
        with pytest.raises(ArgumentError, match="charge must be"):
            request(1, charge=charge)


@pytest.mark.parametrize("name", ["", " ada", "ada ", "a\nb", "a\0b", "\ud800", "x" * 201, None, 7, "a\u202eb", b"ada"])
def test_no_such_analyst(name: Any) -> None:
    with pytest.raises(ArgumentError, match="analyst must be"):
        request(1, analyst=name)
    with pytest.raises(ArgumentError, match="analyst must be"):
        declaration(analysts=("ada", name))


def test_mechanisms_are_made_of_exact_parts() -> None:
    with pytest.raises(ArgumentError, match="float"):
        request(1, mechanisms=({"scale": 0.1},))
    found = request(1, mechanisms=({"scale": Fraction(1, 10), "sides": (1, None, True)},))
    assert found.mechanisms == ({"scale": "1/10", "sides": [1, None, True]},)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": None},
        {"epsilon": 1.0},
        {"delta": Fraction(1)},
        {"delta": Fraction(-1, 2)},
        {"per_analyst": Fraction(0)},
        {"per_query": Fraction(-1)},
        {"least_epsilon": Fraction(0)},
        {"least_epsilon": None},
        {"least_epsilon": Fraction(11, 10)},
        {"units": {"people": 1}},
        {"snapshot": 7},
    ],
)
def test_no_such_declaration(change: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        replace(declaration(), **change)


def test_nothing_wrong_ever_reaches_the_entries() -> None:
    ledger = opening.memory()
    ledger.register(declaration())
    for epsilon in ("1e400", "0", "-1", "nan"):
        with pytest.raises(DitherError):
            ledger.reserve(request(1, Charge(epsilon, Fraction(0))))  # type: ignore[arg-type]
    assert ledger.balance().entries == 2
    ledger.close()


def test_a_name_has_one_spelling() -> None:
    """Two spellings that look the same are one analyst, with one quota; and one whom the catalog names in either."""
    composed, apart = "zo\u00eb", "zoe\u0308"
    assert composed != apart
    ledger = opening.memory()
    ledger.register(declaration(per_analyst=Fraction(1, 4), analysts=(apart,)))
    assert isinstance(ledger.reserve(request(1, "0.2", analyst=composed)), Reservation)
    with pytest.raises(BudgetError, match="quota"):
        ledger.reserve(request(2, "0.2", analyst=apart))
    assert ledger.quota(apart) == ledger.quota(composed) != Sums()
    assert verify(ledger.store).ok
    ledger.close()
