"""Draws pictures of answers, guarantees and noise. Needs matplotlib: the extra `plots`.

Pictures only describe, so floats are fine. The colours are safe for colour-blind readers (Okabe and Ito), and no two lines of
a panel differ by colour alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, DitherError, Fix, Shell, extra
from dither.exact import balls
from dither.exact.numbers import Number, positive, show, show_about, show_rounded
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.laplace import Laplace

_BLUE, _ORANGE, _GREEN, _PURPLE = _COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_GREY = "#555555"
_LEAST, _MOST = Fraction(1, 1000), Fraction(20)  # beyond, the curves of `guarantee_picture` are flat or spikes
_FEW = 60
_ROWS = 60  # the most rows of an answer that are drawn
_SMALL, _LETTERS = 7, 15  # the caption's size in points, and its letters per inch
_WARNING = 9  # the size in points of what was left out
_KEPT = "nothing more: the answer is kept"

Line = NDArray[np.float64]
Panel = tuple[str, Sequence[Any], Sequence[float | None]]  # a column: its name, its values, its margins


def _figure(width: float, height: float, charged: str = "nothing") -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix=extra("plots"), charged=charged) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: str | PathLike[str], charged: str = "nothing") -> Path:
    target = Path(path)
    try:
        figure.savefig(target, dpi=120)
    except (OSError, ValueError):  # a missing folder, or an unknown kind of picture
        raise DitherError(
            f"The picture cannot be written as {target.name}.",
            fix="name a file that ends in .png in a folder that is there.",
            charged=charged,
        ) from None
    return target


def _dress(panel: Any, title: str, x: str, y: str) -> None:
    panel.set_title(title, loc="left", fontsize=11, fontweight="bold")
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.spines[["top", "right"]].set_visible(False)


def _plain(value: float, _: int) -> str:
    """Shows a tick's label without powers of ten."""
    return f"{value:,.6g}"


# --- what epsilon means -----------------------------------------------------------------------------------------


def guarantee_picture(epsilon: Number, path: str | Path) -> Path:
    """Draws what an epsilon means, in four panels: two shifted curves, e^ε and 1 + ε, survivor functions, error against ε."""
    exact = positive(epsilon, "epsilon")
    if not _LEAST <= exact <= _MOST:
        raise ArgumentError(
            f"A picture shows an epsilon from {show(_LEAST)} to {show(_MOST)}, and it is {show(exact)}.",
            fix=Fix("choose one in between, or leave {plot} out: the words have no such limit.", plot=Shell("--plot")),
        )
    eps = float(exact)
    figure = _figure(11, 8.2)
    panels = figure.subplots(2, 2)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    figure.suptitle(f"What ε = {show(exact)} means for one person in a count", fontsize=14, fontweight="bold")
    for panel, draw in zip(panels.flat, (_curves, _factors, _survivors, _errors), strict=True):
        draw(panel, eps)
    return _save(figure, path)


def factor_words(eps: float) -> str:
    """Shows e^ε as `dither explain` does: four digits, rounded up.

    >>> factor_words(1.0), factor_words(0.5), factor_words(20.0)
    ('2.719', '1.649', '4.852e8')
    """
    return show_about(Fraction(float(np.exp(eps))), up=True, digits=4)


def _reach(eps: float) -> Line:
    """Returns the published counts that are drawn."""
    wide = int(np.ceil(max(4 / eps, 3)))
    return np.arange(-wide, wide + 2, dtype=np.float64)


def _chance(x: Line, centre: float, eps: float) -> Line:
    """Returns the probabilities of geometric noise of sensitivity 1, as for a count of people (mechanisms/geometric.py)."""
    return np.asarray(np.tanh(eps / 2) * np.exp(-eps * np.abs(x - centre)))


def _dots(x: Line) -> dict[str, Any]:
    """Returns the style of a marker for each count, if there are few of them."""
    return {"marker": "o", "ms": 4} if len(x) <= _FEW else {}


