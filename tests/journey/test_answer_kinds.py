"""The kinds of an answer's columns follow from the plan: the same without rows, with nothing but NULLs, with any numbers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.cli.output import Format, write_answer
from dither.planning.outputs import Noisy, table

ARROW = {
    "int": "int64",
    "real": "double",
    "text": "string",
    "bool": "bool",
    "date": "date32[day]",
    "timestamp": "timestamp[us]",
}
POLARS = {"int": "Int64", "real": "Float64", "text": "String", "bool": "Boolean", "date": "Date", "timestamp": "Datetime"}
HELD = {"int": int, "real": float, "text": str, "bool": bool, "date": str, "timestamp": str}

KEYS = {  # a key, its kind, and some of its values
    "age": ("int", [3, 70]),
    "FLOOR(kg)": ("int", [0, 60]),
    "BUCKET(kg, 10)": ("int", [0, 50]),
    "CASE WHEN age > 3 THEN 1 ELSE 2.0 END": ("int", [1, 2]),
    "YEAR(born)": ("int", [2020]),
    "floor": ("int", [1, 2]),
    "ward": ("text", ["north", "south"]),
    "street": ("text", ["a lane"]),
    "smokes": ("bool", [True, False]),
    "born": ("date", [datetime.date(2020, 1, 3)]),
    "seen": ("date", [datetime.date(2021, 1, 1)]),
    "DATE_TRUNC('month', born)": ("date", [datetime.date(2020, 1, 1)]),
}
OUTPUTS = {
    "COUNT(*)": "int",
    "COUNT(kg)": "int",
    "COUNT(DISTINCT age)": "int",
    "COUNT(DISTINCT person)": "int",
    "SUM(age)": "int",
    "SUM(kg)": "real",
    "SUM(coarse)": "real",  # comes out whole, and is no whole number
    "AVG(age)": "real",
    "VAR_POP(age)": "real",
    "STDDEV(age)": "real",
    "MEDIAN(age)": "int",
    "MEDIAN(kg)": "real",
    "QUANTILE(age, 0.9)": "int",
    "MIN(age)": "int",
    "MAX(kg)": "real",
    "CLIPPED(age)": "real",
    "COUNT(*) + 1": "real",
    "100 * SUM(age) / COUNT(*)": "real",
    "COALESCE(SUM(age), 0)": "real",
    "GREATEST(COUNT(*), 0)": "int",
    "CAST(AVG(age) AS INTEGER)": "int",
    "CAST(COUNT(*) AS VARCHAR)": "text",
    "COUNT(*) > 10": "bool",
    "CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END": "text",
    "CASE WHEN COUNT(*) > 10 THEN DATE '2020-01-01' END": "date",
    "NULLIF(COUNT(*), COUNT(*))": "int",
    "NULLIF(AVG(age), AVG(age))": "real",
    "NULLIF(COUNT(*) > 10, COUNT(*) > 10)": "bool",
    "CASE WHEN COUNT(*) > 1 THEN NULL ELSE NULL END": "text",
}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file = tmp_path_factory.mktemp("kinds") / "people.parquet"
    rows = range(60)
    people = {
        "person": list(rows),
        "age": [i % 90 for i in rows],
        "kg": [i + 0.5 for i in rows],
        "coarse": [float(10 * (i % 10)) for i in rows],
        "ward": [["north", "south"][i % 2] for i in rows],
        "street": [f"{i % 3} lane" for i in rows],
        "floor": [i % 3 or None for i in rows],
        "smokes": [bool(i % 2) for i in rows],
        "seen": [datetime.date(2021, 1, 1) for _ in rows],
        "born": [datetime.date(2020, 1, 1 + i % 30) for i in rows],
    }
    pq.write_table(pa.table(people), file)
    first, last = datetime.date(2020, 1, 1), datetime.date(2020, 1, 31)
    columns = {
        "age": dt.between(0, 120),
        "kg": dt.between(0, 60),
        "coarse": dt.between(0, 100, step=10),
        "ward": dt.values("north", "south", None),
        "street": dt.column(kind="text"),
        "floor": dt.values(1, 2, None),
        "smokes": dt.values(True, False, None),
        "seen": dt.values(datetime.date(2021, 1, 1), None),
        "born": dt.between(first, last),
    }
    catalog = dt.Catalog(
        {"people": dt.Table(str(file), unit="person", max_rows=1, columns=columns)}, dt.Budget(epsilon=10_000, delta="1e-3")
    )
    with dt.open(catalog, ledger=":memory:") as opened:
        yield opened


def drawn(answer: Any, keys: list[Any], number: int) -> Any:
    """The same plan's answer for these keys, where every noisy integer is this number. NULL is none where it cannot be."""
    nullable = next(field.nullable for field in answer.schema if field.name == "k")
    keys = [key for key in keys if nullable or key is not None]
    cells = tuple(np.full((len(keys), max(noise.of.cells, 1)), number) for noise in answer.plan.noises)
    noisy = Noisy(tuple((key,) for key in keys), cells)
    return replace(answer, released=(noisy, *answer.released[1:]), table=table(answer.plan, noisy))


