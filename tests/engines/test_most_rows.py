"""`most_rows`: rows of a person beyond it are left out at opening, by their own rows and a key alone; nothing is refused."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.catalog.file import parse
from dither.catalog.text import catalog_json, catalog_text
from dither.engines.duckdb.sources import open_catalog
from dither.engines.registry import open_sources, read_report
from dither.errors import CatalogError

Rows = list[tuple[Any, ...]]
MOST = 5


def rows_of(people: int, heavy: int = 0, seed: int = 1) -> Rows:
    """Persons 0, 1, … with up to five rows; person 1000 with `heavy` rows, some of them equal, in between."""
    chosen = random.Random(seed)
    rows: Rows = [(p, chosen.choice("ab"), chosen.randrange(9)) for p in range(people) for _ in range(1 + p % MOST)]
    rows += [(1000, chosen.choice("ab"), chosen.randrange(4)) for _ in range(heavy)]
    rows += [(None, "a", 1)] * 9
    chosen.shuffle(rows)
    return rows


def source(rows: Rows, kind: str, folder: Path) -> Any:
    table = pa.table({"person": [r[0] for r in rows], "g": [r[1] for r in rows], "x": [r[2] for r in rows]})
    if kind == "parquet":
        pq.write_table(table, folder / "t.parquet")
        return str(folder / "t.parquet")
    if kind == "csv":
        pyarrow.csv.write_csv(table, folder / "t.csv")
        return str(folder / "t.csv")
    return table


def catalog(place: Any, most: int | None = MOST) -> dt.Catalog:
    columns = {"g": dt.values("a", "b"), "x": dt.between(0, 9)}
    return dt.Catalog({"t": dt.Table(place, unit="person", columns=columns, most_rows=most)}, dt.Budget(epsilon=1))


def kept(rows: Rows, kind: str, folder: Path, most: int | None = MOST) -> Counter[tuple[Any, ...]]:
    with closing(open_catalog(catalog(source(rows, kind, folder), most))) as opened:
        return Counter(opened.connection.execute('SELECT CAST(person AS BIGINT), g, x FROM "t"').fetchall())


@pytest.fixture
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dither.engines.duckdb.sources.secrets.token_bytes", lambda n: bytes(range(n)))


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame"])
def test_others_keep_their_rows_whoever_comes_or_goes(same_key: None, kind: str, tmp_path: Path) -> None:
    with_heavy, without = kept(rows_of(30, 40), kind, tmp_path), kept(rows_of(30), kind, tmp_path)
    assert sum((with_heavy - without).values()) == MOST
    assert not without - with_heavy
    assert {row[0] for row in with_heavy - without} == {1000}
    assert without == Counter(rows_of(30))  # nobody else has too many, and rows without a person stay as they are


def test_the_choice_depends_on_a_persons_own_rows_alone(same_key: None, tmp_path: Path) -> None:
    heavy = [row for row in rows_of(0, 40) if row[0] == 1000]
    alone = kept(heavy, "frame", tmp_path)
    for seed in (2, 3):
        others = [row for row in rows_of(50, 40, seed) if row[0] != 1000] + [(2000, "a", i % 9) for i in range(33)]
        mixed = heavy + others
        random.Random(seed).shuffle(mixed)
        assert Counter({row: n for row, n in kept(mixed, "frame", tmp_path).items() if row[0] == 1000}) == alone


def test_that_check_notices_a_choice_by_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def by_place(table: dt.Table, text: str, secret: bytes) -> str:
        return f"SELECT * FROM ({text}) QUALIFY row_number() OVER (PARTITION BY person) <= {table.most_rows}"

    monkeypatch.setattr("dither.engines.duckdb.sources.kept", by_place)
    heavy: Rows = [(1000, "a", i % 9) for i in range(40)]
    assert kept(heavy, "frame", tmp_path) != kept(heavy[::-1], "frame", tmp_path)


def test_every_key_chooses_anew(tmp_path: Path) -> None:
    rows = [(1000, "a", i % 9) for i in range(400)]
    assert len({tuple(sorted(kept(rows, "frame", tmp_path).items())) for _ in range(4)}) > 1


def test_how_a_table_is_read_does_not_depend_on_its_rows(tmp_path: Path) -> None:
    for heavy in (0, 40):
        with closing(open_catalog(catalog(source(rows_of(30, heavy), "parquet", tmp_path)))) as opened:
            assert opened.connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 't'").fetchall() == [(1,)]
    with closing(open_catalog(catalog(source(rows_of(30), "parquet", tmp_path), None))) as opened:  # twin: a view of the file
        assert opened.connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 't'").fetchall() == [(0,)]


def test_the_curator_is_told(tmp_path: Path) -> None:
    reports, refused = read_report(catalog(source(rows_of(30, 40), "parquet", tmp_path)))
    assert refused is None
    assert reports[0].most_rows == (MOST, 1, 35)
    assert any("35 of their rows are left out" in warning for warning in reports[0].warnings())
    reports, _ = read_report(catalog(source(rows_of(30), "parquet", tmp_path)))
    assert not any("most_rows" in warning for warning in reports[0].warnings())


TEXT = '[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "id"\n'


def test_it_is_declared_and_older_digests_stay() -> None:
    with_it, without = parse(TEXT + "most_rows = 7\n"), parse(TEXT)
    assert with_it.tables["t"].most_rows == 7
    assert parse(catalog_text(with_it)) == with_it
    assert catalog_json(with_it) != catalog_json(without)
    assert "most_rows" not in catalog_json(without)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("most_rows = 0\n", "most_rows"),
        ("most_rows = 3\nmax_rows = 4\n", "below its max_rows"),
        ('most_rows = "x"\n', "most_rows"),
    ],
)
def test_a_wrong_value_is_refused(more: str, what: str) -> None:
    with pytest.raises(CatalogError, match=what):
        parse(TEXT + more)


def test_a_table_of_rows_has_none() -> None:
    with pytest.raises(CatalogError, match="no unit column"):
        parse(TEXT.replace('"id"', '"row"') + "most_rows = 3\n")


@pytest.mark.parametrize("place", ["postgresql://127.0.0.1:1/db#t", "spark:t"])
def test_other_engines_refuse_it(place: str) -> None:
    with pytest.raises(CatalogError, match="is for tables in files and frames"):
        open_sources(catalog(place))