def _curves(panel: Any, eps: float) -> None:
    x = _reach(eps)
    without, taking = _chance(x, 0, eps), _chance(x, 1, eps)
    label = f"allowed: within a factor e^ε = {factor_words(eps)}"
    most = np.minimum(without * np.exp(eps), 1)
    panel.fill_between(x, without * np.exp(-eps), most, color=_BLUE, alpha=0.13, lw=0, label=label)
    panel.plot(x, without, color=_BLUE, lw=2, label="without you", **_dots(x))
    panel.plot(x, taking, color=_ORANGE, lw=2, ls="--", label="with you", **_dots(x))
    panel.set_ylim(0, np.tanh(eps / 2) * (min(np.exp(eps), 2) + 0.6))  # room for the legend above the peaks
    panel.set_xlim(x[0], x[-1])
    _dress(panel, "How likely is each published count?", "published count, 0 = the exact one without you", "chance")
    panel.legend(frameon=False, fontsize=9, loc="upper right")


def _factors(panel: Any, eps: float) -> None:
    x = np.linspace(0, 2 * eps, 300)
    panel.plot(x, np.exp(x), color=_ORANGE, lw=2, label=f"the factor: e^{eps:.6g} = {factor_words(eps)}")
    panel.plot(x, 1 + x, color=_BLUE, lw=2, ls="--", label=f"the rule of thumb: 1 + {eps:.6g} = {1 + eps:.6g}")
    panel.plot([eps, eps], [1 + eps, np.exp(eps)], color=_GREY, lw=1)
    panel.plot([eps], [np.exp(eps)], "o", color=_ORANGE, ms=7)
    panel.plot([eps], [1 + eps], "s", color=_BLUE, ms=6)
    if eps > 2:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(_plain)
    panel.set_xlim(0, x[-1])
    panel.locator_params(axis="x", nbins=6)
    _dress(panel, "How much likelier can an answer become?", "ε", "factor")
    panel.legend(frameon=False, fontsize=9, loc="upper left")


def _at_least(x: Line, centre: float, eps: float) -> Line:
    """Returns the chance that the published count is x or more."""
    far = np.exp(-eps * np.where(x > centre, x - centre, centre - x + 1)) / (1 + np.exp(-eps))
    return np.asarray(np.where(x > centre, far, 1 - far))


def _survivors(panel: Any, eps: float) -> None:
    x = _reach(eps)
    without, taking = _at_least(x, 0, eps), _at_least(x, 1, eps)
    most = np.minimum(without * np.exp(eps), 1 - np.exp(-eps) * (1 - without))
    panel.fill_between(x, without, most, color=_BLUE, alpha=0.13, lw=0, label="hits that no test exceeds")
    panel.plot(x, without, color=_BLUE, lw=2, label="without you: a false alarm", **_dots(x))
    panel.plot(x, taking, color=_ORANGE, lw=2, ls="--", label="with you: a hit", **_dots(x))
    panel.set_yscale("log")
    panel.set_xlim(x[0], x[-1])
    panel.set_ylim(top=1.6)
    panel.yaxis.set_major_formatter(lambda chance, _: f"{100 * chance:.6g} %")
    _dress(panel, "An attacker says “took part” from a threshold on", "threshold", "chance that the count reaches it")
    panel.legend(frameon=False, fontsize=9, loc="lower left")


def _margins(x: Line, confidence: float) -> Line:
    """Returns the margin of a count: the least m with Pr[|noise| > m] = 2 a^(m + 1) / (1 + a) at most 1 - confidence."""
    a = np.exp(-x)
    return np.asarray(np.maximum(np.ceil(np.log((1 - confidence) * (1 + a) / 2) / -x) - 1, 0))


