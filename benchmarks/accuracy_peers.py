"""Asks OpenDP and Tumult, if installed, the question of accuracy.py at the same total price of epsilon 1.

A row may be added or removed, the fifty keys are public, x is between 0 and `high`, and the question is COUNT(*) and AVG(x) of
the known x. COUNT(*) and AVG's denominator differ by the NULLs, so three numbers are released unless noted:

  OpenDP           its Context over Polars: dp.len, dp.count and dp.sum in one group_by, split evenly as OpenDP does by
                   itself (its summary shows scales 3, 3 and 3 * high). dp.len with dp.mean is split alike, but dp.mean takes
                   NULL for the middle of the bounds, which is not the mean asked for. Needs the Polars of opendp[polars].
  OpenDP, by hand  its Laplace measurements on the groups' exact numbers: half the price for the count, half for the sum of
                   x - high/2, which moves half as far. It need not handle NULLs: they count as high/2, the denominator is the
                   count of all rows, and the error is taken from that mean.
  Tumult           Session, KeySet, count and average: a third for the count, two thirds for the average, which Tumult halves
                   between a centred sum and a count of its own. (Half and half gives COUNT 1.92, AVG a third more.)
                   Tumult takes each row through Python, up to three minutes a release of a million rows, so it sees every
                   20th row unless asked for the whole. Noise does not depend on the rows; an error of AVG is scaled by the
                   share of rows its group kept.

The theoretical error of each is shown too, to reveal a wrong setup.
Tumult for Python 3.11 requires numpy below 2, and dither 2.1: in one environment pip complains, but this script runs.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUPS = 50
Releases = Generator[tuple[np.ndarray, np.ndarray], None, None]  # the errors of all counts and the noisy means, by key


@dataclass(frozen=True)
class Task:
    """One table and its exact answers, computed here and not by the compared systems."""

    g: np.ndarray
    x: np.ndarray
    null: np.ndarray
    high: int

    @classmethod
    def draw(cls, rows: int, high: int, power: int) -> Task:
        """Keys and NULLs (one in a hundred) at random; x = high * u**power for uniform u: its mean is high / (power + 1)."""
        dice = np.random.default_rng(11)
        x = np.floor((high + 1) * dice.random(rows) ** power).astype(np.int64)
        return cls(dice.integers(0, GROUPS, rows), x, dice.random(rows) < 0.01, high)

    def every(self, step: int) -> Task:
        return Task(self.g[::step], self.x[::step], self.null[::step], self.high)

    def frame(self) -> pa.Table:
        return pa.table({"g": pa.array(self.g), "x": pa.array(self.x, mask=self.null)})

    @cached_property
    def n(self) -> np.ndarray:
        return np.bincount(self.g, minlength=GROUPS)

    @cached_property
    def known(self) -> np.ndarray:
        return np.bincount(self.g[~self.null], minlength=GROUPS)

    @cached_property
    def total(self) -> np.ndarray:
        return np.bincount(self.g[~self.null], self.x[~self.null], minlength=GROUPS)

    @cached_property
    def mean(self) -> np.ndarray:
        return self.total / self.known


@dataclass(frozen=True)
class Line:
    """Mean absolute errors of COUNT and AVG with standard errors and theoretical values, or a note."""

    name: str
    note: str = ""
    times: int = 0
    count: tuple[float, float, float] = (math.nan,) * 3
    mean: tuple[float, float, float] = (math.nan,) * 3


def two_laplaces(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the mean size of a*X - b*Y, for X and Y independent Laplace of scale 1."""
    return (a * a + a * b + b * b) / (a + b)


def geometric_error(scale: float) -> float:
    """Returns the mean size of two-sided geometric noise."""
    a = math.exp(-1 / scale)
    return 2 * a / (1 - a * a)


def measure(
    name: str, releases: Releases, times: int, theory: tuple[float, np.ndarray], aim: np.ndarray, weight: np.ndarray | float = 1
) -> Line:
    """Errors of counts, and of means about `aim` times `weight`: averaged over a release's groups, then over releases."""
    errors, told = [], time.monotonic()
    for i in range(times):
        counts, means = next(releases)
        errors.append((np.abs(counts).mean(), (np.abs(means - aim) * weight).mean()))
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"{name}: {i + 1} of {times} releases", file=sys.stderr, flush=True)
    releases.close()
    found, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / math.sqrt(times)
    count = (float(found[0]), float(spread[0]), theory[0])
    return Line(name, "", times, count, (float(found[1]), float(spread[1]), float(np.mean(theory[1]))))


