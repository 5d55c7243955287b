"""The same catalog, questions, ledger and receipts on every engine: only `source` changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dither as dt
from dither import demo
from dither.ledger import opening
from dither.ledger.records import Reserved
from engines.places import Place, PostgresPlace
from journey.hospital import BY_WARD, COUNT, run
from ledger.postgres_server import Server

TABLES = {
    "patients": {"patient": "int", "ward": "text", "weight": "real", "diabetic": "bool", "income": "real"},
    "visits": {"patient": "int", "nights": "int"},
}
QUESTIONS = [
    BY_WARD,
    COUNT,
    demo.NIGHTS,
    "SELECT diabetic, COUNT(*) AS n, SUM(weight) AS kg FROM patients WHERE income > 20000 GROUP BY diabetic",
    "SELECT COUNT(DISTINCT patient) AS n, AVG(nights) AS nights FROM visits WHERE nights BETWEEN 2 AND 30",
]


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("hospital")
    demo.hospital(folder)
    return {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in TABLES}


def written(place: Place, folder: Path, rows: dict[str, list[dict[str, Any]]]) -> Path:
    """Writes the demo's hospital into a folder, with its tables in that place."""
    folder.mkdir(exist_ok=True)
    demo.hospital(folder)
    text = (folder / "catalog.toml").read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 100")
    if place.name != "duckdb":
        for name, kinds in TABLES.items():
            (folder / f"{name}.parquet").unlink()
            text = text.replace(f'"{name}.parquet"', f'"{place.source(rows[name], kinds)}"')
    (folder / "catalog.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def hospital(place: Place, rows: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(place, tmp_path, rows)


def test_the_whole_way_in_a_shell(hospital: Path) -> None:
    for words in (
        ["init"],
        ["check"],
        ["check", "--data"],
        ["quote", BY_WARD, "-e", "0.5"],
        ["suggest", "patients.income", "-e", "0.5"],
        ["ask", BY_WARD, "-e", "0.5", "--receipt", "receipt.json"],
        ["ask", BY_WARD, "-e", "0.5"],
        ["ask", demo.NIGHTS, "-e", "0.5", "--format", "json"],
        ["budget"],
        ["history"],
        ["verify", "--receipt", "receipt.json"],
    ):
        done = run(*words)
        assert done.exit_code == 0, (words, done.stderr)
    spent = json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"]
    assert spent == "3/2"


def test_the_whole_way_in_python(hospital: Path) -> None:
    with dt.open(hospital / "catalog.toml", hospital / "ledger", make=True) as survey:
        assert not survey.quote(BY_WARD, epsilon="0.5").refusal
        answer = survey.ask(BY_WARD, epsilon=10)
        assert survey.ask(BY_WARD, epsilon=10).rows == answer.rows
        assert survey.budget.spent.epsilon == 10
        assert [row[0] for row in answer.rows] == ["births", "bones", "children", "hearts"]
        assert abs(sum(row[1] for row in answer.rows) - demo.PATIENTS) < 500
        assert survey.suggest("patients.income", epsilon="0.5")
        assert len(survey.ask([BY_WARD, demo.NIGHTS], epsilon=1)) == 2


def plans(folder: Path) -> list[tuple[str, str, Any]]:
    """Asks everything, and returns the questions, identities and prices in the ledger."""
    with dt.open(folder / "catalog.toml", folder / "ledger", make=True) as survey:
        for question in QUESTIONS:
            survey.ask(question, epsilon=1)
    with closing(opening.view(str(folder / "ledger"))) as ledger:
        records = [entry.record for entry in ledger.history() if isinstance(entry.record, Reserved)]
    return [(record.question, record.plan, record.loss) for record in records]


def test_the_same_question_has_the_same_identity_on_every_engine(
    postgres: Server, rows: dict[str, Any], tmp_path: Path
) -> None:
    """Law 10: what is asked and what it costs does not depend on where the data is."""
    with closing(PostgresPlace(postgres)) as place:
        demo.hospital(tmp_path)
        files = tmp_path / "files"
        files.mkdir()
        demo.hospital(files)
        catalog = (files / "catalog.toml").read_text(encoding="utf-8")
        (files / "catalog.toml").write_text(catalog.replace("epsilon = 1.0", "epsilon = 100"), encoding="utf-8")
        assert plans(files) == plans(written(place, tmp_path / "server", rows))


def test_a_catalog_is_drafted_from_an_address(
    postgres: Server, rows: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(PostgresPlace(postgres)) as place:
        source = place.source(rows["patients"][:500], TABLES["patients"])
        done = run("init", source, "--unit", "patient")
        assert done.exit_code == 0, done.stderr
        text = (tmp_path / "catalog.toml").read_text(encoding="utf-8")
        assert source in text
        table = re.search(r"\[tables\.(\w+)\]", text)
        assert table is not None
        assert run("check", "--data").exit_code == 0
        done = run("ask", f"SELECT COUNT(*) AS n FROM {table[1]}", "-e", "0.1")
        assert done.exit_code == 0, done.stderr


# --- tables from elsewhere ----------------------------------------------------------------------------------------

PUBLIC = """
[tables.wards]
source = "wards.csv"
public = true
[tables.wards.columns]
ward = {}
floor = { kind = "int" }
"""
PRIVATE = """
[tables.staff]
source = "wards.csv"
unit = "ward"
max_rows = 1
"""


def test_a_small_public_file_stands_beside_tables_of_a_server(hospital: Path) -> None:
    (hospital / "wards.csv").write_text("ward,floor\nbirths,1\nbones,2\nchildren,\nhearts,2\n", encoding="utf-8")
    with (hospital / "catalog.toml").open("a", encoding="utf-8") as catalog:
        catalog.write(PUBLIC)
    question = "SELECT COUNT(*) AS n FROM patients p JOIN wards w ON p.ward = w.ward WHERE w.floor = 2"
    with dt.open(hospital / "catalog.toml", hospital / "ledger", make=True) as survey:
        ((n,),) = survey.ask(question, epsilon=50).rows
        assert abs(n - 13_000) < 500


def test_a_private_file_does_not(hospital: Path, place: Place) -> None:
    (hospital / "wards.csv").write_text("ward,floor\nbirths,1\n", encoding="utf-8")
    with (hospital / "catalog.toml").open("a", encoding="utf-8") as catalog:
        catalog.write(PRIVATE)
    if place.name == "duckdb":
        dt.open(hospital / "catalog.toml", hospital / "ledger", make=True).close()
        return
    with pytest.raises(dt.CatalogError, match="staff") as told:
        dt.open(hospital / "catalog.toml", hospital / "ledger", make=True)
    assert "Fix:" in str(told.value)


# --- meaning ------------------------------------------------------------------------------------------------------

# The server's own functions: some 3,000 rows that nobody shaped for these tests.
FUNCTIONS = """
CREATE TABLE functions AS
SELECT oid::bigint AS id, proname AS name, pronargs AS arguments, procost AS cost, prorows AS returned,
    provolatile::text AS volatility, proisstrict AS strict, prorettype::regtype::text::varchar(60) AS result,
    1e3::numeric / (pronargs + 1) AS share, date '1996-07-08' + pronargs * 400 AS since
FROM pg_proc
"""
FACTS = {
    "name": dt.column(),
    "arguments": dt.between(0, 100),
    "cost": dt.between(0, 1000),
    "returned": dt.between(0, 1000),
    "volatility": dt.values("i", "s", "v"),
    "strict": dt.values(True, False),
    "result": dt.column(),
    "share": dt.between(0, 1000, step="0.001"),
    "since": dt.column(),
}
MEANING = [
    "SELECT COUNT(*) AS n FROM functions",
    "SELECT volatility, COUNT(*) AS n, AVG(arguments) AS a, SUM(cost) AS c FROM functions GROUP BY volatility ORDER BY 1",
    "SELECT strict, volatility, COUNT(*) AS n FROM functions GROUP BY strict, volatility ORDER BY strict, volatility",
    "SELECT COUNT(*) AS n FROM functions WHERE name LIKE 'array%' OR result IN ('text', 'integer')",
    "SELECT COUNT(DISTINCT result) AS n, COUNT(DISTINCT arguments) AS a FROM functions WHERE NOT strict",
    "SELECT SUM(share) AS s FROM functions WHERE returned > 0 AND arguments BETWEEN 1 AND 4",
    "SELECT COUNT(*) AS n FROM functions WHERE LENGTH(name) > 12 AND SUBSTRING(name, 1, 1) = UPPER(SUBSTRING(name, 1, 1))",
    "SELECT SUM(CASE WHEN EXTRACT(YEAR FROM since) > 1998 THEN 1 ELSE 0 END) AS n FROM functions",
    "SELECT AVG(LENGTH(name) * arguments) FILTER (WHERE cost = 1) AS m FROM functions WHERE LENGTH(name) * arguments <= 200",
]


@pytest.fixture(scope="module")
def server(postgres: Server) -> Iterator[PostgresPlace]:
    with closing(PostgresPlace(postgres)) as place:
        place.run(FUNCTIONS)
        yield place


@pytest.mark.parametrize("question", MEANING)
def test_answers_with_hardly_any_noise_are_those_of_plain_sql(question: str, server: PostgresPlace) -> None:
    table = dt.Table(server.address("functions"), unit="id", max_rows=1, columns=FACTS)
    with dt.open(dt.Catalog({"functions": table}, dt.Budget(epsilon=10**9, left_out=False)), ledger=":memory:") as survey:
        asked = question.replace("LENGTH(name) * arguments)", "CLAMP(LENGTH(name) * arguments, 0, 200))")
        found = survey.ask(asked, epsilon=1000).rows
    expected = server.link.execute(question.encode()).fetchall()
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for one, two in zip(ours, theirs, strict=True):
            assert one == two or abs(float(one) - float(two)) < 0.01 * max(1, abs(float(two))), (ours, theirs)
