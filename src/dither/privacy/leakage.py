"""Leakage: what an answer tells about a secret value, from the exact law of a mechanism, beside what its price allows.

    posterior   Pr[v | k] = prior(v) Pr[M(v) = k] / sum over w of prior(w) Pr[M(w) = k]         for an actual answer k
    risk        how often the best attacker is wrong: 1 - sum over k of max over v of prior(v) Pr[M(v) = k]
    information mutual information of value and answer: sum of Pr[v, k] log2(Pr[v, k] / Pr[v] Pr[k]), in bits
    min-entropy log2 of how much likelier the best guess is to be right with the answer than without, in bits

Bounds. Let every two values of the prior be at most `steps` neighbouring steps apart, so that their laws differ by a factor of
at most e^E, E the loss for that many steps. With the largest prior p:
  - odds move by at most e^E (guarantees.posterior), so the best guess is right with at most p e^E / (1 - p + p e^E);
  - a pair of laws within e^E is a post-processing of randomized response at E, so KL <= E tanh(E / 2). By convexity the
    information is at most (1 - sum of p_v^2) times the largest KL of two laws, and never more than the prior's entropy.
    rho-zCDP bounds that KL by steps^2 rho as well.
A price with a delta bounds neither the posterior nor the risk here, and the results say None.

Every number is a rational rounded to the cautious side, to about 2^-60: risks down, everything else up.
References: Alvim, Andres, Chatzikokolakis and Palamidessi, FAST 2011; Kairouz, Oh and Viswanath, ICML 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, SupportsIndex

from flint import arb

from dither.errors import ArgumentError
from dither.exact import balls
from dither.exact.laws.base import Law, search
from dither.exact.laws.joint import Joint, Product, number
from dither.exact.numbers import Number, between, items, rational, show_about, whole
from dither.privacy import guarantees
from dither.privacy.losses import Loss, Pure

_BITS = 192
_SHORT = 60
_BEYOND = Fraction(1, 1 << 80)  # what a sum over an endless law leaves out on each side
_MOST_VALUES = 1000
_MOST_OUTPUTS = 1 << 17
_LARGEST = 10_000  # the largest epsilon whose bounds are told apart from "anything"

Prior = Mapping[Any, Number] | Iterable[tuple[Any, Number]]


class Telling(Protocol):
    """The methods of a mechanism that say what an answer tells: its price, its law and its outcomes."""

    def loss(self) -> Loss: ...

    def law(self, exact: Any) -> Law: ...

    def outcome(self, k: int) -> Any: ...


@dataclass(frozen=True)
class Belief:
    """What is believed about one value, before and after an answer. `least` and `most` are what the price allows."""

    value: Any
    before: Fraction
    after: Fraction
    least: Fraction | None
    most: Fraction | None


@dataclass(frozen=True)
class Leakage:
    """What a mechanism's answers tell on average. Each number stands beside its bound (None: the price gives none)."""

    risk_before: Fraction
    risk: Fraction
    risk_bound: Fraction | None
    entropy: Fraction
    information: Fraction
    information_bound: Fraction | None
    min_entropy: Fraction
    min_entropy_bound: Fraction | None

    def __str__(self) -> str:
        def at_most(value: Fraction | None) -> str:
            return "no bound" if value is None else f"at most {show_about(value, up=True, digits=4)}"

        risk, before = show_about(self.risk, up=False, digits=4), show_about(self.risk_before, up=False, digits=4)
        bound = "no bound" if self.risk_bound is None else f"at least {show_about(self.risk_bound, up=False, digits=4)}"
        told, leaked = (show_about(value, up=True, digits=4) for value in (self.information, self.min_entropy))
        return "\n".join(
            (
                f"the best guess is wrong   {risk} ({bound}); {before} without the answer",
                f"mutual information        {told} bits ({at_most(self.information_bound)})",
                f"min-entropy leakage       {leaked} bits ({at_most(self.min_entropy_bound)})",
            )
        )


def flat(values: Iterable[Any]) -> tuple[tuple[Any, Fraction], ...]:
    """Returns the prior that gives every value the same probability.

    >>> flat([3, 4])
    ((3, Fraction(1, 2)), (4, Fraction(1, 2)))
    """
    listed = items(values, "values", fix="give a list of values.")
    if not listed:
        raise ArgumentError("values must hold at least one value, and it is empty.", fix="give a list of values.")
    return tuple((value, Fraction(1, len(listed))) for value in listed)


