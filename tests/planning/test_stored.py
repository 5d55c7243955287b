"""What was released is kept as text and comes back exactly."""

from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dither.errors import DitherError
from dither.planning.outputs import Noisy, release, table
from dither.planning.records import decode_noisy, encode_noisy
from dither.query.work import Group
from planning.hand import ask, planned, query

MOMENTS = st.datetimes().map(lambda moment: moment.replace(fold=0))  # fold is about clocks; timestamps have none
KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.dates(),
    MOMENTS,
    st.floats(),
    st.sampled_from(["", "1", "null"]),
)


@st.composite
def released(draw: Any) -> Noisy:
    width = draw(st.integers(0, 3))
    keys = tuple(tuple(draw(KEYS) for _ in range(width)) for _ in range(draw(st.integers(0, 4))))
    cells = []
    for _ in range(draw(st.integers(0, 3))):
        shape = (len(keys), draw(st.integers(1, 3)))
        if draw(st.booleans()):
            cells.append(draw(arrays(np.int64, shape)))
        else:
            wide = np.empty(shape, dtype=object)
            wide.ravel()[:] = [draw(st.integers(-(2**200), 2**200)) for _ in range(wide.size)]
            cells.append(wide)
    return Noisy(keys, tuple(cells))


def exactly(noisy: Noisy) -> Any:
    """Everything that could differ, kinds of keys and widths of numbers included."""
    keys = [[(type(part).__name__, repr(part)) for part in key] for key in noisy.keys]
    return keys, [(str(c.dtype), c.shape, [int(v) for v in c.ravel()]) for c in noisy.cells]


@given(st.lists(released(), max_size=3))
def test_what_was_released_comes_back(noisy: list[Noisy]) -> None:
    text = encode_noisy(noisy)
    assert [exactly(each) for each in decode_noisy(text)] == [exactly(each) for each in noisy]
    assert text.isascii()
    assert encode_noisy(decode_noisy(text)) == text


def test_numbers_of_any_size_come_back() -> None:
    wide = np.empty((1, 2), dtype=object)
    wide[0] = [10**9999, -(2**64)]
    (again,) = decode_noisy(encode_noisy([Noisy(((),), (wide,))]))
    assert again.cells[0].tolist() == wide.tolist()


def test_one_true_and_a_text_stay_three_keys() -> None:
    keys = ((1,), (True,), ("1",), (None,), (datetime.date(2026, 11, 1),), ("2026-11-01",))
    (again,) = decode_noisy(encode_noisy([Noisy(keys, ())]))
    assert [type(key[0]) for key in again.keys] == [type(key[0]) for key in keys]
    assert again.keys == keys


def test_a_kept_answer_is_read_like_the_first() -> None:
    plan = planned(query(ask("n", "count"), ask("a", "avg", "wage"), keys=("region",)))
    noisy = release(plan, [Group(("east",), None, ((5, 4, 1), (5,)))] if len(plan.noises) == 2 else [])
    (again,) = decode_noisy(encode_noisy([noisy]))
    assert table(plan, again) == table(plan, noisy)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format":2,"released":[]}',
        '{"format":1}',
        '{"format":1,"released":[{"keys":[[["spoon","x"]]],"cells":[]}]}',
        '{"format":1,"released":[{"keys":[],"cells":[{"width":"int64","shape":[2,2],"values":[1]}]}]}',
    ],
)
def test_what_cannot_be_read_is_not_guessed_at(text: str) -> None:
    with pytest.raises(DitherError, match="fresh=True"):
        decode_noisy(text)


def test_what_is_no_release_is_not_stored() -> None:
    with pytest.raises(TypeError):
        encode_noisy([Noisy((), (np.zeros((1, 1), dtype=np.float64),))])
    with pytest.raises(TypeError):
        encode_noisy([Noisy(((b"x",),), ())])  # type: ignore[arg-type]
    assert json.loads(encode_noisy([]))["released"] == []
