"""The local model: randomized response, RAPPOR, unary encoding, and what happens when they are repeated.

Sources: Warner 1965; Erlingsson, Pihur and Korolova 2014 (RAPPOR); Wang et al. 2017 (unary encoding).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.random import Generator

from detection.case import Case

ONE = Fraction(1)
ITEMS = ((0, 1), (3, 7))
SIZE = 8


def one_of_many(keep: float) -> Any:
    """Returns the item with probability `keep`, otherwise one of the seven others."""

    def law(rng: Generator, item: Any, n: int) -> Any:
        other = (item + rng.integers(1, SIZE, n)) % SIZE
        return np.where(rng.random(n) < keep, item, other).astype(np.float64)

    return law


def unary(p: float, q: float, times: int = 1) -> Any:
    """One bit for each of eight items: 1 with probability p for the own item and q for the others; `times` reports."""

    def law(rng: Generator, item: Any, n: int) -> Any:
        chance = np.where(np.arange(SIZE) == item, p, q)
        return (rng.random((n, times * SIZE)) < np.tile(chance, times)).astype(np.float64)

    return law


def bits(keep: float, times: int) -> Any:
    def law(rng: Generator, bit: Any, n: int) -> Any:
        return np.where(rng.random((n, times)) < keep, bit, 1 - bit).astype(np.float64)

    return law


def both_bits(rng: Generator, pair: Any, n: int) -> Any:
    """Answers two bits of a record, each at the whole price."""
    return np.where(rng.random((n, 2)) < 0.75, pair, 1 - np.asarray(pair)).astype(np.float64)


KEEP = math.e / (math.e + SIZE - 1)
Q = 1 / (math.e + 1)
THREE = Fraction("1.0987")  # log 3, rounded up
RAPPOR = Fraction("2.1973")  # 2 log 3, rounded up: two bits differ, f = 1/2
RIGHT = (
    Case("response over eight items", one_of_many(KEEP), ONE, ITEMS, 1.0, "Kairouz et al. 2016"),
    Case("RAPPOR, one report", unary(0.75, 0.25), RAPPOR, ITEMS, 2 * math.log(3), "Erlingsson et al. 2014"),
    Case("unary encoding", unary(0.5, Q), ONE, ITEMS, 1.0, "Wang et al. 2017"),
)
WRONG = (
    Case("response, wrong bias", bits(0.8, 1), THREE, ((0, 1),), math.log(4), "keeps 0.8 for 0.75"),
    Case("response, ten priced as one", bits(0.75, 10), THREE, ((0, 1),), 10 * math.log(3), "released systems"),
    Case("response, bias of two for eight", one_of_many(1 - Q), ONE, ITEMS, 1 + math.log(7), "Kairouz et al. 2016"),
    Case(
        "response, each bit at full price",
        both_bits,
        THREE,
        (((0, 0), (1, 1)), ((0, 0), (0, 1))),
        2 * math.log(3),
        "composition",
    ),
    Case("RAPPOR, one bit priced", unary(0.75, 0.25), THREE, ITEMS, 2 * math.log(3), "Erlingsson et al. 2014"),
    Case("RAPPOR, wrong f", unary(0.8, 0.2), RAPPOR, ITEMS, 2 * math.log(4), "f = 0.4 for 0.5"),
    Case("RAPPOR, four reports unmemoised", unary(0.75, 0.25, 4), RAPPOR, ITEMS, 8 * math.log(3), "Erlingsson et al. 2014"),
    Case("unary encoding, wrong p", unary(0.75, Q), ONE, ITEMS, 1 + math.log(3), "p = 3/4 for 1/2"),
)
LOCAL = RIGHT + WRONG
