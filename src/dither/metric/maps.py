"""Degrees to metres around a public centre, and back.

    x = R cos(centre) (longitude - centre)        y = R (latitude - centre)        R = 6,371,008.8 metres

Each place is converted by itself, so floats are safe here: the noise follows after snapping to whole steps. Distances are those
of this projection. Within 50 km of the centre, up to 60 degrees of latitude, they are within 1.4 % of distances on a sphere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between
from dither.metric.price import floats

_RADIUS = 6_371_008.8


@dataclass(frozen=True)
class LocalMap:
    """A plane in metres that touches the globe at a public centre.

    >>> vienna = LocalMap(latitude="48.2", longitude="16.37")
    >>> [round(float(each)) for each in vienna.metres(48.21, 16.37)]
    [0, 1112]
    """

    latitude: float
    longitude: float

    def __init__(self, *, latitude: Number, longitude: Number) -> None:
        object.__setattr__(self, "latitude", float(between(latitude, "latitude", -85, 85)))
        object.__setattr__(self, "longitude", float(between(longitude, "longitude", -180, 180)))

    def metres(self, latitude: Any, longitude: Any) -> Any:
        """Returns x and y for one place, or an array with one row for each place of two arrays.

        A latitude beyond the poles counts as the pole, and longitudes go around. What is not finite counts as the centre.
        """
        north, east = _numbers(latitude, "latitude"), _numbers(longitude, "longitude")
        if north.shape != east.shape:
            raise ArgumentError("There must be as many latitudes as longitudes.", fix="give two numbers, or two arrays.")
        north = np.where(np.isfinite(north), np.clip(north, -90, 90), self.latitude)
        east = np.where(np.isfinite(east), east, self.longitude)
        around = (east - self.longitude + 180) % 360 - 180
        x = _RADIUS * math.cos(math.radians(self.latitude)) * np.radians(around)
        y = _RADIUS * np.radians(north - self.latitude)
        return (float(x), float(y)) if x.ndim == 0 else np.stack((x, y), axis=1)

    def degrees(self, places: Any) -> Any:
        """Returns latitude and longitude of a place in metres, or an array of them."""
        given = floats(places, "places", fix="give what release returned.")
        if given.shape[-1:] != (2,) or given.ndim > 2:
            raise ArgumentError(
                "places must be a pair of metres, or an array of shape (n, 2).", fix="give what release returned."
            )
        north = np.clip(self.latitude + np.degrees(given[..., 1] / _RADIUS), -90, 90)
        east = self.longitude + np.degrees(given[..., 0] / (_RADIUS * math.cos(math.radians(self.latitude))))
        around = (east + 180) % 360 - 180
        return (float(north), float(around)) if given.ndim == 1 else np.stack((north, around), axis=1)


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    found = floats(values, name, fix="give degrees.")
    if found.ndim > 1:
        raise ArgumentError(f"{name} must have one axis.", fix="flatten the array.")
    return found
