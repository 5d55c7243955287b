"""Changes and failures while a ledger is open are refused, given back or charged, never silently."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator
from dither.ledger.opening import memory
from dither.ledger.reservations import Reservation
from dither.ledger.verify.report import verify
from dither.workspace import ledger_refusal
from journey.paid import COUNT, Broken, kinds, opened, people, second_time, write

# --- the catalog and the data change -----------------------------------------------------------------------------------


def test_a_catalog_edited_under_a_session_is_refused(folder: Path) -> None:
    survey = opened(folder)
    survey.ask(COUNT, epsilon="0.1")
    write(folder, high=200)
    for fresh in (False, True):
        with pytest.raises(dt.LedgerError, match=r"catalog file was changed(.|\n)*Charged: nothing"):
            survey.ask(COUNT, epsilon="0.1", fresh=fresh)
    (folder / "survey.toml").unlink()
    with pytest.raises(dt.LedgerError, match="changed"):
        survey.ask(COUNT, epsilon="0.1")
    assert kinds(survey.ledger) == ["opened", "catalog", "reserved", "committed"]
    write(folder)
    (folder / "survey.toml").write_text("# a note\n" + (folder / "survey.toml").read_text(encoding="utf-8"), encoding="utf-8")
    assert survey.ask(COUNT, epsilon="0.1", fresh=True)  # a comment declares nothing


def test_another_session_that_changed_the_catalog_ends_this_one(folder: Path) -> None:
    catalogs = [
        dt.Catalog(
            {"people": dt.Table(people(), unit="person", max_rows=1, columns={"age": dt.between(0, high)})}, dt.Budget(1)
        )
        for high in (120, 130)
    ]
    idle, first, second = (dt.open(each, folder / "two.ledger", make=True) for each in (catalogs[0], *catalogs))
    assert first.ask(COUNT, epsilon="0.1")
    assert dt.open(catalogs[1], folder / "two.ledger").ask(COUNT, epsilon="0.1")  # opened later, and asked: in force now
    for old in (idle, first):  # whether it had asked before or not
        with pytest.raises(dt.LedgerError, match=r"catalog was changed(.|\n)*Charged: nothing"):
            old.ask(COUNT, epsilon="0.1", fresh=True)
        assert "changed" in old.quote(COUNT, epsilon="0.2").refusal
    assert second.ask(COUNT, epsilon="0.1", fresh=True)  # what it declares is what is in force


@pytest.mark.parametrize("change", [{"unit": "household"}, {"epsilon": 2}, {"more": "delta = 1e-6"}])
def test_a_changed_promise_is_refused(folder: Path, change: dict[str, Any]) -> None:
    opened(folder).ask(COUNT, epsilon="0.1")
    write(folder, **change)
    with pytest.raises(dt.LedgerError, match="Charged: nothing"):
        opened(folder)
    write(folder)
    assert opened(folder).budget.spent.epsilon == Fraction(1, 10)  # and the old one goes on where it was


def test_the_unit_of_a_child_changes_with_that_of_its_parent() -> None:
    def with_unit(unit: str) -> dt.Catalog:
        columns = {"person": dt.column(kind="int"), "household": dt.column(kind="int")}
        visits = pd.DataFrame({"person": [1, 1, 2]})
        references = {"column": "person", "references": "people.person"}
        return dt.Catalog(
            {
                "people": dt.Table(people(), unit=unit, max_rows=1, columns=columns),
                "visits": dt.Table(visits, unit=references, max_rows=3),
            },
            dt.Budget(1),
        )

    ledger = memory()
    for unit in ("person", "household"):
        survey = dt.open(with_unit(unit), ":memory:")
        if unit == "person":
            Curator(survey.catalog, survey.engine, ledger).ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")
        else:
            with pytest.raises(dt.LedgerError, match="The unit of visits"):
                Curator(survey.catalog, survey.engine, ledger)


def test_changed_data_starts_no_fresh_budget(folder: Path) -> None:
    survey = opened(folder)
    survey.ask(COUNT, epsilon="0.9")
    people(500).to_parquet(folder / "people.parquet")
    with pytest.raises(dt.DitherError, match=r"no longer those that were opened(.|\n)*Charged: nothing"):
        survey.ask(COUNT, epsilon="0.05")
    write(folder, snapshot="2026-12")
    with pytest.raises(dt.BudgetError):
        opened(folder).ask(COUNT, epsilon="0.9")


# --- what stops us -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("watch", "error"),
    [
        ("files", dt.DitherError),
        ("current", dt.LedgerError),
    ],
)
def test_what_changes_while_the_price_is_paid_gives_it_back(folder: Path, watch: str, error: type[Exception]) -> None:
    survey, engine = opened(folder), Broken(AssertionError())
    survey.engine = engine
    setattr(survey.session, watch, second_time(True, False))
    with pytest.raises(error, match="Charged: nothing"):
        survey.ask(COUNT, epsilon="0.1")
    assert kinds(survey.ledger)[2:] == ["reserved", "cancelled"]
    assert survey.budget.spent.epsilon == 0
    assert engine.calls == 0
    assert verify(survey.ledger.store).problems == ()


def test_an_interruption_before_the_data_is_touched_costs_nothing(folder: Path) -> None:
    survey, engine = opened(folder), Broken(AssertionError())
    survey.engine = engine
    survey.session.files = second_time(True, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        survey.ask(COUNT, epsilon="0.1")
    assert survey.budget.spent.epsilon == 0
    assert kinds(survey.ledger)[2:] == ["reserved", "cancelled"]
    assert engine.calls == 0


def test_an_interruption_after_that_stays_charged(folder: Path) -> None:
    survey = opened(folder)
    survey.engine = Broken(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        survey.ask(COUNT, epsilon="0.1")
    assert survey.budget.spent.epsilon == Fraction(1, 10)
    assert kinds(survey.ledger)[2:] == ["reserved", "failed"]
    assert not survey.closed  # the asker's own doing


def test_an_interruption_at_the_very_touch_is_never_both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def touched(reservation: Reservation) -> None:
        touch(reservation)
        raise KeyboardInterrupt

    touch = Reservation.touch
    monkeypatch.setattr(Reservation, "touch", touched)
    survey = opened(folder)
    with pytest.raises(KeyboardInterrupt):
        survey.ask(COUNT, epsilon="0.1")
    assert survey.budget.spent.epsilon == Fraction(1, 10)


def test_an_answer_that_cannot_be_kept_is_not_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise dt.LedgerError("The disk is full.", fix="free some space.")

    survey = opened(folder)
    monkeypatch.setattr(survey.ledger, "commit", full)
    with pytest.raises(dt.LedgerError, match=r"disk is full(.|\n)*Charged: ε = 0\.1"):
        survey.ask(COUNT, epsilon="0.1")
    assert survey.budget.spent.epsilon == Fraction(1, 10)


def test_check_tells_what_the_ledger_would_refuse(folder: Path) -> None:
    catalog, where = folder / "survey.toml", folder / "survey.ledger"
    assert ledger_refusal(catalog, where) == ""  # there is none yet
    with opened(folder) as survey:
        survey.ask(COUNT, epsilon="0.1")
    assert ledger_refusal(catalog, where) == ""
    write(folder, unit="household")
    assert "unit of people was" in ledger_refusal(catalog, where)
    write(folder, epsilon=2)
    assert "not the one this ledger was opened with" in ledger_refusal(catalog, where)
