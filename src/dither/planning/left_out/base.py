"""What was left out, as a value and as a sentence, and the question that finds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dither.catalog.values import Key
from dither.planning.left_out.estimate import Floats
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.query.functions.base import Facts
from dither.query.resolve.relations import Resolved
from dither.query.work import Pairs

_STEPS = 256  # of a place in a class
PLACE = Facts("real", Fraction(0), Fraction(1), nullable=False, step=Fraction(1, _STEPS))
_HIDDEN = 0.5  # a larger upper end says nothing
_SMALL = 0.1  # an upper end up to which there is no sign of anything left out
_NEARLY = 0.95  # a larger share is nearly all
_SHOWN = 0.99  # the largest share that a lower end or an estimate is shown as: 100 % is never known
_SOME = 0.05  # the least share of rows that is taken to have counted
_ABOUT = 2  # a number is "about" another within this factor
_LITTLE = 0.001  # a smaller share is not worth stating as the least


@dataclass(frozen=True)
class LeftOut:
    """What one kind of bound left out: a share of `of`, with its interval at the answer's confidence.

    `beyond`: `high` leaves out people with more than that, whom noise may hide (None: it holds for everyone). `bounds`: each
    bound's name and number, and the share that is mainly due to it. `clipped`: a share of the sum of `of`, which is a column.
    `amount`: the numbers are amounts and not shares, because the sum may be zero.
    """

    of: str
    estimate: float
    low: float
    high: float
    bounds: tuple[tuple[str, str, float], ...]
    beyond: str | None = None
    clipped: bool = False
    amount: bool = False

    @property
    def seen(self) -> bool:
        """Whether something was left out beyond doubt."""
        return self.low > 0

    @property
    def close(self) -> bool:
        """Whether the interval is so narrow that the estimate is about the truth, as far as people up to `beyond` go."""
        return self.estimate <= _ABOUT * self.low and self.high <= _ABOUT * self.estimate

    @property
    def hidden(self) -> bool:
        """Whether noise hides how much was left out: there may be nothing, or all."""
        if self.seen:
            return not self.close and self.beyond is not None
        return self.high > 0 if self.amount else self.high > _HIDDEN

    @property
    def most(self) -> bool:
        """Whether more than half of the rows seem to be left out. Then the others say little, and noise may have picked bounds
        that are far too small, or only made it look so."""
        return self.seen and not self.clipped and self.estimate > _HIDDEN

    @property
    def title(self) -> str:
        """What was left out, and mainly by which bound, in a few words."""
        cause = max(self.bounds, key=lambda each: each[2], default=None)
        what = f"{self.of} clipped" if self.clipped else f"{self.of} not counted"
        return what if cause is None or self.clipped else f"{what}: {cause[0]} = {cause[1]}"

    def as_data(self) -> dict[str, Any]:
        """Returns the fields as JSON writes them."""
        bounds = [{"name": name, "bound": bound, "estimate": _json(part)} for name, bound, part in self.bounds]
        numbers = {"estimate": _json(self.estimate), "low": _json(self.low), "high": _json(self.high)}
        kind = "amount clipped" if self.amount else "share of the sum clipped" if self.clipped else "share not counted"
        found = {"seen": self.seen, "hidden": self.hidden, "beyond": self.beyond}
        return {"of": self.of, "kind": kind, **numbers, **found, "bounds": bounds, "title": self.title, "text": str(self)}

    def __str__(self) -> str:
        return self._clipped() if self.clipped else self._cut()

    def _cut(self) -> str:
        if not self.seen:
            return self._hidden(f"{self.of} were left out", f"how many {self.of} were left out")
        if self.close:
            about = f"about {self._show(self.estimate)} of {self.of}{self._more}"
            size, interval = f"nearly all {self.of}" if self.estimate >= _NEARLY else about, f" ({self._interval()})"
        elif self.hidden:
            size, interval = f"{self._least(' of ', 'some ')}{self.of}", ", noise hides how many"
        else:
            size, interval = f"{self._interval()} of {self.of}", ""
        return f"{size} were not counted{interval}: {self._reasons()}"

    def _clipped(self) -> str:
        ((side, bound, _),) = self.bounds
        if not self.seen:
            return self._hidden(f"{self.of} was clipped", f"how much of {self.of} was clipped")
        above = side == "above"
        if self.close:
            size, interval = f"about {self._show(self.estimate)}{self._more}", f" ({self._interval()})"
        elif self.hidden:
            size, interval = self._least("", "a part" if above else ""), ", noise hides how much"
        else:
            size, interval = self._interval(), ""
        if above:
            return f"{size} of the sum of {self.of} was clipped at {bound}{interval}"
        return f"the sum of {self.of} is {size}{' ' if size else ''}too high: clipped at {bound}{interval}"

    @property
    def _more(self) -> str:
        """Says that noise may hide people beyond `beyond`, who lost more."""
        return "" if self.beyond is None else " or more"

    def _least(self, behind: str, little: str) -> str:
        """Shows the lower end, or `little` where it is next to nothing."""
        low = self.low if self.amount or self.clipped else min(self.low, _SHOWN)
        return f"at least {self._show(low)}{behind}" if self.amount or self.low >= _LITTLE else little

    def _hidden(self, what: str, doubt: str) -> str:
        if self.hidden:
            return f"noise hides {doubt}"
        who = f"{self.beyond} beyond the bounds" if self.clipped else self.beyond
        aside = f", people with more than {who} aside" if self.beyond else ""
        sign = f"no sign that {what}" if self.high <= _SMALL else f"noise hides {doubt}"
        return f"{sign} (at most {self._show(self.high)}{' of the sum' if self.clipped else ''}{aside})"

    def _interval(self) -> str:
        low = self.low if self.amount or self.clipped else min(self.low, _SHOWN)
        if self.beyond is not None:
            return f"at least {self._show(low)}"
        return f"{self._show(low)} to {self._show(self.high)}"

    def _reasons(self) -> str:
        """Shows the bounds to which a notable part is due, and how large it is if that is known."""
        notable = [each for each in self.bounds if each[2] >= self.estimate / 10] or list(self.bounds)
        alone = len(notable) == 1 or not self.close
        return ", ".join(f"{name} = {bound}" + ("" if alone else f" ({self._show(part)})") for name, bound, part in notable)

    def _show(self, number: float) -> str:
        return f"{number:.3g}" if self.amount else show_share(number)


class Kept(NamedTuple):
    """The share of rows that counted: at least, about, and at most."""

    least: float = 1.0
    usual: float = 1.0
    most: float = 1.0

    def after(self, cut: LeftOut) -> Kept:
        """Returns what is left after a cut. Of a cut that noise hides, only the ends are known: it is taken to be none."""
        usual = 1 - cut.estimate if cut.seen else 1.0
        return Kept(self.least * max(0.0, 1 - cut.high), self.usual * max(usual, _SOME), self.most * (1 - cut.low))


def show_share(share: float) -> str:
    """Shows a share in percent, with two digits below ten.

    >>> show_share(0.4123), show_share(0.0345), show_share(0.00012)
    ('41 %', '3.5 %', '0.012 %')
    """
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def sentences(found: Sequence[LeftOut]) -> list[str]:
    """Shows what was left out, first what is beyond doubt. A column that shows no sign of clipping gets one sentence."""
    seen = [each for each in found if each.seen or not each.clipped]
    shown = {each.of for each in seen}
    widest: dict[str, LeftOut] = {}
    for each in found:
        if each.of not in shown and (each.of not in widest or each.high > widest[each.of].high):
            widest[each.of] = each
    return [str(each) for each in sorted([*seen, *widest.values()], key=lambda each: not each.seen)]


def _json(number: float) -> float | None:
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Cuts:
    """What can be left out of an answer: the questions that estimate it, whether bounds can cut rows (to say so), and the keys
    that may have other values than the public ones. `chosen`: the bounds that the question chose."""

    parts: tuple[Part, ...] = ()
    rows: bool = True
    keys: tuple[str, ...] = ()
    chosen: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Part:
    """A question about what is left out, and how it is read. `free`: it is asked for another purpose anyway.

    `pairs`: the part of the question's relation that the answer computes anyway.
    """

    free: ClassVar[bool] = False
    question: Resolved
    words: str
    pairs: Pairs | None = field(default=None, kw_only=True, repr=False, compare=False)

    def read(self, main: tuple[Plan, Noisy], own: tuple[Plan, Noisy], confidence: Fraction, kept: Kept) -> list[LeftOut]:
        """Reads the estimates. `main`: the answer's plan and release. `kept`: the share of rows that counted."""
        raise NotImplementedError


def place_cells(made: Plan, noisy: Noisy) -> tuple[Floats, Floats]:
    """Returns the noisy cells in places of 1, by (release, class, cell), and the scales of their noise."""
    cells = np.array([each.astype(np.float64) for each in noisy.cells]) / _STEPS
    scales = np.array([noise.scale for noise in made.noises]) / _STEPS
    return cells, np.broadcast_to(scales[:, None, None], cells.shape)


def laplace_scale(noise: Noise) -> float:
    """Returns the scale of Laplace noise that reaches at least as far as this noise, at every confidence.

    For normal noise of deviation s that is s sqrt(pi / 2): then the two tails begin alike, and the normal one falls faster.
    """
    return noise.scale * (math.sqrt(math.pi / 2) if noise.gaussian else 1.0)


def whole_key(key: Key) -> int:
    """Returns a class."""
    if not isinstance(key, int):
        raise TypeError("a class is a whole number")
    return key
