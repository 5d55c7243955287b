"""What no noise covers: facts and numbers that are the same whatever the noise, and differ between D and D′.

Such a thing tells D from D′ with certainty, so no epsilon holds. It is looked for with ordinary noise, none, much upwards,
much downwards, and confirmed with wild noise of up to 60 scales, each value on its own: what depends on noise at all, and
be it with a probability that no sampling would see, gives itself away. Draws of unknown law cannot be made wild; where a run
has such, the runs are counted and the figure is the Clopper-Pearson bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dither.audit.adapters import Tape
from dither.audit.adapters.tape import RAW, UNSEEN
from dither.audit.observed import Seen, Side

MODES = ("random", "zero", "high", "low")
WILD = 40
COUNTED = 300  # runs where a law is unknown; more for a larger epsilon, up to MOST_COUNTED
MOST_COUNTED = 20_000
ALPHA = 1e-9  # error of a counted figure
_FIRST = ("outcome", "message", "shape", "holes", "words", "warnings")


@dataclass(frozen=True)
class Found:
    """A difference: its kind (kept while it is made smaller), what it is, and the epsilon it shows at least."""

    kind: str
    event: str
    epsilon: float
    confidence: float = 1.0


@dataclass(frozen=True)
class Runs:
    """The four first runs on each side, under the same noise."""

    one: tuple[Seen, ...]
    two: tuple[Seen, ...]

    def draws(self, *kinds: str) -> bool:
        return any(draw.kind in kinds for seen in (*self.one, *self.two) for draw in seen.draws)


def first_runs(one: Side, two: Side, seed: int) -> Runs:
    return Runs(*(tuple(side.run(Tape(seed + place, mode)) for place, mode in enumerate(MODES)) for side in (one, two)))


def uncovered(one: Side, two: Side, runs: Runs, seed: int, claim: tuple[float, float]) -> Found | None:
    """The first steady difference, if there is one."""
    if runs.draws(UNSEEN) or not list(_steady(runs)):
        return None
    unknown = runs.draws(RAW)
    wild = [Tape(seed + len(MODES) + turn, "wild") for turn in range(WILD)]
    # Where a law is unknown, honest runs are counted too: as many as could tell at the claimed epsilon.
    count = counted(claim[0]) if unknown else 0
    tapes = wild + [Tape(seed + len(MODES) + WILD + turn) for turn in range(count)]
    again = [tuple(side.run(Tape(tape.seed, tape.mode)) for tape in tapes) for side in (one, two)]
    runs = Runs((*runs.one, *again[0]), (*runs.two, *again[1]))
    found = next(_steady(runs), None)
    if found is None or runs.draws(UNSEEN) or (runs.draws(RAW) and not unknown):
        return None
    if not unknown:
        return found
    least = ALPHA ** (1 / count)  # Clopper-Pearson: all of them on one side, none on the other
    if least <= claim[1]:
        return None
    return Found(found.kind, found.event, math.log((least - claim[1]) / (1 - least)), 1 - 2 * ALPHA)


def confirmed(one: Side, two: Side, found: Found, seed: int, epsilon: float) -> bool:
    """Whether a difference stays in many honest runs. Noise that the adapter does not see cannot be made wild: an answer
    that is true all but once in a thousand times looks steady in a few dozen runs, and keeps epsilon = 7.
    """
    if found.kind not in _FIRST and not found.kind.startswith("output"):
        return True  # it does not rest on being steady
    first = seed + len(MODES) + WILD + MOST_COUNTED
    tapes = range(first, first + counted(epsilon))
    left, right = ({side.run(Tape(tape)).all.get(found.kind) for tape in tapes} for side in (one, two))
    return left.isdisjoint(right) and 1 in (len(left), len(right))


def counted(epsilon: float) -> int:
    """As many runs as could tell at that epsilon."""
    return max(COUNTED, min(MOST_COUNTED, int(25 * math.exp(min(epsilon, 9.0)))))


def _steady(runs: Runs) -> Iterator[Found]:
    """Items that are constant on one side and never have that value on the other."""
    one, two = [seen.all for seen in runs.one], [seen.all for seen in runs.two]
    names = dict.fromkeys((*_FIRST, *(name for seen in (one[0], two[0]) for name in seen)))
    for name in names:
        left, right = {seen.get(name) for seen in one}, {seen.get(name) for seen in two}
        if left.isdisjoint(right) and 1 in (len(left), len(right)):
            if None in left | right and name not in _FIRST:
                continue  # a path that is missing: the shape or the holes tell it better
            yield Found(name, f"{name}: {_told(left)} on D, {_told(right)} on D′, whatever the noise", math.inf)


def _told(values: set[str | None]) -> str:
    if len(values) > 1:
        return "other values"
    text = str(next(iter(values)))
    return repr(text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)")
