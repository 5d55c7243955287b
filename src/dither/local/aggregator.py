"""The collecting side of a survey: reports in, estimates with margins out.

    share = (reports that speak for a value / all reports - q) / (p - q)

is unbiased. Its variance has two parts: that people are a sample, share (1 - share) / n, and the coins. A margin is the
quantile of a normal variable of that variance; with a few hundred reports and more it holds as often as it says (measured,
not proved). Anybody can send anything, so what is no report of this survey is counted by its reason and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.exact.numbers import Number, between, items, show
from dither.local.survey import HEADER, VERSION, LocalSurvey

_PART = 1 << 16


@dataclass(frozen=True)
class Estimates:
    """Estimated shares (or one mean) with margins. `sampling` and `coins` are the two parts of each variance."""

    survey: LocalSurvey
    reports: int
    confidence: float
    values: tuple[Any, ...]
    shares: tuple[float, ...]
    margins: tuple[float, ...]
    sampling: tuple[float, ...]
    coins: tuple[float, ...]

    def __str__(self) -> str:
        head = (
            f"{self.survey.name}: {self.reports} reports, ε = {show(self.survey.epsilon)} each, {self.confidence:.0%} margins"
        )
        wide = max(len(str(value)) for value in self.values)
        rows = [
            f"  {value!s:<{wide}}  {share:8.4f} ± {margin:.4f}"
            for value, share, margin in zip(self.values, self.shares, self.margins, strict=True)
        ]
        return "\n".join([head, *rows])

    def __getitem__(self, value: Any) -> tuple[float, float]:
        """Returns the share of a value and its margin."""
        if value not in self.values:
            raise ArgumentError("That is no value of this survey.", fix="ask for one of .values.")
        place = self.values.index(value)
        return self.shares[place], self.margins[place]

    def plot(self, path: str | PathLike[str]) -> Path:
        """Draws the estimates with their margins. Needs the extra `plots`."""
        from dither.plots import shares_picture

        return shares_picture([str(each) for each in self.values], self.shares, self.margins, str(self).split("\n")[0], path)


class Aggregator:
    """Collects reports of one survey.

    >>> survey = LocalSurvey.choice("smokes", ["no", "yes"], epsilon=1)
    >>> desk = Aggregator(survey)
    >>> desk.add([survey.report("yes"), b"junk"])
    1
    >>> desk.reports, desk.refused
    (1, {'malformed': 1})
    """

    def __init__(self, survey: LocalSurvey) -> None:
        if not isinstance(survey, LocalSurvey):
            raise ArgumentError("survey must be a LocalSurvey.", fix="read it with LocalSurvey.from_json.")
        self.survey = survey
        self.reports = 0
        self.refused: dict[str, int] = {}
        self.counts: NDArray[np.int64] | None = None  # of the reports so far

    def add(self, reports: Any) -> int:
        """Counts reports, and returns how many were taken. Takes an iterable of bytes, or an array with a row for each."""
        if isinstance(reports, np.ndarray):
            return self._add_rows(reports)
        if isinstance(reports, (bytes, bytearray, str)):
            raise ArgumentError("reports must be several reports, and this is one.", fix="give a list: add([report]).")
        taken, batch = 0, bytearray()
        for report in items(reports, "reports", fix="give a list of reports."):
            if not isinstance(report, (bytes, bytearray)) or len(report) != self.survey.width:
                long = isinstance(report, (bytes, bytearray)) and len(report) > self.survey.width
                self._refuse("oversized" if long else "malformed")
                continue
            batch += report
            if len(batch) >= _PART * self.survey.width:
                taken += self._take(batch)
                batch = bytearray()
        return taken + self._take(batch)

    def _take(self, batch: bytearray) -> int:
        return self._add_rows(np.frombuffer(bytes(batch), dtype=np.uint8).reshape(-1, self.survey.width))

    def _add_rows(self, rows: NDArray[Any]) -> int:
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.survey.width:
            raise ArgumentError(
                f"reports must be an array of bytes with {self.survey.width} columns.", fix="give what survey.reports returned."
            )
        header = np.frombuffer(self.survey.header, dtype=np.uint8)
        current = rows[:, 0] == VERSION
        ours = (rows[:, 1:HEADER] == header[1:]).all(axis=1)
        payload = rows[:, HEADER:]
        right = current & ours
        right[right] = self.survey.randomiser.valid(payload[right])
        self._refuse("wrong version", int((~current).sum()))
        self._refuse("another survey", int((current & ~ours).sum()))
        taken = int(right.sum())
        self._refuse("malformed", len(rows) - int((~current).sum()) - int((current & ~ours).sum()) - taken)
        if taken:
            counted = self.survey.randomiser.count(payload[right])
            self.counts = counted if self.counts is None else self.counts + counted
            self.reports += taken
        return taken

    def _refuse(self, reason: str, count: int = 1) -> None:
        if count:
            self.refused[reason] = self.refused.get(reason, 0) + count

    def estimate(self, confidence: Number = "0.95") -> Estimates:
        """Returns the estimated share of every value, or the mean of a number, with margins."""
        sure = float(between(confidence, "confidence", 0, 1, open_low=True, open_high=True))
        if self.counts is None:
            raise ArgumentError("There is no report yet.", fix="add reports first.")
        survey, n = self.survey, self.reports
        places = np.arange(survey.size) if survey.bounds is None else np.array([1])
        shares, variances = survey.randomiser.estimate(self.counts, n, places)
        sampling = np.clip(shares, 0, 1) * (1 - np.clip(shares, 0, 1)) / n
        wide = NormalDist().inv_cdf((1 + sure) / 2) * np.sqrt(variances)
        values: tuple[Any, ...] = survey.values or ("mean",)
        if survey.bounds is not None:
            low, span = float(survey.bounds[0]), float(survey.bounds[1] - survey.bounds[0])
            shares, wide = low + span * shares, span * wide
            sampling, variances = span**2 * sampling, span**2 * variances
        coins = np.maximum(variances - sampling, 0)
        columns = (tuple(map(float, each)) for each in (shares, wide, sampling, coins))
        return Estimates(survey, n, sure, values, *columns)
