"""Verification checks the rules too: the key's holder could write a valid chain that breaks them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dither.ledger.stores.base import Row
from dither.ledger.verify.report import verify
from ledger.asking import KEY, Fake
from ledger.edits import canonical, ended, rechained

# --- what only the holder of the key could write ------------------------------------------------------------------


def rewritten(fake: Fake, number: int, **changes: Any) -> list[str]:
    """Returns the problems after an entry was changed and the chain rebuilt with the key."""
    rows = list(fake.kept)
    row = rows[number - 1]
    rows[number - 1] = row._replace(body=canonical(json.loads(row.body) | changes))
    return list(verify(ended(fake, rechained(rows, KEY), KEY)).problems)


CASES: list[tuple[int, dict[str, Any], str]] = [
    (3, {"rule": "zcdp"}, "under the rule it names"),
    (3, {"analyst": "eve"}, "not one of the analysts"),
    (3, {"catalog": "c9"}, "not in force"),
    (3, {"plan": "another"}, "digest that is not its question's"),
    (3, {"loss": {"epsilon": "11", "delta": "0", "rho": "1", "slack": "0"}}, "more than one question may"),
    (3, {"loss": {"epsilon": "1/10", "delta": "1/8", "rho": "1", "slack": "0"}}, "more than one question may"),
    (3, {"loss": {"epsilon": "1/10", "delta": "1/8", "rho": "1/100", "slack": "0"}}, "quota"),
    (3, {"loss": {"epsilon": "0", "delta": "0", "rho": "0", "slack": "0"}}, "charges nothing"),
    (3, {"loss": {"epsilon": "1/10001", "delta": "0", "rho": "1/100", "slack": "0"}}, "costs less than one question must"),
    (3, {"loss": {"epsilon": "1/10", "delta": "0", "rho": "1/1000000", "slack": "0"}}, "costs less than one question must"),
    (3, {"loss": {"epsilon": "6/10", "delta": "0", "rho": "1", "slack": "0"}}, "lowest terms"),
    (3, {"loss": {"epsilon": "3/5", "delta": "0", "rho": "1", "slack": "0"}}, "quota"),
    (4, {"token": "0" * 64}, "was not written by the process that reserved"),
    (4, {"reserved": 2}, "not open"),
    (6, {"reserved": 3}, "not open"),
    (7, {"loss": {"epsilon": "1/20", "delta": "0", "rho": "1/200", "slack": "0"}}, "another question"),
    (7, {"analyst": "ada"}, "twice for one analyst"),
    (7, {"committed": 3}, "no committed entry"),
    (8, {"time": "2026-11-15T11:59:59.999999Z"}, "earlier than the entry before"),
    (8, {"epsilon": "2"}, "changes the budget"),
    (8, {"neighbours": "replace one person"}, "neighbour relation"),
    (8, {"units": {"people": "row"}}, "unit of people"),
    (12, {"token": "0" * 64}, "was not written by the process that reserved"),
    (12, {"why": "interrupt"}, "not closed by the entry it names"),
    (12, {"why": "boredom"}, "has no right why"),
    (13, {"closed": 11}, "not closed by the entry it names"),
    (13, {"closed": 0}, "not closed by the entry it names"),
    (15, {"reserved": 9}, "not open"),
    (2, {"least_epsilon": "1/5"}, "costs less than one question must"),
    (8, {"least_epsilon": "0"}, "least_epsilon that is not between"),
    (8, {"least_epsilon": "2"}, "least_epsilon that is not between"),
    (1, {"ledger": "f" * 32}, "another ledger"),
]


@pytest.mark.parametrize(("number", "changes", "problem"), CASES)
def test_rules_are_checked_even_where_the_chain_is_whole(
    fake: Fake, number: int, changes: dict[str, Any], problem: str
) -> None:
    found = rewritten(fake, number, **changes)
    assert any(problem in each for each in found), found


def test_that_check_starts_from_nothing_else(fake: Fake) -> None:
    """Without a change, only signatures and stored hashes show that the chain was rebuilt."""
    assert all("signed" in each or "hash" in each for each in rewritten(fake, 3))


def test_a_question_in_a_closed_catalog_is_found(fake: Fake) -> None:
    rows = [row for row in fake.kept if row.kind != "reopened/1"]
    found = verify(ended(fake, rechained(rows, KEY), KEY)).problems
    assert any("was asked while entry 12 had closed the catalog" in each for each in found), found


def test_the_third_death_closes(fake: Fake) -> None:
    """Three reservations that ended with their process: a question after the third is found, one after the second is not."""
    lapsed = json.loads(fake.kept[14].body)
    reserved = fake.kept[13]
    for deaths in (2, 3):
        rows = fake.kept[:13]
        for number in range(14, 14 + 2 * deaths, 2):
            asked = rechained([*rows, reserved], KEY)[-1]
            body = canonical(lapsed | {"reserved": number, "reserved_hash": asked.hash})
            rows = rechained([*rows, reserved, fake.kept[14]._replace(body=body)], KEY)
        found = verify(ended(fake, rechained([*rows, reserved], KEY), KEY)).problems
        assert any("had closed the catalog" in each for each in found) == (deaths == 3), found


@pytest.mark.parametrize(
    ("caps", "problem"),
    [
        ({"rho_max": "1"}, "larger than its delta_conversion"),
        ({"delta_sums": "1"}, "epsilon of 0 or less"),
        ({"epsilon": "0"}, "epsilon of 0 or less"),
    ],
)
def test_caps_must_be_sound(fake: Fake, caps: dict[str, str], problem: str) -> None:
    found = rewritten(fake, 1, caps=json.loads(fake.kept[0].body)["caps"] | caps)
    assert any(problem in each for each in found), found


def problems(rows: list[Row], fake: Fake) -> str:
    return "\n".join(verify(Fake(rows, fake.texts)).problems)


def test_each_kind_of_damage_is_named(fake: Fake) -> None:
    """One edit causes several problems; all are listed, so that no check can go missing unnoticed."""
    rows = fake.kept
    edited = rows[3]._replace(body=rows[3].body.replace('"payload":"42"', '"payload":"43"'))
    assert "entry 4 does not have the hash that is beside it" in problems([*rows[:3], edited, *rows[4:]], fake)
    assert "after entry 3 comes entry 5" in problems(rows[:3] + rows[4:], fake)
    other = rows[3]._replace(hash="f" * 64)
    assert "entry 5 does not follow the entry before it" in problems([*rows[:3], other, *rows[4:]], fake)
    unsigned = rows[6]._replace(signature=rows[3].signature)
    assert problems([*rows[:6], unsigned, *rows[7:]], fake) == "entry 7 is not signed with the ledger's key."
    signed = rows[4]._replace(signature=rows[3].signature)
    assert problems([*rows[:4], signed, *rows[5:]], fake) == "entry 5 is not signed with the ledger's key."
    assert problems(rows, fake) == ""
