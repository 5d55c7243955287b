"""dither: answers about people's data, with a price on each and noise of exactly the stated law.

Mechanisms stand alone: each has `release`, `loss`, `law` and `margin`. Losses add up; filters keep them
within a budget; `verify` proves a mechanism's price on given pairs of answers.
"""

from dither.errors import ArgumentError, DitherError, PriceError
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

__version__ = "0.1.0"

__all__ = [
    "L1",
    "L2",
    "ZCDP",
    "AddRemove",
    "Approx",
    "ApproxFilter",
    "ArgumentError",
    "Curve",
    "DitherError",
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
    "RandomizedResponse",
    "Replace",
    "SparseVector",
    "Threshold",
    "TruncatedGeometric",
    "ZCDPFilter",
    "guarantees",
    "parallel",
    "parts",
    "postprocess",
    "sensitivity",
    "total",
    "verify",
]
