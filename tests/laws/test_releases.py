"""What comes out follows the law that was stated. Sampled, with a false-alarm probability from the shared allowance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from distribution.allowance import share
from distribution.fit import fits
from dither.exact.laws.base import Law
from dither.mechanisms import (
    L1,
    Example,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    Mechanism,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
    Threshold,
    TruncatedGeometric,
    registry,
)

EXAMPLES = [example for kind in registry() if kind.__module__.startswith("dither.") for example in kind.examples()]
NAMES = [f"{type(e.mechanism).__name__}-{i}" for i, e in enumerate(EXAMPLES)]
ARRAYS: list[tuple[Mechanism, int]] = [
    (Geometric(epsilon="1/3", sensitivity=5), 4),
    (Laplace(epsilon=1, sensitivity=L1(1, dimension=10**6), grid="1/4"), 2),
    (Laplace(epsilon=1, sensitivity=L1(1, dimension=10**6), grid="1/1000000"), 2),
    (TruncatedGeometric(epsilon="1/2", sensitivity=1, n=6), 5),
    (Gaussian(epsilon=1, delta="1e-5", sensitivity=1), -3),
    (RandomizedResponse(epsilon=1, categories=4), 2),
    (RandomizedResponse(p="1/3", categories=7), 6),
    (Threshold(epsilon=1, delta="1e-5"), 12),
    (Threshold(epsilon="1/2", delta="1e-3", rule="geometric"), 12),
]
TESTS = len(EXAMPLES) + len(ARRAYS) + 10
MANY, FEW = 20_000, 1_500


def places(mechanism: Mechanism, law: Law, released: list[object]) -> np.ndarray:
    """The law's values that these releases stand for."""
    first, last = law.span()
    if first is None or last is None:
        return np.array([int(value / mechanism.outcome(1)) for value in released])
    place = {mechanism.outcome(k): k for k in range(first, last + 1)}
    return np.array([place[value] for value in released])


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_single_releases_follow_the_law(example: Example) -> None:
    law = example.mechanism.law(example.exact)
    drawn = places(example.mechanism, law, [example.mechanism.release(example.exact) for _ in range(FEW)])
    assert fits(drawn, law, share("mechanisms", TESTS))


@pytest.mark.parametrize(("mechanism", "exact"), ARRAYS, ids=[type(m).__name__ for m, _ in ARRAYS])
def test_each_coordinate_of_an_array_follows_the_law(mechanism: Mechanism, exact: int) -> None:
    law = mechanism.law(exact)
    released = mechanism.release(np.full(MANY, exact)).tolist()
    assert fits(places(mechanism, law, released), law, share("mechanisms", TESTS))


SCORES = np.array([5, 3, 3, 0])


@pytest.mark.parametrize("kind", [Exponential, NoisyMax, PermuteAndFlip])
def test_scores_in_an_array_follow_the_law(kind: type) -> None:
    choose = kind(epsilon=1, sensitivity=1)
    drawn = np.array([choose.release(SCORES) for _ in range(FEW)])
    assert fits(drawn, choose.law(SCORES), share("mechanisms", TESTS))


def test_noise_a_tenth_off_is_seen() -> None:
    drawn = Geometric(epsilon=1, sensitivity=10).release(np.zeros(10 * MANY, dtype=int))
    assert fits(drawn, Geometric(epsilon=1, sensitivity=10).law(0), share("mechanisms", TESTS))
    assert not fits(drawn, Geometric(epsilon=1, sensitivity=9).law(0), share("mechanisms", TESTS))


@pytest.mark.parametrize("kind", [Exponential, NoisyMax, PermuteAndFlip])
def test_a_choice_with_half_the_noise_is_seen(kind: type) -> None:
    half = kind(epsilon=1, sensitivity=1, monotone=True)
    drawn = np.array([half.release(SCORES) for _ in range(FEW)])
    assert not fits(drawn, kind(epsilon=1, sensitivity=1).law(SCORES), share("mechanisms", TESTS))


def test_a_session_of_sparse_vector_with_other_noise_is_seen() -> None:
    watch, other = (SparseVector(epsilon=e, sensitivity=1, threshold=0) for e in (2, Fraction(1, 2)))
    drawn = places(other, other.law((-2, 2)), [other.release((-2, 2)) for _ in range(FEW)])
    assert not fits(drawn, watch.law((-2, 2)), share("mechanisms", TESTS))
