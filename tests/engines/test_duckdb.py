"""The DuckDB engine: constants, one constant error text, widths, progress, interruption."""

from __future__ import annotations

import threading
import traceback
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import engine as engine_file
from dither.engines.duckdb.dialect import DIALECT, has_narrow_sum, literal
from dither.engines.duckdb.engine import DuckDB
from dither.engines.sql.functions import PRINTERS
from dither.engines.sql.work import may_be_inexact
from dither.errors import ArgumentError, EngineError
from dither.query.nodes import Call, Column, Compute, Filter, Join, Literal, Named, Scan
from dither.query.work import UNIT, Bins, Cell, Group, Quantised, Sums, Work
from engines.test_functions_agree import OF_KIND, calls
from engines.works import plain

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
COUNT = Sums((Cell(constant=1),), 1)


def count_of(source: Compute | Filter, keys: tuple[Named, ...] = (), known: tuple[tuple[str, ...], ...] | None = None) -> Work:
    return Work(source, keys, known, False, None, (COUNT,))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1), ANY_TEXT, st.dates(), st.datetimes(), st.booleans())
)
def test_every_constant_reads_back_as_itself(value: object) -> None:
    found = _PLAIN.execute(f"SELECT {literal(value).text}").fetchall()[0][0]
    assert (found, type(found)) == (value, type(value))


_PLAIN = duckdb.connect()
_TABLES = duckdb.connect(config={"threads": 2})


def _engine(table: pa.Table) -> DuckDB:
    _TABLES.register("t", table)
    return DuckDB(_TABLES)


def test_deep_questions_print_in_text_that_grows_with_their_depth() -> None:
    x = Column("x")
    lengths = []
    for depth in (10, 20):
        deep: Call | Column = x
        for _ in range(depth):
            deep = Call("clamp", (Call("div", (Literal(1), Call("power", (deep, deep)))), Literal(0), Literal(9)))
        work = count_of(Filter(plain("t", "t"), Call("gt", (deep, Literal(0)))))
        engine = DuckDB(
            _TABLES, {"t": {"who": "int", "i": "int", "x": "real", "t": "text", "b": "bool", "d": "date", "s": "timestamp"}}
        )
        lengths.append(len(engine.explain(work)[0]))
    assert lengths[1] < 3 * lengths[0]


# --- errors -----------------------------------------------------------------------------------------------------


def test_a_failing_engine_shows_one_constant_text() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE VIEW t AS SELECT CAST(v AS BIGINT) AS x, 1 AS u FROM (VALUES ('1'), ('secret of Ada')) s(v)")
    source = Compute(Scan("t", "t"), (Named("x", Column("t.x")),))
    with pytest.raises(EngineError) as caught:
        DuckDB(connection).run(count_of(source, (Named("x", Column("x")),)), b"")
    shown = "".join(traceback.format_exception(caught.value))
    assert str(caught.value) == str(EngineError())
    assert "Ada" not in shown
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_missing_table_shows_the_same_text() -> None:
    with pytest.raises(EngineError) as caught:
        DuckDB(duckdb.connect()).schema("nobody's")
    assert str(caught.value) == str(EngineError())


def test_try_is_never_used() -> None:
    engine = DuckDB(_TABLES, {"t": OF_KIND})
    first, second, third = (Scan("t", letter) for letter in "pqr")
    joined = Join(Join(first, second, (), "inner"), third, (), "inner")
    for name in PRINTERS:
        for expression in calls(name):
            assert "TRY(" not in engine.explain(count_of(Filter(joined, Call("is_null", (expression,)))))[0].upper()


# --- widths -----------------------------------------------------------------------------------------------------

