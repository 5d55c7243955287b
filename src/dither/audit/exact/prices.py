"""Certifies the price of every registered mechanism on its exact law, at every output.

    Pure(epsilon)            the worst log ratio over all outputs, by `privacy.proof`
    Approx(epsilon, delta)   delta over the best set of outputs, both ways, by `privacy.hockey`
    ZCDP(rho)                the same, at the epsilon that rho is converted to for delta = 1e-6

The check covers one coordinate's law on the examples of each mechanism. tests/laws check that the prices of coordinates add
up, and replay checks that the planner's answers stay within the sensitivity.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.audit.verdict import PROVED, VIOLATES, Verdict
from dither.exact import balls
from dither.exact.laws.base import Law, search
from dither.exact.numbers import show
from dither.mechanisms.base import Example, Mechanism, registry
from dither.mechanisms.norms import L1, L2, PerCoordinate
from dither.privacy.hockey import hockey_stick
from dither.privacy.losses import Approx, Loss, Pure
from dither.privacy.proof import verify

DELTA = Fraction(1, 10**6)  # where a rho is checked
_SLACK = Fraction(1, 1 << 400)  # balls cannot decide a delta that is reached with equality
_POINTS = 12

Progress = Callable[[float], None]


def kinds() -> tuple[type[Mechanism], ...]:
    """Returns every mechanism of dither; users may register others."""
    return tuple(kind for kind in registry() if kind.__module__.startswith("dither."))


def registered() -> tuple[Example, ...]:
    """Returns every example of every mechanism of dither."""
    return tuple(one for kind in kinds() for one in kind.examples())


def over_registry(progress: Progress = lambda share: None) -> Iterator[Verdict]:
    """Yields a verdict on each registered example."""
    examples = registered()
    for done, example in enumerate(examples):
        yield check(example)
        progress((done + 1) / len(examples))


def check(example: Example, claimed: Loss | None = None) -> Verdict:
    """Checks the mechanism's price, or the claimed one, between the example's input and each neighbour.

    >>> from dither.mechanisms import Geometric
    >>> check(Geometric.examples()[0]).outcome
    'proved'
    """
    begin = time.perf_counter()
    loss = claimed or example.mechanism.loss()
    pairs = [(example.exact, other) for other in example.neighbours]
    result = _pure(example, loss, pairs) if isinstance(loss, Pure) else _approximate(example, loss, pairs)
    return Verdict(
        target=show_mechanism(example),
        method="exact",
        outcome=PROVED if result.holds else VIOLATES,
        claimed=result.claimed,
        epsilon=result.epsilon,
        confidence=1.0,
        pair=result.pair,
        event=result.event,
        evidence={**result.evidence, "law": _points(example.mechanism.law, result.pair)},
        seconds=time.perf_counter() - begin,
    )


_PARTS = (
    *("epsilon", "delta", "rho", "scale", "p", "sensitivity", "grid", "n", "categories"),
    *("rule", "keys_per_unit", "threshold", "cutoff", "monotone", "q", "space", "rows", "parts"),
)


def show_mechanism(example: Example) -> str:
    """Shows the mechanism as a constructor call, with short numbers."""
    mechanism = example.mechanism
    fields = getattr(type(mechanism), "__dataclass_fields__", {})
    stated = [(name, getattr(mechanism, name)) for name in _PARTS if name in fields]
    text = ", ".join(f"{name}={_word(value)}" for name, value in stated if value is not None and value is not False)
    return f"{type(mechanism).__name__}({text})"


def _word(value: Any) -> str:
    if isinstance(value, Fraction):
        return show(value)
    if isinstance(value, tuple):
        return f"({', '.join(type(part).__name__ if isinstance(part, Mechanism) else _word(part) for part in value)})"
    if isinstance(value, PerCoordinate):
        return f"PerCoordinate({value.count}, {_word(value.each)})"
    if isinstance(value, (L1, L2)):
        size = "" if value.dimension is None else f", dimension={value.dimension}"
        return f"{type(value).__name__}({_word(value.value)}{size})"
    return str(value)


@dataclass(frozen=True)
class _Result:
    holds: bool
    claimed: tuple[Fraction, Fraction]
    epsilon: float
    pair: tuple[Any, Any] | None
    event: str
    evidence: dict[str, Any]


def _pure(example: Example, loss: Pure, pairs: list[tuple[Any, Any]]) -> _Result:
    proof = verify(example.mechanism, pairs, loss.epsilon())
    at = "along a tail" if proof.output is None else f"output = {proof.output}"
    evidence = {"pairs": len(pairs), "reached at": at, "slack": float(proof.slack)}
    bound = up(proof.worst) if proof.holds else down(proof.worst)
    return _Result(proof.holds, (proof.claimed, Fraction(0)), bound, proof.pair, at, evidence)


def _approximate(example: Example, loss: Loss, pairs: list[tuple[Any, Any]]) -> _Result:
    epsilon, delta = loss.pair() if isinstance(loss, Approx) else (loss.epsilon(DELTA), DELTA)
    law, directions = example.mechanism.law, [way for x, y in pairs for way in ((x, y), (y, x))]
    excesses = [(hockey_stick(law(one), law(other), epsilon), (one, other)) for one, other in directions]
    over, pair = max(excesses, key=lambda item: item[0].high)
    evidence: dict[str, Any] = {"pairs": len(pairs), "delta is at most": up(over.high), "delta is at least": down(over.low)}
    if not isinstance(loss, Approx):
        evidence["the price"] = f"{loss!r}, looked at where delta is {show(delta)}"
    if delta < over.high <= delta + _SLACK:
        evidence["slack"] = f"delta is reached: balls place it within 2^-{_SLACK.denominator.bit_length() - 1} of the claim"
    words = "the outputs that are more than e^ε times as likely on D"
    holds = over.high <= delta + _SLACK
    return _Result(holds, (epsilon, delta), up(epsilon) if holds else down(over.epsilon(delta)), pair, words, evidence)


def _points(law: Callable[[Any], Law], pair: tuple[Any, Any] | None) -> dict[str, list[float]]:
    """Returns both laws around their medians, for a drawing."""
    if pair is None:
        return {}
    x, y = law(pair[0]), law(pair[1])
    middle = [_median(one) for one in (x, y)]
    firsts = [one.span()[0] for one in (x, y)]
    lasts = [one.span()[1] for one in (x, y)]
    low = max(min(middle) - _POINTS, min(-math.inf if end is None else end for end in firsts))
    high = min(max(middle) + _POINTS, max(math.inf if end is None else end for end in lasts))
    if high - low > 8 * _POINTS:
        return {}
    ks = range(int(low), int(high) + 1)
    with balls.working(64):
        return {"output": [*map(float, ks)], "D": [float(x.pmf(k)) for k in ks], "D'": [float(y.pmf(k)) for k in ks]}


def _median(law: Law) -> int:
    return search(lambda k: bool(law.at_most(k) > 0.4999), *law.span())


def up(value: Fraction | float) -> float:
    """Rounds up to a float."""
    near = float(value)
    return near if near == math.inf or Fraction(near) >= value else math.nextafter(near, math.inf)


def down(value: Fraction | float) -> float:
    """Rounds down to a float."""
    near = float(value)
    return near if near == math.inf or Fraction(near) <= value else math.nextafter(near, -math.inf)
