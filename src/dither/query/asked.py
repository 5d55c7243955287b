"""What may be asked of each group, in Python: count(), mean("age"), quantile("income", 0.9) and so on."""

from __future__ import annotations

from dataclasses import dataclass

from dither.errors import Fix, Python, QueryError
from dither.exact.numbers import Number, number


@dataclass(frozen=True)
class Asked:
    """An aggregate to be given to `agg`: COUNT(x), AVG(x), ... with an optional condition of its own."""

    function: str
    argument: str | None = None
    where: str | None = None
    distinct: bool = False
    share: str | None = None

    def __post_init__(self) -> None:
        texts = {"x": self.argument, "where": self.where}
        for name, piece in texts.items():
            if piece is not None and not isinstance(piece, str):
                raise QueryError(
                    f"{self.function}: {name} must be text, and it is a {type(piece).__name__}.",
                    fix="write a column or an expression in quotes.",
                )

    def __repr__(self) -> str:
        parts = [("DISTINCT " if self.distinct else "") + self.argument] if self.argument else []
        parts += [self.share] if self.share is not None else []
        condition = f" FILTER (WHERE {self.where})" if self.where is not None else ""
        return f"{self.function}({', '.join(parts)}){condition}"


def count(x: str | None = None, *, where: str | None = None) -> Asked:
    """The number of rows, or of rows where x is not NULL."""
    return Asked("COUNT", "*" if x is None else x, where)


def count_distinct(x: str, *, where: str | None = None) -> Asked:
    """How many different values x has."""
    return Asked("COUNT", _needed(x), where, distinct=True)


def count_units() -> Asked:
    """How many units (people) there are."""
    return Asked("COUNT_UNITS")


def sum_(x: str, *, where: str | None = None) -> Asked:
    """The sum of x."""
    return Asked("SUM", _needed(x), where)


def mean(x: str, *, where: str | None = None) -> Asked:
    """The mean of x."""
    return Asked("AVG", _needed(x), where)


def variance(x: str, *, population: bool = False, where: str | None = None) -> Asked:
    """The variance of x: of a sample, or of the whole population."""
    return Asked("VAR_POP" if _flag(population) else "VAR_SAMP", _needed(x), where)


def stddev(x: str, *, population: bool = False, where: str | None = None) -> Asked:
    """The standard deviation of x: of a sample, or of the whole population."""
    return Asked("STDDEV_POP" if _flag(population) else "STDDEV_SAMP", _needed(x), where)


def median(x: str, *, where: str | None = None) -> Asked:
    """The median of x."""
    return Asked("MEDIAN", _needed(x), where)


def quantile(x: str, p: Number | None = None, *, where: str | None = None) -> Asked:
    """The p-quantile of x, such as quantile("income", 0.9)."""
    share = number(p)
    if share is None or not 0 < share < 1:
        raise QueryError(
            "A quantile needs its share p, a number between 0 and 1 and neither of them.",
            fix=Fix(
                "write {call}, or {median} for p = 0.5.",
                call=Python('dt.quantile("age", 0.9)'),
                median=Python('dt.median("age")'),
            ),
        )
    return Asked("QUANTILE", _needed(x), where, share=repr(float(share)) if float(share) > 1e-4 else f"{float(share):.20f}")


def min_(x: str, *, where: str | None = None) -> Asked:
    """The smallest x, as an extreme quantile."""
    return Asked("MIN", _needed(x), where)


def max_(x: str, *, where: str | None = None) -> Asked:
    """The largest x, as an extreme quantile."""
    return Asked("MAX", _needed(x), where)


def clipped(x: str) -> Asked:
    """The share of values outside the declared bounds."""
    return Asked("CLIPPED", _needed(x))


def _needed(x: str) -> str:
    if x is None:
        raise QueryError("This aggregate needs a column.", fix=Fix("name one, as in {call}.", call=Python('dt.mean("age")')))
    return x


def _flag(population: bool) -> bool:
    if not isinstance(population, bool):
        raise QueryError(
            f"population is a {type(population).__name__}.", fix=Fix("write {population} or leave it out.", population=True)
        )
    return population