# Seven times as many are just within a type that shares are held in, or just beyond.
EDGES = [2**31 // 7, 2**31 // 7 + 1, 2**59, 2**60]


@pytest.fixture(params=[True, False], ids=["64-bit sums", "128-bit sums"])
def _sums(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DuckDB's narrow sum, and as if it had none."""
    monkeypatch.setattr("dither.engines.duckdb.dialect.has_narrow_sum", lambda: request.param)


@pytest.mark.usefixtures("_sums")
@pytest.mark.parametrize("by_unit", [True, False])
@pytest.mark.parametrize("steps", [1, 2**10, 2**10 + 1, 2**20, 2**20 + 1, 2**21, 2**22, 2**23, *EDGES, 2**40, 2**62, 2**80])
def test_sums_are_exact_at_every_width(steps: int, by_unit: bool) -> None:
    """A unit far over its bound, at the upper end of the grid: products of sums and bounds need more than 64 bits."""
    q = Quantised(Column("x"), Fraction(0), Fraction(1), steps)
    cells = (Cell(q, linear=1), Cell(q, linear=-1), Cell(q, constant=steps, linear=-1), Cell(q, constant=7, linear=-3))
    cells += (Cell(q, square=1),) if steps < 2**41 else ()
    engine = _engine(pa.table({"u": [1] * 1000 + [2], "x": [1e300] * 1001}))
    source = Compute(Scan("t", "t"), (Named(UNIT, Column("t.u")), Named("x", Column("t.x"))))
    (group,) = engine.run(Work(source, (), None, by_unit, None, (Sums(cells, 7), Bins(q, 7))), b"")
    counted = 8 if by_unit else 1001
    expected = [steps * counted, -steps * counted, 0, (7 - 3 * steps) * counted, steps**2 * counted][: len(cells)]
    assert group.measures == (tuple(expected), {steps: 65536 * counted})


def _total(x: pa.Array, grid: Quantised) -> tuple[DuckDB, Work]:
    cells = (Cell(grid, linear=1), Cell(grid, constant=1), Cell(grid, null=1))
    return _engine(pa.table({"x": x})), Work(_plain_x(), (), None, False, None, (Sums(cells, 1),))


@pytest.mark.parametrize(("x", "expected"), [("nan", (0, 0, 1)), ("inf", (10, 1, 0)), ("-inf", (0, 1, 0)), ("7", (7, 1, 0))])
def test_what_is_not_a_number_is_null_and_not_a_bound(x: str, expected: tuple[int, ...]) -> None:
    engine, work = _total(pa.array([float(x)]), Quantised(Column("x"), Fraction(0), Fraction(1), 10))
    assert engine.run(work, b"")[0].measures == (expected,)


def _plain_x() -> Compute:
    return Compute(Scan("t", "t"), (Named("x", Column("t.x")),))


def test_narrow_sums_are_used_only_where_2_to_the_40_rows_fit() -> None:
    for steps, narrow in ((2**22 - 1, True), (2**22, False)):
        q = Quantised(Column("x"), Fraction(0), Fraction(1), steps)
        source = Compute(Scan("t", "t"), (Named(UNIT, Column("t.u")), Named("x", Column("t.x"))))
        work = Work(source, (), None, True, None, (Sums((Cell(q, linear=1),), 1),))
        (text,) = _engine(pa.table({"u": [1], "x": [1.0]})).explain(work)
        assert has_narrow_sum()
        assert ("sum_no_overflow(" in text) == narrow


@pytest.mark.usefixtures("_sums")
@pytest.mark.parametrize("low", [-(2**40), -5, 0, 3])
@pytest.mark.parametrize("steps", [0, 7, 2**12, 2**12 + 1, 2**20, 2**20 + 1])
@pytest.mark.parametrize("by_unit", [True, False])
def test_whole_numbers_are_clipped_and_added_up_exactly(low: int, steps: int, by_unit: bool) -> None:
    x = [None, -(2**63), 2**63 - 1, low - 1, low, low + 1, low + steps, low + steps + 1, None]
    grid = Quantised(Column("x"), Fraction(low), Fraction(1), steps)
    cells = (Cell(grid, linear=1), Cell(grid, constant=1), Cell(grid, null=1), Cell(grid, square=1))
    table = pa.table({"u": list(range(len(x))), "x": pa.array(x, pa.int64())})
    source = Compute(Scan("t", "t"), (Named(UNIT, Column("t.u")), Named("x", Column("t.x"))))
    (group,) = _engine(table).run(Work(source, (), None, by_unit, None, (Sums(cells, 1),)), b"")
    clipped = [min(max(value - low, 0), steps) for value in x if value is not None]
    assert group.measures == ((sum(clipped), len(clipped), 2, sum(q * q for q in clipped)),)


def test_sums_that_outgrow_doubles_are_added_up_in_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, work = _total(pa.array([250.0] * 100), Quantised(Column("x"), Fraction(0), Fraction(1), 250))
    asked: list[object] = []
    fetch = engine._fetch
    monkeypatch.setattr(engine, "_fetch", lambda *query: asked.append(query) or fetch(*query))
    for prepared in (False, True):
        for exact, statements in ((25_001, 1), (25_000, 2)):
            asked.clear()
            monkeypatch.setattr("dither.engines.sql.work.EXACT", exact)
            if prepared:
                engine.prepare(work)
            assert engine.run(work, b"") == [Group((), None, ((25_000, 100, 0),))]
            assert len(asked) == statements


def test_that_doubles_alone_would_lose_count_and_stay_where_it_shows() -> None:
    halves = "sum(x) FROM (SELECT CAST(9007199254740992 AS DOUBLE) AS x UNION ALL SELECT 1e0 FROM range(1000))"
    ((total,),) = _PLAIN.execute(f"SELECT {halves}").fetchall()
    assert total >= 2**53
    assert may_be_inexact(total)
    assert not may_be_inexact(float(2**53 - 1))
    assert not may_be_inexact(2**60)


def test_what_could_outgrow_the_engine_is_refused_before_it_runs() -> None:
    q = Quantised(Column("x"), Fraction(0), Fraction(1), 2**90)
    work = Work(Scan("no such table", "t"), (), None, False, None, (Sums((Cell(q, linear=1),), 1),))
    with pytest.raises(ArgumentError, match="126 bits"):
        DuckDB(duckdb.connect()).run(work, b"")


# --- time -------------------------------------------------------------------------------------------------------

SLOW = "CREATE VIEW t AS SELECT a.range AS u, hash(a.range, b.range) AS x FROM range(1000000) a, range(100000) b"


def _slow() -> tuple[duckdb.DuckDBPyConnection, Work]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(SLOW.replace("hash(a.range, b.range)", "CAST(hash(a.range, b.range) % 1000 AS BIGINT)"))
    return connection, count_of(Compute(Scan("t", "t"), (Named("x", Column("t.x")),)), (Named("x", Column("x")),))


def test_a_query_can_be_interrupted_and_then_fails_like_any_other() -> None:
    connection, work = _slow()
    engine = DuckDB(connection)
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.2):  # one that comes before the engine has begun stops nothing
            engine.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(EngineError):
        engine.run(work, b"")
    ended.set()
    thread.join()


def test_progress_is_reported_for_slow_queries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []
    monkeypatch.setattr(engine_file, "PATIENCE", 0.2)
    connection, work = _slow()

    def listen(share: float) -> None:
        heard.append(share)
        if len(heard) > 1:
            connection.interrupt()

    engine, late = DuckDB(connection, progress=listen), threading.Timer(60, connection.interrupt)
    late.start()
    with pytest.raises(EngineError):  # it takes hours, unless its progress is heard twice
        engine.run(work, b"")
    late.cancel()
    assert len(heard) > 1
    assert all(0 <= share <= 1 for share in heard)
    heard.clear()
    monkeypatch.setattr(engine_file, "PATIENCE", 3600)
    connection.execute("CREATE OR REPLACE VIEW t AS SELECT 1 AS u, CAST(2 AS BIGINT) AS x")
    engine.run(work, b"")
    assert not heard


def test_doubles_keep_their_sign() -> None:
    assert DIALECT.double(-0.0) == "(-0.0e0)"


def test_a_statement_is_parsed_once_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, work = _total(pa.array([1.0, 2.0, None]), Quantised(Column("x"), Fraction(0), Fraction(1), 250))
    monkeypatch.setattr(engine_file, "_PARSED", 2)
    answers = [engine.run(work, b"one"), engine.run(work, b"another")]
    assert answers == [[Group((), None, ((3, 2, 1),))]] * 2
    assert len(engine._parsed) == 1
    for steps in (251, 252, 253):
        grid = Quantised(Column("x"), Fraction(0), Fraction(1), steps)
        engine.prepare(Work(_plain_x(), (), None, False, None, (Sums((Cell(grid, linear=1),), 1),)))
    assert len(engine._parsed) == 2
    assert engine.run(work, b"one") == answers[0]
