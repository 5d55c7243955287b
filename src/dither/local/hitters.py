"""The most frequent values of a domain too large to list: whole numbers of up to 32 bits, found by their first bits.

Each person draws a level, fairly, and reports the first bits of the value at that level by local hashing. One report, one
price. The aggregator goes down the levels: it estimates the prefixes that extend those found so far, and keeps the largest. A
value that is rare is never estimated, so the work does not grow with the domain. Only the reports of the last level count for
a value's share, so margins are wider than those of a survey with listed values by the square root of the number of levels.
Reference: Bassily, Nissim, Stemmer and Thakurta, NeurIPS 2017; Wang, Li and Jha, TDSC 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, between, items, parse_number, whole
from dither.exact.samplers import uniform
from dither.local.aggregator import Aggregator
from dither.local.survey import LocalSurvey
from dither.privacy.losses import Pure

_FIRST, _STEP, _MOST_BITS = 8, 4, 32


@dataclass(frozen=True)
class HeavyHitters:
    """Looks for frequent values among 2^bits whole numbers, without listing them.

    Guarantee: epsilon-DP for each report. Relies on: one report per person.

    >>> words = HeavyHitters("word", bits=16, epsilon=4)
    >>> words.levels
    (8, 12, 16)
    """

    name: str
    bits: int
    epsilon: Fraction

    def __init__(self, name: str, *, bits: int, epsilon: Number) -> None:
        count = whole(bits, "bits", least=1)
        if count > _MOST_BITS:
            raise ArgumentError("bits must be at most 32.", fix="hash longer values to 32 bits, and keep a list of candidates.")
        first = LocalSurvey.choice(name, 2, epsilon=epsilon)
        object.__setattr__(self, "name", first.name)
        object.__setattr__(self, "bits", count)
        object.__setattr__(self, "epsilon", first.epsilon)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Returns how many first bits each level reports."""
        return tuple(sorted({*range(min(_FIRST, self.bits), self.bits, _STEP), self.bits}))

    @cached_property
    def surveys(self) -> tuple[LocalSurvey, ...]:
        """Returns the survey of each level: local hashing of prefixes."""
        named = [f"{self.name} ({bits} of {self.bits} bits)" for bits in self.levels]
        return tuple(LocalSurvey.choice(name, 2, epsilon=self.epsilon, kind="hashing") for name in named)

    def loss(self) -> Pure:
        """Returns the price of a report."""
        return Pure(self.epsilon)

    def report(self, value: int) -> bytes:
        """Draws a report about one value: its level, and the hashed prefix."""
        level, rows = self.reports([value])
        return bytes([int(level[0]), *rows[0].tolist()])

    def reports(self, values: Any) -> tuple[Integers, NDArray[np.uint8]]:
        """Draws levels and reports of many people. A value outside the domain counts as the nearest."""
        given = _inside(values, (1 << self.bits) - 1)
        levels = uniform.below_each(np.full(len(given), len(self.levels), dtype=np.uint64))
        rows = np.empty((len(given), self.surveys[0].width), dtype=np.uint8)
        for level, bits in enumerate(self.levels):
            here = levels == level
            payload = self.surveys[level].randomiser.encode(given[here] >> (self.bits - bits))
            head = np.frombuffer(self.surveys[level].header, dtype=np.uint8)
            rows[here] = np.concatenate((np.broadcast_to(head, (len(payload), len(head))), payload), axis=1)
        return levels, rows

    def find(
        self, reports: Iterable[bytes] | tuple[Integers, NDArray[np.uint8]], *, most: int = 32, confidence: Number = "0.95"
    ) -> list[tuple[int, float, float]]:
        """Returns at most `most` values with their shares and margins, the most frequent first.

        A value is kept at each level if its share is beyond what noise alone reaches there, at this confidence for all
        together.
        """
        kept = whole(most, "most", least=1)
        sure = float(between(confidence, "confidence", 0, 1, open_low=True, open_high=True))
        desks = self._desks(reports)
        found: Integers = np.zeros(1, dtype=np.int64)
        shares = margins = np.zeros(1)
        for place, bits in enumerate(self.levels):
            below = bits - (self.levels[place - 1] if place else 0)
            candidates = ((found[:, None] << below) + np.arange(1 << below)).ravel()
            if not len(candidates):
                return []
            shares, margins, limit = _estimates(desks[place], candidates, sure)
            order = [each for each in np.argsort(-shares)[: 4 * kept] if shares[each] > limit]
            found, shares, margins = candidates[order], shares[order], margins[order]
        rows = zip(found.tolist(), shares.tolist(), margins.tolist(), strict=True)
        return list(rows)[:kept]

    def _desks(self, reports: Any) -> list[Aggregator]:
        desks = [Aggregator(survey) for survey in self.surveys]
        if isinstance(reports, tuple) and len(reports) == 2 and all(isinstance(each, np.ndarray) for each in reports):
            levels, rows = reports
            if levels.ndim != 1 or levels.shape != rows.shape[:1]:
                raise ArgumentError("There must be a level for each report.", fix="give what reports returned.")
            for level, desk in enumerate(desks):
                desk.add(np.ascontiguousarray(rows[levels == level]))
            return desks
        for report in items(reports, "reports", fix="give a list of reports."):
            if isinstance(report, bytes) and report and report[0] < len(desks):
                desks[report[0]].add([report[1:]])
        return desks


def _inside(values: Any, most: int) -> Integers:
    """Reads values as whole numbers from 0 to `most`; what is none counts as 0."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
        return np.clip(values, 0, most).astype(np.int64)
    found = [parse_number(each) for each in items(values, "values", fix="give a list of whole numbers.")]
    return np.array([0 if each is None else min(max(int(each), 0), most) for each in found], dtype=np.int64)


def _estimates(desk: Aggregator, candidates: Integers, sure: float) -> tuple[Any, Any, float]:
    """Returns shares and margins of candidates, and the share that noise alone hardly exceeds among them."""
    if desk.counts is None:
        return np.zeros(len(candidates)), np.full(len(candidates), np.inf), 0.0
    randomiser = desk.survey.randomiser
    shares, variances = randomiser.estimate(desk.counts, desk.reports, candidates)
    one = NormalDist().inv_cdf((1 + sure) / 2)
    all_of_them = NormalDist().inv_cdf(1 - (1 - sure) / (2 * len(candidates)))
    limit = all_of_them * float(np.sqrt(randomiser.variance(0.0) / desk.reports))
    return shares, one * np.sqrt(variances), limit
