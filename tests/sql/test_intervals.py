"""INTERVAL with one or several units is read as a whole, or refused at its place."""

from __future__ import annotations

import contextlib
import datetime

import duckdb
import pyarrow as pa
import pytest

import dither as dt
from dither.query.functions.registry import evaluate
from dither.query.nodes import Call, Filter
from dither.query.read import read

CATALOG = dt.Catalog(
    {"t": dt.Table(pa.table({"i": [1]}), unit="i", columns={"d": dt.column(kind="date")})},
    dt.Budget(1),
)


def right_side(condition: str) -> object:
    """Returns what the right side of a condition is, if it is a constant."""
    relation = read(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", CATALOG).query.source
    while not isinstance(relation, Filter):
        relation = relation.source  # type: ignore[union-attr]
    assert isinstance(relation.condition, Call)
    return evaluate(relation.condition.arguments[1], {})


@pytest.mark.parametrize("day", ["DATE '2024-01-31'", "DATE '2023-12-01'"])
@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize(
    "interval",
    [
        "1 year 2 months",
        "1 month 1 day",
        "-1 month 1 day",
        "1 d 2 weeks",
        "1 mon 1 mon",
        "1y2mon3d",
        "1 day 12 hours",
        "0 days",
    ],
)
def test_several_units_mean_what_they_mean_in_duckdb(day: str, sign: str, interval: str) -> None:
    written = f"{day} {sign} INTERVAL '{interval}'"
    with duckdb.connect() as connection:
        right = connection.execute(f"SELECT CAST({written} AS TIMESTAMP)").fetchall()[0][0]
    found = right_side(f"d > {written}")
    assert str(found) in (str(right), str(right.date()) if str(right).endswith("00:00:00") else "")


@pytest.mark.parametrize(
    "interval",
    ["1 day 12:00:00", "1.5 days", "2 days ago", "1 decade", "1 day, 2 hours", "1 year and 2 days", "day", "", "1 day 2"],
)
def test_what_is_not_read_as_a_whole_is_refused_at_its_place(interval: str) -> None:
    """sqlglot reads the first as one day."""
    text = f"SELECT COUNT(*) AS n FROM t WHERE d > DATE '2024-01-31' + INTERVAL '{interval}'"
    with pytest.raises(dt.QueryError) as refused:
        read(text, CATALOG)
    assert refused.value.span is not None
    assert text[slice(*refused.value.span)] == f"'{interval}'"


@pytest.mark.parametrize("days", [3_652_058, 3_652_060, 106_733_721, 106_751_992, 2**31, 2**62, -(2**40)])
@pytest.mark.parametrize("form", ["d + {}", "d + INTERVAL {} DAY", "d + INTERVAL '{} days'", "d - INTERVAL {} DAY"])
def test_no_date_makes_a_constant_number_of_days_fail(form: str, days: int) -> None:
    """A failure would depend on rows: which constant fails first tells a person's date. Beyond the calendar it is NULL."""
    dates = [datetime.date(1, 1, 1), datetime.date(2020, 1, 8), datetime.date(9999, 12, 31), None]
    table = dt.Table({"u": [0, 1, 2, 3], "d": dates}, unit="u", max_rows=1, columns={"d": dt.column(kind="date")})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10_000)), ledger=":memory:") as survey:
        shown = form.format(days if days > 0 or "INTERVAL" not in form else -days)
        with contextlib.suppress(dt.QueryError):  # refused by its constant, whatever the rows
            answer = survey.ask(f"SELECT COUNT({shown}) AS n FROM t", epsilon=900)
            assert answer["n"][0] <= 1  # at most from one end of the calendar to the other
