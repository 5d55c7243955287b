"""Certified prices of all registered mechanisms, and claims that are slightly too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dither.audit.exact import prices
from dither.audit.verdict import PROVED, VIOLATES
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import Cut, TwoSided
from dither.mechanisms import Example, Gaussian, Geometric, RandomizedResponse, Threshold, registry
from dither.privacy.hockey import hockey_stick
from dither.privacy.losses import ZCDP, Approx, Pure

EXAMPLES = prices.registered()


def test_every_registered_mechanism_keeps_its_price() -> None:
    shares: list[float] = []
    verdicts = list(prices.over_registry(shares.append))
    assert {verdict.outcome for verdict in verdicts} == {PROVED}
    assert {verdict.target.split("(")[0] for verdict in verdicts} >= {kind.__name__ for kind in registry() if ours(kind)}
    assert shares[-1] == 1.0
    assert all(verdict.epsilon <= prices.up(verdict.claimed[0]) for verdict in verdicts)


def ours(kind: type) -> bool:
    return kind.__module__.startswith("dither.")


@pytest.mark.parametrize(
    ("example", "claim"),
    [
        (Geometric.examples()[0], Pure("0.999999999999")),
        (RandomizedResponse.examples()[0], Pure("0.999999999999")),
        (Gaussian.examples()[0], Approx(1, "9.9e-6")),
        (Gaussian.examples()[4], ZCDP("0.08")),
        (Threshold.examples()[0], Approx(1, "9.999999e-6")),
        (Threshold.examples()[2], Approx("0.9999", "1e-5")),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_price_that_is_slightly_too_low_is_refuted(example: Example, claim: Pure) -> None:
    found = prices.check(example, claim)
    assert found.outcome == VIOLATES
    assert found.pair is not None
    assert found.epsilon > float(found.claimed[0])
    assert found.confidence == 1.0


def test_a_gaussian_has_no_pure_price() -> None:
    assert prices.check(Gaussian.examples()[0], Pure(100)).epsilon == math.inf


def test_delta_counts_everything_beyond_the_window() -> None:
    x, y = Moved(TwoSided(Fraction(3)), 5), TwoSided(Fraction(3))
    found = hockey_stick(x, y, Fraction(1))
    assert found.low <= found.high
    assert found.high - found.low < Fraction(1, 2**300)
    assert hockey_stick(x, x, Fraction(0)).high < Fraction(1, 2**300)
    assert hockey_stick(Cut(Fraction(1), 3), Moved(Cut(Fraction(1), 3), 10), Fraction(50)).low > Fraction(999, 1000)


def test_floats_are_rounded_to_the_safe_side() -> None:
    third = Fraction(1, 3)
    assert Fraction(prices.up(third)) > third > Fraction(prices.down(third))
    assert prices.up(math.inf) == math.inf


def test_what_is_drawn_are_probabilities() -> None:
    points = prices.check(EXAMPLES[0]).evidence["law"]
    assert 0.99 < sum(points["D"]) <= 1.0001
    assert len(points["D"]) == len(points["D'"]) == len(points["output"])
