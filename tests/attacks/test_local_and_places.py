"""Attacks on reports and places: nothing but the random report depends on the value, and no value makes anything fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt

SURVEYS = {
    kind: dt.LocalSurvey.choice("x", ["other", *(f"v{i}" for i in range(15))], epsilon=1, kind=kind)
    for kind in ("response", "unary", "subset", "hadamard", "hashing")
}
ODD: list[Any] = ["v3", "other", "no such value", "", None, 3, float("nan"), [], {}, object(), "\ud800", b"v3"]
PLACES: list[Any] = [(3, 4), (0.5, -0.5), (float("nan"), 0), (0, float("inf")), (-1e300, 1e300), (Fraction(1, 3), 2**80)]


@pytest.mark.parametrize("kind", SURVEYS)
def test_no_value_makes_a_report_fail_or_longer(kind: str) -> None:
    sizes = {len(dt.LocalClient(SURVEYS[kind]).report(value)) for value in ODD}
    assert len(sizes) == 1


@pytest.mark.parametrize("kind", SURVEYS)
def test_asking_again_averages_nothing(kind: str) -> None:
    person = dt.LocalClient(SURVEYS[kind])
    assert len({person.report(value) for value in ("v3", "v3", "v4", None)}) == 1
    assert person.spent() == dt.Pure(1)


def test_that_check_can_fail() -> None:
    """The twin: fresh reports differ, and their prices add up."""
    person = dt.LocalClient(SURVEYS["unary"])
    assert len({person.report("v3", fresh=True) for _ in range(40)}) > 1
    assert person.spent() == dt.Pure(40)


@pytest.mark.parametrize("kind", SURVEYS)
def test_forged_reports_stop_no_batch(kind: str) -> None:
    survey = SURVEYS[kind]
    good = dt.LocalClient(survey).report("v3")
    forged: list[Any] = [
        b"",
        b"\0" * 10**6,
        good + b"\0",
        good[:-1],
        bytes([good[0] ^ 255]) + good[1:],
        None,
        "text",
        3,
        [good],
    ]
    desk = dt.Aggregator(survey)
    assert desk.add([*forged, good, *forged]) == 1
    assert sum(desk.refused.values()) == 2 * len(forged)


def test_no_place_makes_a_release_fail() -> None:
    noise = dt.PlanarLaplace(epsilon="1/10", region=((-5, -5), (5, 5)))
    for place in PLACES:
        x, y = noise.release(place)
        assert max(abs(x), abs(y)) <= 5
    many = noise.release(np.array([[1.0, np.nan], [np.inf, -np.inf]]))
    assert np.shape(many) == (2, 2)


def test_places_outside_a_grid_are_those_at_its_edge() -> None:
    grid = dt.MetricGrid(4, 3, epsilon=50)
    assert grid.release((99, -99)) == (3, 0)
