"""dither answers SQL questions about people's data with differential privacy.

`open` a catalog and `ask`. Mechanisms also work alone: each has `release`, `loss`, `law` and `margin`. Losses add up; filters
keep them within a budget; `verify` proves a mechanism's price on given pairs of answers.

A public name is loaded when it is first used, so that a mechanism does not load a database, and the command line's help loads
neither. The names are listed three times: as imports for type checkers and editors, in the table `_HOMES`, and in `__all__`;
tests/journey/test_import.py keeps the three equal.
"""

from __future__ import annotations

import sys
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dither.catalog.declare import between, column, values
    from dither.catalog.values import Budget, Catalog, Rows, Table
    from dither.client.remote import Remote, connect
    from dither.client.transport import RemoteError
    from dither.curator import Curator, open
    from dither.errors import (
        AccessError,
        ApprovalError,
        ArgumentError,
        BudgetError,
        BusyError,
        CatalogError,
        ClosedError,
        ConflictError,
        DitherError,
        EngineError,
        LedgerError,
        PriceError,
        QueryError,
        RequestError,
    )
    from dither.graphs.graph import Graph
    from dither.ledger.receipts import Receipt
    from dither.local.aggregator import Aggregator
    from dither.local.client import LocalClient
    from dither.local.hitters import HeavyHitters
    from dither.local.shuffle import shuffled_delta, shuffled_epsilon
    from dither.local.survey import LocalSurvey
    from dither.mechanisms import (
        L1,
        L2,
        Adaptive,
        Channel,
        Compose,
        Exponential,
        Gaussian,
        Geometric,
        Laplace,
        NoisyMax,
        Oblivious,
        PerCoordinate,
        PermuteAndFlip,
        RandomizedResponse,
        SparseVector,
        Structured,
        Threshold,
        TruncatedGeometric,
        spaces,
    )
    from dither.metric.finite import MetricExponential, MetricGrid
    from dither.metric.maps import LocalMap
    from dither.metric.plane import PlanarLaplace
    from dither.metric.price import PerDistance
    from dither.privacy import events, guarantees, leakage, parts, sensitivity
    from dither.privacy.composition import parallel, postprocess
    from dither.privacy.filters import ApproxFilter, Odometer, PureFilter, ZCDPFilter
    from dither.privacy.losses import ZCDP, Approx, Curve, Pure, total
    from dither.privacy.neighbours import AddRemove, Group, Replace
    from dither.privacy.proof import profile, verify
    from dither.query.fluent import (
        clipped,
        count,
        count_distinct,
        count_units,
        max_,
        mean,
        median,
        min_,
        quantile,
        stddev,
        sum_,
        variance,
    )
    from dither.streams.running import RunningSum
    from dither.tracing.queries import StatisticalQueries
    from dither.tracing.run import records, trace
    from dither.workloads.tradeoff import tradeoff
    from dither.workloads.workload import Workload

__version__ = "0.1.0"

__all__ = [
    "L1",
    "L2",
    "ZCDP",
    "AccessError",
    "Adaptive",
    "AddRemove",
    "Aggregator",
    "ApprovalError",
    "Approx",
    "ApproxFilter",
    "ArgumentError",
    "Budget",
    "BudgetError",
    "BusyError",
    "Catalog",
    "CatalogError",
    "Channel",
    "ClosedError",
    "Compose",
    "ConflictError",
    "Curator",
    "Curve",
    "DitherError",
    "EngineError",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Graph",
    "Group",
    "HeavyHitters",
    "Laplace",
    "LedgerError",
    "LocalClient",
    "LocalMap",
    "LocalSurvey",
    "MetricExponential",
    "MetricGrid",
    "NoisyMax",
    "Oblivious",
    "Odometer",
    "PerCoordinate",
    "PerDistance",
    "PermuteAndFlip",
    "PlanarLaplace",
    "PriceError",
    "Pure",
    "PureFilter",
    "QueryError",
    "RandomizedResponse",
    "Receipt",
    "Remote",
    "RemoteError",
    "Replace",
    "RequestError",
    "Rows",
    "RunningSum",
    "SparseVector",
    "StatisticalQueries",
    "Structured",
    "Table",
    "Threshold",
    "TruncatedGeometric",
    "Workload",
    "ZCDPFilter",
    "between",
    "clipped",
    "column",
    "connect",
    "count",
    "count_distinct",
    "count_units",
    "events",
    "guarantees",
    "leakage",
    "max_",
    "mean",
    "median",
    "min_",
    "open",
    "parallel",
    "parts",
    "postprocess",
    "profile",
    "quantile",
    "records",
    "sensitivity",
    "shuffled_delta",
    "shuffled_epsilon",
    "spaces",
    "stddev",
    "sum_",
    "total",
    "trace",
    "tradeoff",
    "values",
    "variance",
    "verify",
]


