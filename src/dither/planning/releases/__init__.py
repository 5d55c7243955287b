"""Every kind of release, one file each. A new kind is a file here and its KIND in this list."""

from __future__ import annotations

from dither.planning.releases import count, distinct, quantile, spread, sums
from dither.planning.releases.base import Kind

KINDS: tuple[Kind, ...] = (sums.KIND, spread.KIND, count.KIND, distinct.KIND, quantile.KIND)
