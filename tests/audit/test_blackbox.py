"""The black box: what it must find, what it must not, and that events are counted on fresh outputs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import pytest

from detection.case import gauss, lap
from dither.audit import NOT_FOUND, VIOLATES, Target, Verdict
from dither.audit.blackbox.attack import attack
from dither.audit.blackbox.confidence import bounds
from dither.audit.blackbox.events import Sample, conjunctions, learned, simple
from dither.audit.blackbox.outputs import Raised, collect, join
from dither.errors import ArgumentError

Batch = Callable[[np.random.Generator, Any, int], Any]
ALIKE: dict[str, Any] = {"most": 16_000, "seconds": 600}  # as many outputs in every run: not as many as there is time for


def target(law: Batch, epsilon: object = 1, pairs: object = ((0, 1),), seed: int = 7, delta: object = 0) -> Target:
    rng = np.random.default_rng(seed)
    batch = lambda data, size: law(rng, data, size)  # noqa: E731
    return Target("test", lambda data: batch(data, 1)[0], epsilon, delta, pairs, "", batch)  # type: ignore[arg-type]


def one_by_one(program: Callable[[Any], Any], pairs: object, epsilon: object = 1) -> Target:
    return Target("test", program, epsilon, pairs=pairs)  # type: ignore[arg-type]


def laplace(scale: float) -> Batch:
    return lambda rng, data, size: data + lap(rng, scale, size)


def test_laplace_noise_at_its_price_is_not_flagged() -> None:
    verdict = attack(target(laplace(1.0)), **ALIKE)
    assert verdict.outcome == NOT_FOUND
    assert 0.8 < verdict.epsilon <= 1
    assert verdict.confidence == 0.95


def test_laplace_noise_at_half_the_scale_is_flagged() -> None:
    verdict = attack(target(laplace(0.5)))
    assert verdict.outcome == VIOLATES
    assert 1 < verdict.epsilon <= 2
    assert verdict.confidence == 0.999


def test_delta_is_part_of_the_claim() -> None:
    sigma = 1.8778756  # (1, 0.01), analytically
    law: Batch = lambda rng, data, size: data + gauss(rng, sigma, size)  # noqa: E731
    assert attack(target(law, delta="0.01"), **ALIKE).outcome == NOT_FOUND
    assert attack(target(law, delta="0.0001"), seconds=600).outcome == VIOLATES


def test_low_bits_of_floats_are_seen() -> None:
    verdict = attack(target(lambda rng, data, size: data + rng.laplace(0, 1, size)))
    assert verdict.outcome == VIOLATES
    assert "not a multiple of 2^-5" in verdict.event


def fails_on_zero(rows: list[int]) -> float:
    return sum(1 / row for row in rows) + float(lap(np.random.default_rng(), 1.0, 1)[0])


@pytest.mark.parametrize(
    ("program", "pair", "word"),
    [
        (fails_on_zero, ([1, 2], [1, 2, 0]), "number|raise"),
        (lambda rows: [0.0] * len(rows), ([1], [1, 1]), "values"),
        (lambda rows: dict.fromkeys(rows, 0), (["a"], ["a", "b"]), "keys"),
        (lambda rows: None if not rows else 1, ([], [1]), "None|number"),
        (lambda rows: "few" if len(rows) < 2 else "many", ([1], [1, 1]), "output"),
        (lambda rows: math.nan if 9 in rows else 1.0, ([1], [1, 9]), "output"),
        (lambda rows: {len(rows)}, ([1], [1, 9]), "output"),
        (lambda rows: 10**400 if 9 in rows else 1, ([1], [1, 9]), "output"),
        (lambda rows: np.array([[len(rows), 1], [1, 1]]), ([1], [1, 9]), "output"),
    ],
)
def test_whatever_tells_the_inputs_apart_is_an_event(program: Callable[[Any], Any], pair: object, word: str) -> None:
    verdict = attack(one_by_one(program, (pair,)), seconds=10)
    assert verdict.outcome == VIOLATES
    assert any(part in verdict.event for part in word.split("|"))


def test_a_constant_is_not_flagged() -> None:
    assert attack(one_by_one(lambda rows: 7, (([1], [2]),), epsilon=0), seconds=0.2).outcome == NOT_FOUND
    assert attack(one_by_one(lambda rows: None, (([1], [2]),), epsilon=0), seconds=0.2).outcome == NOT_FOUND


def test_a_batch_that_fails_is_drawn_one_by_one() -> None:
    def batch(data: int, size: int) -> list[int]:
        raise ZeroDivisionError

    def run(data: int) -> int:
        return 1 // data

    verdict = attack(Target("test", run, Fraction(1), pairs=((0, 1),), batch=batch), seconds=0.5)
    assert verdict.outcome == VIOLATES


def test_a_batch_that_fails_now_and_then_makes_no_false_alarm() -> None:
    """Errors at one in 30,000 runs and at e times as many: private at epsilon 1, unless batches and single runs are mixed."""
    rng = np.random.default_rng(9)

    def batch(data: int, size: int) -> Any:
        if (rng.random(size) < math.exp(data) / 30_000).any():
            raise OSError
        return np.zeros(size)

    seldom = Target("test", lambda data: batch(data, 1)[0], Fraction(1), pairs=((0, 1),), batch=batch)
    assert attack(seldom, seconds=0.4).outcome == NOT_FOUND


def test_the_pair_is_turned_so_that_the_event_favours_its_first_input() -> None:
    verdict = attack(target(lambda rng, data, size: np.full(size, data), pairs=((0, 1), (2, 2))))
    k, n = verdict.evidence["held on D"]
    assert verdict.pair in ((0, 1), (1, 0))
    assert (k, verdict.evidence["held on D'"][0]) == (n, 0)


def test_it_stops_as_soon_as_it_knows() -> None:
    quick = attack(target(lambda rng, data, size: np.full(size, data)))
    slow = attack(target(lambda rng, data, size: np.full(size, data)), tighten=True, most=64_000)
    assert quick.evidence["outputs drawn"] < 20_000 < slow.evidence["outputs drawn"]
    assert slow.epsilon > quick.epsilon


def test_the_membership_advantage_is_a_lower_bound() -> None:
    law: Batch = lambda rng, bit, size: np.where(rng.random(size) < 0.75, bit, 1 - bit)  # noqa: E731
    verdict = attack(target(law, epsilon="1.0987"), **ALIKE)
    assert verdict.advantage is not None
    assert 0.45 < verdict.advantage <= 0.5


def many_columns(rng: np.random.Generator, data: Any, size: int) -> Any:
    """Outputs independent of the data, with many candidate events that chance could favour."""
    return rng.normal(size=(size, 12))


@pytest.mark.parametrize("left", [5000, 20_000])
def test_a_budget_that_runs_out_meanwhile_makes_no_false_alarm(left: int) -> None:
    """If D always ran first, only D′ would meet the end of the budget."""
    budget, dice = [left], random.Random(4)

    def noisy(data: list[int]) -> int:
        budget[0] -= 1
        if budget[0] < 0:
            raise RuntimeError("the budget is spent")
        return len(data) + round(2 * (dice.expovariate(1) - dice.expovariate(1)))

    audited = Target("count", noisy, Fraction(1), pairs=(([0], [0, 1]),))
    assert attack(audited, strict=1e-9, seconds=0.5).outcome == NOT_FOUND


def test_whose_turn_it_is_does_not_show() -> None:
    runs, dice = count(), random.Random(5)

    def numbered(data: list[int]) -> tuple[int, int]:
        return len(data) + round(2 * (dice.expovariate(1) - dice.expovariate(1))), next(runs)

    audited = Target("numbered", numbered, Fraction(1), pairs=(([0], [0, 1]),))
    assert attack(audited, strict=1e-9, seconds=0.5).outcome == NOT_FOUND


def test_a_place_in_memory_is_no_output() -> None:
    kept: list[object] = []

    def thing(data: list[int]) -> object:
        kept[:] = [object() for _ in data]
        return object()

    audited = Target("thing", thing, Fraction(1), pairs=(([0], [0, 1]),))
    assert attack(audited, seconds=0.3).outcome == NOT_FOUND


@pytest.mark.parametrize("seed", range(4))
def test_chance_finds_are_not_believed(seed: int) -> None:
    verdict = attack(target(many_columns, epsilon=0, seed=seed), most=500, seconds=600)
    assert verdict.outcome == NOT_FOUND
    assert verdict.epsilon == 0


def test_that_check_can_fail() -> None:
    """Counted on the outputs they were chosen by, the same events look like violations."""
    rng, believed = np.random.default_rng(1), 0
    for _ in range(2):
        sides = [collect(many_columns(rng, 0, 3000)) for _ in range(2)]
        sample = Sample((sides[0], sides[1]), 0.0)
        for one in simple(sample):
            counts = [int(one.mask(side).sum()) for side in sides]
            believed += bounds((counts[one.side], 3000), (counts[1 - one.side], 3000), 0.0, 0.05)[0] > 0
    assert believed > 0


def test_an_event_on_one_output_is_the_event_on_a_sample() -> None:
    rng = np.random.default_rng(5)
    raw = [[(x + lap(rng, 1.0, 3)).tolist() for _ in range(1500)] for x in (0, 1)]
    sides = [collect(part) for part in raw]
    sample = Sample((sides[0], sides[1]), 0.0)
    found = simple(sample)
    found += learned(sample) + conjunctions(sample, found[:2])
    for one in found:
        event = one.event()
        assert event.words
        assert [event.holds(output) for output in raw[0][:20]] == one.mask(sides[0])[:20].tolist()


def test_samples_of_different_kinds_and_widths_join() -> None:
    parts = [collect([1, None]), collect([[1, 2, 3], Raised("ValueError")])]
    whole = join(parts)
    assert len(whole) == 4
    assert whole.width == 3
    assert whole.kind("raises ValueError").tolist() == [False, False, False, True]
    assert whole.marks()[0] == parts[0].marks()[0]
    assert len(set(whole.marks().tolist())) == 4


def test_a_target_without_pairs_is_refused() -> None:
    with pytest.raises(ArgumentError, match="pair"):
        attack(one_by_one(lambda rows: 1, ()))
    with pytest.raises(ArgumentError, match="errors must satisfy"):
        attack(one_by_one(lambda rows: 1, ((0, 1),)), strict=0.5, error=0.05)


@pytest.mark.parametrize("claim", [{"epsilon": -1}, {"epsilon": 1, "delta": 1}, {"epsilon": math.nan}])
def test_senseless_claims_are_refused(claim: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        Target("test", lambda data: data, **claim)
    with pytest.raises(ArgumentError):
        Target("test", 3, Fraction(1))  # type: ignore[arg-type]


def test_a_verdict_is_one_honest_sentence() -> None:
    verdict = attack(target(laplace(0.25)))
    assert str(verdict).startswith("test: violates ε = 1: true ε ≥ ")
    assert "at 99.9 %" in str(verdict)
    nothing = Verdict("t", "exact", "proved", (Fraction(1), Fraction(0)), 1.0, 1.0, None, "")
    assert str(nothing) == "t: proved up to ε = 1, claimed ε = 1 (exact, 0 s)"
