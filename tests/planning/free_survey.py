"""A survey for free answers: people with one row each, visits with several, NULLs, empty groups and heavy users."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any, NoReturn

import duckdb
import numpy as np
import pandas as pd

import dither as dt
from dither.curator import Curator

PEOPLE, VISITS = 1200, 900


def frames(seed: int = 1) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(0, 120, PEOPLE), dtype="Int64")
    age[rng.integers(0, PEOPLE, 60)] = pd.NA
    people = {
        "id": np.arange(PEOPLE),
        "region": rng.choice(["north", "south", "east"], PEOPLE),  # nobody is in the west
        "sex": rng.choice(["F", "M"], PEOPLE),
        "age": age,
        "income": rng.integers(-50, 200, PEOPLE).astype(float),
        "born": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 730, PEOPLE), unit="D"),
    }
    heavy = np.where(rng.random(VISITS) < 0.1, 0, rng.integers(0, 200, VISITS))
    visits = {
        "person": heavy,
        "ward": rng.choice(["a", "b", "c", "d"], VISITS),
        "cost": rng.integers(0, 100, VISITS).astype(float),
    }
    found = {"people": pd.DataFrame(people), "visits": pd.DataFrame(visits)}
    found["people"]["born"] = found["people"]["born"].dt.date
    return found


def catalog(
    tables: dict[str, pd.DataFrame], epsilon: Any = 10**6, *, snapshot: str = "", max_rows: int = 5, **more: Any
) -> dt.Catalog:
    regions, wards = dt.values("north", "south", "east", "west"), dt.values("a", "b", "c", "d")
    people = dt.Table(
        tables["people"],
        unit="id",
        key="id",
        columns={
            "region": regions,
            "sex": dt.values("F", "M"),
            "age": dt.between(0, 120),
            "income": dt.between(-50, 200),
            "born": dt.between(datetime.date(2020, 1, 1), datetime.date(2021, 12, 31)),
        },
    )
    visits = dt.Table(
        tables["visits"], unit="person", max_rows=max_rows, max_groups=2, columns={"ward": wards, "cost": dt.between(0, 100)}
    )
    return dt.Catalog({"people": people, "visits": visits}, dt.Budget(epsilon=epsilon, **more), snapshot=snapshot)


def survey(epsilon: Any = 10**6, ledger: str = ":memory:", seed: int = 1, analyst: str | None = None, **more: Any) -> Curator:
    return dt.open(catalog(frames(seed), epsilon, **more), ledger=ledger, make=ledger != ":memory:", analyst=analyst)


def truth(text: str, seed: int = 1) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, frame in frames(seed).items():
            connection.register(name, frame)
        return [tuple(map(_dated, row)) for row in connection.execute(text).fetchall()]


def _dated(value: Any) -> Any:
    """DuckDB truncates a date to a timestamp; here it stays a date."""
    return value.date() if isinstance(value, datetime.datetime) else value


def _no_engine(*_: object) -> NoReturn:
    raise AssertionError("an engine was called")


def without_engine(curator: Curator) -> Curator:
    """Makes every call of the engine, and every draw of noise, fail."""
    draw = replace(curator.steps.draw, keys=_no_engine, noise=_no_engine)
    curator.steps = replace(curator.steps, prepare=_no_engine, run=_no_engine, release=_no_engine, draw=draw)
    return curator
