"""After any sequence of questions the sums equal an independent computation, and exceed no cap."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import BudgetError, ClosedError, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.opening import memory
from dither.ledger.records import ENGINE, INTERRUPT
from dither.ledger.reservations import Reservation
from dither.ledger.rules import StoredAnswer
from dither.ledger.state import MOST_DEAD
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID, Caps, Charge, Sums
from ledger.asking import RHO_MAX, SMALLEST, declaration, gaussian, pure, request

PRICES = [
    pure("0.1"),
    pure("1/3"),
    pure("1/7"),
    pure("1e-30"),
    pure(Fraction(10**40 + 1, 10**41)),  # off the grid: rounded up
    pure("1"),
    gaussian(RHO_MAX / 7),
    gaussian(RHO_MAX / 10_000),  # as little rho as a question may cost
    gaussian(RHO_MAX / 10_001),
    gaussian(RHO_MAX / 3, Fraction(1, 10**8)),
    Charge(Fraction(1, 5), Fraction(1, 10**7)),  # no rho stated
    Charge(Fraction(1, 10**6), Fraction(1, 8), RHO_MAX * 3 / 5),  # hardly any epsilon, and most of rho
    Charge(Fraction(1, 10), Fraction(3, 10**7), RHO_MAX / 5),  # a fifth, and more of delta than half the budget has
]
STEPS = st.tuples(
    st.sampled_from(["commit", "commit", "cancel", "hang", "interrupt", "die", "break", "reopen"]),
    st.sampled_from(["ada", "bob", "cleo"]),
    st.integers(0, len(PRICES) - 1),  # also the question: a price is part of a plan
    st.booleans(),
)


def up(value: Fraction | None) -> Fraction:
    scaled = (value or Fraction(0)) * GRID
    return Fraction(scaled.numerator // scaled.denominator + (scaled.denominator != 1), GRID)


@dataclass
class Model:
    """Restates the rules over lists of charges."""

    caps: Caps
    quota: Fraction | None
    least: Fraction = SMALLEST
    charges: list[Charge] = field(default_factory=list)
    mine: dict[str, list[Charge]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[int, set[str]] = field(default_factory=dict)  # by question: who has paid for its latest answer
    held: list[Reservation] = field(default_factory=list)
    open: set[int] = field(default_factory=set)  # questions that somebody is answering now
    deaths: int = 0
    closed: bool = False

    def fits(self, charges: list[Charge]) -> bool:
        plain = sum(up(c.epsilon) for c in charges) <= self.caps.epsilon
        plain = plain and sum(up(c.delta) for c in charges) <= self.caps.delta_sums
        stated = bool(self.caps.rho_max) and all(c.rho is not None for c in charges)
        concentrated = stated and sum(up(c.rho) for c in charges) <= self.caps.rho_max
        return plain or (concentrated and sum(up(c.slack) for c in charges) <= self.caps.delta_keys)

    def dear_enough(self, charge: Charge) -> bool:
        return charge.epsilon >= self.least and (charge.rho is None or 10_000 * charge.rho >= self.caps.rho_max)

    def fits_quota(self, charges: list[Charge]) -> bool:
        if self.quota is None:
            return True
        part = self.quota / self.caps.epsilon
        names = ("epsilon", "delta_sums", "delta_keys", "delta_conversion", "rho_max")
        return Model(Caps(*(part * getattr(self.caps, name) for name in names)), None).fits(charges)

    def expected(self, analyst: str, question: int, fresh: bool) -> str:
        mine = [*self.mine[analyst], PRICES[question]]
        if not fresh and question in self.answers:
            return "kept" if analyst in self.answers[question] or self.fits_quota(mine) else "refused"
        if not fresh and question in self.open:
            return "busy"
        if self.closed or self.deaths >= MOST_DEAD:
            return "closed"
        fits = self.fits([*self.charges, PRICES[question]]) and self.fits_quota(mine)
        return "reserved" if fits and self.dear_enough(PRICES[question]) else "refused"


def parts(sums: Sums) -> dict[str, Fraction]:
    return {name: Fraction(getattr(sums, name), GRID) for name in ("epsilon", "delta", "rho", "slack")}


def readded(charges: list[Charge]) -> dict[str, Fraction]:
    names = ("epsilon", "delta", "rho", "slack")
    return {name: sum((up(getattr(c, name)) for c in charges), Fraction(0)) for name in names}


def follow(ledger: Ledger, model: Model, step: tuple[str, str, int, bool]) -> None:
    """One step of both, which must agree."""
    action, analyst, question, fresh = step
    expected = model.expected(analyst, question, fresh)
    if action == "reopen":
        ledger.reopen()
        model.closed, model.deaths = False, 0
        return
    try:
        found = ledger.reserve(request(question, PRICES[question], analyst, fresh=fresh))
    except BudgetError:
        assert expected == "refused"
        return
    except ClosedError:
        assert expected == "closed"
        return
    except LedgerError:
        assert expected == "busy"
        return
    if isinstance(found, StoredAnswer):
        assert expected == "kept"
        assert found.charged == (analyst not in model.answers[question])
        if found.charged:
            model.mine[analyst].append(PRICES[question])
        model.answers[question].add(analyst)
        return
    assert isinstance(found, Reservation)
    assert expected == "reserved"
    if action == "cancel":
        ledger.cancel(found)
        return
    model.charges.append(PRICES[question])
    model.mine[analyst].append(PRICES[question])
    found.touch()
    if action == "commit":
        ledger.commit(found, "42")
        model.answers[question] = {analyst}
    elif action == "die":  # nobody holds it any more
        model.deaths += 1
    elif action == "hang":
        model.held.append(found)
        model.open |= set() if fresh else {question}
    else:
        ledger.give_up(found, ENGINE if action == "break" else INTERRUPT)
        model.closed |= action == "break"


def run(ledger: Ledger, delta: str, quota: Fraction | None, least: Fraction, steps: list[tuple[str, str, int, bool]]) -> None:
    ledger.register(declaration(delta=delta, per_analyst=quota, least_epsilon=least))
    model = Model(Caps.of(1, delta), quota, least)
    for step in steps:
        follow(ledger, model, step)
        standing = ledger.balance()
        assert parts(standing.sums) == readded(model.charges)
        assert standing.rule is not None
        assert model.fits(model.charges)
        assert parts(ledger.quota(step[1])) == readded(model.mine[step[1]])
    report = verify(ledger.store)
    assert report.problems == ()
    assert report.spent == readded(model.charges)


@pytest.mark.slow
@given(
    st.sampled_from(["0", "1e-6"]),
    st.sampled_from([None, Fraction(1, 2)]),
    st.sampled_from([SMALLEST, Fraction(1, 10_000), Fraction(1, 5)]),
    st.lists(STEPS, max_size=25),
)
def test_the_state_is_what_the_charges_add_up_to(
    delta: str, quota: Fraction | None, least: Fraction, steps: list[tuple[str, str, int, bool]]
) -> None:
    ledger = memory()
    try:
        run(ledger, delta, quota, least, steps)
    finally:
        ledger.close()


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("quota", [None, Fraction(1, 2)])
def test_the_same_on_every_store(empty: Ledger, delta: str, quota: Fraction | None) -> None:
    actions, analysts = (
        ("commit", "die", "cancel", "commit", "reopen", "break", "reopen", "hang"),
        ("ada", "bob", "ada", "cleo", "bob"),
    )
    steps = [(actions[i % 8], analysts[i % 5], (i * i) % len(PRICES), i % 6 == 0) for i in range(40)]
    run(empty, delta, quota, SMALLEST, steps)


def test_that_check_can_fail() -> None:
    """A ledger that forgets one charge does not agree with the model."""
    ledger = memory()
    ledger.register(declaration())
    model = Model(Caps.of(1, "0"), None)
    follow(ledger, model, ("hang", "ada", 0, False))
    model.charges.append(PRICES[0])
    assert parts(ledger.balance().sums) != readded(model.charges)
    ledger.close()
