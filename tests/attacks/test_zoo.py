"""No stored value makes a question fail, and nobody's presence decides whether anything is answered."""

from __future__ import annotations

import contextlib
import hashlib
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from attacks.zoo import PARQUET, STORES, Specimen, specimens
from dither.engines.duckdb import frames, sources
from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.relations import relation
from dither.query.nodes import Scan

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(x) AS n FROM t WHERE pid = 7 AND flag",
    "SELECT COUNT(*) AS n FROM t WHERE flag AND x IS NOT NULL",
    "SELECT COUNT(pid) AS n FROM t WHERE x IS NULL OR flag",
]
ABOUT = {
    "text": [
        "SELECT COUNT(DISTINCT x) AS n FROM t WHERE pid > 3",
        "SELECT COUNT(*) AS n FROM t WHERE x LIKE '%a_%' OR x || x = 'aa'",
        "SELECT COUNT(*) AS n FROM t WHERE x = 'a' AND flag",
    ],
    "real": ["SELECT COUNT(*) AS n FROM t WHERE x > 0.5 AND NOT flag", "SELECT SUM(CLAMP(x, 0, 5)) AS s FROM t"],
    "int": [
        "SELECT COUNT(DISTINCT x) AS n FROM t WHERE pid > 3",
        "SELECT COUNT(*) AS n FROM t WHERE x = 1 AND pid < 9",
        "SELECT SUM(CLAMP(x, 0, 5)) AS s FROM t",
    ],
    "bool": ["SELECT COUNT(*) AS n FROM t WHERE x"],
    "date": [
        "SELECT COUNT(*) AS n FROM t WHERE x > DATE '2020-01-01'",
        "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('month', x) = x",
    ],
    "timestamp": [
        "SELECT COUNT(*) AS n FROM t WHERE x > TIMESTAMP '2020-01-01 00:00:00'",
        "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('week', x) = x OR HOUR(x) > 3",
    ],
}
ANSWERED = "answered"
NO_KIND = "t.x is of a type that questions cannot use."  # said of the schema, whatever the rows are


def statuses(source: Any, *, unit: str = "pid", kind: str | None = None) -> list[str]:
    """Returns what an analyst sees of a source: whether questions succeed, and the texts of errors."""
    columns = {"pid": dt.column(kind="int"), "flag": dt.column(kind="bool"), "x": dt.column(kind=kind)}
    catalog = dt.Catalog(
        {"t": dt.Table(source, unit=unit, max_rows=1, columns=columns)}, dt.Budget(epsilon=1000, left_out=False)
    )
    try:
        survey = dt.open(catalog, ledger=":memory:")
    except dt.DitherError as error:
        return [str(error)]
    try:
        found = str(survey.catalog.tables["t"].columns["x"].kind)
        return [_status(survey, question) for question in (*QUESTIONS, *ABOUT[found])]
    finally:
        survey.close()


def _status(survey: Any, question: str, epsilon: Any = 1) -> str:
    try:
        survey.ask(question, epsilon=epsilon)
    except dt.DitherError as error:
        return str(error)
    return ANSWERED


def both(specimen: Specimen, store: str, folder: Path) -> tuple[list[str], list[str]] | None:
    """Returns the statuses without and with the odd value; None if the writer does not take the value or its type."""
    found = []
    for present in (False, True):
        place = folder / str(present)
        place.mkdir(parents=True)
        try:
            source = STORES[store](specimen.rows(present=present), place)
        except Exception:  # a writer's own refusal, of whatever kind
            return None
        found.append(statuses(source))
    return found[0], found[1]


def sampled(part: int) -> list[tuple[Specimen, str]]:
    """Picks a share of the pairs, the same in every run, with every way to store."""
    pairs = [(specimen, store) for specimen in specimens() for store in STORES]
    return [pair for pair in pairs if int(hashlib.sha256(f"{pair[0].name} {pair[1]}".encode()).hexdigest(), 16) % part == 0]


