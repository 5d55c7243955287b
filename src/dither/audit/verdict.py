"""Targets and verdicts: what is audited, and the result.

    run(data) draws its own noise and answers      the claim: Pr[run(D) in S] <= e^epsilon Pr[run(D') in S] + delta

The claim is checked on every pair and in both directions. The caller chooses the neighbours: a pair that is not neighbouring
under the claim makes every verdict worthless.

A verdict is "proved", "walked" (a sampler), "violates" or "no violation found". It carries what is needed to check it: the
claim, the method, the pair of neighbouring inputs, the event that tells them apart, the counts behind the bound, and the
error of the whole audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError
from dither.exact.numbers import rational


@dataclass(frozen=True)
class Target:
    """One claim about one callable. The optional `batch(data, n)` returns n outputs at once, of the same law as `run`.

    >>> Target("nothing", run=lambda data: 0, epsilon=Fraction(1), pairs=(([0], [1]),)).delta
    Fraction(0, 1)
    """

    name: str
    run: Callable[[Any], Any]
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    pairs: tuple[tuple[Any, Any], ...] = ()
    note: str = ""
    batch: Callable[[Any, int], Any] | None = None  # a sequence of outputs, or an array with one row for each

    def __post_init__(self) -> None:
        run: Any = self.run
        if not callable(run):
            what = f"run must be callable, and it is a {type(run).__name__}."
            raise ArgumentError(what, fix="pass a function from data to an output.")
        object.__setattr__(self, "epsilon", rational(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", rational(self.delta, "delta"))
        if self.epsilon < 0 or not 0 <= self.delta < 1:
            what = f"a claim needs epsilon >= 0 and 0 <= delta < 1, and it is ({self.epsilon}, {self.delta})."
            raise ArgumentError(what, where=self.name, fix="state the epsilon and delta that the code promises.")
        object.__setattr__(self, "pairs", tuple((one, other) for one, other in self.pairs))

    def sample(self, data: Any, size: int) -> Any:
        """Returns outputs on `data`, through `batch` if there is one. Does not catch errors."""
        if self.batch is not None:
            return self.batch(data, size)
        return [self.run(data) for _ in range(size)]


SHARE = "largest move, as a share of what it was priced for"  # the evidence of replays of questions, which have prices
PROVED = "proved"
VIOLATES = "violates"
NOT_FOUND = "no violation found"
WALKED = "walked"  # a sampler agrees with its law wherever it was tried, assuming that the words between behave alike


@dataclass(frozen=True)
class Event:
    """A set of outputs: a description, and a test on one output.

    >>> Event("output > 3", lambda output: output > 3).holds(4)
    True
    """

    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Verdict:
    """The result of one check. `epsilon` is an upper bound if it is proved, and a lower bound otherwise.

    >>> one = (Fraction(1), Fraction(0))
    >>> print(Verdict("counts", "black box", NOT_FOUND, one, 0.93, 0.95, None, "", {}, 1.2, None))
    counts: no violation found of ε = 1, lower bound ε ≥ 0.93 at 95 % (black box, 1.2 s)
    >>> print(Verdict("counts", "replay", NOT_FOUND, one, 0.0, 1.0, None, "", {}, 1.2, None, "draws of unknown law"))
    counts: nothing concluded about ε = 1: draws of unknown law (replay, 1.2 s)
    """

    target: str
    method: str
    outcome: str
    claimed: tuple[Fraction, Fraction]
    epsilon: float
    confidence: float
    pair: tuple[Any, Any] | None
    event: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    advantage: float | None = None
    open: str = ""  # why nothing could be concluded

    def __str__(self) -> str:
        how = f"({self.method}, {self.seconds:.2g} s)"
        claim = "its price" if SHARE in self.evidence else _claim(*self.claimed)
        if self.outcome == WALKED:
            return f"{self.target}: {self.event} {how}"
        if self.outcome == PROVED:
            return f"{self.target}: proved up to ε = {rounded_up(self.epsilon)}, claimed {claim} {how}"
        if self.outcome == VIOLATES:
            certain = "" if self.confidence >= 1 else f" at {_percent(self.confidence)}"
            where = f"; D = {_brief(self.pair[0])}, D′ = {_brief(self.pair[1])}" if self.pair is not None else ""
            what = f"; event: {self.event}" if self.event else ""
            found = f"true ε ≥ {rounded_down(self.epsilon, float(self.claimed[0]))}{certain}"
            if SHARE in self.evidence:
                found = f"one unit moves it by {rounded_down(self.epsilon, 1.0)} times what was priced"
            return f"{self.target}: violates {claim}: {found}{what}{where} {how}"
        if self.open:
            return f"{self.target}: nothing concluded about {claim}: {self.open} {how}"
        return f"{self.target}: no violation found of {claim}, {self.bound()} {how}"

    @property
    def doubtful(self) -> bool:
        """Tells whether the lower bound exceeds the claim, but not at the confidence that "violates" needs."""
        return self.outcome == NOT_FOUND and self.confidence < 1 and self.epsilon > self.claimed[0]

    def bound(self) -> str:
        """Shows the lower bound of epsilon: counted with some confidence, or computed on the pairs tried."""
        if SHARE in self.evidence:
            return (
                f"largest move {rounded_down(self.epsilon)} times what was priced, "
                f"on {self.evidence.get('pairs')} neighbouring pairs"
            )
        if self.confidence >= 1:
            return f"largest loss {rounded_down(self.epsilon)}{self._coverage()}"
        doubt = ", which is more than claimed but not sure enough to say so: give it more time" if self.doubtful else ""
        power = f"; {self.evidence['would have seen']}" if "would have seen" in self.evidence and not doubt else ""
        return f"lower bound ε ≥ {rounded_down(self.epsilon)} at {_percent(self.confidence)}{doubt}{power}"

    def _coverage(self) -> str:
        """Says on how many pairs the largest loss rests."""
        tried, full = self.evidence.get("pairs tried"), self.evidence.get("pairs compared in full")
        if full is None:
            return " on the pairs tried"
        if full:
            return f" on {full} of {tried} pairs, which were compared in full"
        return f" seen on {self.evidence.get('pairs on which noise was aligned')} of {tried} pairs, none compared in full"


def _claim(epsilon: Fraction, delta: Fraction) -> str:
    return f"ε = {_short(float(epsilon))}" + (f", δ = {_short(float(delta))}" if delta else "")


def _short(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.4g}"


def rounded_down(value: float, above: float | None = None) -> str:
    """Shows a lower bound with four digits, rounded down; with more of them if it would no longer be `above`.

    >>> rounded_down(1000.54), rounded_down(0.93), rounded_down(1.00004, above=1.0)
    ('1000', '0.93', '1.00004')
    """
    return _rounded(value, ROUND_FLOOR, above)


def rounded_up(value: float) -> str:
    """Shows an upper bound with four digits, rounded up.

    >>> rounded_up(0.99991), rounded_up(0.5)
    ('1', '0.5')
    """
    return _rounded(value, ROUND_CEILING, None)


def _rounded(value: float, rounding: str, above: float | None) -> str:
    if not math.isfinite(value):
        return "∞"
    exact = Decimal(repr(float(value)))  # a float stands for the decimal that it prints as
    for digits in (4, 6, 8, 12, 17):
        shown = Context(prec=digits, rounding=rounding).create_decimal(exact)
        if above is None or value <= above or shown > Decimal(repr(above)):
            break
    return f"{float(shown):.{digits}g}"


def _percent(confidence: float) -> str:
    """Shows a confidence, rounded down: never as 100 % if it is less."""
    return f"{math.floor(confidence * 1e6) / 1e4:.6g} %"


def _brief(data: Any) -> str:
    shown = repr(data)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
