"""Draws pictures of guarantees, noise and workloads; of answers: charts.py. Needs matplotlib: the extra `plots`.

Pictures only describe, so floats are fine. The colours are safe for colour-blind readers (Okabe and Ito), and no two lines of
a panel differ by colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, DitherError, Fix, Shell, extra
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.derived import Given
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import OneSided, TwoSided
from dither.exact.numbers import Number, positive, rational, show, show_about, show_rounded, whole
from dither.exact.samplers.uniform import Uniform
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.laplace import Laplace
from dither.privacy.proof import VerifiedDelta

BLUE, ORANGE, GREEN, PURPLE = _COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
GREY = "#555555"
_LEAST, _MOST = Fraction(1, 1000), Fraction(20)  # beyond, the curves of `guarantee_picture` are flat or spikes
_FEW = 60
_ROWS = 60  # the most values that are drawn
_SMALL = 7  # the size of small letters, in points

Line = NDArray[np.float64]


def new_figure(width: float, height: float, charged: str = "nothing") -> Any:
    """Returns an empty figure of this size in inches, or says how to install matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise DitherError("Pictures need matplotlib, and it is not installed.", fix=extra("plots"), charged=charged) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: str | PathLike[str], charged: str = "nothing") -> Path:
    """Writes a figure in the form that the file's ending names."""
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


def plain_tick(value: float, _: int) -> str:
    """Shows a tick's label without powers of ten, as far as that is readable."""
    return f"{value:,.0f}" if 1e6 <= abs(value) < 1e12 else f"{value:,.6g}"


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
    figure = new_figure(11, 8.2)
    panels = figure.subplots(2, 2)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    figure.suptitle(f"What ε = {show(exact)} means for one person in a count", fontsize=14, fontweight="bold")
    for panel, draw in zip(panels.flat, (_curves, _factors, _survivors, _errors), strict=True):
        draw(panel, eps)
    return save_figure(figure, path)


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
    panel.fill_between(x, without * np.exp(-eps), most, color=BLUE, alpha=0.13, lw=0, label=label)
    panel.plot(x, without, color=BLUE, lw=2, label="without you", **_dots(x))
    panel.plot(x, taking, color=ORANGE, lw=2, ls="--", label="with you", **_dots(x))
    panel.set_ylim(0, np.tanh(eps / 2) * (min(np.exp(eps), 2) + 0.6))  # room for the legend above the peaks
    panel.set_xlim(x[0], x[-1])
    _dress(panel, "How likely is each published count?", "published count, 0 = the exact one without you", "chance")
    panel.legend(frameon=False, fontsize=9, loc="upper right")


def _factors(panel: Any, eps: float) -> None:
    x = np.linspace(0, 2 * eps, 300)
    panel.plot(x, np.exp(x), color=ORANGE, lw=2, label=f"the factor: e^{eps:.6g} = {factor_words(eps)}")
    panel.plot(x, 1 + x, color=BLUE, lw=2, ls="--", label=f"the rule of thumb: 1 + {eps:.6g} = {1 + eps:.6g}")
    panel.plot([eps, eps], [1 + eps, np.exp(eps)], color=GREY, lw=1)
    panel.plot([eps], [np.exp(eps)], "o", color=ORANGE, ms=7)
    panel.plot([eps], [1 + eps], "s", color=BLUE, ms=6)
    if eps > 2:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(plain_tick)
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
    panel.fill_between(x, without, most, color=BLUE, alpha=0.13, lw=0, label="hits that no test exceeds")
    panel.plot(x, without, color=BLUE, lw=2, label="without you: a false alarm", **_dots(x))
    panel.plot(x, taking, color=ORANGE, lw=2, ls="--", label="with you: a hit", **_dots(x))
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
    for (sure, margin), colour, style in zip(here.items(), (PURPLE, ORANGE, BLUE), (":", "-", "--"), strict=True):
        label = f"{100 * sure:.0f} % of answers, here ± {margin:,}"
        panel.plot(x, _margins(x, sure), color=colour, lw=2, ls=style, label=label)
        panel.plot([eps], [margin], "o", color=colour, ms=6)
    panel.plot([eps, eps], [here[0.5], here[0.99]], color=GREY, lw=1, zorder=0)
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=1)  # a whole number may be off by 0
    panel.set_ylim(bottom=-0.1)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(plain_tick)
    _dress(panel, "What does it cost in accuracy?", "ε of the question", "error of a count of people")
    panel.legend(frameon=False, fontsize=9, loc="upper right")


# --- what a mechanism does --------------------------------------------------------------------------------------


