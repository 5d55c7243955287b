"""The parts of DuckDB's groupings: as many threads work as were asked for, and what does not fit in memory is answered too."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.engines.duckdb import engine as engine_file
from dither.engines.duckdb.engine import PARTS, DuckDB, few_parts, use_many_parts, uses_many_parts
from dither.engines.duckdb.sources import configure
from dither.errors import EngineError
from dither.query.nodes import Column, Compute, Named, Scan
from dither.query.work import UNIT, Cell, Group, Quantised, Sums, Work
from engines.tables import SECRET, by_key

ROWS = 400_000
X = Quantised(Column("x"), 0, 1, 100)
SOURCE = Compute(Scan("t", "t"), (Named(UNIT, Column("t.u")), Named("g", Column("t.g")), Named("x", Column("t.x"))))
WORK = Work(SOURCE, (Named("g", Column("g")),), None, True, 2, (Sums((Cell(X, linear=1), Cell(constant=1)), 3),))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 400,000 persons and groups: no engine has them in 60 MB."""
    dice = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("parts") / "t.parquet"
    columns = {"u": dice.integers(0, ROWS // 4, ROWS), "g": dice.integers(0, 200, ROWS), "x": dice.integers(0, 100, ROWS)}
    pq.write_table(pa.table(columns), path)
    return path


def _engine(file: Path, memory_limit: str | None = None) -> DuckDB:
    connection = duckdb.connect()
    configure(connection, 2, memory_limit)
    connection.read_parquet(str(file)).create_view("t")
    use_many_parts(connection)
    return DuckDB(connection)


def _answer(engine: DuckDB) -> dict[object, Group]:
    return by_key(engine.run(WORK, SECRET))


@pytest.mark.parametrize("threads", [1, 3, PARTS, PARTS + 3])
def test_as_many_threads_work_as_were_asked_for(threads: int) -> None:
    """Whoever asks is one of them; those that are external are never started."""
    connection = duckdb.connect()
    configure(connection, threads)

    def stated() -> tuple[int, int]:
        ((known, external),) = connection.execute(
            "SELECT current_setting('threads'), current_setting('external_threads')"
        ).fetchall()
        return known, external

    use_many_parts(connection)
    known, external = stated()
    assert known >= PARTS
    assert known - external + 1 == threads
    assert uses_many_parts(connection)
    with few_parts(connection):
        assert stated() == (threads, 1)
        assert not uses_many_parts(connection)
    assert stated() == (known, external)


def test_what_does_not_fit_is_asked_again_in_few_parts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[object] = []
    monkeypatch.setattr(engine_file, "few_parts", lambda connection: again.append(connection) or few_parts(connection))
    ample, scarce = _engine(file), _engine(file, "60MB")
    expected = _answer(ample)
    assert not again
    for _ in range(2):
        assert _answer(scarce) == expected
    assert len(again) == 2
    assert uses_many_parts(scarce._connection)


def test_that_it_would_fail_otherwise(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: nobody asks again."""
    monkeypatch.setattr(engine_file, "uses_many_parts", lambda connection: False)
    with pytest.raises(EngineError):
        _answer(_engine(file, "60MB"))