# The module of each public name, as in `from dither.curator import Curator, open`.
_HOMES: dict[str, tuple[str, ...]] = {
    "dither.curator": ("Curator", "open"),
    "dither.client.remote": ("Remote", "connect"),
    "dither.client.transport": ("RemoteError",),
    "dither.errors": (
        "AccessError",
        "ApprovalError",
        "ArgumentError",
        "BudgetError",
        "BusyError",
        "CatalogError",
        "ClosedError",
        "ConflictError",
        "DitherError",
        "EngineError",
        "LedgerError",
        "PriceError",
        "QueryError",
        "RequestError",
    ),
    "dither.graphs.graph": ("Graph",),
    "dither.ledger.receipts": ("Receipt",),
    "dither.mechanisms": (
        "L1",
        "L2",
        "Adaptive",
        "Channel",
        "Compose",
        "Exponential",
        "Gaussian",
        "Geometric",
        "Laplace",
        "NoisyMax",
        "Oblivious",
        "PerCoordinate",
        "PermuteAndFlip",
        "RandomizedResponse",
        "SparseVector",
        "Structured",
        "Threshold",
        "TruncatedGeometric",
        "spaces",
    ),
    "dither.privacy": ("events", "guarantees", "leakage", "parts", "sensitivity"),
    "dither.metric.finite": ("MetricExponential", "MetricGrid"),
    "dither.metric.maps": ("LocalMap",),
    "dither.metric.plane": ("PlanarLaplace",),
    "dither.metric.price": ("PerDistance",),
    "dither.local.aggregator": ("Aggregator",),
    "dither.local.client": ("LocalClient",),
    "dither.local.hitters": ("HeavyHitters",),
    "dither.local.shuffle": (
        "shuffled_delta",
        "shuffled_epsilon",
    ),
    "dither.local.survey": ("LocalSurvey",),
    "dither.privacy.composition": ("parallel", "postprocess"),
    "dither.privacy.filters": ("ApproxFilter", "Odometer", "PureFilter", "ZCDPFilter"),
    "dither.privacy.losses": ("ZCDP", "Approx", "Curve", "Pure", "total"),
    "dither.privacy.neighbours": ("AddRemove", "Group", "Replace"),
    "dither.privacy.proof": ("profile", "verify"),
    "dither.catalog.values": ("Budget", "Catalog", "Rows", "Table"),
    "dither.catalog.declare": ("between", "column", "values"),
    "dither.query.fluent": (
        "clipped",
        "count",
        "count_distinct",
        "count_units",
        "max_",
        "mean",
        "median",
        "min_",
        "quantile",
        "stddev",
        "sum_",
        "variance",
    ),
    "dither.streams.running": ("RunningSum",),
    "dither.workloads.tradeoff": ("tradeoff",),
    "dither.tracing.queries": ("StatisticalQueries",),
    "dither.tracing.run": ("records", "trace"),
    "dither.workloads.workload": ("Workload",),
}

_LOADING = RLock()


def _load(name: str) -> object:
    """Loads a public name from its module; afterwards it is an ordinary name of this package.

    One thread loads at a time: Python's own import lets a second thread into a package that the first is still loading, and
    then fails. A program whose threads also unpickle mechanisms, or import files of dither, imports dither.curator first.
    No file that is loaded here uses `dither` itself (the import table forbids it), so the lock is never taken in two orders.
    """
    for home, names in _HOMES.items():
        if name in names:
            with _LOADING:
                value: object = getattr(__import__(home, fromlist=[name]), name)
            globals()[name] = value
            return value
    near = f"Did you mean {name}_? " if f"{name}_" in __all__ else ""  # sum_, min_, max_: the bare words are Python's own
    raise AttributeError(
        f"dither has no public name {name!r}. {near}dir(dither) lists those it has; "
        "a module of dither is imported by its own name, as in: import dither.plots",
        name=name,
        obj=sys.modules[__name__],  # with this, Python itself adds the name that was probably meant
    )


def load_ipython_extension(ipython: object) -> None:
    """Adds %%dither to a notebook. IPython calls it for %load_ext dither."""
    from dither.notebook import load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """Removes %%dither. IPython calls it for %unload_ext dither."""
    from dither.notebook import unload

    unload(ipython)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:  # a type checker must not take every misspelt name for one that is loaded later
    __getattr__ = _load
