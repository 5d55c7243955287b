"""Gradient descent for linear and logistic regression, as traced programs: dt.trace finds the price by itself.

Each row becomes a vector of whole numbers of 1/1024, of length at most 1 (or it is shortened). A step adds up one such vector
per record and releases the sums with Gaussian noise; everything after is free. Replacing a record moves a sum of rows of
length at most L by at most 2 L, whatever the weights are, so every step costs the same, although it depends on the noise of
those before. The weights are clipped to public bounds: then the price does not depend on noise, and the trace says so.

    python examples/gradient_descent.py                 20,000 made-up people like those of the Adult census data
    python examples/gradient_descent.py --people 2000
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dither as dt

Floats = NDArray[np.float64]
GRID = Fraction(1, 1024)
WIDEST = 20  # weights stay within +-20
SECTORS = 5


# %% [markdown]
# ## People

# %%


def people(count: int, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Makes up people: features from 0 to 1 (by declared bounds, a constant last), whether they earn much, and their hours."""
    random = np.random.default_rng(seed)  # made-up data, not noise
    age, education = random.integers(17, 91, count), np.clip(random.normal(10, 2.6, count).round(), 1, 16)
    married, male = random.random(count) < 0.47, random.random(count) < 0.67
    sector = random.integers(0, SECTORS, count)
    hours = np.clip(random.normal(34 + 6 * male + 0.6 * education + 2 * (sector == 3), 9), 1, 99)
    prime = 1 - np.abs(age - 50) / 40
    score = -12 + 0.55 * education + 3 * married + 0.7 * male + 3 * prime + 0.05 * (hours - 40) + (sector == 2)
    rich = random.random(count) < 1 / (1 + np.exp(-score))
    one_hot = (sector[:, None] == np.arange(SECTORS)).astype(float)
    columns = [(age - 17) / 73, np.clip(prime, 0, 1), (education - 1) / 15, married, male, *one_hot.T, np.ones(count)]
    return np.stack(columns, axis=1), np.where(rich, 1.0, -1.0), hours / 50 - 1


def declared(features: Floats, target: Floats) -> Any:
    """Declares the records: features within [0, 1], scaled so that no row of them is longer than 1, and the target."""
    most = 5 + 2  # five features of at most 1 each, one sector, the constant
    table = np.column_stack((features / math.sqrt(most), target))
    columns = features.shape[1]
    return dt.records(table, low=[0] * columns + [-1], high=[1] * columns + [1], step=GRID)


# %% [markdown]
# ## The programs

# %%


@dataclass(frozen=True)
class Descent:
    """Public choices: how many steps, how long each, how much of the last one continues, and the noise on the sums."""

    steps: int
    rate: float
    momentum: float = 0.9
    scale: Fraction = Fraction(1)  # the standard deviation of the noise

    def noise(self) -> dt.Gaussian:
        return dt.Gaussian.with_scale(self.scale, sensitivity=2, grid=GRID)


def logistic(table: Any, choices: Descent) -> Any:
    """Logistic regression: the gradient is the sum of y x / (1 + e^(y w x)), which is no longer than x."""
    rows, labels = table[:, :-1].clip_norm(1), table[:, -1]
    signed, weights, move = (rows * labels).truncate(GRID), np.zeros(rows.columns), np.zeros(rows.columns)
    for _ in range(choices.steps):
        pull = (signed @ weights).clip(-8, 8, step="1/64").apply(lambda z: 1 / (1 + math.exp(z)), step=GRID)
        gradient = (signed * pull).truncate(GRID).sum().release(choices.noise())
        move = choices.momentum * move + choices.rate / len(table) * gradient
        weights = (weights + move).clip(-WIDEST, WIDEST, step=GRID)
    return weights


def linear(table: Any, choices: Descent) -> Any:
    """Linear regression by least squares: the gradient is the sum of (y - w x) x, with residuals clipped to +-1."""
    rows, target = table[:, :-1].clip_norm(1), table[:, -1]
    weights, move = np.zeros(rows.columns), np.zeros(rows.columns)
    for _ in range(choices.steps):
        residual = (target - rows @ weights).clip(-1, 1, step=GRID)
        gradient = (rows * residual).truncate(GRID).sum().release(choices.noise())
        move = choices.momentum * move + choices.rate / len(table) * gradient
        weights = (weights + move).clip(-WIDEST, WIDEST, step=GRID)
    return weights


