"""Degrees to metres and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dither as dt

VIENNA = dt.LocalMap(latitude="48.2", longitude="16.37")


def on_the_globe(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres along a great circle."""
    (p, q), (r, s) = ((math.radians(x), math.radians(y)) for x, y in (a, b))
    half = math.sin((r - p) / 2) ** 2 + math.cos(p) * math.cos(r) * math.sin((s - q) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(math.sqrt(half))


def test_distances_near_the_centre_are_those_of_the_globe() -> None:
    for place in ((48.3, 16.5), (47.9, 16.0), (48.2, 17.0)):
        x, y = VIENNA.metres(*place)
        assert math.hypot(x, y) == pytest.approx(on_the_globe((48.2, 16.37), place), rel=0.01)


def test_there_and_back() -> None:
    assert VIENNA.degrees(VIENNA.metres(48.3, 16.5)) == pytest.approx((48.3, 16.5))
    places = VIENNA.metres(np.array([48.3, 48.1]), np.array([16.5, 16.2]))
    assert VIENNA.degrees(places)[:, 1].tolist() == pytest.approx([16.5, 16.2])


def test_longitudes_go_around() -> None:
    x, _ = dt.LocalMap(latitude=0, longitude=179).metres(0, -179)
    assert x == pytest.approx(2 * 111_195, rel=1e-4)


def test_odd_places_have_a_meaning() -> None:
    assert VIENNA.metres(math.nan, math.inf) == (0.0, 0.0)
    assert VIENNA.metres(95, 16.37) == VIENNA.metres(90, 16.37)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dt.LocalMap(latitude=95, longitude=0),
        lambda: VIENNA.metres("north", 0),
        lambda: VIENNA.degrees([1, 2, 3]),
        lambda: VIENNA.metres(np.zeros((2, 2)), 0),
    ],
)
def test_odd_arguments_are_refused_in_words(call: Any) -> None:
    with pytest.raises(dt.DitherError):
        call()
