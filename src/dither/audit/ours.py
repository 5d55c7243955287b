"""`dither audit dither`: our own system, with every method there is.

exact      every registered mechanism's price on its law, and every family of samplers along its random bits
replay     generated questions on generated neighbouring tables, through the public door and the real engine
black box  the mechanisms as they run, attacked as if they were anyone's
measured   what run times tell
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dither.audit import exact, own, samplers
from dither.audit.blackbox import attack
from dither.audit.exact import shown
from dither.audit.own.timing import measure
from dither.audit.targets import Target
from dither.audit.verdicts import Verdict
from dither.mechanisms.base import Example, Mechanism
from dither.privacy.losses import Approx, Pure

Progress = Callable[[str, float], None]  # what is being done, and how much of it all is done
ERROR, STRICT = 0.05, 1e-3  # of all black-box verdicts of one audit together
_ASKS_PER_SECOND = 60
_ARRAYS = ("Geometric", "TruncatedGeometric", "Gaussian", "RandomizedResponse", "Threshold")
NOT_CHECKED = (
    "the operating system's random numbers and AES in counter mode are taken to be indistinguishable from fair coin flips",
    "mechanisms at other parameters than their examples: the laws are the same formulas, and tests vary the numbers",
    *samplers.NOT_WALKED,
    "replay tries generated questions and tables; what it did not generate, it did not see",
    "engines other than the one installed, and whoever can read the memory or the disk of the machine",
)


def verdicts(seconds: float, seed: int, progress: Progress) -> Iterator[Verdict]:
    """All verdicts on our own system, in about `seconds`: a quarter for walks, two fifths for replay, the rest for attacks."""
    yield from exact.over_registry(lambda share: progress("prices on exact laws", 0.05 * share))
    yield from _walks(seconds / 4, lambda share: progress("samplers, bit by bit", 0.05 + 0.2 * share))
    yield _replay(seconds * 0.4, seed, lambda share: progress("replay on neighbouring tables", 0.25 + 0.5 * share))
    yield from _attacks(seconds / 5, lambda share: progress("mechanisms as a black box", 0.75 + 0.2 * share))


def _walks(seconds: float, progress: Callable[[float], None]) -> Iterator[Verdict]:
    every, until = samplers.samplers(), time.monotonic() + seconds
    for done, sampler in enumerate(every):
        yield sampler.walk(max(0.5, until - time.monotonic())).verdict()
        progress((done + 1) / len(every))


def _replay(seconds: float, seed: int, progress: Callable[[float], None]) -> Verdict:
    return own.replay(pairs=2000, seed=seed, seconds=seconds, progress=lambda done, wanted: progress(done / wanted))


def _attacks(seconds: float, progress: Callable[[float], None]) -> Iterator[Verdict]:
    targets = mechanisms()
    for done, target in enumerate(targets):
        each = max(0.2, seconds / len(targets))
        yield attack(target, error=ERROR / len(targets), strict=STRICT / len(targets), seconds=each)
        progress((done + 1) / len(targets))


def mechanisms() -> tuple[Target, ...]:
    """One example of each registered mechanism that states an epsilon, as anyone's code."""
    chosen = [samplers.telling(kind) for kind in exact.kinds()]
    stated = [one for one in chosen if isinstance(one.mechanism.loss(), (Pure, Approx))]
    return tuple(_target(type(one.mechanism).__name__, one) for one in stated)


def _target(name: str, example: Example) -> Target:
    mechanism: Mechanism = example.mechanism
    loss = mechanism.loss()
    epsilon, delta = loss.pair() if isinstance(loss, (Pure, Approx)) else (loss.epsilon(exact.DELTA), exact.DELTA)

    def batch(data: Any, size: int) -> Sequence[Any]:
        return list(mechanism.release(np.full(size, data)))

    pairs = tuple((example.exact, other) for other in example.neighbours)
    return Target(shown(example), mechanism.release, epsilon, delta, pairs, batch=batch if name in _ARRAYS else None)


def timing(seconds: float, seed: int) -> dict[str, str]:
    """What the clock tells, with its limit: measured and reported, never judged."""
    asks = min(400, max(40, 2 * int(seconds * _ASKS_PER_SECOND / 6)))
    return {one.words: str(one).partition(": ")[2] for one in measure(asks, seed).effects}
