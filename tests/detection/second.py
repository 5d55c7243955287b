"""A second set of mechanisms, written after the search had been tuned on the first one, and never tuned on.

Plain functions as an author would write them; most name what they take in their signature or in their code. `truth` is infinite
where an event of one side is impossible on the other; of the correct ones it is an upper bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from numpy.random import Generator

from detection.case import INF, Case, Law

ONE = Fraction(1)
GRID = 2.0**20


def lap(rng: Generator, scale: float) -> float:
    return float(round(rng.laplace(0.0, scale) * GRID) / GRID)


# --- correct --------------------------------------------------------------------------------------------------------


def number_of_words(words: list[str], rng: Generator) -> float:
    return len(words) + lap(rng, 1)


def clipped_sum(values: list[float], rng: Generator) -> float:
    return sum(round(min(max(x, 0.0), 5.0) * 4) / 4 if x == x else 0.0 for x in values) + lap(rng, 5)


def two_parties(words: list[str], rng: Generator) -> dict[str, float]:
    return {party: words.count(party) + lap(rng, 1) for party in ("left", "right")}


def biased_coin(bit: int, rng: Generator) -> int:
    return bit if rng.random() < math.e / (1 + math.e) else 1 - bit


def first_above(answers: list[int], rng: Generator) -> int:
    level = 3 + lap(rng, 2)
    return next((place for place, answer in enumerate(answers) if answer + lap(rng, 4) >= level), len(answers))


def spend_per_user(rows: list[dict[str, Any]], rng: Generator) -> float:
    most: dict[Any, float] = {}
    for row in rows:
        amount = row["amount"] if row["amount"] is not None and row["amount"] == row["amount"] else 0
        most[row["user"]] = max(most.get(row["user"], 0), round(min(max(amount, 0), 10)))
    return sum(most.values()) + lap(rng, 10)


# --- broken ---------------------------------------------------------------------------------------------------------


def noise_for_many_only(words: list[str], rng: Generator) -> float:
    return len(words) + (lap(rng, 1) if len(words) > 20 else 0.0)


def whole_noise_on_a_real_sum(values: list[float], rng: Generator) -> float:
    return sum(min(max(x, 0.0), 1.0) if x == x else 0.0 for x in values) + round(lap(rng, 2))


def mean_over_the_exact_size(values: list[float], rng: Generator) -> float:
    total = sum(min(max(x, 0.0), 5.0) if x == x else 0.0 for x in values) + lap(rng, 5)
    return total / max(1, len(values))


def largest_value(values: list[float], rng: Generator) -> float:
    return max((min(max(x, 0.0), 100.0) for x in values if x == x), default=0.0) + lap(rng, 1)


def twice_the_distinct(words: list[str], rng: Generator) -> float:
    return 2 * len(set(words)) + lap(rng, 1)


def most_frequent(words: list[str], rng: Generator) -> tuple[str, float]:
    (word, times), *_ = Counter(map(str, words)).most_common(1) or [("none", 0)]
    return word, times + lap(rng, 1)


def keys_above_three(words: list[str], rng: Generator) -> dict[str, float]:
    noisy = {word: words.count(word) + lap(rng, 1) for word in sorted(set(map(str, words)))}
    return {word: count for word, count in noisy.items() if count > 3}


def geometric_of_two(count: int, rng: Generator) -> int:
    q = 1 - math.exp(-2)
    return count + int(rng.geometric(q)) - int(rng.geometric(q))


def one_noise_for_all(answers: list[int], rng: Generator) -> list[bool]:
    level, noise = 3 + lap(rng, 2), lap(rng, 4)
    return [answer + noise >= level for answer in answers]


def symbol_or_another(item: int, rng: Generator) -> int:
    return item if rng.random() < 0.5 else (item + int(rng.integers(1, 8))) % 8


def spend_per_row(rows: list[dict[str, Any]], rng: Generator) -> float:
    known = [row["amount"] for row in rows if row["amount"] is not None and row["amount"] == row["amount"]]
    return sum(min(max(amount, 0), 10) for amount in known) + lap(rng, 10)


def flag_of_a_rare_word(words: list[str], rng: Generator) -> list[Any]:
    return [len(words) + lap(rng, 1), "hiv" in words]


def full_table(values: list[int], rng: Generator) -> float:
    if len(values) > 64:
        raise OverflowError("too many records")
    return len(values) + lap(rng, 1)


def variance(values: list[float], rng: Generator) -> float:
    kept = [min(max(x, 0.0), 1.0) for x in values if x == x] or [0.0]
    mean = sum(kept) / len(kept)
    return sum((x - mean) ** 2 for x in kept) / len(kept) + lap(rng, 0.1)


def best_score(answers: list[int], rng: Generator) -> float:
    return max(answer + lap(rng, 1) for answer in answers)


def last_bit(count: int, rng: Generator) -> float:
    return count + 2 * round(lap(rng, 1))


def _law(program: Callable[[Any, Generator], Any]) -> Law:
    return lambda rng, data, n: [program(data, rng) for _ in range(n)]


WORDS = (("left", "left", "right"), ("left", "left", "right", "right"))
REALS = ((1.0, 4.0), (1.0, 4.0, 5.0))
FIVE = ((0,) * 5, (1,) * 5)
USER = ({"user": 1, "amount": 10},)
_RIGHT: tuple[tuple[Any, Any, float], ...] = (
    (number_of_words, WORDS, 1.0),
    (clipped_sum, REALS, 1.0),
    (two_parties, WORDS, 1.0),
    (biased_coin, (0, 1), 1.0),
    (first_above, FIVE, 1.0),
    (spend_per_user, (USER, USER + ({"user": 2, "amount": 10},) * 3), 1.0),
)
_WRONG: tuple[tuple[Any, Any, float], ...] = (
    (noise_for_many_only, WORDS, INF),
    (whole_noise_on_a_real_sum, ((1.0,), (1.0, 0.5)), INF),
    (mean_over_the_exact_size, REALS, INF),
    (largest_value, ((1.0,), (1.0, 100.0)), 99.0),
    (twice_the_distinct, (("a",), ("a", "b")), 2.0),
    (most_frequent, (("a", "a", "b", "b"), ("a", "a", "b", "b", "b")), INF),
    (keys_above_three, (("a",), ("a", "b")), INF),
    (geometric_of_two, (0, 1), 2.0),
    (one_noise_for_all, ((3, 4), (4, 3)), INF),
    (symbol_or_another, (0, 1), math.log(7)),
    (spend_per_row, (USER, USER + ({"user": 2, "amount": 10},) * 3), 3.0),
    (flag_of_a_rare_word, (("a",), ("a", "hiv")), INF),
    (full_table, ((1,) * 64, (1,) * 65), INF),
    (variance, ((0.0,), (0.0, 1.0)), 2.5),
    (best_score, FIVE, 5.0),
    (last_bit, (0, 1), INF),
)
PROGRAMS: dict[str, Callable[..., Any]] = {program.__name__: program for program, *_ in (*_RIGHT, *_WRONG)}
SECOND = tuple(
    Case(program.__name__, _law(program), ONE, (pair,), truth, "second set") for program, pair, truth in (*_RIGHT, *_WRONG)
)
