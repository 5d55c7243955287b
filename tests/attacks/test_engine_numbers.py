"""Numbers in the engine: stored values that have broken sums (PITFALLS, Numbers; noise has its own file)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from attacks.moved import complaints
from attacks.paths import Observation, ask
from dither.engines.duckdb.engine import DuckDB
from dither.errors import EngineError
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import Cell, Group, Quantised, Sums, Work

NAN, INF = float("nan"), float("inf")
ALL = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, VAR_POP(x) AS v, MEDIAN(x) AS m, CLIPPED(x) AS c FROM t"


def values(x: Any, low: Any, high: Any, question: str = ALL, price: Any = 1, **more: Any) -> Observation:
    """Asks about one value per person, or about all values as one person's."""
    column = x if isinstance(x, pa.Array) else pa.array(x, pa.float64())
    step = more.pop("step", None)
    units = more.pop("units", None) or list(range(len(column)))
    return ask(question, {"u": units, "x": column}, {"x": dt.between(low, high, step=step)}, price, **more)


def test_sums_do_not_depend_on_the_order_of_rows() -> None:
    ones = [1.0] * 1000 + [2.0**53]
    for units in (None, [7] * 1001):  # everyone a person, and one person with all rows
        there, back = (values(x, 0, 2**53, units=units, max_rows=2000) for x in (ones, ones[::-1]))
        assert there.groups == back.groups
        assert there.answer is not None
        assert back.answer is not None
        assert there.answer.rows == back.answer.rows
    assert sum(ones) != sum(ones[::-1])  # the twin: floats added in the order of rows


def test_sums_inside_one_person_do_not_depend_on_the_order_of_rows() -> None:
    rows = [0.1, 0.2, 0.3, 1e15, -1e15, 0.7] * 5
    question = "SELECT AVG(s) AS a, MEDIAN(s) AS m FROM (SELECT u, SUM(x) AS s FROM t GROUP BY u) p"
    there, back = (values(x, -(10**15), 10**15, question, units=[1] * 30, max_rows=30) for x in (rows, rows[::-1]))
    assert there.groups == back.groups
    assert sum(rows) != sum(rows[::-1])


def test_integer_sums_do_not_wrap() -> None:
    """One person with 6000 rows at 2^40 steps, of which 5000 count: an intermediate product exceeds 64 bits."""
    seen = values([2.0**40] * 6000, 0, 2**40, "SELECT SUM(x) AS s FROM t", 10**6, step=1, units=[1] * 6000, max_rows=5000)
    assert seen.only() == ((5000 * 2**40,),)
    with np.errstate(over="ignore"):
        product = np.int64(6000 * 2**40) * np.int64(5000)
    assert int(product) // 6000 != 5000 * 2**40  # the twin: 64 bits do wrap


def test_integer_columns_at_the_ends_of_64_bits() -> None:
    ends = pa.array([2**63 - 1, -(2**63), 2**63 - 1, None], pa.int64())
    seen = values(ends, -(2**62), 2**62)
    assert seen.status == "answered"
    assert complaints(seen, values(ends.slice(0, 3), -(2**62), 2**62)) == []
    plain = values(ends, 0, 100, "SELECT SUM(x) AS s FROM t")
    assert plain.only() == ((200,),)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, -0.0, 1e308, -1e308, 5e-324, -5e-324])
def test_nan_does_not_survive_a_clamp_and_infinities_end_at_the_bounds(bad: float) -> None:
    bounds = (-8, 8)
    seen = values([bad], *bounds, "SELECT SUM(x) AS s, COUNT(x) AS n FROM t", step=1)
    rising, falling = seen.only()[0][:2]  # how far above the lower bound, and what is missing to the upper one
    wanted = None if bad != bad else min(max(bad, -8), 8)
    assert (rising, falling) == ((0, 0) if wanted is None else (8 + round(wanted), 8 - round(wanted)))
    assert complaints(values([bad], *bounds), values([], *bounds)) == []


def test_that_a_plain_clamp_lets_nan_through() -> None:
    assert np.isnan(np.clip(NAN, -8, 8))
    assert max(-8, min(8, NAN)) != values([NAN], -8, 8, "SELECT COUNT(x) AS n FROM t").only()[0][0]


def test_minus_zero_is_zero() -> None:
    zeros = [0.0, -0.0]
    assert values(zeros, -1, 1, "SELECT COUNT(DISTINCT CAST(x AS INTEGER)) AS n FROM t").only() == (1,)
    assert values(zeros, -1, 1, "SELECT COUNT(*) AS n FROM t WHERE x = 0 AND NOT x < 0").only() == ((2,),)
    assert values(zeros, -1, 1, "SELECT MEDIAN(x) AS m FROM t", step=1).only() == ({1: 2 * 2**16},)
    keyed = values(zeros, -1, 1, "SELECT FLOOR(x) AS k, COUNT(*) AS n FROM t GROUP BY k")
    assert [(group.key, group.measures) for group in keyed.groups] == [((0,), ((2,),))]
    assert str(-0.0) != str(0.0)  # the twin: as text they would be two keys


def test_float32_columns_are_taken_at_their_own_value() -> None:
    """A float32 of 0.1 is 0.100000001490116..., not 0.1, and a double of a third has more digits than a float32."""
    tenth = float(np.float32(0.1))
    narrow, wide, exact = (
        values(pa.array([x], kind), 0, 1, "SELECT SUM(x) AS s FROM t", step=Fraction(1, 2**30))
        for x, kind in ((0.1, pa.float32()), (tenth, pa.float64()), (0.1, pa.float64()))
    )
    assert narrow.only() == wide.only() == ((int(tenth * 2**30 + 0.5),),)
    assert exact.only() != narrow.only()
    large = pa.array([3.4e38, -3.4e38, NAN, INF], pa.float32())
    assert complaints(values(large, -1, 1), values(large.slice(0, 3), -1, 1)) == []


