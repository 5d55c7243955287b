"""Several processes: their outputs are independent, or are not used; and what an attack without a finding could have seen."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from dither.audit.blackbox.attack import attack
from dither.audit.blackbox.confidence import bounds
from dither.audit.blackbox.power import detectable, quantile
from dither.audit.blackbox.workers import Workers, draw_in_turns
from dither.audit.verdict import Target

PAIRS = ((0, 1), (4, 5))


def own_stream(number: int) -> Target:
    rng = np.random.default_rng([1, number])
    return Target("noisy", lambda x: round((x + rng.laplace(0, 1)) * 1024) / 1024, Fraction(1), pairs=PAIRS)


def one_stream(number: int) -> Target:
    """A generator that is seeded at import has the same stream in every process."""
    rng = np.random.default_rng(7)
    return Target("noisy", lambda x: round((x + rng.laplace(0, 1)) * 1024) / 1024, Fraction(1), pairs=PAIRS)


def test_errors_are_outputs_and_the_sides_take_turns() -> None:
    seen: list[int] = []

    def run(data: int) -> int:
        seen.append(data)
        return 1 // data

    one, two = draw_in_turns(Target("division", run, Fraction(1)), (0, 1), 200)
    assert len(one) == len(two) == 200
    assert {str(output) for output in one} == {"Raised(error='ZeroDivisionError')"}
    assert set(two) == {1}
    assert all({a, b} == {0, 1} for a, b in itertools.batched(seen, 2)) if hasattr(itertools, "batched") else len(seen) == 400


@pytest.mark.slow
def test_workers_draw_and_workers_that_repeat_each_other_are_not_used() -> None:
    with Workers.start(own_stream, 2) as workers:
        assert len(workers.lines) == 2
        both = workers.draw(1, 1001)
        assert both is not None
        assert [len(side) for side in both] == [1001, 1001]
        assert workers.cpu > 0
        verdict = attack(own_stream(9), seconds=1.0, workers=workers)
        assert verdict.outcome == "no violation found"
    with Workers.start(one_stream, 2) as workers:
        assert workers.lines == []
        assert workers.draw(0, 10) is None


def test_what_cannot_be_pickled_runs_in_one_process() -> None:
    secret = random.Random()
    with Workers.start(lambda number: Target("local", lambda x: secret.random(), Fraction(1)), 2) as workers:
        assert workers.processes == []


@pytest.mark.parametrize(("p", "trials"), [(0.3, 40), (0.01, 500), (0.9, 30)])
def test_a_quantile_is_the_first_count_that_is_likely_enough(p: float, trials: int) -> None:
    below = list(itertools.accumulate(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)))
    for level in (0.025, 0.5, 0.975):
        assert quantile(p, trials, level) == next(k for k, total in enumerate(below) if total >= level)


def shown(p: float, q: float, trials: int, rng: Any) -> bool:
    counts = ((int(rng.binomial(trials, p)), trials), (int(rng.binomial(trials, q)), trials))
    return bounds(*counts, 0.0, 1e-4)[0] > 1


def test_what_would_have_been_seen_is_seen() -> None:
    """Of 80 audits at most about four may miss it; that more than 20 do has a probability below 1e-9."""
    rng, p, trials = np.random.default_rng(3), 0.1, 20_000
    epsilon = detectable(p, trials, 1.0, 0.0, 1e-4)
    assert sum(shown(p, p * math.exp(-epsilon), trials, rng) for _ in range(80)) >= 60


def test_that_check_can_fail() -> None:
    rng, p, trials = np.random.default_rng(3), 0.1, 20_000
    too_small = 1 + (detectable(p, trials, 1.0, 0.0, 1e-4) - 1) / 3
    assert sum(shown(p, p * math.exp(-too_small), trials, rng) for _ in range(80)) < 60


def test_a_verdict_without_a_violation_says_what_it_would_have_seen() -> None:
    rng = np.random.default_rng(1)
    target = Target(
        "noisy", partial(lambda rng, x: round((x + rng.laplace(0, 1)) * 1024) / 1024, rng), Fraction(1), pairs=((0, 1),)
    )
    verdict = attack(target, seconds=0.3)
    assert "would have seen ε ≥ " in str(verdict) or "too few outputs" in str(verdict)
