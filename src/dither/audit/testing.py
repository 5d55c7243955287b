"""`assert_private`: a privacy claim as a test of any project.

    from dither.audit.testing import assert_private

    def test_the_count_is_private() -> None:
        assert_private(noisy_count, epsilon=1)

With pytest, the fixture `assert_private` is the same function. A test fails if the claim is violated, and also if nothing could
be concluded: a check that compared nothing must not look like one that passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dither.audit.foreign import Claim, Foreign, verdicts
from dither.audit.inputs import AUTO
from dither.audit.replay.pairs import ADD_REMOVE
from dither.audit.verdict import VIOLATES, Verdict
from dither.exact.numbers import rational

SURE = 1e-6  # the probability that one call accuses a correct function: a suite of tests has many calls


def assert_private(
    function: Callable[..., Any],
    epsilon: Any,
    delta: Any = 0,
    *,
    data: str = AUTO,
    pairs: Any = None,
    neighbours: str = ADD_REMOVE,
    library: str = AUTO,
    seconds: float = 5.0,
    seed: int = 1,
) -> tuple[Verdict, ...]:
    """Raises AssertionError if the function violates (epsilon, delta), or if no method could conclude anything.

    The function takes the data, and may take `rng`, `noise` or `size`. `data` is as in `dither audit`; `pairs` is a list of
    neighbouring inputs or a function of a random.Random. `seconds` are of processor time.

    >>> import random
    >>> def flipped(bit: int) -> int:
    ...     return bit if random.random() < 0.75 else 1 - bit
    >>> assert_private(flipped, epsilon="1.1", seconds=0.5)[-1].outcome
    'no violation found'
    >>> assert_private(flipped, epsilon="0.5", seconds=30)
    Traceback (most recent call last):
    ...
    AssertionError: flipped: violates ε = 0.5...
    """
    claim = Claim(rational(epsilon, "epsilon"), rational(delta, "delta"), data, pairs, neighbours, library, seed, SURE)
    name = getattr(function, "__name__", "function")
    done = tuple(verdicts(Foreign.of(name, function, claim, seconds), seconds, lambda words, share: None))
    wrong = [verdict for verdict in done if verdict.outcome == VIOLATES] or ([] if any(not one.open for one in done) else done)
    if wrong:
        raise AssertionError("\n".join(map(str, wrong)))
    return done
