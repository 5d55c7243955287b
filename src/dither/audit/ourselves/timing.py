"""Measures what run time reveals: does it depend on the size of the noise, or on whether one person is there?

Questions are asked one after the other, with fresh noise, about a table with and without one person in turn. Two figures: the
rank correlation of the release's time with |noise|, and how often a run with the person takes longer than one without (1/2
means no effect; an attacker who guesses by the clock has the advantage 2 |share - 1/2|). Each figure has a limit of three
standard errors: this many questions cannot tell smaller effects from none. A limit does not prove that there is no effect
below it, and other work on the machine hides as much as it adds.

Expected: drawing noise is a fixed amount of work and does not show. A person with a few rows does not show in one question. A
person with very many rows does, because a larger table takes longer to read. That is outside the guarantee; to close it,
answer after a fixed time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import dither as dt
from dither.audit.ourselves.catalogs import CatalogSetup
from dither.audit.ourselves.harness import Harness
from dither.audit.ourselves.questions import OneTable
from dither.audit.ourselves.survey import Person
from dither.curator import STEPS, Steps
from dither.engines.base import Engine
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Program, Run
from dither.query.work import Group, Work

QUESTION = "SELECT region, COUNT(*) AS n, SUM(wage) AS s FROM t GROUP BY region"
CROWD, HEAVY = 2000, 20_000
WARM = 5  # questions before the first measurement
SURE = 3.0  # standard errors


@dataclass(frozen=True)
class Effect:
    """One measured effect, and the limit below which it cannot be told from none."""

    words: str
    effect: float
    limit: float
    asks: int
    median: float  # seconds

    @property
    def visible(self) -> bool:
        return abs(self.effect) > self.limit

    def __str__(self) -> str:
        base = f"{self.asks} questions of {self.median * 1e3:.1f} ms"
        return f"  {self.words}: {self.effect:+.3f}, limit {self.limit:.3f}, {base}: {'' if self.visible else 'not '}visible"


@dataclass(frozen=True)
class Timing:
    """All measured effects; for a report, never for a test."""

    effects: tuple[Effect, ...]
    seed: int

    def __str__(self) -> str:
        return "\n".join(["run time:", *map(str, self.effects)])


def measure(asks: int = 400, seed: int = 1) -> Timing:
    """Asks half of the questions with the person and half without, in random order."""
    rng = random.Random(seed)
    crowd = {"t": [_row(person, rng) for person in range(CROWD)]}
    one, many = {"t": [_row(CROWD, rng)]}, {"t": [_row(CROWD + 1, rng) for _ in range(HEAVY)]}
    clock = Stopwatch()
    with Harness(_setup(), [crowd, one, many], clock.steps()) as harness:
        noise = _noise(harness, clock, asks, rng)
        light = _presence(harness, "one person with one row, advantage by the clock", 1, asks, rng)
        heavy = _presence(harness, f"one person with {HEAVY:,} rows, advantage by the clock", 2, asks, rng)
    return Timing((noise, light, heavy), seed)


class Stopwatch:
    """Steps that record the time of every release, without the engine's, and the size of its noise."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.sizes: list[float] = []
        self._groups: Sequence[Group] = ()
        self._engine_seconds = 0.0

    def steps(self) -> Steps:
        return replace(STEPS, run=self._run, release=self._release)

    def _run(self, engine: Engine, work: Work) -> Sequence[Group]:
        start = time.perf_counter()
        self._groups = STEPS.run(engine, work)
        self._engine_seconds = time.perf_counter() - start
        return self._groups

    def _release(self, program: Program, run: Run, draw: Draw) -> Sequence[Noisy]:
        start = time.perf_counter()
        (noisy,) = STEPS.release(program, run, draw)
        self.taken.append(time.perf_counter() - start - self._engine_seconds)
        groups = {group.key: group for group in self._groups}
        exact = [[groups[key].measures[i] if key in groups else (0,) for key in noisy.keys] for i in range(len(noisy.cells))]
        sizes = (np.abs(np.asarray(c) - np.array(e)).sum() for c, e in zip(noisy.cells, exact, strict=True))
        self.sizes.append(float(sum(sizes)))
        return [noisy]


def _noise(harness: Harness, clock: Stopwatch, asks: int, rng: random.Random) -> Effect:
    """Correlates the time of a release with the size of its noise, on the same rows every time."""
    harness.fill([0], rng)
    for _ in range(asks + WARM):
        harness.curator.ask(QUESTION, epsilon=1, left_out=False, fresh=True)
    taken, sizes = clock.taken[-asks:], clock.sizes[-asks:]
    effect = float(np.corrcoef(_ranks(taken), _ranks(sizes))[0, 1])
    return Effect("time of the release and |noise|, rank correlation", effect, SURE / asks**0.5, asks, float(np.median(taken)))


def _presence(harness: Harness, words: str, person: int, asks: int, rng: random.Random) -> Effect:
    """Returns how often the longer time is the one with the person, over all pairs of times (Mann–Whitney statistic)."""
    turns = [True, False] * (asks // 2)
    rng.shuffle(turns)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for place, there in enumerate([True, False] * WARM + turns):
        harness.fill([0, person] if there else [0], rng, reorder=True)
        start = time.perf_counter()
        harness.curator.ask(QUESTION, epsilon=1, left_out=False, fresh=True)
        if place >= 2 * WARM:
            taken[there].append(time.perf_counter() - start)
    n, m = len(taken[True]), len(taken[False])
    ranks = _ranks([*taken[True], *taken[False]])
    share = (float(ranks[:n].sum()) - n * (n - 1) / 2) / (n * m)
    limit = 2 * SURE * float(np.sqrt((n + m + 1) / (12 * n * m)))
    return Effect(words, 2 * share - 1, limit, n + m, float(np.median([*taken[True], *taken[False]])))


def _ranks(values: Sequence[float]) -> Any:
    """Returns ranks from 0. Equal times are rare, so their order does not matter."""
    return np.argsort(np.argsort(np.array(values), kind="stable"), kind="stable").astype(np.float64)


def _row(person: int, rng: random.Random) -> dict[str, Any]:
    return {"person": person, "wage": rng.uniform(0, 50), "region": rng.choice(["north", "south", "east"])}


def _setup() -> CatalogSetup:
    columns = {"wage": dt.between(0, 50), "region": dt.values("north", "south", "east")}

    def catalog(tables: Any) -> dt.Catalog:
        return dt.Catalog({"t": dt.Table(tables["t"], unit="person", max_rows=1, columns=columns)}, dt.Budget(10**6))

    def nobody(number: int, rng: random.Random) -> Person:
        return {"t": [_row(number, rng)]}

    schema = pa.schema({"person": pa.int64(), "wage": pa.float64(), "region": pa.string()})
    return CatalogSetup("timing", catalog, {"t": schema}, {"t": []}, nobody, OneTable)
