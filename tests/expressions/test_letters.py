"""LOWER and UPPER map letters one for one, the same in Python and in DuckDB, whatever their Unicode."""

from __future__ import annotations

import duckdb
import pytest

from dither.engines.duckdb import dialect
from dither.engines.sql.dialect import Dialect
from dither.query.functions.letters import lower, mapping, upper

EVERY = "".join(chr(point) for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000)


def in_duckdb(expression: str) -> str:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {expression} FROM (SELECT $x AS x)", {"x": EVERY}).fetchone()
    assert found is not None
    return str(found[0])


@pytest.mark.parametrize(("big", "ours"), [(False, lower), (True, upper)])
def test_every_code_point_is_mapped_as_printed_for_duckdb(big: bool, ours: object) -> None:
    assert dialect.has_our_letters()
    assert in_duckdb(dialect.DIALECT.letters("x", upper=big)) == ours(EVERY)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("big", [False, True])
def test_an_engine_with_another_table_gets_ours_written_out(big: bool) -> None:
    sample = "".join(map(chr, [*mapping(upper=big), *range(1, 300)]))
    with duckdb.connect() as connection:
        printed = Dialect().letters("x", upper=big)
        found = connection.execute(f"SELECT {printed} FROM (SELECT $x AS x)", {"x": sample}).fetchone()
    assert found == ((upper if big else lower)(sample),)


def test_one_letter_stays_one_letter() -> None:
    assert len(lower(EVERY)) == len(upper(EVERY)) == len(EVERY)


def test_ascii_is_as_everywhere() -> None:
    ascii_ = EVERY[:127]
    assert (lower(ascii_), upper(ascii_)) == (ascii_.lower(), ascii_.upper())


def test_a_wrong_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "lower", lambda text: text.replace("Ä", "a"))
    dialect.has_our_letters.cache_clear()
    try:
        assert not dialect.has_our_letters()
        assert dialect.DIALECT.letters("x", upper=False).startswith("translate(")
    finally:
        dialect.has_our_letters.cache_clear()
