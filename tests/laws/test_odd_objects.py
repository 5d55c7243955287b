"""Whatever is put into a public call, the answer is a result or a DitherError that says what and how to fix it.

A plain TypeError is for a wrong number or name of arguments, which none of these calls has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dither as dt
from laws import odd_calls, odd_questions
from laws.odd_calls import Right

EVERY = [
    *odd_calls.declarations(),
    *odd_calls.losses(),
    *odd_calls.meanings(),
    *odd_calls.mechanisms(),
    *odd_calls.around(),
    *odd_calls.workloads(),
    *odd_calls.tradeoffs(),
    *odd_calls.streams(),
    *odd_calls.graphs(),
    *odd_calls.traces(),
    *odd_calls.places(),
    *odd_calls.local(),
    *odd_questions.questions(),
]
NEEDS_NOTHING = {
    "AddRemove",
    "Odometer",
    "count_units",
    "guarantees",
    "leakage",
    "parts",
    "sensitivity",
    "Curator",
    "Receipt",
    "Remote",
}


def failures(right: Right) -> list[str]:
    """The calls that raise anything but a DitherError with a fix."""
    found = []
    for text, call in odd_calls.odd_calls(right):
        try:
            call()
        except dt.DitherError as error:
            if not error.what or not (error.fix or "Fix" in str(error) or isinstance(error, dt.PriceError)):
                found.append(f"{text}: {error} (no fix)")
        except Exception as error:
            found.append(f"{text}: {type(error).__name__}: {error}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("right", EVERY, ids=str)
def test_wrong_objects_are_refused_in_words(right: Right) -> None:
    right.call(*right.star, **right.given)  # the call that is right
    assert failures(right)[:5] == []


def test_every_public_callable_is_among_them() -> None:
    tried = {right.name.split(".")[0].split("(")[0] for right in EVERY}
    errors = {name for name in dt.__all__ if isinstance(getattr(dt, name), type) and issubclass(getattr(dt, name), Exception)}
    callables = {name for name in dt.__all__ if callable(getattr(dt, name))}
    assert callables - errors - NEEDS_NOTHING - tried == set()


@pytest.mark.parametrize("careless", [lambda x: x + 1, lambda x: x["a"], lambda x: 1 / x, lambda x: x.a, lambda x: [1][x]])
def test_that_a_careless_function_would_be_noticed(careless: Callable[[Any], Any]) -> None:
    assert failures(Right("careless", careless, {"x": 1}))
