"""The false-alarm allowance of the sampled tests: one failure in 10^9 whole runs, divided among them by name.

A test that draws takes `share("its name")` and fails only on an event that a correct sampler has with at most that
probability. A new sampled test adds a line here; the other shares shrink a little, and the sum stays the same.
"""

from __future__ import annotations

ALLOWANCE = 1e-9

WEIGHTS = {
    "two-sided geometric": 2,
    "one-sided geometric": 1,
    "cut geometric": 1,
    "gaussian": 2,
    "categorical": 1,
    "flat": 1,
    "coins": 1,
    "finite": 1,
    "low digits": 1,
    "one draw at a time": 1,
    "peak": 1,
    "fair bits": 1,
    "mechanisms": 4,
    "joint laws": 1,
    "inverses": 1,
    "attacks": 4,
    "audit": 8,
    "clipped mean": 1,
    "margins across groups": 1,
    "free answers": 1,
    "margins around several results": 1,
    "bundles of a list": 1,
    "planar laplace": 1,
    "local reports": 2,
    "other": 4,
}


def share(name: str, tests: int = 1) -> float:
    """Returns the false-alarm probability of one of `tests` tests of this name."""
    return ALLOWANCE * WEIGHTS[name] / (sum(WEIGHTS.values()) * tests)
