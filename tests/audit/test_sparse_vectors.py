"""Broken sparse vectors as plain functions, with made-up answers only: found within 60 s of processor time."""

from __future__ import annotations

from typing import Any

import pytest

from dither.audit.foreign import Claim, Foreign, verdicts
from dither.audit.verdict import VIOLATES

GRID = 2.0**20


def on_grid(value: float) -> float:
    return float(round(value * GRID) / GRID)


def releases_the_query(answers: list[int], rng: Any) -> list[Any]:
    """The comparison's own noise is in what is shown (Lyu et al., Alg. 3)."""
    level, shown = 1 + rng.laplace(0, 2), []
    for answer in answers:
        noisy = answer + rng.laplace(0, 2)
        if noisy >= level:
            return [*shown, on_grid(noisy)]
        shown.append(None)
    return shown


def releases_another_query(answers: list[int], rng: Any) -> list[Any]:
    """The comparisons are right, and the noisy query besides is not paid for."""
    level, shown = 1 + rng.laplace(0, 2), []
    for answer in answers:
        if answer + rng.laplace(0, 4) >= level:
            return [*shown, on_grid(answer + rng.laplace(0, 1))]
        shown.append(None)
    return shown


def reuses_the_noise(answers: list[int], rng: Any) -> list[bool]:
    level, noise = 1 + rng.laplace(0, 2), rng.laplace(0, 4)
    return [bool(answer + noise >= level) for answer in answers]


def right(answers: list[int], rng: Any) -> list[bool]:
    level, shown = 1 + rng.laplace(0, 2), []
    for answer in answers:
        shown.append(bool(answer + rng.laplace(0, 4) >= level))
        if shown[-1]:
            break
    return shown


def violated(function: Any, seconds: float) -> bool:
    target = Foreign.of(function.__name__, function, Claim(1), seconds)  # type: ignore[arg-type]
    return any(verdict.outcome == VIOLATES for verdict in verdicts(target, seconds, lambda words, share: None))


@pytest.mark.long
@pytest.mark.parametrize("function", [releases_the_query, releases_another_query])
def test_a_broken_sparse_vector_is_found_within_sixty_seconds(function: Any) -> None:
    assert violated(function, 60.0)


@pytest.mark.slow
def test_shared_noise_is_found() -> None:
    assert violated(reuses_the_noise, 60.0)  # ends as soon as it is found


@pytest.mark.slow
def test_a_right_one_is_not_accused() -> None:
    assert not violated(right, 2.0)
