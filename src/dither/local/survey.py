"""What both sides of a local survey know: the question's name, who may answer what, epsilon and the randomiser.

A survey is public and small. As JSON it is what an app ships; epsilon is a rational, so that no reader rounds it. Reports carry
four bytes of its digest: a report of another survey, or of a changed one, is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, Fix, Python
from dither.exact import balls
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, items, one_of, parse_number, positive, rational, show, whole
from dither.local.chances import flips_each
from dither.local.randomisers import RANDOMISERS, Randomiser
from dither.privacy.losses import Pure

VERSION = 1
HEADER = 5  # the version, and four bytes of the digest
_MOST = 1 << 20  # values that are estimated one by one
_MOST_BITS = 1 << 16  # values of a report with a bit for each
_CELLS = 1 << 32  # steps between the bounds of a number
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 1000), Fraction(20)


@dataclass(frozen=True)
class LocalSurvey:
    """One question that many people answer, each with randomness of their own.

    `LocalSurvey.choice` asks which of some values a person has, `LocalSurvey.number` for a number between bounds.
    Guarantee: epsilon-DP for each report, whatever the person's value is replaced by. Relies on: one report per person.

    >>> survey = LocalSurvey.choice("smokes", ["no", "yes"], epsilon=1)
    >>> survey.kind, len(survey.report("yes"))
    ('response', 6)
    """

    name: str
    kind: str
    epsilon: Fraction
    values: tuple[str | int, ...] | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    randomiser: Randomiser = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        size = 2 if self.values is None else len(self.values)
        kind = "response" if self.kind == "number" else self.kind
        object.__setattr__(self, "randomiser", RANDOMISERS[kind](self.epsilon, size))

    @classmethod
    def choice(cls, name: str, values: Sequence[str | int] | int, *, epsilon: Number, kind: str | None = None) -> LocalSurvey:
        """Asks for one of `values`, or for a whole number below `values`. Without `kind` the best one is chosen."""
        price = _price(epsilon)
        listed = _values(values)
        chosen = best_kind(price, len(listed)) if kind is None else one_of(kind, "kind", *RANDOMISERS)
        if chosen in ("unary", "subset") and len(listed) > _MOST_BITS:
            raise ArgumentError(
                f"A report of kind {chosen} has a bit for each value, and there are {len(listed)}.",
                fix=Fix("use {kind}, or hadamard.", kind="hashing"),
            )
        return cls(_name(name), chosen, price, values=listed)

    @classmethod
    def number(cls, name: str, low: Number, high: Number, *, epsilon: Number) -> LocalSurvey:
        """Asks for a number between two public bounds, to estimate the mean."""
        ends = rational(low, "low"), rational(high, "high")
        if ends[0] >= ends[1]:
            raise ArgumentError("low must be below high, and it is not.", fix="give two bounds, such as 0 and 120.")
        return cls(_name(name), "number", _price(epsilon), bounds=ends)

    def report(self, value: Any) -> bytes:
        """Draws a report. Each call spends epsilon; `LocalClient` stores the first report and repeats it."""
        return bytes(self.reports([value])[0])

    def reports(self, values: Any) -> NDArray[np.uint8]:
        """Draws a report for each of many people, as rows of bytes. For simulations."""
        payload = self.randomiser.encode(self.places(values))
        head = np.frombuffer(self.header, dtype=np.uint8)
        return np.concatenate((np.broadcast_to(head, (len(payload), HEADER)), payload), axis=1)

    def places(self, values: Any) -> Integers:
        """Returns values as the randomiser takes them. A value that is not listed counts as the first."""
        if self.bounds is not None:
            return _ends(values, *self.bounds)
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and self.values == tuple(range(self.size)):
            return np.clip(values, 0, self.size - 1).astype(np.int64)
        listed = items(values, "values", fix="give a list of values, one for each person.")
        return np.array([self._place(each) for each in listed], dtype=np.int64)

    def _place(self, value: Any) -> int:
        try:
            return self._index.get(value, 0)
        except TypeError:
            return 0

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {value: place for place, value in enumerate(self.values or ())}

    @property
    def size(self) -> int:
        """Returns the number of values."""
        return 2 if self.values is None else len(self.values)

    @property
    def width(self) -> int:
        """Returns the bytes of a report."""
        return HEADER + self.randomiser.width

    @cached_property
    def header(self) -> bytes:
        """Returns the first bytes of each report."""
        return bytes([VERSION]) + hashlib.sha256(self.to_json().encode()).digest()[:4]

    def loss(self) -> Pure:
        """Returns the price of a report, for the person who sends it."""
        return Pure(self.epsilon)

    def true_epsilon(self) -> Fraction:
        """Returns what a report really costs, rounded up: at most epsilon, and less by the rounding of its chances."""
        ratio = max(self.randomiser.ratio(), 1 / self.randomiser.ratio())
        return min(balls.above(lambda: balls.ball(ratio).log()), self.epsilon)

    def to_json(self) -> str:
        """Returns the survey as JSON, the same text for the same survey."""
        given: dict[str, Any] = {"version": VERSION, "name": self.name, "kind": self.kind, "epsilon": str(self.epsilon)}
        if self.bounds is not None:
            given["bounds"] = [str(end) for end in self.bounds]
        elif self.values == tuple(range(self.size)):
            given["values"] = self.size
        else:
            given["values"] = list(self.values or ())
        return json.dumps(given, sort_keys=True, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> LocalSurvey:
        """Reads a survey. Refuses what this version does not know."""
        try:
            given = json.loads(text)
            if not isinstance(given, dict) or given.pop("version") != VERSION:
                raise ValueError
            name, kind, epsilon = given.pop("name"), given.pop("kind"), given.pop("epsilon")
            if kind == "number":
                low, high = given.pop("bounds")
                survey = cls.number(name, low, high, epsilon=epsilon)
            else:
                survey = cls.choice(name, given.pop("values"), epsilon=epsilon, kind=kind)
            if given:
                raise ValueError
            return survey
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ArgumentError(
                "This is no survey that this version of dither reads.", fix="write it with to_json of the same version."
            ) from None

    def explain(self) -> str:
        """Says which randomiser the survey uses, and what the others would do."""
        lines = [f"{self.name}: ε = {show(self.epsilon)} per report, {self.width} bytes each, kind {self.kind}"]
        if self.bounds is None:
            lines.append("variance of a rare value's share, times the number of reports (smaller is better):")
            for kind, maker in RANDOMISERS.items():
                if kind not in ("unary", "subset") or self.size <= _MOST_BITS:
                    each = maker(self.epsilon, self.size)
                    mark = "   <- used" if kind == self.kind else ""
                    lines.append(f"  {kind:<10} {float(each.variance(0.0)):10.3f}   {HEADER + each.width} bytes{mark}")
        return "\n".join(lines)


def best_kind(epsilon: Fraction, size: int) -> str:
    """Returns the kind with the smallest variance; of those within 2 % of it the one with the shortest reports."""
    kinds = [kind for kind in RANDOMISERS if kind not in ("unary", "subset") or size <= _MOST_BITS]
    kinds = [kind for kind in kinds if kind != "response" or size <= 1 << 16]
    made = {kind: RANDOMISERS[kind](epsilon, size) for kind in kinds}
    error = {kind: float(each.variance(0.0)) for kind, each in made.items()}
    least = min(error.values())
    return min((kind for kind in kinds if error[kind] <= 1.02 * least), key=lambda kind: (made[kind].width, error[kind]))


def _price(epsilon: Number) -> Fraction:
    price = positive(epsilon, "epsilon")
    if not _LEAST_EPSILON <= price <= _MOST_EPSILON:
        raise ArgumentError("epsilon must be between 1/1000 and 20 for a report.", fix="choose a price such as 1.")
    return price


def _name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 200:
        raise ArgumentError("name must be a text of at most 200 characters.", fix='name the question, such as "smokes".')
    return name


def _values(values: Sequence[str | int] | int) -> tuple[str | int, ...]:
    fix = "list at least two different texts or whole numbers."
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
        count = whole(values, "values", least=2)
        if count > _MOST:
            raise ArgumentError(
                "values must be at most 2^20.",
                fix=Fix("look for the frequent ones, with {call}.", call=Python("dt.HeavyHitters")),
            )
        return tuple(range(count))
    listed: list[Any] = items(values, "values", fix=fix)  # type: ignore[arg-type]
    plain = all(isinstance(each, (str, int)) and not isinstance(each, bool) for each in listed)
    if not plain or not 2 <= len(listed) <= _MOST or len(set(listed)) < len(listed):
        raise ArgumentError("values must be 2 to 2^20 different texts or whole numbers.", fix=fix)
    return tuple(listed)


def _ends(values: Any, low: Fraction, high: Fraction) -> Integers:
    """Rounds numbers to one of the bounds at random, so that the mean stays: 1 with probability (x - low) / (high - low).

    What is beyond the bounds counts as the bound, and what is no number as the lower one. The probability is cut to multiples
    of 2^-32; the estimate of a mean is off by at most 2^-32 of the range for that.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        with np.errstate(invalid="ignore", over="ignore"):
            share = (values.astype(np.float64) - float(low)) / float(high - low)
        share = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
        return flips_each((share * _CELLS).astype(np.uint64))
    shares = [parse_number(each) for each in items(values, "values", fix="give a list of numbers, one for each person.")]
    cells = [0 if x is None else int(min(max((x - low) / (high - low), Fraction(0)), Fraction(1)) * _CELLS) for x in shares]
    return flips_each(np.array(cells, dtype=np.uint64))
