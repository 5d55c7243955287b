"""Choosing bounds: the error of a mean against its upper bound, at three prices.

Narrow bounds cut the tail off, wide ones need much noise. The best bound depends on ε and on the number of people, and is
rarely the largest value. With real data you cannot draw this curve: it needs the exact values. Draw it on made-up data that
is like yours.
"""

# %%
import tempfile
from pathlib import Path

import numpy as np

import dither as dt
from dither.datasets import health_survey
from dither.plots import frontier_picture

folder = health_survey(Path(tempfile.mkdtemp()))
lines = (folder / "people.csv").read_text(encoding="utf-8").splitlines()[1:]
cells = [line.split(",")[3] for line in lines]
incomes = np.array([float(cell) for cell in cells if cell not in ("", "n/a")])
print(f"{len(incomes)} incomes; mean {incomes.mean():,.0f}, median {np.median(incomes):,.0f}, largest {incomes.max():,.0f}")

# %% [markdown]
# The bias of a bound is exact; the noise comes from a quote, which reads no row. The expected error is about the root of
# the sum of their squares.

# %%
bounds = [20_000, 50_000, 100_000, 200_000, 500_000, 2_000_000, 10_000_000]
curves = {}
for epsilon in ("0.05", "0.2", "1"):
    errors = []
    for most in bounds:
        bias = incomes.mean() - np.minimum(incomes, most).mean()
        table = dt.Table(
            str(folder / "people.csv"),
            unit="person_id",
            key="person_id",
            columns={"income": dt.between(0, most, kind="int", na=["n/a"])},
        )
        with dt.open(dt.Catalog({"people": table}, dt.Budget(10)), ledger=":memory:") as survey:
            quote = survey.quote("SELECT AVG(income) AS income FROM people", epsilon=epsilon, assume_rows=len(incomes))
        noise = float(quote.margins()["income"]) / 2  # a margin is about two standard deviations
        errors.append(float(np.hypot(bias, noise)))
    curves[f"ε = {epsilon}"] = ([float(each) for each in bounds], errors)
    best = bounds[int(np.argmin(errors))]
    print(f"ε = {epsilon:4}: best of these bounds {best:>9,}, error about {min(errors):,.0f}")

# %%
# Error of the mean income against the upper bound, one line for each price
picture = frontier_picture("Error of a mean income of 34,606", {"upper bound of income": curves}, "choosing_bounds.png")
