"""Audit a foreign mechanism: does this code keep the ε that it claims?

Four functions that look alike, written without dither. Each claims ε = 1. The auditor runs them on neighbouring data and
looks for an output that tells the two apart more often than e^1 times. A violation is a proof; passing is evidence.
"""

# %%
import math

import numpy as np

from dither.audit.testing import assert_private


def check(function, claim: str = "1") -> None:
    """Prints what the auditor concludes."""
    try:
        (verdict, *_) = assert_private(function, epsilon=claim, seconds=3)
    except AssertionError as wrong:
        print(f"{function.__name__}: {str(wrong).splitlines()[0].partition(': ')[2][:150]}")
    else:
        print(f"{function.__name__}: no violation of ε = {claim} found; largest loss seen {verdict.epsilon:.3f}")


# %% [markdown]
# ## A count, right
# `noise` is the auditor's: it knows the law of every draw, so that the check is exact.


# %%
def count(records: list[float], noise) -> float:
    return noise.laplace(1, at=len(records))


check(count)

# %% [markdown]
# ## A sum with half the noise
# Clipped to [-1, 1]: one record moves the sum by 1. The author took the scale for a mean of two records.


# %%
def halved(records: list[float], noise) -> float:
    return noise.laplace(0.5, at=sum(max(-1, min(1, each)) for each in records))


check(halved)

# %% [markdown]
# ## A sum whose bounds NaN escapes
# `max(nan, 0.0)` is NaN, although `max(0.0, nan)` is not: comparisons with NaN are false. One such record turns the whole
# sum into NaN, and shows that it is there.


# %%
def leaky(records: list[float], noise) -> float:
    total = sum(min(max(each, 0.0), 1.0) for each in records)
    return total if math.isnan(total) else noise.laplace(1, at=total)


check(leaky)

# %% [markdown]
# ## Noise that depends on the data
# A mean whose scale uses the exact number of records: with numpy's generator, which is recorded and replayed.


# %%
def scaled(records: list[float], rng: np.random.Generator) -> float:
    clipped = [max(0.0, min(1.0, each)) for each in records] or [0.0]
    return sum(clipped) / len(clipped) + rng.laplace(scale=1 / len(clipped))


check(scaled)
