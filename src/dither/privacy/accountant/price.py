"""Returns epsilon at a delta and delta at an epsilon: by closed forms, else by certified evaluators and a search.

The search moves epsilon by floats. It reports an epsilon at which the upper end of a ball lies below delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import acb, arb

from dither.errors import ArgumentError, PriceError
from dither.exact.balls import ball, upper, working
from dither.exact.numbers import items, show, whole
from dither.privacy.accountant import bounded, closed
from dither.privacy.accountant.evaluators import Evaluator, Parts, Plan
from dither.privacy.conversion import delta_above, delta_of_zcdp, epsilon_of_zcdp, round_up
from dither.privacy.parts import DiscreteGaussian, GaussianVector, Part
from dither.privacy.parts.base import MOST
from dither.privacy.parts.vector import LEAST_VARIANCE, Moves, smooth

# Beyond these limits float guides fail, and the largest loss or zCDP gives the price.
MOST_RELEASES = 10**12
_LEAST_RHO, _MOST_RHO = Fraction(1, 10**100), Fraction(MOST**2)
_LEAST_VARIANCE = Fraction(1, 1000)  # integers with next to no noise: all mass at one loss of 500 or more
_CLOSE = 1e-9
_MANY = 32  # different discrete Gaussian parts; more are priced as continuous ones, of about 1/v more
_FINE = 10**7  # variances from which on that costs less than 1e-6

Bound = Callable[[Fraction], arb]


def canonical(pairs: Iterable[tuple[Part, int]]) -> Parts:
    """Returns the sorted multiset of parts as a curve states them: equal parts merged, counts of 0 dropped."""
    checked = []
    for pair in items(pairs, "parts", fix="use Curve.of(part, count)."):
        part, count = pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, 1)
        if not isinstance(part, Part):
            raise ArgumentError(f"parts must hold parts, and one is a {type(part).__name__}.", fix="use Curve.of(part, count).")
        checked.append((part.stated(), whole(count, "count", least=0)))
    return _merged(checked)


def _merged(pairs: Iterable[tuple[Part, int]]) -> Parts:
    counts: dict[Part, int] = {}
    for part, count in pairs:
        counts[part] = counts.get(part, 0) + count
    present = [(part, count) for part, count in counts.items() if count]
    return tuple(sorted(present, key=lambda pair: pair[0].order()))


def epsilon(parts: Parts, allowed: Fraction) -> Fraction:
    """Returns the smallest certified epsilon at delta `allowed`."""
    top, lost = _pure(parts), _lost(parts)
    if allowed >= 1:
        return Fraction(0)
    if allowed < lost or (allowed == lost and top is None):
        raise PriceError(
            f"This curve has no epsilon at delta {show(allowed)}: it needs a delta above {show(lost)}.",
            fix="ask at a larger delta, such as 1e-6.",
        )
    if allowed == lost and top is not None:
        return top
    target = (allowed - lost) / (1 - lost)
    bounds = [_zcdp_epsilon(parts, target)]
    bounds += [] if top is None else [top]
    finite = _finite(parts)
    if _workable(finite):
        with working(_bits(finite)):
            bounds.append(_largest_of_directions(finite, target))
    return min(bounds)


def _largest_of_directions(parts: Parts, target: Fraction) -> Fraction:
    """Returns the larger epsilon of the two directions. Skips a direction whose largest loss is smaller already."""
    largest = Fraction(0)
    for direction in _directions(parts):
        top = _top(direction)
        if top is None or top > largest:
            largest = max(largest, _solve(direction, target))
    return largest


def delta(parts: Parts, at: Fraction) -> Fraction:
    """Returns the smallest certified delta at epsilon `at`."""
    top, lost = _pure(parts), _lost(parts)
    if top is not None and at >= top:
        return lost
    finite = _finite(parts)
    bounds = [delta_of_zcdp(_rho(parts), at)]
    if _workable(finite):
        with working(_bits(finite)):
            bounds.append(max(_delta(direction, at) for direction in _directions(finite)))
    return min(round_up(lost + (1 - lost) * min(bounds)), Fraction(1))


def renyi(parts: Parts, order: Fraction) -> Fraction:
    """Returns the Renyi divergence of this order, ln phi(a - 1) / (a - 1), the larger of the two directions, rounded up."""
    if _lost(parts):
        what = "A curve that fails openly with some probability has no finite Renyi divergence."
        raise PriceError(what, fix="ask for epsilon at a delta.")
    divergence = _rho(parts) * order
    top = _pure(parts)
    if sum(count for _, count in parts) <= MOST_RELEASES and all(part.zcdp()[0] <= MOST for part, _ in parts):
        with working(_bits(parts)):
            divergence = min(divergence, max(_divergence(direction, order) for direction in _directions(parts)))
    return divergence if top is None else min(divergence, top)


def _divergence(parts: Parts, order: Fraction) -> Fraction:
    at = acb(ball(order - 1))
    logs = sum((part.phi(at).real.log() * count for part, count in parts), arb(0))
    # Not finite: a transform too large or too rough to bound, for which zCDP is used.
    return round_up(max(upper(logs / at.real), Fraction(0))) if logs.is_finite() else _rho(parts) * order


def _finite(parts: Parts) -> Parts:
    """Returns the parts with a finite loss above 0: a Response of epsilon 0 only loses its delta."""
    return tuple(pair for pair in parts if pair[0].zcdp()[0] > 0)


def _top(parts: Parts) -> Fraction | None:
    """Returns the largest finite log ratio in this direction."""
    total = Fraction(0)
    for part, count in parts:
        if part.top is None:
            return None
        total += part.top * count
    return total


def _pure(parts: Parts) -> Fraction | None:
    """Returns the largest finite log ratio in either direction."""
    tops = [_top(direction) for direction in _directions(parts)]
    known = [top for top in tops if top is not None]
    return max(known) if len(known) == len(tops) else None


def _lost(parts: Parts) -> Fraction:
    """Returns Pr[some release fails openly] = 1 - product of (1 - delta_i)^n_i, rounded up when long."""
    lossy = [(part.lost, count) for part, count in parts if part.lost]
    if not lossy:
        return Fraction(0)
    if sum(count for _, count in lossy) == 1:
        return lossy[0][0]
    with working(256):
        finite = arb(1)
        for share, count in lossy:
            finite *= ball(1 - share) ** count
        return min(round_up(min(upper(1 - finite), sum((share * count for share, count in lossy), Fraction(0)))), Fraction(1))


def _rho(parts: Parts) -> Fraction:
    return sum((part.zcdp()[0] * count for part, count in parts), Fraction(0))


def _zcdp_epsilon(parts: Parts, target: Fraction) -> Fraction:
    return epsilon_of_zcdp(_rho(parts), target)


def _workable(parts: Parts) -> bool:
    if not 0 < sum(count for _, count in parts) <= MOST_RELEASES or _rho(parts) > _MOST_RHO:
        return False
    if any(isinstance(part, DiscreteGaussian) and part.variance < _LEAST_VARIANCE for part, _ in parts):
        return False
    if any(isinstance(part, GaussianVector) and part.variance < LEAST_VARIANCE for part, _ in parts):
        return False
    return all(part.zcdp()[0] >= _LEAST_RHO and (part.top is None or part.top <= MOST) for part, _ in parts)


def _bits(parts: Parts) -> int:
    return 160 + sum(count for _, count in parts).bit_length()


def _directions(parts: Parts) -> list[Parts]:
    """Returns the two directions, a unit added and a unit removed, or one if they are the same."""
    back = _merged((part.reverse(), count) for part, count in parts)
    return [parts] if back == parts else [parts, back]


def _solve(parts: Parts, target: Fraction) -> Fraction:
    """Returns an epsilon, about the smallest, whose certified delta is at most `target`."""
    log_target = _log(target)
    parts, exact = _closed(parts)
    if exact is not None:
        start = closed.start(parts, log_target)
        return _search(exact, target, start, -1 / max(start, 1e-9))
    plan = Plan(parts, log_target)
    top = _top(parts)
    guess = min(plan.guess(log_target), math.inf if top is None else float(top))
    for _ in range(4):
        near = plan.guide.order(guess)
        solution = _search(_sum_of(plan.evaluators(guess, log_target)), target, guess, -near)
        if top is not None and solution >= top:
            return top
        if abs(float(solution) - guess) * near < 2:
            break
        guess = float(solution)
    return solution


def _closed(parts: Parts) -> tuple[Parts, Bound | None]:
    """Returns the parts to price and their closed form, if there is one."""
    exact = closed.delta(parts) or bounded.delta(parts)
    if exact is not None:
        return parts, exact
    parts = _smoothed(_merged((part.simpler(), count) for part, count in parts))
    return parts, closed.delta(parts)


def _smoothed(parts: Parts) -> Parts:
    """Puts one continuous part in the place of vectors, and of discrete Gaussian parts where that costs next to nothing or
    there are so many that their own transforms would take seconds (parts/vector.py)."""
    single = {part: n for part, n in parts if isinstance(part, DiscreteGaussian) and part.variance >= LEAST_VARIANCE}
    if len(single) == 1 or (len(single) <= _MANY and min((part.variance for part in single), default=0) < _FINE):
        single = {}
    moves = [Moves(part.shift**2 * n, n, part.variance) for part, n in single.items()]
    moves += [Moves(part.squares * n, part.moving * n, part.variance) for part, n in parts if isinstance(part, GaussianVector)]
    if not moves:
        return parts
    rest = [pair for pair in parts if not isinstance(pair[0], GaussianVector) and pair[0] not in single]
    return _merged([*rest, (smooth(moves), 1)])


def _sum_of(evaluators: list[Evaluator]) -> Bound:
    return lambda e: sum((part(e) for part in evaluators), arb(0))


def _delta(parts: Parts, at: Fraction) -> Fraction:
    parts, exact = _closed(parts)
    if exact is not None:
        return delta_above(exact(at))
    top = _top(parts)
    if top is not None and at >= top:
        return Fraction(0)
    plan = Plan(parts)
    delta, log_delta = Fraction(1), plan.guide.log_delta(float(at))
    for _ in range(12):
        if plan.sampled:
            plan = Plan(parts, log_delta)
        bound = _sum_of(plan.evaluators(float(at), log_delta))(at)
        delta = min(delta, delta_above(bound))
        # The guide's first guess can be far too high near the largest loss or for rare tails; then evaluate again, more finely.
        if log_delta <= _log(delta) + 3:
            break
        log_delta = _log(delta)
    return delta


def _log(value: Fraction) -> float:
    with working(64):
        return float(ball(value).log())


def _search(bound: Bound, target: Fraction, start: float, slope: float) -> Fraction:
    """Returns a float epsilon >= 0 with bound(epsilon) certainly <= target, within 1e-9 of the smallest.

    Secant steps on ln bound, aimed just above the root and kept inside the bracket; `slope` is its first slope.
    """
    low, high, e = -1.0, math.inf, max(start, 0.0)
    before = (math.nan, math.nan)
    for _ in range(100):
        off = _excess(bound(Fraction(e)), target)
        low, high = (low, min(high, e)) if off <= 0 else (max(low, e), high)
        fresh = (off - before[1]) / (e - before[0]) if e != before[0] else math.nan
        slope = fresh if math.isfinite(fresh) and fresh < 0 else slope
        if off <= 0 and (e == 0 or -off <= _CLOSE * e * -slope or high - low <= _CLOSE * high):
            return Fraction(e)
        before = (e, off)
        e = max(e - off / slope + _CLOSE / 3 * e if math.isfinite(off) else (max(low, 0.0) + high) / 2, 0.0)
        if not low < e < high:
            e = (max(low, 0.0) + high) / 2 if math.isfinite(high) else 2 * low + 1e-9
    return Fraction(high) if math.isfinite(high) else Fraction(2 * e + 1) * 10**9


def _excess(value: arb, target: Fraction) -> float:
    """Returns ln(upper end / target) as a float whose sign is certain: above 0 unless the ball lies below the target."""
    top = value.upper()
    if not top > 0:
        return -math.inf if top <= 0 else math.inf
    with working(64):
        off = float((top / ball(target)).log())
    return min(off, 0.0) if top <= ball(target) else max(off, 1e-15)
