"""Correlated Gaussian noise for running sums: rounded feedback through four buffers, in whole numbers.

At step t, from independent discrete Gaussian noise z_t of variance v:

    R_t = floor((W_1 b_1 + ... + W_4 b_4) / 2^(F+E) + 1/2)          what earlier noise gives back
    n_t = z_t - R_t                                                 the noise of this step
    b_i <- floor(D_i b_i / 2^F) + 2^E n_t                           the buffers, which have E bits after the point
    o_t = s x_t + n_t,     released: (o_1 + ... + o_t) / s

x_t is the whole number of the step and s a whole number. d_i = D_i / 2^F and w_i = W_i / 2^F are decays and weights of the
buffers; c_0 = 1 and c_k = sum of w_i d_i^(k-1). Without rounding, n would be z divided by c(x): later steps take earlier noise
back, so that the noise of the t-th sum grows with log t, not with the root of t.

Why it is private. All n_t are whole and z_t = n_t + R_t(n_1 ... n_{t-1}), so Pr[o | x] is the product over t of
Pr[z_t = o_t - s x_t + R_t(o - s x)], R_t and the buffers being fixed functions of earlier n. Take two streams and the *same*
outputs o. Then n' - n = m, where m_t = s (x_t - x'_t): at most s L, and not 0 in at most k steps, if one unit changes at most k
steps by at most L each. Given the outputs before it, step t is a discrete Gaussian moved by the whole number m_t + R'_t - R_t.

Lemma (slack). |R'_t - R_t - sum over j < t of c_{t-j} m_j| < 1 + 2^-E (w_1 / (1 - d_1) + ... + w_4 / (1 - d_4)) =: slack.
Proof. Let e_i be the difference of b_i in the two streams. floor(D b' / 2^F) - floor(D b / 2^F) differs from d e by less than 1
(a difference of two fractional parts), so e_i <- d_i e_i + r + 2^E m_t with |r| < 1. Unrolled, e_i = 2^E (sum of d_i^(t-1-j)
m_j) + r_i with |r_i| < 1 + d_i + d_i^2 + ... = 1 / (1 - d_i). R' - R is a difference of two floors, so it differs from (sum of
w_i e_i) / 2^E by less than 1; put e_i in. Before the first step with m_j other than 0 both streams have the same buffers.

So with the first changed step at 0, step 0 moves by at most s L and step t by less than a_t + slack, a_t = s L (sum of c_{t-j}
over the changed steps j <= t). A move by h has Renyi divergence of order a at most a h^2 / 2v at every a
(mechanisms/gaussian.py), and zCDP adds up along every run, whatever earlier outputs decide, as long as no run exceeds the
bound. So streams may be chosen adaptively, and

    rho <= ((s L)^2 + sum over 0 < t < n of (a_t + slack)^2) / 2v

Which k steps are worst? c is not negative and does not rise. So the product of the columns of steps p < q, which is the sum of
c_u c_(u+q-p) over u < n - q, falls with q and with q - p; the sum of one column falls with its start. Sorted, the i-th changed
step is at least i, and any two are at least as far apart as in 0, 1, ..., k-1. So adjacent steps at the start are the worst,
and `squares` adds these up. With several segments (`parts`), m steps of one must cost at most the share m / k of the price: k^2
times one column is enough, because m^2 <= (m / k) k^2.

The price *without* slack is wrong: tests/streams/test_feedback.py has a stream that exceeds it. Everything here is computed in
whole numbers, coefficients rounded up, from the very decays and weights of the recurrence. Floats only describe margins.
References: Bun and Steinke, TCC 2016 (zCDP); Whitehouse and others, ICML 2023 (adding along every run); fit.py for the
matrices.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.laws.gaussian import LARGEST_VARIANCE
from dither.exact.numbers import show
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.norms import L2
from dither.privacy.losses import ZCDP
from dither.streams.constants import BITS, buffers

EXTRA = 16  # bits of the buffers after the point
FINE = 20  # bits of s L: the finer, the less the slack costs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Buffers:
    """The recurrence: decays and weights in units of 2^-30, and s."""

    decays: tuple[int, ...]
    weights: tuple[int, ...]
    scale: int

    def __post_init__(self) -> None:
        one = 1 << BITS
        if not (all(0 < d < one for d in self.decays) and all(w > 0 for w in self.weights) and sum(self.weights) <= one):
            raise ValueError("the proof needs decays between 0 and 1, and weights above 0 with a sum of at most 1")

    @property
    def slack(self) -> Fraction:
        """What rounding adds to the move of every step."""
        one = 1 << BITS
        shares = (Fraction(w, one - d) for d, w in zip(self.decays, self.weights, strict=True))
        return 1 + sum(shares, Fraction(0)) / (1 << EXTRA)

    def follow(self, state: tuple[int, ...], drawn: list[int]) -> tuple[list[int], tuple[int, ...]]:
        """Returns n_t for each z_t that was drawn, and the buffers after them."""
        d0, d1, d2, d3 = self.decays
        w0, w1, w2, w3 = self.weights
        b0, b1, b2, b3 = state
        up, half = BITS + EXTRA, 1 << (BITS + EXTRA - 1)
        noise = []
        for z in drawn:
            n = z - ((w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3 + half) >> up)
            e = n << EXTRA
            b0 = ((d0 * b0) >> BITS) + e
            b1 = ((d1 * b1) >> BITS) + e
            b2 = ((d2 * b2) >> BITS) + e
            b3 = ((d3 * b3) >> BITS) + e
            noise.append(n)
        return noise, (b0, b1, b2, b3)


@lru_cache(maxsize=64)
def squares(rule: Buffers, horizon: int, largest: int, contributions: int, slack: Fraction) -> Fraction:
    """Returns (s L)^2 + the sum of (a_t + slack)^2 over 0 < t < horizon, for adjacent changed steps; a_t is rounded up."""
    start = rule.scale * largest
    each = [start * w for w in rule.weights]  # s L w_i d_i^(k-1) in units of 2^-BITS, rounded up
    extra = math.ceil(slack * (1 << BITS))
    recent = deque([start << BITS], maxlen=contributions)
    moved, found = start << BITS, (start << BITS) ** 2
    for _ in range(horizon - 1):
        column = sum(each)
        moved += column - (recent[0] if len(recent) == contributions else 0)
        recent.append(column)
        found += (moved + extra) ** 2
        each = [-((-d * x) >> BITS) for d, x in zip(rule.decays, each, strict=True)]
    return Fraction(found, 1 << (2 * BITS))


@dataclass(frozen=True)
class Feedback:
    """The noise of one stream of at most `horizon` steps, and its price: rho-zCDP.

    Relies on: one unit changes at most `contributions` steps, each by at most `largest`. Neither is checked here.
    """

    horizon: int
    rho: Fraction
    contributions: int
    largest: int
    rule: Buffers
    parts: bool

    @classmethod
    def of(cls, horizon: int, rho: Fraction, contributions: int, largest: int, parts: bool) -> Feedback:
        scale = 1 << max(FINE + 1 - largest.bit_length(), 0)
        while True:
            made = cls(horizon, rho, contributions, largest, Buffers(*buffers(horizon), scale), parts)
            beyond = math.ceil(made.squares / (2 * rho * LARGEST_VARIANCE))
            if beyond <= 1 or scale == 1:
                return made._checked()
            scale = max(scale >> (beyond.bit_length() + 1) // 2, 1)  # the squares fall with the square of the scale

    @property
    def squares(self) -> int:
        """The most that the squares of all moves add up to."""
        count = 1 if self.parts else self.contributions
        one = squares(self.rule, self.horizon, self.largest, count, self.rule.slack)
        return math.ceil(one * (self.contributions**2 if self.parts else 1))

    def _checked(self) -> Feedback:
        room = 4 if self.parts else 1  # longer segments move further
        least = room * self.squares / (2 * LARGEST_VARIANCE)
        if self.rho < least:
            raise ArgumentError(
                f"rho must be at least {float(least):.3g} for this running sum, and it is {show(self.rho)}.",
                fix="give more, or let one unit contribute less.",
            )
        return self

    @cached_property
    def noise(self) -> Gaussian:
        return Gaussian(rho=self.rho, sensitivity=L2.of_squares(self.squares, self.horizon))

    def loss(self) -> ZCDP:
        """Returns the price."""
        return self.noise.zcdp()

    @property
    def scale(self) -> int:
        return self.rule.scale

    @property
    def first(self) -> tuple[int, ...]:
        """The state before the first step: four buffers, and the noise so far."""
        return (0,) * 5

    def follow(self, state: tuple[int, ...], step: int, drawn: Integers) -> tuple[Integers, tuple[int, ...]]:
        """Returns the noise of the sum after each step, in units of 1 / scale, and the state after them."""
        noise, after = self.rule.follow(state[:4], drawn.tolist())
        sums = np.cumsum(np.array(noise, dtype=np.int64)) + state[4]
        return sums, (*after, int(sums[-1]) if len(sums) else state[4])

    def last(self, state: tuple[int, ...]) -> int:
        """Returns the noise of the last sum, in units of 1 / scale."""
        return state[4]

    @cached_property
    def deviations(self) -> Floats:
        """About the standard deviation of the noise after each step."""
        return np.asarray(np.sqrt(np.cumsum(self._answers() ** 2)) * self.noise.noise_scale / self.scale)

    @cached_property
    def off(self) -> Floats:
        """The most that rounding in the recurrence can add after each step: |R_t - sum c n| <= slack - 1/2."""
        return np.cumsum(np.abs(self._answers())) * float(self.rule.slack - Fraction(1, 2)) / self.scale

    def _answers(self) -> Floats:
        """Returns b_k: how much of z_{t-k} is in the t-th sum."""
        d, w = (np.array(each) / (1 << BITS) for each in (self.rule.decays, self.rule.weights))
        zeros = np.linalg.eigvalsh(np.diag(d) - np.sqrt(np.outer(w, w)))
        bases = np.concatenate([[1.0], zeros])
        gaps = bases[:, None] - bases[None, :] + np.eye(5)
        shares = np.prod(bases[:, None] - d[None, :], axis=1) / np.prod(gaps, axis=1)
        powers = np.arange(self.horizon)
        return np.asarray(sum(share * base**powers for share, base in zip(shares, bases, strict=True)))

    def record(self) -> dict[str, Any]:
        """Returns what a saved state is checked against."""
        return {"noise": "feedback 1", "decays": self.rule.decays, "weights": self.rule.weights, "scale": self.scale}
