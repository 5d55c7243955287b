"""A quantile weighs every step of its grid, and its margin holds the true quantile at 99 %, whatever the data."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.mechanisms import Exponential
from dither.planning.releases.quantile import COVERED, Choice, Choices
from dither.planning.releases.ranks import RATIO, rank_runs, rank_scores, repeats, width_runs, widths
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import AddRemove
from dither.query.nodes import Column
from dither.query.work import SCALE, Histogram, Quantised

SHARES = [Fraction(1, 2), Fraction(1, 100), Fraction(99, 100), Fraction(1, 3), Fraction(999, 1000)]
histograms = st.dictionaries(st.integers(0, 30), st.integers(1, 5 * SCALE), max_size=8)


def by_hand(histogram: dict[int, int], p: Fraction, b: int) -> int:
    """The score of b, from its definition."""
    total = sum(histogram.values())
    before = sum(w for bin, w in histogram.items() if bin < b)
    off = max(Fraction(0), before - p * total, p * total - before - histogram.get(b, 0))
    return -int(off * p.denominator)


@given(histogram=histograms, p=st.sampled_from(SHARES), more=st.integers(0, 40))
def test_runs_are_the_scores_of_all_steps(histogram: dict[int, int], p: Fraction, more: int) -> None:
    steps = max(histogram, default=0) + more
    runs = rank_runs(histogram, p, steps)
    assert runs.expanded().tolist() == [by_hand(histogram, p, b) for b in range(steps + 1)]
    assert rank_scores(histogram, p, np.arange(steps + 1)).tolist() == runs.expanded().tolist()
    assert len(runs.counts) <= 2 * len(histogram) + 1


def test_scores_are_exact_for_as_many_rows_as_there_can_be() -> None:
    """2^40 rows of weight 2^16, and a share in thousandths: beyond 64 bits the score is cut, and otherwise exact."""
    p, half = Fraction(1, 1000), 1 << 55
    histogram = {3: half, 5: 1, 9: half - 1}
    scores = rank_scores(histogram, p, np.arange(12)).tolist()
    assert scores == [max(by_hand(histogram, p, b), -(1 << 62)) for b in range(12)]
    assert scores[3] == 0
    assert scores[9] < -(1 << 61)
    assert rank_runs(histogram, p, 11).expanded().tolist() == scores


def test_the_widths_before_one_stand_for_few_candidates() -> None:
    """The constant in the proof: all smaller widths together weigh less than RATIO times as much, at equal scores."""
    counts = repeats(231)
    assert all(sum(counts[:k]) < RATIO * counts[k] for k in range(231))
    assert not all(sum(counts[:k]) < (RATIO - 1) * counts[k] for k in range(231))


# --- the margin, by all outcomes ------------------------------------------------------------------------------------------


def choices(epsilon: Fraction, p: Fraction, high: int) -> Choices:
    grid = Quantised(Column("x"), Fraction(0), Fraction(1), high)
    noise = Choice(Column("x"), grid, p, max_rows=1).pure(epsilon, Bounding(1, 1, 1, AddRemove()))
    assert isinstance(noise, Choices)
    return noise


def chances(mechanism: Exponential, scores: Any, counts: Any = 1) -> Any:
    exponent = float(mechanism.epsilon) * np.asarray(scores, dtype=float) / (2 * float(mechanism.sensitivity))
    weight = counts * np.exp(exponent - exponent.max())
    return weight / weight.sum()


def quantiles(histogram: dict[int, int], p: Fraction, steps: int) -> tuple[int, int]:
    """The smallest and the largest value whose rank is within one row of p: all usual definitions lie between them."""
    total, row = sum(histogram.values()), SCALE
    upto = np.cumsum([histogram.get(b, 0) for b in range(steps + 1)])
    low = min(b for b in range(steps + 1) if upto[b] >= min(p * total - row, total) or b == steps)
    high = max(b for b in range(steps + 1) if (upto[b - 1] if b else 0) <= max(p * total + row, 0))
    return low, high


def missed(noise: Choices, histogram: dict[int, int], slack: int) -> float:
    """The probability that the interval leaves out a quantile, over all values and widths."""
    draft = noise.of
    p, steps = draft.p, draft.grid.steps  # type: ignore[attr-defined]
    low, high = quantiles(histogram, p, steps)
    values = chances(noise.mechanism, rank_scores(histogram, p, np.arange(steps + 1)))
    wrong = 0.0
    for value, chance in enumerate(values):
        runs = width_runs(histogram, p, value, steps, slack)
        own = chances(noise.width, runs.scores, runs.counts)
        around = np.array(widths(max(value, steps - value)))
        bad = (np.maximum(value - around, 0) > low) | (np.minimum(value + around, steps) < high)
        wrong += chance * float(own[bad].sum())
    return wrong


spread = st.lists(st.integers(0, 60), max_size=40).map(lambda rows: {b: SCALE * rows.count(b) for b in set(rows)})
piled = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 400), st.integers(0, 400)).map(
    lambda x: {b: SCALE * n for b, n in ((x[0], x[2]), (x[1], x[3])) if n}
)


@given(histogram=spread | piled, p=st.sampled_from(SHARES), epsilon=st.sampled_from(["1/10", "1", "20"]))
@settings(max_examples=60, deadline=None)
def test_the_margin_holds_every_quantile_at_99_percent(histogram: dict[int, int], p: Fraction, epsilon: str) -> None:
    noise = choices(Fraction(epsilon), p, 60)
    assert missed(noise, histogram, noise.of.slack(noise.width)) <= 1 - COVERED  # type: ignore[attr-defined]


def test_that_check_can_fail() -> None:
    """Without the slack, intervals end at the quantile's own rank and often miss it."""
    noise = choices(Fraction(1), Fraction(1, 2), 60)
    rows = {b: SCALE * (1 + b % 3) for b in range(10, 50)}
    assert missed(noise, rows, noise.of.slack(noise.width)) <= 1 - COVERED  # type: ignore[attr-defined]
    assert missed(noise, rows, 0) > 0.05


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 100), Fraction(99, 100)])
def test_the_margin_of_an_empty_group_is_all_that_the_bounds_allow(p: Fraction) -> None:
    noise = choices(Fraction(1), p, 60)
    assert quantiles({}, p, 60) == (0, 60)
    assert missed(noise, {}, noise.of.slack(noise.width)) <= 1 - COVERED  # type: ignore[attr-defined]


