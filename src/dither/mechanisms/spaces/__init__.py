"""Spaces of outputs that are too many to list, for the exponential mechanism (mechanisms/structured.py).

May import: `exact`, and `selection`, which reads scores.
Rule: `walk` and `score` stand in one class, and tests/mechanisms/test_structured.py compares the two on small spaces.

    base     what a space is; draws, and explores every way    chains   Subsets, Intervals, Paths
    trees    SpanningTrees, by determinants                    orders   TopK, Orders
"""

from __future__ import annotations

from dither.mechanisms.spaces.base import Space
from dither.mechanisms.spaces.chains import Intervals, Paths, Subsets
from dither.mechanisms.spaces.orders import Orders, TopK
from dither.mechanisms.spaces.trees import SpanningTrees

__all__ = ["Intervals", "Orders", "Paths", "Space", "SpanningTrees", "Subsets", "TopK"]
