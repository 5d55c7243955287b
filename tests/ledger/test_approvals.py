"""Approvals: nothing that needs one is charged without it, and verification proves that."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from dither.errors import ApprovalError, ArgumentError, ClosedError, LedgerError
from dither.history import ApprovalLog
from dither.ledger import approvals
from dither.ledger.approvals import MOST_OPEN
from dither.ledger.ledger import Ending, Ledger
from dither.ledger.records import INTERRUPT
from dither.ledger.rules import StoredAnswer
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from ledger.asking import IDENTITY, KEY, Clock, Fake, asked, declaration, request, reserved
from ledger.edits import ended, rechained

TENTH = Fraction(1, 10)


def filed(ledger: Ledger, *args: object, **changes: object) -> int:
    """Asks without an approval, and returns the request."""
    with pytest.raises(ApprovalError) as error:
        ledger.reserve(request(*args, **changes))  # type: ignore[arg-type]
    return error.value.request


def test_above_the_price_a_question_waits_and_costs_nothing(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    asked(ledger, 1, "0.1")
    number = filed(ledger, 2, "0.2")
    assert number == ledger.head().number
    assert ledger.balance().sums.epsilon == asked_epsilon("0.1")
    assert verify(ledger.store).ok


def asked_epsilon(text: str) -> int:
    from dither.privacy.filters import GRID

    return int(Fraction(text) * GRID)


def test_an_approval_admits_its_question_once(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    ledger.decide(number, "cora", approve=True, seconds=60)
    asked(ledger, 2, "0.2")
    assert isinstance(ledger.reserve(request(2, "0.2")), StoredAnswer)  # a stored answer needs none
    filed(ledger, 2, "0.2", fresh=True)
    assert verify(ledger.store).ok


def test_a_cancelled_question_gives_its_approval_back(ledger: Ledger) -> None:
    """It was charged nothing and nobody read a row, so the curator's word still holds: for the same question, once."""
    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    ledger.decide(number, "cora", approve=True, seconds=60)
    log = ApprovalLog(ledger.store)
    for _ in range(2):
        held = reserved(ledger, 2, "0.2")
        assert states(log, ledger) == {number: "used"}
        ledger.cancel(held)
        assert states(log, ledger) == {number: "approved"} == states(ApprovalLog(ledger.store), ledger)
        assert ledger.balance().sums.epsilon == 0
        assert verify(ledger.store).ok
    filed(ledger, 3, "0.2")
    filed(ledger, 2, "0.2", analyst="bob")
    asked(ledger, 2, "0.2")
    filed(ledger, 2, "0.2", fresh=True)
    assert verify(ledger.store).ok


def states(log: ApprovalLog, ledger: Ledger) -> dict[int, str]:
    return {each["id"]: each["state"] for each in log.read(ledger.head().number, "2026")}


def test_an_approval_that_was_given_back_ends_when_it_would_have(ledger: Ledger, clock: Clock) -> None:
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    held = reserved(ledger, 2, "0.2")
    clock.move(seconds=61)
    ledger.cancel(held)
    filed(ledger, 2, "0.2")
    assert verify(ledger.store).ok


def test_a_question_that_reached_the_engine_keeps_its_approval_used(ledger: Ledger) -> None:
    """The twin: what may have been read is charged, and its approval is spent."""
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    held = reserved(ledger, 2, "0.2")
    held.touch()
    assert ledger.give_up(held, INTERRUPT) is Ending.CHARGED
    filed(ledger, 2, "0.2")
    assert verify(ledger.store).ok


@pytest.mark.parametrize("approval", [2, 5, 99])
def test_an_approval_that_was_not_used_is_not_given_back(clock: Clock, approval: int) -> None:
    """Even if whoever forges it holds the key, and seals everything again."""
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, clock)
    ledger.register(declaration())
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    ledger.cancel(reserved(ledger, 2, "0.2"))
    fake = Fake.of(ledger.store)
    rows = list(fake.rows())
    body = json.loads(rows[-1].body) | {"approval": approval}
    rows[-1] = rows[-1]._replace(body=json.dumps(body, sort_keys=True, separators=(",", ":")))
    wrong = verify(ended(fake, rechained(rows, KEY), KEY))
    assert any("gives back an approval" in problem for problem in wrong.problems)


@pytest.mark.parametrize(
    "changes", [{"analyst": "bob"}, {"epsilon": "0.3", "plan": "dearer"}, {"plan": 3}, {"snapshot": "2026-12"}]
)
def test_an_approval_is_for_one_question_at_one_price_by_one_analyst(ledger: Ledger, changes: dict[str, object]) -> None:
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    if "snapshot" in changes:
        ledger.register(declaration(snapshot="2026-12"))
    filed(ledger, **({"plan": 2, "epsilon": "0.2"} | changes))
    asked(ledger, 4, "0.05", **({"snapshot": "2026-12"} if "snapshot" in changes else {}))
    assert verify(ledger.store).ok


def test_an_approval_ends(ledger: Ledger, clock: Clock) -> None:
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    clock.move(seconds=61)
    filed(ledger, 2, "0.2")
    assert verify(ledger.store).ok