def noise_picture(mechanism: Laplace, answers: Sequence[int | Fraction], path: str | Path, draws: int = 2000) -> Path:
    """Draws a Laplace mechanism at some exact answers: density, distribution function, inverse, draws."""
    figure = new_figure(10, 7)
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
    return save_figure(figure, path)


def _window(mechanism: Laplace, answers: Sequence[int | Fraction]) -> tuple[int, int]:
    reach = int(Fraction(mechanism.margin("0.98")) / mechanism.grid)
    points = [int(Fraction(answer) / mechanism.grid) for answer in answers]
    return min(points) - reach, max(points) + reach


# --- the textbook -----------------------------------------------------------------------------------------------


def profile_picture(points: Sequence[VerifiedDelta], path: str | PathLike[str], title: str = "δ as a function of ε") -> Path:
    """Draws what `dt.profile` found: δ for sets of outputs, point by point, and as the mechanism states it."""
    figure = new_figure(6.5, 4.2)
    panel = figure.subplots()
    x = [float(each.epsilon) for each in points]
    lines = (
        ("point by point: how often the ratio exceeds e^ε", [each.pointwise for each in points], ORANGE, "--"),
        ("stated by the mechanism", [each.delta for each in points], GREEN, ":"),
        ("for sets of outputs, certified", [each.worst for each in points], BLUE, "-"),
    )
    for label, deltas, colour, style in lines:
        drawn = [float(delta) if delta > 0 else np.nan for delta in deltas]
        panel.plot(x, drawn, color=colour, ls=style, lw=2.5 if style == ":" else 1.8, label=label)
    panel.set_yscale("log")
    _dress(panel, title, "ε", "δ")
    panel.legend(frameon=False, fontsize=9)
    return save_figure(figure, path)


def mean_picture(others: Sequence[Number], low: Number, high: Number, mechanism: Laplace, path: str | PathLike[str]) -> Path:
    """Draws the mean of records as one more of them moves past its bounds, and the margin of its noise around it."""
    first, last = rational(low, "low"), rational(high, "high")
    rest = [min(max(rational(each, "others"), first), last) for each in others]
    wide = last - first
    places = [first + wide * Fraction(step, 100) for step in range(-25, 126)]
    means = [(sum(rest) + min(max(place, first), last)) / (len(rest) + 1) for place in places]
    figure = new_figure(6.5, 4.2)
    panel = figure.subplots()
    x, y = np.array(places, dtype=float), np.array(means, dtype=float)
    margin = float(mechanism.margin("0.95"))
    panel.fill_between(x, y - margin, y + margin, color=BLUE, alpha=0.15, lw=0, label="95 % of the noisy means")
    panel.plot(x, y, color=BLUE, lw=2, label="the exact mean")
    for bound in (first, last):
        panel.axvline(float(bound), color=GREY, lw=1, ls=":")
    moved = show_rounded(float(means[-1] - means[0]))
    panel.annotate("", (float(last), y[-1]), (float(last), y[0]), arrowprops={"arrowstyle": "<->", "color": ORANGE, "lw": 1.5})
    panel.annotate(f" moves by {moved}", (float(last), (y[0] + y[-1]) / 2), color=ORANGE, va="center")
    _dress(panel, f"One of {len(rest) + 1} records moves", "its value; the dotted lines are the bounds", "mean")
    panel.legend(frameon=False, fontsize=9, loc="upper left")
    return save_figure(figure, path)


def inverse_picture(law: Law, path: str | PathLike[str], draws: int = 2000) -> Path:
    """Draws the inverse distribution function at uniform numbers, and its values beside direct draws from the law."""
    inverted = [law.value_at(Uniform()) for _ in range(draws)]
    direct = [law.draw() for _ in range(draws)]
    low, high = min(inverted + direct), max(inverted + direct)
    ks = np.arange(low, high + 1)
    with balls.working(64):
        rising = [float(law.at_most(int(k))) for k in ks]
        chances = [float(law.pmf(int(k))) for k in ks]
    figure = new_figure(10, 4)
    left, right = figure.subplots(1, 2)
    left.step([0, *rising], [low, *ks], where="pre", color=BLUE, lw=2)
    for place in range(1, 10):
        value = ks[int(np.searchsorted(rising, place / 10))]
        left.plot([place / 10, place / 10, 0], [low, value, value], color=GREY, lw=0.7, ls="--")
    _dress(left, "The inverse distribution function", "a uniform number", "its value")
    counts = [[sample.count(int(k)) / draws for k in ks] for sample in (inverted, direct)]
    right.bar(ks - 0.2, counts[0], width=0.4, color=BLUE, label="inverse at uniform numbers")
    right.bar(ks + 0.2, counts[1], width=0.4, color=ORANGE, label="direct draws")
    right.plot(ks, chances, "k.", ms=4, label="the law")
    _dress(right, f"{draws} of each", "value", "share")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    return save_figure(figure, path)


