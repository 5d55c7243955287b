"""Statistical queries, and the examples: what the trace says of gradient descent is what the accountant says."""

from __future__ import annotations

import importlib.util
import math
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dither as dt

EXAMPLE = Path(__file__).parents[2] / "examples" / "gradient_descent.py"


@pytest.fixture(scope="module")
def descent() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gradient_descent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# --- queries ----------------------------------------------------------------------------------------------------


def test_every_query_is_charged(recorded: None) -> None:
    def program(table: Any) -> Any:
        queries = dt.StatisticalQueries(table, epsilon="1/4")
        share = queries.mean(lambda row: row[0] > 40)
        mean = queries.mean(lambda row: row[0], 0, 120)
        return share, mean, queries.tolerance(0, 120)

    ages = np.arange(1000) % 90
    run = dt.trace(program, dt.records(ages[:, None], 0, 120))
    share, mean, tolerance = run.result
    assert run.loss() == dt.Pure("1/2")
    assert abs(mean - ages.mean()) < 3 * tolerance
    assert abs(share - np.mean(ages > 40)) < 3 * tolerance / 120


def test_a_query_cannot_move_further_than_its_bounds() -> None:
    """A query that returns anything at all is clipped, so its price is that of its bounds."""

    def program(table: Any) -> Any:
        return dt.StatisticalQueries(table, rho="1/8").mean(lambda row: [1e300, math.nan, -5.0][int(row[0])], -1, 1)

    run = dt.trace(program, dt.records([[0], [1], [2]], 0, 2))
    assert run.loss() == dt.ZCDP("1/8")


def test_a_query_may_use_earlier_answers(recorded: None) -> None:
    def program(table: Any) -> Any:
        queries = dt.StatisticalQueries(table, epsilon=10)
        middle = queries.mean(lambda row: row[0], 0, 100)
        return queries.mean(lambda row: row[0] > middle)

    run = dt.trace(program, dt.records(np.arange(100)[:, None], 0, 100))
    assert abs(run.result - 0.5) < 0.1
    assert run.fixed  # the price counts with the declared bounds


def test_that_a_query_with_less_noise_costs_more() -> None:
    noise = dt.Laplace(epsilon="1/8", sensitivity=1, grid="1/1024")  # for [0, 1], on a query in [-1, 1]
    run = dt.trace(
        lambda table: table.map(lambda row: row[0], -1, 1, "1/1024").sum().release(noise), dt.records([[0], [1]], -1, 1)
    )
    assert run.loss() == dt.Pure("1/4")


def test_a_limit_refuses_the_next_query() -> None:
    def program(table: Any) -> int:
        queries, asked = dt.StatisticalQueries(table, epsilon="1/10"), 0
        try:
            while True:
                queries.mean(lambda row: row[0] > 0)
                asked += 1
        except dt.BudgetError:
            return asked

    run = dt.trace(program, dt.records([[0], [1]], 0, 1), limit=dt.PureFilter("1/2"))
    assert run.result == 5


def test_queries_are_refused_without_rows_or_a_price() -> None:
    with pytest.raises(dt.ArgumentError, match="rows of a traced program"):
        dt.trace(lambda x: dt.StatisticalQueries(x, epsilon=1), dt.records([0], 0, 1))
    for price in ({}, {"epsilon": 1, "rho": 1}):
        with pytest.raises(dt.ArgumentError, match="has a price"):
            dt.trace(lambda x, price=price: dt.StatisticalQueries(x, **price), dt.records([[0]], 0, 1))


@pytest.mark.slow
def test_on_a_catalog_queries_are_charged_in_the_ledger(recorded: None) -> None:
    people = pd.DataFrame({"person": range(500), "age": [20 + k % 50 for k in range(500)]})
    table = dt.Table(people, unit="person", key="person", columns={"age": dt.between(0, 120)})
    survey = dt.open(dt.Catalog({"people": table}, dt.Budget(epsilon=1)), ledger=":memory:")
    queries = dt.StatisticalQueries.on(survey, "people", epsilon="1/4")
    assert abs(queries.mean("CASE WHEN age < 45 THEN 1 ELSE 0 END") - 0.5) < 0.2
    assert abs(queries.mean("age", 0, 120) - 44.5) < 20
    assert survey.budget.spent.epsilon == Fraction(1, 2)
    queries.mean("age", 0, 120)  # the same question is free
    queries.mean("age", 0, 100), queries.mean("age", 0, 90)
    with pytest.raises(dt.BudgetError):
        queries.mean("age", 0, 80)


# --- gradient descent -------------------------------------------------------------------------------------------


def runs(descent: ModuleType, steps: int = 3, count: int = 300) -> dict[str, Any]:
    features, rich, hours = descent.people(count)
    choices = descent.Descent(steps, rate=2, scale=Fraction(50))
    data = {"logistic": rich, "linear": hours}
    return {
        name: dt.trace(lambda table, name=name: getattr(descent, name)(table, choices), descent.declared(features, target))
        for name, target in data.items()
    }


@pytest.mark.parametrize(("name", "first"), [("logistic", Fraction(1, 2)), ("linear", Fraction(1))])
def test_the_traced_price_is_the_accountants(descent: ModuleType, name: str, first: Fraction) -> None:
    run = runs(descent)[name]
    curve = descent.accountant(descent.Descent(3, 2, scale=Fraction(50)), 11, first)
    assert run.fixed
    assert run.curve() == curve
    assert run.loss() == curve.zcdp() == dt.ZCDP((first**2 + 2) * 2 / Fraction(50) ** 2)
    assert run.epsilon("1e-6") == curve.epsilon("1e-6")


def test_that_rows_added_or_removed_would_cost_a_quarter(descent: ModuleType) -> None:
    """The price is for replacing a record, which moves a sum by up to two lengths."""
    added = dt.Gaussian.with_scale(50 * 1024, sensitivity=dt.L2(1024, dimension=11))
    assert runs(descent)["linear"].loss().zcdp().rho == 4 * added.zcdp().repeat(3).rho


def test_neighbours_move_the_sums_no_further_than_the_price_says(descent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact sums of a whole descent with the same noisy outputs, for a record and its most different replacement."""
    sums: list[Any] = []

    def release(mechanism: Any, exact: Any) -> Any:
        sums.append(np.asarray(exact).copy())
        return np.asarray(sums[0] * 0 + 40_000)

    monkeypatch.setattr(dt.Gaussian, "release", release)
    features, _, hours = descent.people(50)
    choices = descent.Descent(4, rate=2, scale=Fraction(50))
    seen = []
    for target in (1.0, -1.0):
        features[0], hours[0] = features[0] * 0 + 1, target
        sums.clear()
        dt.trace(lambda table: descent.linear(table, choices), descent.declared(features, hours))
        seen.append(list(sums))
    apart = [int(((one - other) ** 2).sum()) for one, other in zip(*seen, strict=True)]
    assert max(apart) <= 4 * 1024**2
    assert apart[0] > 3.9 * 1024**2  # far more than for a record that is added or removed


@pytest.mark.slow
def test_the_example_runs_and_prints_both_accuracies(
    descent: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradient_descent.py", "--people", "2000", "--steps", "10", "--epsilon", "3"])
    descent.main()
    shown = capsys.readouterr().out
    assert shown.startswith("price of the program: ρ = ")
    traced, theirs = shown.split("traced ")[1].split("\n")[0].split(", by the accountant ")
    assert traced == theirs
    assert "accuracy: 0." in shown
    assert "without privacy" in shown
    assert "R² of hours" in shown