def test_a_refusal_admits_nothing(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    ledger.decide(number, "cora", approve=False, words="too dear")
    assert filed(ledger, 2, "0.2") > number
    assert verify(ledger.store).ok


def test_chosen_tables_wait_at_any_price(ledger: Ledger) -> None:
    ledger.set_policy(None, ["Visits"])
    asked(ledger, 1, "0.9")
    number = filed(ledger, 2, "0.01", tables=("VISITS", "people"))
    ledger.decide(number, "cora", approve=True, seconds=60)
    asked(ledger, 2, "0.01", tables=("visits", "people"))
    assert verify(ledger.store).ok


def test_asking_again_files_no_second_request(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    head = ledger.head()
    assert filed(ledger, 2, "0.2") == number
    assert ledger.head() == head


def test_requests_are_limited_for_each_analyst(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    for plan in range(MOST_OPEN):
        filed(ledger, plan, "0.2")
    with pytest.raises(LedgerError, match="wait for a curator already"):
        ledger.reserve(request("one more", "0.2"))
    filed(ledger, "one more", "0.2", analyst="bob")
    assert verify(ledger.store).ok


def test_what_the_budget_refuses_is_not_requested(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    head = ledger.head()
    with pytest.raises(Exception, match="budget does not allow"):
        ledger.reserve(request(2, "2"))
    assert ledger.head() == head


def test_nobody_decides_on_their_own_question_or_twice(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    with pytest.raises(ArgumentError, match="own question"):
        ledger.decide(number, "ada", approve=True, seconds=60)
    with pytest.raises(ArgumentError, match="no request that waits"):
        ledger.decide(1, "cora", approve=True, seconds=60)
    ledger.decide(number, "cora", approve=True, seconds=60)
    with pytest.raises(ArgumentError, match="no request that waits"):
        ledger.decide(number, "cora", approve=True, seconds=60)


def test_a_quote_says_that_it_would_wait(ledger: Ledger) -> None:
    ledger.set_policy(TENTH)
    head = ledger.head()
    assert "waits for a curator" in ledger.preview(request(2, "0.2"), declaration(), ()).refusal
    assert ledger.head() == head
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    assert ledger.preview(request(2, "0.2"), declaration(), ()).refusal == ""


def test_the_same_policy_is_written_once(ledger: Ledger) -> None:
    ledger.set_policy(TENTH, ["b", "A"])
    head = ledger.head()
    ledger.set_policy(TENTH, ["a", "B"])
    assert ledger.head() == head
    ledger.set_policy(None)
    assert ledger.head().number == head.number + 1
    assert verify(ledger.store).ok


def test_a_ledger_that_does_not_check_is_found(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Twin: the same questions through a ledger that forgets to ask for approvals."""
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, clock)
    ledger.register(declaration())
    ledger.set_policy(TENTH)
    monkeypatch.setattr(approvals.Approvals, "why", lambda self, request: "")
    asked(ledger, 2, "0.2")
    assert any("without the approval" in problem for problem in verify(ledger.store).problems)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"by": "ada"}, "the one who decides"),
        ({"requested": 2}, "does not wait"),
        ({"requested_hash": "0" * 64}, "another hash"),
        ({"until": "2020-01-01T00:00:00.000000Z"}, "ended before it began"),
    ],
)
def test_forged_approvals_are_found(clock: Clock, change: dict[str, object], says: str) -> None:
    """Even if whoever forges them holds the key, and seals everything again."""
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, clock)
    ledger.register(declaration())
    ledger.set_policy(TENTH)
    ledger.decide(filed(ledger, 2, "0.2"), "cora", approve=True, seconds=60)
    fake = Fake.of(ledger.store)
    rows = list(fake.rows())
    place = next(i for i, row in enumerate(rows) if row.kind == "approved/1")
    body = json.loads(rows[place].body) | change
    rows[place] = rows[place]._replace(body=json.dumps(body, sort_keys=True, separators=(",", ":")))
    wrong = verify(ended(fake, rechained(rows, KEY), KEY))
    assert any(says in problem for problem in wrong.problems)


def test_an_approval_cannot_be_written_into_the_state_without_the_key(ledger: Ledger, clock: Clock) -> None:
    from ledger.test_seal import put

    ledger.set_policy(TENTH)
    number = filed(ledger, 2, "0.2")
    state = ledger.approvals()
    put(ledger.store, "approvals", state.decided(number, "2099-01-01T00:00:00.000000Z", "").text())
    with pytest.raises(LedgerError, match="without its key"):
        Ledger(ledger.store, KEY, clock).reserve(request(2, "0.2"))
    assert not verify(ledger.store).ok


def test_a_catalog_is_closed_and_reopened_by_hand(ledger: Ledger) -> None:
    asked(ledger, 1)
    ledger.close_questions("cora", "the audit begins")
    with pytest.raises(ClosedError, match="the curator closed it"):
        ledger.reserve(request(2))
    assert isinstance(ledger.reserve(request(1)), StoredAnswer)
    report = verify(ledger.store)
    assert (report.ok, report.closed) == (True, ledger.fuse().closed)
    ledger.reopen()
    asked(ledger, 2)
    assert verify(ledger.store).ok


def test_a_ledger_without_a_catalog_has_no_policy(empty: Ledger) -> None:
    for write in (lambda: empty.set_policy(TENTH), lambda: empty.close_questions("cora")):
        with pytest.raises(LedgerError, match="no catalog yet"):
            write()
