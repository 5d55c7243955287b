"""Histograms read from Arrow columns: the same whether weights are placed or sorted, in any order of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dither.engines.sql.histograms import read_histograms

CELLS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 30)), st.integers(0, 2**56), max_size=40
)


def read(cells: Mapping[tuple[Any, Any], int], steps: int, order: list[int]) -> dict[Any, dict[int, int]]:
    rows = [(*list(cells)[place], list(cells.values())[place]) for place in order]
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate((pa.string(), pa.int32(), pa.int64()))]
    found = read_histograms(pa.table(columns, names=["k", "bin", "w"]), 1, steps, lambda key: key)
    for histogram in found.values():
        assert (np.diff(histogram.bins) > 0).all()
    return {key: dict(histogram) for key, histogram in found.items()}


@given(CELLS, st.data())
def test_many_steps_and_few_give_the_same(cells: dict[tuple[Any, Any], int], data: Any) -> None:
    truth: dict[Any, dict[int, int]] = {(key,): {} for key, _ in cells}
    for (key, bin), weight in cells.items():
        if bin is not None and weight:
            truth[(key,)][bin] = weight
    order = data.draw(st.permutations(range(len(cells))))
    for steps in (30, 10**5, 2**60):  # placed where rows are many, sorted by radix, sorted by pairs
        assert read(cells, steps, order) == truth
