"""Shows that a sampler follows its law, by walking the random bits that it reads, word by word.

    answered(k)   mass of the words after which the sampler returned k without asking for more
    undecided     mass of the words after which it asked for more than the walk tried
    answered(k) <= Pr[k] at every k that was returned   =>   |sampler - law| <= undecided       (total variation)

because both sides sum to one. Masses are Fractions and probabilities are balls, so no rounding enters the statement.

The sampler runs unchanged: the walk replaces `exact.entropy` by a script of stated words and reads how wide a word is asked
for. A first word of 16 bits is tried in all its 65,536 values. Longer and later words are searched: a range of words counts as
one if both ends, a grid between them and a scattered word inside behave alike, under several continuations. A change is located
to two neighbouring words. What rests on full enumeration alone is stated too.
"""

from __future__ import annotations

import hashlib
import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from dither.audit.verdict import NOT_FOUND, PROVED, VIOLATES, WALKED, Verdict
from dither.exact import balls, entropy, replay
from dither.exact.laws.base import Integers, Law

Words = tuple[int, ...]
Tail = Callable[[int, int], int]  # (width, place) to a word
CONTINUED = 6  # words that a continuation may supply


class MoreError(Exception):
    """The script is used up, and the sampler asks for another word."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(width)


def _zeros(width: int, place: int) -> int:
    return 0


def _ones(width: int, place: int) -> int:
    return (1 << width) - 1


def scattered(width: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(b"%d %d" % (width, place)).digest()[: -(-width // 8)], "big") >> (-width % 8)


TAILS = (_zeros, _ones, scattered)


class Script:
    """An entropy source with stated words, then a continuation, then MoreError with the width asked for."""

    def __init__(self) -> None:
        self.play((), None)

    def play(self, words: Words, tail: Tail | None) -> None:
        self.words, self.tail = words, tail
        self.widths: list[int] = []
        self.block = b""

    def start(self, block: bytes) -> None:
        """Supplies one block for a whole array, and nothing after it."""
        self.play((), None)
        self.block = block

    def next(self, width: int) -> int:
        place = len(self.widths)
        self.widths.append(width)
        if place < len(self.words):
            return self.words[place]
        if self.tail is None or place >= len(self.words) + CONTINUED:
            raise MoreError(width)
        return self.tail(width, place)

    def fill(self, target: memoryview) -> None:
        if len(self.block) == len(target):
            target[:], self.block = self.block, b""
            return
        target[:] = self.next(8 * len(target)).to_bytes(len(target), "little")

    def singles(self) -> Iterator[tuple[int]]:
        while True:
            yield (self.next(64),)

    def install(self) -> None:
        """Makes single draws take their words from here, and not from a block that was fetched before."""
        entropy.thread_state().waiting = self.singles()


RELIES_ON = "words between tried words that behave alike behave as they do (every look-up is a search in a sorted list)"
_FULL = 16  # a first word of so many bits is tried in all its values
_GRID = 16  # ranges that a longer or later word is split into before the search
_TINY = Fraction(1, 1 << 60)  # less mass is left undecided
NEAR = Fraction(1, 1 << 66)
_MOST = Fraction(1, 1000)  # a larger distance proves nothing useful
_BITS = 256

Result = tuple[int | None, int]  # (the value, 0), or (None, the width of the next word)
Signature = tuple[Any, ...]
_UNRESOLVED: Result = (None, 0)
Batch = Callable[[int], Integers]


@dataclass
class _Walk:
    """The state of one walk."""

    sample: Callable[[], int]
    script: Script
    most: int
    deadline: float
    near: Fraction
    answered: dict[int, Fraction] = field(default_factory=dict)
    undecided: Fraction = Fraction(0)
    tried: Fraction = Fraction(0)
    runs: int = 0
    queue: list[tuple[Fraction, int, Words, int]] = field(default_factory=list)

    def run(self, words: Words, tail: Tail | None = None) -> Result:
        self.runs += 1
        self.script.play(words, tail)
        self.script.install()
        try:
            return self.sample(), 0
        except MoreError as more:
            return None, more.width

    def signature(self, words: Words) -> Signature:
        """Returns the results of these words under all continuations. Ranges of words are alike only if these are equal."""
        return tuple((self.run(words, tail), tuple(self.script.widths)) for tail in TAILS)

    def is_over(self) -> bool:
        return self.runs > self.most or time.process_time() > self.deadline

    def settle(self, words: Words, mass: Fraction, result: Result, *, follow: bool = True) -> None:
        """Records that `mass` of words behave like `words`. `follow`: queue them if they need more words."""
        value, width = result
        if value is not None:
            self.answered[value] = self.answered.get(value, Fraction(0)) + mass
        elif not follow or mass < _TINY or width > 64:
            self.undecided += mass
        else:
            heapq.heappush(self.queue, (-mass, self.runs, words, width))


def _try_every_word(walk: _Walk, batch: Batch) -> None:
    """Tries every value of a first word of 16 bits, in arrays; halves an array that needs more words."""
    stack = [(half << 15, 1 << 15) for half in (1, 0)]
    unit = Fraction(1, 1 << _FULL)
    while stack:
        first, size = stack.pop()
        walk.runs += 1
        walk.script.start(np.arange(first, first + size, dtype=np.uint16).tobytes())
        try:
            values, times = np.unique(batch(size), return_counts=True)
        except MoreError:
            if size > 1:
                stack += [(first + size // 2, size - size // 2), (first, size // 2)]
            else:
                walk.settle((first,), unit, walk.run((first,)))
            continue
        walk.tried += size * unit
        for value, count in zip(values.tolist(), times.tolist(), strict=True):
            walk.settle((first,), count * unit, (value, 0))


class _Level:
    """All values of the next word, after the words before it."""

    def __init__(self, walk: _Walk, before: Words, weight: Fraction, width: int) -> None:
        self.walk, self.before, self.width = walk, before, width
        self.unit = weight / (1 << width)
        self._signatures: dict[int, Signature] = {}

    def at(self, word: int) -> tuple[int, Result]:
        return word, self.walk.run((*self.before, word))

    def signature(self, word: int) -> Signature:
        if word not in self._signatures:
            self._signatures[word] = self.walk.signature((*self.before, word))
        return self._signatures[word]

    def alike(self, low: tuple[int, Result], high: tuple[int, Result]) -> bool:
        if low[1] != high[1]:
            return False
        return low[1][0] is not None or self.light(low[0], high[0]) or self.signature(low[0]) == self.signature(high[0])

    def light(self, low: int, high: int) -> bool:
        """Tells whether the words between have so little mass that they are left undecided if they need more."""
        return (high - low) * self.unit < _TINY

    def ranges(self) -> Iterator[tuple[int, int, Result]]:
        """Yields ranges of words that behave alike, in order: (first, end, result)."""
        last = (1 << self.width) - 1
        ends = [self.at(last * i // _GRID) for i in range(_GRID + 1)]
        stack = list(pairwise(ends))[::-1]
        while stack and not self.walk.is_over():
            low, high = stack.pop()
            gap, same = high[0] - low[0], self.alike(low, high)
            if gap > 1 and gap * self.unit < self.walk.near:
                yield low[0], high[0], low[1] if same and low[1][0] is not None else _UNRESOLVED
                continue
            if gap > 1:
                inside = self.at(low[0] + (1 + scattered(self.width, low[0]) % (gap - 1) if same else gap // 2))
                if not same or not self.alike(low, inside):
                    stack += [(inside, high), (low, inside)]
                    continue
            yield low[0], high[0], low[1]
        if not stack:
            yield last, last + 1, ends[-1][1]

    def settle(self) -> None:
        """Records all ranges, and joins neighbouring ones that are alike.

        Leaves undecided the light ranges that need more words, and the rest of a word with too many ranges.
        """
        end = 0
        open_ended: tuple[int, Result] | None = None
        for low, high, result in self.ranges():
            heavy = result[0] is None and result is not _UNRESOLVED and not self.light(low, high)
            if not heavy:
                self.walk.settle((*self.before, low), (high - low) * self.unit, result, follow=False)
            elif open_ended is None or open_ended[1] != result or self.signature(open_ended[0]) != self.signature(low):
                self._follow(open_ended, end)
                open_ended = (low, result)
            if not heavy:
                self._follow(open_ended, end)
                open_ended = None
            end = high
        self._follow(open_ended, end)
        self.walk.undecided += ((1 << self.width) - end) * self.unit

    def _follow(self, start: tuple[int, Result] | None, end: int) -> None:
        """Queues the words from `start` up to `end`, which need more words and behave alike."""
        if start is not None:
            self.walk.settle((*self.before, start[0]), (end - start[0]) * self.unit, start[1])


@dataclass(frozen=True)
class WalkResult:
    """The result of a walk. `too_much`: a value with more mass than its law allows, and both masses."""

    name: str
    answered: dict[int, Fraction]
    undecided: Fraction
    tried: Fraction
    distance: Fraction
    too_much: tuple[int, Fraction, Fraction] | None
    runs: int
    seconds: float

    @property
    def holds(self) -> bool:
        return self.too_much is None

    def __str__(self) -> str:
        if self.too_much is not None:
            k, mass, most = self.too_much
            return f"{self.name}: gives {k} with probability at least {float(mass):.12g}, and its law says {float(most):.12g}"
        return f"{self.name}: {self._show()} ({self.runs:,} runs)"

    @property
    def enumerated(self) -> bool:
        """Tells whether every word was tried. Then nothing is assumed, and the distance is proved."""
        return self.tried + self.undecided == 1

    def _show(self) -> str:
        text = f"follows its law to within {float(self.distance):.2g}"
        if self.enumerated:
            return f"{text}, by trying every word"
        return f"{text}, if words between tried ones behave alike; every word was tried for {_floor(self.tried)} of the mass"

    def verdict(self) -> Verdict:
        """Returns the verdict: (0, distance)-indistinguishable from the law, which is what total variation means."""
        evidence = {
            "undecided": float(self.undecided),
            "decided by trying every word": float(self.tried),
            "distance without any assumption": min(1.0, float(self.distance + 1 - self.tried - self.undecided)),
            "values": len(self.answered),
            "runs": self.runs,
            "relies on": RELIES_ON,
            "says": str(self),
        }
        if self.too_much is None:
            claim = (Fraction(0), self.distance)
            far = self.distance >= _MOST
            outcome = NOT_FOUND if far else PROVED if self.enumerated else WALKED
            why = f"{float(self.undecided):.2g} of the mass was left undecided" if far else ""
            return Verdict(self.name, "exact", outcome, claim, 0.0, 1.0, None, self._show(), evidence, self.seconds, open=why)
        k, mass, most = self.too_much
        with balls.working(_BITS):
            ratio = float(balls.ball(mass / most).log().lower()) if most else float("inf")
        none = (Fraction(0), Fraction(0))
        return Verdict(self.name, "exact", VIOLATES, none, ratio, 1.0, None, f"output = {k}", evidence, self.seconds)


def _floor(share: Fraction) -> str:
    """Shows a share in per cent, rounded down."""
    return f"{int(share * 10**6) / 10**4:.6g} %"


def walk(
    name: str,
    sample: Callable[[], int],
    law: Law,
    *,
    batch: Batch | None = None,
    near: Fraction = NEAR,
    most: int = 400_000,
    seconds: float = 60.0,
) -> WalkResult:
    """Walks `sample`, which draws one value from `exact.entropy`, and compares it with the law that it should follow.

    `batch(n)` draws n values at once, as `sample` would; with it, a first word of 16 bits is tried in all its values. A change
    of behaviour is located to within a mass of `near`, which is left undecided. `most` bounds the runs of the sampler and
    `seconds` the processor time; the rest is undecided mass.

    >>> from dither.exact.laws.coins import Coin
    >>> walk("a coin", Coin("1/3").draw, Coin("1/3")).distance < Fraction(1, 2**60)
    True
    """
    begin, script = time.process_time(), Script()
    state = _Walk(sample, script, most, begin + seconds, near)
    with replay.source(script):
        result = state.run(())
        if batch is not None and result == (None, _FULL):
            _try_every_word(state, batch)
        else:
            state.settle((), Fraction(1), result)
        while state.queue:
            negative, _, words, width = heapq.heappop(state.queue)
            if state.is_over():
                state.undecided -= negative
            else:
                _Level(state, words, -negative, width).settle()
    too_much, distance = _compare(state, law)
    rest = (too_much, state.runs, time.process_time() - begin)
    return WalkResult(name, state.answered, state.undecided, state.tried, distance, *rest)


def _compare(state: _Walk, law: Law) -> tuple[tuple[int, Fraction, Fraction] | None, Fraction]:
    """Returns the value that certainly exceeds its law by most, if any; and a bound of the distance."""
    worst, distance = None, state.undecided
    with balls.working(_BITS):
        for k, mass in sorted(state.answered.items()):
            ball = law.pmf(k)
            most = max(balls.upper(ball), Fraction(0))
            distance += max(Fraction(0), mass - max(balls.lower(ball), Fraction(0)))
            if mass > most and (worst is None or mass - most > worst[1] - worst[2]):
                worst = (k, mass, most)
    return worst, distance
