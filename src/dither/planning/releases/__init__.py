"""Every kind of release, one file each.

    base      what all kinds share: Release, Noise, Reading, Collection
    sums      SUM, AVG, CLIPPED
    spread    VAR, STDDEV
    count     COUNT(*), COUNT(x), COUNT(DISTINCT unit)
    parts     counts with disjoint FILTERs
    distinct  COUNT(DISTINCT x)
    quantile  MEDIAN, QUANTILE, MIN, MAX
    keys      which groups are shown

To add a kind, add a file and list its KIND here.
"""

from __future__ import annotations

from dither.planning.releases import count, distinct, quantile, spread, sums
from dither.planning.releases.base import Kind

KINDS: tuple[Kind, ...] = (sums.KIND, spread.KIND, count.KIND, distinct.KIND, quantile.KIND)
