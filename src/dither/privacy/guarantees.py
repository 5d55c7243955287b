"""Guarantees: what a loss means for one person, in words and in numbers.

    factor        e^epsilon, at least 1 + epsilon: how much likelier one unit can make any answer
    power         the hit rate of the best membership test at a given rate of false alarms
    posterior     what a strong adversary may believe after the release, given the belief before
    queries       how many counts of a given margin a budget pays for
    describe      the guarantee in plain words

Every real number is a rational rounded in the cautious direction: upper bounds up, lower bounds down.
Hit rates: Pr[in | member] <= e^eps Pr[in | not] + delta, and the same for "out", so that
power <= min(e^eps a + delta, 1 - e^-eps (1 - a - delta)). Posterior odds are prior odds times a likelihood ratio:
within e^(+-eps) for presence under add/remove, since one step leads from "in" to "out"; a *value* is two steps away
under add/remove (out with one value, in with the other) and one under replace; h people whose records reveal each
other are h times as many steps. References: Wasserman and Zhou, JASA 2010; Kasiviswanathan and Smith, JPC 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

from flint import arb

from dither.errors import ArgumentError, Fix, PriceError, Python
from dither.exact.balls import ball, exp, lower, upper, working
from dither.exact.laws.base import Law, search
from dither.exact.laws.gaussian import LARGEST_VARIANCE, Gaussian
from dither.exact.laws.geometric import LARGEST_SCALE, SMALLEST_SCALE, TwoSided
from dither.exact.numbers import Number, between, items, one_of, rational, show, whole
from dither.privacy import parts
from dither.privacy.conversion import round_up
from dither.privacy.losses import Approx, Curve, Loss, Pure, check_loss
from dither.privacy.neighbours import AddRemove, Replace

_BITS = 128
_DEFAULT = AddRemove()
_LARGEST_EPSILON = 40_000  # above this, e^epsilon has thousands of digits and there is no guarantee left


class Range(NamedTuple):
    """Certified bounds: low is rounded down and high is rounded up."""

    low: Fraction
    high: Fraction


def factor(epsilon: Number) -> Fraction:
    """Returns e^epsilon, rounded up: the largest factor by which one unit changes the probability of any answer.

    >>> float(factor(0.1)), float(factor(1))
    (1.1051709180756477, 2.718281828459045)
    """
    at = between(epsilon, "epsilon", 0, _LARGEST_EPSILON)
    return _up(lambda: exp(at))


def power(loss: Loss, false_alarms: Number, *, delta: Number | None = None) -> Fraction:
    """Returns the highest hit rate of any membership test with this rate of false alarms.

    `delta` states where to read a zCDP loss or a curve; pure and (epsilon, delta) losses need none.

    >>> float(power(Pure(1), "0.05"))
    0.13591409142295227
    """
    rate = between(false_alarms, "false_alarms", 0, 1)
    eps, slack = _epsilon_and_delta(loss, delta)
    often = _up(lambda: exp(eps) * ball(rate) + ball(slack))
    rarely = _up(lambda: 1 - exp(-eps) * ball(max(1 - rate - slack, Fraction(0))))
    return min(often, rarely, Fraction(1))


def tradeoff(
    loss: Loss, false_alarms: Iterable[Number] = ("0.001", "0.01", "0.05", "0.1", "0.5"), *, delta: Number | None = None
) -> tuple[tuple[Fraction, Fraction], ...]:
    """Returns pairs (rate of false alarms, highest hit rate).

    >>> [float(hit) for _, hit in tradeoff(Pure("1/10"), ["0.05", "0.5"])]
    [0.05525854590378238, 0.5475812909820202]
    """
    rates = items(false_alarms, "false_alarms", fix='write ["0.05", "0.5"].')
    return tuple((rational(rate, "false_alarms"), power(loss, rate, delta=delta)) for rate in rates)


def posterior(
    loss: Loss,
    prior: Number,
    *,
    about: Literal["presence", "value"] = "presence",
    neighbours: AddRemove | Replace = _DEFAULT,
    people: int = 1,
) -> Range:
    """Returns the range of beliefs after the release, for an adversary who knows everybody else and believed `prior` before.

    If records of other people reveal something about the person (a family, a team), set `people` to their number, the
    person included. Holds for losses with a pure epsilon: a delta bounds how often this fails, not the belief when it does.

    >>> low, high = posterior(Pure(1), "1/2")
    >>> float(low), float(high)
    (0.2689414213699951, 0.7310585786300049)
    """
    before = between(prior, "prior", 0, 1)
    shift = check_loss(loss).epsilon(0) * _steps(about, neighbours) * whole(people, "people", least=1)
    if before in (0, 1) or shift == 0:
        return Range(before, before)
    if shift > _LARGEST_EPSILON:
        return Range(Fraction(0), Fraction(1))
    with working(_BITS):
        doubt = ball((1 - before) / before)
        return Range(_round_down(lower(1 / (1 + doubt * exp(shift)))), _up_to_one(1 / (1 + doubt * exp(-shift))))


def queries(budget: Pure | Approx, margin: int, confidence: Number = "0.95") -> int:
    """Returns how many counts, each within +-margin at this confidence, the budget pays for (one unit moves each by 1).

    Pure: k geometric releases at epsilon / k, so the number grows with the margin. (epsilon, delta): the better of
    geometric and Gaussian noise, composed by their exact curves, and the number grows with the margin *squared*.
    With margin = sqrt(n) that is about sqrt(n) against about n questions on n people.

    >>> queries(Pure(1), margin=100)
    33
    """
    reach, sure = whole(margin, "margin", least=1), between(confidence, "confidence", 0, 1, open_low=True, open_high=True)
    if not isinstance(budget, Pure | Approx):
        raise ArgumentError(
            "budget must be Pure(epsilon) or Approx(epsilon, delta).", fix="state the budget as one of the two."
        )
    eps, delta = budget.pair()
    if delta == 1:
        raise ArgumentError("budget must have a delta below 1: at 1 nothing is protected.", fix="give a smaller delta.")
    pure = _largest(lambda k: _stays_within(TwoSided, k / eps, LARGEST_SCALE, reach, sure)) if eps else 0
    if not delta:
        return pure
    scale = Fraction(_largest(lambda j: _stays_within(TwoSided, Fraction(j, 1000), LARGEST_SCALE, reach, sure)), 1000)
    grid = Fraction(reach * reach, 1 << 16)
    variance = grid * _largest(lambda j: _stays_within(Gaussian, grid * j, LARGEST_VARIANCE, reach, sure))
    noises = [Curve.of(parts.DiscreteLaplace(1 / scale, 1))] if scale else []
    noises += [Curve.of(parts.DiscreteGaussian(1, variance))] if variance else []
    return max([pure, *(_largest(_fits(noise, eps, delta)) for noise in noises)])


def describe(loss: Loss, *, neighbours: AddRemove | Replace = _DEFAULT, delta: Number = "1e-6") -> str:
    """Returns the guarantee in plain words. A zCDP loss or a curve is read at `delta`.

    >>> print(describe(Pure("0.1")))
    The guarantee compares tables that differ by one person being present or absent.
    The chance of any answer changes by a factor of at most 1.106 (e^0.1, near 1 + 0.1).
    A test for who took part that is wrong about 5 % of the others recognises at most 5.526 % of those who did.
    A belief of 50 % that a person took part stays between 47.5 % and 52.5 %.
    A household of four: epsilon 0.4, a factor of at most 1.492.
    """
    eps, slack = _epsilon_and_delta(loss, delta)
    _steps("presence", neighbours)  # refuses anything but a relation
    if 4 * eps > _LARGEST_EPSILON:
        return f"The guarantee compares {neighbours}.\nAt epsilon {_show_exact_or_up(eps)} it protects nobody."
    near = f", near 1 + {show(eps)}" if eps < 1 else ""
    fails = f", plus at most {_show_exact_or_up(slack)}" if slack else ""
    subject = "took part" if isinstance(neighbours, AddRemove) else "has one value rather than another"
    lines = [
        f"The guarantee compares {neighbours}.",
        f"The chance of any answer changes by a factor of at most {_show_up(factor(eps))} (e^{show(eps)}{near}){fails}.",
        "A test for who took part that is wrong about 5 % of the others "
        f"recognises at most {_show_up(100 * power(Approx(eps, slack), '0.05'))} % of those who did.",
    ]
    if not slack:
        low, high = posterior(Pure(eps), "1/2", neighbours=neighbours)
        between_text = f"{_show_down(100 * low)} % and {_show_up(100 * high)} %"
        lines.append(f"A belief of 50 % that a person {subject} stays between {between_text}.")
    four, left = Approx(eps, slack).group(4).pair()
    also = f", delta {_show_up(left)}" if left else ""
    lines.append(f"A household of four: epsilon {_show_exact_or_up(four)}{also}, a factor of at most {_show_up(factor(four))}.")
    return "\n".join(lines)


def _epsilon_and_delta(loss: Loss, delta: Number | None) -> tuple[Fraction, Fraction]:
    """Returns (epsilon, delta) of the loss, read at `delta` if the loss leaves it open."""
    check_loss(loss)
    if isinstance(loss, Pure | Approx):
        return loss.pair()
    if delta is None:
        raise PriceError("This loss leaves its delta open.", fix=Fix("say where to read it: {it}.", it=Python("delta='1e-6'")))
    return loss.epsilon(delta), rational(delta, "delta")


def _steps(about: str, neighbours: AddRemove | Replace) -> int:
    """Returns the number of single steps from one hypothesis to the other."""
    if not isinstance(neighbours, AddRemove | Replace):
        raise ArgumentError("neighbours must be AddRemove() or Replace().", fix="for a group, count it in `people`.")
    return 2 if one_of(about, "about", "presence", "value") == "value" and isinstance(neighbours, AddRemove) else 1


def _fits(noise: Curve, epsilon: Fraction, delta: Fraction) -> Callable[[int], bool]:
    """Returns a test whether k releases fit. The zCDP bound decides far from the border, the exact curve near it."""
    return lambda k: noise.repeat(k).zcdp().delta(epsilon) <= delta or noise.repeat(k).delta(epsilon) <= delta


def _stays_within(noise: Callable[[Fraction], Law], size: Fraction, largest: Fraction, margin: int, sure: Fraction) -> bool:
    """Returns whether noise of this size stays within the margin. Sizes above the samplers' largest do not."""
    return size <= largest and noise(max(size, SMALLEST_SCALE)).radius(sure) <= margin


