"""Says how small a violation could still hide from an attack that found none.

    An event has probability p on D and q on D′, and epsilon = ln((p - delta) / q). It is counted on n fresh outputs of each
    side. With probability 97.5 % each, the count on D is at least its lower quantile, and that on D′ at most its upper one.
    So if these two counts give a bound above the claim, the attack says "violates" with probability 95 %.

The smallest such epsilon is stated for events of several probabilities. It holds for an event that is counted: the search may
overlook one, and a violation on pairs that were not tried stays unseen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dither.audit.blackbox.confidence import bounds, tail_above

SHOWN = (0.1, 0.001)
CONFIDENCE = 0.95
_TOP = 30.0


def detectable(p: float, trials: int, claimed: float, delta: float, error: float) -> float:
    """Returns the least epsilon, to two digits after the point, that would be seen; infinity if none would.

    >>> detectable(0.1, 100_000, 1.0, 0.0, 1e-5)
    1.18
    """
    if p <= delta:
        return math.inf
    least = quantile(p, trials, (1 - CONFIDENCE) / 2)

    def seen(epsilon: float) -> bool:
        q = min(1.0, (p - delta) * math.exp(-epsilon))
        most = quantile(q, trials, 1 - (1 - CONFIDENCE) / 2)
        return bounds((least, trials), (most, trials), delta, error)[0] > claimed

    if not seen(_TOP):
        return math.inf
    low, high = claimed, _TOP
    while high - low > 0.005:
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return math.ceil(high * 100 - 1e-6) / 100


def quantile(p: float, trials: int, level: float) -> int:
    """Returns the smallest k with Pr[Bin(trials, p) <= k] >= level.

    >>> quantile(0.5, 10, 0.5), quantile(0.0, 10, 0.9), quantile(1.0, 10, 0.1)
    (5, 0, 10)
    """
    if p <= 0:
        return 0
    if p >= 1:
        return trials
    return _first(0, trials, lambda k: k == trials or 1 - tail_above(p, k + 1, trials) >= level)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def describe_power(trials: int, claimed: float, delta: float, error: float) -> str:
    """Returns the sentence of a verdict.

    >>> describe_power(100_000, 1.0, 0.0, 1e-5)
    'would have seen ε ≥ 1.18 with 95 % on a counted event of probability 10 %, ε ≥ 5.09 on one of 0.1 %'
    """
    seen = {p: detectable(p, trials, claimed, delta, error) for p in SHOWN}
    known = [(p, value) for p, value in seen.items() if value < math.inf]
    if not known:
        return "too few outputs to have seen a violation on an event of probability 10 %"
    first, *rest = [
        f"ε ≥ {value:g} {{}} of {'probability ' if not place else ''}{p * 100:g} %" for place, (p, value) in enumerate(known)
    ]
    return "would have seen " + ", ".join(
        [first.format("with 95 % on a counted event"), *(one.format("on one") for one in rest)]
    )
