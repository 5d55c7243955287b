"""Proposes events: sets of outputs that may tell D from D', each with a description and a test on a whole sample.

The search scans every column of the outputs (values, differences, low bits, signs, kinds) for the cut or the single value with
the best quick bound, then adds a second condition to the best few. Nothing here is a verdict: the chosen events are counted
on outputs that the search has not used.

The best event for a given epsilon is always a cut of the likelihood ratio Pr[output | D] / Pr[output | D'] (Neyman and
Pearson). One half of a sample serves to learn three estimates of it: the counts of each whole output (few different outputs),
a sum over columns of histogram ratios (independent values), and boosted tables over all columns (dependent values).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.confidence import wilson
from dither.audit.blackbox.outputs import Floats, Key, Outputs, collect, keys_for, phrase
from dither.audit.verdict import Event

Mask = NDArray[np.bool_]
Describe = Callable[[int], tuple[str, Callable[[Outputs], Mask]]]  # the place of a cut to its words and its test
_CUTS = 200
_Z = 2.2  # standard errors in the ranking: a chance find among a thousand cuts must not beat a real one


@dataclass(frozen=True)
class Candidate:
    """An event, the side it favours (0: more likely on D, 1: more likely on D'), and its quick bounds."""

    words: str
    mask: Callable[[Outputs], Mask]
    side: int
    score: float
    advantage: float
    key: Key = ()

    def event(self) -> Event:
        return Event(self.words, lambda output: bool(self.mask(collect([output]))[0]))


@dataclass(frozen=True)
class Sample:
    """Outputs on D and on D' for the search, with the delta of the claim."""

    sides: tuple[Outputs, Outputs]
    delta: float

    @property
    def width(self) -> int:
        return max(side.width for side in self.sides)

    def halves(self) -> tuple[Sample, Sample]:
        """Returns one half to learn from and one to choose by."""
        pieces = [(side.part(slice(0, len(side) // 2)), side.part(slice(len(side) // 2, None))) for side in self.sides]
        (first, rest), (other, left) = pieces
        return Sample((first, other), self.delta), Sample((rest, left), self.delta)

    def rank(self, counts: tuple[Floats, Floats], side: int) -> tuple[Floats, Floats]:
        """Returns quick bounds of epsilon and of the advantage for counts on D and D', favouring `side`."""
        low, _ = wilson(counts[side], len(self.sides[side]), _Z)
        _, high = wilson(counts[1 - side], len(self.sides[1 - side]), _Z)
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(low - self.delta, 1e-300) / high), low - high


def simple(sample: Sample) -> list[Candidate]:
    """Returns the best events with one condition: kinds, and cuts and single values of every column."""
    events = _kinds(sample)
    for key in keys_for(sample.width):
        events += column_events(sample, key)
    return events


def conjunctions(sample: Sample, firsts: list[Candidate]) -> list[Candidate]:
    """Returns each of `firsts` with a second condition."""
    events: list[Candidate] = []
    for first in firsts:
        inside = (first.mask(sample.sides[0]), first.mask(sample.sides[1]))
        for key in keys_for(sample.width)[:24]:
            events += [_both(first, one) for one in column_events(sample, key, inside) if _narrows(first, one)]
    return events


def _narrows(first: Candidate, second: Candidate) -> bool:
    """Tells whether `second` adds a condition: a cut of the same column in the same direction does not."""
    again = first.key == second.key and any(sign in first.words and sign in second.words for sign in (" > ", " ≤ ", " = "))
    return second.side == first.side and not again


def _both(first: Candidate, second: Candidate) -> Candidate:
    def mask(outputs: Outputs) -> Mask:
        return np.asarray(first.mask(outputs) & second.mask(outputs))

    words = f"{first.words} and {second.words}"
    return Candidate(words, mask, second.side, second.score, second.advantage, (*first.key, *second.key))


def _kinds(sample: Sample) -> list[Candidate]:
    names = sorted({kind for side in sample.sides for kind in side.kinds})
    if len(names) < 2:
        return []
    hits = [np.array([float(side.kind(name).sum()) for name in names]) for side in sample.sides]
    misses = [len(side) - hit for side, hit in zip(sample.sides, hits, strict=True)]

    def is_(at: int) -> tuple[str, Callable[[Outputs], Mask]]:
        return _kind_words(names[at], True), lambda outputs: outputs.kind(names[at])

    def is_not(at: int) -> tuple[str, Callable[[Outputs], Mask]]:
        return _kind_words(names[at], False), lambda outputs: ~outputs.kind(names[at])

    return _best(sample, (hits[0], hits[1]), ("kind",), is_) + _best(sample, (misses[0], misses[1]), ("kind",), is_not)


def _kind_words(name: str, wanted: bool) -> str:
    if name.startswith("raises "):
        return name if wanted else f"does not raise {name.removeprefix('raises ')}"
    return f"output is {'' if wanted else 'not '}{name}"


def column_events(sample: Sample, key: Key, inside: tuple[Mask, Mask] | None = None) -> list[Candidate]:
    """Returns the best cut above, cut below and single value of one column, for both sides."""
    columns = [side.column(key) for side in sample.sides]
    if inside is not None:
        columns = [column[chosen] for column, chosen in zip(columns, inside, strict=True)]
    ordered = [np.sort(column[~np.isnan(column)]) for column in columns]
    pooled = np.sort(np.concatenate(ordered), kind="stable")
    if key[0] == "value" and inside is None and len(pooled) < len(columns[0]) + len(columns[1]):
        events = _missing(sample, key, ordered)
    else:
        events = []
    if len(pooled) == 0 or (pooled[0] == pooled[-1] and len(ordered[0]) == len(ordered[1]) and inside is None):
        return events
    values = pooled[np.append(True, pooled[1:] != pooled[:-1])]
    name, cuts = phrase(key, sample.width), _cuts(values, pooled)
    upto = [np.searchsorted(one, cuts, side="right").astype(np.float64) for one in ordered]
    above = [len(one) - count for one, count in zip(ordered, upto, strict=True)]
    events += _best(sample, (above[0], above[1]), key, lambda at: (_above(key, name, cuts[at]), _test(key, "above", cuts[at])))
    events += _best(sample, (upto[0], upto[1]), key, lambda at: (_below(key, name, cuts[at]), _test(key, "below", cuts[at])))
    if 2 < len(values) < len(pooled):
        events += _single_values(sample, key, name, ordered, values)
    return events


def _missing(sample: Sample, key: Key, ordered: list[Floats]) -> list[Candidate]:
    name = phrase(key, sample.width)
    there = [np.array([float(len(one))]) for one in ordered]
    gone = [len(side) - count for side, count in zip(sample.sides, there, strict=True)]
    events = _best(sample, (there[0], there[1]), key, lambda at: (f"{name} is there", lambda all_: ~np.isnan(all_.column(key))))
    return events + _best(
        sample, (gone[0], gone[1]), key, lambda at: (f"{name} is NaN", lambda all_: np.isnan(all_.column(key)))
    )


def _single_values(sample: Sample, key: Key, name: str, ordered: list[Floats], values: Floats) -> list[Candidate]:
    hits = [np.searchsorted(one, values, "right") - np.searchsorted(one, values, "left") for one in ordered]
    often = np.flatnonzero(hits[0] + hits[1] >= 5)
    if len(often) == 0:
        return []
    chosen = values[often]
    counts = (hits[0][often].astype(np.float64), hits[1][often].astype(np.float64))
    return _best(sample, counts, key, lambda at: (_equal(key, name, chosen[at]), _test(key, "is", chosen[at])))


def _cuts(values: Floats, pooled: Floats) -> Floats:
    """Returns all values if they are few, otherwise rounded quantiles, dense in both tails."""
    if len(values) <= _CUTS:
        return values
    tails = np.geomspace(3 / len(pooled), 0.1, 30)
    shares = np.concatenate([tails, np.linspace(0.1, 0.9, 121), 1 - tails])
    cuts = pooled[np.minimum((shares * len(pooled)).astype(np.int64), len(pooled) - 1)]
    low, high = pooled[len(pooled) // 4], pooled[3 * len(pooled) // 4]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return np.unique(cuts)
    digits = 3 - math.floor(math.log10(high - low))
    return np.unique(np.round(cuts, digits))


def _test(key: Key, how: str, cut: float) -> Callable[[Outputs], Mask]:
    def mask(outputs: Outputs) -> Mask:
        column = outputs.column(key)
        if how == "above":
            return np.asarray(column > cut)
        return np.asarray(column <= cut if how == "below" else column == cut)

    return mask


def _above(key: Key, name: str, cut: float) -> str:
    return f"{name} is a multiple of 2^{cut + 1:.0f}" if key[0] == "grain" else f"{name} > {cut:.12g}"


def _equal(key: Key, name: str, value: float) -> str:
    return f"the lowest bit of {name} is 2^{value:.0f}" if key[0] == "grain" else f"{name} = {value:.12g}"


def _below(key: Key, name: str, cut: float) -> str:
    return f"{name} is not a multiple of 2^{cut + 1:.0f}" if key[0] == "grain" else f"{name} ≤ {cut:.12g}"


def _best(sample: Sample, counts: tuple[Floats, Floats], key: Key, describe: Describe) -> list[Candidate]:
    """Returns, for each side, the event with the best bound of epsilon and the one with the best advantage."""
    events = []
    for side in (0, 1):
        scores, gains = sample.rank(counts, side)
        for place in sorted({int(np.argmax(scores)), int(np.argmax(gains))}):
            words, mask = describe(place)
            events.append(Candidate(words, mask, side, float(scores[place]), float(gains[place]), key))
    return events


Score = Callable[[Outputs], Floats]
COUNTED = "likelihood ratio"
_BINS = 16
_ROUNDS = 20
_BOOSTED = 6000  # outputs of each side for boosting


def learned(sample: Sample) -> list[Candidate]:
    """Returns candidates from every estimate. Learns from one half of the sample and chooses the cut on the other."""
    first, second = sample.halves()
    events: list[Candidate] = []
    for words, score in _scores(first):
        events += _cut(second, words, score)
    return events


def _scores(sample: Sample) -> list[tuple[str, Score]]:
    values: list[Key] = [("value", place) for place in range(sample.width)]
    scores = _whole(sample)
    if values:
        scores.append(("histogram ratio of the values", _histograms(sample, values)))
    if sample.width > 1:
        steps: list[Key] = [("value", 0), *(("apart", place, place - 1) for place in range(1, sample.width))]
        scores.append(("histogram ratio of the steps between values", _histograms(sample, steps)))
        if not scores[0][0].startswith(COUNTED):
            scores.append(("boosted score of the columns", _boosted(sample)))
    return scores


def _whole(sample: Sample) -> list[tuple[str, Score]]:
    """Estimates the log ratio of each whole output, if outputs repeat often enough to be counted."""
    marks = [side.marks() for side in sample.sides]
    seen, places = np.unique(np.concatenate(marks), return_inverse=True)
    if not 3 <= len(seen) <= len(places) // 8:
        return []
    counts = [_cell_counts(part, len(seen)) for part in np.split(places, [len(marks[0])])]
    ratios = _ratio(counts[0], counts[1])

    def score(outputs: Outputs) -> Floats:
        here = outputs.marks()
        at = np.minimum(np.searchsorted(seen, here), len(seen) - 1)
        return np.where(seen[at] == here, ratios[at], 0.0)

    return [(f"{COUNTED} over {len(seen)} different outputs", score)]


def _histograms(sample: Sample, keys: list[Key]) -> Score:
    """Sums the log histogram ratios of the columns, each shrunk towards zero by what chance explains."""
    tables: list[tuple[Key, Floats, Floats]] = []
    for key in keys:
        columns = [side.column(key) for side in sample.sides]
        edges = _edges(np.concatenate(columns))
        counts = [_cell_counts(_bins(column, edges), len(edges) + 2) for column in columns]
        tables.append((key, edges, _ratio(counts[0], counts[1])))

    def score(outputs: Outputs) -> Floats:
        total = np.zeros(len(outputs))
        for key, edges, ratio in tables:
            total += ratio[_bins(outputs.column(key), edges)]
        return total

    return score


def _cell_counts(cells: NDArray[np.int64], size: int) -> Floats:
    """Counts each cell and adds 1/2, so that an empty cell is not taken for impossible."""
    return np.bincount(cells, minlength=size).astype(np.float64) + 0.5


def _ratio(one: Floats, other: Floats) -> Floats:
    """Returns the log ratios of two lists of counts, each shrunk towards zero by what chance explains."""
    ratio = np.log(one / other) - np.log(one.sum() / other.sum())
    chance = 1 / one + 1 / other
    return np.asarray(ratio * np.maximum(0.0, 1 - chance / np.maximum(ratio * ratio, 1e-12)))


def _edges(column: Floats) -> Floats:
    """Returns the edges of cells with about equally many values."""
    known = np.sort(column[~np.isnan(column)])
    places = (np.arange(1, _BINS) * len(known)) // _BINS
    return np.unique(known[places]) if len(known) else known


def _bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Returns the histogram cell of each value; the last cell is for missing values."""
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column, side="left"))


def _boosted(sample: Sample) -> Score:
    """Boosts the logistic loss: each round adds the column whose table of cells helps most.

    Written out here because the tables are small, and because a linear solver would start threads.
    """
    rows = min(_BOOSTED, *(len(side) for side in sample.sides))
    sides = [side.part(slice(0, rows)) for side in sample.sides]
    keys = keys_for(sample.width)[:40]
    edges = [_edges(np.concatenate([side.column(key) for side in sides])) for key in keys]
    cells = _BINS + 2
    at = np.stack(
        [np.concatenate([_bins(side.column(key), edge) for side in sides]) for key, edge in zip(keys, edges, strict=True)]
    )
    flat = (at + cells * np.arange(len(keys))[:, None]).ravel()
    labels, total = np.repeat([1.0, 0.0], rows), np.zeros(2 * rows)
    tables: list[tuple[int, Floats]] = []
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-total))
        slope = np.bincount(flat, np.tile(labels - chance, len(keys)), cells * len(keys)).reshape(-1, cells)
        curve = np.bincount(flat, np.tile(chance * (1 - chance), len(keys)), cells * len(keys)).reshape(-1, cells)
        best = int(np.argmax((slope**2 / (curve + 10)).sum(axis=1)))
        tables.append((best, slope[best] / (curve[best] + 10) * 0.7))
        total = total + tables[-1][1][at[best]]

    def score(outputs: Outputs) -> Floats:
        total = np.zeros(len(outputs))
        for place, table in tables:
            total += table[_bins(outputs.column(keys[place]), edges[place])]
        return total

    return score


def _cut(sample: Sample, words: str, score: Score) -> list[Candidate]:
    """Returns the best cuts of a score: high scores speak for D, low ones for D'."""
    columns = [np.sort(score(side)) for side in sample.sides]
    pooled = np.sort(np.concatenate(columns))
    shares = np.concatenate([np.geomspace(3 / len(pooled), 0.1, 40), np.linspace(0.1, 0.9, 121)])
    shares = np.concatenate([shares, 1 - shares[:40]])
    cuts = np.unique(pooled[np.minimum((shares * len(pooled)).astype(np.int64), len(pooled) - 1)])
    upto = [np.searchsorted(column, cuts, side="right").astype(np.float64) for column in columns]
    above = [len(column) - count for column, count in zip(columns, upto, strict=True)]
    events: list[Candidate] = []
    for side, counts, how in ((0, above, "above"), (1, upto, "at most")):
        scores, gains = sample.rank((counts[0], counts[1]), side)
        for place in sorted({int(np.argmax(scores)), int(np.argmax(gains))}):
            mask = _passes(score, float(cuts[place]), side)
            text = f"{words} {how} {cuts[place]:.4g}"
            events.append(Candidate(text, mask, side, float(scores[place]), float(gains[place]), ("learnt", words)))
    return events


def _passes(score: Score, cut: float, side: int) -> Callable[[Outputs], Mask]:
    def mask(outputs: Outputs) -> Mask:
        scores = score(outputs)
        return np.asarray(scores > cut if side == 0 else scores <= cut)

    return mask
