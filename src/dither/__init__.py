"""dither: answers about people's data, with a price on each and noise of exactly the stated law.

`open` a catalog and `ask`. Mechanisms also stand alone: each has `release`, `loss`, `law` and `margin`. Losses add
up; filters keep them within a budget; `verify` proves a mechanism's price on given pairs of answers.
"""

from dither.curator import Curator, open
from dither.errors import ArgumentError, BudgetError, CatalogError, DitherError, EngineError, PriceError, QueryError
from dither.mechanisms import (
    L1,
    L2,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    NoisyMax,
    PerCoordinate,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
    Threshold,
    TruncatedGeometric,
)
from dither.privacy import guarantees, parts, sensitivity
from dither.privacy.combine import parallel, postprocess
from dither.privacy.filters import ApproxFilter, Odometer, PureFilter, ZCDPFilter
from dither.privacy.losses import ZCDP, Approx, Curve, Pure, total
from dither.privacy.neighbours import AddRemove, Group, Replace
from dither.privacy.verify import verify
from dither.query.catalog import Budget, Catalog, Rows, Table
from dither.query.declare import between, column, values
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

__version__ = "0.1.0"

__all__ = [
    "L1",
    "L2",
    "ZCDP",
    "AddRemove",
    "Approx",
    "ApproxFilter",
    "ArgumentError",
    "Budget",
    "BudgetError",
    "Catalog",
    "CatalogError",
    "Curator",
    "Curve",
    "DitherError",
    "EngineError",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Group",
    "Laplace",
    "NoisyMax",
    "Odometer",
    "PerCoordinate",
    "PermuteAndFlip",
    "PriceError",
    "Pure",
    "PureFilter",
    "QueryError",
    "RandomizedResponse",
    "Replace",
    "Rows",
    "SparseVector",
    "Table",
    "Threshold",
    "TruncatedGeometric",
    "ZCDPFilter",
    "between",
    "clipped",
    "column",
    "count",
    "count_distinct",
    "count_units",
    "guarantees",
    "max_",
    "mean",
    "median",
    "min_",
    "open",
    "parallel",
    "parts",
    "postprocess",
    "quantile",
    "sensitivity",
    "stddev",
    "sum_",
    "total",
    "values",
    "variance",
    "verify",
]
