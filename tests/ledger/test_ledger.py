"""What may be spent, by whom, under which catalog: on every store."""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest

from dither.errors import ArgumentError, BudgetError, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.reservations import Reservation
from dither.ledger.rules import StoredAnswer
from dither.ledger.verify.report import verify
from dither.privacy.filters import GRID, Caps, Charge, Sums
from ledger.asking import RHO_MAX, SMALLEST, asked, declaration, gaussian, pure, request, reserved


def spent(ledger: Ledger) -> Fraction:
    return Fraction(ledger.balance().sums.epsilon, GRID)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind.partition("/")[0] for entry in ledger.history()]


# --- the budget ---------------------------------------------------------------------------------------------------


def test_ten_tenths_are_one_and_the_smallest_more_is_refused(ledger: Ledger) -> None:
    ledger.register(declaration(least_epsilon=SMALLEST))
    for number in range(10):
        asked(ledger, number)
    assert spent(ledger) == 1
    with pytest.raises(BudgetError, match="left ε = 0"):
        ledger.reserve(request("more", "1e-30"))
    assert spent(ledger) == 1
    assert verify(ledger.store).ok


def test_ten_tenths_fit_into_a_budget_with_delta(mixed: Ledger) -> None:
    assert {reserved(mixed, number).rule for number in range(10)} == {"sum"}
    assert spent(mixed) == 1
    assert mixed.balance().rule == "sum"


@pytest.mark.slow
def test_four_hundred_gaussian_questions_fit_into_a_budget_with_delta(mixed: Ledger) -> None:
    share = gaussian(RHO_MAX / 400)
    for number in range(400):
        assert reserved(mixed, number, share).rule == "zcdp"
    with pytest.raises(BudgetError):
        mixed.reserve(request("more", gaussian(RHO_MAX / 10_000)))
    assert mixed.balance().rule == "zcdp"
    assert verify(mixed.store).ok


def test_a_pure_budget_has_no_delta(ledger: Ledger) -> None:
    with pytest.raises(BudgetError):
        ledger.reserve(request(1, Charge(Fraction(1, 10), Fraction(1, 10**9))))


def test_keys_are_paid_from_their_own_share(mixed: Ledger) -> None:
    slack = Caps.of(1, "1e-6").delta_keys
    reserved(mixed, 1, gaussian(RHO_MAX / 10, slack))
    with pytest.raises(BudgetError):
        mixed.reserve(request(2, gaussian(RHO_MAX / 10, Fraction(1, 10**30))))


def test_a_refusal_leaves_no_trace(ledger: Ledger) -> None:
    before = ledger.balance()
    with pytest.raises(BudgetError, match=r"it costs ε = 1\.1.*left ε = 1\b"):
        ledger.reserve(request(1, "1.1"))
    assert ledger.balance() == before
    assert ledger.quota("ada") == Sums()


def test_what_was_reserved_counts_before_it_is_answered(ledger: Ledger) -> None:
    reserved(ledger, 1, "0.6")
    with pytest.raises(BudgetError):
        ledger.reserve(request(2, "0.6"))


def test_threads_race_for_the_last_tenth(ledger: Ledger) -> None:
    reserved(ledger, "rest", "0.7")
    won: list[Reservation | StoredAnswer] = []

    def work(number: int) -> None:
        try:
            won.append(ledger.reserve(request(number, "0.1")))
        except BudgetError:
            return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 3
    assert spent(ledger) == 1


# --- quotas, analysts, caps per question --------------------------------------------------------------------------


def test_a_quota_is_for_each_analyst(empty: Ledger) -> None:
    empty.register(declaration(per_analyst=Fraction(1, 4)))
    asked(empty, 1, "0.2")
    with pytest.raises(BudgetError, match=r"quota of ada.*left ε = 0\.05 of ε = 0\.25"):
        empty.reserve(request(2, "0.1"))
    asked(empty, 2, "0.1", analyst="bob")
    assert empty.quota("bob") == Sums().plus(pure("0.1"))
    assert empty.quota("nobody") == Sums()


def test_a_quota_counts_rho_where_rho_admits(empty: Ledger) -> None:
    empty.register(declaration(delta="1e-6", per_analyst=Fraction(1, 4)))
    for number in range(10):
        reserved(empty, number, gaussian(RHO_MAX / 40))
    with pytest.raises(BudgetError, match="quota"):
        empty.reserve(request("more", gaussian(RHO_MAX / 10_000)))
    reserved(empty, "more", gaussian(RHO_MAX / 40), analyst="bob")
    assert verify(empty.store).ok


def test_one_question_may_not_cost_more_than_its_cap(empty: Ledger) -> None:
    empty.register(declaration(per_query=Fraction(1, 10)))
    with pytest.raises(BudgetError, match=r"at most ε = 0\.1"):
        empty.reserve(request(1, "0.11"))
    asked(empty, 1, "0.1")


DEAR = Charge(Fraction(1, 10**6), Fraction(1, 8), RHO_MAX * 9 / 10)  # hardly any epsilon, and most of rho


