"""Every question of the golden files is answered by the real engine; and the two-minute way from a file to an answer."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dither.catalog.values import Budget, Catalog, Table
from dither.curator import open as open_curator
from sql.survey import CATALOG

GOLDEN = Path(__file__).parent.parent / "golden"


def frames() -> dict[str, pd.DataFrame]:
    dice = np.random.default_rng(0)
    n, m = 200, 900
    day = datetime.date(1990, 1, 1)
    return {
        "people": pd.DataFrame(
            {
                "person_id": range(n),
                "age": dice.integers(0, 110, n),
                "income": dice.normal(50000, 20000, n),
                "score": dice.normal(50, 30, n),
                "region": dice.choice(["north", "south", "east", "west"], n),
                "city": dice.choice(list("abc"), n),
                "active": dice.random(n) < 0.5,
                "born": [day + datetime.timedelta(int(d)) for d in dice.integers(0, 9000, n)],
                "Mixed": dice.integers(0, 9, n),
            }
        ),
        "visits": pd.DataFrame(
            {
                "visit_id": range(m),
                "person_id": dice.integers(0, n, m),
                "cost": dice.integers(0, 1000, m),
                "ward": dice.choice(["a", "b"], m),
                "day": [day] * m,
                "region": dice.choice(["x", "y"], m),
            }
        ),
        "prescriptions": pd.DataFrame({"visit_id": dice.integers(0, m, m), "drug": "p", "dose": dice.integers(0, 100, m)}),
        "records": pd.DataFrame({"x": dice.integers(0, 10, m), "g": dice.choice(["p", "q"], m), "region": "a"}),
        "regions": pd.DataFrame({"name": ["north", "south"], "area": [1, 2], "coast": [True, False]}),
        "towns": pd.DataFrame({"town": ["a", "b"], "region": ["north", "south"]}),
    }


def filled(frames: dict[str, Any]) -> Catalog:
    """The golden files' catalog, with rows in its tables."""
    names = ("unit", "by_row", "public", "max_rows", "max_groups", "rows", "key", "columns")
    tables = {
        name: Table(frames[name], **{part: getattr(table, part) for part in names}) for name, table in CATALOG.tables.items()
    }
    return Catalog(tables, Budget(10**6, "0.5"))


def questions() -> list[str]:
    lines = [line for name in ("plans.txt", "sql_to_nodes.txt") for line in (GOLDEN / name).read_text().splitlines()]
    return list(dict.fromkeys(line.split("> ", 1)[1] for line in lines if "> SELECT" in line or "> WITH" in line))


@pytest.mark.slow
def test_every_golden_question_is_answered() -> None:
    survey = open_curator(filled(frames()), ledger=":memory:")
    asked = questions()
    assert len(asked) > 60
    for text in asked:
        answer = survey.ask(text, epsilon=2, delta="1e-6")
        assert str(answer)
        assert len(answer.rows) == len(answer.cells())


def test_from_a_file_to_an_answer(tmp_path: Path) -> None:
    frames()["people"].to_parquet(tmp_path / "people.parquet")
    (tmp_path / "survey.toml").write_text(
        """
[budget]
epsilon = 1.0
[tables.people]
source = "people.parquet"
unit = "person_id"
max_rows = 1
[tables.people.columns]
age = { between = [0, 120] }
region = { values = ["north", "south", "east", "west"] }
""",
        encoding="utf-8",
    )
    survey = open_curator(tmp_path / "survey.toml", ledger=":memory:")
    answer = survey.ask("SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region", epsilon="0.1")
    assert answer["region"] == ["east", "north", "south", "west"]
    assert str(survey.budget) == "total ε = 1; spent ε = 0.1; left ε = 0.9"
