"""Errors and channels: leaks beside the answer (PITFALLS, Errors and channels)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from attacks.moved import channels
from attacks.paths import Observation, ask, catalog, observe, open_observed
from dither.exact import entropy, replay
from dither.planning.outputs import release
from dither.query.work import Group, Work

NAN, INF = float("nan"), float("inf")
INTEGERS = [2**63 - 1, -(2**63), 0, -1]
REALS = [NAN, INF, -INF, -0.0, 0.0, 1e308, -1e308, 5e-324]
TEXTS = ["", "\0", "1e999", "99999999999999999999", "-", "NaN", "0x10", "2026-02-30", "9" * 400, "true", "\u0661", " 7 "]
DAYS = [-(2**31) + 1, 2**31 - 1, -719163, 2932897, 0]  # as days since 1970: infinite ones, and years Python has no date for
MOMENTS = [-(2**63) + 1, 2**63 - 1, 0]
CALM = {"u": 0, "i": 3, "r": 1.5, "s": "7", "d": 20000, "m": 10**15, "b": True}


def table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = {"u": pa.int64(), "i": pa.int64(), "r": pa.float64(), "s": pa.string(), "b": pa.bool_()}
    found = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()}
    found["d"] = pa.array([row.get("d") for row in rows], pa.int32()).cast(pa.date32())
    found["m"] = pa.array([row.get("m") for row in rows], pa.int64()).cast(pa.timestamp("us"))
    return found


COLUMNS = {
    "i": dt.between(0, 9),
    "r": dt.between(0, 9),
    "s": dt.column(),
    "d": dt.column(),
    "m": dt.column(),
    "b": dt.values(True, False),
}
BAD = [
    {**CALM, "u": 1 + place, name: value}
    for place, (name, value) in enumerate(
        (name, value)
        for name, values in (("i", INTEGERS), ("r", REALS), ("s", TEXTS), ("d", DAYS), ("m", MOMENTS))
        for value in (*values, None)
    )
]
EXPRESSIONS = {
    "cast": "CAST(s AS INTEGER); CAST(s AS DOUBLE); CAST(r AS INTEGER); CAST(CAST(r AS INTEGER) AS DOUBLE); LENGTH(s)",
    "division": "i / i; r / r; i % i; r % r; 1 / i; 1 / r; i / 0; i % 0; r / (i - i)",
    "overflow": "i + i; i * i; -i; ABS(i); r * r; r + r; i * 900000000000; BUCKET(i, 10); BUCKET(r, 3); ROUND(r); FLOOR(i / 3)",
    "sqrt": "SQRT(r); SQRT(i); LN(r); LN(i); EXP(r); EXP(i); POWER(r, r); POWER(i, 1000); POWER(r, 0.5); POWER(r, -1); SIGN(r)",
    "date": "YEAR(d); MONTH(d); DAY(d); QUARTER(d); ISODOW(d); YEAR(m); HOUR(m); DAYS_BETWEEN(d, DATE '2020-01-01'); "
    "DAYS_BETWEEN(CAST(s AS DATE), d); YEAR(CAST(s AS DATE)); DAY(DATE_TRUNC('week', d))",
    "text": "LENGTH(s || s); LENGTH(UPPER(s)); LENGTH(SUBSTRING(s, 1, 2)); LENGTH(TRIM(s)); LENGTH(CAST(i AS VARCHAR))",
}
KEYS = (
    "DATE_TRUNC('week', d); DATE_TRUNC('month', m); CAST(m AS DATE); d; CAST(d AS VARCHAR); s; LOWER(s); i * 2; "
    "BUCKET(r, 3); CAST(s AS BOOLEAN)"
)


def outcomes(question: str, rows: list[list[dict[str, Any]]], columns: Any = COLUMNS) -> list[Observation]:
    return [ask(question, table(each), columns, delta="1/2") for each in rows]


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_no_row_makes_an_expression_raise(kind: str) -> None:
    """With and without one bad row: same status, shape and charge. All bad rows at once, then failing ones alone."""
    terms = EXPRESSIONS[kind].split("; ")
    listed = ", ".join(f"SUM(CLAMP({term}, 0, 9)) AS a{i}" for i, term in enumerate(terms))
    where = " OR ".join(f"({term}) > 1" for term in terms)
    for question in (f"SELECT {listed} FROM t", f"SELECT COUNT(*) AS n FROM t WHERE {where}"):
        calm, bad = outcomes(question, [[CALM], [CALM, *BAD]])
        assert calm.status == bad.status == "answered", question
        assert channels(calm, bad) == []


@pytest.mark.parametrize("key", KEYS.split("; "))
def test_no_row_makes_a_key_raise(key: str) -> None:
    question = f"SELECT {key} AS k, COUNT(*) AS n, COUNT(DISTINCT {key}) AS m FROM t GROUP BY k"
    calm, bad = outcomes(question, [[CALM], [CALM, *BAD]])
    assert calm.status == bad.status == "answered"
    assert calm.charge == bad.charge


def test_that_the_engine_would_raise_if_it_were_let() -> None:
    curator = open_observed(catalog(table([CALM, *BAD]), COLUMNS))
    engine: Any = curator.engine
    for text in ("CAST(s AS INTEGER)", "i + i", "CAST(r AS BIGINT)", "CAST(s AS DATE)"):
        with pytest.raises(duckdb.Error, match="Error"):
            engine._connection.execute(f"SELECT sum(length(CAST({text} AS VARCHAR))) FROM t").fetchall()


@pytest.mark.parametrize("stored", ["frame", "parquet"])
def test_broken_text_is_null_and_changes_no_status(stored: str, tmp_path: Path) -> None:
    """One person's text has bytes that are not UTF-8."""
    for text in (b"cd", b"\xff\xfe"):
        offsets = pa.py_buffer(np.array([0, 2, 4], dtype=np.int32).tobytes())
        column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab" + text)])
        source: Any = pa.table({"u": [1, 2], "s": column})
        if stored == "parquet":
            pq.write_table(source, tmp_path / "t.parquet")
            source = tmp_path / "t.parquet"
        declared = dt.Catalog({"t": dt.Table(source, unit="u", max_rows=1, columns={"s": dt.column()})}, dt.Budget(9, "1/2"))
        assert observe(open_observed(declared), "SELECT s, COUNT(*) AS n FROM t GROUP BY s").status == "answered"


