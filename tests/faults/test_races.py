"""Whole asks race for what is left of the budget: exactly as many as it allows are answered."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import dither as dt
from dither.ledger.verify.report import verify
from faults.programs import program
from journey.paid import COUNT


def prepared(folder: Path, kind: str, request: pytest.FixtureRequest) -> dt.Curator:
    """A survey of which seven tenths are spent."""
    where = folder / "survey.ledger" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    survey = dt.open(folder / "survey.toml", where, key=folder / "survey.key", make=True)
    for _ in range(7):
        survey.ask(COUNT, epsilon="0.1", fresh=True)
    return survey


@pytest.mark.parametrize(("processes", "threads"), [(16, 4), (1, 64)])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_exactly_as_many_are_answered_as_the_budget_allows(
    kind: str, processes: int, threads: int, folder: Path, request: pytest.FixtureRequest
) -> None:
    survey = prepared(folder, kind, request)
    where = str(folder / "survey.ledger") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    words = (str(folder), where, str(folder / "survey.key"), str(processes), str(threads))
    outcomes = program("racing.py", *words)["outcomes"]
    assert Counter(what for what, _, _ in outcomes) == {"answered": 3, "refused": processes * threads - 3}
    assert all("Charged: nothing" in text for what, _, text in outcomes if what == "refused")
    assert survey.budget.spent.epsilon == 1
    receipts = [dt.Receipt.from_json(text) for what, _, text in outcomes if what == "answered"]
    for receipt in receipts:
        assert verify(survey.ledger.store, receipt=receipt).problems == ()
    survey.ledger.close()


def test_that_check_can_fail(folder: Path, request: pytest.FixtureRequest) -> None:
    """A curator that looks first and charges later lets everyone through, and verification says so."""
    survey = prepared(folder, "sqlite", request)
    words = (str(folder), str(folder / "survey.ledger"), str(folder / "survey.key"), "4", "4", "apart")
    assert Counter(what for what, _, _ in program("racing.py", *words)["outcomes"]) == {"answered": 16}
    assert survey.budget.spent.epsilon == Fraction(23, 10)
    assert any("does not allow" in problem or "allowed" in problem for problem in verify(survey.ledger.store).problems)
    survey.ledger.close()
