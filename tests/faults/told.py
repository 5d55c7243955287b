"""Compares the charge that an error states with the ledger."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dither.curator import Curator
from dither.errors import DitherError
from dither.ledger import opening
from dither.ledger.records import Cancelled, Committed, Reserved
from dither.ledger.verify.report import verify

Outcome = list[Any]  # question, what became of it, and of an error its fix and what it says was charged; given again or not


def outcome(survey: Curator, text: str, **options: Any) -> Outcome:
    """Asks and returns the answer or the DitherError. Other exceptions pass."""
    try:
        answer = survey.ask(text, epsilon="0.1", **options)
        return [text, "answered", "", "ε = 0.1", answer.replayed]
    except DitherError as error:
        return [text, error.what, error.fix, error.charged, False]


def charged(where: str, *, whole: bool = True) -> tuple[Counter[str], set[str]]:
    """Returns how often each question was charged, and which were answered. A `whole` ledger must verify."""
    ledger = opening.view(where)
    assert not whole or verify(ledger.store).problems == ()
    entries = list(ledger.history())
    ledger.close()
    reserved = {entry.number: entry.record.question for entry in entries if isinstance(entry.record, Reserved)}
    back = {entry.record.reserved for entry in entries if isinstance(entry.record, Cancelled)}
    kept = {reserved[entry.record.reserved] for entry in entries if isinstance(entry.record, Committed)}
    return Counter(text for number, text in reserved.items() if number not in back), kept


def sure(says: str) -> bool | None:
    """Returns whether an error says that its question was charged; None if it says that this is unknown."""
    if "nothing" in says:
        return False
    return None if any(word in says for word in ("perhaps", "if its entry", "unless")) else True


def true(told: Outcome, paid: Counter[str], kept: set[str]) -> str:
    """ "answered", "nothing", "charged" or "perhaps", if that is what the ledger says, too."""
    text, what, fix, says, again = told
    if what == "answered":
        assert text in kept
        assert again or paid[text] >= 1
        return "answered"
    assert what.endswith(".")
    assert fix
    claim = sure(says)
    if claim is None:
        return "perhaps"
    assert claim == bool(paid[text]), (told, paid[text])
    assert claim or text not in kept
    return "charged" if claim else "nothing"
