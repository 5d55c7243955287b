"""Lists of public values (drop-down lists): free, from the catalog and public tables alone, without a private row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.curator import STEPS, Curator
from dither.engines.base import Engine
from dither.query.work import Group, Work
from journey.hospital import built, run

ROWS = np.arange(900)
FRAMES = {
    "people": pd.DataFrame(
        {
            "id": ROWS,
            "age": ROWS % 90,
            "ward": np.array(["a", "b"])[ROWS % 2],
            "town": np.array(["Arl", "Bex"])[ROWS % 2],
            "born": pd.Timestamp("2025-01-01") + pd.to_timedelta(ROWS % 300, unit="D"),
        }
    ),
    "visits": pd.DataFrame({"id": ROWS, "kind": np.array(["x", "y"])[ROWS % 2], "paid": ROWS % 2 == 0}),
    "places": pd.DataFrame({"name": ["Arl", "Bex", "Cor"], "coast": [True, False, True], "land": ["n", "n", None]}),
}
KEYS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT DISTINCT ward FROM people", [("a",), ("b",), ("c",)]),
    ("SELECT ward FROM people GROUP BY ward", [("a",), ("b",), ("c",)]),
    ("SELECT ward FROM people GROUP BY 1 ORDER BY ward DESC LIMIT 2", [("c",), ("b",)]),
    ("SELECT DISTINCT ward FROM people WHERE ward <> 'c'", [("a",), ("b",)]),
    ("SELECT DISTINCT ward FROM people WHERE ward IN ('c', 'd') AND 1 = 1", [("c",)]),
    ("SELECT DISTINCT UPPER(ward) AS w FROM people ORDER BY w DESC", [("C",), ("B",), ("A",)]),
    ("SELECT DISTINCT ward || '!' AS w FROM people WHERE ward > 'a'", [("b!",), ("c!",)]),
    ("SELECT ward FROM people GROUP BY ward HAVING ward < 'c'", [("a",), ("b",)]),
    ("SELECT DISTINCT DATE_TRUNC('year', born) AS y FROM people", [(date(2025, 1, 1),)]),
    ("SELECT DISTINCT YEAR(born) AS y, ward FROM people WHERE ward = 'a'", [(2025, "a")]),
    ("SELECT DISTINCT age FROM people WHERE age > 118", [(119,), (120,)]),
    ("SELECT DISTINCT BUCKET(age, 50) AS b FROM people", [(0,), (50,), (100,)]),
    ("SELECT DISTINCT kind, paid FROM visits WHERE kind = 'z'", [("z", False), ("z", True)]),
    ("SELECT DISTINCT p.ward, v.kind FROM visits v JOIN people p USING (id) WHERE ward = 'a'", [("a", k) for k in "xyz"]),
    ("WITH everyone AS (SELECT * FROM people) SELECT DISTINCT ward FROM everyone", [("a",), ("b",), ("c",)]),
    ("SELECT DISTINCT p.coast FROM people JOIN places p ON people.town = p.name", [(False,), (True,)]),
]
PUBLIC = [
    "SELECT DISTINCT coast FROM places ORDER BY coast",
    "SELECT DISTINCT coast, land FROM places ORDER BY coast, land NULLS LAST",
    "SELECT DISTINCT name FROM places WHERE coast ORDER BY name DESC",
    "SELECT name FROM places WHERE land IS NULL GROUP BY name",
    "SELECT DISTINCT LENGTH(name) AS n FROM places",
    "SELECT DISTINCT a.coast FROM places a JOIN places b ON a.name = b.name WHERE b.land = 'n' ORDER BY a.coast",
    "SELECT DISTINCT name FROM places WHERE name = 'nowhere'",
]
REFUSED = [
    ("SELECT DISTINCT town FROM people", "The values of town are not declared"),
    ("SELECT town FROM people GROUP BY town", "The values of town are not declared"),
    ("SELECT DISTINCT ward FROM people WHERE age >= 65", "Which values of ward meet this condition"),
    ("SELECT DISTINCT ward FROM people WHERE ward = town", "Which values of ward meet this condition"),
    ("SELECT DISTINCT ward FROM people WHERE ward = 'a' OR age > 3", "Which values of ward meet this condition"),
    ("SELECT DISTINCT ward FROM people WHERE id IN (SELECT id FROM visits)", "Which values of ward meet this condition"),
    ("SELECT DISTINCT ward FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id)", "Which values of ward"),
    ("SELECT DISTINCT ward FROM (SELECT ward FROM people WHERE age > 3) t", "Which values of ward meet this condition"),
    ("SELECT DISTINCT ward FROM (SELECT id, ward, COUNT(*) AS k FROM people GROUP BY id, ward) t", "Which values of ward"),
    ("SELECT DISTINCT v.kind FROM visits v JOIN people p USING (id) WHERE p.age > 3", "Which values of kind"),
    ("SELECT DISTINCT p.coast, p.land FROM people JOIN places p ON people.town = p.name", "Not every combination"),
    ("SELECT DISTINCT born, YEAR(born) AS y FROM people", "Not every combination"),
]


@contextmanager
def opened(frames: dict[str, pd.DataFrame] | None = None, epsilon: int = 1000) -> Iterator[Curator]:
    data = FRAMES if frames is None else frames
    unit = {"column": "id", "references": "people.id"}
    tables = {
        "people": dt.Table(
            data["people"],
            unit="id",
            max_rows=1,
            columns={
                "age": dt.between(0, 120),
                "ward": dt.values("a", "b", "c"),
                "town": dt.column(),
                "born": dt.between(date(2025, 1, 1), date(2025, 12, 31)),
            },
        ),
        "visits": dt.Table(
            data["visits"],
            unit=unit,
            max_rows=2,
            max_groups=2,
            columns={"kind": dt.values("x", "y", "z"), "paid": dt.values(True, False)},
        ),
        "places": dt.Table(data["places"], public=True, key="name"),
    }
    catalog = dt.Catalog(tables=tables, budget=dt.Budget(epsilon=epsilon, delta="1e-6"))
    with dt.open(catalog, ledger=":memory:") as curator:
        yield curator


@pytest.fixture(scope="module")
def survey() -> Iterator[Curator]:
    with opened() as curator:
        yield curator


@pytest.mark.parametrize(("question", "keys"), KEYS)
def test_a_list_has_the_declared_values(survey: Curator, question: str, keys: list[tuple[Any, ...]]) -> None:
    assert list(survey.ask(question)) == keys


@pytest.mark.parametrize("question", [question for question, _ in KEYS])
def test_a_list_has_the_groups_of_the_private_form(survey: Curator, question: str) -> None:
    private = survey.steps.read(question, survey.catalog).query.instead
    assert "COUNT(*) AS n" in private
    assert [row[:-1] for row in survey.ask(private, epsilon=1)] == list(survey.ask(question))


@pytest.mark.parametrize("question", PUBLIC)
def test_a_list_of_a_public_table_is_what_duckdb_says(survey: Curator, question: str) -> None:
    with duckdb.connect() as database:
        database.register("places", FRAMES["places"])
        assert list(survey.ask(question)) == database.sql(question).fetchall()


@pytest.mark.parametrize(("question", "what"), REFUSED)
def test_what_only_rows_decide_is_refused_with_the_private_form(survey: Curator, question: str, what: str) -> None:
    with pytest.raises(dt.QueryError) as refused:
        survey.ask(question)
    assert refused.value.what.startswith(what)
    form = re.search(r"at a price: (SELECT .*?)(, or declare|\.$)", str(refused.value.fix))
    assert form is not None
    survey.quote(form[1], epsilon=1)


def spied(survey: Curator, question: str) -> list[Work]:
    """Returns the works that the engine ran for a question."""
    ran: list[Work] = []

    def spy(engine: Engine, work: Work) -> Sequence[Group]:
        ran.append(work)
        return STEPS.run(engine, work)

    kept, survey.steps = survey.steps, replace(STEPS, run=spy)
    try:
        survey.ask(question, epsilon=1)
    finally:
        survey.steps = kept
    return ran


@pytest.mark.parametrize("question", [question for question, _ in KEYS])
def test_a_list_reads_no_private_row_and_writes_no_entry(question: str) -> None:
    with opened() as survey:
        assert spied(survey, question) == []
        assert survey.ledger.head().number == 0
        assert survey.budget.spent.epsilon == 0


def test_that_check_can_fail() -> None:
    with opened() as survey:
        assert len(spied(survey, "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward")) >= 1
        assert survey.ledger.head().number > 0


def test_a_list_is_the_same_whoever_is_in_the_data() -> None:
    fewer = {**FRAMES, "people": FRAMES["people"].iloc[:1], "visits": FRAMES["visits"].iloc[:0]}
    with opened() as all_, opened(fewer) as few:
        for question, _ in KEYS:
            assert str(all_.ask(question)) == str(few.ask(question))


def test_a_list_is_given_when_nothing_is_left() -> None:
    with opened(epsilon=1) as survey:
        survey.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
        with pytest.raises(dt.BudgetError):
            survey.ask("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        assert survey.ask("SELECT DISTINCT ward FROM people")["ward"] == ["a", "b", "c"]
        assert survey.ask("SELECT DISTINCT coast FROM places")["coast"] == [False, True]


def test_a_list_says_that_it_is_free(survey: Curator) -> None:
    answer = survey.ask("SELECT DISTINCT ward FROM people")
    assert str(answer).splitlines()[-1] == "free: declared values, whether or not anybody has them; no private row was read"
    assert "free" in str(survey.quote("SELECT DISTINCT ward FROM people"))
    assert json.loads(answer.to_json())["receipt"] is None
    assert json.loads(answer.to_json())["charged"] == {"epsilon": "0", "delta": "0"}
    assert answer.to_pandas()["ward"].tolist() == ["a", "b", "c"]
    with pytest.raises(dt.DitherError, match="has no receipt"):
        _ = answer.receipt


def test_rows_are_still_refused(survey: Curator) -> None:
    refuse: Callable[[str], Any] = lambda question: pytest.raises(dt.QueryError, match=question)  # noqa: E731
    with refuse("the unit that is protected"):
        survey.ask("SELECT DISTINCT id FROM people")
    with refuse("rows are never shown"):
        survey.ask("SELECT DISTINCT * FROM people")
    with refuse("rows are never shown"):
        survey.ask("SELECT ward FROM people")
    with refuse("looking at private ones"):
        survey.ask("SELECT DISTINCT name FROM places p WHERE EXISTS (SELECT 1 FROM people t WHERE t.town = p.name)")


def test_a_list_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    done = run("ask", "SELECT DISTINCT ward FROM patients", "--format", "csv")
    assert (done.exit_code, done.stdout) == (0, "ward\nbirths\nbones\nchildren\nhearts\n")
    assert run("quote", "SELECT DISTINCT ward FROM patients").exit_code == 0
    assert "DISTINCT" not in run("history").stdout
