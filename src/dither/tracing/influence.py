"""How far each record can move each number of a vector: runs of neighbouring records that move a number alike.

A run (output, start, stop, move) says: replacing any one of the records start..stop-1 moves this output by at most `move`
whole steps. Runs are sorted by output and start, and runs of one output are disjoint; records without a run do not move it.
A million cumulative sums are a million runs, not half a million million moves.

Each rule follows from the triangle inequality, for one replaced record and every output a, with a' after the replacement:

    |a + b - a' - b'|           <=  |a - a'| + |b - b'|                                  plus
    |min(a, b) - min(a', b')|   <=  max(|a - a'|, |b - b'|), and so for max              either
    |c a - c a'|                 =  |c| |a - a'|                                         scaled
    |floor(p a / q) - floor(p a' / q)|  <=  ceil(p |a - a'| / q)                         rescaled
    two numbers in [low, high] are at most high - low apart                              capped
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers

MOST_RUNS = 1 << 24  # about half a gigabyte
LIMIT = 1 << 60  # no number here has more steps, so that moves, and sums of two of them, fit in 64 bits
Wide = NDArray[Any]  # of 64 bits, or of Python ints where these may not be enough


@dataclass(frozen=True)
class Load:
    """What one release adds to the records of each stretch: the sum of moves, of their squares, and how many outputs move.

    Stretch i has the records from starts[i] to stops[i]. Stretches are disjoint and sorted.
    """

    starts: Integers
    stops: Integers
    total: Wide
    squares: Wide
    moving: Integers

    def most(self) -> tuple[int, int, int]:
        """Returns the largest sum of moves, of squares, and number of moving outputs of any record."""
        if not len(self.starts):
            return 0, 0, 0
        return int(self.total.max()), int(self.squares.max()), int(self.moving.max())

    def records(self) -> tuple[tuple[int, int], ...]:
        """Returns the stretches of records that are touched, merged."""
        if not len(self.starts):
            return ()
        first = np.concatenate(([True], self.starts[1:] != self.stops[:-1]))
        last = np.concatenate((first[1:], [True]))
        return tuple(zip(self.starts[first].tolist(), self.stops[last].tolist(), strict=True))


@dataclass(frozen=True)
class Influence:
    """The runs of a vector of `outputs` numbers over `records` records."""

    records: int
    outputs: int
    output: Integers
    start: Integers
    stop: Integers
    move: Integers

    @classmethod
    def none(cls, records: int, outputs: int) -> Influence:
        """Nothing that any record moves: a public vector."""
        return cls(records, outputs, *(np.zeros(0, dtype=np.int64) for _ in range(4)))

    @classmethod
    def own(cls, records: int, first: int, moves: Integers) -> Influence:
        """Output j is moved by record first + j alone, by moves[j]."""
        place = np.arange(len(moves), dtype=np.int64)
        return _kept(records, len(moves), place, first + place, first + place + 1, moves)

    @classmethod
    def alike(cls, records: int, first: int, stop: int, moves: Integers) -> Influence:
        """Output j is moved by each of the records first..stop-1, by moves[j]."""
        place = np.arange(len(moves), dtype=np.int64)
        return _kept(records, len(moves), place, np.full_like(place, first), np.full_like(place, stop), moves)

    @property
    def is_none(self) -> bool:
        return not len(self.output)

    def owned_from(self) -> int | None:
        """Returns f if output j is moved by no record but f + j, for every j; else None. 0 if no record moves anything."""
        if self.is_none:
            return 0
        shift = self.start - self.output
        first = int(shift[0])
        alone = self.one_run_each and bool(np.all(self.stop - self.start == 1))
        return first if alone and first >= 0 and bool(np.all(shift == first)) else None

    @property
    def one_run_each(self) -> bool:
        """Whether no output has two runs."""
        return bool(np.all(self.output[1:] > self.output[:-1]))

    # --- the rules --------------------------------------------------------------------------------------------------

    def plus(self, other: Influence) -> Influence:
        return _combined(self, other, np.add)

    def either(self, other: Influence) -> Influence:
        return _combined(self, other, np.maximum)

    def scaled(self, by: Integers) -> Influence:
        """Multiplies the moves of output j by by[j] >= 0. The caller keeps products within 64 bits."""
        return _kept(self.records, self.outputs, self.output, self.start, self.stop, self.move * by[self.output])

    def rescaled(self, p: int, q: int) -> Influence:
        """Returns the moves of floor(p a / q)."""
        if p == 1 and q == 1:
            return self
        moves = -(-(self.move.astype(object) * p) // q)  # Python ints: the product may not fit
        return replace(self, move=moves.astype(np.int64))

    def capped(self, widths: Integers) -> Influence:
        """Output j moves by at most widths[j]."""
        if self.is_none:
            return self
        widest = widths[self.output]
        if bool(np.all(self.move <= widest)):
            return self
        return _kept(self.records, self.outputs, self.output, self.start, self.stop, np.minimum(self.move, widest))

    def take(self, places: Integers) -> Influence:
        """Returns the runs of the outputs at these places, in this order; a place may come several times."""
        firsts = np.searchsorted(self.output, places, "left")
        counts = np.searchsorted(self.output, places, "right") - firsts
        if int(counts.sum()) > MOST_RUNS:
            raise too_many(int(counts.sum()))
        output = np.repeat(np.arange(len(places), dtype=np.int64), counts)
        before = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(before, counts) + np.repeat(firsts, counts)
        return Influence(self.records, len(places), output, self.start[at], self.stop[at], self.move[at])

    def followed_by(self, other: Influence) -> Influence:
        """Returns the runs of one vector of both vectors' outputs."""
        return _one_after_another([self, other])

    # --- over all outputs -------------------------------------------------------------------------------------------

    def load(self) -> Load:
        """Returns what each record moves in all: sums over the outputs, exactly."""
        if self.is_none:
            empty = np.zeros(0, dtype=np.int64)
            return Load(empty, empty, empty, empty, empty)
        order = np.argsort(np.concatenate((self.start, self.stop)), kind="stable")
        places = np.concatenate((self.start, self.stop))[order]
        ends = np.concatenate((np.diff(places) > 0, [True]))
        starts, largest, count = places[ends], int(self.move.max()), len(self.move)
        total = _swept(self.move if largest * count < LIMIT else self.move.astype(object), order, ends)
        squared = self.move if largest * largest * count < LIMIT else self.move.astype(object)
        squares = _swept(squared * squared, order, ends)
        moving = _swept(np.ones(count, dtype=np.int64), order, ends)
        stops = np.concatenate((starts[1:], starts[-1:]))
        keep = moving > 0
        return Load(starts[keep], stops[keep], total[keep], squares[keep], moving[keep].astype(np.int64))

    def added(self) -> Influence:
        """Returns the moves of the sum of all outputs."""
        load = self.load()
        if len(load.starts) and int(load.total.max()) > 2 * LIMIT:
            raise too_large()
        zeros = np.zeros(len(load.starts), dtype=np.int64)
        return _kept(self.records, 1, zeros, load.starts, load.stops, load.total.astype(np.int64))

    def largest(self) -> Influence:
        """Returns the moves of the smallest or largest of all outputs: each record's largest move."""
        whole = Influence.none(self.records, 1)
        for move in np.unique(self.move):
            chosen = self.move == move
            order = np.argsort(self.start[chosen], kind="stable")
            start, stop = self.start[chosen][order], np.maximum.accumulate(self.stop[chosen][order])
            fresh = np.concatenate(([True], start[1:] > stop[:-1]))
            last = np.concatenate((fresh[1:], [True]))
            starts, stops = start[fresh], stop[last]
            zeros = np.zeros(len(starts), dtype=np.int64)
            whole = whole.either(Influence(self.records, 1, zeros, starts, stops, np.full_like(starts, move)))
        return whole

    def cumulated(self) -> Influence:
        """Returns the moves of the cumulative sums."""
        first = self.owned_from()
        if first is not None and len(self.output) == self.outputs:
            return self._cumulated_own(first)
        row, rows, runs = Influence.none(self.records, 1), [Influence.none(self.records, 0)], 0
        for place in range(self.outputs):
            row = row.plus(self.take(np.array([place])))
            rows.append(row)
            runs += len(row.output)
            if runs > MOST_RUNS:
                raise too_many(runs)
        return _one_after_another(rows)

    def _cumulated_own(self, first: int) -> Influence:
        """The same where output j is moved by record first + j alone: one run for each stretch of equal moves up to j."""
        change = np.concatenate(([True], self.move[1:] != self.move[:-1]))
        begins = np.flatnonzero(change)
        ends = np.concatenate((begins[1:], [self.outputs]))
        counts = np.cumsum(change)
        if int(counts.sum()) > MOST_RUNS:
            raise too_many(int(counts.sum()))
        output = np.repeat(np.arange(self.outputs, dtype=np.int64), counts)
        piece = np.arange(len(output), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        stop = np.minimum(ends[piece], output + 1)
        return Influence(self.records, self.outputs, output, first + begins[piece], first + stop, self.move[begins][piece])


def _one_after_another(parts: list[Influence]) -> Influence:
    shifts = np.cumsum([0, *(part.outputs for part in parts)])
    output = np.concatenate([part.output + shift for part, shift in zip(parts, shifts, strict=False)])
    rest = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "stop", "move"))
    return Influence(parts[0].records, int(shifts[-1]), output, *rest)


