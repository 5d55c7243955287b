"""Small mechanisms given by exact probability tables: rational probabilities, so that every claim is decided exactly.

A table mechanism maps each data set (numbered 0, 1, ...) to the probabilities of its outputs. Its epsilon is the
logarithm of a rational `ratio`, so "epsilons add up" is checked as "ratios multiply", without rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

Row = tuple[Fraction, ...]
Table = tuple[Row, ...]


def row(weights: Sequence[int]) -> Row:
    """Probabilities proportional to whole-number weights."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def tables(inputs: int, outputs: int = 3) -> st.SearchStrategy[Table]:
    """Random mechanisms that give every output with some probability."""
    weights = st.lists(st.integers(1, 12), min_size=outputs, max_size=outputs)
    return st.lists(weights.map(row), min_size=inputs, max_size=inputs).map(tuple)


def ratio(left: Row, right: Row) -> Fraction:
    """e^epsilon between two data sets: the largest ratio of an output's probabilities, in either direction."""
    return max(max(a / b, b / a) for a, b in zip(left, right, strict=True))


def chain_ratio(table: Table) -> Fraction:
    """e^epsilon of a mechanism whose data sets are neighbours when their numbers are."""
    return max(ratio(left, right) for left, right in pairwise(table))


def excess(left: Row, right: Row, factor: Fraction) -> Fraction:
    """The smallest delta at e^epsilon = factor, in one direction: the sum of p - factor q where it is positive."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(left, right, strict=True)), start=Fraction(0))


def both(left: Row, right: Row) -> Row:
    """Two independent outputs as one."""
    return tuple(a * b for a in left for b in right)


def then(first: Row, later: Callable[[int], Row]) -> Row:
    """An output, then a second one whose mechanism may depend on the first."""
    return tuple(a * b for output, a in enumerate(first) for b in later(output))


def image(outputs: Row, channel: Sequence[Row]) -> Row:
    """A randomized function of the output: channel[o] holds the chances of its values at output o."""
    return tuple(sum((p * channel[o][v] for o, p in enumerate(outputs)), start=Fraction(0)) for v in range(len(channel[0])))