def posterior(mechanism: Telling, prior: Prior, answer: Any, steps: SupportsIndex = 1) -> tuple[Belief, ...]:
    """Returns what to believe about each value of the prior after this answer of the mechanism.

    `steps`: how many steps of neighbouring data lie between two of the values at most, for the bounds.

    >>> from dither.mechanisms.geometric import Geometric
    >>> without, you = posterior(Geometric(epsilon=1, sensitivity=1), {128: "1/2", 129: "1/2"}, 131)
    >>> round(float(you.after), 4), round(float(you.most), 4)
    (0.7311, 0.7311)
    """
    listed, eps = _read(mechanism, prior), _epsilon(mechanism.loss(), whole(steps, "steps", least=1))
    laws = [mechanism.law(value) for value, _ in listed]
    place = _place(mechanism, laws, answer)
    with balls.working(_BITS):
        weights = [balls.ball(share) * law.pmf(place) for (_, share), law in zip(listed, laws, strict=True)]
        if not sum(weights, arb(0)) > 0:  # impossible, or so far away that no ball tells it from that
            raise _no_answer()
    return tuple(
        Belief(value, share, _after(listed, laws, place, i), *_allowed(eps, share)) for i, (value, share) in enumerate(listed)
    )


def _after(listed: list[tuple[Any, Fraction]], laws: list[Law], place: int, i: int) -> Fraction:
    """Returns one posterior probability, rounded up."""

    def ratio() -> arb:
        weights = [balls.ball(share) * law.pmf(place) for (_, share), law in zip(listed, laws, strict=True)]
        return weights[i] / sum(weights, arb(0))

    return min(_up(ratio), Fraction(1))


def _allowed(eps: Fraction | None, share: Fraction) -> tuple[Fraction | None, Fraction | None]:
    if eps is None:
        return None, None
    return (share, share) if share in (0, 1) else guarantees.posterior(Pure(eps), share)


def measure(mechanism: Telling, prior: Prior, steps: SupportsIndex = 1) -> Leakage:
    """Returns what the mechanism's answers tell about a value of this prior, on average, each beside its bound.

    >>> from dither.mechanisms.randomized_response import RandomizedResponse
    >>> told = measure(RandomizedResponse(p="3/4"), flat([0, 1]))
    >>> float(told.risk), float(told.risk_before), round(float(told.information), 4), round(float(told.min_entropy), 4)
    (0.25, 0.5, 0.1887, 0.585)
    """
    listed, far = _read(mechanism, prior), whole(steps, "steps", least=1)
    shares = [share for _, share in listed if share]
    laws = [mechanism.law(value) for value, share in listed if share]
    outputs, beyond = _outputs(laws)
    with balls.working(_BITS):
        table = [[balls.ball(share) * law.pmf(k) for k in outputs] for share, law in zip(shares, laws, strict=True)]
        right = sum((_largest(column) for column in zip(*table, strict=True)), arb(0))
        told = sum((_told(column, shares) for column in zip(*table, strict=True)), arb(0)) / arb(2).log()
        entropy = _entropy(shares)
    top = max(shares)
    guess = min(_up(lambda: right) + beyond, Fraction(1))
    eps, loss = _epsilon(mechanism.loss(), far), mechanism.loss()
    best = None if eps is None else _best_guess(eps, top)
    return Leakage(
        1 - top,
        1 - guess,
        None if best is None else 1 - best,
        entropy,
        min(_up(lambda: told) + _tail(beyond, shares), entropy),
        _information_bound(loss, eps, far, shares, entropy),
        max(_up(lambda: (balls.ball(guess / top)).log() / arb(2).log()), Fraction(0)),
        None if best is None else _up(lambda: (balls.ball(best / top)).log() / arb(2).log()),
    )


def _largest(column: tuple[arb, ...]) -> arb:
    result = column[0]
    for each in column[1:]:
        result = result.max(each)
    return result


def _told(column: tuple[arb, ...], shares: list[Fraction]) -> arb:
    """Returns one output's part of the mutual information, in nats: never below 0."""
    whole_column = sum(column, arb(0))
    parts = [
        p * (p / (balls.ball(share) * whole_column)).log() for p, share in zip(column, shares, strict=True) if not p.is_zero()
    ]
    return sum(parts, arb(0))


def _entropy(shares: list[Fraction]) -> Fraction:
    return _up(lambda: sum((balls.ball(p) * balls.ball(1 / p).log() for p in shares), arb(0)) / arb(2).log())


def _tail(beyond: Fraction, shares: list[Fraction]) -> Fraction:
    """Returns the most that outputs beyond the sum can tell: log2(1 / prior) bits each."""
    return beyond * max((1 / p).numerator.bit_length() for p in shares)


def _best_guess(eps: Fraction, top: Fraction) -> Fraction:
    """Returns how often a guess can be right at most: p e^E / (1 - p + p e^E)."""
    return min(_up(lambda: balls.ball(top) / (balls.ball(top) + balls.ball(1 - top) * balls.exp(-eps))), Fraction(1))