def _largest(holds: Callable[[int], bool]) -> int:
    """Returns the largest k >= 0 for which it holds (it must fail for some k and all larger ones)."""
    return search(lambda k: not holds(k), 1, None) - 1


def _up(real: Callable[[], arb]) -> Fraction:
    with working(_BITS):
        return round_up(upper(real()))


def _up_to_one(chance: arb) -> Fraction:
    return min(round_up(upper(chance)), Fraction(1))


def _round_down(value: Fraction) -> Fraction:
    return 1 - round_up(1 - value, _BITS)


def _show_exact_or_up(value: Fraction) -> str:
    """Shows the number as elsewhere if that text is not below it, else rounded up."""
    text = show(value)
    return text if Fraction(text) >= value else _four_digits(value, ROUND_CEILING)


def _show_up(value: Fraction) -> str:
    return _four_digits(value, ROUND_CEILING)


def _show_down(value: Fraction) -> str:
    return _four_digits(value, ROUND_FLOOR)


def _four_digits(value: Fraction, rounding: str) -> str:
    """Shows four significant digits, rounded in this direction."""
    rounded = Context(prec=4, rounding=rounding, Emax=10**9, Emin=-(10**9)).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
    plain = Decimal("1e-3") <= abs(rounded) < 10**6
    return f"{rounded.normalize():f}" if plain else f"{rounded.normalize():g}"