def _errors(panel: Any, eps: float) -> None:
    x = np.geomspace(max(eps / 30, 1e-4), eps * 30, 800)
    here = {sure: Geometric(epsilon=Fraction(str(eps)), sensitivity=1).margin(sure) for sure in (0.99, 0.95, 0.5)}
    for (sure, margin), colour, style in zip(here.items(), (_PURPLE, _ORANGE, _BLUE), (":", "-", "--"), strict=True):
        label = f"{100 * sure:.0f} % of answers, here ± {margin:,}"
        panel.plot(x, _margins(x, sure), color=colour, lw=2, ls=style, label=label)
        panel.plot([eps], [margin], "o", color=colour, ms=6)
    panel.plot([eps, eps], [here[0.5], here[0.99]], color=_GREY, lw=1, zorder=0)
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=1)  # a whole number may be off by 0
    panel.set_ylim(bottom=-0.1)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(_plain)
    _dress(panel, "What does it cost in accuracy?", "ε of the question", "error of a count of people")
    panel.legend(frameon=False, fontsize=9, loc="upper right")


# --- what a mechanism does --------------------------------------------------------------------------------------


def noise_picture(mechanism: Laplace, answers: Sequence[int | Fraction], path: str | Path, draws: int = 2000) -> Path:
    """Draws a Laplace mechanism at some exact answers: density, distribution function, inverse, draws."""
    figure = _figure(10, 7)
    panels = figure.subplots(2, 2)
    density, rising, inverse, drawn = panels.flat
    step = float(mechanism.grid)
    for colour, style, answer in zip(_COLOURS, ("-", "--", ":", "-."), answers, strict=False):
        low, high = _window(mechanism, answers)
        law = mechanism.law(answer)
        ks = np.unique(np.linspace(low, high, 400).astype(np.int64))
        with balls.working(64):
            pmf = np.array([float(law.pmf(int(k))) for k in ks])
            cdf = np.array([float(law.at_most(int(k))) for k in ks])
        name = f"exact answer {answer}"
        density.plot(ks * step, pmf / step, color=colour, ls=style, label=name)
        rising.plot(ks * step, cdf, color=colour, ls=style)
        inverse.plot(cdf, ks * step, color=colour, ls=style)
        sample = [float(mechanism.release(answer)) for _ in range(draws)]
        drawn.hist(sample, bins=60, range=(low * step, high * step), color=colour, alpha=0.5, density=True)
    axes = (("answer", "density"), ("answer", "chance of at most this"), ("chance", "answer"), ("answer", "density"))
    titles = ("density", "distribution function", "inverse", f"{draws} draws")
    for panel, title, names in zip(panels.flat, titles, axes, strict=True):
        _dress(panel, title, *names)
    density.legend(frameon=False)
    return _save(figure, path)


def _window(mechanism: Laplace, answers: Sequence[int | Fraction]) -> tuple[int, int]:
    reach = int(Fraction(mechanism.margin("0.98")) / mechanism.grid)
    points = [int(Fraction(answer) / mechanism.grid) for answer in answers]
    return min(points) - reach, max(points) + reach


# --- an answer --------------------------------------------------------------------------------------------------


def answer_picture(
    labels: Sequence[str],
    panels: Sequence[Panel],
    note: str,
    path: str | PathLike[str] | None = None,
    warnings: Sequence[str] = (),
) -> Any:
    """Draws one panel for each noisy column and one row for each label. Returns the figure, and saves it to `path`.

    `warnings` stand above the panels: error bars do not show what was left out.
    """
    drawn = [(name, values, margins) for name, values, margins in panels if any(map(_is_number, values))]
    if not drawn:
        raise DitherError("The answer has no noisy number to draw.", fix="print it instead.", charged=_KEPT)
    shown = len(labels[:_ROWS])
    more = f" (the first {_ROWS} of {len(labels)} rows)" if len(labels) > _ROWS else ""
    width = max(4.5, 4 * len(drawn))
    caption = textwrap.wrap(note + more, int(width * _LETTERS))
    above = [line for text in warnings for line in textwrap.wrap(text, int(width * _LETTERS * _SMALL / _WARNING))]
    figure = _figure(width, max(2.2, 0.8 + 0.32 * shown) + 0.12 * len(caption) + 0.17 * len(above), _KEPT)
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=_WARNING, color=_ORANGE)
    axes = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for axis, (name, values, margins) in zip(axes, drawn, strict=True):
        _panel(axis, name, values[:_ROWS], margins[:_ROWS])
    axes[0].set_yticks(range(shown), [label[:40] for label in labels[:_ROWS]])
    axes[0].invert_yaxis()
    figure.supxlabel("\n".join(caption), fontsize=_SMALL, color=_GREY)
    if path is not None:
        _save(figure, path, _KEPT)
    return figure


