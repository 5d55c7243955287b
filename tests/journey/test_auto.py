"""A question that chooses its bounds, from end to end: charged once, given again, and right against plain DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator
from dither.errors import ClosedError, EngineError
from dither.planning.auto import Auto
from journey.paid import kinds
from journey.test_program import Watched

MONTHS = 80
CUSTOMERS = "SELECT month, COUNT(DISTINCT customer) AS n FROM orders GROUP BY month"
ORDERS = "SELECT month, COUNT(*) AS n FROM orders GROUP BY month"
ALL = "SELECT COUNT(*) AS n FROM orders"
REVENUE = "SELECT SUM(amount) AS n FROM orders"


def retail(customers: int = 10_000, seed: int = 3) -> pd.DataFrame:
    """Orders as in a shop: about fifteen a customer over eighty months, a few customers with many."""
    random = np.random.default_rng(seed)
    each = np.minimum(1 + random.gamma(1.2, 12.0, customers).astype(int), 200)
    who = np.repeat(np.arange(customers), each)
    start = random.integers(0, MONTHS, customers)
    month = (start[who] + random.integers(0, 40, len(who))) % MONTHS
    return pd.DataFrame({"customer": who, "month": month, "amount": random.integers(1, 500, len(who))})


def catalog(frame: Any, delta: Any = 0, **table: Any) -> dt.Catalog:
    columns = {"month": dt.between(0, MONTHS - 1), "amount": dt.between(0, 500)}
    return dt.Catalog({"orders": dt.Table(frame, unit="customer", columns=columns, **table)}, dt.Budget(10_000, delta))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return retail()


@pytest.fixture(scope="module")
def shop(frame: pd.DataFrame) -> Iterator[Curator]:
    with dt.open(catalog(frame), ledger=":memory:") as survey:
        yield survey


def truth(text: str, orders: pd.DataFrame) -> Any:  # DuckDB finds `orders` by its name
    return duckdb.sql(f"{text} ORDER BY 1" if "GROUP BY" in text else text).df()["n"].to_numpy(dtype=float)


def inside(answer: dt.Answer, true: Any) -> float:
    """Returns the share of numbers whose margin holds the truth."""
    return float(np.mean(np.abs(np.array(answer["n"], dtype=float) - true) <= np.array(answer.margins()["n"], dtype=float)))


def error(answer: dt.Answer, true: Any) -> float:
    return float(np.mean(np.abs(np.array(answer["n"], dtype=float) - true)))


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("text", [CUSTOMERS, ORDERS, ALL, REVENUE])
def test_a_shop_without_declared_bounds_is_answered_within_what_the_answer_says(
    shop: Curator, frame: pd.DataFrame, text: str
) -> None:
    """At max_groups = 5 all months lay outside. With 95 % margins far more than three quarters are inside now."""
    true = truth(text, frame)
    answers = [shop.ask(text, epsilon=2, fresh=True) for _ in range(3 if "GROUP BY" in text else 40)]
    assert np.mean([inside(each, true) for each in answers]) >= 0.75, {each.chosen for each in answers}
    fixed = shop.ask(text, epsilon=2, max_rows=1, max_groups=5)
    assert inside(fixed, true) == 0, "and bounds of a careful guess leave no number inside"


@pytest.mark.usefixtures("recorded")
@pytest.mark.slow
@pytest.mark.parametrize("text", [CUSTOMERS, ORDERS, ALL, REVENUE])
def test_the_choice_is_within_a_factor_of_the_best_fixed_bounds(shop: Curator, frame: pd.DataFrame, text: str) -> None:
    true = truth(text, frame)

    def mean_error(**bounds: Any) -> float:
        return float(np.mean([error(shop.ask(text, epsilon=1, fresh=True, **bounds), true) for _ in range(4)]))

    grouped = "GROUP BY" in text
    tried = [(m, g) for m in (1, 4, 16, 64, 256) for g in ((1, 4, 16, 64) if grouped else (1,))]
    best = min(mean_error(max_rows=m, max_groups=g) for m, g in tried)
    spread = true.mean() * 0.01  # one error of a few draws is itself noisy
    assert mean_error() <= 3 * best + spread


def test_it_says_what_was_chosen_and_what_that_cost(shop: Curator) -> None:
    quote, answer = shop.quote(CUSTOMERS, epsilon=1), shop.ask(CUSTOMERS, epsilon=1)
    assert "max_groups from 1, 2, 4, …, 64" in str(quote)
    assert "chosen by a noisy count of people, for 10 % of the price (ε = 0.1)" in str(quote)
    assert (quote.epsilon, quote.price) == (1, "ε = 1")
    groups = answer.plan.bounding.max_groups
    assert answer.chosen == f"max_groups = {groups}, chosen for 10 % of ε"
    assert answer.chosen in answer.footer()
    assert answer.chosen in answer.explain()
    assert (answer.price, answer.as_data()["price"]["epsilon"]) == ("ε = 1", "1")
    assert answer.receipt.body["loss"]["epsilon"] == "1"


def test_two_asks_are_one_charge_and_one_answer(frame: pd.DataFrame) -> None:
    with dt.open(catalog(frame), ledger=":memory:") as survey:
        first, again = (survey.ask(ORDERS, epsilon=1) for _ in range(2))
        sorted_too = survey.ask(f"{ORDERS} ORDER BY n DESC LIMIT 3", epsilon=1)
        assert survey.budget.spent.epsilon == 1
        assert (again.rows, again.plan, again.chosen) == (first.rows, first.plan, first.chosen)
        assert [first.replayed, again.replayed, sorted_too.replayed] == [False, True, True]
        survey.ask(ORDERS, epsilon=1, max_rows=1, max_groups=1)
        assert survey.budget.spent.epsilon == 2, "the same question with fixed bounds is another"


def test_auto_written_out_is_the_default_without_a_declaration(frame: pd.DataFrame) -> None:
    with dt.open(catalog(frame), ledger=":memory:") as survey:
        survey.ask(ORDERS, epsilon=1)
        assert survey.ask(ORDERS, epsilon=1, max_rows="auto", max_groups="auto").replayed
    with dt.open(catalog(frame, max_rows=4, max_groups=3), ledger=":memory:") as survey:
        assert survey.ask(ORDERS, epsilon=1).chosen == ""
        assert "max_groups = " in survey.ask(ORDERS, epsilon=1, max_groups="auto").chosen


def test_a_later_version_that_would_choose_otherwise_gives_the_stored_answer(
    frame: pd.DataFrame, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shop.ledger"
    with dt.open(catalog(frame), ledger=place, make=True) as survey:
        first = survey.ask(CUSTOMERS, epsilon=1)
    monkeypatch.setattr(Auto, "choose", lambda program, _: program.candidates[0])
    with dt.open(catalog(frame), ledger=place) as survey:
        again = survey.ask(CUSTOMERS, epsilon=1)
        assert (again.rows, again.plan, again.replayed) == (first.rows, first.plan, True)


@pytest.mark.usefixtures("recorded")
def test_discovered_keys_are_chosen_bounds_for_too(frame: pd.DataFrame) -> None:
    frame = frame.assign(shop=np.where(frame["month"] % 2 == 0, "a", "b"))
    tables = {"orders": dt.Table(frame, unit="customer", columns={"shop": dt.column(kind="text")})}
    with dt.open(dt.Catalog(tables, dt.Budget(100, "1e-6")), ledger=":memory:") as survey:
        answer = survey.ask("SELECT shop, COUNT_UNITS() AS n FROM orders GROUP BY shop", epsilon=2)
        assert answer["shop"] == ["a", "b"]
        assert answer.plan.bounding.max_groups >= 2
        assert survey.budget.spent.epsilon == 2


# --- what stops it ----------------------------------------------------------------------------------------------


@pytest.fixture
def watched(frame: pd.DataFrame) -> Iterator[tuple[Curator, Watched]]:
    watch = Watched()
    with dt.open(catalog(frame, caps={"max_rows": 4, "max_groups": 4}), ledger=":memory:") as survey:
        survey.steps, watch.ledger = watch.steps(), survey.ledger
        yield survey, watch


def test_every_candidate_is_prepared_before_anything_is_charged(watched: tuple[Curator, Watched]) -> None:
    survey, watch = watched
    survey.ask(ORDERS, epsilon=1)
    assert len(watch.prepared) == 1 + 3 * 3
    assert watch.seen == ["prepare", "run", "run"]
    assert watch.spent == ["reserved", "reserved"], "charged before the first row, once"
    assert kinds(survey.ledger)[-1] == "committed"


@pytest.mark.parametrize("step", [1, 2])
def test_a_failure_of_either_step_keeps_the_whole_price_and_closes_the_catalog(
    watched: tuple[Curator, Watched], step: int
) -> None:
    survey, watch = watched
    watch.fails = step
    with pytest.raises(EngineError, match="Charged: ε = 1"):
        survey.ask(ORDERS, epsilon=1)
    assert survey.closed
    assert survey.budget.spent.epsilon == 1
    with pytest.raises(ClosedError):
        survey.ask(ALL, epsilon=1)


@pytest.mark.parametrize("step", [1, 2])
def test_an_interrupt_at_either_step_keeps_the_whole_price(
    watched: tuple[Curator, Watched], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey, watch = watched
    run, calls = watch.run, []

    def stop(engine: Any, work: Any) -> Sequence[Any]:
        calls.append(work)
        if len(calls) == step:
            raise KeyboardInterrupt
        return run(engine, work)

    monkeypatch.setattr(watch, "run", stop)
    survey.steps = watch.steps()
    with suppress(KeyboardInterrupt):
        survey.ask(ORDERS, epsilon=1)
    assert survey.budget.spent.epsilon == 1
    assert kinds(survey.ledger)[-1] in ("failed", "interrupted", "reserved")
    calls.clear()
    calls.extend([None] * 9)
    assert not survey.ask(ORDERS, epsilon=1).replayed, "nothing was stored, so it is paid for again"
    assert survey.budget.spent.epsilon == 2