def survivor_picture(scale: Number, past: int, path: str | PathLike[str]) -> Path:
    """Draws survivor functions: exponential laws on one and two sides beside a bell, and all of them given X > past."""
    size, start = positive(scale, "scale"), whole(past, "past", least=0)
    laws = {"one-sided": OneSided(size), "two-sided": TwoSided(size), "a bell": Gaussian(2 * size * size)}
    ks = range(int(-4 * size), int(start + 8 * size) + 1)
    figure = new_figure(10, 4)
    left, right = figure.subplots(1, 2)
    for (name, law), colour, style in zip(laws.items(), (BLUE, ORANGE, GREEN), ("-", "--", ":"), strict=True):
        given = Given(law, start)
        with balls.working(128):
            left.plot(ks, [float(law.more_than(k)) for k in ks], color=colour, ls=style, lw=2, label=name)
            after = [k for k in ks if k >= start]
            right.plot(after, [float(given.more_than(k)) for k in after], color=colour, ls=style, lw=2, label=name)
    for panel in (left, right):
        panel.set_yscale("log")
        panel.set_ylim(1e-6, 2)
        panel.legend(frameon=False, fontsize=9)
    _dress(left, "How likely is more than t?", "t", "Pr[X > t]")
    _dress(right, f"Given X > {start}: exponential tails keep their shape", "t", f"Pr[X > t | X > {start}]")
    return save_figure(figure, path)


# --- workloads, programs, places and graphs ---------------------------------------------------------------------


def comparison_picture(title: str, bars: Mapping[str, Sequence[tuple[str, float]]], path: str | PathLike[str]) -> Path:
    """Draws the errors of several ways to ask the same questions, with a panel for each relation of neighbours."""
    figure = new_figure(5.2 * len(bars), 2.6)
    for panel, (name, ways) in zip(figure.subplots(1, len(bars), squeeze=False)[0], bars.items(), strict=True):
        names, errors = [each for each, _ in ways][::-1], [error for _, error in ways][::-1]
        drawn = panel.barh(names, errors, color=BLUE)
        panel.bar_label(drawn, [show_rounded(error) for error in errors], padding=3, fontsize=_SMALL)
        panel.margins(x=0.15)
        _dress(panel, f"one record is {_RELATIONS.get(name, name)}", "root mean square error", "")
    figure.suptitle(title, fontsize=10)
    return save_figure(figure, path)


Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # by name: where along the axis, and how high