@pytest.mark.parametrize("power", [30, 50, 60])
def test_squares_of_centred_values_near_two_to_the_fifty(power: int) -> None:
    bound = 2**power
    nobody = values([], -bound, bound)
    for x in (bound, bound - 1, -bound, 0, bound // 3, 2 * bound):
        seen = values([float(x)], -bound, bound)
        assert complaints(seen, nobody) == []
    many = values([float(bound), -float(bound)] * 50, -bound, bound, "SELECT VAR_POP(x) AS v FROM t", 10**4)
    assert many.answer is not None
    assert many.answer["v"] == [pytest.approx(float(bound) ** 2, rel=1e-3)]
    assert float(2**53 + 1) - float(2**53) == 0  # the twin: in doubles, what lies beyond the 53rd bit is gone


LARGE = ["x * 1e300", "x * 1e300 * 1e300", "POWER(x, 300)", "POWER(x, 1000)", "EXP(x * 1000)", "x / 1e-300"]
SMALL = ["x * 1e-300 * 1e-300", "CLAMP(x, 0, 1e-320)", "CLAMP(x, 5e-324, 1e-323)"]


@pytest.mark.parametrize("expression", [*LARGE, *SMALL, "CLAMP(x, 0, 1e308)"])
def test_bounds_that_overflow_are_refused_before_anything_is_charged(expression: str) -> None:
    for function in ("SUM", "AVG", "VAR_SAMP", "STDDEV_POP", "MEDIAN"):
        seen = values([1.0, 8.0, NAN], -8, 8, f"SELECT {function}({expression}) AS v FROM t")
        assert seen.status.startswith("QueryError"), function
        assert seen.charge.epsilon == 0
        assert seen.groups == []
    if expression in LARGE:  # the twin: within bounds of a size that can be squared it is answered
        clamped = values([1.0, 8.0, NAN], -8, 8, f"SELECT VAR_SAMP(CLAMP({expression}, 0, 1e100)) AS v FROM t")
        assert clamped.status == "answered"


@pytest.mark.parametrize(("low", "high"), [(0, INF), (-INF, 0), (NAN, 1), (0, 10**400), (0, "1e999"), (3, 2), (0, 1.7e308)])
def test_declared_bounds_that_overflow_are_no_bounds(low: Any, high: Any) -> None:
    with pytest.raises(dt.CatalogError):
        values([1.0], low, high)


@pytest.mark.parametrize(("low", "high"), [(-(2**53), 2**53), (2**53, 2**53 + 2), (Fraction(1, 3), Fraction(2, 3)), (0, 1)])
def test_bounds_of_every_shape_hold_what_they_claim(low: Any, high: Any) -> None:
    question = ALL.replace("SUM(x) AS s, ", "")
    nobody = values([], low, high, question)
    for x in (float(low), float(high), NAN, INF, -INF, 0.5):
        seen = values([x], low, high, question)
        assert seen.status == "answered"
        assert complaints(seen, nobody) == []


def test_bounds_that_are_one_point() -> None:
    question = "SELECT SUM(CLAMP(x, 3, 3)) AS s, AVG(CLAMP(x, 3, 3)) AS a, MEDIAN(x * 0) AS m FROM t"
    for x in (1.0, NAN, INF):
        seen = values([x], 0, 9, question)
        assert seen.status == "answered"
        assert complaints(seen, values([], 0, 9, question)) == []


def test_nan_left_out_of_a_files_statistics_is_null_all_the_same(tmp_path: Path) -> None:
    value = np.full(1000, 50.0)
    value[3] = np.nan
    pq.write_table(pa.table({"id": np.arange(1000), "x": value}), tmp_path / "nan.parquet")
    table = dt.Table(str(tmp_path / "nan.parquet"), unit="id", max_rows=1, columns={"x": dt.between(0, 100, step=1)})
    curator = dt.open(dt.Catalog({"t": table}, dt.Budget(100_000)), ledger=":memory:")
    text = "SELECT COUNT(x) AS n, AVG(x) AS a, SUM(x) AS s, MEDIAN(x) AS m, STDDEV(x) AS d FROM t"
    answer = curator.ask(text, epsilon=50_000)
    *firm, spread = (float(value) for value in answer.rows[0])
    assert [round(value, 3) for value in firm] == [999, 50, 49950, 50]  # at this price their noise is 0 but for e^-50
    assert spread >= 0  # answered; squares have a coarser grid, and so some noise even at this price
    assert round(float(curator.ask("SELECT COUNT(*) AS n FROM t WHERE x > 1e9 OR x < -1", epsilon=50).rows[0][0])) == 0


@pytest.mark.parametrize("believed", [True, False])
def test_that_statistics_of_files_would_fold_the_guard_away(tmp_path: Path, believed: bool) -> None:
    """The twin of the test before: plain DuckDB trusts them, drops the guard, and one row makes the question fail."""
    pq.write_table(pa.table({"x": [50.0, NAN, 50.0]}), tmp_path / "nan.parquet")
    connection = duckdb.connect()
    if not believed:
        connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    connection.read_parquet(str(tmp_path / "nan.parquet")).create_view("t")
    grid = Quantised(Column("x"), Fraction(0), Fraction(1), 100)
    source = Compute(Scan("t", "t"), (Named("x", Column("t.x")),))
    work = Work(source, (), None, False, None, (Sums((Cell(grid, linear=1),), 1),))
    if believed:
        with pytest.raises((EngineError, ValueError)):
            DuckDB(connection).run(work, b"")
    else:
        assert DuckDB(connection).run(work, b"") == [Group((), None, ((100,),))]
