"""Observes the whole path (dither.audit.ourselves.observe) on catalogs of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves.observe import KEY, Change, Observation, empty, looser, observe, open_observed

__all__ = ["KEY", "Change", "Observation", "ask", "catalog", "empty", "looser", "observe", "open_observed"]


def catalog(
    table: Mapping[str, Any],
    columns: Mapping[str, Any],
    *,
    epsilon: Any = 10**6,
    delta: Any = 0,
    neighbours: str = "add-remove",
    unit: Any = "u",
    **more: Any,
) -> dt.Catalog:
    """Returns a catalog of one table t, with the unit u by default."""
    held = dt.Table(pa.table(dict(table)), unit=unit, columns=dict(columns), **more)
    return dt.Catalog({"t": held}, dt.Budget(epsilon, delta, left_out=False), neighbours)


def ask(question: str, table: Mapping[str, Any], columns: Mapping[str, Any], price: Any = 1, **more: Any) -> Observation:
    """Asks one question about one table."""
    return observe(open_observed(catalog(table, columns, **more)), question, price)
