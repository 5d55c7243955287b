"""Every kind of release, one file each.

    base      what all kinds share: Release, Noise, Reading, Collection
    sums      SUM, AVG, CLIPPED
    spread    VAR, STDDEV
    moments   moments of one column or of two, from one joint release
    shape     SKEWNESS, KURTOSIS
    pairs     CORR, COVAR, REGR_SLOPE, REGR_INTERCEPT, REGR_R2
    count     COUNT(*), COUNT(x), COUNT(DISTINCT unit)
    parts     COUNT, SUM and AVG with disjoint FILTERs
    distinct  COUNT(DISTINCT x)
    ranked    MEDIAN, QUANTILE, MIN, MAX
    quantile  one quantile
    quantiles three or more quantiles of a column together
    mode      MODE
    keys      which groups are shown

To add a kind, add a file and list its KIND here.
"""

from __future__ import annotations

from dither.planning.releases import count, distinct, mode, pairs, ranked, shape, spread, sums
from dither.planning.releases.base import Kind

KINDS: tuple[Kind, ...] = (sums.KIND, spread.KIND, pairs.KIND, shape.KIND, count.KIND, distinct.KIND, ranked.KIND, mode.KIND)