def kinds(answer: Any) -> dict[str, list[str]]:
    """Returns what each format says about its columns, whatever their values are."""
    json_ = json.loads(answer.to_json())
    held = {}
    write_answer(answer, Format.PARQUET, lambda content: held.update(parquet=content))
    return {
        "answer": [field.kind for field in answer.schema],
        "arrow": [str(each) for each in answer.to_arrow(margins=True).schema.types],
        "polars": [str(each) for each in answer.to_polars(margins=True).dtypes],
        "pandas": [str(each) for each in answer.to_pandas(margins=True).dtypes],
        "parquet": [str(each) for each in pq.read_schema(pa.BufferReader(held["parquet"])).types],
        "json": json_["kinds"],
    }


def well_held(answer: Any) -> None:
    """No form has a value of another kind than its column's."""
    for column in (
        answer.to_dict(),
        dict(zip(answer.columns, zip(*json.loads(answer.to_json())["rows"], strict=True), strict=False)),
    ):
        for field in answer.schema:
            own = HELD[field.kind]
            values = [value.isoformat() if isinstance(value, datetime.date) else value for value in column.get(field.name, [])]
            assert all(value is None or type(value) is own for value in values)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("output", ["COUNT(*)", "SUM(coarse)"])
def test_keys(survey: Any, key: str, output: str) -> None:
    kind, values = KEYS[key]
    ordinary = survey.ask(f"SELECT {key} AS k, {output} AS n FROM people GROUP BY {key}", epsilon=1)
    answers = [ordinary, *(drawn(ordinary, keys, 7) for keys in ([], [None], values, [None, *values]))]
    assert [(field.kind, field.noisy) for field in ordinary.schema] == [(kind, False), (OUTPUTS[output], True)]
    assert all(kinds(answer) == kinds(ordinary) for answer in answers)
    assert kinds(ordinary)["arrow"][0] == ARROW[kind]
    for answer in answers:
        well_held(answer)


def test_keys_that_may_be_null(survey: Any) -> None:
    found = {}
    for key in KEYS:
        found[key] = survey.quote(f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY {key}", epsilon=1).schema[0].nullable
    assert {key for key, nullable in found.items() if nullable} == {"floor", "ward", "street", "smokes", "seen"}


@pytest.mark.parametrize("output", OUTPUTS)
def test_outputs(survey: Any, output: str) -> None:
    kind = OUTPUTS[output]
    question = f"SELECT ward AS k, {output} AS x FROM people GROUP BY ward"
    quote, ordinary = survey.quote(question, epsilon=1), survey.ask(question, epsilon=1)
    assert quote.schema == ordinary.schema
    assert [field.kind for field in quote.schema] == ["text", kind]
    answers = [ordinary, drawn(ordinary, [], 0), drawn(ordinary, ["north", None], 0), drawn(ordinary, ["north"], 30)]
    for answer in answers:
        assert kinds(answer) == kinds(ordinary)
        well_held(answer)
    assert kinds(ordinary)["arrow"][1] == ARROW[kind]
    assert kinds(ordinary)["polars"][1].startswith(POLARS[kind])


def test_that_values_alone_would_tell_another_story(survey: Any) -> None:
    answer = survey.ask("SELECT ward AS k, SUM(coarse) AS s FROM people GROUP BY ward", epsilon=1)
    assert all(type(value) is int for value in answer["s"])
    assert all(type(value) is float for value in answer.to_dict()["s"])
    assert str(pa.array(answer["s"]).type) == "int64"
    assert str(pa.array([]).type) == "null"


@pytest.mark.slow
@given(
    output=st.sampled_from(sorted(OUTPUTS)),
    key=st.sampled_from(sorted(KEYS)),
    draws=st.lists(st.tuples(st.booleans(), st.integers(-(2**40), 2**40)), min_size=2, max_size=2),
)
def test_two_answers_of_one_plan_have_the_same_kinds(survey: Any, output: str, key: str, draws: list[tuple[bool, int]]) -> None:
    question = f"SELECT {output} AS x, {key} AS k FROM people GROUP BY {key} ORDER BY k LIMIT 3"
    answer = survey.ask(question, epsilon="1/2")
    one, other = (drawn(answer, [None, *KEYS[key][1]] if null else KEYS[key][1], number) for null, number in draws)
    assert kinds(one) == kinds(other) == kinds(drawn(answer, [], 0))


def test_whole_numbers_that_may_exceed_64_bits_are_floats_in_frames(tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": [1, 2], "bytes": [5, 7]}), tmp_path / "t.parquet")
    columns = {"bytes": dt.between(0, 2**61, step=2**40)}
    people = dt.Table(str(tmp_path / "t.parquet"), unit="person", max_rows=1, columns=columns)
    with dt.open(dt.Catalog({"t": people}, dt.Budget(epsilon=10)), ledger=":memory:") as opened:
        large, small = (
            opened.ask(question, epsilon=1) for question in ("SELECT SUM(bytes) AS s FROM t", "SELECT COUNT(*) AS n FROM t")
        )
    assert [(field.kind, field.long) for field in (*large.schema, *small.schema)] == [("int", True), ("int", False)]
    assert [str(large.to_arrow().schema.types[0]), str(small.to_arrow().schema.types[0])] == ["double", "int64"]
    assert all(type(value) is int for value in large.to_dict()["s"])  # Python's are of any size
