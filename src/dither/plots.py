"""Pictures, for people who would rather look. Needs matplotlib: `pip install dither[plots]`.

Everything drawn here describes; nothing drawn here decides. Floats are fine.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dither.errors import DitherError
from dither.exact import balls
from dither.mechanisms.laplace import Laplace

_COLOURS = ("#1f5a96", "#c8553d", "#588157", "#6d597a")


def _figure(width: float, height: float, rows: int, columns: int) -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix="pip install 'dither[plots]'.") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def noise_picture(mechanism: Laplace, answers: Sequence[int | Fraction], path: str | Path, draws: int = 2000) -> Path:
    """One picture of a Laplace mechanism at some exact answers: density, distribution function, inverse, draws."""
    figure, panels = _figure(10, 7, 2, 2)
    density, rising, inverse, drawn = panels.flat
    step = float(mechanism.grid)
    for colour, answer in zip(_COLOURS, answers, strict=False):
        low, high = _window(mechanism, answers)
        law = mechanism.law(answer)
        ks = np.unique(np.linspace(low, high, 400).astype(np.int64))
        with balls.working(64):
            pmf = np.array([float(law.pmf(int(k))) for k in ks])
            cdf = np.array([float(law.at_most(int(k))) for k in ks])
        name = f"exact answer {answer}"
        density.plot(ks * step, pmf / step, color=colour, label=name)
        rising.plot(ks * step, cdf, color=colour)
        inverse.plot(cdf, ks * step, color=colour)
        sample = [float(mechanism.release(answer)) for _ in range(draws)]
        drawn.hist(sample, bins=60, range=(low * step, high * step), color=colour, alpha=0.5, density=True)
    for panel, title in zip(panels.flat, ("density", "distribution function", "inverse", f"{draws} draws"), strict=True):
        panel.set_title(title, loc="left")
        panel.spines[["top", "right"]].set_visible(False)
    density.legend(frameon=False)
    target = Path(path)
    figure.savefig(target, dpi=120)
    return target


def _window(mechanism: Laplace, answers: Sequence[int | Fraction]) -> tuple[int, int]:
    reach = int(Fraction(mechanism.margin("0.98")) / mechanism.grid)
    points = [int(Fraction(answer) / mechanism.grid) for answer in answers]
    return min(points) - reach, max(points) + reach