# --- the margin, by drawing it on many rows -------------------------------------------------------------------------------


def skewed(rows: int) -> Histogram:
    cents = np.minimum(np.random.default_rng(5).lognormal(8, 1.5, rows), 10_000_000).astype(np.int64)
    bins, counts = np.unique(cents, return_counts=True)
    return Histogram(bins, counts * SCALE)


def coverage(draw: Callable[[Choices, Histogram], tuple[int, int]], times: int = 60) -> tuple[float, float]:
    """Returns how often the interval held the quantile, and its middle width over the value."""
    histogram, noise = skewed(20_000), choices(Fraction(1, 2), Fraction(9, 10), 10_000_000)
    upto = np.cumsum(histogram.weights)
    truth = int(histogram.bins[np.searchsorted(upto, 0.9 * upto[-1])])
    seen = [draw(noise, histogram) for _ in range(times)]
    return sum(abs(v - truth) <= w for v, w in seen) / times, float(np.median([w / v for v, w in seen]))


@pytest.mark.usefixtures("recorded")
def test_margins_hold_and_are_useful_on_many_rows() -> None:
    def draw(noise: Choices, histogram: Histogram) -> tuple[int, int]:
        ((value, width),) = noise.release([histogram]).tolist()
        return value, width

    held, wide = coverage(draw)
    assert held >= 0.98  # 99 % are promised
    assert wide < 0.1


@pytest.mark.usefixtures("recorded")
def test_that_margins_without_slack_would_miss() -> None:
    def draw(noise: Choices, histogram: Histogram) -> tuple[int, int]:
        p, steps = noise.of.p, noise.of.grid.steps  # type: ignore[attr-defined]
        value = int(noise.mechanism.release(rank_runs(histogram, p, steps)))
        runs = width_runs(histogram, p, value, steps, 0)
        place = np.searchsorted(np.cumsum(runs.counts), int(noise.width.release(runs)), side="right")
        return value, widths(max(value, steps - value))[place]

    held, _ = coverage(draw)
    assert held < 0.9
