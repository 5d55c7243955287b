"""Compares a list of quantiles in one release with the same quantiles at a split price: mean rank errors, and their ratio.

    python benchmarks/quantiles.py [--rows 20000] [--epsilon 1/2] [--draws 60]

The columns are shaped like real ones: ages, amounts in cents, incomes of which a fifth are zero, and counts of visits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dither.planning.price import shares as split
from dither.planning.releases.quantile import Choice
from dither.planning.releases.quantiles import Several
from dither.planning.releases.ranks import rank_scores
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import AddRemove
from dither.query.nodes import Column
from dither.query.work import SCALE, Histogram, Quantised

ALONE = Bounding(1, 1, 1, AddRemove())
LISTS = {
    "10, 50, 90 %": [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)],
    "quartiles": [Fraction(i, 4) for i in range(1, 4)],
    "deciles": [Fraction(i, 10) for i in range(1, 10)],
    "every 5 %": [Fraction(i, 20) for i in range(1, 20)],
}


def columns(rows: int) -> dict[str, tuple[Histogram, int]]:
    random = np.random.default_rng(1)
    incomes = np.where(random.random(rows) < 0.2, 0, random.lognormal(10.3, 0.8, rows))
    found = {
        "ages": (random.beta(1.6, 2.2, rows) * 100, 120),
        "cents": (random.lognormal(8, 1.5, rows), 10**7),
        "incomes": (incomes, 500_000),
        "visits": (random.geometric(0.4, rows) - 1, 50),
    }
    made = {}
    for name, (values, steps) in found.items():
        bins, counts = np.unique(np.clip(values, 0, steps).astype(np.int64), return_counts=True)
        made[name] = Histogram(bins, counts * SCALE), steps
    return made


def error(rows: Histogram, shares: Sequence[Fraction], drawn: Sequence[int]) -> float:
    """Returns by how many rows the ranks are off, on average over the list."""
    off = [-int(rank_scores(rows, p, np.array([value]))[0]) / p.denominator for p, value in zip(shares, drawn, strict=True)]
    return float(np.mean(off)) / SCALE


def measure(rows: Histogram, steps: int, shares: list[Fraction], epsilon: Fraction, draws: int) -> tuple[float, float]:
    """Returns the mean errors of one release, and of a split price."""
    grid = Quantised(Column("x"), Fraction(0), Fraction(1), steps)
    together = Several(Column("x"), grid, tuple(shares), 1).pure(epsilon, ALONE)
    one_by_one = [Choice(Column("x"), grid, p, 1) for p in shares]
    parts = split(epsilon, [each.weight for each in one_by_one])
    apart = [each.pure(part, ALONE) for each, part in zip(one_by_one, parts, strict=True)]
    new = [error(rows, shares, together.release([rows])[0, ::2].tolist()) for _ in range(draws)]
    old = [error(rows, shares, sorted(int(each.release([rows])[0, 0]) for each in apart)) for _ in range(draws)]
    return float(np.mean(new)), float(np.mean(old))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(1, 2))
    parser.add_argument("--draws", type=int, default=60)
    terms = parser.parse_args()
    print(f"{'column':10}{'list':14}{'one release':>14}{'split':>10}{'ratio':>8}")
    for name, (rows, steps) in columns(terms.rows).items():
        for title, shares in LISTS.items():
            new, old = measure(rows, steps, shares, terms.epsilon, terms.draws)
            print(f"{name:10}{title:14}{new:14.2f}{old:10.2f}{old / new if new else float('nan'):8.2f}")


if __name__ == "__main__":
    main()
