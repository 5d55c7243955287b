"""Spark gives the reference engine's integers, with ANSI mode on and off. A sample; `make test-spark` runs more.

Each statement takes Spark a good part of a second, so functions are computed many at a time.
"""

from __future__ import annotations

import collections
import logging
import math
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dither.engines.spark.dialect import SparkDialect, bits_of
from dither.engines.spark.session import SETTINGS
from dither.engines.sql.dialect import Dialect
from dither.errors import EngineError, QueryError
from dither.query.functions.registry import FUNCTIONS, columns, evaluate
from dither.query.nodes import Call, Column, Expression, Filter, Literal, Named, Scan
from dither.query.work import Bins, Cell, Quantised, Sums, Work
from engines.crowd import KEYS, MEASURES, bounded, crowd, hard_rows, quantised
from engines.places import SparkPlace, compare
from engines.tables import KINDS, SECRET, by_key, rows
from engines.test_functions_agree import OF_KIND, calls, prefixed, resolved, same, table_of
from engines.works import plain, works

LONG = bool(os.environ.get("DITHER_SEARCH"))
SOME = settings(
    max_examples=200 if LONG else 10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
INEXACT = ("exp", "ln", "power")  # Java's are not C's: the last bit may differ, and nothing is promised of it
TOGETHER = 25
ALL = tuple(each for group in MEASURES.values() for each in group)
Table = list[dict[str, Any]]


@pytest.fixture(params=[True, False], ids=["ansi", "not ansi"])
def either(request: pytest.FixtureRequest, spark: SparkPlace) -> Iterator[SparkPlace]:
    """Spark in either mode."""
    spark.session.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield spark
    spark.session.conf.set("spark.sql.ansi.enabled", SETTINGS["spark.sql.ansi.enabled"])


# --- functions ----------------------------------------------------------------------------------------------------


def close(name: str, ours: Any, theirs: Any) -> bool:
    if name in INEXACT and isinstance(ours, float) and isinstance(theirs, float) and math.isfinite(theirs):
        return math.nextafter(theirs, -math.inf) <= ours <= math.nextafter(theirs, math.inf)
    return same(ours, theirs)


def expressions() -> dict[tuple[str, ...], list[tuple[str, Expression]]]:
    """Calls of every function, by the columns that they are computed from. In a short run, few of each function."""
    found = collections.defaultdict(list)
    for name in sorted(FUNCTIONS):
        every = [resolved(call) for call in calls(name)]
        for expression in every if LONG else every[:: max(len(every) // 2, 1)]:
            found[tuple(sorted(columns(expression)))].append((name, expression))
    return found


def values(spark: SparkPlace, parts: list[tuple[str, Expression]], table: Table) -> list[tuple[Any, ...]]:
    kinds = {name: OF_KIND[name[-1]] for name in table[0]} | {"n": "int"}
    engine = spark.engine({"t": [{**row, "n": i} for i, row in enumerate(table)]}, {"t": kinds})
    named = (Named(f"v{i}", prefixed(expression)) for i, (_, expression) in enumerate(parts))
    work = Work(Scan("t", "t"), (Named("n", Column("t.n")), *named), None, False, None, (), plain=True)
    found = sorted((group.key for group in engine.run(work, SECRET)), key=lambda key: key[0])
    return [key[1:] for key in found]


def test_every_function_agrees_on_hard_inputs(spark: SparkPlace) -> None:
    for every in expressions().values():
        table = table_of(every[0][1])
        table = table if LONG else table[:2000]
        for first in range(0, len(every), TOGETHER):
            parts = every[first : first + TOGETHER]
            for row, found in zip(table, values(spark, parts, table), strict=True):
                for (name, expression), ours in zip(parts, found, strict=True):
                    assert close(name, ours, evaluate(expression, row)), (expression, row, ours, evaluate(expression, row))


def test_that_a_last_bit_elsewhere_would_be_noticed() -> None:
    assert close("exp", math.nextafter(1.0, 2), 1.0)
    assert not close("sqrt", math.nextafter(1.0, 2), 1.0)
    assert not close("exp", 1.0000000000000005, 1.0)


def test_bits_of_doubles_are_their_bits(spark: SparkPlace) -> None:
    dice = random.Random(1)
    numbers = [struct.unpack(">d", dice.randbytes(8))[0] for _ in range(2000)]
    numbers += [2.0**k * (1 + d) for k in range(-1074, 1024, 7) for d in (0, 2**-52, -(2**-53))]
    numbers += [0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308]
    numbers += [math.inf, -math.inf]
    table = pa.table({"x": [x for x in numbers if not math.isnan(x)]})
    spark.session.createDataFrame(table).createOrReplaceTempView("doubles")
    found = spark.session.sql(f"SELECT x, {bits_of('x')} AS bits FROM doubles").toArrow().to_pylist()
    assert [row["bits"] for row in found] == [struct.pack(">d", row["x"]).hex() for row in found]


def test_constants_arrive_as_they_are(spark: SparkPlace) -> None:
    """Backslashes, quotes and ${...}, which Spark replaces by a setting unless it is told not to."""
    texts = ["${spark.master}", "it's", "a\\b", "\\u0041", ":secret", '"`', "\0\n\r\t\x1a\x7f", "--", "/*", "%_\\", "é😀"]
    printed = ", ".join(SparkDialect({}).string(text) for text in texts)
    assert list(spark.session.sql(f"SELECT {printed}").collect()[0]) == texts


# --- Works --------------------------------------------------------------------------------------------------------


@SOME
@given(work=works(), table=rows(), public=rows(most=4))
def test_generated_works_give_the_reference_integers(spark: SparkPlace, work: Work, table: Table, public: Table) -> None:
    ours, specified = compare(spark, work, {"t": table, "p": public})
    assert ours == specified


@pytest.mark.parametrize("keys", KEYS if LONG else ["truths", "other public texts"])
@pytest.mark.parametrize(
    ("either", "most"), [(True, 2), (False, 2), *([(True, 1), (True, 3)] if LONG else [])], indirect=["either"]
)
def test_units_are_bounded_as_the_reference_engine_bounds_them(either: SparkPlace, keys: str, most: int) -> None:
    ours, specified = compare(either, bounded(keys, most, ALL), {"t": crowd()})
    assert ours == specified


def test_that_a_share_that_is_rounded_is_seen(spark: SparkPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(self: Dialect, x: str, y: str, *, wide: bool) -> str:
        return f"CAST(round(CAST(({x}) AS DECIMAL(38, 6)) / ({y})) AS BIGINT)"

    monkeypatch.setattr(SparkDialect, "quotient", rounded)
    ours, specified = compare(spark, bounded("texts", 2, MEASURES["sums"]), {"t": crowd()})
    assert ours != specified


def test_hard_values_are_rounded_and_clipped_as_the_reference_engine_does(either: SparkPlace) -> None:
    ours, specified = compare(either, quantised(), {"t": hard_rows()})
    assert ours == specified
    assert len(ours) == 2


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("round_steps", lambda self, x, type: f"CAST({x} AS {type})"),
        ("round_steps", Dialect.round_steps),
        ("clip", lambda self, x, low, high, above: f"least(greatest({x}, {low}), {high})"),
        ("test_late", lambda self, test, count, by_unit: f"({test} OR {count} > 0)"),
    ],
)
def test_that_another_rounding_clipping_or_test_is_seen(
    spark: SparkPlace, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(SparkDialect, name, wrong)
    ours, specified = compare(spark, quantised(), {"t": hard_rows()})
    assert ours != specified


def test_that_another_hash_is_seen(spark: SparkPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    work, right = bounded("texts", 1, MEASURES["values"][:2]), SparkDialect.keyed_hash
    _, specified = compare(spark, work, {"t": crowd()})
    monkeypatch.setattr(SparkDialect, "keyed_hash", lambda self, purpose, columns: right(self, purpose, columns[::-1]))
    engine = spark.engine({"t": crowd()})
    assert by_key(engine.run(bounded("texts", 1, MEASURES["values"][:2]), SECRET)) != specified


def test_a_condition_in_parentheses_is_no_name(spark: SparkPlace) -> None:
    """Spark reads (SELECT ...) WHERE (b) as a subselect called WHERE."""
    count = (Sums((Cell(constant=1),), 1),)
    table = [{**dict.fromkeys(KINDS), "b": value} for value in (True, False, None)]
    for work in (
        Work(Filter(plain("t", "t"), Call("and", (Column("b"),))), (), None, False, None, count),
        Work(plain("t", "t"), (Named("b", Column("b")),), ((),), False, None, count),
    ):
        ours, specified = compare(spark, work, {"t": table})
        assert ours == specified
    spark.engine({"t": table})
    taken = spark.session.sql("SELECT * FROM (SELECT b FROM t) WHERE (b)").collect()
    assert len(taken) == 3  # the twin: no row is left out


def test_rows_are_gathered_by_person_only_where_few_count() -> None:
    def printed(most: int) -> str:
        return SparkDialect({}).gather("SELECT 1 AS u", most)

    assert "REPARTITION(u)" in printed(1)
    assert "REPARTITION" not in printed(10_000)


# --- what may not happen ------------------------------------------------------------------------------------------


COUNTED = Work(plain("t", "t"), (Named("t", Column("t")),), None, False, None, (Sums((Cell(constant=1),), 1),))
ROWS = [{**dict.fromkeys(KINDS), "t": f"hidden{i}"} for i in range(3)]


class Raising(SparkDialect):
    """Casts a text that is no number, for which Spark quotes it."""

    def scan(self, column: str, kind: str) -> str:
        return f"CAST(CAST({self.identifier(column)} AS INT) AS STRING)" if kind == "text" else super().scan(column, kind)


def test_a_failure_shows_one_constant_text_and_no_value(spark: SparkPlace, capfd: pytest.CaptureFixture[str]) -> None:
    engine: Any = spark.engine({"t": ROWS})
    engine._dialect = Raising({})
    with pytest.raises(EngineError) as caught:
        engine.run(COUNTED, SECRET)
    shown = capfd.readouterr()
    assert "hidden" in caught.value.diagnosis  # for the curator only
    assert "hidden" not in shown.err + shown.out + str(caught.value)
    assert caught.value.__context__ is None


def test_more_discovered_keys_than_can_be_held_are_a_failure(spark: SparkPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = (Bins(Quantised(Column("i"), Fraction(0), Fraction(1), 3), 1),)
    table = [{**row, "i": i} for i, row in enumerate(ROWS)]
    for work in (COUNTED, replace(COUNTED, measures=histogram)):
        monkeypatch.setattr("dither.engines.spark.engine.MOST_KEYS", 3)
        ours, specified = compare(spark, work, {"t": table})
        assert len(ours) == 3
        assert ours == specified
        monkeypatch.setattr("dither.engines.spark.engine.MOST_KEYS", 2)
        with pytest.raises(EngineError) as caught:
            spark.engine({"t": table}).run(work, SECRET)
        assert "hidden" not in str(caught.value) + caught.value.diagnosis
    public = replace(COUNTED, known=(tuple(f"hidden{i}" for i in range(3)),))
    assert len(spark.engine({"t": table}).run(public, SECRET)) == 3  # the question says which keys there are


def test_that_pyspark_left_alone_would_write_the_value(spark: SparkPlace) -> None:
    from pyspark.logger import PySparkLogger

    written: list[str] = []
    logger, listener = PySparkLogger.getLogger("SQLQueryContextLogger"), logging.Handler()
    listener.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    spark.engine({"t": ROWS})
    logger.disabled = False  # as pyspark leaves it
    logger.addHandler(listener)
    try:
        with pytest.raises(Exception, match="hidden"):
            spark.session.sql("SELECT CAST(t AS INT) FROM t").collect()
        assert any("hidden" in text for text in written)
    finally:
        logger.removeHandler(listener)
        logger.disabled = True


def test_a_pattern_that_needs_too_large_a_table_is_refused_before_the_charge(spark: SparkPlace) -> None:
    call = Call("regexp_matches", (Column("t"), Literal("(a|b)*a(a|b){20}c")))
    work = Work(plain("t", "t"), (Named("k", call),), None, False, None, (Sums((Cell(constant=1),), 1),))
    with pytest.raises(QueryError, match="table"):
        spark.engine({"t": ROWS}).prepare(work)


def test_the_secret_is_in_no_statement(spark: SparkPlace) -> None:
    engine: Any = spark.engine({"t": crowd(50)})
    work = bounded("texts", 1, MEASURES["sums"])
    first, again, other = (by_key(engine.run(work, secret)) for secret in (b"one", b"one", b"another"))
    assert first == again != other
    assert all("one" not in text and ":secret" in text for text in engine.explain(work))
