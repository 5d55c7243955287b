"""Events learnt from one half of a sample: sets of whole outputs, and cuts of an estimated likelihood ratio.

The best event for a given epsilon is always a cut of the likelihood ratio Pr[output | D] / Pr[output | D'] (Neyman and
Pearson). Three estimates of it are tried: the counts of each whole output (few different outputs), a sum over columns
of histogram ratios (independent values), and boosted tables over all columns (values that hang together).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dither.audit.events import Candidate, Mask, Sample
from dither.audit.outputs import Floats, Key, Outputs, keys_for

Score = Callable[[Outputs], Floats]
COUNTED = "likelihood ratio"
_BINS = 16
_ROUNDS = 20
_BOOSTED = 6000  # outputs of each side that boosting looks at


def learnt(sample: Sample) -> list[Candidate]:
    """Candidates from every estimate, with the cut chosen on the half that was not learnt from."""
    first, second = sample.halves()
    found: list[Candidate] = []
    for words, score in _scores(first):
        found += _cut(second, words, score)
    return found


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
    """The log ratio of each whole output, where outputs repeat often enough to be counted."""
    marks = [side.marks() for side in sample.sides]
    seen, places = np.unique(np.concatenate(marks), return_inverse=True)
    if not 3 <= len(seen) <= len(places) // 8:
        return []
    counts = [_counted(part, len(seen)) for part in np.split(places, [len(marks[0])])]
    ratios = _ratio(counts[0], counts[1])

    def score(outputs: Outputs) -> Floats:
        here = outputs.marks()
        at = np.minimum(np.searchsorted(seen, here), len(seen) - 1)
        return np.where(seen[at] == here, ratios[at], 0.0)

    return [(f"{COUNTED} over {len(seen)} different outputs", score)]


def _histograms(sample: Sample, keys: list[Key]) -> Score:
    """The sum over columns of log histogram ratios, each drawn towards zero where chance explains it."""
    tables: list[tuple[Key, Floats, Floats]] = []
    for key in keys:
        columns = [side.column(key) for side in sample.sides]
        edges = _edges(np.concatenate(columns))
        counts = [_counted(_bins(column, edges), len(edges) + 2) for column in columns]
        tables.append((key, edges, _ratio(counts[0], counts[1])))

    def score(outputs: Outputs) -> Floats:
        found = np.zeros(len(outputs))
        for key, edges, ratio in tables:
            found += ratio[_bins(outputs.column(key), edges)]
        return found

    return score


def _counted(cells: NDArray[np.int64], size: int) -> Floats:
    """How many are in each cell, and half a one more, so that an empty cell is not taken for impossible."""
    return np.bincount(cells, minlength=size).astype(np.float64) + 0.5


def _ratio(one: Floats, other: Floats) -> Floats:
    """The log ratio of two lists of counts, each drawn towards zero by as much as chance explains."""
    ratio = np.log(one / other) - np.log(one.sum() / other.sum())
    chance = 1 / one + 1 / other
    return np.asarray(ratio * np.maximum(0.0, 1 - chance / np.maximum(ratio * ratio, 1e-12)))


def _edges(column: Floats) -> Floats:
    """Cells that hold about equally many values."""
    known = np.sort(column[~np.isnan(column)])
    places = (np.arange(1, _BINS) * len(known)) // _BINS
    return np.unique(known[places]) if len(known) else known


def _bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Which histogram cell each value is in; the last cell is for missing values."""
    return np.where(np.isnan(column), len(edges) + 1, np.searchsorted(edges, column, side="left"))


def _boosted(sample: Sample) -> Score:
    """Gradient boosting of the logistic loss: in each round the one column whose table of cells helps most is added.

    Written out here because the tables are small, and because a solver of linear equations would start threads.
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
        found = np.zeros(len(outputs))
        for place, table in tables:
            found += table[_bins(outputs.column(keys[place]), edges[place])]
        return found

    return score


def _cut(sample: Sample, words: str, score: Score) -> list[Candidate]:
    """The best cut of a score: high scores speak for D, low ones for D'."""
    columns = [np.sort(score(side)) for side in sample.sides]
    pooled = np.sort(np.concatenate(columns))
    shares = np.concatenate([np.geomspace(3 / len(pooled), 0.1, 40), np.linspace(0.1, 0.9, 121)])
    shares = np.concatenate([shares, 1 - shares[:40]])
    cuts = np.unique(pooled[np.minimum((shares * len(pooled)).astype(np.int64), len(pooled) - 1)])
    upto = [np.searchsorted(column, cuts, side="right").astype(np.float64) for column in columns]
    above = [len(column) - count for column, count in zip(columns, upto, strict=True)]
    found: list[Candidate] = []
    for side, counts, how in ((0, above, "above"), (1, upto, "at most")):
        scores, gains = sample.rank((counts[0], counts[1]), side)
        for place in sorted({int(np.argmax(scores)), int(np.argmax(gains))}):
            mask = _passes(score, float(cuts[place]), side)
            text = f"{words} {how} {cuts[place]:.4g}"
            found.append(Candidate(text, mask, side, float(scores[place]), float(gains[place]), ("learnt", words)))
    return found


def _passes(score: Score, cut: float, side: int) -> Callable[[Outputs], Mask]:
    def mask(outputs: Outputs) -> Mask:
        found = score(outputs)
        return np.asarray(found > cut if side == 0 else found <= cut)

    return mask
