"""How far COUNT and AVG are off, on a million rows in fifty groups at epsilon 1, against the best that is known.

Printed are mean absolute errors over many releases of one exact result, their theoretical values for the joint release
(three cells of Laplace scale 1/epsilon: 15/8 for the count), and the same question with the price split evenly between a count
and a centred sum. Where OpenDP is installed, its Laplace measurements answer the same question at the same price (a count and
a clamped sum per group, half the price each, each calibrated by OpenDP itself), and the ratios are printed.
Tumult needs a Spark session, so it is not run here; the issue's measurement of it is quoted. `python benchmarks/accuracy.py`
"""

from __future__ import annotations

import time
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from dither.curator import open as open_curator
from dither.mechanisms import Geometric
from dither.planning.finish import release, table
from dither.query.catalog import Budget, Catalog, Table
from dither.query.declare import between, values

ROWS, GROUPS, TIMES = 1_000_000, 50, 400
HIGH = 800
QUESTION = "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM sales GROUP BY g"


def accuracy(rows: int = ROWS, times: int = TIMES) -> dict[str, float]:
    """Mean absolute errors of COUNT and AVG, as measured, as predicted, and with an even split."""
    dice = np.random.default_rng(11)
    g = dice.integers(0, GROUPS, rows)
    x = dice.integers(0, HIGH + 1, rows)
    frame = pa.table({"g": pa.array(g), "x": pa.array(x, mask=dice.random(rows) < 0.01)})
    columns = {"g": values(*range(GROUPS)), "x": between(0, HIGH)}
    catalog = Catalog({"sales": Table(frame, unit="row", columns=columns)}, Budget(1))
    survey = open_curator(catalog, ledger=":memory:")
    plan = survey.quote(QUESTION, epsilon=1).plan
    groups = survey._engine.run(plan.work, b"s" * 32)
    exact = {group.key[0]: group.measures[0] for group in groups}
    steps = plan.noises[0].draft.row
    n = np.array([sum(exact[k]) / steps for k in range(GROUPS)])
    known = np.array([(exact[k][0] + exact[k][1]) / steps for k in range(GROUPS)])
    mean = np.array([HIGH * exact[k][0] / (exact[k][0] + exact[k][1]) for k in range(GROUPS)])
    count_errors, mean_errors = [], []
    for _ in range(times):
        found = np.array([row[1:] for row in table(plan, release(plan, groups)).rows], dtype=float)
        count_errors.append(np.abs(found[:, 0] - n).mean())
        mean_errors.append(np.abs(found[:, 1] - mean).mean())
    split = _split(n, known, mean, times)
    other = opendp(n, (mean * known).round(), mean * known / n, times)
    return {
        "count": float(np.mean(count_errors)),
        "count, theory": 15 / 8,
        "count, even split": split[0],
        "mean": float(np.mean(mean_errors)),
        "mean, theory": float(np.mean(HIGH / known * 1.5 / 2)),  # u = 1/2: (L1 - L2) / 2, mean size 3/4
        "mean, even split": split[1],
        **({} if other is None else {"count, OpenDP": other[0], "mean, OpenDP": other[1]}),
    }


def opendp(n: np.ndarray, total: np.ndarray, mean: np.ndarray, times: int) -> tuple[float, float] | None:
    """The errors of OpenDP's Laplace noise on counts and sums; None if it is not installed.

    A row is in one group, so it moves the vector of counts by 1 and the vector of sums by at most HIGH. NULLs count as 0 in
    the sum and as rows in the count, so the truth of its mean is the sum over all rows: it is not charged for a third number.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)

    def noise(most: int) -> Any:
        return dp.binary_search_chain(lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=most, d_out=0.5, T=float)

    count, added = noise(1), noise(HIGH)
    errors = []
    for _ in range(times):
        noisy = np.array(count(n.astype(int).tolist()))
        means = np.array(added(total.astype(int).tolist())) / np.maximum(noisy, 1)
        errors.append((np.abs(noisy - n).mean(), np.abs(means - mean).mean()))
    return float(np.mean([e[0] for e in errors])), float(np.mean([e[1] for e in errors]))


def _split(n: np.ndarray, known: np.ndarray, mean: np.ndarray, times: int) -> tuple[float, float]:
    """Half the price for the count of all rows, half for a centred sum divided by it."""
    count = Geometric(epsilon=Fraction(1, 2), sensitivity=1)
    total = Geometric(epsilon=Fraction(1, 2), sensitivity=HIGH // 2)
    exact_n, exact_s = n.astype(np.int64), ((mean - HIGH / 2) * known).round().astype(np.int64)
    errors = []
    for _ in range(times):
        noisy = np.asarray(count.release(exact_n))
        means = HIGH / 2 + np.asarray(total.release(exact_s)) / np.maximum(noisy, 1)
        errors.append((np.abs(noisy - n).mean(), np.abs(means - (HIGH / 2 + exact_s / n)).mean()))
    return float(np.mean([e[0] for e in errors])), float(np.mean([e[1] for e in errors]))


def speed(delta: float = 0, times: int = 50) -> float:
    """Milliseconds from text to answer for a small question, warm, without the engine: read, plan, draw noise, finish."""
    frame = pa.table({"g": pa.array([0, 1]), "x": pa.array([1, 2])})
    columns = {"g": values(*range(GROUPS)), "x": between(0, HIGH)}
    catalog = Catalog({"sales": Table(frame, unit="row", columns=columns)}, Budget(1, delta))
    survey = open_curator(catalog, ledger=":memory:")
    groups = survey._engine.run(survey.quote(QUESTION, epsilon=1).plan.work, b"s" * 32)
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        plan = survey.quote(QUESTION, epsilon=1).plan
        table(plan, release(plan, groups))
        taken.append(time.perf_counter() - start)
    return 1000 * float(np.median(taken))


if __name__ == "__main__":
    found = accuracy()
    for name, value in found.items():
        print(f"{name:<20} {value:.4f}")
    for name in ("count", "mean"):
        print(f"{name + ', ratio':<20} {found[name] / found[name + ', theory']:.3f} of the theory", end="")
        print(
            f", {found[name] / found[f'{name}, OpenDP']:.3f} of OpenDP"
            if f"{name}, OpenDP" in found
            else ", OpenDP not installed"
        )
    print(
        f"{'Tumult':<20} {'installed, not run here' if find_spec('tmlt') else 'not installed'}; measured before: 2.78 and 0.062"
    )
    print(f"{'plan and release':<20} {speed():.2f} ms; with a delta {speed(1e-6):.2f} ms; at most 10 ms")
