"""The catalogs of the four data sets, as a curator would declare them: keys, bounds and values; no bound on rows or groups."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

import dither as dt

BUDGET = dt.Budget(epsilon=5000, delta="1e-3")
_YEARS = dt.between(datetime.date(2024, 1, 1), datetime.date(2025, 12, 31))


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
