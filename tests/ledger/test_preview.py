"""A preview returns what reserving would do, in every situation, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from dither.errors import ArgumentError, BudgetError, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.opening import memory
from dither.ledger.records import ENGINE, Declaration, Request
from dither.ledger.rules import StoredAnswer
from ledger.asking import asked, declaration, request, reserved

DECLARED = declaration(per_analyst=Fraction(1, 4), per_query=Fraction(1, 2), analysts=("ada", "bob"))


def _answered(ledger: Ledger) -> None:
    ledger.register(DECLARED)
    asked(ledger, 1)


def _failed(ledger: Ledger) -> None:
    _answered(ledger)
    held = reserved(ledger, 2)
    held.touch()
    ledger.give_up(held, ENGINE)


def _used_up(ledger: Ledger) -> None:
    _answered(ledger)
    for number in (2, 3):
        asked(ledger, number, analyst="bob")


def _nothing(_: Ledger) -> None:
    pass


SITUATIONS: dict[str, tuple[Callable[[Ledger], None], Request]] = {
    "the first question of all": (_nothing, request(1)),
    "one more": (_answered, request(2)),
    "the same again": (_answered, request(1)),
    "the same again, paid anew": (_answered, request(1, fresh=True)),
    "an answer that another had": (_answered, request(1, analyst="bob")),
    "an answer that another had, beyond the quota": (_used_up, request(1, analyst="bob")),
    "beyond the quota": (_used_up, request(4, analyst="bob")),
    "more than one question may cost": (_answered, request(2, "0.6")),
    "less than one question costs": (_answered, request(2, "1/100000")),
    "somebody else's catalog": (_answered, request(2, catalog_hash="c2")),
    "after a failure": (_failed, request(3)),
    "an answer after a failure": (_failed, request(1)),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_preview_is_what_reserving_does(name: str) -> None:
    prepare, wanted = SITUATIONS[name]
    ledger = memory()
    try:
        prepare(ledger)
        before = ledger.store.state()
        told = ledger.preview(wanted, DECLARED, (None,))
        assert ledger.store.state() == before
        ledger.register(DECLARED)
        refusal, again = _reserved(ledger, wanted)
        assert (told.refusal, told.again is not None and not told.refusal) == (refusal, again)
    finally:
        ledger.close()


def _reserved(ledger: Ledger, wanted: Request) -> tuple[str, bool]:
    """Why reserving was refused, and whether an answer was shown again."""
    try:
        return "", isinstance(ledger.reserve(wanted), StoredAnswer)
    except (BudgetError, LedgerError) as refused:
        return refused.what, False


def test_the_situations_are_both_allowed_and_refused() -> None:
    assert {"", "The quota"} <= {_told(name)[:9] for name in SITUATIONS}
    assert len({_told(name) for name in SITUATIONS}) >= 6


def _told(name: str) -> str:
    prepare, wanted = SITUATIONS[name]
    ledger = memory()
    try:
        prepare(ledger)
        return ledger.preview(wanted, DECLARED, (None,)).refusal
    finally:
        ledger.close()


def test_a_name_that_may_not_ask_is_no_matter_of_price(ledger: Ledger) -> None:
    ledger.register(DECLARED)
    with pytest.raises(ArgumentError, match="none of the catalog's analysts"):
        ledger.preview(request(2, analyst="eve"), DECLARED, (None,))


def test_a_catalog_that_was_changed_meanwhile_is_refused(ledger: Ledger) -> None:
    ledger.register(DECLARED)
    newer: Declaration = declaration(catalog_hash="c2", snapshot="2026-12")
    told = ledger.preview(request(1, catalog_hash="c2", snapshot="2026-12"), newer, (None,))
    assert told.refusal == "The catalog was changed while this session was open."
