"""Arrays are released part by part: each number is its own clamped value plus noise, and the input stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.exact import replay
from dither.exact.laws.base import Law, add
from dither.exact.laws.coins import Flat
from dither.exact.laws.gaussian import LARGEST_VARIANCE
from dither.exact.laws.gaussian import Gaussian as GaussianLaw
from dither.exact.laws.geometric import LARGEST_SCALE, OneSided, TwoSided
from dither.exact.samplers.buckets import Buckets
from dither.exact.samplers.digits import Digits
from dither.mechanisms import L1, L2, Gaussian, Geometric, Laplace
from dither.mechanisms.base import _PART

LAWS: list[Law] = [TwoSided(2), TwoSided(10**6), OneSided(10**4), GaussianLaw(9), GaussianLaw(10**10), Flat(6)]
ENDS = np.iinfo(np.int64)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("size", [0, 1, 40_000])
def test_adding_a_law_adds_its_draws(law: Law, size: int) -> None:
    numbers = np.arange(size) * 10**9 - 7
    with replay.stream(b"arrays"):
        noise = law.draw(size)
    moved = numbers.copy()
    with replay.stream(b"arrays"):
        law.add_to(moved)
    assert (moved - numbers).tolist() == noise.tolist()


def test_no_draw_of_the_widest_law_can_overflow() -> None:
    """Cells have 16 bits in arrays, and m further ones: with answers within 2^62, sums stay within 64 bits."""
    assert 16 + Digits(LARGEST_SCALE, two_sided=True).m < 62
    assert 16 + Buckets(LARGEST_VARIANCE).m < 62


def test_sums_saturate_where_noise_is_that_large() -> None:
    numbers, noise = np.array([2**62, -(2**62), 5]), np.array([2**62, -(2**62) - 1, -1])
    assert add(numbers, noise).tolist() == [ENDS.max, ENDS.min, 4]
    out = numbers.copy()
    assert add(numbers, noise, out=out) is out
    assert out.tolist() == [ENDS.max, ENDS.min, 4]


SIZE = 2 * _PART + 3
RELEASES = [
    Geometric(epsilon=1000, sensitivity=1),
    Gaussian(scale="1/20", sensitivity=1),
    Gaussian(scale="1/80", sensitivity=L2("1/4", dimension=SIZE), grid="1/4"),
    Laplace.with_scale("1/80", sensitivity=L1("1/4", dimension=SIZE), grid="1/4"),
]


@pytest.mark.parametrize("mechanism", RELEASES, ids=repr)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.int8])
def test_parts_meet_at_their_ends_and_the_input_stays(mechanism: Any, kind: type) -> None:
    exact = (np.arange(SIZE) % 100).astype(kind)
    kept = exact.copy()
    released = mechanism.release(exact)
    assert (exact == kept).all()
    assert len(released) == SIZE
    assert (np.abs(released.astype(float) - kept.astype(float)) <= 1).all()  # noise of nearly zero: no part is lost or moved
    assert len(mechanism.release(exact[:0])) == 0


def test_values_beyond_the_clamp_are_clamped_in_every_width() -> None:
    sure = Geometric(epsilon=1000, sensitivity=1)
    assert sure.release(np.array([ENDS.min, ENDS.max])).tolist() == [-(2**62), 2**62]
    assert sure.release(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**62]