def _information_bound(
    loss: Loss, eps: Fraction | None, steps: int, shares: list[Fraction], entropy: Fraction
) -> Fraction | None:
    """Returns the most bits that the price allows, or None if it has a delta."""
    ways: list[Callable[[], arb]] = []
    if eps is not None:
        ways.append(lambda: balls.ball(eps) * (balls.ball(eps / 2)).tanh())
    stated = loss.zcdp()
    if not stated.slack:
        ways.append(lambda: balls.ball(stated.rho * steps * steps))
    if not ways:
        return None
    apart = 1 - sum(p * p for p in shares)
    with balls.working(_BITS):
        nats = min(balls.upper(way()) for way in ways)
    return min(entropy, _up(lambda: balls.ball(apart * nats) / arb(2).log()))


def _epsilon(loss: Loss, steps: int) -> Fraction | None:
    """Returns the epsilon of this many steps, or None if the loss has a delta or says nothing at all."""
    if not isinstance(loss, Pure):
        return None
    eps = loss.epsilon() * steps
    return eps if eps <= _LARGEST else None


def _read(mechanism: Any, prior: Prior) -> list[tuple[Any, Fraction]]:
    if isinstance(mechanism, type) or not all(callable(getattr(mechanism, part, None)) for part in ("loss", "law", "outcome")):
        raise ArgumentError(f"mechanism must be a mechanism, and it is a {type(mechanism).__name__}.", fix="pass a mechanism.")
    fix = "give {value: probability, ...}, or leakage.flat([...])."
    listed = items(prior.items() if isinstance(prior, Mapping) else prior, "prior", fix)
    if not 0 < len(listed) <= _MOST_VALUES or not all(isinstance(each, (tuple, list)) and len(each) == 2 for each in listed):
        raise ArgumentError(f"prior must hold 1 to {_MOST_VALUES} values with their probabilities.", fix=fix)
    read = [(value, between(share, "prior", 0, 1)) for value, share in listed]
    if sum(share for _, share in read) != 1:
        raise ArgumentError("The probabilities of the prior must add up to 1.", fix=fix)
    return read


def _outputs(laws: list[Law]) -> tuple[range, Fraction]:
    """Returns the outputs to add up, and what they leave out."""
    spans = [law.span() for law in laws]
    if any(isinstance(law, Joint) and law.span()[1] is None for law in laws):
        raise _too_many()
    endless = any(end is None for span in spans for end in span)
    low = min(_first(law) for law in laws)
    high = max(_last(law) for law in laws)
    if high - low >= _MOST_OUTPUTS:
        raise _too_many()
    return range(low, high + 1), 2 * _BEYOND if endless else Fraction(0)


def _first(law: Law) -> int:
    first = law.span()[0]
    if first is not None:
        return first
    return -search(lambda k: balls.certainly_at_most(lambda: law.at_most(-k - 1), _BEYOND), None, None)


def _last(law: Law) -> int:
    last = law.span()[1]
    if last is not None:
        return last
    return search(lambda k: balls.certainly_at_most(lambda: law.more_than(k), _BEYOND), None, None)


def _too_many() -> ArgumentError:
    return ArgumentError(
        f"The answers of this mechanism are more than {_MOST_OUTPUTS}, too many to add up.",
        fix="measure one with less noise or fewer parts; `posterior` needs no sum.",
    )


def _place(mechanism: Any, laws: list[Law], answer: Any) -> int:
    """Returns the value of these laws that stands for an answer of the mechanism."""
    products = [law for law in laws if isinstance(law, Product)]
    if products and isinstance(answer, (tuple, list)) and len(answer) == products[0].count:
        inside = mechanism if hasattr(mechanism, "parts") else mechanism.mechanism  # of an Oblivious
        factors = zip(*(law.factors for law in products), strict=True)
        parts = zip(inside.parts, factors, answer, strict=True)
        return number([_place(part, list(each), told) for part, each, told in parts])
    firsts, lasts = zip(*(law.span() for law in laws), strict=True)
    if None in firsts or None in lasts:
        steps = rational(answer, "answer") / Fraction(mechanism.outcome(1))
        if steps.denominator != 1:
            raise _no_answer()
        return int(steps)
    if max(lasts) - min(firsts) >= _MOST_OUTPUTS:
        raise _too_many()
    for k in range(min(firsts), max(lasts) + 1):
        if any(not law.pmf(k).is_zero() for law in laws) and _same(mechanism.outcome(k), answer):
            return k
    raise _no_answer()


def _same(outcome: Any, answer: Any) -> bool:
    try:
        return isinstance(outcome, bool) == isinstance(answer, bool) and bool(outcome == answer)
    except Exception:  # an array, or an object with an opinion of its own
        return False


def _no_answer() -> ArgumentError:
    return ArgumentError(
        "This mechanism cannot give this answer on any of these values.", fix="give an answer that it released."
    )


def _up(real: Callable[[], arb]) -> Fraction:
    with balls.working(_BITS):
        value = real()
        high = balls.upper(value)
    scaled = high * (1 << _SHORT)
    return Fraction(-(-scaled.numerator // scaled.denominator), 1 << _SHORT)
