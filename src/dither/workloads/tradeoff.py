"""Privacy as constrained optimisation: fix two of error, number of questions and epsilon, and get the third.

Four ways to ask k questions: one by one or as a workload, with pure noise (epsilon) or Gaussian noise (epsilon, delta).

    one by one, pure         error grows like k / epsilon           as a workload, pure        like the best strategy found
    one by one, Gaussian     like sqrt(k) / epsilon                 as a workload, Gaussian    like the optimum

The error is the root mean square error over all questions. It falls with epsilon and, along one kind of questions, grows
with k, so each of the three is found from the other two by a search. No data is read. Errors are floats; an epsilon that is
found is rounded up, so that its error is within the one asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Literal

from dither.errors import ArgumentError, Fix, Python
from dither.exact.laws.base import search
from dither.exact.numbers import Number, between, show, show_rounded, whole
from dither.privacy.neighbours import AddRemove
from dither.workloads.blocks import Record
from dither.workloads.compare import one_by_one
from dither.workloads.design import design
from dither.workloads.price import Price
from dither.workloads.workload import Workload

Questions = Callable[[int], Workload]
Noise = Literal["pure", "Gaussian"]
NAMED: dict[str, Questions] = {"thresholds": Workload.thresholds, "histogram": Workload.histogram}
WAYS = ("one by one", "as a workload")
NOISES: tuple[Noise, ...] = ("pure", "Gaussian")
_DIGITS = 1000  # an epsilon that is found is a multiple of its power of ten divided by this
_MOST = 128  # beyond, finding a strategy takes long
_LARGEST = 4096  # questions that are looked for one by one

Sought = Literal["error", "questions", "epsilon"]


@dataclass(frozen=True)
class Point:
    """One way to ask: how many questions, at which price, with which error. `more`: as many as were looked for."""

    way: str
    noise: Noise
    questions: int
    epsilon: Fraction
    error: float
    more: bool = False


@dataclass(frozen=True)
class Tradeoff:
    """The third quantity for every way to ask. It prints as a table; `plot` draws the frontier."""

    ask: Questions
    delta: Fraction
    sought: Sought
    points: tuple[Point, ...]

    def __getitem__(self, key: tuple[str, str]) -> Point:
        found = [each for each in self.points if isinstance(key, tuple) and (each.way, each.noise) == key]
        if not found:
            known = ", ".join(f"({each.way!r}, {each.noise!r})" for each in self.points)
            raise ArgumentError(f"There is no such way to ask. There are: {known}.", fix="name one of them.")
        return found[0]

    def __str__(self) -> str:
        rows = [("", "noise", "questions", "ε", "error")]
        for each in self.points:
            many = f"{each.questions} or more" if each.more else str(each.questions)
            rows.append((each.way, _noise(each.noise, self.delta), many, show(each.epsilon), show_rounded(each.error)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(wide) for text, wide in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.sought} sought", "", *lines])

    __repr__ = __str__

    def plot(self, path: str | PathLike[str], counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)) -> Path:
        """Draws the frontier: error against the number of questions, and against epsilon, around the points found."""
        from dither.plots import frontier_picture  # matplotlib is an extra

        by_count, by_price = {}, {}
        for each in self.points:
            name = f"{each.way}, {_noise(each.noise, self.delta)}"
            prices = [each.epsilon * Fraction(factor, 8) for factor in (1, 2, 4, 8, 16, 32, 64)]
            errors = [self._error(each, min(max(each.questions, 1), _MOST), price) for price in prices]
            by_count[name] = [float(n) for n in counts], [self._error(each, n, each.epsilon) for n in counts]
            by_price[name] = [float(price) for price in prices], errors
        first = self.points[0]
        left = "number of questions" if self.sought == "epsilon" else f"number of questions, at ε = {show(first.epsilon)}"
        right = "ε" if self.sought == "questions" else f"ε, for {first.questions} questions"
        return frontier_picture("Error against questions and price", {left: by_count, right: by_price}, path)

    def _error(self, point: Point, questions: int, epsilon: Fraction) -> float:
        return _errors(self.ask, point.way, point.noise, self.delta)(questions, epsilon)


def tradeoff(
    question: str | Questions = "thresholds",
    *,
    error: Number | None = None,
    questions: int | None = None,
    epsilon: Number | None = None,
    delta: Number = "1e-6",
    most: int = _MOST,
) -> Tradeoff:
    """Returns the third of error, number of questions and epsilon, given two, for each way to ask.

    `question` makes the workload of k questions: "thresholds", "histogram", or a function such as `dt.Workload.thresholds`.
    As a workload, at most `most` questions are looked for.

    >>> found = tradeoff("thresholds", questions=8, epsilon=1)
    >>> round(found["one by one", "pure"].error, 2), found["as a workload", "pure"].error
    (11.31, 3.0)
    """
    ask = _questions(question)
    given = {"error": error, "questions": questions, "epsilon": epsilon}
    sought = [name for name, value in given.items() if value is None]
    if len(sought) != 1:
        raise ArgumentError("Give two of error, questions and epsilon: the third follows.", fix="leave out exactly one.")
    slack = between(delta, "delta", 0, 1, open_low=True, open_high=True)
    aim = None if error is None else between(error, "error", Fraction(1, 10**9), 10**9)
    price = None if epsilon is None else between(epsilon, "epsilon", _power(-4), _power(2))
    limit = int(between(whole(most, "most", least=1), "most", 1, 1024))
    count = None if questions is None else int(between(whole(questions, "questions", least=1), "questions", 1, 1024))
    points = []
    for noise, way in product(NOISES, WAYS):
        error_of = _errors(ask, way, noise, slack)
        many, at, more = _solve(error_of, aim, count, price, _LARGEST if way == WAYS[0] else limit)
        points.append(Point(way, noise, many, at, error_of(max(many, 1), at), more))
    return Tradeoff(ask, slack, sought[0], tuple(points))  # type: ignore[arg-type]


def _errors(ask: Questions, way: str, noise: str, delta: Fraction) -> Callable[[int, Fraction], float]:
    """Returns the error of one way to ask, as a function of the number of questions and of epsilon."""

    def error_of(count: int, epsilon: Fraction) -> float:
        price = Price.of(epsilon, delta if noise == "Gaussian" else None, None)
        workload = ask(count)
        return one_by_one(workload, price) if way == WAYS[0] else design(workload, price, AddRemove(), Record()).rmse

    return error_of


def _solve(
    error_of: Callable[[int, Fraction], float],
    error: Fraction | None,
    questions: int | None,
    epsilon: Fraction | None,
    limit: int,
) -> tuple[int, Fraction, bool]:
    """Returns the number of questions, epsilon, and whether there may be more questions than were looked for."""
    if error is None and questions is not None and epsilon is not None:
        return questions, epsilon, False
    allowed = float(error or 0)
    if questions is None and epsilon is not None:
        price = epsilon
        count = search(lambda k: k > limit or error_of(k, price) > allowed, 1, None) - 1
        return count, price, count == limit
    count = questions or 1
    return count, _least(lambda at: error_of(count, at) <= allowed), False


def _least(holds: Callable[[Fraction], bool]) -> Fraction:
    """Returns the smallest epsilon that holds, rounded up to three digits."""
    if not holds(_power(2)):
        raise ArgumentError("No epsilon up to 100 has so small an error.", fix="allow a larger error, or ask less.")
    power = search(lambda p: holds(_power(p)), -4, 2)
    if power == -4:
        return _power(-4)
    unit = _power(power) / _DIGITS
    return unit * search(lambda j: holds(unit * j), _DIGITS // 10, _DIGITS)


def _power(exponent: int) -> Fraction:
    return Fraction(10) ** exponent


def _noise(noise: str, delta: Fraction) -> str:
    return "ε" if noise == "pure" else f"(ε, {show(delta)})"


def _questions(question: str | Questions) -> Questions:
    """Returns the function that makes a workload of k questions. Refuses one that makes something else."""
    make = NAMED.get(question) if isinstance(question, str) else question
    fix = Fix("write {name}, or a function such as {make}.", name=Python("'thresholds'"), make=Python("dt.Workload.thresholds"))
    if not callable(make) or isinstance(make, type):
        raise ArgumentError("question must be a kind of questions, or a function from their number to a workload.", fix=fix)

    def ask(count: int) -> Workload:
        try:
            found = make(count)
        except ArgumentError:
            raise
        except Exception as failure:
            raise ArgumentError(f"question fails for {count} questions: {type(failure).__name__}.", fix=fix) from None
        if not isinstance(found, Workload) or found.size != count:
            raise ArgumentError(f"question must make a workload of {count} questions, and it does not.", fix=fix)
        return found

    return ask
