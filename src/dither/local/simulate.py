"""A whole survey on made-up people: reports, estimates beside the truth, and what a trusted curator would have got.

With a curator one number of noise is added to each count: an error of about sqrt(2) / epsilon people, whatever their number.
In the local model every person adds noise, so the error grows with the square root of the number of people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dither.exact.laws.base import Integers
from dither.exact.numbers import whole
from dither.local.aggregator import Aggregator, Estimates
from dither.local.survey import LocalSurvey
from dither.mechanisms.geometric import Geometric

_PART = 1 << 18


@dataclass(frozen=True)
class Simulation:
    """The estimates of a simulated survey, the true shares, and those of a trusted curator at the same epsilon."""

    estimates: Estimates
    truth: tuple[float, ...]
    curator: tuple[float, ...]

    def errors(self) -> tuple[float, float]:
        """Returns the root mean square errors of the local model and of a curator, in people."""
        people = self.estimates.reports
        local, central = (
            float(np.sqrt(np.mean((np.array(found) - np.array(self.truth)) ** 2))) * people
            for found in (self.estimates.shares, self.curator)
        )
        return local, central

    def __str__(self) -> str:
        found = self.estimates
        wide = max(len(str(value)) for value in found.values)
        rows = zip(found.values, self.truth, found.shares, found.margins, self.curator, strict=True)
        lines = [f"  {v!s:<{wide}}  {t:7.4f}  {s:8.4f} ± {m:.4f}  {c:8.5f}" for v, t, s, m, c in rows]
        local, central = self.errors()
        head = f"{str(found).splitlines()[0]}\n  {'value':<{wide}}    truth  local               curator"
        foot = f"typical error: {local:,.0f} people without a trusted curator, {central:,.1f} with one"
        return "\n".join([head, *lines, foot])


def simulate(survey: LocalSurvey, people: int, skew: float = 1.0) -> Simulation:
    """Makes up people whose values follow 1 / rank^skew, lets each report, and estimates the shares."""
    count = whole(people, "people", least=1)
    weights = 1 / np.arange(1, survey.size + 1) ** skew
    values: Integers = np.random.default_rng().choice(survey.size, size=count, p=weights / weights.sum()).astype(np.int64)
    desk = Aggregator(survey)
    for first in range(0, count, _PART):
        part = values[first : first + _PART]
        payload = survey.randomiser.encode(part)
        head = np.broadcast_to(np.frombuffer(survey.header, dtype=np.uint8), (len(payload), len(survey.header)))
        desk.add(np.concatenate((head, payload), axis=1))
    exact = np.bincount(values, minlength=survey.size)
    noisy = Geometric(epsilon=survey.epsilon, sensitivity=2).release(exact)  # a person replaced moves two counts
    return Simulation(desk.estimate(), tuple((exact / count).tolist()), tuple((np.asarray(noisy) / count).tolist()))
