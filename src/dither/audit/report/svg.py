"""Draws, as SVG text, how likely each output is on D and on D', and the band that the claim allows.

    band at an output   from e^-epsilon Pr[output | D'] to e^epsilon Pr[output | D'] (+ delta)

A claim says that D's line stays in the band everywhere. The axis of probabilities is logarithmic, so that the band is as
wide in the tails as in the middle. Nothing here needs a drawing library, and every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 30, 46
_BINS, _FEW = 36, 40
D, OTHER, BAND, CHANCE = "#1d4f91", "#c05a12", "#f3d3b8", "#fbf0e6"
_SURE = 3.5  # standard errors of a share, for the pale band around what is allowed


@dataclass(frozen=True)
class Shape:
    """Probabilities of D and of D' at outputs `at`, each standing for a bin of the given width (0: a single value)."""

    at: tuple[float, ...]
    one: tuple[float, ...]
    two: tuple[float, ...]
    width: float = 0.0
    sampled: int = 0


def histogram(one: Sequence[float], two: Sequence[float]) -> Shape | None:
    """Returns the shares of sampled outputs, by value if there are few values, else in bins. Leaves out NaN and infinities.

    >>> histogram([1, 1, 2], [2, 2, 2]).one
    (0.6666666666666666, 0.3333333333333333)
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (one, two)]
    kept = [side[np.isfinite(side)] for side in sides]
    pooled = np.concatenate(kept)
    if not len(pooled) or not all(len(side) for side in sides):
        return None
    size = min(len(side) for side in sides)
    values = _filled(np.unique(pooled))
    if len(values) <= _FEW:
        shares = [[float(np.count_nonzero(side == value)) / len(side) for value in values] for side in sides]
        return Shape(tuple(values.tolist()), tuple(shares[0]), tuple(shares[1]), 0.0, size)
    low, high = (float(end) for end in np.quantile(pooled, (0.005, 0.995)))
    if not low < high or not math.isfinite(high - low):
        return None
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(np.clip(side, low, high), edges)[0] / len(all_) for side, all_ in zip(kept, sides, strict=True)]
    middles = (edges[:-1] + edges[1:]) / 2
    return Shape(tuple(middles.tolist()), tuple(counts[0].tolist()), tuple(counts[1].tolist()), (high - low) / _BINS, size)


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adds the missing values of a grid, so that the drawing shows them as missing."""
    if not 2 <= len(values) <= _FEW:
        return values
    gap = float(np.diff(values).min())
    steps = (values - values[0]) / gap
    if steps[-1] > _FEW - 1 or np.abs(steps - np.round(steps)).max() > 1e-9:
        return values
    every: NDArray[np.float64] = values[0] + gap * np.arange(round(steps[-1]) + 1)
    every[np.round(steps).astype(np.intp)] = values
    return every


def drawing(shape: Shape, epsilon: float, delta: float = 0.0, *, title: str, axis: str = "output") -> str:
    """Returns one drawing. Outputs with probability zero lie on the bottom line."""
    x, y, floor, ceiling = _axes(shape, epsilon, delta)
    parts = [_frame(title, axis), _band(shape, epsilon, delta, x, y), _scale(floor, ceiling, y), _ticks(shape, x)]
    parts += [
        _line(shape, shape.two, OTHER, x, y, "5 3"),
        _line(shape, shape.one, D, x, y, ""),
        _legend(epsilon, delta, bool(shape.sampled)),
    ]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'


Place = Callable[[float], float]


def _axes(shape: Shape, epsilon: float, delta: float) -> tuple[Place, Place, float, float]:
    factor = math.exp(min(epsilon, 20))
    positive = [value for value in (*shape.one, *shape.two) if value > 0]
    top = max(positive, default=1.0)
    ceiling = math.ceil(math.log10(min(1.0, max(top, max(shape.two) * factor + delta) * 1.15)))
    low = math.log10(min(positive, default=0.1)) - 0.15
    floor = math.floor(max(low, ceiling - 9)) if not shape.sampled else max(low, math.log10(0.4 / shape.sampled))
    floor = min(floor, ceiling - 1)
    half = shape.width / 2 or _gap(shape.at) / 2
    first, last = min(shape.at) - half, max(shape.at) + half

    def x(value: float) -> float:
        return _LEFT + (value - first) / (last - first) * (WIDTH - _LEFT - _RIGHT)

    def y(share: float) -> float:
        level = math.log10(share) if share > 0 else floor
        return HEIGHT - _BOTTOM - (min(max(level, floor), ceiling) - floor) / (ceiling - floor) * (HEIGHT - _TOP - _BOTTOM)

    return x, y, floor, ceiling


def _gap(at: Sequence[float]) -> float:
    return min((b - a for a, b in pairwise(at)), default=1.0)


