"""Measures the total error of questions about people with many rows: noise, and what bounds leave out.

A made-up shop: 20,000 customers with 1 to 500 orders each (few have many), over 24 months. Each question is asked at epsilon 1.
The error of an answer is the mean over its groups of |answer - truth| / truth, where the truth is plain DuckDB on all rows,
without bounds; the median of several answers is printed, divided by that of the best bounds known.

  best known   fixed bounds, the best pair of a list by this very error. Nobody can choose them without the data.
  before       max_rows = 20, max_groups = 5, as the documentation of commit 36a0763 has them, and no estimate of what is left
               out. At that commit a column of the customer counted as five groups, too; that noise is drawn here by numpy.
  after        no bounds are named, so that dither chooses them; 5 % of the price goes into what is left out.

"left out" has the bias that bounds cause, and what the answer says about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

CUSTOMERS, MONTHS, TIMES = 20_000, 24, 9
BEFORE = (20, 5)
ROWS, GROUPS = (1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 2, 4, 8, 16, 24)
SEGMENTS = ("home", "office", "trade", "public")


@dataclass(frozen=True)
class Question:
    """A question. DuckDB reads the same SQL. `of_person`: its key belongs to the customer."""

    name: str
    sql: str
    of_person: bool = False


JOIN = "orders AS o JOIN customers AS c ON o.customer = c.customer"
QUESTIONS = (
    Question("orders by segment of the customer", f"SELECT c.segment, COUNT(*) AS n FROM {JOIN} GROUP BY c.segment", True),
    Question("orders by month", "SELECT month, COUNT(*) AS n FROM orders GROUP BY month"),
    Question(
        "customers by month, home only",
        f"SELECT o.month, COUNT(DISTINCT o.customer) AS n FROM {JOIN} WHERE c.segment = 'home' GROUP BY o.month",
    ),
    Question("revenue by month", "SELECT month, SUM(amount) AS s FROM orders GROUP BY month"),
    Question("mean amount by segment", f"SELECT c.segment, AVG(o.amount) AS m FROM {JOIN} GROUP BY c.segment", True),
)


def shop() -> dict[str, pa.Table]:
    """Returns customers and orders. Those who order often do so in many months; one amount in a hundred is beyond 500."""
    rng = np.random.default_rng(14)
    each = np.minimum(1 + rng.lognormal(1.5, 1.2, CUSTOMERS).astype(int), 500)
    owner = np.repeat(np.arange(CUSTOMERS), each)
    segment = np.array(SEGMENTS)[rng.choice(4, CUSTOMERS, p=(0.55, 0.25, 0.15, 0.05))]
    amount = np.round(rng.lognormal(3.8, 1.05, len(owner)), 2)
    month = rng.integers(0, MONTHS, len(owner))
    return {
        "customers": pa.table({"customer": np.arange(CUSTOMERS), "segment": segment}),
        "orders": pa.table({"customer": owner, "month": month, "amount": amount}),
    }


def opened(tables: dict[str, pa.Table]) -> dt.Curator:
    customers = dt.Table(
        tables["customers"], unit="customer", key="customer", columns={"segment": dt.values(*SEGMENTS)}, max_rows=1
    )
    columns = {"month": dt.between(0, MONTHS - 1), "amount": dt.between(0, 500, step="0.01")}
    owner = {"column": "customer", "references": "customers.customer"}
    orders = dt.Table(tables["orders"], unit=owner, max_rows=None, columns=columns)
    catalog = dt.Catalog(tables={"customers": customers, "orders": orders}, budget=dt.Budget(epsilon=10**9))
    return dt.open(catalog, ledger=":memory:")


def error(answer: dt.Answer, truth: dict[object, float], noise: np.ndarray | None = None) -> float:
    """Returns the mean relative error over groups. `noise`: drawn here, in place of an answer almost without noise."""
    found = {row[0]: float(row[1]) for row in answer.rows}
    added = np.zeros(len(truth)) if noise is None else noise
    return float(np.mean([abs(found[key] + more - truth[key]) / truth[key] for key, more in zip(truth, added, strict=True)]))


def fixed(curator: dt.Curator, sql: str, truth: dict[object, float], bounds: tuple[int, int], times: int) -> float:
    terms = {"max_rows": bounds[0], "max_groups": bounds[1], "left_out": False, "fresh": True}
    return float(np.median([error(curator.ask(sql, epsilon=1, **terms), truth) for _ in range(times)]))


def before(curator: dt.Curator, question: Question, truth: dict[object, float], bias: dt.Answer) -> float:
    """Returns the error with the bounds of that time. The count of a customer's key had five times today's noise."""
    if not question.of_person or "COUNT" not in question.sql:
        return fixed(curator, question.sql, truth, BEFORE, TIMES)
    rng = np.random.default_rng()
    drawn = (rng.laplace(0, BEFORE[0] * BEFORE[1], len(truth)) for _ in range(TIMES))
    return float(np.median([error(bias, truth, noise) for noise in drawn]))


def measure(curator: dt.Curator, raw: duckdb.DuckDBPyConnection, question: Question) -> None:
    truth = {row[0]: float(row[1]) for row in raw.execute(question.sql).fetchall()}
    grid = {(m, g): fixed(curator, question.sql, truth, (m, g), 5) for m in ROWS for g in GROUPS}
    bounds = min(grid, key=lambda pair: grid[pair])
    best = fixed(curator, question.sql, truth, bounds, TIMES)
    terms = {"max_rows": BEFORE[0], "max_groups": BEFORE[1], "left_out": False}
    bias = curator.ask(question.sql, epsilon=1000, **terms)
    answers = [curator.ask(question.sql, epsilon=1, fresh=True) for _ in range(TIMES)]
    then, now = before(curator, question, truth, bias), float(np.median([error(each, truth) for each in answers]))
    said = "; ".join(str(each) for each in answers[0].left_out) or "nothing can be left out"
    print(f"{question.name:<36} best known {best:7.2%} ({bounds[0]} rows, {bounds[1]} groups)", end="   ")
    print(f"before {then:7.2%} = {then / best:6.1f}x, of it left out {error(bias, truth):6.2%}   ", end="")
    print(f"after {now:7.2%} = {now / best:4.1f}x\n    says: {said}", flush=True)


def people() -> None:
    """Prints the errors of all questions."""
    tables = shop()
    raw = duckdb.connect()
    for name, table in tables.items():
        raw.register(name, table)
    print(
        f"{CUSTOMERS:,} people, {len(tables['orders']):,} rows, epsilon 1: total error over truth, ratio to best known bounds"
    )
    with opened(tables) as curator:
        for question in QUESTIONS:
            measure(curator, raw, question)


if __name__ == "__main__":
    people()
