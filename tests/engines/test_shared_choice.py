"""The keyed hash of every engine but DuckDB: the same bits in PostgreSQL and in Python, for every kind and NULL."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

import pytest

from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.sql.choice import canonical, key_of, shared_hash
from dither.engines.sql.dialect import Sql
from engines.tables import DATES, INTS, REALS, TEXTS, TIMES
from ledger.postgres_server import Server

TYPES = {"int": "int8", "real": "float8", "text": "text", "bool": "bool", "date": "date", "timestamp": "timestamp"}
VALUES: dict[str, list[Any]] = {
    "int": [*INTS, None],
    "real": [x for x in REALS if x == x and str(x) != "-0.0"] + [None],
    "text": [text for text in TEXTS if "\0" not in text] + [None, "é" * 300],
    "bool": [True, False, None],
    "date": [*DATES, None],
    "timestamp": [*TIMES, datetime.datetime(2024, 2, 29, 1, 2, 3, 40), None],
}


def test_texts_are_pinned() -> None:
    """A choice must not change with a version of dither or Python: releases of one secret are compared across engines."""
    text = canonical(b"secret", 7, None, "né", True, 2.5, datetime.date(33, 1, 2), datetime.datetime(33, 1, 2, 3, 4, 5, 6))
    assert text == (
        "8f64bfc250ac98ecf5a0f6a52cde7ec5v1:7nv2:név4:truev16:4004000000000000v10:0033-01-02v26:0033-01-02T03:04:05.000006"
    )
    assert shared_hash(b"secret", 7) == hashlib.sha256((key_of(b"secret") + "v1:7").encode()).digest()


def test_different_columns_have_different_texts() -> None:
    columns = [(), (None,), ("",), ("n",), ("v0:",), (None, None), ("", None), ("1:1",), (1, 1), ("11",), (11,)]
    texts = [canonical(b"", *each) for each in columns]
    assert len(set(texts)) == len(columns) - 1  # 11 and "11": a column has one kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALUES)
def test_postgresql_computes_the_same_hash(postgres: Server, kind: str) -> None:
    hashed = PostgresDialect({}).keyed_hash("groups", [Sql("u", "int"), Sql("k", kind)]).replace("$1", "%s")
    for value in VALUES[kind]:
        text = f"SELECT {hashed} FROM (SELECT 7::int8 AS u, %s::{TYPES[kind]} AS k) AS s"
        ((found,),) = postgres.sql(text, key_of(b"x"), value)
        assert bytes(found) == shared_hash(b"x", 7, value), value
