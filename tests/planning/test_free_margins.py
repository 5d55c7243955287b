"""Margins of free answers hold as often as they say: by the exact law of the noise, computed here by convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.curator import Curator
from dither.free import FreeAnswer, find_offer
from dither.mechanisms import Gaussian, Geometric
from dither.planning import margins
from dither.planning.free.derive import Derived
from dither.planning.free.readings import MergedRatio
from dither.planning.free.search import Search
from dither.planning.terms import Terms
from dither.query.read import read
from planning.free_survey import survey

SURE = Fraction(19, 20)
TIMES = 4000
TESTS = 2  # sampled checks in this file
Law = NDArray[np.float64]


def geometric(scale: float, reach: int) -> Law:
    """The law of one two-sided geometric variable, from -reach to reach."""
    q = math.exp(-1 / scale)
    return np.array([(1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)])


def gaussian(scale: float, reach: int) -> Law:
    law = np.array([math.exp(-(k * k) / (2 * scale * scale)) for k in range(-reach, reach + 1)])
    normal: Law = law / law.sum()
    return normal


def convolved(laws: Sequence[Law]) -> Law:
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law)
    return total


def inside(law: Law, t: float, unit: float = 1.0) -> float:
    """The probability that the sum, in units, is within t."""
    middle = (len(law) - 1) // 2
    return float(law[np.abs((np.arange(len(law)) - middle) * unit) <= t + 1e-9].sum())


SUMS = [(0.4, 3), (1.0, 8), (2.5, 40), (20.0, 5)]


@pytest.mark.parametrize(("scale", "count"), SUMS)
@pytest.mark.parametrize("kind", [geometric, gaussian])
def test_the_reach_of_a_plain_sum_is_exact(scale: float, count: int, kind: Any) -> None:
    one, law = np.ones(1), convolved([kind(scale, math.ceil(40 * scale + 10))] * count)
    for confidence in (0.5, 0.95, 0.999):
        found = margins.whole_sum(one, scale * one, count * one, confidence, kind is gaussian)
        assert found is not None
        assert inside(law, found) >= confidence - 1e-10
        assert inside(law, found - 1) < confidence


@pytest.mark.parametrize("kind", [geometric, gaussian])
def test_the_reach_of_a_weighted_sum_is_exact(kind: Any) -> None:
    reach = 60
    wide = np.zeros(3 * 2 * reach + 1)
    wide[::3] = kind(1.5, reach)  # one that counts three times
    law = convolved([wide, wide, kind(2.0, reach), kind(2.0, reach)])
    found = margins.whole_sum(np.array([3.0, 1.0]), np.array([1.5, 2.0]), np.array([2.0, 2.0]), 0.95, kind is gaussian)
    assert found is not None
    assert inside(law, found - 1) < 0.95 <= inside(law, found) + 1e-10


def test_that_check_can_fail() -> None:
    """The reach of a scale that is 10 % too small does not hold."""
    one, law = np.ones(1), convolved([geometric(20.0, 900)] * 5)
    small = margins.whole_sum(one, 18 * one, 5 * one, 0.95, False)
    assert small is not None
    assert inside(law, small) < 0.95


def free(curator: Curator, question: str) -> FreeAnswer:
    answer = curator.ask(question, free=True)
    assert isinstance(answer, FreeAnswer)
    return answer


def test_the_margin_of_a_total_holds_by_the_exact_law_of_its_groups() -> None:
    with survey() as curator:
        curator.ask("SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex", epsilon="0.5")
        (margin,) = free(curator, "SELECT COUNT(*) AS n FROM people").margins()["n"]
        law = convolved([geometric(2.0, 90)] * 8)
        assert margin is not None
        assert inside(law, margin - 1) < 0.95 <= inside(law, margin)
        one = Geometric(epsilon="0.5", sensitivity=1).margin("0.95")
        assert inside(law, one) < 0.95, "the margin of one group would not hold"


def test_groups_of_different_sizes_have_margins_of_their_own() -> None:
    question = "SELECT CASE WHEN region = 'north' THEN 'up' ELSE 'down' END AS k, COUNT(*) AS n FROM people GROUP BY k"
    with survey() as curator:
        curator.ask("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon="0.25")
        answer, quote = free(curator, question), curator.quote(question, epsilon="0.1")
    by_key = dict(zip(answer["k"], answer.margins()["n"], strict=True))
    for key, count in (("up", 1), ("down", 3)):
        law, margin = convolved([geometric(4.0, 150)] * count), by_key[key]
        assert margin is not None
        assert inside(law, margin - 1) < 0.95 <= inside(law, margin)
    assert quote.free is not None
    assert quote.free.margins == {"n": by_key["down"]}
    assert "up to ±" in str(quote)


def test_the_margin_of_combined_answers_holds_by_their_joint_law() -> None:
    with survey() as curator:
        curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon="0.5")
        curator.ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        answer = free(curator, "SELECT COUNT(*) AS n FROM people")
    (margin,), (reading,) = answer.margins()["n"], answer.plan.readings
    terms = reading.linear(answer.plan.noises).terms  # type: ignore[union-attr]
    weights = {answer.plan.noises[term.noise].scale: term.weight for term in terms}
    assert len(answer.made_of) == 2
    assert weights[2.0] + weights[1.0] == 1, "both estimates are of the same total"
    laws = {2.0: convolved([geometric(2.0, 90)] * 2), 1.0: convolved([geometric(1.0, 60)] * 2)}
    held = sum(
        float(p * q)
        for (i, p), (j, q) in product(*(list(enumerate(laws[scale])) for scale in (2.0, 1.0)))
        if abs((i - 180) * float(weights[2.0]) + (j - 120) * float(weights[1.0])) <= _before_rounding(margin)
    )
    assert held >= 0.95
    assert margin is not None
    assert margin <= 6, "less than of either alone"


def _before_rounding(margin: float | None) -> float:
    """The truth is whole, so a value that is off by less than margin + 1/2 is shown within the margin."""
    return (margin or 0.0) + 0.5 - 1e-9


def offer(curator: Curator, question: str) -> Derived:
    terms = Terms.free("0.95", None, None, None)
    search = Search.of(read(question, curator.catalog), curator.catalog, terms)
    return find_offer(curator.session, search, terms, None).derived


@pytest.mark.parametrize("rows", [3, 200])
def test_the_margin_of_a_mean_over_groups_holds(rows: int) -> None:
    """Twelve noisy numbers: A and B of six groups, drawn again and again around the same exact ones."""
    with survey() as curator:
        curator.ask("SELECT region, sex, AVG(income) AS m FROM people WHERE region <> 'west' GROUP BY region, sex", epsilon=1)
        derived = offer(curator, "SELECT AVG(income) AS m FROM people WHERE region <> 'west'")
    (reading,), noises = derived.plan.readings, derived.plan.noises
    assert isinstance(reading, MergedRatio)
    steps, (width,) = reading.grid.steps, set(derived.widths)
    exact = np.tile([steps // 4 * rows, (steps - steps // 4) * rows], width[0] // 2)
    cells = [np.asarray(noises[0].mechanism.release(np.tile(exact, TIMES).astype(np.int64))).reshape(TIMES, -1)]
    true = float(reading.grid.low + reading.grid.step * (steps // 4))
    off = np.abs(np.array(reading.values(noises, cells), float) - true)
    wide = np.array(reading.margins(noises, cells, SURE), float)
    assert np.mean(off <= wide) >= binom.ppf(share("free answers", TESTS), TIMES, 0.95) / TIMES
    assert np.mean(off <= wide / 2) < 0.95, "half of it would not do"


def test_gaussian_totals_have_gaussian_margins() -> None:
    import pandas as pd

    frame = pd.DataFrame({"id": [i % 50 for i in range(2000)], "k": [i % 40 for i in range(2000)]})
    table = dt.Table(frame, unit="id", max_rows=1, max_groups=40, columns={"k": dt.values(*range(40))})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10, delta="1e-5")), ledger=":memory:") as curator:
        groups = curator.ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1, left_out=False)
        assert isinstance(groups.plan.noises[0].mechanism, Gaussian)
        total = free(curator, "SELECT COUNT(*) AS n FROM t")
    (margin,), scale = total.margins()["n"], groups.plan.noises[0].scale
    assert margin == pytest.approx(1.96 * scale * math.sqrt(40), rel=0.01)
    assert total["n"] == [sum(groups["n"])]


@pytest.mark.parametrize("counts", [(3.0, 2.0), (40.0, 30.0)])
def test_wide_noise_reaches_as_far_as_its_continuous_law(counts: tuple[float, float]) -> None:
    """In steps of a hundredth of the scale, the exact law on the grid is close to the continuous one."""
    times, scales = np.array([1.0, 3.0]), np.array([100.0, 100.0])
    exact = margins.whole_sum(times, scales, np.array(counts), 0.95, False)
    assert exact is not None
    assert margins.laplace_sum(times * scales, np.array(counts), 0.95) == pytest.approx(exact, rel=0.005)


def test_a_sum_with_weights_of_both_signs_has_a_tight_margin() -> None:
    """SUM of values from -50 to 200 over 121 groups weighs its cells by 200 and -50: 242 wide variables of two kinds."""
    with survey() as curator:
        curator.ask("SELECT age, SUM(income) AS s, COUNT(*) AS n FROM people GROUP BY age", epsilon=1)
        answer = free(curator, "SELECT SUM(income) AS s FROM people WHERE age IS NOT NULL")
    (margin,), (reading,), noises = answer.margins()["s"], answer.plan.readings, answer.plan.noises
    terms = reading.linear(noises).terms  # type: ignore[union-attr]
    deviation = math.sqrt(sum((float(t.weight) * noises[t.noise].scale) ** 2 * 2 for t in terms))
    assert len(terms) > 40
    assert margin == pytest.approx(1.96 * deviation, rel=0.01)
