"""The accountant: certified prices of compositions fixed in advance.

May import: `exact`, and the parts. Rule: a reported epsilon or delta is never below the exact one.

    price     epsilon at a delta, delta at an epsilon, Renyi  evaluators   which method fits a composition
    closed    closed forms                                    contour      a line integral, for any composition
    bounded   equal bounded-range releases                    lattice      losses on one lattice
    sampled   the line integral for subsampled releases       atoms        few releases with few outcomes
    product   products of transforms, and where to integrate
"""

from __future__ import annotations

from dither.privacy.accountant.price import canonical, delta, epsilon, renyi

__all__ = ["canonical", "delta", "epsilon", "renyi"]
