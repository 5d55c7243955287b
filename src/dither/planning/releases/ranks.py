"""Scores for quantiles, from a histogram: how far a candidate's rank is off, and how wide an interval around it must be.

With p = a/d, W the whole weight, W(<b) and W(<=b) the weight below and up to b:

    value    score(b) = -max(0, d W(<b) - a W, a W - d W(<=b))                    0 exactly where b is a p-quantile
    width    f(w)     = max(d W(<q-w) - a W, a W - d W(<=q+w))                    a side beyond the bounds does not count
             score(w) = -max(0, f(w) + t, -t - f(w'))                             w' the next smaller width

One row of weight v moves d W(<b) - a W = (d - a) W(<b) - a W(>=b), and with it every score, by at most v max(a, d - a); under
replacement by at most v d.

Values. Scores are constant between two occupied bins, so all steps of a grid are candidates at the price of its occupied bins.

Widths. q is the value that was chosen, t a number that the plan fixes. f falls as w grows, in the end to minus infinity (an
interval of all steps), so some width has score 0. If [q-w, q+w] leaves out a p-quantile b, then q-w > b gives
W(<q-w) >= W(<=b) >= pW, or q+w < b gives W(<=q+w) <= W(<b) <= pW: f(w) >= 0, and score(w) <= -t; all smaller widths leave
it out too. Width k stands for c(k) candidates, growing by at least an eighth from one to the next, so those before k are fewer
than 8 c(k). So the exponential mechanism of rate r chooses a width that is too small with probability below 8 e^(-rt). Adding d
times a row's weight to t covers ranks within one row of pW too, and with them every usual way to interpolate.

Widths grow by an eighth too: at most 231 for 2^40 steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.mechanisms.selection import Runs
from dither.planning.sensitivity import NARROW
from dither.query.work import SCALE, Histogram

Integers = NDArray[np.int64]


def rank_sensitivity(p: Fraction, max_rows: int) -> int:
    """Returns how far one unit moves any score."""
    return max_rows * SCALE * max(p.numerator, p.denominator - p.numerator)


def rank_scores(weights: Mapping[int, int], p: Fraction, places: Integers) -> Integers:
    """Returns the score of each value in `places`.

    >>> rank_scores({0: 1, 2: 3}, Fraction(1, 2), np.arange(4)).tolist()
    [-2, -2, 0, -4]
    """
    histogram = Histogram.of(weights)
    return _scores(p, _below(histogram, places), _below(histogram, places + 1), int(histogram.weights.sum()))


def rank_runs(weights: Mapping[int, int], p: Fraction, steps: int) -> Runs:
    """Returns the scores of all values from 0 to `steps`, in runs.

    >>> runs = rank_runs({0: 1, 2: 3}, Fraction(1, 2), 9)
    >>> runs.scores.tolist(), runs.counts.tolist()
    ([-2, -2, 0, -4], [1, 1, 1, 7])
    """
    histogram = Histogram.of(weights)
    bins, upto = histogram.bins, np.cumsum(histogram.weights)
    size = 2 * len(bins) + 1  # a gap, a bin, a gap, ..., a bin, a gap; a gap may be empty
    starts, before, after = (np.zeros(size, dtype=np.int64) for _ in range(3))
    starts[1::2], starts[2::2] = bins, bins + 1
    before[2::2] = after[1::2] = after[2::2] = upto
    before[1::2] = upto - histogram.weights
    counts = np.diff(starts, append=steps + 1)
    filled = counts > 0
    scores = _scores(p, before, after, int(upto[-1]) if len(bins) else 0)
    return Runs(scores[filled], counts[filled])


def _below(histogram: Histogram, places: Integers) -> Integers:
    """Returns the weight below each place."""
    sums: Integers = np.concatenate(([0], np.cumsum(histogram.weights)))
    return sums[np.searchsorted(histogram.bins, places)]


def _scores(p: Fraction, before: Integers, upto: Integers, total: int) -> Integers:
    """Returns the scores, cut at -2^62, which moves no two of them apart.

    2^40 rows weigh at most 2^56, and d is at most 1000. Above 2^62 / d, numbers of any size take over.
    """
    a, d = p.numerator, p.denominator
    if d * total > NARROW:
        before, upto = before.astype(object), upto.astype(object)
    off = np.maximum(np.maximum(d * before - a * total, a * total - d * upto), 0)
    cut: Integers = -np.minimum(off, NARROW).astype(np.int64)
    return cut


def widths(steps: int) -> list[int]:
    """Returns the widths to choose from on a grid of so many steps: from 0, by steps of 1 and later of an eighth.

    >>> widths(20), len(widths(1 << 40))
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20], 231)
    """
    found = [0]
    while found[-1] < steps:
        found.append(min(found[-1] + max(1, found[-1] // 8), steps))
    return found


def width_runs(weights: Mapping[int, int], p: Fraction, chosen: int, steps: int, slack: int) -> Runs:
    """Returns the scores of the widths around the chosen value: of `widths`, up to the one that covers all steps.

    >>> runs = width_runs({4: 1, 5: 1, 6: 1}, Fraction(1, 2), 5, 10, 2)
    >>> runs.scores.tolist(), runs.counts.tolist()
    ([-1, 0, -1, -1, -1, -1], [8, 9, 11, 13, 15, 17])
    """
    histogram, a, d = Histogram.of(weights), p.numerator, p.denominator
    own = np.array(widths(max(chosen, steps - chosen)))
    target = a * int(histogram.weights.sum())
    low = d * _below(histogram, np.maximum(chosen - own, 0)).astype(object) - target
    high = target - d * _below(histogram, np.minimum(chosen + own, steps) + 1).astype(object)
    never = -2 * (d << 60) - slack  # below every f: stands for minus infinity
    f = np.maximum(np.where(chosen > own, low, never), np.where(steps - chosen > own, high, never))
    before = np.concatenate(([-never], f[:-1]))
    off = np.maximum(np.maximum(f + slack, -slack - before), 0)
    return Runs(-np.minimum(off, NARROW).astype(np.int64), np.array(repeats(len(own)), dtype=np.int64))


RATIO = 8


def repeats(count: int) -> list[int]:
    """Returns for how many candidates each width stands: all before it together for less than RATIO times as many.

    >>> repeats(6), max(repeats(231)) < 1 << 50
    ([8, 9, 11, 13, 15, 17], True)
    """
    found = [RATIO]
    while len(found) < count:
        found.append(found[-1] + -(-found[-1] // RATIO))
    return found
