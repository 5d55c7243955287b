"""Statistical queries: means of bounded functions of a record, with noise, each charged. A learner that needs nothing else
is private by composition, whatever it asks next.

    answer = (sum of q(x_i) + noise) / n          q with values in [low, high] on a public grid

One replaced record moves the sum by at most high - low. Reference: Kearns, JACM 1998 (the model); Blum, Dwork, McSherry and
Nissim, PODS 2005 (SuLQ: noise on every query).

In a traced program the records are rows in memory. On a catalog, a query is an SQL expression and the answer a mean that
`survey.ask` charges in the ledger; there neighbours, units and bounds are the catalog's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, Fix, Python
from dither.exact.numbers import Number, positive, rational, show
from dither.mechanisms import Gaussian, Laplace
from dither.tracing.noisy import Noisy
from dither.tracing.rows import Rows


@dataclass(frozen=True)
class StatisticalQueries:
    """Answers queries about the rows of a traced program, each at the same price: epsilon, or rho.

    `step` is the grid of a query's values. The run's `limit` refuses queries beyond it.

    >>> import dither as dt
    >>> def older_than_40(people):
    ...     queries = dt.StatisticalQueries(people, epsilon="1/10")
    ...     return queries.mean(lambda row: row[0] > 40)
    >>> dt.trace(older_than_40, dt.records([[30], [50]], 0, 120)).loss()
    Pure(epsilon=Fraction(1, 10))
    """

    rows: Rows
    epsilon: Number | None = None
    rho: Number | None = None
    step: Number = "1/1024"

    def __post_init__(self) -> None:
        if not isinstance(self.rows, Rows):
            raise ArgumentError(
                "Statistical queries are about the rows of a traced program.",
                fix=Fix("trace a table: {call}.", call=Python("dt.records([[30, 1], [50, 0]], 0, 120)")),
            )
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError("Each query has a price.", fix=Fix("give {epsilon}, or {rho}.", epsilon="1/10", rho="1/100"))

    @classmethod
    def on(cls, survey: Asking, table: str, epsilon: Number) -> CatalogQueries:
        """Answers queries about a table of a catalog, charged in its ledger."""
        return CatalogQueries(survey, table, epsilon)

    def noise(self, low: Number = 0, high: Number = 1) -> Laplace | Gaussian:
        """Returns the noise on the sum of a query with these bounds."""
        width, grid = rational(high, "high") - rational(low, "low"), positive(self.step, "step")
        if self.epsilon is not None:
            return Laplace(epsilon=self.epsilon, sensitivity=width, grid=grid)
        return Gaussian(rho=self.rho, sensitivity=width, grid=grid)

    def mean(self, query: Callable[[NDArray[np.float64]], Any], low: Number = 0, high: Number = 1) -> Noisy:
        """Returns the noisy mean of a function of a row, clipped to [low, high]. A bool counts as 0 or 1.

        Where the function fails, its value is `low`: whether it does is as private as the row.
        """
        values = self.rows.map(query, low, high, self.step)
        noisy: Noisy = values.sum().release(self.noise(low, high))
        return noisy / len(self.rows)  # type: ignore[no-any-return]

    def tolerance(self, low: Number = 0, high: Number = 1, confidence: Number = "0.95") -> float:
        """Returns how far an answer may be off, with this confidence: by noise, and by rounding to the grid."""
        margin = Fraction(self.noise(low, high).margin(confidence)) / max(len(self.rows), 1)
        return float(margin + positive(self.step, "step") / 2)


class Asking(Protocol):
    """The part of a curator that queries need."""

    def ask(self, question: str, epsilon: Number) -> Any: ...


@dataclass(frozen=True)
class CatalogQueries:
    """Answers queries about a table of a catalog. `survey.ask` reads, bounds, charges and stores them, as any question."""

    survey: Asking
    table: str
    epsilon: Number

    def mean(self, expression: str, low: Number = 0, high: Number = 1) -> float:
        """Returns the noisy mean of an SQL expression, clipped to [low, high]."""
        ends = ", ".join(show(rational(end, name)) for end, name in ((low, "low"), (high, "high")))
        answer = self.survey.ask(f"SELECT AVG(CLAMP({expression}, {ends})) AS mean FROM {self.table}", self.epsilon)
        return float(answer["mean"][0])