def _panel(axis: Any, name: str, values: Sequence[Any], margins: Sequence[float | None]) -> None:
    for place, (value, margin) in enumerate(zip(values, margins, strict=True)):
        if not _is_number(value):
            axis.annotate("NULL", (0, place), color=_GREY, fontsize=8, va="center")
            continue
        # A number without a margin is drawn hollow.
        hollow = {} if margin is not None else {"markerfacecolor": "white"}
        axis.errorbar(float(value), place, xerr=margin, fmt="o", color=_BLUE, capsize=3, markersize=5, **hollow)
    axis.set_title(name, loc="left", fontsize=11, fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="x", alpha=0.3)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < float("1e300")


def comparison_picture(title: str, bars: Mapping[str, Sequence[tuple[str, float]]], path: str | PathLike[str]) -> Path:
    """Draws the errors of several ways to ask the same questions, with a panel for each relation of neighbours."""
    figure = _figure(5.2 * len(bars), 2.6)
    for panel, (name, ways) in zip(figure.subplots(1, len(bars), squeeze=False)[0], bars.items(), strict=True):
        names, errors = [each for each, _ in ways][::-1], [error for _, error in ways][::-1]
        drawn = panel.barh(names, errors, color=_BLUE)
        panel.bar_label(drawn, [show_rounded(error) for error in errors], padding=3, fontsize=_SMALL)
        panel.margins(x=0.15)
        _dress(panel, f"one record is {_RELATIONS.get(name, name)}", "root mean square error", "")
    figure.suptitle(title, fontsize=10)
    return _save(figure, path)


def running_picture(sums: Sequence[float], margins: Sequence[float], title: str, note: str, path: str | PathLike[str]) -> Path:
    """Draws a running sum as released, and the band of its margins around it."""
    figure = _figure(7, 3.6)
    panel = figure.subplots()
    steps, released, wide = np.arange(1, len(sums) + 1), np.asarray(sums, dtype=float), np.asarray(margins, dtype=float)
    label = f"where the exact sum is, {note}"
    panel.fill_between(steps, released - wide, released + wide, step="post", color=_BLUE, alpha=0.2, lw=0, label=label)
    panel.step(steps, released, where="post", color=_BLUE, lw=1.5, label="released")
    panel.yaxis.set_major_formatter(_plain)
    _dress(panel, title, "step", "sum so far")
    panel.legend(frameon=False, fontsize=9, loc="best")
    return _save(figure, path)


def graph_picture(values: Sequence[float], margin: float, title: str, note: str, path: str | PathLike[str]) -> Path:
    """Draws the noisy numbers of a graph (nodes by degree, degrees in order), and the band of their margin around them."""
    figure = _figure(7, 3.6)
    panel = figure.subplots()
    places, noisy = np.arange(len(values)), np.asarray(values, dtype=float)
    panel.fill_between(places, noisy - margin, noisy + margin, step="mid", color=_BLUE, alpha=0.2, lw=0, label=note)
    panel.step(places, noisy, where="mid", color=_BLUE, lw=1.5, label="released")
    panel.yaxis.set_major_formatter(_plain)
    _dress(panel, title, "", "")
    panel.legend(frameon=False, fontsize=9, loc="best")
    return _save(figure, path)


_RELATIONS = {"add-remove": "added or removed", "replace": "replaced"}
