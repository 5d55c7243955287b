"""Questions on the real engine and a ledger file: charged first, stored before shown, free the second time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.ledger.verify.report import verify
from journey.paid import COUNT, MEANS, Broken, kinds, opened, people, write

# --- which ledger ------------------------------------------------------------------------------------------------------


def test_a_catalog_file_finds_the_ledger_beside_it_and_never_makes_one(folder: Path) -> None:
    with pytest.raises(dt.LedgerError, match=r"There is no ledger survey\.ledger(.|\n)*dither init(.|\n)*Charged: nothing"):
        dt.open(folder / "survey.toml")
    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet", "survey.toml"]
    opened(folder).ask(COUNT, epsilon="0.1")
    assert dt.open(folder / "survey.toml").budget.spent.epsilon == Fraction(1, 10)


def test_a_named_ledger_is_made_once(folder: Path) -> None:
    opened(folder).ask(COUNT, epsilon="0.4")
    again = opened(folder)
    assert again.budget.spent.epsilon == Fraction(2, 5)
    assert (folder / "survey.ledger.key").stat().st_mode & 0o077 == 0
    again.ask(COUNT, epsilon="0.5", fresh=True)
    with pytest.raises(dt.BudgetError, match=r"left ε = 0\.1"):
        opened(folder).ask(COUNT, epsilon="0.2")


def test_asking_never_makes_a_ledger_that_went_away(folder: Path) -> None:
    survey = opened(folder)
    survey.ask(COUNT, epsilon="0.1")
    survey.ledger.close()
    for file in folder.glob("survey.ledger*"):
        file.unlink()
    with pytest.raises(dt.LedgerError):
        survey.ask(COUNT, epsilon="0.1", fresh=True)
    assert not list(folder.glob("survey.ledger"))


def test_a_file_that_is_no_ledger_is_not_written_over(folder: Path) -> None:
    (folder / "survey.ledger").write_text("my diary", encoding="utf-8")
    with pytest.raises(dt.LedgerError):
        opened(folder)
    assert (folder / "survey.ledger").read_text(encoding="utf-8") == "my diary"


def test_a_catalog_without_a_file_needs_its_ledger_named(folder: Path) -> None:
    catalog = dt.Catalog(
        {"people": dt.Table(people(), unit="person", max_rows=1, columns={"age": dt.between(0, 120)})}, dt.Budget(1)
    )
    with pytest.raises(dt.LedgerError, match="needs its ledger named"):
        dt.open(catalog)
    for odd in ({"ledger": 3}, {"ledger": ""}, {"ledger": "a.ledger", "key": 3}, {"ledger": ":memory:", "analyst": 3}):
        with pytest.raises(dt.ArgumentError):
            dt.open(catalog, **odd)  # type: ignore[arg-type]
    assert dt.open(catalog, ":memory:").ask(COUNT, epsilon="0.1").receipt
    assert dt.open(catalog, folder / "other.ledger", make=True).budget.total.epsilon == 1


# --- given again -------------------------------------------------------------------------------------------------------


def test_the_same_question_is_given_again_for_nothing(folder: Path) -> None:
    survey = opened(folder)
    first, second = (
        survey.ask(MEANS, epsilon="0.1"),
        opened(folder).ask(MEANS.lower().replace("group by", "GROUP  BY"), epsilon="1/10"),
    )
    assert (first.replayed, second.replayed) == (False, True)
    assert second.rows == first.rows
    assert second.receipt == first.receipt
    assert survey.budget.spent.epsilon == Fraction(1, 10)
    entry = first.receipt.body["entry"]["number"]
    assert f"this is the answer of entry {entry}, given again: charged nothing" in str(second)
    assert "charged ε = 0.1; left ε = 0.9" in str(first)
    assert kinds(survey.ledger) == ["opened", "catalog", "reserved", "committed"]
    fluent = survey.table("people").group_by("region").agg(n=dt.count(), age=dt.mean("age"))
    assert survey.ask(fluent, epsilon="0.1").replayed
    assert survey.ask(MEANS, epsilon="0.1", confidence="0.5").replayed  # how sure to be is post-processing


def test_every_margin_and_form_of_a_replay_is_that_of_the_first(folder: Path) -> None:
    survey = opened(folder)
    first, second = (survey.ask(MEANS, epsilon="0.1") for _ in range(2))
    assert first.margins(0.9) == second.margins(0.9)
    assert first.to_pandas().equals(second.to_pandas())
    assert first._repr_html_().split("<p>")[0] == second._repr_html_().split("<p>")[0]


@pytest.mark.parametrize("other", [{"epsilon": "0.2"}, {"epsilon": "0.1", "fresh": True}, {"margin": 100}])
def test_another_price_is_another_question(folder: Path, other: dict[str, Any]) -> None:
    survey = opened(folder)
    survey.ask(COUNT, epsilon="0.1")
    spent = survey.budget.spent.epsilon
    assert not survey.ask(COUNT, **other).replayed
    assert survey.budget.spent.epsilon > spent


@pytest.mark.parametrize("change", [{"snapshot": "2026-12"}, {"high": 121}, {"more": "per_query = 0.9"}])
def test_another_catalog_or_snapshot_gives_no_old_answer(folder: Path, change: dict[str, Any]) -> None:
    opened(folder).ask(COUNT, epsilon="0.1")
    write(folder, **change)
    survey = opened(folder)
    assert not survey.ask(COUNT, epsilon="0.1").replayed
    assert survey.ask(COUNT, epsilon="0.1").replayed
    assert survey.budget.spent.epsilon == Fraction(2, 10)
    write(folder)
    assert opened(folder).ask(COUNT, epsilon="0.1").replayed  # the first answer still stands for the first catalog


def test_a_new_analyst_pays_a_share_of_the_quota_once(folder: Path) -> None:
    write(folder, more="per_analyst = 0.25")
    survey = opened(folder, analyst="ana")
    survey.ask(COUNT, epsilon="0.2")
    assert survey.ask(COUNT, epsilon="0.2").replayed
    seen = survey.ask(COUNT, epsilon="0.2", analyst="ben")
    assert seen.replayed
    assert "its price, ε = 0.2, counts in the quota of ben" in str(seen)
    assert "quota" not in str(survey.ask(COUNT, epsilon="0.2", analyst="ben"))
    assert survey.budget.spent.epsilon == Fraction(1, 5)
    for analyst in ("ana", "ben"):
        with pytest.raises(dt.BudgetError, match=rf"quota of {analyst} does not allow(.|\n)*Charged: nothing"):
            survey.ask(MEANS, epsilon="0.1", analyst=analyst)
    assert survey.ask(MEANS, epsilon="0.1", analyst="cleo")
    assert verify(survey.ledger.store).problems == ()


def test_a_reserved_entry_is_never_run_again_under_its_old_charge(folder: Path) -> None:
    survey = opened(folder)
    engine = survey.engine
    survey.engine = Broken(ValueError("Mrs Miller"))
    with pytest.raises(dt.EngineError, match=r"Charged: ε = 0\.1"):
        survey.ask(COUNT, epsilon="0.1")
    survey.engine = engine
    survey.reopen()
    answer = survey.ask(COUNT, epsilon="0.1")
    assert not answer.replayed
    assert survey.budget.spent.epsilon == Fraction(1, 5)
    assert kinds(survey.ledger)[2:] == ["reserved", "failed", "reopened", "reserved", "committed"]
    assert verify(survey.ledger.store).problems == ()


# --- who may ask, and how much -----------------------------------------------------------------------------------------


def test_ten_tenths_are_one_exactly(folder: Path) -> None:
    write(folder, more="least_epsilon = 1e-30")
    for _ in range(2):
        survey = opened(folder)
        for _ in range(5):
            survey.ask(COUNT, epsilon=0.1, fresh=True)
    assert survey.budget.share == 1
    assert survey.budget.left.epsilon == 0
    for tiny in ("1e-9", "1e-30"):
        with pytest.raises(dt.DitherError, match="Charged: nothing"):
            survey.ask(COUNT, epsilon=tiny)
    with pytest.raises(dt.BudgetError, match="left ε = 0"):
        survey.ask(COUNT, epsilon="1e-9")
    assert "it would be refused" in str(survey.quote(COUNT, epsilon="1e-9"))
    assert survey.quote(COUNT, epsilon="1e-9").refusal
    assert "it is the answer of entry 22 again: charged nothing" in str(survey.quote(COUNT, epsilon=0.1))
    assert not survey.quote(COUNT, epsilon=0.1).refusal
    assert survey.ask(COUNT, epsilon=0.1).replayed  # what was answered stays answered


@pytest.mark.parametrize("epsilon", [-1, 0, float("nan"), float("inf"), "1e400", "1e401", True, "one", [1], -0.1])
def test_no_strange_epsilon_is_a_price(folder: Path, epsilon: Any) -> None:
    survey = opened(folder)
    with pytest.raises(dt.DitherError, match="Charged: nothing"):
        survey.ask(COUNT, epsilon=epsilon)
    assert kinds(survey.ledger) == []


@pytest.mark.parametrize("delta", [1, "1.5", -1, float("nan"), "0.999", "6e-7"])
def test_no_strange_delta_is_a_price(folder: Path, delta: Any) -> None:
    write(folder, more="delta = 1e-6")
    survey = opened(folder)
    with pytest.raises(dt.DitherError, match="Charged: nothing"):
        survey.ask("SELECT town, COUNT(*) AS n FROM people GROUP BY town", epsilon="0.1", delta=delta)
    assert "reserved" not in kinds(survey.ledger)


def test_only_named_analysts_ask(folder: Path) -> None:
    write(folder, more='analysts = ["ana", "ben"]')
    survey = opened(folder)
    for analyst in (None, "eve", "Ana", ""):
        with pytest.raises(dt.DitherError, match="Charged: nothing"):
            survey.ask(COUNT, epsilon="0.1", analyst=analyst)
    assert survey.budget.spent.epsilon == 0
    assert survey.ask(COUNT, epsilon="0.1", analyst="ben").receipt.body["analyst"] == "ben"
    assert opened(folder, analyst="ana").ask(COUNT, epsilon="0.1").replayed
    with pytest.raises(dt.ArgumentError, match="none of the catalog's analysts"):
        survey.ask(COUNT, epsilon="0.1", analyst="eve")  # an old answer is not for everyone either


def test_one_question_has_a_cap(folder: Path) -> None:
    write(folder, more="per_query = 0.3")
    survey = opened(folder)
    with pytest.raises(dt.BudgetError, match=r"at most ε = 0\.3 (.|\n)*Charged: nothing"):
        survey.ask(COUNT, epsilon="0.31")
    assert "at most ε = 0.3" in survey.quote(COUNT, epsilon="0.31").refusal
    assert survey.ask(COUNT, epsilon="0.3")


@pytest.mark.slow
def test_many_gaussian_questions_fit_where_plain_sums_would_not(folder: Path) -> None:
    write(folder, more="delta = 1e-6", high=40)
    text = (folder / "survey.toml").read_text(encoding="utf-8").replace("max_rows = 1", "max_rows = 20\nmax_groups = 20")
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    survey = opened(folder)
    question = "SELECT region, age, COUNT(*) AS n FROM people GROUP BY region, age"
    rules = [survey.ask(question, epsilon="0.04", fresh=True).receipt.body["rule"] for _ in range(60)]
    assert rules[:25] == ["sum"] * 25
    assert rules[25:] == ["zcdp"] * 35
    standing = survey.budget
    assert standing.spent.epsilon == Fraction(240, 100) > 1
    assert standing.left.epsilon == 0  # never below
    assert 0 < standing.share < 1
    assert standing.share == standing.rho[0] / standing.rho[1]
    assert "the sum of ρ admits more" in str(standing)
    assert "left ρ = " in str(survey.ask(question, epsilon="0.04", fresh=True))
    pure = dt.open(dt.Catalog(survey.catalog.tables, dt.Budget(1)), ":memory:")
    for _ in range(25):  # the twin: without a delta the plain sum alone decides
        pure.ask(question, epsilon="0.04", fresh=True)
    with pytest.raises(dt.BudgetError):
        pure.ask(question, epsilon="0.04", fresh=True)
    assert verify(survey.ledger.store).problems == ()


def test_a_delta_that_a_question_does_not_use_makes_no_other_question_of_it(folder: Path) -> None:
    write(folder, more="delta = 1e-6")
    survey = opened(folder)
    answers = [survey.ask(COUNT, "0.1", delta) for delta in (None, 0, "1e-9")]
    assert [each.replayed for each in answers] == [False, True, True]
    assert survey.budget.spent.epsilon == Fraction(1, 10)
    keys = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"  # the twin: its keys are shown by the delta
    assert [survey.ask(keys, "0.1", delta).replayed for delta in ("1e-9", "2e-9")] == [False, False]


def test_a_delta_that_nobody_named_is_a_share_of_the_plain_sum(folder: Path) -> None:
    write(folder, more="delta = 1e-6")
    survey = opened(folder)
    keys = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
    assert survey.quote(keys, epsilon="0.1").plan.price.delta == Fraction(5, 10**8)
    third = survey.quote(keys, epsilon="1/3").plan.price.delta
    assert third.denominator <= 10**30
    assert 0 <= Fraction(1, 6 * 10**6) - third < Fraction(1, 10**30)
    for _ in range(10):
        survey.ask(keys, epsilon="0.1", fresh=True)  # ten tenths fit, with their deltas
    assert survey.budget.left == type(survey.budget.left)(Fraction(0), Fraction(0))


def test_opening_and_quoting_fix_no_budget_and_the_first_question_does(folder: Path) -> None:
    """A draft can be opened, quoted and edited; the first question fixes its budget."""
    for epsilon in (2, 1):
        write(folder, epsilon=epsilon)
        with opened(folder) as survey:
            survey.quote(COUNT, epsilon="0.1")
            assert survey.budget.total.epsilon == epsilon
            assert survey.ledger.head().number == 0
    with opened(folder) as survey:
        survey.ask(COUNT, epsilon="0.1")
    write(folder, epsilon=2)
    with pytest.raises(dt.LedgerError, match="not the one this ledger was opened with"):
        opened(folder)


def test_references_that_come_too_late_go_to_another_table(tmp_path: Path) -> None:
    rows = {"person": [1, 1, 2], "cost": [3, 4, 5]}
    alone = dt.Table(rows, unit="person", max_rows=2, columns={"cost": dt.between(0, 9)})
    unit = {"column": "person", "references": "people.person"}
    joined = dt.Table(rows, unit=unit, max_rows=2, columns={"cost": dt.between(0, 9)})
    listed = dt.Table({"person": [1, 2]}, unit="person", max_rows=1)
    place = tmp_path / "survey.ledger"
    with dt.open(dt.Catalog({"visits": alone, "people": listed}, dt.Budget(9)), ledger=place, make=True) as survey:
        survey.ask("SELECT SUM(cost) AS s FROM visits", epsilon=1)
    with pytest.raises(dt.LedgerError, match=r"without references again(.|\n)*as another table, with them"):
        dt.open(dt.Catalog({"visits": joined, "people": listed}, dt.Budget(9)), ledger=place)
    tables = {"visits": alone, "people": listed, "stays": joined}
    with dt.open(dt.Catalog(tables, dt.Budget(9)), ledger=place) as survey:  # as the fix says
        survey.ask("SELECT SUM(cost) AS s FROM stays JOIN people USING (person)", epsilon=1)
        assert survey.budget.spent.epsilon == 2
