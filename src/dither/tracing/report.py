"""The report of a run: each release with its line, price and records, how they add up, and what would be cheaper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import groupby
from typing import Protocol

import numpy as np

from dither.errors import DitherError
from dither.exact.laws.base import Integers
from dither.exact.numbers import show, show_about, show_rounded
from dither.mechanisms import Gaussian, Geometric
from dither.privacy.losses import Approx, Loss, Pure
from dither.streams.running import RunningSum
from dither.tracing.charges import Release
from dither.tracing.refusals import Place
from dither.workloads.workload import Workload

_LINES = 40  # the most lines of releases
_FEW = 4096  # steps up to which errors are computed
_CELLS = 64
Spans = tuple[Integers, Integers, Integers]


class Traced(Protocol):
    """The part of a trace that a report reads."""

    @property
    def releases(self) -> tuple[Release, ...]: ...
    @property
    def depends(self) -> tuple[tuple[Place, str], ...]: ...
    @property
    def limit(self) -> Loss | None: ...
    @property
    def records(self) -> int: ...
    @property
    def summed(self) -> int: ...
    def loss(self) -> Loss: ...


def report_text(trace: Traced) -> str:
    """Returns the whole report."""
    lines = [_price_line(trace), f"  neighbours: one of {trace.records} records replaced; their number and order are public"]
    lines += [f"  rule: {_rule(trace.releases)}"] if trace.releases else []
    grouped = [list(group) for _, group in groupby(trace.releases, key=lambda each: (each.place, str(each.mechanism)))]
    for group in grouped[:_LINES]:
        lines += ["", *_release_lines(group)]
    if len(grouped) > _LINES:
        lines += ["", f"  and {len(grouped) - _LINES} more"]
    for place, why in trace.depends:
        lines += ["", f"  {place}", f"    {why}"]
    cheaper = ""
    with suppress(DitherError):  # a price or a size for which there is no running sum or workload
        cheaper = rewrite(trace.releases, trace.loss(), trace.summed)
    return "\n".join([*lines, *(["", f"  cheaper: {cheaper}"] if cheaper else [])])


def loss_words(loss: Loss) -> str:
    """Shows a loss: ε, (ε, δ) or ρ."""
    if isinstance(loss, Approx):
        return f"ε = {_short(loss.pair()[0])}, δ = {_short(loss.pair()[1])}"
    return f"ε = {_short(loss.epsilon(0))}" if isinstance(loss, Pure) else f"ρ = {_short(loss.zcdp().rho)}"


def _short(price: Fraction) -> str:
    """Shows a price in full if it is short, else rounded up."""
    full = show(price)
    return full if len(full) <= 10 else show_about(price, up=True)


def _price_line(trace: Traced) -> str:
    cost = loss_words(trace.loss())
    if not trace.depends:
        return f"price of the program: {cost}"
    if trace.limit is not None:
        return f"price of the program: at most {loss_words(trace.limit)}, its limit; price of this run: {cost}"
    return f"price of this run: {cost}; another run may cost more. For a guarantee, give limit="


def _rule(releases: Sequence[Release]) -> str:
    sums = "ε adds up" if all(isinstance(each.loss, Pure) for each in releases) else "ρ adds up (zCDP)"
    return f"{sums} for each record over the releases that it moves; the largest total is the price"


def _release_lines(group: list[Release]) -> list[str]:
    first, times = group[0], len(group)
    numbers = "1 number" if first.numbers == 1 else f"{first.numbers} numbers"
    each = f"{times} times {numbers}, each time" if times > 1 else f"{numbers},"
    noise = first.mechanism
    scale = (
        f"noise of scale {show_rounded(noise.noise_scale * float(first.grid))}"
        if isinstance(noise, (Geometric, Gaussian))
        else ""
    )
    touched = sorted(span for release in group for span in release.records)
    kind = {"Geometric": "geometric", "Gaussian": "Gaussian"}.get(noise.tag, noise.tag)
    return [
        f"  {first.place}",
        f"    {each} {loss_words(first.loss)}: {kind} {scale}".rstrip() + f"; records {_ranges(touched)}",
    ]


def _ranges(spans: Sequence[tuple[int, int]]) -> str:
    """Shows records as ranges, merged."""
    merged: list[list[int]] = []
    for start, stop in spans:
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    shown = [str(start) if stop == start + 1 else f"{start} to {stop - 1}" for start, stop in merged[:4]]
    return ", ".join(shown) + (f" and {len(merged) - 4} more ranges" if len(merged) > 4 else "")


# --- cheaper ways -----------------------------------------------------------------------------------------------


def rewrite(releases: Sequence[Release], loss: Loss, summed: int) -> str:
    """Proposes a running sum or a workload if it gives the same numbers with less noise at the same price, else ""."""
    noise, spans = _common(releases)
    if noise is None or spans is None:
        return ""
    starts, stops, moves = spans
    if len(starts) < 3 or bool(np.any(moves != moves[0])):
        return ""
    move = int(moves[0])
    if bool(np.all(starts == starts[0])) and bool(np.all(np.diff(np.sort(stops)) > 0)):
        return _running(len(stops), loss, move, noise.noise_scale * _spread(noise))
    apart = bool(np.all(np.sort(starts)[1:] >= np.sort(stops)[:-1]))
    if apart and summed >= 3:
        return _running(len(stops), loss, move, noise.noise_scale * _spread(noise) * math.sqrt(summed))
    return "" if apart else _workload(starts, stops, loss, move, noise.noise_scale * _spread(noise))


def _spread(noise: Geometric | Gaussian) -> float:
    """Returns how many scales the standard deviation is."""
    return math.sqrt(2) if isinstance(noise, Geometric) else 1.0


def _common(releases: Sequence[Release]) -> tuple[Geometric | Gaussian | None, Spans | None]:
    """Returns the noise that all releases share, and the records of each number; None if they differ in kind."""
    noises = [each.mechanism for each in releases]
    if not noises or not all(isinstance(each, (Geometric, Gaussian)) for each in noises):
        return None, None
    if len({(each.tag, each.noise_scale) for each in noises}) != 1 or any(each.spans is None for each in releases):  # type: ignore[attr-defined]
        return None, None
    parts = zip(*(each.spans for each in releases if each.spans is not None), strict=True)
    starts, stops, moves = (np.concatenate(part) for part in parts)
    return noises[0], (starts, stops, moves)  # type: ignore[return-value]


def _terms(loss: Loss) -> tuple[str, dict[str, Fraction]]:
    if isinstance(loss, Pure):
        return f'epsilon="{loss.epsilon(0)}"', {"epsilon": loss.epsilon(0)}
    return f'rho="{loss.zcdp().rho}"', {"rho": loss.zcdp().rho}


def _running(steps: int, loss: Loss, move: int, now: float) -> str:
    words, price = _terms(loss)
    largest = "" if move == 1 else f", largest={move}"
    call = f"these are running sums: dt.RunningSum({steps}, {words}{largest})"
    if steps > _FEW:
        return f"{call} has less noise at the same price"
    best = float(RunningSum(steps, **price, largest=move).margins("0.95").max()) / 1.96  # type: ignore[arg-type]
    if best >= now:
        return ""
    worst = f"about {show_rounded(best)}" if best >= 1 else "less than 1"
    return f"{call} has a standard deviation of {worst} at the worst step, not {show_rounded(now)}, for the same price"


def _workload(starts: Integers, stops: Integers, loss: Loss, move: int, now: float) -> str:
    edges = np.unique(np.concatenate((starts, stops)))
    if len(edges) - 1 > _CELLS or len(starts) > _CELLS:
        return ""
    rows = [[int(start <= edge < stop) for edge in edges[:-1]] for start, stop in zip(starts, stops, strict=True)]
    words, price = _terms(loss)
    best = Workload.matrix(rows).design(**price).rmse * move  # type: ignore[arg-type]
    if best >= 0.98 * now:
        return ""
    matrix = f"{rows}" if len(rows) * len(rows[0]) <= 64 else "…"
    return (
        f"these are {len(rows)} sums of {len(edges) - 1} blocks of records: dt.Workload.matrix({matrix}).design({words}) on "
        f"the blocks' sums has a standard deviation of about {show_rounded(best)}, not {show_rounded(now)}, for the same price"
    )
