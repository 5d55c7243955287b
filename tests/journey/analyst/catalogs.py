"""The catalogs of the four data sets, as a curator would declare them: keys, bounds and values; no bound on rows or groups."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

import dither as dt

BUDGET = dt.Budget(epsilon=5000, delta="1e-3")
_YEARS = dt.between(datetime.datetime(2024, 1, 1), datetime.datetime(2025, 12, 31, 23, 59, 59))


def shop(frames: Mapping[str, pd.DataFrame]) -> dt.Catalog:
    customers = dt.Table(
        frames["customers"],
        unit="customer",
        key="customer",
        columns={
            "country": dt.values("AT", "DE", "FR", "IT", "UK"),
            "segment": dt.values("home", "office", "trade"),
            "joined": dt.between(datetime.date(2019, 1, 1), datetime.date(2024, 1, 1)),
        },
    )
    orders = dt.Table(
        frames["orders"],
        unit={"column": "customer", "references": "customers.customer"},
        key="order_id",
        max_rows=None,
        columns={
            "placed": _YEARS,
            "amount": dt.between(0, 500, step="0.01"),
            "status": dt.values("paid", "returned", "cancelled"),
        },
    )
    lines = dt.Table(
        frames["lines"],
        unit={"column": "order_id", "references": "orders.order_id"},
        max_rows=None,
        columns={"product": dt.values("book", "pen", "lamp", "chair", "desk"), "quantity": dt.between(0, 20)},
    )
    return dt.Catalog(tables={"customers": customers, "orders": orders, "lines": lines}, budget=BUDGET)


def survey(frames: Mapping[str, pd.DataFrame]) -> dt.Catalog:
    people = dt.Table(
        frames["people"],
        unit="person",
        key="person",
        columns={
            "age": dt.between(16, 110),
            "sex": dt.values("f", "m", "x"),
            "region": dt.values("north", "south", "east", "west"),
            "income": dt.between(0, 200_000, step=1),
            "household": dt.between(1, 9),
            "satisfied": dt.between(1, 10),
            "employed": dt.values(False, True),
            "born": dt.between(datetime.date(1920, 1, 1), datetime.date(2009, 12, 31)),
        },
    )
    return dt.Catalog(tables={"people": people}, budget=BUDGET)


def events(frames: Mapping[str, pd.DataFrame]) -> dt.Catalog:
    table = dt.Table(
        frames["events"],
        unit="user",
        max_rows=None,
        columns={
            "happened": dt.between(datetime.datetime(2025, 4, 1), datetime.datetime(2025, 6, 30, 23, 59, 59)),
            "kind": dt.values("view", "search", "buy", "error"),
            "milliseconds": dt.between(0, 2000, step="0.1"),
            "mobile": dt.values(False, True),
        },
    )
    return dt.Catalog(tables={"events": table}, budget=BUDGET)


def office(path: Path) -> dt.Catalog:
    table = dt.Table(
        str(path),
        unit="Personen-ID",
        max_rows=None,
        read={"encoding": "cp1252", "skip": 1, "trim": True, "decimal": ",", "thousands": ".", "na": ["k. A."]},
        columns={
            "Personen-ID": dt.column(kind="int"),
            "Partei / Klub": dt.values("SPÖ", "ÖVP", "FPÖ", "Grüne", "NEOS"),
            "Geburtsdatum": dt.column(between=(datetime.date(1920, 1, 1), datetime.date(2009, 12, 31)), format="%d.%m.%Y"),
            "Ausgeschieden": dt.column(kind="date", format="%d.%m.%Y"),
            "Bezug": dt.between(0, 20_000, step="0.01"),
            "Anzahl Ämter": dt.between(0, 20),
        },
    )
    return dt.Catalog(tables={"mandates": table}, budget=BUDGET)
