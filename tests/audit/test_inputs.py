"""Made-up inputs: what is read from a function, and what its neighbours are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.audit.foreign import Claim, Foreign
from dither.audit.inputs import choose_inputs
from dither.audit.loading import takes_size
from dither.audit.replay.pairs import Records
from dither.audit.replay.values import Answers, Counts, Items, patterns
from dither.audit.signature import Hints, kinds, read_hints
from dither.errors import ArgumentError

LIMIT = 120


def of_count(count: int) -> Any: ...
def of_bit(bit: bool) -> Any: ...
def of_item(item: str) -> Any: ...
def of_answers(answers: list[int]) -> Any: ...
def of_counts(counts: list[float]) -> Any: ...
def of_numbers(values: list[float]) -> Any: ...
def of_integers(values: list[int]) -> Any: ...
def of_words(texts: list[str]) -> Any: ...
def of_array(x: np.ndarray) -> Any: ...
def of_rows(people: list[dict[str, Any]]) -> Any: ...
def of_anything(data) -> Any: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (of_count, "count"),
        (of_bit, "bit"),
        (of_item, "item"),
        (of_answers, "answers"),
        (of_counts, "counts"),
        (of_numbers, "numbers"),
        (of_integers, "integers"),
        (of_words, "words"),
        (of_array, "array"),
        (of_rows, "rows"),
        (of_anything, "numbers"),
    ],
)
def test_the_kind_of_data_is_read_from_the_signature(function: Any, kind: str) -> None:
    assert kinds(function, Hints())[0] == kind


def ages(rows: list[dict[str, Any]]) -> float:
    """Adds up what is in 1,000 documents."""
    return sum(min(max(row["age"], 0), LIMIT) for row in rows if row.get("region") in ("north", "south"))


def test_constants_and_columns_are_read_from_the_code() -> None:
    hints = read_hints(ages)
    assert {0.0, 120.0} <= set(hints.numbers)
    assert {"north", "south"} <= set(hints.words)
    assert hints.columns == ("age", "region")
    assert not any("documents" in word for word in hints.words)


def test_rows_have_the_columns_that_the_code_reads() -> None:
    made = choose_inputs(ages, ages, "auto", None, "add-remove").source
    assert isinstance(made, Records)
    assert set(made.columns) == {"age", "region"}


def test_what_fails_on_lists_is_tried_on_other_data() -> None:
    def doubled(data) -> Any:  # type: ignore[no-untyped-def]
        return 2 * int(data) + 1

    made = choose_inputs(doubled, doubled, "auto", None, "add-remove")
    assert isinstance(made.source, Counts)
    assert made.words.startswith("count")
    assert "differ by 1" in made.words


def test_neighbours_are_what_their_words_say() -> None:
    assert all(abs(one - two) == 1 for one, two in Counts((64,)).standard())
    assert (63, 64) in set(Counts((64,)).standard())
    for one, two in (*Answers(places=(3,)).standard(), *patterns(7)):
        assert len(one) == len(two)
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) == 1
    assert all(one != two for one, two in Items((0, 1, 2)).standard())


def test_replaced_records_leave_the_size_alone() -> None:
    for kind in ("numbers", "words", "counts"):
        inputs = choose_inputs(len, len, kind, None, "replace")
        sides = inputs.pairs(1)
        assert sides
        if kind != "counts":
            assert all(len(one) == len(two) for one, two in sides)
        else:
            assert all(sum(one) == sum(two) for one, two in sides)


def test_an_unknown_relation_or_library_is_refused() -> None:
    with pytest.raises(ArgumentError, match="neighbours cannot be"):
        Claim(1, neighbours="nearby")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no adapter"):
        Claim(1, library="tumult")  # type: ignore[arg-type]


def test_a_function_that_takes_a_size_is_drawn_in_batches() -> None:
    calls: list[int] = []

    def noisy(count: int, rng: Any, size: int) -> Any:
        calls.append(size)
        return count + rng.laplace(0, 1, size)

    assert takes_size(noisy)
    target = Foreign.of("noisy", noisy, Claim(1), 5.0).target()  # type: ignore[arg-type]
    assert target.batch is not None
    assert len(target.batch(3, 500)) == 500
    assert max(calls) == 500
