"""Which groups a unit keeps in DuckDB: those with the smallest keyed hashes, whether 62 bits tell its groups apart or not.

Every group here belongs to one unit, so the keys that come out are the choice itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import dialect
from dither.engines.duckdb.dialect import DIALECT, secret_numbers
from dither.engines.sql.dialect import Sql
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import SCALE, UNIT, Bins, Cell, Distinct, Quantised, Sums, Work
from engines.tables import SECRET, in_duckdb

BOUNDS = (1, 2, 3, 8)
# Units with 1 to 24 groups: with few, nearly all have 62 bits of their own; with many, nearly none.
PAIRS = pa.table(
    {"u": [u for u in range(480) for _ in range(u % 24 + 1)], "g": list(range(sum(u % 24 + 1 for u in range(480))))}
)


def _work(table: str, most: int, *measures: Any) -> Work:
    source = Compute(Scan(table, "t"), (Named(UNIT, Column("t.u")), Named("g", Column("t.g"))))
    return Work(source, (Named("g", Column("g")),), None, True, most, measures or (Sums((Cell(constant=1),), 1),))


def _kept(table: pa.Table, most: int, *measures: Any) -> set[Any]:
    groups = in_duckdb({"pairs": table}).run(_work("pairs", most, *measures), SECRET)
    return {group.key[0] for group in groups}


def _hashes() -> dict[int, list[tuple[int, int]]]:
    """For each unit its groups by hash, smallest first."""
    found = defaultdict(list)
    connection = duckdb.connect()
    connection.register("pairs", PAIRS)
    given = {name: value for name, value in secret_numbers(SECRET).items() if name.startswith("groups")}
    text = f"SELECT u, g, {DIALECT.keyed_hash('groups', [Sql('u', 'int'), Sql('g', 'int')])} FROM pairs"
    for unit, group, value in connection.execute(text, given).fetchall():
        found[unit].append((value, group))
    return {unit: sorted(pairs) for unit, pairs in found.items()}


def _expected(most: int) -> set[int]:
    return {group for pairs in _hashes().values() for _, group in pairs[:most]}


@pytest.mark.parametrize("most", BOUNDS)
def test_the_groups_with_the_smallest_hashes_stay(most: int) -> None:
    over = [pairs for pairs in _hashes().values() if len(pairs) > most]
    apart = [len({min(value >> 58, 61) for value, _ in pairs}) == len(pairs) for pairs in over]
    assert any(apart)
    assert not all(apart)
    assert _kept(PAIRS, most) == _expected(most)


@pytest.mark.parametrize("most", BOUNDS)
def test_histograms_and_distinct_values_keep_the_same_groups(most: int) -> None:
    assert _kept(PAIRS, most, Bins(Quantised(Column("g"), 0, 1, 10), SCALE)) == _expected(most)
    assert _kept(PAIRS, most, Distinct(Column("g"), 1)) == _expected(most)


@pytest.mark.parametrize("last", [0, 1, 20])
def test_how_many_places_there_are_does_not_show(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "LAST", last)
    assert _kept(PAIRS, 2) == _expected(2)


def test_that_groups_in_one_place_taken_for_apart_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: every unit is believed to have a bit for each of its groups."""
    right = dialect.beyond

    def wrong(pairs: str, hashed: str, most: int) -> str:
        return right(pairs, hashed, most).replace("bit_count(m) = c", "TRUE").replace("bit_count(m) < c", "FALSE")

    monkeypatch.setattr(dialect, "beyond", wrong)
    assert _kept(PAIRS, 2) != _expected(2)


EDGES = [place << 58 for place in range(64)]
HASHES = st.one_of(st.sampled_from([*EDGES, *(edge - 1 for edge in EDGES[1:]), 2**64 - 1]), st.integers(0, 2**64 - 1))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(hashes=st.sets(HASHES, min_size=1, max_size=20), most=st.integers(1, 8))
def test_hashes_on_the_edges_of_places_are_ranked_like_others(hashes: set[int], most: int) -> None:
    """The key is its own hash, so every hash can be tried."""
    table = pa.table({"u": [1] * len(hashes), "g": [str(value) for value in hashes]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DIALECT, "keyed_hash", lambda purpose, columns: f"CAST({columns[-1].text} AS UBIGINT)")
        assert _kept(table, most) == {str(value) for value in sorted(hashes)[:most]}


@pytest.mark.parametrize(
    "measure", [Sums((Cell(constant=1),), 1), Bins(Quantised(Column("g"), 0, 1, 10), SCALE), Distinct(Column("g"), 1)]
)
@pytest.mark.parametrize("prepared", [False, True])
def test_the_secret_is_in_no_statement_and_decides_all_the_same(measure: Any, prepared: bool) -> None:
    engine, work = in_duckdb({"pairs": PAIRS}), _work("pairs", 2, measure)
    (text,) = engine.explain(work)
    assert not any(str(value) in text for value in secret_numbers(SECRET).values())
    kept = []
    for secret in (SECRET, SECRET, b"another"):
        if prepared:
            engine.prepare(work)
        kept.append({group.key[0] for group in engine.run(work, secret)})
    assert kept[0] == kept[1] == _expected(2) != kept[2]
