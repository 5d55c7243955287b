"""Sensitivity: how far one unit can move a statistic or a score, exactly, and for which statistics noise is useful.

    statistics   counts, sums, means, medians, variances, histograms: formulas that the tests enumerate
    scores       a score function's sensitivity, by enumeration or by a declared bound that is checked
    usefulness   each statistic's sensitivity against its range and its sampling error

Rule: a bound is an exact rational, or `Unbounded` with a reason; no bound comes from a user's data.
"""

from __future__ import annotations

from dither.privacy.sensitivity.scores import Score, score
from dither.privacy.sensitivity.statistics import (
    Sensitivity,
    Unbounded,
    attribute_means,
    centred_mean,
    count,
    histogram,
    maximum,
    mean,
    median,
    minimum,
    sum,
    thresholds,
    variance,
)
from dither.privacy.sensitivity.usefulness import Usefulness, compare

__all__ = [
    "Score",
    "Sensitivity",
    "Unbounded",
    "Usefulness",
    "attribute_means",
    "centred_mean",
    "compare",
    "count",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "score",
    "sum",
    "thresholds",
    "variance",
]
