"""Collations that make different texts equal must neither double a row nor move it to another group."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints
from dither.audit.ourselves.observe import observe, open_observed
from dither.engines.duckdb import views
from dither.engines.duckdb.dialect import identifier

BY_ROW = [
    "SELECT COUNT(*) AS n FROM t WHERE g = 'zz' OR g IN (SELECT n FROM p)",
    "SELECT COUNT(*) AS n FROM t WHERE g = 'zz' OR EXISTS (SELECT 1 FROM p WHERE p.n = t.g)",
    "SELECT COUNT(*) AS n FROM t WHERE g = 'zz' OR (SELECT COUNT(*) FROM p WHERE p.n = t.g) > 0",
    "SELECT COUNT(*) AS n FROM t JOIN p ON p.n = t.g",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT COUNT(DISTINCT g) AS n FROM t",
]
BY_PERSON = [
    "SELECT COUNT(*) AS n FROM people p WHERE x > 4 OR EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id)",
    "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id)",
    "SELECT COUNT(*) AS n FROM people p JOIN visits v ON v.id = p.id",
]


def catalog(path: Path, more: bool) -> dt.Catalog:
    """Compares with and without one more row or person."""
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t (g VARCHAR COLLATE NOCASE)")
        made.execute(f"INSERT INTO t VALUES {'(chr(65)), ' if more else ''} ('b'), ('a'), ('a'), ('a')")
        made.execute("CREATE TABLE p (n VARCHAR)")
        made.execute("INSERT INTO p VALUES ('a'), ('A')")
        made.execute("CREATE TABLE people (id VARCHAR, x BIGINT)")
        made.execute("INSERT INTO people VALUES ('aB', 1), ('Ab', 1), ('AB', 1)")
        made.execute("CREATE TABLE visits (id VARCHAR COLLATE NOCASE)")
        if more:
            made.execute("INSERT INTO people VALUES ('ab', 1)")
            made.execute("INSERT INTO visits VALUES ('ab')")
    whose = {"column": "id", "references": "people.id"}
    tables = {
        "t": dt.Table(f"{path}#t", unit="row", columns={"g": dt.values("a", "b", "A")}),
        "p": dt.Table(f"{path}#p", public=True, key="n", columns={"n": dt.column()}),
        "people": dt.Table(
            f"{path}#people", unit="id", max_rows=1, max_groups=1, columns={"id": dt.column(), "x": dt.between(0, 5)}
        ),
        "visits": dt.Table(f"{path}#visits", unit=whose, max_rows=1, max_groups=1, columns={"id": dt.column()}),
    }
    return dt.Catalog(tables, dt.Budget(10**6))


def found(folder: Path, question: str) -> list[str]:
    one, other = (observe(open_observed(catalog(folder / f"{more}.duckdb", more)), question) for more in (False, True))
    assert one.plan is not None, one.status
    return complaints(one, other)


@pytest.mark.parametrize("question", BY_ROW + BY_PERSON)
def test_one_row_stays_one_and_one_person_one(question: str, tmp_path: Path) -> None:
    assert found(tmp_path, question) == []


def test_that_check_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_stored", lambda name, source: identifier(name))
    caught = []
    for number, question in enumerate(BY_ROW + BY_PERSON):
        folder = tmp_path / str(number)
        folder.mkdir()
        caught += [question] if found(folder, question) else []
    assert set(BY_PERSON) < set(caught)
    assert BY_ROW[0] in caught