def check(pairs: list[tuple[Specimen, str]], folder: Path) -> int:
    compared = 0
    for number, (specimen, store) in enumerate(pairs):
        found = both(specimen, store, folder / str(number))
        if found is None:
            continue
        without, within = found
        assert without == within, (specimen.name, store)
        assert set(within) == {ANSWERED} or within[0].startswith(NO_KIND), (specimen.name, store, within)
        compared += 1
    return compared


def test_neighbours_in_the_zoo_have_equal_status(tmp_path: Path) -> None:
    assert check(sampled(40), tmp_path) > 80


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
def test_neighbours_in_the_whole_zoo_have_equal_status(store: str, tmp_path: Path) -> None:
    assert check([(specimen, store) for specimen in specimens()], tmp_path) > 40


# --- the two findings -------------------------------------------------------------------------------------------


def survey_of(ill: bool, folder: Path, **options: Any) -> list[str]:
    """Person 999 has a timestamp of the year 318857. Success of the question about person 7 must not depend on 7."""
    folder.mkdir()
    seen = pa.array([*[0] * 999, 10**16], pa.int64()).view(pa.timestamp("ms"))
    rows = pa.table({"pid": range(1000), "ill": [person == 7 and ill for person in range(1000)], "seen": seen})
    pq.write_table(rows, folder / "p.parquet", **options)
    columns = {"ill": dt.column(), "seen": dt.column()}
    table = dt.Table(folder / "p.parquet", unit="pid", max_rows=1, columns=columns)
    with dt.open(dt.Catalog({"p": table}, dt.Budget(epsilon=1)), ledger=":memory:") as survey:
        return [_status(survey, "SELECT COUNT(seen) AS n FROM p WHERE pid = 7 AND ill", "1/100")]


@pytest.mark.parametrize("statistics", [False, True, ["pid"]])
def test_one_persons_timestamp_tells_nothing_about_another(statistics: Any, tmp_path: Path) -> None:
    found = [survey_of(ill, tmp_path / str(ill), write_statistics=statistics) for ill in (False, True)]
    assert found == [[ANSWERED], [ANSWERED]]


def test_that_it_would_tell_if_columns_were_not_read_on_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the same reader trusts every file."""
    monkeypatch.setattr(sources._Opening, "_needs_guards", lambda *arguments: False)
    found = [survey_of(ill, tmp_path / str(ill), write_statistics=False) for ill in (False, True)]
    assert found[0] == [ANSWERED]
    assert found[1] != [ANSWERED]


def test_that_the_zoo_finds_a_frame_that_is_not_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin for frames: plain Arrow."""
    monkeypatch.setattr(frames, "readable", lambda table: table)
    pairs = [(specimen, "arrow") for specimen in specimens() if specimen.name == "timestamp[ms, tz=UTC] 4"]
    with pytest.raises((AssertionError, dt.DitherError)):
        check(pairs, tmp_path)


# --- files as writers and accidents leave them --------------------------------------------------------------------


def test_statistics_beyond_the_values_do_no_harm(tmp_path: Path) -> None:
    """A footer states the greatest value. A planner that converts it would fail, although every row can be read."""
    moments = pa.array([1_234_567_890_123] * 6, pa.int64()).view(pa.timestamp("ms"))
    rows = pa.table({"pid": range(6), "flag": [True, False] * 3, "x": moments})
    pq.write_table(rows, tmp_path / "t.parquet")
    stored = (tmp_path / "t.parquet").read_bytes()
    footer = len(stored) - 8 - int.from_bytes(stored[-8:-4], "little")
    stated, beyond = (1_234_567_890_123).to_bytes(8, "little"), (10**16).to_bytes(8, "little")
    assert stated in stored[footer:]
    (tmp_path / "t.parquet").write_bytes(stored[:footer] + stored[footer:].replace(stated, beyond))
    assert set(statuses(tmp_path / "t.parquet")) == {ANSWERED}