@pytest.mark.parametrize("limit", ["per_analyst", "per_query"])
def test_a_large_delta_does_not_buy_more_than_the_share(empty: Ledger, limit: str) -> None:
    """A hundredth is a hundredth of each: of epsilon, of both deltas, of rho. Twin: without the limit it is admitted."""
    empty.register(declaration(delta="1e-6", least_epsilon=SMALLEST, **{limit: Fraction(1, 100)}))
    caps = Caps.of(1, "1e-6")
    within = [
        Charge(Fraction(1, 100), caps.delta_sums / 100, caps.rho_max / 10),
        Charge(Fraction(10), Fraction(1, 8), caps.rho_max / 100, caps.delta_keys / 100),
    ]
    beyond = [
        DEAR,
        Charge(Fraction(1, 100), caps.delta_sums / 99, caps.rho_max / 99),
        Charge(Fraction(10), Fraction(1, 8), caps.rho_max / 100, caps.delta_keys / 99),
    ]
    for number, charge in enumerate(beyond):
        with pytest.raises(BudgetError, match=r"quota of|at most ε = 0\.01, δ = 5e-9, or ρ"):
            empty.reserve(request(number, charge))
    for number, charge in enumerate(within):
        asked(empty, number, charge, analyst=f"analyst {number}")
    assert verify(empty.store).ok
    empty.register(declaration(delta="1e-6", least_epsilon=SMALLEST, catalog_hash="c2"))
    reserved(empty, 1, Charge(DEAR.epsilon, DEAR.delta, caps.rho_max / 2), fresh=True, catalog_hash="c2")


def test_an_unknown_analyst_is_refused(empty: Ledger) -> None:
    empty.register(declaration(analysts=("ada", "bob")))
    with pytest.raises(ArgumentError, match="eve is none"):
        empty.reserve(request(1, analyst="eve"))
    asked(empty, 1)
    with pytest.raises(ArgumentError, match="eve is none"):  # an answer that is there is not shown to her either
        empty.reserve(request(1, analyst="eve"))


# --- catalogs -----------------------------------------------------------------------------------------------------


def test_a_catalog_is_written_down_once(ledger: Ledger) -> None:
    ledger.register(declaration())
    assert kinds(ledger) == ["opened", "catalog"]
    ledger.register(declaration(catalog_hash="c2", text="{}"))
    assert kinds(ledger) == ["opened", "catalog", "catalog"]


def test_a_changed_catalog_keeps_what_was_spent(ledger: Ledger) -> None:
    asked(ledger, 1, "0.7")
    ledger.register(declaration(catalog_hash="c2", snapshot="2026-12"))
    with pytest.raises(BudgetError):
        ledger.reserve(request(1, "0.4", catalog_hash="c2", snapshot="2026-12"))


@pytest.mark.parametrize("change", [{"catalog_hash": "c2"}, {"snapshot": "2026-12"}])
def test_a_session_with_an_older_catalog_is_refused(ledger: Ledger, change: dict[str, str]) -> None:
    ledger.register(declaration(**change))
    with pytest.raises(LedgerError, match="was changed while this session was open"):
        ledger.reserve(request(1))


@pytest.mark.parametrize("budget", [("2", "0"), ("1", "1e-6"), ("0.5", "0")])
def test_the_budget_is_for_ever(ledger: Ledger, budget: tuple[str, str]) -> None:
    with pytest.raises(LedgerError, match="not the one this ledger was opened with"):
        ledger.register(declaration(*budget, catalog_hash="c2"))


def test_a_catalog_follows_the_one_it_was_meant_to_follow(ledger: Ledger) -> None:
    """Checked inside the transaction: another process may declare a catalog meanwhile."""
    first = ledger.store.get("catalog")
    ledger.register(declaration(catalog_hash="c2"), expected=(first,))
    ledger.register(declaration(catalog_hash="c2"), expected=(first,))  # what is in force already is no change
    for stale in ((first,), (None,), ()):
        with pytest.raises(LedgerError, match="was changed while this session was open"):
            ledger.register(declaration(catalog_hash="c3"), expected=stale)
    assert kinds(ledger) == ["opened", "catalog", "catalog"]


def test_the_unit_of_a_table_with_history_stays(ledger: Ledger) -> None:
    asked(ledger, 1)
    with pytest.raises(LedgerError, match="unit of people was 'person_id'"):
        ledger.register(declaration(catalog_hash="c2", units={"people": "row"}))
    ledger.register(declaration(catalog_hash="c3", units={"visits": "row"}))  # never asked about
    with pytest.raises(LedgerError, match="unit of people"):  # nor after it was left out for a while
        ledger.register(declaration(catalog_hash="c4", units={"people": "public"}))
    assert verify(ledger.store).ok


def test_the_neighbour_relation_stays_once_there_is_history(ledger: Ledger) -> None:
    ledger.register(declaration(catalog_hash="c2", neighbours="replace one person"))
    asked(ledger, 1, catalog_hash="c2", neighbours="replace one person")
    with pytest.raises(LedgerError, match="losses under different relations do not add"):
        ledger.register(declaration(catalog_hash="c3"))


def test_a_ledger_without_a_catalog_answers_nothing(empty: Ledger) -> None:
    with pytest.raises(LedgerError, match="no catalog yet"):
        empty.reserve(request(1))
    with pytest.raises(LedgerError, match="no catalog yet"):
        empty.balance()
    assert str(empty.head()) == f"0:{'0' * 64}"
    assert verify(empty.store).ok
