"""`dither audit catalog.toml --synthetic`: the analyst's questions on generated neighbours, through the real path."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dither as dt
from dither.audit.ourselves.observe import looser, with_changed_work
from dither.audit.synthetic import audit_catalog, setup_of
from dither.audit.verdict import NOT_FOUND, VIOLATES, Verdict
from dither.catalog import file
from dither.cli import app
from dither.curator import STEPS, Steps

CATALOG = """
[budget]
epsilon = 1
delta = 1e-6
[tables.people]
source = "not there.parquet"
unit = "person_id"
max_rows = 1
[tables.people.columns]
age = { between = [0, 120], kind = "int" }
region = { values = ["north", "south"] }
[tables.visits]
source = "not there either.parquet"
unit = { column = "person_id", references = "people.person_id" }
max_rows = 3
max_groups = 2
[tables.visits.columns]
cost = { between = [0, 500], step = 0.01 }
"""
QUESTIONS = "SELECT SUM(cost) AS s FROM visits; SELECT * FROM people;"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    (tmp_path / "c.toml").write_text(CATALOG, encoding="utf-8")
    (tmp_path / "q.sql").write_text(QUESTIONS, encoding="utf-8")
    return tmp_path / "c.toml"


def audited(catalog: Path, steps: Steps = STEPS) -> list[Verdict]:
    questions = str(catalog.with_name("q.sql"))
    return list(audit_catalog(str(catalog), questions, (1, None), 0.1, 3, lambda share: None, steps))


def test_generated_units_fit_the_declaration(catalog: Path) -> None:
    setup = setup_of(file.read(catalog))
    rng, people = random.Random(1), [setup.person(n, random.Random(n)) for n in range(1, 30)]
    assert all({row["person_id"] for row in person["visits"]} <= {n} for n, person in enumerate(people, 1))
    assert all(len(person["people"]) == 1 for person in people), "other tables refer to it, so it is unique"
    assert max(len(person["visits"]) for person in people) > 3, "heavy units exceed what counts"
    assert setup.person(1, rng).keys() == {"people", "visits"}


@pytest.mark.slow
def test_a_catalog_is_asked_on_generated_tables(catalog: Path) -> None:
    answered, refused = audited(catalog)
    assert answered.outcome == NOT_FOUND, str(answered)
    assert not answered.open
    assert "times what was priced" in str(answered)
    assert answered.epsilon == pytest.approx(1, abs=0.05), "a heavy unit reaches its price"
    assert "refused" in refused.open


@pytest.mark.slow
def test_that_check_can_fail(catalog: Path) -> None:
    """An engine that lets three times the rows in is found."""
    first = audited(catalog, with_changed_work(looser(rows=3)))[0]
    assert first.outcome == VIOLATES
    assert "violates its price" in str(first)


@pytest.mark.slow
def test_the_command_line_audits_a_catalog(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(catalog.parent)
    run = CliRunner().invoke(app, ["audit", "c.toml", "--synthetic", "--questions", "q.sql", "--time-limit", "0.1"])
    assert run.exit_code == 0, run.output
    assert "SUM(cost)" in run.stdout
    assert CliRunner().invoke(app, ["audit", "c.toml"]).exit_code == 2


def test_a_catalog_without_private_tables_is_refused(tmp_path: Path) -> None:
    public = dt.Catalog({"regions": dt.Table({"name": ["a"]}, public=True)}, dt.Budget(1))
    with pytest.raises(dt.DitherError, match="no private table"):
        setup_of(public)
