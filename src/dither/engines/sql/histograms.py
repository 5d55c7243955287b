"""Reads histograms from Arrow columns: a million distinct values are two arrays, not a million Python tuples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.query.work import Histogram

Integers = NDArray[np.int64]
_SPARE = 16  # places for each stored weight, at most


def read_histograms(
    table: pa.Table, width: int, steps: int, name: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> dict[tuple[Any, ...], Histogram]:
    """Returns a histogram for each group of a table with `width` columns of keys, then bin and weight, in any order of rows.

    A group and bin has one row. A bin that is NULL does not count, but its group exists. `name` turns the driver's values of a
    key into the key.
    """
    bins = _whole(table.column(width), -1)
    weights = _whole(table.column(width + 1), 0)
    codes, keys = _codes([table.column(place) for place in range(width)], len(bins))
    if len(keys) * (steps + 2) < _SPARE * len(bins):
        found = _placed(codes, bins, weights, len(keys), steps)
    else:
        found = _sorted(codes, bins, weights, len(keys), steps)
    return {name(key): Histogram(*each) for key, each in zip(keys, found, strict=True)}


def _placed(codes: Integers, bins: Integers, weights: Integers, groups: int, steps: int) -> Iterator[tuple[Integers, Integers]]:
    """Yields the bins and weights of each group. Each weight has a place of its own, so nothing needs to be sorted."""
    every = np.zeros((groups, steps + 2), dtype=np.int64)
    every.reshape(-1)[codes * (steps + 2) + bins + 1] = weights
    for group in every:
        held = np.flatnonzero(group[1:])
        yield held, group[1:][held]


def _sorted(codes: Integers, bins: Integers, weights: Integers, groups: int, steps: int) -> Iterator[tuple[Integers, Integers]]:
    """Yields the bins and weights of each group where most places would be empty."""
    order = _order(codes, bins, groups, steps)
    codes, bins, weights = codes[order], bins[order], weights[order]
    counted = (bins >= 0) & (weights != 0)
    if not counted.all():
        codes, bins, weights = codes[counted], bins[counted], weights[counted]
    ends = np.searchsorted(codes, np.arange(groups + 1))
    for first, last in itertools.pairwise(ends.tolist()):
        yield bins[first:last], weights[first:last]


def _whole(column: pa.ChunkedArray, null: int) -> Integers:
    filled: Integers = column.fill_null(null).to_numpy().astype(np.int64, copy=False)
    return filled


def _codes(columns: Sequence[pa.ChunkedArray], rows: int) -> tuple[Integers, list[tuple[Any, ...]]]:
    """Returns the number of each row's group, and the driver's values of each group's key."""
    codes: Integers = np.zeros(rows, dtype=np.int64)
    keys: list[tuple[Any, ...]] = [()]
    for column in columns:
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        coded = plain.combine_chunks().dictionary_encode(null_encoding="encode")
        own, values = coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()
        if len(keys) <= 1:
            codes, keys = own, [(*key, value) for key in keys for value in values]
            continue
        pairs, codes = np.unique(codes * len(values) + own, return_inverse=True)
        keys = [(*keys[pair // len(values)], values[pair % len(values)]) for pair in pairs.tolist()]
    return codes, keys


def _order(codes: Integers, bins: Integers, groups: int, steps: int) -> NDArray[np.intp]:
    """Returns the order by group, then by bin. numpy sorts 16 bits at a time by radix, in half the time of 64 bits."""
    values = (groups + 1) * (steps + 2)
    if values > 1 << 48:
        return np.lexsort((bins, codes))
    places = codes * (steps + 2) + bins + 1
    order = np.argsort((places & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, values.bit_length(), 16):
        digits = ((places >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order
