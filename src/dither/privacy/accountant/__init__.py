"""The accountant: certified prices of compositions fixed in advance.

May import: `exact`, and the parts. Law kept: a reported epsilon or delta is never below the exact one.
"""

from __future__ import annotations

from dither.privacy.accountant.price import canonical, delta, epsilon

__all__ = ["canonical", "delta", "epsilon"]
