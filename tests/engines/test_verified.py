"""What was read is remembered of exactly these files and this declaration. If the memory is spoilt, files are read again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.catalog import declare as dt
from dither.catalog.values import Budget, Catalog, Table
from dither.engines import verified
from dither.engines.duckdb import sources
from dither.engines.duckdb.sources import open_catalog
from dither.engines.verified import Verified, file_stats
from dither.errors import CatalogError

TABLE = pa.table({"id": [1, 2, 3], "name": ["a", "b", None], "day": [1.5, 2.5, None]})
COLUMNS = {"name": dt.column(), "day": dt.column()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dither" / "verified"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute after files were written. The time of an inode's last change cannot be set, so the clock is."""
    monkeypatch.setattr(verified.time, "time", lambda clock=time.time: clock() + 60)


class Recorded:
    """A connection that keeps what was executed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, seen: list[str]) -> None:
        self._connection, self._seen = connection, seen

    def execute(self, text: str) -> duckdb.DuckDBPyConnection:
        self._seen.append(text)
        return self._connection.execute(text)


def readings(monkeypatch: pytest.MonkeyPatch, table: Table) -> int:
    """How many views an opening read whole."""
    seen: list[str] = []
    real = sources._Opening._needs_guards
    with monkeypatch.context() as patch:
        patch.setattr(sources._Opening, "_needs_guards", lambda self, on, *rest: real(self, Recorded(on, seen), *rest))
        open_catalog(Catalog({"t": table}, Budget(1)), threads=1).close()
    return sum("bit_xor" in text for text in seen)


def test_an_unchanged_file_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(file, unit="id", max_rows=1, columns=COLUMNS)
    assert [readings(monkeypatch, table) for _ in range(3)] == [1, 0, 0]


def test_another_file_declaration_or_version_is_read_again(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(columns: Any = COLUMNS, source: Any = file, **how: Any) -> int:
        return readings(monkeypatch, Table(source, unit="id", columns=columns, **how))

    assert read() == 1
    assert read(columns={"name": dt.column()}) == 1
    assert read(columns={"name": dt.column(longest=7), "day": dt.column()}) == 1
    assert read(columns={"name": dt.column(), "day": dt.column(kind="int")}) == 1
    (tmp_path / "u.parquet").write_bytes(file.read_bytes())
    assert read(source=tmp_path / "u.parquet") == 1
    assert read() == 0
    status = os.stat(file)
    content = bytearray(file.read_bytes())
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # same size, same time: another change of the inode
    assert read() == 1
    replaced = tmp_path / "new.parquet"
    replaced.write_bytes(content)
    os.utime(replaced, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(replaced, file)
    assert read() == 1
    monkeypatch.setattr(duckdb, "__version__", "another")
    assert read() == 1


def test_frames_and_poisoned_files_are_read_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [readings(monkeypatch, Table(TABLE, unit="id", max_rows=1, columns=COLUMNS)) for _ in range(2)] == [1, 1]
    far = pa.array([0, 10**16], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"id": [1, 2], "seen": far}), tmp_path / "p.parquet")
    table = Table(tmp_path / "p.parquet", unit="id", max_rows=1, columns={"seen": dt.column()})
    assert [readings(monkeypatch, table) for _ in range(2)] == [2, 2]


def test_a_file_changed_while_or_just_before_it_was_read_is_not_remembered(file: Path, cache: Path) -> None:
    memory = Verified("1.0", cache)
    before = file_stats([str(file)])
    with file.open("ab") as stream:
        stream.write(b"x")
    memory.remember("holds", [str(file)], before)
    assert not memory.holds("holds", [str(file)])
    memory.remember("holds", [str(file)], file_stats([str(file)]))
    assert memory.holds("holds", [str(file)])
    assert not memory.holds("another", [str(file)])
    assert not memory.holds("holds", [])
    assert not memory.holds("holds", [str(file), str(file)])


def test_a_file_written_a_moment_ago_is_not_remembered(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    memory = Verified("1.0", cache)
    memory.remember("holds", [str(file)], file_stats([str(file)]))
    assert not memory.holds("holds", [str(file)])


def test_the_log_of_a_duckdb_file_belongs_to_it(tmp_path: Path, cache: Path) -> None:
    base = tmp_path / "t.duckdb"
    base.write_bytes(b"base")
    memory = Verified("1.0", cache)
    memory.remember("holds", [str(base)], file_stats([str(base)]))
    assert memory.holds("holds", [str(base)])
    (tmp_path / "t.duckdb.wal").write_bytes(b"more")
    assert not memory.holds("holds", [str(base)])


def test_the_memory_has_no_value_and_is_ones_own(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings(monkeypatch, Table(file, unit="id", max_rows=1, key="id", columns=COLUMNS))
    held = list(cache.iterdir())
    assert len(held) == 2  # the view, and its key
    assert all(len(path.name) == 64 and path.stat().st_size == 0 for path in held)
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("spoil", ["file", "open", "link", "home", "unwritable"])
def test_a_memory_that_cannot_be_used_is_done_without(
    spoil: str, file: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir(parents=True)
    if spoil == "file":
        cache.write_bytes(b"no folder")
    elif spoil == "open":
        cache.mkdir()
        cache.chmod(0o777)
    elif spoil == "link":
        (tmp_path / "other").mkdir(mode=0o700)
        cache.symlink_to(tmp_path / "other")
    elif spoil == "home":
        monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
        monkeypatch.setenv("HOME", str(tmp_path / "t.parquet" / "nowhere"))
    else:
        monkeypatch.setattr(Path, "touch", _refused)
    table = Table(file, unit="id", max_rows=1, columns=COLUMNS)
    assert [readings(monkeypatch, table) for _ in range(2)] == [1, 1]


def _refused(*arguments: Any, **options: Any) -> None:
    raise OSError


def test_the_memory_stays_small(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "MOST", 10)
    memory = Verified("1.0", cache)
    for number in range(40):
        memory.remember(f"statement {number}", [str(file)], file_stats([str(file)]))
        assert len(list(cache.iterdir())) <= 10
    assert memory.holds("statement 39", [str(file)])


def test_keys_are_looked_at_once_and_again_where_another_column_is_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "twice": [1, 1]}), tmp_path / "t.parquet")
    for _ in range(2):
        open_catalog(Catalog({"t": Table(tmp_path / "t.parquet", unit="row", key="id")}, Budget(1))).close()
    for _ in range(2):
        with pytest.raises(CatalogError, match="not unique") as refused:
            open_catalog(Catalog({"t": Table(tmp_path / "t.parquet", unit="row", key="twice")}, Budget(1)))
        assert refused.value.diagnosis == ("1 values of t.twice stand in more than one row.",)