class Failing:
    """An engine whose error quotes a value of the data."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def schema(self, table: str) -> dict[str, str]:
        return {}

    def prepare(self, work: Work) -> None:
        """Finds no fault with the question."""

    def run(self, work: Work, secret: bytes) -> list[Group]:
        raise self.error


@pytest.mark.parametrize("error", [ValueError, RuntimeError, MemoryError, KeyError, UnicodeDecodeError])
def test_no_error_text_quotes_a_value(error: type[Exception]) -> None:
    made = error("utf-8", b"Miller", 0, 1, "Miller") if error is UnicodeDecodeError else error("could not convert 'Miller'")
    curator = open_observed(catalog(table([CALM]), COLUMNS))
    curator.engine = Failing(made)
    seen = observe(curator, "SELECT COUNT(*) AS n FROM t")
    assert seen.status.startswith("EngineError: The question could not be computed")
    assert "Miller" not in seen.status
    assert error.__name__ not in seen.status
    assert seen.charge.epsilon == 1  # the data may have been touched, so it stays charged
    curator.reopen()
    with pytest.raises(dt.EngineError) as caught:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_charge_and_refusal_do_not_depend_on_data() -> None:
    """Asks until the budget ends and after it: an empty, a full and a poisoned table give the same transcript."""
    questions = [
        ("SELECT COUNT(*) AS n FROM t", 1),
        ("SELECT b, AVG(i) AS a, MEDIAN(r) AS m FROM t GROUP BY b", 1),
        ("SELECT s, COUNT(*) AS n FROM t GROUP BY s", 1),
        ("SELECT SUM(u) AS s FROM t", 1),
        ("SELECT nothing FROM t", 1),
        ("SELECT SUM(i) AS s FROM t WHERE r > 3", 5),
        ("SELECT SUM(i) AS s FROM t WHERE r > 3", "1/2"),
    ]
    transcripts = []
    for rows in ([], [CALM] * 50, BAD):
        curator = open_observed(catalog(table(rows), COLUMNS, epsilon=4))
        seen = [observe(curator, text, price) for text, price in questions]
        transcripts.append(([(one.status, one.charge) for one in seen], str(curator.budget)))
    assert transcripts[0] == transcripts[1] == transcripts[2]
    assert {one.split(":")[0] for one, _ in transcripts[0][0]} == {"answered", "QueryError", "BudgetError"}


def test_the_size_of_a_result_does_not_depend_on_data() -> None:
    question = "SELECT b, BUCKET(i, 5) AS k, COUNT(*) AS n, AVG(r) AS a FROM t GROUP BY b, k"
    sizes = set()
    for rows in ([], [CALM], [CALM] * 40, BAD):
        seen = ask(question, table(rows), COLUMNS)
        assert seen.answer is not None
        sizes.add((len(seen.answer), tuple(seen.answer.noisy.keys), len(str(seen.answer).splitlines())))
    assert len(sizes) == 1
    assert len(seen.answer) == 4


def test_a_quote_has_no_row_estimates() -> None:
    """Texts before payment, and the refusal of EXPLAIN, are the same for every table."""
    texts = set()
    for rows in ([], [CALM], [CALM] * 500, BAD):
        curator = open_observed(catalog(table(rows), COLUMNS))
        quote = curator.quote("SELECT b, COUNT(*) AS n, AVG(r) AS a FROM t GROUP BY b", epsilon=1)
        texts.add((str(quote), str(quote.margins()), observe(curator, "EXPLAIN SELECT COUNT(*) FROM t").status))
        assert observe(curator, "EXPLAIN ANALYZE SELECT COUNT(*) FROM t").status.startswith("QueryError")
    assert len(texts) == 1


class Counted(replay.Recorded):
    """A recorded stream that counts the bytes taken."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.taken = 0

    def fill(self, target: memoryview) -> None:
        self.taken += len(target)
        super().fill(target)


