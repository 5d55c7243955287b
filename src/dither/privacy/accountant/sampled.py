"""Bounds delta(epsilon) of compositions with subsampled releases: the line integral of contour.py with every node in floats.

Transforms of subsampled releases are sums over a cloud of losses (parts/clouds.py) with a proved error. So each factor r of a
node, relative to the transform at t = 0, is known up to some e, and its power n is off by at most (|r| + e)^n - |r|^n. These
errors, the nodes left out and everything that a cloud leaves out are added on the safe side. No node needs balls then: errors
of 1e-13 grow with n, but fewer nodes count, so a million releases are fine.

Smoothing (step 2 of contour.py) makes the integrand die out where a cloud of atoms alone would not.

**Rare samples.** If q and delta are tiny, one loss that is far larger than all others together decides. On no line is it more
than the errors then: the others weigh too much. So the measure mu of a release is cut at a loss l into small + large, and

    mu^n = small^n + n small^(n-1) large + n (n-1)/2 small^(n-2) large^2 + ...,

where k and more large losses have a probability of at most (n large)^k / k!. If that is negligible for k = 2 or 3, the terms
before it are positive measures, each with an integral and a line of its own; with several kinds of releases there is one for
every way to have one or two large losses. Any cut is valid. It is chosen so that the small losses hardly ever fill the gap
between l and epsilon. Losses far above epsilon are taken out first (`_without_far`): they would force a long line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations_with_replacement

import numpy as np
from flint import acb, arb

from dither.exact.balls import ball
from dither.privacy.accountant.product import Guide
from dither.privacy.parts import Part
from dither.privacy.parts.base import Complexes, Floats
from dither.privacy.parts.clouds import Cloud
from dither.privacy.parts.falls import Fall
from dither.privacy.parts.sampled import Law, SampledPart

_MOST_NODES = 1 << 18
_FEW, _SHARP_NODES = 2000, 1 << 17
_TAIL = 21.0
_SMOOTHING = 1.5e-7  # the relative rise of epsilon that smoothing may cause
_LEFT = 17.0  # clouds leave out e^-17 of delta
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)  # smaller orders that are tried
_WORTH = 1.5
_DOUBT = 14.0  # from where on the errors of the factors, about 1e-13, would show
_CERTAIN = 20.0  # more than a million steps reach without rare losses
_NOTICED = 1e-5
_FAR = 3.0  # losses above so many epsilons need no integral
_CHANCES = (-20.0, -30.0, -45.0)  # ln of the probability that small losses fill the gap up to epsilon

Evaluator = Callable[[Fraction], arb]
Parts = tuple[tuple[Part, int], ...]
Falls = list[tuple[Fall, int]]


def sampled(parts: Parts) -> bool:
    """Returns whether a release of these is subsampled."""
    return any(isinstance(part, SampledPart) for part, _ in parts)


@dataclass(frozen=True)
class Piece:
    """A subsampled release, or the part of it with low < u <= high. Leaves out a probability of about e^share."""

    part: SampledPart
    share: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def law(self) -> Law:
        whole = self.part.law(self.share)
        return whole if self.low == -self.high == -math.inf else whole.within(self.low, self.high)

    def is_empty(self) -> bool:
        return self.law.field is None and not len(self.law.u)

    def cloud(self, c: float, t: float) -> Cloud:
        return self.part.cloud_of(self.law, c, t)

    def rough(self) -> Cloud:
        return self.part.rough_of(self.law)

    def fall(self, c: float, log_size: float) -> Fall:
        """Returns how soon its transform dies out on Re z = c, where ln phi(c) is `log_size`."""
        return self.part.fall_of(self.law, c, log_size)

    def mass(self, side: int = 0) -> float:
        """Bounds its probability from above; with side = -1 its probability under the other law, from below."""
        cloud = self.cloud(float(side), 0.0)
        size = cloud.tilted(float(side))[0]
        if side:
            return max(math.exp(size - 1e-13) * (1 - 2 * cloud.wrong), 0.0)
        return math.exp(size + 1e-13) * (1 + 2 * cloud.wrong) + 1e-300


@dataclass(frozen=True)
class Term:
    """`times` the measure of some pieces and of other parts, added up."""

    pieces: tuple[tuple[Piece, int], ...]
    others: Parts
    times: int = 1

    @classmethod
    def of(cls, parts: Parts, log_delta: float) -> Term:
        """Returns the whole of a composition."""
        mixed = [(part, n) for part, n in parts if isinstance(part, SampledPart)]
        pieces = tuple((Piece(part, max(log_delta, -1e4) - math.log(n) - _LEFT), n) for part, n in mixed)
        return cls(pieces, tuple((part, n) for part, n in parts if not isinstance(part, SampledPart)))

    def guide(self) -> Guide:
        """Returns the guide for the search. It decides no price."""
        clouds = tuple((piece.rough(), n) for piece, n in self.pieces)
        spread = sum(cloud.deviation(0.0) ** 2 * n for cloud, n in clouds)
        spread += sum(2 * float(part.zcdp()[0]) * n for part, n in self.others)
        return Guide(_Rough(clouds, self.others, math.log(self.times)), None, max(math.sqrt(spread), 1e-150), rare=True)

    def doubt(self, guide: Guide, epsilon: float, log_delta: float) -> float:
        """Returns ln of the error of its integral over delta, for factors that are off by 1."""
        c = guide.order(epsilon)
        head = float(np.interp(c, guide.orders, guide.logs)) - c * epsilon - log_delta
        return head + math.log(sum(n for _, n in self.pieces)) - math.log1p(c)

    def is_added(self) -> bool:
        """Tells whether losses grow with u, as cuts need it. A removed unit has small losses only."""
        return not any(piece.part.removed for piece, _ in self.pieces)

    def is_rare(self, guide: Guide, epsilon: float) -> bool:
        """Tells whether single losses of the size of epsilon count on its line."""
        clouds, c = [(piece.rough(), n) for piece, n in self.pieces], guide.order(epsilon)
        return sum(n * float(cloud.tilted(c)[1][cloud.losses > epsilon / 4].sum()) for cloud, n in clouds) > _NOTICED


@dataclass(frozen=True)
class _Rough:
    """The measure of a composition on a few points, for the guide."""

    clouds: tuple[tuple[Cloud, int], ...]
    others: Parts
    log_times: float

    def log(self, z: Complexes) -> Complexes:
        total: Complexes = np.full(len(z), self.log_times, dtype=complex)
        for cloud, count in self.clouds:
            total += count * cloud.log(z)
        for part, count in self.others:
            total += count * part.log_phi(z)
        return total


def guide_of(parts: Parts, log_delta: float) -> Guide:
    """Returns the guide for the search. It decides no price."""
    return Term.of(parts, log_delta).guide()


def guess_epsilon(parts: Parts, guide: Guide, log_delta: float) -> float:
    """Returns a rough epsilon at this delta. The guide's own is far too high where one large loss decides.

    One large loss alone needs an epsilon of at least `single`; smaller losses need what their own guide says.
    """
    whole, guess = Term.of(parts, log_delta), guide.epsilon(log_delta)
    if not whole.is_added() or not whole.is_rare(guide, guess):
        return guess
    clouds = [(piece.rough(), n) for piece, n in whole.pieces]
    low, high, target = 0.0, guess, math.exp(max(log_delta, -700.0))
    for _ in range(60):
        single = (low + high) / 2
        delta = sum(n * float(_weights(cloud) @ -np.expm1(np.minimum(single - cloud.losses, 0.0))) for cloud, n in clouds)
        low, high = (single, high) if delta > target else (low, single)
    return min(guess, max(single, _below(whole, single).guide().epsilon(log_delta)))


def _weights(cloud: Cloud) -> Floats:
    weights: Floats = np.exp(np.maximum(cloud.logs, -745.0))
    return weights


def evaluators_of(parts: Parts, guide: Guide, epsilon: float, log_delta: float) -> list[Evaluator]:
    """Returns functions of epsilon whose sum bounds delta: one integral, or those of the terms of rare samples."""
    whole = Term.of(parts, log_delta)
    lost = sum(Fraction(n * piece.rough().lost) for piece, n in whole.pieces)
    terms, guides, rest, far = [whole], [guide], Fraction(0), _NONE
    doubt = whole.doubt(guide, epsilon, log_delta)
    if whole.is_added() and (doubt > _CERTAIN or (doubt > _DOUBT and whole.is_rare(guide, epsilon))):
        near, beyond = _without_far(whole, epsilon)
        for found in chain([([near], Fraction(0))], _splits(near, epsilon, log_delta)):
            own = [term.guide() for term in found[0]]
            worst = max(term.doubt(each, epsilon, log_delta) for term, each in zip(found[0], own, strict=True))
            if worst < doubt - 1:
                (terms, rest), guides, doubt, far = found, own, worst, beyond
    integrals = [Sampled(term, each, epsilon, log_delta) for term, each in zip(terms, guides, strict=True)]
    return [_constant(lost + rest), far, *integrals]


def _without_far(whole: Term, epsilon: float) -> tuple[Term, Evaluator]:
    """Returns the term without losses above a multiple of epsilon, and what those losses add to delta.

    No loss is below ln(1 - q), so a loss of at least epsilon - n ln(1 - q) makes up for all others. By the first such loss,
    mu^n = near^n + the sum over i of near^i far mu^(n-1-i), and on far losses 1 - e^{epsilon - L} has no kink: each of
    the n terms adds at most P(far) - e^epsilon Q(far).
    """
    least = sum(n * -math.log1p(-float(piece.part.q)) if piece.part.q < 1 else math.inf for piece, n in whole.pieces)
    if whole.others or least > epsilon:
        return whole, _NONE
    cut = _FAR * epsilon
    beyond = [(_above(piece, cut), n) for piece, n in whole.pieces]
    heavy = [(piece, n) for piece, n in beyond if not piece.is_empty()]
    p = sum(n * Fraction(piece.mass()) for piece, n in heavy)
    q = sum(n * Fraction(piece.mass(-1)) for piece, n in heavy)
    # Places of cuts are rounded, so the smallest far loss is known up to 1e-9.
    last = Fraction((cut - least) * (1 - 1e-9))
    # delta falls with epsilon, so what holds at `last` holds above it: the search needs a bound that never rises.
    return _below(whole, cut), lambda at: ball(p) - ball(q) * ball(min(at, last)).exp()


def _constant(value: Fraction) -> Evaluator:
    return lambda epsilon: ball(value)


_NONE = _constant(Fraction(0))


def _splits(whole: Term, epsilon: float, log_delta: float) -> Iterator[tuple[list[Term], Fraction]]:
    """Yields the terms of several cuts, each with a bound of the probability of more large losses than they have."""
    small = _below(whole, epsilon).guide()
    for gap in (*(small.epsilon(chance) for chance in _CHANCES), epsilon / 4):
        if gap >= epsilon:
            continue
        below, above = _below(whole, epsilon - gap), [_above(piece, epsilon - gap) for piece, _ in whole.pieces]
        kinds = [place for place, piece in enumerate(above) if not piece.is_empty()]
        expected = sum(whole.pieces[place][1] * Fraction(above[place].mass()) for place in kinds)
        for most in (1, 2, 3):
            rest = expected ** (most + 1) / math.factorial(most + 1)
            if _log(rest) < log_delta - _LEFT:
                ways = [way for size in range(most + 1) for way in combinations_with_replacement(kinds, size)]
                yield [term for term in (_with_large(below, above, way) for way in ways) if term.times], rest
                break


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator) if value else -math.inf


def _below(whole: Term, cut: float) -> Term:
    return replace(whole, pieces=tuple((replace(piece, high=_ratio(piece, cut)), n) for piece, n in whole.pieces))


def _above(piece: Piece, cut: float) -> Piece:
    return replace(piece, low=_ratio(piece, cut))


def _with_large(below: Term, above: list[Piece], way: tuple[int, ...]) -> Term:
    """Returns the term with one large loss of each kind in `way`, and small ones of all other releases."""
    times = math.prod(math.comb(count, way.count(place)) for place, (_, count) in enumerate(below.pieces))
    small = [(piece, count - way.count(place)) for place, (piece, count) in enumerate(below.pieces)]
    large = [(above[place], way.count(place)) for place in sorted(set(way))]
    return replace(below, pieces=tuple((piece, count) for piece, count in (*small, *large) if count > 0), times=times)


def _ratio(piece: Piece, loss: float) -> float:
    """Returns u with ln(1 - q + q e^u) = loss."""
    q = float(piece.part.q)
    return loss - math.log(q) if loss > 500 else math.log1p(math.expm1(loss) / q)


def _line(guide: Guide, epsilon: float, log_delta: float) -> tuple[float, float]:
    """Returns (c, period). A rare tail makes orders above c useless and the period long; a smaller c may cost little."""
    best = guide.order(epsilon)
    cost = guide.logs - guide.orders * epsilon - np.log(guide.orders) - np.log1p(guide.orders)
    least, chosen = float(cost.min()), (best, guide.period(best, epsilon, log_delta))
    for share in _SHARES:
        near = int(np.searchsorted(guide.orders, best * share))
        if cost[near] < least + _WORTH:
            c = float(guide.orders[near])
            chosen = min(chosen, (c, guide.period(c, epsilon, log_delta)), key=lambda each: each[1])
    return chosen


class Sampled:
    """An upper bound of delta as a function of epsilon, tight near the given one."""

    def __init__(self, term: Term, guide: Guide, epsilon: float, log_delta: float) -> None:
        self.c, period = _line(guide, epsilon, log_delta)
        c, self.h = self.c, 2 * math.pi / period
        head = float(np.interp(c, guide.orders, guide.logs)) - c * epsilon - log_delta
        self.others, mixed = term.others, term.pieces
        smooth = 2 * _SMOOTHING * max(epsilon, 1e-3 / c) / (c + 1)
        falls = [(piece.fall(c, piece.rough().tilted(c)[0]), n) for piece, n in mixed]
        # At atoms smoothing costs first order in tau. There are heavy ones only while there are few releases.
        if sum(n for _, n in (*mixed, *term.others)) <= _FEW and any(fall.log_v == math.inf for fall, _ in falls):
            smooth = max(smooth / 400, 2 * (head + _TAIL) / (_SHARP_NODES * self.h / 1.3) ** 2)
        smooth = max(smooth, 2 * (head + _TAIL) / (_MOST_NODES * self.h / 1.3) ** 2)
        self.tau2 = smooth
        smoothed = self._enough(head, falls)
        self.tau2 = 0.0
        plain = self._enough(head, falls)
        # Smoothing is left out where the integrand dies out nearly as soon without it.
        if plain > min(1.5 * smoothed, _MOST_NODES - 1):
            self.tau2 = smooth
        self.nodes = smoothed if self.tau2 else plain
        clouds = [(piece.cloud(c, self.nodes * self.h), n) for piece, n in mixed]
        sizes = [cloud.tilted(c)[0] for cloud, _ in clouds]
        self.tail = self._tail([(piece.fall(c, size), n) for (piece, n), size in zip(mixed, sizes, strict=True)])
        self.log_size = self.tau2 * (c * c + c) / 2 + math.log(term.times) * (1 + 1e-15)
        for (cloud, n), size in zip(clouds, sizes, strict=True):
            self.log_size += n * (size + 3e-14 + 2 * cloud.wrong) + 1e-15 * abs(n * size)
        self._multiply([(*cloud.ratios(c, self.h, self.nodes), n) for cloud, n in clouds])

    def _damping(self, t: float, falls: Falls) -> float:
        """Bounds ln of the integrand's size beyond t, relative to that at 0, without the kernel."""
        total = -self.tau2 * t * t / 2
        total += sum(n * fall.log(t) for fall, n in falls)
        return total + sum(n * part.damping(self.c, t, periodic=False) for part, n in self.others)

    def _enough(self, head: float, falls: Falls) -> int:
        """Returns how many nodes leave a negligible tail."""
        nodes = 16
        while nodes < _MOST_NODES and head + self._damping(nodes * self.h, falls) - math.log(math.pi * nodes * self.h) > -_TAIL:
            nodes = nodes * 9 // 8
        return nodes

    def _tail(self, falls: Falls) -> float:
        """Bounds all nodes beyond the last, relative to the first: sum of h/t^2 <= 1/T, and |z (z + 1)| >= t^2."""
        last = self.nodes * self.h
        return math.exp(self._damping(last, falls)) * self.c * (self.c + 1) / (last * self.h)

    def _multiply(self, rows: list[tuple[Complexes, Floats, int]]) -> None:
        """Multiplies the factors at every node, with their errors; keeps the nodes that count."""
        c = self.c
        t: Floats = self.h * np.arange(self.nodes + 1, dtype=np.float64)
        z: Complexes = np.asarray(c + 1j * t, dtype=np.complex128)
        logs: Complexes = np.zeros(len(t), dtype=complex)
        upper: Floats = np.zeros(len(t))
        with np.errstate(divide="ignore"):
            for part, n in self.others:
                own = part.log_phi(z)
                own -= own[0]
                logs += n * own
                upper += n * np.log(np.exp(own.real) + 1e-12 + 4e-16 * t * part.spread)
                self.log_size += float((part.phi(acb(c)).real.log() * n).upper()) * (1 + 1e-15) + 1e-15
            for found, errors, n in rows:
                logs += n * np.log(found)
                upper += n * np.log(np.abs(found) + errors + 1e-15)
        kernel = c * (c + 1) / (z * (z + 1)) * np.exp(self.tau2 / 2 * (-t * t + 1j * t * (2 * c + 1)))
        sizes, most = np.exp(logs.real), np.exp(upper)
        values = np.where(sizes > 0, sizes * np.exp(1j * np.nan_to_num(logs.imag)), 0) * kernel
        wrong = (most - sizes + 1e-14 * most) * np.abs(kernel)
        keep = np.abs(values) > 1e-18
        keep[0] = False
        self.bound = float(wrong[1:].sum() + np.abs(values[1:][~keep[1:]]).sum() + self.tail) * (1 + 1e-9)
        self.t, self.values = t[keep], values[keep]

    def __call__(self, epsilon: Fraction) -> arb:
        e = float(epsilon)
        turned = self.values * np.exp(-1j * e * self.t)
        # Phases are off by 3e-16 of t * epsilon; the sum of cosines by its own rounding.
        rounding = float((np.abs(self.values) * (3e-16 * abs(e) * self.t + 1e-14)).sum())
        total = max(0.5 + float(turned.real.sum()) + self.bound + rounding, 1e-290)
        log_scale = self.log_size - self.c * e + math.log(self.h / math.pi / (self.c * (self.c + 1)))
        margin = 1e-14 * (abs(self.log_size) + self.c * abs(e) + 10)
        return ball(Fraction(log_scale + math.log(total) + margin)).exp()
