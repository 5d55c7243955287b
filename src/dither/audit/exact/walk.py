"""Bits of the auditor's choice in the place of the entropy door: stated words first, then nothing, or a continuation.

A sampler is its law: shown by walking the random bits that the sampler reads, word by word.

    answered(k)   mass of the words after which the sampler gave k without asking for more
    undecided     mass of the words after which it wanted more than the walk went on to try
    answered(k) <= Pr[k] at every k that came out   =>   |sampler - law| <= undecided       (total variation)

because both sides sum to one. Masses are Fractions, probabilities are balls, so the statement has no rounding in it.

The sampler runs as it is: the walk puts a script in the place of the entropy door and reads off how wide a word is asked
for. A first word of 16 bits is tried in all its 65,536 values. Longer and later words are searched: a stretch of
words counts as one where both ends, a grid between them and a scattered word inside behave alike, under several
continuations; a change is followed down to the two neighbouring words. What rests on full enumeration alone is stated too.
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
TOLD = 6  # words that a continuation may take


class MoreError(Exception):
    """The script is used up, and the sampler wants another word."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(width)


def _zeros(width: int, place: int) -> int:
    return 0


def _ones(width: int, place: int) -> int:
    return (1 << width) - 1


def mixed(width: int, place: int) -> int:
    return int.from_bytes(hashlib.sha256(b"%d %d" % (width, place)).digest()[: -(-width // 8)], "big") >> (-width % 8)


TAILS = (_zeros, _ones, mixed)


class Script:
    """An entropy source that gives stated words, then a continuation for a while, then says what was asked for."""

    def __init__(self) -> None:
        self.play((), None)

    def play(self, words: Words, tail: Tail | None) -> None:
        self.words, self.tail = words, tail
        self.asked: list[int] = []
        self.block = b""

    def start(self, block: bytes) -> None:
        """One block for a whole array, and nothing after it."""
        self.play((), None)
        self.block = block

    def next(self, width: int) -> int:
        place = len(self.asked)
        self.asked.append(width)
        if place < len(self.words):
            return self.words[place]
        if self.tail is None or place >= len(self.words) + TOLD:
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
        """Single draws take their words from here, too, and not from a block that was fetched before."""
        entropy.here().waiting = self.singles()


RELIES_ON = "words between tried words that behave alike behave as they do (every look-up is a search in a sorted list)"
_FULL = 16  # a first word of so many bits is tried in all its values
_GRID = 16  # stretches that a longer or later word is cut into before the search
_TINY = Fraction(1, 1 << 60)  # what weighs less is left undecided
NEAR = Fraction(1, 1 << 66)
_TELLING = Fraction(1, 1000)  # a distance above this is no proof worth the name
_BITS = 256

Seen = tuple[int | None, int]  # (the value, 0), or (None, how wide a word is wanted)
Sign = tuple[Any, ...]
_UNRESOLVED: Seen = (None, 0)
Batch = Callable[[int], Integers]


@dataclass
class _Walk:
    """What one walk has seen so far; it lives no longer than the walk."""

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

    def run(self, words: Words, tail: Tail | None = None) -> Seen:
        self.runs += 1
        self.script.play(words, tail)
        self.script.install()
        try:
            return self.sample(), 0
        except MoreError as more:
            return None, more.width

    def told(self, words: Words) -> Sign:
        """What comes of these words under the continuations: two stretches of words are alike only if this is."""
        return tuple((self.run(words, tail), tuple(self.script.asked)) for tail in TAILS)

    def over(self) -> bool:
        return self.runs > self.most or time.process_time() > self.deadline

    def settle(self, words: Words, mass: Fraction, seen: Seen, *, follow: bool = True) -> None:
        """`mass` of words behave like the last of `words`. `follow`: if they want more, go on with it."""
        value, width = seen
        if value is not None:
            self.answered[value] = self.answered.get(value, Fraction(0)) + mass
        elif not follow or mass < _TINY or width > 64:
            self.undecided += mass
        else:
            heapq.heappush(self.queue, (-mass, self.runs, words, width))


def _every(walk: _Walk, batch: Batch) -> None:
    """Every value of a first word of 16 bits. Arrays that answer from one word each are taken whole, others are halved."""
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
    """The values of one further word, after the words before it."""

    def __init__(self, walk: _Walk, before: Words, weight: Fraction, width: int) -> None:
        self.walk, self.before, self.width = walk, before, width
        self.unit = weight / (1 << width)
        self._told: dict[int, Sign] = {}

    def at(self, word: int) -> tuple[int, Seen]:
        return word, self.walk.run((*self.before, word))

    def told(self, word: int) -> Sign:
        if word not in self._told:
            self._told[word] = self.walk.told((*self.before, word))
        return self._told[word]

    def alike(self, low: tuple[int, Seen], high: tuple[int, Seen]) -> bool:
        if low[1] != high[1]:
            return False
        return low[1][0] is not None or self.light(low[0], high[0]) or self.told(low[0]) == self.told(high[0])

    def light(self, low: int, high: int) -> bool:
        """Do the words between weigh so little that they are left undecided if they want more?"""
        return (high - low) * self.unit < _TINY

    def stretches(self) -> Iterator[tuple[int, int, Seen]]:
        """Stretches of words that behave alike, in order: (first, the one after its last, behaviour)."""
        last = (1 << self.width) - 1
        ends = [self.at(last * i // _GRID) for i in range(_GRID + 1)]
        stack = list(pairwise(ends))[::-1]
        while stack and not self.walk.over():
            low, high = stack.pop()
            gap, same = high[0] - low[0], self.alike(low, high)
            if gap > 1 and gap * self.unit < self.walk.near:
                yield low[0], high[0], low[1] if same and low[1][0] is not None else _UNRESOLVED
                continue
            if gap > 1:
                inside = self.at(low[0] + (1 + mixed(self.width, low[0]) % (gap - 1) if same else gap // 2))
                if not same or not self.alike(low, inside):
                    stack += [(inside, high), (low, inside)]
                    continue
            yield low[0], high[0], low[1]
        if not stack:
            yield last, last + 1, ends[-1][1]

    def settle(self) -> None:
        """Neighbouring stretches that are alike are one; light ones that want more stay undecided, and so does the rest
        of a word that cannot be cut into few stretches.
        """
        end = 0
        open_ended: tuple[int, Seen] | None = None
        for low, high, seen in self.stretches():
            heavy = seen[0] is None and seen is not _UNRESOLVED and not self.light(low, high)
            if not heavy:
                self.walk.settle((*self.before, low), (high - low) * self.unit, seen, follow=False)
            elif open_ended is None or open_ended[1] != seen or self.told(open_ended[0]) != self.told(low):
                self._follow(open_ended, end)
                open_ended = (low, seen)
            if not heavy:
                self._follow(open_ended, end)
                open_ended = None
            end = high
        self._follow(open_ended, end)
        self.walk.undecided += ((1 << self.width) - end) * self.unit

    def _follow(self, begun: tuple[int, Seen] | None, end: int) -> None:
        """Go on with the words from `begun` up to `end`, which all want more and behave alike."""
        if begun is not None:
            self.walk.settle((*self.before, begun[0]), (end - begun[0]) * self.unit, begun[1])


@dataclass(frozen=True)
class Walked:
    """What a walk found. `too_much`: a value that came out more often than its law allows, with both masses."""

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
        return f"{self.name}: {self._told()} ({self.runs:,} runs)"

    @property
    def enumerated(self) -> bool:
        """Was every word tried? Then nothing is assumed, and the distance is proved."""
        return self.tried + self.undecided == 1

    def _told(self) -> str:
        found = f"follows its law to within {float(self.distance):.2g}"
        if self.enumerated:
            return f"{found}, by trying every word"
        return f"{found}, if words between tried ones behave alike; every word was tried for {_floor(self.tried)} of the mass"

    def verdict(self) -> Verdict:
        """As (0, distance)-indistinguishable from the law, which is what a total variation distance says."""
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
            far = self.distance >= _TELLING
            outcome = NOT_FOUND if far else PROVED if self.enumerated else WALKED
            why = f"{float(self.undecided):.2g} of the mass was left undecided" if far else ""
            return Verdict(self.name, "exact", outcome, claim, 0.0, 1.0, None, self._told(), evidence, self.seconds, open=why)
        k, mass, most = self.too_much
        with balls.working(_BITS):
            ratio = float(balls.ball(mass / most).log().lower()) if most else float("inf")
        none = (Fraction(0), Fraction(0))
        return Verdict(self.name, "exact", VIOLATES, none, ratio, 1.0, None, f"output = {k}", evidence, self.seconds)


def _floor(share: Fraction) -> str:
    """In per cent, never rounded up to all."""
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
) -> Walked:
    """Walk `sample`, which draws one value through the entropy door, against the law that it should follow.

    `batch(n)` draws n values at once, as `sample` would; with it, a first word of 16 bits is tried in all its values.
    A change of behaviour is followed until it lies within a mass of `near`, and that much is left undecided.
    `most` bounds the runs of the sampler and `seconds` the processor time; what they leave open is undecided mass.

    >>> from dither.exact.laws.coins import Coin
    >>> walk("a coin", Coin("1/3").draw, Coin("1/3")).distance < Fraction(1, 2**60)
    True
    """
    begin, script = time.process_time(), Script()
    found = _Walk(sample, script, most, begin + seconds, near)
    with replay.source(script):
        seen = found.run(())
        if batch is not None and seen == (None, _FULL):
            _every(found, batch)
        else:
            found.settle((), Fraction(1), seen)
        while found.queue:
            negative, _, words, width = heapq.heappop(found.queue)
            if found.over():
                found.undecided -= negative
            else:
                _Level(found, words, -negative, width).settle()
    too_much, distance = _compared(found, law)
    rest = (too_much, found.runs, time.process_time() - begin)
    return Walked(name, found.answered, found.undecided, found.tried, distance, *rest)


def _compared(found: _Walk, law: Law) -> tuple[tuple[int, Fraction, Fraction] | None, Fraction]:
    """The value that is most in excess of its law, if any is for certain; and the distance that is left possible."""
    worst, distance = None, found.undecided
    with balls.working(_BITS):
        for k, mass in sorted(found.answered.items()):
            ball = law.pmf(k)
            most = max(balls.upper(ball), Fraction(0))
            distance += max(Fraction(0), mass - max(balls.lower(ball), Fraction(0)))
            if mass > most and (worst is None or mass - most > worst[1] - worst[2]):
                worst = (k, mass, most)
    return worst, distance