def _steps(shape: Shape, values: Sequence[float], x: Place, y: Place) -> list[str]:
    """Returns the points of a step line: flat over each bin, or around each value."""
    half = shape.width / 2 or _gap(shape.at) / 2
    points = []
    for at, value in zip(shape.at, values, strict=True):
        points += [f"{x(at - half):.1f},{y(value):.1f}", f"{x(at + half):.1f},{y(value):.1f}"]
    return points


def _band(shape: Shape, epsilon: float, delta: float, x: Place, y: Place) -> str:
    """Draws the band that the claim allows around D', and a pale band for sampling error."""
    factor = math.exp(min(epsilon, 700))
    high = [min(1.0, value * factor + delta) for value in shape.two]
    low = [max(0.0, value - delta) / factor for value in shape.two]
    if not shape.sampled:
        return _between(shape, low, high, BAND, x, y)
    wide_high = [top + _chance(value, top, factor, shape.sampled) for value, top in zip(shape.two, high, strict=True)]
    wide_low = [end - _chance(value, end, 1 / factor, shape.sampled) for value, end in zip(shape.two, low, strict=True)]
    return _between(shape, wide_low, wide_high, CHANCE, x, y) + _between(shape, low, high, BAND, x, y)


def _chance(share: float, edge: float, factor: float, size: int) -> float:
    """Returns how far sampling error may put a share on D beyond the edge."""
    return _SURE * math.sqrt((factor * factor * share + max(edge, 0.0)) / size + (max(factor, 1.0) / size) ** 2)


def _between(shape: Shape, low: Sequence[float], high: Sequence[float], colour: str, x: Place, y: Place) -> str:
    points = _steps(shape, high, x, y) + _steps(shape, low, x, y)[::-1]
    return f'<polygon points="{" ".join(points)}" fill="{colour}"/>'


def _line(shape: Shape, values: Sequence[float], colour: str, x: Place, y: Place, dash: str) -> str:
    drawn = f'<polyline points="{" ".join(_steps(shape, values, x, y))}" fill="none" stroke="{colour}" stroke-width="2"'
    return drawn + (f' stroke-dasharray="{dash}"/>' if dash else "/>")


def _frame(title: str, axis: str) -> str:
    bottom = HEIGHT - _BOTTOM
    return (
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        + _text(_LEFT, 17, title, "start", 'font-weight="600" font-size="13"')
        + _text(_LEFT, HEIGHT - 8, axis if len(axis) <= 20 else f"{axis[:19]}…", "start")
        + f'<path d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}" fill="none" stroke="#555"/>'
    )


def _scale(floor: float, ceiling: float, y: Place) -> str:
    parts = []
    finer = (1, 2, 5) if ceiling - floor < 2 else (1,)
    for power in range(math.floor(floor), math.floor(ceiling) + 1):
        for times in finer:
            value = times * 10.0**power
            if not floor <= math.log10(value) <= ceiling:
                continue
            height = y(value)
            parts.append(f'<path d="M{_LEFT} {height:.1f}H{WIDTH - _RIGHT}" stroke="#e4e4e4"/>')
            label = f"{100 * value:.3g} %" if power >= -4 else f"1e{power}"
            parts.append(_text(_LEFT - 6, height + 4, label, "end"))
    return "".join(parts)


def _ticks(shape: Shape, x: Place) -> str:
    bottom, count = HEIGHT - _BOTTOM, len(shape.at)
    every = max(1, -(-count // 9))
    chosen = shape.at[::every] if shape.width == 0 else np.linspace(shape.at[0], shape.at[-1], 7).tolist()
    parts = []
    for value in chosen:
        parts.append(f'<path d="M{x(value):.1f} {bottom}v4" stroke="#555"/>')
        parts.append(_text(x(value), bottom + 17, f"{value:.4g}", "middle"))
    return "".join(parts)


def _legend(epsilon: float, delta: float, sampled: bool) -> str:
    allowed = f"allowed: e^±{epsilon:.4g} of D′" + (f", δ = {delta:.2g}" if delta else "")
    entries = [("D", D, ""), ("D′", OTHER, "5 3"), (allowed, BAND, ""), *([("by chance", CHANCE, "")] if sampled else [])]
    parts, left = [], float(WIDTH - _RIGHT)
    for label, colour, dash in entries[::-1]:
        left -= 6 * len(label) + 34
        thick, dashes = (9, "") if colour in (BAND, CHANCE) else (2, f' stroke-dasharray="{dash}"' if dash else "")
        parts.append(f'<path d="M{left} {HEIGHT - 12}h16" stroke="{colour}" stroke-width="{thick}"{dashes}/>')
        parts.append(_text(left + 20, HEIGHT - 8, label, "start"))
    return "".join(parts)


def _text(x: float, y: float, words: str, anchor: str, style: str = 'font-size="11"') -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222" '
        f'font-family="system-ui, sans-serif" {style}>{escape(words)}</text>'
    )