def _swept(amounts: Wide, order: Integers, ends: NDArray[np.bool_]) -> Wide:
    """Returns the sum of the amounts of all runs that are open, after each place."""
    return np.asarray(np.cumsum(np.concatenate((amounts, -amounts))[order])[ends])


def _kept(records: int, outputs: int, output: Integers, start: Integers, stop: Integers, move: Integers) -> Influence:
    """Returns the runs without those that move nothing; runs that touch and move alike become one."""
    keep = move > 0
    if not keep.all():
        output, start, stop, move = output[keep], start[keep], stop[keep], move[keep]
    if len(output) > 1:
        fresh = np.ones(len(output), dtype=bool)
        fresh[1:] = (output[1:] != output[:-1]) | (start[1:] != stop[:-1]) | (move[1:] != move[:-1])
        if not fresh.all():
            last = np.concatenate((fresh[1:], [True]))
            output, start, stop, move = output[fresh], start[fresh], stop[last], move[fresh]
    return Influence(records, outputs, output, start, stop, move)


def _combined(a: Influence, b: Influence, how: Callable[[Integers, Integers], Integers]) -> Influence:
    """Cuts the runs of both at each other's ends, and combines the moves of each piece."""
    if b.is_none:
        return a
    if a.is_none:
        return b
    stride = a.records + 1
    if a.outputs * stride >= LIMIT:
        raise too_many(a.outputs)
    ends = [each.output * stride + place for each in (a, b) for place in (each.start, each.stop)]
    cuts = np.sort(np.concatenate(ends))
    cuts = cuts[np.concatenate(([True], cuts[1:] > cuts[:-1]))]
    if len(cuts) > MOST_RUNS:
        raise too_many(len(cuts))
    here, following = cuts[:-1], cuts[1:]
    move = how(_looked_up(a, stride, here), _looked_up(b, stride, here))
    output = here // stride
    # A piece that moves lies within one run, so it ends in the same output.
    return _kept(a.records, a.outputs, output, here - output * stride, following - output * stride, move)


def _looked_up(runs: Influence, stride: int, keys: Integers) -> Integers:
    """Returns the move at each place, 0 outside of the runs."""
    starts, stops = runs.output * stride + runs.start, runs.output * stride + runs.stop
    at = np.searchsorted(starts, keys, "right") - 1
    inside = (at >= 0) & (keys < stops[np.maximum(at, 0)])
    return np.where(inside, runs.move[np.maximum(at, 0)], 0)


def too_many(runs: int) -> ArgumentError:
    return ArgumentError(
        f"Different records move these numbers in too many different ways ({runs} runs; at most {MOST_RUNS}).",
        fix="declare one bound for all records, or trace fewer numbers at once.",
    )


def too_far() -> ArgumentError:
    return ArgumentError("The step is too far from that of the value: more than 2^60 times.", fix="choose a step between.")


def too_large() -> ArgumentError:
    return ArgumentError(
        "The declared bounds allow numbers of more than 2^60 steps.", fix="clip to smaller bounds, or to a coarser step."
    )
