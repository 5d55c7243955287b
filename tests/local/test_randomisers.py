"""Local randomisers: their exact probabilities keep the price, draws follow them, and estimates are right."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from distribution.allowance import share
from distribution.fit import events_fit
from dither.exact import balls
from dither.local.chances import WHOLE, many_flips
from dither.local.randomisers import POOL, RANDOMISERS, Hadamard, Hashing, Randomiser, Response, Subset, Unary, hashed

Law = dict[bytes, Fraction]
PRICES = [Fraction(1, 10), Fraction(1), Fraction(3)]
each_kind = pytest.mark.parametrize("kind", RANDOMISERS)
each_price = pytest.mark.parametrize("epsilon", PRICES, ids=str)


def response(made: Response, value: int) -> Law:
    keep = Fraction(made.keep, WHOLE)
    return {bytes([k]): keep if k == value else (1 - keep) / (made.size - 1) for k in range(made.size)}


def unary(made: Unary, value: int) -> Law:
    other = Fraction(made.other, WHOLE)
    found = {}
    for bits in product((0, 1), repeat=made.size):
        chances = [Fraction(1, 2) if k == value else other if bit else 1 - other for k, bit in enumerate(bits)]
        found[packed(bits)] = math.prod(chances, start=Fraction(1))
    return found


def subset(made: Subset, value: int) -> Law:
    keep, size, chosen = Fraction(made.keep, WHOLE), made.size, made.chosen
    found = {}
    for picked in combinations(range(size), chosen):
        inside = value in picked
        ways = math.comb(size - 1, chosen - 1) if inside else math.comb(size - 1, chosen)
        found[packed([int(k in picked) for k in range(size)])] = (keep if inside else 1 - keep) / ways
    return found


def hadamard(made: Hadamard, value: int) -> Law:
    keep = Fraction(made.keep, WHOLE)
    found = {}
    for place in range(made.places):
        right = (place & value).bit_count() % 2
        for sign in (0, 1):
            found[(2 * place + sign).to_bytes(4, "little")] = (keep if sign == right else 1 - keep) / made.places
    return found


def hashing(made: Hashing, value: int) -> Law:
    """For two functions of the pool: each is drawn alike, so what one reveals is what all reveal."""
    found = {}
    for function in (0, 40_000):
        bucket = int(hashed(np.array([function]), np.int64(value), made.inner.size)[0])
        for report, chance in response(made.inner, bucket).items():
            found[function.to_bytes(2, "little") + report] = chance / POOL
    return found


LAWS: dict[str, Any] = {"response": response, "unary": unary, "subset": subset, "hadamard": hadamard, "hashing": hashing}


def packed(bits: Any) -> bytes:
    return np.packbits(np.array(bits, dtype=np.uint8)).tobytes()


def worst(made: Randomiser, size: int) -> Fraction:
    """The largest factor between the probabilities of a report, over all pairs of values."""
    laws = [LAWS[made.kind](made, value) for value in range(size)]
    return max(one[report] / other[report] for one in laws for other in laws for report in one)


def costs_at_most(ratio: Fraction, epsilon: Fraction) -> bool:
    return balls.certainly_at_most(lambda: balls.ball(ratio) / balls.exp(epsilon), Fraction(1))


@each_kind
@each_price
def test_reports_cost_at_most_epsilon(kind: str, epsilon: Fraction) -> None:
    made = RANDOMISERS[kind](epsilon, 5)
    assert worst(made, 5) <= max(made.ratio(), 1 / made.ratio())
    assert costs_at_most(worst(made, 5), epsilon)


@each_price
def test_that_the_next_chance_would_cost_more(epsilon: Fraction) -> None:
    for made, name in ((Response(epsilon, 5), "keep"), (Unary(epsilon, 5), "other"), (Hadamard(epsilon, 5), "keep")):
        moved = getattr(made, name) + (-2 if name == "other" else 2)
        broken = replace(made)
        object.__setattr__(broken, name, moved)
        assert not costs_at_most(worst(broken, 5), epsilon)


@each_kind
@each_price
def test_probabilities_add_up_to_one(kind: str, epsilon: Fraction) -> None:
    total = sum(LAWS[kind](RANDOMISERS[kind](epsilon, 5), 2).values())
    assert total == (Fraction(2, POOL) if kind == "hashing" else 1)


def drawn_as(made: Randomiser, law: Law, size: int = 40_000) -> bool:
    reports = made.encode(np.full(size, 2, dtype=np.int64))
    seen = Counter(row.tobytes() for row in reports)
    shares = [seen[report] / size for report in law]
    return events_fit(shares, [float(chance) for chance in law.values()], size, share("local reports", tests=12))


@pytest.mark.parametrize("kind", [kind for kind in RANDOMISERS if kind != "hashing"])
def test_draws_follow_the_probabilities(kind: str) -> None:
    made = RANDOMISERS[kind](Fraction(1), 5)
    assert drawn_as(made, LAWS[kind](made, 2))


def test_that_check_can_fail() -> None:
    made = Response(Fraction(1), 5)
    assert not drawn_as(made, response(Response(Fraction(11, 10), 5), 2))


def test_every_function_of_the_pool_is_drawn_and_hashes_fairly() -> None:
    made = Hashing(Fraction(1), 1000)
    functions = np.arange(POOL)
    buckets = made.inner.size
    for value in (0, 1, 999, 2**32 - 1):
        counts = np.bincount(hashed(functions, np.int64(value), buckets), minlength=buckets) / POOL
        assert np.abs(counts - 1 / buckets).max() < 0.01
    met = (hashed(functions, np.int64(3), buckets) == hashed(functions, np.int64(4), buckets)).mean()
    assert abs(met - 1 / buckets) < 0.01


@pytest.mark.parametrize("chance", [0, 1, 1 << 24, (1 << 24) + 1, 0x12345678, WHOLE - 1, WHOLE])
def test_many_coins_have_their_chance(chance: int) -> None:
    found = float(many_flips(500, 400, chance).mean())
    assert events_fit([found], [chance / WHOLE], 200_000, share("local reports", tests=12))


# Variance times reports of a rare value's share, at epsilon 1 and 1024 values.
@pytest.mark.parametrize(
    ("kind", "variance"), [("response", 347.1), ("unary", 3.683), ("hashing", 3.692), ("subset", 3.674), ("hadamard", 4.683)]
)
def test_variances_are_those_of_the_literature(kind: str, variance: float) -> None:
    assert float(RANDOMISERS[kind](Fraction(1), 1024).variance(0.0)) <= 1.02 * variance


@each_kind
def test_estimates_are_unbiased_and_spread_as_stated(kind: str) -> None:
    made, people = RANDOMISERS[kind](Fraction(1), 6), 4000
    truth = np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0])
    values = np.repeat(np.arange(6), (truth * people).astype(int))
    found, stated = [], []
    for _ in range(60):
        shares, variances = made.estimate(made.count(made.encode(values)), people, np.arange(6))
        found.append(shares)
        stated.append(variances)
    spread = np.sqrt(np.mean(stated, axis=0))
    assert (np.abs(np.mean(found, axis=0) - truth) < 7 * spread / math.sqrt(60)).all()
    # The people do not change from run to run, so only the coins spread.
    assert (np.std(found, axis=0) < 1.8 * spread).all()


@each_kind
def test_what_no_value_gives_is_not_valid(kind: str) -> None:
    made = RANDOMISERS[kind](Fraction(1), 5)
    assert made.valid(made.encode(np.arange(5, dtype=np.int64))).all()
    assert not made.valid(np.full((1, made.width), 255, dtype=np.uint8)).any()
