"""The accountant: certified prices of compositions fixed in advance.

May import: `exact`, and the parts. Rule: a reported epsilon or delta is never below the exact one.

    price     epsilon at a delta, delta at an epsilon         evaluators   which method fits a composition
    closed    closed forms                                    contour      a line integral, for any composition
    bounded   equal bounded-range releases                    lattice      losses on one lattice
    grid      equal subsampled Gaussian releases              atoms        few releases with few outcomes
    product   products of transforms, and where to integrate
"""

from __future__ import annotations

from dither.privacy.accountant.price import canonical, delta, epsilon

__all__ = ["canonical", "delta", "epsilon"]
