"""Margins of what a SELECT around the question computes: they hold as often as they say, or none is stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.engines.reference import Reference
from dither.exact.numbers import rational
from dither.planning import outputs
from dither.planning.forms import Quotient
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.planning.records import identity
from dither.planning.symbols import MOST_TERMS
from dither.query.read import read
from dither.query.work import Group

CONFIDENCE = Fraction(95, 100)
KEYS = ("a", "b", "c", "d", "e")
COUNTS = (400, 30, 900, 2, 55)
INNER = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
TABLE = dt.Table("t.parquet", unit="u", max_rows=1, max_groups=1, columns={"k": dt.values(*KEYS), "x": dt.between(0, 10)})
CATALOG = dt.Catalog({"t": TABLE}, dt.Budget(epsilon=10, delta="1e-6"))


def planned(question: str, **columns: Any) -> Plan:
    catalog = replace(CATALOG, tables={"t": replace(TABLE, columns={**TABLE.columns, **columns})})
    return plan(read(question, catalog), catalog, Price(Fraction(1), rational("1e-6", "delta") if columns else Fraction(0)))


def groups(made: Plan) -> Sequence[Group]:
    """The exact numbers of COUNTS rows in each group, with values of 0 to 9."""
    rows = [(key, i) for key, count in zip(KEYS, COUNTS, strict=True) for i in range(count)]
    table = [{"u": place, "k": key, "x": i % 10} for place, (key, i) in enumerate(rows)]
    return Reference({"t": table}, {"t": {"u": "int", "k": "text", "x": "int"}}).run(made.work, b"secret")


def exact(made: Plan) -> Noisy:
    def without_noise(noise: Any, values: Any) -> Any:
        return np.array(list(values), dtype=np.int64).reshape(len(values), -1)

    return outputs.release(made, groups(made), Draw(noise=without_noise))


def misses(question: str, place: int, times: int = 400, narrower: float = 1.0) -> int:
    """Counts how often the truth is farther from the last column of a row than its margin, times `narrower`."""
    made = planned(question)
    column = made.schema[-1].name
    truth, numbers = outputs.table(made, exact(made)).rows[place][-1], groups(made)
    found = 0
    for _ in range(times):
        noisy = outputs.release(made, numbers)
        table = outputs.table(made, noisy)
        wide = outputs.margins(made, noisy, table, CONFIDENCE)[column][place]
        assert wide is not None
        found += abs(float(table.rows[place][-1]) - float(truth)) > wide * narrower  # type: ignore[arg-type]
    return found


HOLDING = [
    ("SELECT k, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY k", 1),
    (f"SELECT k, SUM(n) OVER (ORDER BY k) AS so_far FROM ({INNER})", 3),
    (f"SELECT k, n - LAG(n) OVER (ORDER BY k) AS more FROM ({INNER})", 2),
    (f"SELECT k, n / LAG(n) OVER (ORDER BY k) AS ratio FROM ({INNER})", 1),
    (f"SELECT AVG(n) AS mean FROM ({INNER})", 0),
    (f"SELECT MAX(n) AS top FROM ({INNER})", 0),
    (f"SELECT k, ROUND(100 * n / SUM(n) OVER (), 1) AS pct FROM ({INNER})", 0),
    (f"SELECT k, ROUND(100 * n / SUM(n) OVER ()) AS pct FROM ({INNER})", 2),
    ("SELECT k, AVG(x) - LAG(AVG(x)) OVER (ORDER BY k) AS more FROM t GROUP BY k", 1),
]


def most(times: int) -> int:
    return int(binom.isf(share("margins across groups", len(HOLDING)), times, 0.05))


@pytest.mark.slow
@pytest.mark.parametrize(("question", "place"), HOLDING)
def test_margins_across_groups_hold_as_often_as_they_say(question: str, place: int) -> None:
    assert misses(question, place) <= most(400)


@pytest.mark.slow
@pytest.mark.parametrize(("question", "place"), HOLDING[:3])
def test_that_check_can_fail(question: str, place: int) -> None:
    assert misses(question, place, narrower=0.3) > most(400)


def wide(question: str, **columns: Any) -> dict[str, list[float | None]]:
    made = planned(question, **columns)
    noisy = exact(made)
    return outputs.margins(made, noisy, outputs.table(made, noisy), CONFIDENCE)


@pytest.mark.parametrize(
    ("rounded", "unit"), [("ROUND({}, 2)", 0.01), ("ROUND({}, 1)", 0.1), ("ROUND({})", 1), ("TRUNC({}, 2)", 0.01)]
)
@pytest.mark.parametrize(
    ("value", "source"),
    [
        ("100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()", "t GROUP BY k"),
        ("100.0 * COUNT(*) FILTER (WHERE x > 5) / COUNT(*)", "t GROUP BY k"),
        ("AVG(x)", "t GROUP BY k"),
        ("100 * n / SUM(n) OVER ()", f"({INNER})"),
    ],
)
def test_rounding_widens_a_margin_by_less_than_a_unit_of_the_last_place(
    value: str, source: str, rounded: str, unit: float
) -> None:
    plain = wide(f"SELECT k, {value} AS v FROM {source}")["v"]
    for own, with_round in zip(plain, wide(f"SELECT k, {rounded.format(value)} AS v FROM {source}")["v"], strict=True):
        assert own is not None
        assert with_round is not None
        assert with_round <= own + unit * (1 + 1e-9)


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT SUM(n) AS s FROM ({INNER}) WHERE n > 10",
        f"SELECT AVG(n) AS s FROM ({INNER} HAVING COUNT(*) > 10)",
        f"SELECT SUM(n) AS s FROM ({INNER} ORDER BY n DESC LIMIT 3)",
        f"SELECT SUM(n) AS s FROM (SELECT n FROM ({INNER} ORDER BY n) LIMIT 3)",
        f"SELECT k, SUM(n) OVER (ORDER BY n) AS s FROM ({INNER})",
        f"SELECT k, LAG(n) OVER (ORDER BY n) AS s FROM ({INNER})",
        f"SELECT k, FIRST_VALUE(n) OVER (ORDER BY n DESC) AS s FROM ({INNER})",
        f"SELECT k, RANK() OVER (ORDER BY n DESC) AS s FROM ({INNER})",
        f"SELECT k, NTILE(2) OVER (ORDER BY n) AS s FROM ({INNER})",
        f"SELECT COUNT(*) AS s FROM ({INNER}) WHERE n > 10",
        f"SELECT SUM(n) FILTER (WHERE n > 10) AS s FROM ({INNER})",
        f"SELECT SUM(n) AS s FROM ({INNER}) GROUP BY n > 100",
        f"SELECT STDDEV(n) AS s FROM ({INNER})",
    ],
)
def test_no_margin_is_stated_where_noise_decides_what_is_combined(question: str) -> None:
    assert set(wide(question)["s"]) == {None}


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS s FROM ({INNER})",
        f"SELECT COUNT(*) AS s FROM ({INNER})",
        f"SELECT k, NTILE(2) OVER (ORDER BY k) AS s FROM ({INNER})",
    ],
)
def test_what_is_public_has_no_margin_and_no_question_mark(question: str) -> None:
    assert wide(question) == {}


def test_the_number_of_groups_is_noisy_where_small_groups_are_hidden() -> None:
    question = f"SELECT COUNT(*) AS s FROM ({INNER})"
    assert [field.noisy for field in planned(question, k=dt.column(kind="text")).schema] == [True]
    assert [field.noisy for field in planned(question).schema] == [False]


def test_a_quotient_of_two_groups_is_not_held_to_be_a_share() -> None:
    """30 of 400 rows: fine. 400 / 30 lies above 1, which the limit of a part of the same rows would forbid."""
    question = f"SELECT k, n / LEAD(n) OVER (ORDER BY k) AS ratio FROM ({INNER})"
    margin = wide(question)["ratio"][0]
    assert margin is not None
    assert margin < 5


def test_that_this_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Quotient._most
    monkeypatch.setattr(Quotient, "_most", lambda self, *more: before(replace(self, one_group=True), *more))
    question = f"SELECT k, n / LEAD(n) OVER (ORDER BY k) AS ratio FROM ({INNER})"
    margin = wide(question)["ratio"][0]
    assert margin is not None
    assert margin > 5


def test_a_number_that_is_passed_on_keeps_its_margin() -> None:
    plain = wide(INNER)["n"]
    for question in (
        f"SELECT k, n AS s FROM ({INNER})",
        f"SELECT k, MAX(n) AS s FROM ({INNER}) GROUP BY k",
        f"SELECT k, SUM(n) OVER (PARTITION BY k) AS s FROM ({INNER})",
    ):
        assert wide(question)["s"] == plain, question


def test_a_very_wide_table_has_margins_of_its_own_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_TERMS > 10_000
    monkeypatch.setattr("dither.planning.symbols.MOST_TERMS", 10)
    found = wide("SELECT k, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM t GROUP BY k")
    assert None not in found["n"]
    assert set(found["s"]) == {None}


def test_identity_does_not_depend_on_what_is_around() -> None:
    plain = identity((planned(INNER),), "answer").text
    for question, _ in HOLDING[:3]:
        assert identity((planned(question),), "answer").text == plain
    assert identity((planned("SELECT COUNT(*) AS n FROM t"),), "answer").text != plain
