"""A survey in files: a catalog, its data, its ledger; and an engine that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dither as dt
from dither.curator import Curator
from dither.ledger.ledger import Ledger
from dither.query.work import Group, Work

COUNT = "SELECT COUNT(*) AS n FROM people"
MEANS = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
CATALOG = """
snapshot = "2026-11"
[budget]
epsilon = {epsilon}
{more}
[tables.people]
source = "people.parquet"
unit = "{unit}"
max_rows = 1
[tables.people.columns]
age = {{ between = [0, {high}] }}
region = {{ values = ["north", "south", "east", "west"] }}
town = {{}}
"""


def people(size: int = 400) -> pd.DataFrame:
    dice = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": np.arange(size),
            "household": np.arange(size) // 2,
            "age": dice.integers(0, 100, size),
            "region": dice.choice(["north", "south", "east"], size),
            "town": dice.choice([f"t{i}" for i in range(3)], size),
        }
    )


def write(
    folder: Path, *, epsilon: Any = 1, more: str = "", unit: str = "person", high: int = 120, snapshot: str = "2026-11"
) -> Path:
    text = CATALOG.format(epsilon=epsilon, more=more, unit=unit, high=high).replace("2026-11", snapshot)
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    return folder / "survey.toml"


def opened(folder: Path, **options: Any) -> Curator:
    return dt.open(folder / "survey.toml", folder / "survey.ledger", **{"make": True} | options)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind.split("/")[0] for entry in ledger.history()]


class Broken:
    """An engine that fails when it is called."""

    name = "broken"

    def __init__(self, error: BaseException) -> None:
        self.error, self.calls = error, 0

    def schema(self, table: str) -> dict[str, str]:
        raise self.error

    def prepare(self, work: Work) -> None:
        """Nothing is wrong with the question itself."""

    def run(self, work: Work, secret: bytes) -> list[Group]:
        self.calls += 1
        raise self.error


def second_time(first: Any, then: Any) -> Callable[[], bool]:
    """Returns or raises one thing at the first call, and another after it."""
    calls: Iterator[Any] = iter([first])

    def answer() -> bool:
        found = next(calls, then)
        if isinstance(found, BaseException):
            raise found
        return bool(found)

    return answer