def drawn(plan: Any, groups: list[Group], key: bytes) -> tuple[int, Any]:
    """Returns how many random bytes a release took, and its noisy integers."""
    source = Counted(key)
    with replay.source(source):
        noisy = release(plan, groups)
        left = sum(8 for _ in entropy.thread_state().waiting)
    return source.taken - left, noisy.cells[0]


@pytest.mark.parametrize("price", [("1/100", 0), (1, 0), ("1/2", "1e-3")])
def test_the_work_of_a_release_depends_neither_on_the_answer_nor_on_the_noise(price: tuple[Any, Any]) -> None:
    """A release takes the same number of random bytes for any exact answer, and not more for large noise."""
    columns = {"g": dt.between(0, 63), "x": dt.between(0, 9)}
    curator = open_observed(catalog({"u": [1], "g": [1], "x": [1]}, columns, delta="1/2", max_rows=1, max_groups=1))
    plan = curator.quote("SELECT g, SUM(x) AS s FROM t GROUP BY g", epsilon=price[0], delta=price[1]).plan
    taken, size = [], []
    for number in range(150):
        key = number.to_bytes(2, "big")
        full = [Group((g,), 1, ((10**6 * g,),)) for g in range(64)]
        bytes_empty, noise = drawn(plan, [], key)
        bytes_full, moved = drawn(plan, full, key)
        assert bytes_empty == bytes_full
        assert [int(b - a) for a, b in zip(noise[:, 0], moved[:, 0], strict=True)] == [10**6 * g for g in range(64)]
        taken.append(bytes_empty)
        size.append(float(np.abs(noise).mean()))
    if len(set(taken)) > 1:
        order = np.argsort(size)
        small, large = np.array(taken)[order[:75]], np.array(taken)[order[75:]]
        spread = np.std(taken) / np.sqrt(75 / 2)
        assert abs(float(small.mean() - large.mean())) < 5 * spread


def test_that_a_sampler_which_counts_up_would_be_noticed() -> None:
    """The twin: geometric noise by counting failures takes longer for larger noise."""
    dice = random.Random(1)
    steps = []
    for _ in range(150):
        count = 1
        while dice.random() < 0.9:
            count += 1
        steps.append(count)
    order = np.argsort(steps)
    taken = np.array(steps)
    assert abs(float(taken[order[:75]].mean() - taken[order[75:]].mean())) > 5 * np.std(taken) / np.sqrt(75 / 2)


def test_noisy_numbers_make_no_expression_raise() -> None:
    """Steps after the noise must not fail: the charge is made, so an error would lose it."""
    terms = ("EXP(SUM(i) * 1e9)", "1 / (COUNT(*) - COUNT(*))", "SQRT(COUNT(*) - 1e9)", "LN(-COUNT(*))", "POWER(SUM(i), 1000)")
    for term in (*terms, "CAST(EXP(COUNT(*) * 1e6) AS INTEGER)", "EXP(COUNT(*) * 1e6) - EXP(COUNT(*) * 1e6)"):
        question = f"SELECT b, {term} AS z FROM t GROUP BY b HAVING NOT ({term}) > 1e300 OR TRUE ORDER BY {term} DESC"
        seen = ask(question, table([CALM]), COLUMNS)
        assert seen.status == "answered", term
        assert seen.answer is not None
        assert str(seen.answer)
