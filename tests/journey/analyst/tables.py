"""Makes four data sets that were not shaped to fit: a shop, a survey, an event log, and an office's export.

They have what real ones have: heavy users, skewed amounts, missing cells, values outside declared bounds, people without rows.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd

_FIRST = np.datetime64("2024-01-01")


def shop(rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Returns customers, their orders over two years (a few customers have hundreds), and the lines of orders."""
    people = 3000
    customers = pd.DataFrame(
        {
            "customer": np.arange(people) + 10_000,
            "country": rng.choice(["AT", "DE", "FR", "IT", "UK"], people, p=[0.1, 0.2, 0.15, 0.05, 0.5]),
            "segment": rng.choice(["home", "office", "trade"], people, p=[0.6, 0.3, 0.1]),
            "joined": _FIRST - rng.integers(0, 1500, people).astype("timedelta64[D]"),
        }
    )
    each = np.minimum(rng.geometric(0.25, people) - 1 + (rng.pareto(1.2, people) * 1.5).astype(int), 400)
    owner = np.repeat(customers["customer"].to_numpy(), each)
    n = len(owner)
    day = np.sort(rng.integers(0, 731, n))
    orders = pd.DataFrame(
        {
            "order_id": np.arange(n) + 1,
            "customer": owner,
            "placed": (_FIRST + rng.permutation(day).astype("timedelta64[D]")).astype("datetime64[s]")
            + rng.choice(24, n, p=_hours()).astype("timedelta64[h]"),
            "amount": np.round(rng.lognormal(3.6, 1.0, n), 2),
            "status": rng.choice(["paid", "returned", "cancelled"], n, p=[0.85, 0.1, 0.05]),
        }
    )
    lines_each = rng.geometric(0.4, n)
    m = int(lines_each.sum())
    lines = pd.DataFrame(
        {
            "line": np.arange(m),
            "order_id": np.repeat(orders["order_id"].to_numpy(), lines_each),
            "product": rng.choice(["book", "pen", "lamp", "chair", "desk"], m, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "quantity": np.minimum(rng.geometric(0.3, m), 60),
        }
    )
    return {"customers": customers, "orders": orders, "lines": lines}


def _hours() -> np.ndarray:
    weights = np.array([1, 1, 1, 1, 1, 1, 2, 4, 8, 10, 10, 9, 9, 10, 10, 9, 8, 7, 7, 8, 8, 6, 4, 2], float)
    return weights / weights.sum()


def survey(rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Returns a survey: one row for each person, skewed incomes, missing answers, some outside the declared bounds."""
    n = 8000
    age = np.clip(rng.normal(46, 19, n), 16, 101).astype(int)
    income = np.where(rng.random(n) < 0.12, np.nan, np.round(rng.lognormal(10.2, 0.7, n)))
    income[rng.choice(n, 20, replace=False)] = 2_500_000
    return {
        "people": pd.DataFrame(
            {
                "person": np.arange(n),
                "age": age,
                "sex": rng.choice(["f", "m", "x"], n, p=[0.51, 0.48, 0.01]),
                "region": rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1]),
                "income": income,
                "household": np.minimum(rng.geometric(0.45, n), 9),
                "satisfied": np.where(rng.random(n) < 0.05, None, rng.integers(1, 11, n)),
                "employed": (age < 66) & (rng.random(n) < 0.78),
                "born": pd.to_datetime([datetime.date(2024 - int(a), 1 + int(a) % 12, 1 + int(a) % 28) for a in age]),
            }
        )
    }


def events(rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Returns an event log of one quarter: robots with thousands of events, and failures."""
    users = 1200
    each = (rng.pareto(1.0, users) * 6).astype(int) + 1
    each = np.minimum(each, 5000)
    owner = np.repeat(np.arange(users), each)
    n = len(owner)
    at = np.datetime64("2025-04-01T00:00:00") + rng.integers(0, 91 * 86400, n).astype("timedelta64[s]")
    return {
        "events": pd.DataFrame(
            {
                "user": np.char.add("u", owner.astype(str)),
                "happened": at,
                "kind": rng.choice(["view", "search", "buy", "error"], n, p=[0.7, 0.2, 0.07, 0.03]),
                "milliseconds": np.round(rng.lognormal(4.5, 1.1, n), 1),
                "mobile": rng.random(n) < 0.6,
            }
        )
    }


def office(rng: np.random.Generator, folder: Path) -> tuple[Path, pd.DataFrame]:
    """Writes an export as an office does, and returns it with the same rows, clean."""
    n = 4000
    born = [datetime.date(1930, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 27_000, n)]
    left = [None if rng.random() < 0.5 else b + datetime.timedelta(days=int(rng.integers(8000, 22_000))) for b in born]
    clean = pd.DataFrame(
        {
            "Personen-ID": np.arange(n) % 2900,  # some have two mandates
            "Partei / Klub": rng.choice(["SPÖ", "ÖVP", "FPÖ", "Grüne", "NEOS"], n, p=[0.35, 0.35, 0.15, 0.1, 0.05]),
            "Geburtsdatum": pd.to_datetime(born),
            "Ausgeschieden": pd.to_datetime(pd.Series(left)),
            "Bezug": np.round(rng.normal(6500, 1800, n).clip(900), 2),
            "Anzahl Ämter": rng.poisson(1.4, n),
        }
    )
    path = folder / "export.csv"
    with path.open("w", encoding="cp1252", newline="") as file:
        file.write("Auszug aus dem Register;;;;;\r\n")
        file.write(";".join(clean.columns) + "\r\n")
        for row in clean.itertuples(index=False):
            cells = [str(row[0]), f" {row[1]} ", _german(row[2]), _german(row[3]), _money(row[4]), str(row[5])]
            file.write(";".join(cells) + "\r\n")
    return path, clean


def _german(value: object) -> str:
    return "k. A." if value is pd.NaT or pd.isna(value) else value.strftime("%d.%m.%Y")  # type: ignore[attr-defined]


def _money(value: float) -> str:
    return f"{value:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