def opendp(task: Task, times: int = 25) -> Line:
    """Measures three numbers by its Context over Polars."""
    name = "OpenDP"
    if find_spec("opendp") is None:
        return Line(name, "not installed")
    wanted = {line.split(";")[0].strip() for line in metadata.requires("opendp") or () if line.startswith("polars=")}
    if find_spec("polars") is None or f"polars=={metadata.version('polars')}" not in wanted:
        return Line(name, f"not run: its Context needs {' or '.join(sorted(wanted))}")
    theory = geometric_error(3), two_laplaces(np.full(GROUPS, 3.0 * task.high), 3 * task.mean) / task.known
    return measure(name, _opendp_releases(task), times, theory, task.mean)


def _opendp_releases(task: Task) -> Releases:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    frame = pl.from_arrow(task.frame()).lazy()
    margin = dp.polars.Margin(by=["g"], max_length=len(task.g), max_groups=GROUPS, invariant="keys")
    x = pl.col("x")
    while True:
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[margin],
        )
        wanted = (
            dp.len(signed=True).alias("n"),
            x.dp.count(signed=True).alias("known"),
            x.fill_null(0).dp.sum((0, task.high)).alias("total"),
        )
        found = context.query().group_by("g").agg(*wanted).release().collect().sort("g")
        yield found["n"].to_numpy() - task.n, found["total"].to_numpy() / np.maximum(found["known"].to_numpy(), 1)


def opendp_by_hand(task: Task, times: int = 400) -> Line:
    """Measures a count and a centred sum, half the price each; no third number for the NULLs."""
    name = "OpenDP, by hand"
    if find_spec("opendp") is None:
        return Line(name, "not installed")
    middle = task.high // 2
    centred = (task.total - middle * task.known).astype(np.int64)
    off = np.abs(centred / task.n)
    theory = geometric_error(2), two_laplaces(np.full(GROUPS, float(task.high)), 2 * off) / task.n
    return measure(name, _by_hand_releases(task, centred), times, theory, middle + centred / task.n)


def _by_hand_releases(task: Task, centred: np.ndarray) -> Releases:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)

    def noise(most: int) -> Any:
        return dp.binary_search_chain(lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=most, d_out=0.5, T=float)

    count, total = noise(1), noise(task.high // 2)
    while True:
        n = np.array(count(task.n.tolist()))
        yield n - task.n, task.high // 2 + np.array(total(centred.tolist())) / np.maximum(n, 1)


def tumult(task: Task, step: int = 20, times: int = 25) -> Line:
    """Measures a count and an average in one session of epsilon 1, on every `step`-th row."""
    name = "Tumult"
    if find_spec("tmlt") is None or find_spec("tmlt.analytics") is None:
        return Line(name, "not installed")
    part = task.every(step)
    off = np.abs(task.mean - task.high / 2)
    theory = geometric_error(3), two_laplaces(np.full(GROUPS, 1.5 * task.high), 3 * off) / task.known
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(name, _tumult_releases(part, folder), times, theory, part.mean, part.known / task.known)


def _tumult_releases(task: Task, folder: str) -> Releases:
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers must find tmlt, too
    settings = {
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
    }
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        pq.write_table(task.frame(), f"{folder}/sales.parquet")
        rows = spark.read.parquet(f"{folder}/sales.parquet").repartition(2).cache()
        asked = QueryBuilder("sales").groupby(KeySet.from_dict({"g": list(range(GROUPS))}))
        count, average = asked.count(name="n"), asked.average("x", low=0, high=task.high, name="x")
        while True:
            session = Session.from_dataframe(PureDPBudget(1), "sales", rows, protected_change=AddOneRow())
            n = session.evaluate(count, PureDPBudget(1 / 3)).toPandas().sort_values("g")["n"].to_numpy()
            mean = session.evaluate(average, session.remaining_privacy_budget).toPandas().sort_values("g")["x"].to_numpy()
            yield n - task.n, mean
    finally:
        spark.stop()
