"""Attacks the code on D and on D': looks for an event that tells them apart, and counts it on fresh outputs.

    an (epsilon, delta) claim allows   Pr[M(D) in S] <= e^epsilon Pr[M(D') in S] + delta      for every event S
    so the counts of S show            epsilon >= ln((p_low - delta) / q_high)

A look has two steps: it chooses a few events from all outputs so far, then counts them on new outputs only. Looks grow
fourfold, are at most `_LOOKS` in number, and share the error equally (with one more, for a look that must be repeated). Inside
a look the events share it, and p and q take half each. So the stated error holds for the whole audit, however the events were
found and wherever it stops. "Violates" uses the strict error; a lower bound without a violation uses the ordinary one.
Errors are outputs, and the two inputs of a pair take turns. Code that does not return is interrupted.
Relies on: the runs being independent of each other. Reference: Ding et al., CCS 2018; Bichsel et al., S&P 2021.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from dither.audit.blackbox.confidence import bounds
from dither.audit.blackbox.events import COUNTED, Candidate, Sample, conjunctions, learned, simple
from dither.audit.blackbox.outputs import Key, Outputs, collect, join, keys_for, phrase
from dither.audit.blackbox.power import describe_power
from dither.audit.blackbox.workers import Workers, draw_in_turns
from dither.audit.verdict import NOT_FOUND, VIOLATES, Target, Verdict
from dither.errors import ArgumentError

_REPEAT = 0.5  # seconds until code that swallowed the interruption is interrupted again


class OverdueError(BaseException):
    """The time is up. Not an Exception, because audited code catches those."""


def grace(seconds: float) -> float:
    """Returns how long work planned for `seconds` may take: the clock is checked between runs, and the last one may be long."""
    return seconds + max(1.0, seconds / 4)


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises OverdueError inside the block after that time.

    Needs Unix and the main thread, where Python receives signals. Elsewhere, and inside compiled code that never returns, a run
    that hangs also hangs the audit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class BatchError(Exception):
    """A batch raised an error; which of its runs did is unknown."""


def draw_batch(batch: Callable[[Any, int], Any], data: Any, size: int) -> Any:
    """Returns outputs on `data` at once."""
    try:
        return batch(data, size)
    except Exception as problem:
        raise BatchError from problem


_LOOKS = 6
_FIRST = 4000  # outputs of each side of each pair for the first search
_CHEAP = 100  # and for the first round of screening, if there are many pairs
_FINALISTS = 8  # pairs in the last round
_SCREENED = 0.4  # the share of the time at which screening ends in any case
_CHUNK = 1 << 16
_PAIRS = (3, 2, 1, 1, 1, 1)  # pairs that each look compares
_POOL = 400_000  # numbers (outputs times columns) in one search


@dataclass(frozen=True)
class CountedEvent:
    """One event counted on fresh outputs: its counts on the favoured side and on the other, and the bounds they give."""

    pair: int
    candidate: Candidate
    seen: tuple[int, int]
    other: tuple[int, int]
    epsilon: float
    strict: float
    advantage: float


@dataclass
class _Search:
    """The state of one attack."""

    target: Target
    error: float
    strict: float
    deadline: float
    clock: Callable[[], float]
    pools: dict[int, list[list[Outputs]]] = field(default_factory=dict)
    counted: list[CountedEvent] = field(default_factory=list)
    rate: float = 0.0  # seconds for one output
    drawn: int = 0
    alone: bool = False  # outputs are drawn one by one, because a batch has failed
    workers: Workers | None = None
    screened: int = 0  # pairs of which outputs were drawn
    largest: tuple[int, int] = (0, 1)  # outputs of each side in the largest look, and the events counted there

    def both(self, place: int, size: int) -> tuple[Outputs, Outputs]:
        """Draws outputs of both sides of a pair: by batches, by the workers, or in turns."""
        begin, pair = self.clock(), self.target.pairs[place]
        outputs = None
        if self.target.batch is not None and not self.alone:
            one, two = (collect(draw_batch(self.target.batch, data, size)) for data in pair)
            outputs = one, two
        elif self.workers is not None:
            outputs = self.workers.draw(place, size)
        if outputs is None:
            first, second = draw_in_turns(self.target, pair, size)
            outputs = collect(first), collect(second)
        self.rate = (self.clock() - begin) / (2 * size)
        self.drawn += 2 * size
        return outputs


def attack(
    target: Target,
    *,
    error: float = 0.05,
    strict: float = 1e-3,
    seconds: float = 3.0,
    most: int = 4_000_000,
    tighten: bool = False,
    patience: float = 10.0,
    workers: Workers | None = None,
) -> Verdict:
    """Looks for a violation of the target's claim for about `seconds` of processor time, of all workers together.

    Code that mostly waits ends it after `patience` times as many seconds on the clock.

    `error` bounds the probability that the lower bound is wrong, `strict` that of calling a true claim violated. `most` is the
    largest number of outputs of one look. `tighten` continues after a violation, for a better bound, until the time is up.

    >>> leaky = Target("no noise", run=lambda data: sum(data), epsilon=1, pairs=(([0], [1]),))
    >>> attack(leaky, seconds=0.5).outcome
    'violates'
    """
    _check(target, error, strict)
    clock = _clock(patience, workers)
    search = _Search(target, error, strict, seconds, clock, workers=workers)
    try:
        _look(search, most, tighten)
    except OverdueError:
        if not search.counted:
            raise
    return _verdict(search, clock())


def _look(search: _Search, most: int, tighten: bool) -> None:
    """Screens the pairs, then takes one look after the other until the claim is broken or the time is over."""
    clock = search.clock
    _screen(search)
    for look, size in enumerate(_sizes(most)):
        chosen = _choose(search, kept=_PAIRS[look])
        fits = int((search.deadline - clock()) / max(search.rate, 1e-9) / (2 * len(chosen)) * 0.8)
        if look and fits < size // 8:
            break
        _count(search, chosen, max(40, min(size, fits)))
        if (_violated(search) and not tighten) or fits < size or clock() > search.deadline:
            break


def _check(target: Target, error: float, strict: float) -> None:
    if not target.pairs:
        fix = "give the target pairs of neighbouring inputs (D, D') to compare."
        raise ArgumentError("the black box needs at least one pair of neighbouring inputs.", where=target.name, fix=fix)
    if not 0 < strict <= error < 1:
        what = f"errors must satisfy 0 < strict <= error < 1, and they are {strict} and {error}."
        raise ArgumentError(what, fix="use the defaults, 0.001 and 0.05.")


def _clock(patience: float, workers: Workers | None) -> Callable[[], float]:
    """Returns a clock of processor time, or of wall-clock time divided by `patience` if the code mostly waits."""
    cpu, wall = time.process_time(), time.perf_counter()
    before = 0.0 if workers is None else workers.cpu

    def passed() -> float:
        others = 0.0 if workers is None else workers.cpu - before
        return max(time.process_time() - cpu + others, (time.perf_counter() - wall) / patience)

    return passed


def _sizes(most: int) -> list[int]:
    return [min(most, 4000 * 4**look) for look in range(_LOOKS)]


def _screen(search: _Search) -> None:
    """Draws a small sample of every pair, then larger ones of the better half, until few are left.

    Slow code gets smaller samples, and if need be of fewer pairs, to leave time for counting.
    """
    places = list(range(len(search.target.pairs)))
    try:
        search.both(0, 2)  # the first call may load something
        if search.rate * 40 < search.deadline / 20:
            search.both(0, 20)
        affordable = search.deadline / 8 / max(search.rate, 1e-9) / 2  # outputs of each side, over all pairs and rounds
        places = places[: max(1, min(len(places), int(affordable / 20)))]
        rounds = max(1, math.ceil(math.log2(max(1.0, len(places) / _FINALISTS))) + 1)
        search.screened = len(places)
        for turn in range(rounds):
            last = turn == rounds - 1
            size = int(affordable / rounds / len(places) / (0.5 if last else 1))
            wanted = _FIRST if last else min(_FIRST, _CHEAP * 4**turn)
            for place in places:
                if search.pools and search.clock() > search.deadline * _SCREENED:
                    search.pools = {each: search.pools[each] for each in places if each in search.pools}
                    return
                new = search.both(place, max(20, min(wanted, size)))
                for pool, outputs in zip(search.pools.setdefault(place, [[], []]), new, strict=True):
                    pool.append(outputs)
            if not last:
                places = _better_half(search, places)
    except BatchError:
        search.alone, search.pools = True, {}
        _screen(search)


def _better_half(search: _Search, places: list[int]) -> list[int]:
    """Returns the pairs that seem to tell most, at least as many as take part in the last round.

    A score below zero is chance. Pairs without evidence stay in their order, which has the most telling ones first.
    """
    scores = {place: max((one.score for one in simple(_samples(search, place)[0])), default=0.0) for place in places}
    scores = {place: max(0.0, score) for place, score in scores.items()}
    kept = max(_FINALISTS, len(places) // 2)
    best = sorted(places, key=lambda place: -scores[place])[:kept]
    search.pools = {place: search.pools[place] for place in best}
    return best


def _samples(search: _Search, place: int) -> tuple[Sample, Sample]:
    """Returns a smaller sample of a pair to scan column by column, and a larger one to learn from.

    Takes the first outputs, so that the choice does not depend on the speed of the machine.
    """
    pools = [join(pool) for pool in search.pools[place]]
    rows = max(4000, _POOL // max(1, len(keys_for(max(pool.width for pool in pools)))))
    delta = float(search.target.delta)
    few, many = ([pool.part(slice(0, size)) for pool in pools] for size in (rows, _CHUNK))
    return Sample((few[0], few[1]), delta), Sample((many[0], many[1]), delta)


def _choose(search: _Search, kept: int) -> dict[int, list[Candidate]]:
    """Keeps the `kept` pairs with the best scores, and returns the events to count on each."""
    chosen = {place: _candidates(*_samples(search, place)) for place in search.pools}
    best = sorted(chosen, key=lambda place: -chosen[place][0].score)[:kept]
    search.pools = {place: search.pools[place] for place in best}
    return {place: chosen[place] for place in best}


def _candidates(few: Sample, many: Sample) -> list[Candidate]:
    """Returns the three best bounds from different columns and the best advantage, the best bound first."""
    ones = sorted(simple(few), key=lambda one: -one.score)
    every = ones + learned(many)
    if not any(one.key[-1].startswith(COUNTED) for one in every if one.key[:1] == ("learnt",)):
        every += conjunctions(few, _apart(ones, 2))  # the ratio of counted whole outputs is the best there is
    every.sort(key=lambda one: (-one.score, one.key != ("kind",), len(one.words)))  # of equal scores, the plainest
    if not every:
        return [Candidate("any output", lambda outputs: np.ones(len(outputs), dtype=bool), 0, 0.0, 0.0)]
    gain = max(every, key=lambda one: one.advantage)
    return list(dict.fromkeys([*_apart(every, 3), gain]))


def _apart(candidates: list[Candidate], size: int) -> list[Candidate]:
    """Returns the best few of different columns: two cuts of one column would only share the error."""
    best: dict[tuple[Key, int], Candidate] = {}
    for one in candidates:
        best.setdefault((one.key, one.side), one)
        if len(best) == size:
            break
    return list(best.values())


def _count(search: _Search, chosen: dict[int, list[Candidate]], size: int) -> None:
    """Counts the chosen events on new outputs, which later looks may learn from.

    A batch that succeeds is a sample conditioned on no error. Mixing it with outputs drawn one by one would count errors
    wrongly. So if a batch fails, the look is repeated without batches, and so are all later looks.
    """
    tests = sum(len(events) for events in chosen.values())
    search.largest = max(search.largest, (size, tests))
    try:
        every = {place: _counts(search, place, events, size) for place, events in chosen.items()}
    except BatchError:
        search.alone = True
        size = max(40, min(size, _FIRST))
        every = {place: _counts(search, place, events, size) for place, events in chosen.items()}
    for place, counts in every.items():
        for event, count in zip(chosen[place], counts, strict=True):
            search.counted.append(_bounds(search, place, event, count, size, tests))


def _counts(search: _Search, place: int, events: list[Candidate], size: int) -> list[list[int]]:
    counts, begin = [[0, 0] for _ in events], search.clock()
    for start in range(0, size, _CHUNK):
        for side, outputs in enumerate(search.both(place, min(_CHUNK, size - start))):
            for count, event in zip(counts, events, strict=True):
                count[side] += int(event.mask(outputs).sum())
            if start == 0:
                search.pools[place][side].append(outputs)
    search.rate = (search.clock() - begin) / (2 * size)  # counting takes time too
    return counts


def _bounds(search: _Search, place: int, event: Candidate, count: list[int], size: int, tests: int) -> CountedEvent:
    seen, other = (count[event.side], size), (count[1 - event.side], size)
    delta, share = float(search.target.delta), 1 / ((_LOOKS + 1) * tests)
    if not _could_matter(search, count[event.side] / size, count[1 - event.side] / size):
        return CountedEvent(place, event, seen, other, 0.0, 0.0, 0.0)
    ordinary, gain = bounds(seen, other, delta, search.error * share)
    # The strict bound is smaller: it is needed only if the ordinary one exceeds the claim.
    strict = bounds(seen, other, delta, search.strict * share)[0] if ordinary > float(search.target.epsilon) else 0.0
    return CountedEvent(place, event, seen, other, ordinary, strict, gain)


def _could_matter(search: _Search, p: float, q: float) -> bool:
    """Tells whether the plain frequencies, which no bound can exceed, are better than what is shown already."""
    ordinary = max((one.epsilon for one in search.counted), default=0.0)
    strict = max((one.strict for one in search.counted), default=0.0)
    advantage = max((one.advantage for one in search.counted), default=0.0)
    epsilon = min(ordinary, max(strict, float(search.target.epsilon)), 700.0)
    return p - float(search.target.delta) > q * math.exp(epsilon) or p - q > advantage


def _violated(search: _Search) -> bool:
    return any(one.strict > float(search.target.epsilon) for one in search.counted)


def _verdict(search: _Search, seconds: float) -> Verdict:
    target, violated = search.target, _violated(search)
    best = max(search.counted, key=lambda one: (one.strict, one.epsilon) if violated else (one.epsilon, 0.0))
    pair = target.pairs[best.pair]
    if best.candidate.side == 1:
        pair = (pair[1], pair[0])
    evidence = _evidence(search, best)
    if not violated:
        evidence["would have seen"] = _power(search)
    return Verdict(
        target=target.name,
        method="black box",
        outcome=VIOLATES if violated else NOT_FOUND,
        claimed=(target.epsilon, target.delta),
        epsilon=best.strict if violated else best.epsilon,
        confidence=1 - (search.strict if violated else search.error),
        pair=pair,
        event=best.candidate.words if best.epsilon > 0 else "",
        evidence=evidence,
        seconds=seconds,
        advantage=max(one.advantage for one in search.counted),
    )


def _power(search: _Search) -> str:
    """Says how small a violation could still hide from the largest look."""
    size, tests = search.largest
    error = search.strict / ((_LOOKS + 1) * tests)
    return describe_power(size, float(search.target.epsilon), float(search.target.delta), error)


def _evidence(search: _Search, best: CountedEvent) -> dict[str, Any]:
    """Returns what a report needs: counts on both sides, and a column of each side to draw."""
    key: Key = best.candidate.key if best.candidate.key[:1] in (("value",), ("apart",)) else ("value", 0)
    key = key[: 2 if key[0] == "value" else 3]
    pools = [join(pool).part(slice(0, 2000)) for pool in search.pools[best.pair]] if best.pair in search.pools else []
    if best.candidate.side == 1:
        pools.reverse()
    samples = [pool.column(key).tolist() for pool in pools]
    return {
        "held on D": best.seen,
        "held on D'": best.other,
        "outputs drawn": search.drawn,
        "pairs screened": search.screened,
        "events counted": len(search.counted),
        "column": phrase(key, max((pool.width for pool in pools), default=1)),
        "samples": dict(zip(("D", "D'"), samples, strict=False)),
        "lower bound at ordinary confidence": (best.epsilon, 1 - search.error),
    }