def frontier_picture(title: str, panels: Mapping[str, Curves], path: str | PathLike[str], height: str = "error") -> Path:
    """Draws trade-offs: a panel for each quantity along the axis, a line for each way, both axes in powers of ten."""
    figure = new_figure(5.4 * len(panels), 4)
    for panel, (name, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for place, (way, (along, high)) in enumerate(lines.items()):
            style = {"color": _COLOURS[place % 4], "ls": ("-", "--", "-.", ":")[place % 4], "marker": "os^D"[place % 4]}
            panel.plot(along, high, lw=1.6, ms=4, label=way, **style)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.xaxis.set_major_formatter(plain_tick)
        panel.yaxis.set_major_formatter(plain_tick)
        panel.minorticks_off()  # their labels would overlap
        _dress(panel, "", name, height)
        panel.legend(frameon=False, fontsize=8, loc="best")
    figure.suptitle(title, fontsize=11)
    return save_figure(figure, path)


def share_picture(title: str, lines: Curves, along: str, guess: float, path: str | PathLike[str]) -> Path:
    """Draws which share of secret bits is recovered, a line for each number of questions, and what guessing gives."""
    figure = new_figure(7, 4)
    panel = figure.subplots()
    for place, (name, (x, share)) in enumerate(lines.items()):
        style = {"color": _COLOURS[place % 4], "ls": ("-", "--", "-.", ":")[place % 4], "marker": "os^D"[place % 4]}
        panel.plot(x, [100 * each for each in share], lw=1.6, ms=4, label=name, **style)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(plain_tick)
    panel.minorticks_off()
    panel.axhline(100 * guess, color=GREY, lw=1, label="by guessing")
    panel.set_ylim(40, 102)
    _dress(panel, title, along, "% of the secret bits recovered")
    panel.legend(frameon=False, fontsize=8, loc="best")
    return save_figure(figure, path)


def running_picture(sums: Sequence[float], margins: Sequence[float], title: str, note: str, path: str | PathLike[str]) -> Path:
    """Draws a running sum as released, and the band of its margins around it."""
    figure = new_figure(7, 3.6)
    panel = figure.subplots()
    steps, released, wide = np.arange(1, len(sums) + 1), np.asarray(sums, dtype=float), np.asarray(margins, dtype=float)
    label = f"where the exact sum is, {note}"
    panel.fill_between(steps, released - wide, released + wide, step="post", color=BLUE, alpha=0.2, lw=0, label=label)
    panel.step(steps, released, where="post", color=BLUE, lw=1.5, label="released")
    panel.yaxis.set_major_formatter(plain_tick)
    _dress(panel, title, "step", "sum so far")
    panel.legend(frameon=False, fontsize=9, loc="best")
    return save_figure(figure, path)


def paid_picture(paid: Mapping[str, NDArray[np.float64]], unit: str, path: str | PathLike[str]) -> Path:
    """Draws what each record of a traced program paid, a line for each program."""
    figure = new_figure(7, 3.6)
    panel = figure.subplots()
    styles = (("-", BLUE), ("--", ORANGE), (":", GREEN), ("-.", PURPLE))
    for (name, each), (dashes, colour) in zip(paid.items(), styles * (len(paid) // 4 + 1), strict=False):
        label = f"{name}: {show_rounded(float(each.max(initial=0)))}"
        panel.step(np.arange(len(each)), each, where="mid", linestyle=dashes, color=colour, lw=1.8, label=label)
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(plain_tick)
    _dress(panel, "What each record pays; the largest is the price", "record", unit)
    panel.legend(frameon=False, fontsize=9, loc="best")
    return save_figure(figure, path)


def plane_picture(
    places: NDArray[np.float64],
    radii: Sequence[tuple[str, float]],
    density: Callable[[float], float],
    title: str,
    unit: str,
    path: str | PathLike[str],
) -> Path:
    """Draws released places around the origin with circles that hold a share of them, and the density along a line."""
    figure = new_figure(9, 4)
    plane, line = figure.subplots(1, 2)
    reach = 1.6 * max(radius for _, radius in radii)
    plane.scatter(places[:, 0], places[:, 1], s=3, color=BLUE, alpha=0.4, lw=0)
    turn = np.linspace(0, 2 * np.pi, 200)
    for share, radius in radii:
        plane.plot(radius * np.cos(turn), radius * np.sin(turn), color="black", lw=0.8)
        plane.annotate(share, (0, radius), ha="center", va="bottom", fontsize=9)
    plane.plot([0], [0], "+", color="black", ms=10)
    plane.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    _dress(plane, "the true place (+) and released ones", unit, unit)
    across = np.linspace(-reach, reach, 401)
    line.plot(across, [density(abs(x)) for x in across], color=BLUE, lw=1.5)
    line.set_ylim(bottom=0)
    _dress(line, "density through the true place", unit, f"per square {unit}")
    figure.suptitle(title, fontsize=10)
    return save_figure(figure, path)


def shares_picture(
    names: Sequence[str], shares: Sequence[float], margins: Sequence[float], title: str, path: str | PathLike[str]
) -> Path:
    """Draws estimated shares of values with their margins, at most sixty of them."""
    shown = min(len(names), _ROWS)
    figure = new_figure(7, 1.2 + 0.22 * shown)
    panel = figure.subplots()
    places = np.arange(shown)
    panel.errorbar(shares[:shown], places, xerr=margins[:shown], fmt="o", ms=4, color=BLUE, ecolor=GREY, elinewidth=1)
    panel.axvline(0, color=GREY, lw=0.8)
    panel.set_yticks(places, names[:shown])
    panel.invert_yaxis()
    _dress(panel, title, "share", "")
    return save_figure(figure, path)


def graph_picture(values: Sequence[float], margin: float, title: str, note: str, path: str | PathLike[str]) -> Path:
    """Draws the noisy numbers of a graph (nodes by degree, degrees in order), and the band of their margin around them."""
    figure = new_figure(7, 3.6)
    panel = figure.subplots()
    places, noisy = np.arange(len(values)), np.asarray(values, dtype=float)
    panel.fill_between(places, noisy - margin, noisy + margin, step="mid", color=BLUE, alpha=0.2, lw=0, label=note)
    panel.step(places, noisy, where="mid", color=BLUE, lw=1.5, label="released")
    panel.yaxis.set_major_formatter(plain_tick)
    _dress(panel, title, "", "")
    panel.legend(frameon=False, fontsize=9, loc="best")
    return save_figure(figure, path)


_RELATIONS = {"add-remove": "added or removed", "replace": "replaced"}