def test_files_of_different_units_and_partitions_are_one_table(tmp_path: Path) -> None:
    """Milliseconds beyond all range in one file, microseconds in another, none in a third, and a column of the path."""
    far = pa.array([10**16, 1000], pa.int64()).view(pa.timestamp("ms"))
    near = pa.array([1_000_000, 2_000_000], pa.int64()).view(pa.timestamp("us"))
    for name, moments in {"1": far, "2": near, "3": near.slice(0, 0)}.items():
        (tmp_path / f"flag={name == '1'}").mkdir(exist_ok=True)
        nested = pa.array([[1]] * len(moments), pa.list_(pa.int64()))
        rows = pa.table({"pid": pa.array(range(len(moments)), pa.int64()), "x": moments, "nested": nested})
        pq.write_table(rows, tmp_path / f"flag={name == '1'}" / f"{name}.parquet")
    columns = {"x": dt.column(), "flag": dt.column(kind="bool")}
    opened = sources.open_catalog(
        dt.Catalog({"t": dt.Table(str(tmp_path), unit="pid", max_rows=1, columns=columns)}, dt.Budget(1))
    )
    found = opened.connection.execute("SELECT flag, epoch_ms(x) FROM t ORDER BY ALL").fetchall()
    opened.close()
    assert found == [(False, 1000), (False, 2000), (True, 1000), (True, None)]


def test_a_torn_file_is_refused_in_a_constant_text(tmp_path: Path) -> None:
    rows = pa.table({"pid": range(1000), "flag": [True] * 1000, "x": [f"{number:08}" for number in range(1000)]})
    pq.write_table(rows, tmp_path / "t.parquet", compression="zstd", use_dictionary=False)
    whole = (tmp_path / "t.parquet").read_bytes()
    page = pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(2).data_page_offset
    told = set()
    for length in (8, 16):  # of the page's header
        (tmp_path / "t.parquet").write_bytes(whole[:page] + b"\xff" * length + whole[page + length :])
        told.update(statuses(tmp_path / "t.parquet"))
    assert told == {"t cannot be read.\n  Fix: look whether its files are complete.   Charged: nothing."}


def _sometimes(store: str) -> Any:
    return store if store in ("pyarrow", "duckdb") else pytest.param(store, marks=pytest.mark.long)


@pytest.mark.parametrize("store", [*map(_sometimes, PARQUET)])
def test_both_readers_of_parquet_read_the_same(store: str, tmp_path: Path) -> None:
    """The copy through Arrow holds everything that DuckDB reads directly."""
    compared = 0
    for number, (kind, values) in enumerate(groupby(specimens(), lambda specimen: specimen.name.rpartition(" ")[0])):
        files = {}
        for place, specimen in enumerate(values):
            folder = tmp_path / f"{number}-{place}"
            folder.mkdir()
            with contextlib.suppress(Exception):  # the writer itself may not take the value or its type
                files[f"t{place}"] = STORES[store](specimen.rows(present=True), folder)
        plain = _rows(files, by_arrow=False)
        copied = _rows({name: files[name] for name in plain}, by_arrow=True)
        for name in copied:
            assert repr(plain[name]) == repr(copied[name]), (kind, name)  # NaN equals nothing, not even itself
        compared += len(copied)
    assert compared > 40


def _rows(files: dict[str, Path], by_arrow: bool) -> dict[str, list[Any]]:
    """Returns what a question sees of each file in one catalog; leaves out files that DuckDB cannot read."""
    columns = {"flag": dt.column(), "x": dt.column()}
    tables = {name: dt.Table(file, unit="pid", max_rows=1, columns=columns) for name, file in files.items()}
    while tables:
        opening = sources._Opening(dt.Catalog(tables, dt.Budget(1)), 1, None)
        opening._careful.update(tables if by_arrow else [])
        try:
            opened = opening.attempt()
        except sources._ReaderError as failed:
            del tables[failed.table]
        except dt.CatalogError as failed:
            refused = {name for name in tables for _, what, _ in failed.problems if re.match(rf"{name}\b", what)}
            if not refused:
                raise
            tables = {name: table for name, table in tables.items() if name not in refused}
        else:
            with contextlib.closing(opened):
                return {name: _seen(opened, name) for name in tables}
    return {}


def _seen(opened: sources.Sources, name: str) -> list[Any]:
    pairs = list(opened.engine.schema(name).items())
    printed = relation(Scan(name, "t"), lambda _: pairs, DIALECT).text
    return opened.connection.execute(f"SELECT * FROM ({printed}) ORDER BY ALL").fetchall()