# %% [markdown]
# ## The price

# %%


def accountant(choices: Descent, columns: int, first: Fraction) -> dt.Curve:
    """The same releases as the accountant knows them: each moves the sums by at most 2 (2048 steps), the first by 2 `first`.

    Before the first step all weights are 0, so logistic regression halves every row, and the trace notices.
    """
    noise = [
        dt.Gaussian.with_scale(choices.scale / GRID, sensitivity=dt.L2(2 * length / GRID, dimension=columns))
        for length in (first, Fraction(1))
    ]
    return noise[0].curve() + noise[1].curve().repeat(choices.steps - 1)  # type: ignore[return-value]


def for_price(epsilon: float, delta: str, choices: Descent, columns: int) -> Descent:
    """Returns the least noise, in steps of 1 %, for which a whole descent is (epsilon, delta)-DP."""

    def tried(power: int) -> Descent:
        return replace(choices, scale=Fraction(round(2000 * 1.01**power), 1000))

    low, high = 0, 2000
    while low < high:
        middle = (low + high) // 2
        fits = accountant(tried(middle), columns, Fraction(1)).epsilon(delta) <= Fraction(str(epsilon))
        low, high = (low, middle) if fits else (middle + 1, high)
    return tried(high)


def without_noise(features: Floats, target: Floats, choices: Descent, slope: Callable[[Floats, Floats], Floats]) -> Floats:
    """The same descent in plain floats, without privacy: what there is to gain."""
    rows = features / math.sqrt(7)
    weights, move = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for _ in range(choices.steps):
        move = choices.momentum * move + choices.rate / len(rows) * (rows.T @ slope(rows @ weights, target))
        weights = weights + move
    return weights


def logistic_slope(score: Floats, target: Floats) -> Floats:
    return np.asarray(target / (1 + np.exp(target * score)))


def linear_slope(score: Floats, target: Floats) -> Floats:
    return np.clip(target - score, -1, 1)


# %% [markdown]
# ## The figures

# %%


def accuracy(weights: Any, features: Floats, target: Floats) -> float:
    return float(np.mean(np.sign(features @ np.asarray(weights)) == target))


def explained(weights: Any, features: Floats, target: Floats) -> float:
    """The share of the variance that is explained, R squared."""
    left = target - features / math.sqrt(7) @ np.asarray(weights)
    return 1 - float(np.mean(left**2) / np.var(target))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--people", type=int, default=20_000)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--steps", type=int, default=40)
    given = options.parse_args()
    features, rich, hours = people(given.people)
    tests = people(10_000, seed=2)
    columns = features.shape[1]
    choices = for_price(given.epsilon, "1e-6", Descent(given.steps, rate=6), columns)

    run = dt.trace(lambda table: logistic(table, choices), declared(features, rich))
    print(run.report, end="\n\n")
    theirs = accountant(choices, columns, Fraction(1, 2)).epsilon("1e-6")
    print(f"ε at δ = 1e-6: traced {float(run.epsilon('1e-6')):.6f}, by the accountant {float(theirs):.6f}")
    plain = without_noise(features, rich, choices, logistic_slope)
    private, possible = (accuracy(each, tests[0], tests[1]) for each in (run.result, plain))
    majority = max(np.mean(tests[1] > 0), np.mean(tests[1] < 0))
    print(f"accuracy: {private:.3f}, without privacy {possible:.3f}, always the same answer {majority:.3f}")

    slow = replace(choices, rate=1)
    run = dt.trace(lambda table: linear(table, slow), declared(features, hours))
    plain = without_noise(features, hours, slow, linear_slope)
    private, possible = (explained(each, tests[0], tests[2]) for each in (run.result, plain))
    print(f"R² of hours: {private:.3f}, without privacy {possible:.3f}")


if __name__ == "__main__":
    main()
