"""How a value becomes a report, and counts of reports become estimates. Values are 0, 1, ..., size - 1.

Each randomiser states its chances as multiples of 2^-32 and `ratio`, the exact largest factor between the probabilities of one
report for two values. That factor is at most e^epsilon, so a report is epsilon-DP whatever the value is replaced by.

    Response   the value with probability p, else any other                      variance smallest for few values
    Unary      a bit for each value: fair for the true one, else 1 with q        d / 8 bytes
    Subset     a set of w values, with the true one more often than by chance    d / 8 bytes, the smallest variance known
    Hadamard   one entry of a row of signs, flipped at times                     4 bytes
    Hashing    the value hashed to few, then a Response                          3 bytes

References: Warner 1965; Wang, Blocki, Li and Jha, USENIX Security 2017 (unary, hashing); Ye and Barg, IEEE-IT 2018 (subset);
Acharya, Sun and Zhang, AISTATS 2019 (Hadamard).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.exact import entropy
from dither.exact.laws.base import Integers
from dither.exact.samplers import uniform
from dither.local.chances import WHOLE, at_least, at_most, flips, many_flips

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
_ROWS = 2048  # reports of many bytes that are made at a time
_PLUS = 255  # rows whose bits add up within a byte
POOL = 1 << 16  # hash functions


class Randomiser(ABC):
    """Turns values into reports of `width` bytes, and reports into estimates of shares."""

    kind: ClassVar[str]
    width: int

    @abstractmethod
    def encode(self, values: Integers) -> Bytes:
        """Draws one report for each value, in rows."""

    @abstractmethod
    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        """Returns which rows some value can give."""

    @abstractmethod
    def count(self, reports: Bytes) -> Integers:
        """Returns counts of valid reports; counts of several batches add up."""

    def supports(self, counts: Integers, values: Integers) -> Floats:
        """Returns, for each value, how many reports speak for it."""
        return counts[values].astype(np.float64)

    @abstractmethod
    def chances(self) -> tuple[float, float]:
        """Returns the probabilities that a report speaks for its value, and for another one."""

    @abstractmethod
    def ratio(self) -> Fraction:
        """Returns the largest factor between the probabilities of a report for two values."""

    def estimate(self, counts: Integers, reports: int, values: Integers) -> tuple[Floats, Floats]:
        """Returns unbiased shares of values, and their variances over people drawn at random and their coins."""
        p, q = self.chances()
        shares = (self.supports(counts, values) / reports - q) / (p - q)
        return shares, self.variance(np.clip(shares, 0.0, 1.0)) / reports

    def variance(self, share: Floats | float) -> Floats:
        """Returns the variance of an estimated share, times the number of reports."""
        p, q = self.chances()
        spoken = np.asarray(q + np.asarray(share) * (p - q))
        variance: Floats = spoken * (1 - spoken) / (p - q) ** 2
        return variance


@dataclass(frozen=True)
class Response(Randomiser):
    """The value itself with probability p, else one of the others, all alike."""

    kind: ClassVar[str] = "response"
    epsilon: Fraction
    size: int
    keep: int = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", at_most(lambda e: e / (e + self.size - 1), self.epsilon))
        object.__setattr__(self, "width", 1 if self.size <= 1 << 8 else 2 if self.size <= 1 << 16 else 4)

    def encode(self, values: Integers) -> Bytes:
        return _bytes(self.draw(values), self.width)

    def draw(self, values: Integers) -> Integers:
        """Draws a response for each value, as whole numbers."""
        moved = np.flatnonzero(~flips(len(values), self.keep))
        drawn = values.copy()
        if self.size == 2:
            drawn[moved] ^= 1
        else:
            others = uniform.below_each(np.full(len(moved), self.size - 1, dtype=np.uint64))
            drawn[moved] = (values[moved] + 1 + others) % self.size
        return drawn

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return _whole(reports) < self.size

    def count(self, reports: Bytes) -> Integers:
        return np.bincount(_whole(reports), minlength=self.size).astype(np.int64)

    def chances(self) -> tuple[float, float]:
        return self.keep / WHOLE, (1 - self.keep / WHOLE) / (self.size - 1)

    def ratio(self) -> Fraction:
        return Fraction(self.keep * (self.size - 1), WHOLE - self.keep)


@dataclass(frozen=True)
class Unary(Randomiser):
    """A bit for each value: for the true one a fair coin, for the others 1 with probability q."""

    kind: ClassVar[str] = "unary"
    epsilon: Fraction
    size: int
    other: int = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "other", at_least(lambda e: 1 / (e + 1), self.epsilon))
        object.__setattr__(self, "width", -(-self.size // 8))

    def encode(self, values: Integers) -> Bytes:
        return _in_parts(self._encode, values)

    def _encode(self, values: Integers) -> Bytes:
        bits = many_flips(len(values), self.size, self.other)
        bits[np.arange(len(values)), values] = flips(len(values), WHOLE // 2)
        return np.packbits(bits, axis=1)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return _no_spare_bits(reports, self.size)

    def count(self, reports: Bytes) -> Integers:
        return _column_sums(reports, self.size)

    def chances(self) -> tuple[float, float]:
        return 0.5, self.other / WHOLE

    def ratio(self) -> Fraction:
        return Fraction(WHOLE - self.other, self.other)


@dataclass(frozen=True)
class Subset(Randomiser):
    """A set of `chosen` values, with the true one in it more often than by chance; the others are all alike."""

    kind: ClassVar[str] = "subset"
    epsilon: Fraction
    size: int
    chosen: int = field(init=False)
    keep: int = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        chosen = min(max(round(self.size / (math.exp(min(float(self.epsilon), 700.0)) + 1)), 1), self.size - 1)
        object.__setattr__(self, "chosen", chosen)
        object.__setattr__(self, "keep", at_most(lambda e: e * chosen / (e * chosen + self.size - chosen), self.epsilon))
        object.__setattr__(self, "width", -(-self.size // 8))

    def encode(self, values: Integers) -> Bytes:
        return _in_parts(self._encode, values)

    def _encode(self, values: Integers) -> Bytes:
        rows = np.arange(len(values))
        with_it = flips(len(values), self.keep)
        ranks = _orders(len(values), self.size, values)  # a fair order of the other values; the true one is last
        bits = ranks < (self.chosen - with_it)[:, None]
        bits[rows, values] = with_it
        return np.packbits(bits, axis=1)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        full: NDArray[np.bool_] = _ONES[reports].sum(axis=1) == self.chosen
        return _no_spare_bits(reports, self.size) & full

    def count(self, reports: Bytes) -> Integers:
        return _column_sums(reports, self.size)

    def chances(self) -> tuple[float, float]:
        p = self.keep / WHOLE
        return p, (p * (self.chosen - 1) + (1 - p) * self.chosen) / (self.size - 1)

    def ratio(self) -> Fraction:
        return Fraction(self.keep * (self.size - self.chosen), (WHOLE - self.keep) * self.chosen)


@dataclass(frozen=True)
class Hadamard(Randomiser):
    """A place j of the value's column of signs (-1)^popcount(j & value), drawn fairly, and the sign there, flipped at times."""

    kind: ClassVar[str] = "hadamard"
    epsilon: Fraction
    size: int
    keep: int = field(init=False)
    width: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", at_most(lambda e: e / (e + 1), self.epsilon))

    @property
    def places(self) -> int:
        """Returns the number of places: a power of two that is not below the number of values."""
        return 1 << (self.size - 1).bit_length()

    def encode(self, values: Integers) -> Bytes:
        bits = (self.places - 1).bit_length()
        places = (entropy.words32(len(values)) >> np.uint32(32 - bits)).astype(np.int64) if bits else np.zeros_like(values)
        signs = _parity(places & values) ^ ~flips(len(values), self.keep)
        return _bytes(places * 2 + signs, self.width)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return _whole(reports) < 2 * self.places

    def count(self, reports: Bytes) -> Integers:
        both = np.bincount(_whole(reports), minlength=2 * self.places).astype(np.int64)
        return both[0::2] - both[1::2]

    def supports(self, counts: Integers, values: Integers) -> Floats:
        sums, step = counts.copy(), 1
        while step < len(sums):  # the fast transform by the matrix of signs
            pairs = sums.reshape(-1, 2, step)
            sums = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).ravel()
            step *= 2
        return sums[values].astype(np.float64)

    def chances(self) -> tuple[float, float]:
        return 2 * self.keep / WHOLE - 1, 0.0

    def variance(self, share: Floats | float) -> Floats:
        p = 2 * self.keep / WHOLE - 1
        variance: Floats = 1 / p**2 - np.asarray(share) ** 2
        return variance

    def ratio(self) -> Fraction:
        return Fraction(self.keep, WHOLE - self.keep)


@dataclass(frozen=True)
class Hashing(Randomiser):
    """The value hashed to one of few by a function of a public pool, drawn fairly; then a Response about that."""

    kind: ClassVar[str] = "hashing"
    epsilon: Fraction
    size: int
    inner: Response = field(init=False)
    width: int = 3

    def __post_init__(self) -> None:
        buckets = min(round(math.exp(min(float(self.epsilon), 5.0))) + 1, 256)
        object.__setattr__(self, "inner", Response(self.epsilon, max(buckets, 2)))

    def encode(self, values: Integers) -> Bytes:
        functions = entropy.words16(len(values)).astype(np.int64)
        drawn = self.inner.draw(hashed(functions, values, self.inner.size))
        return np.concatenate((_bytes(functions, 2), _bytes(drawn, 1)), axis=1)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return reports[:, 2] < self.inner.size

    def count(self, reports: Bytes) -> Integers:
        pairs = _whole(reports[:, :2]) * self.inner.size + reports[:, 2]
        return np.bincount(pairs, minlength=POOL * self.inner.size).astype(np.int64)

    def supports(self, counts: Integers, values: Integers) -> Floats:
        functions = np.arange(POOL)
        offsets, found = functions * self.inner.size, np.empty(len(values))
        for place, value in enumerate(values.tolist()):
            found[place] = counts[offsets + hashed(functions, np.int64(value), self.inner.size)].sum()
        return found

    def chances(self) -> tuple[float, float]:
        return self.inner.keep / WHOLE, 1 / self.inner.size

    def ratio(self) -> Fraction:
        return self.inner.ratio()


RANDOMISERS: dict[str, type[Any]] = {each.kind: each for each in (Response, Unary, Subset, Hadamard, Hashing)}


def hashed(functions: Integers, values: Any, buckets: int) -> Integers:
    """Returns the bucket of each value by each function of the pool: (a * value + b mod 2^64) >> 32, spread over the buckets.

    Strongly universal for values below 2^32: two values meet in a bucket as often as by chance.
    """
    a, b = _functions()
    mixed = (a[functions] * np.asarray(values).astype(np.uint64) + b[functions]) >> np.uint64(32)
    return ((mixed * np.uint64(buckets)) >> np.uint64(32)).astype(np.int64)


@lru_cache(maxsize=1)
def _functions() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the factors and summands of the pool: the 64-bit finaliser of splitmix on 1, 2, 3, ..., public constants."""
    x = np.arange(1, 2 * POOL + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x[:POOL], x[POOL:]


def _in_parts(encode: Callable[[Integers], Bytes], values: Integers) -> Bytes:
    """Encodes reports of many bytes some at a time."""
    return np.concatenate([encode(values[first : first + _ROWS]) for first in range(0, max(len(values), 1), _ROWS)])


_ONES = np.array([value.bit_count() for value in range(256)], dtype=np.int64)


def _parity(values: Integers) -> NDArray[np.bool_]:
    found = values.copy()
    for shift in (16, 8, 4, 2, 1):
        found ^= found >> shift
    return (found & 1).astype(np.bool_)


def _bytes(values: Integers, width: int) -> Bytes:
    """Returns whole numbers as rows of bytes, the lowest first."""
    return np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)[:, :width]


def _whole(rows: Bytes) -> Integers:
    wide = np.zeros((len(rows), 8), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view("<u8").ravel().astype(np.int64)


def _no_spare_bits(reports: Bytes, size: int) -> NDArray[np.bool_]:
    """Returns which rows have no bit beyond the values in their last byte."""
    spare = 8 * reports.shape[1] - size
    empty: NDArray[np.bool_] = (reports[:, -1] & np.uint8((1 << spare) - 1)) == 0
    return empty


def _column_sums(reports: Bytes, size: int) -> Integers:
    """Adds up the bits of each column, in blocks that cannot overflow a byte."""
    sums = np.zeros(size, dtype=np.int64)
    for first in range(0, len(reports), _PLUS):
        sums += np.unpackbits(reports[first : first + _PLUS], axis=1, count=size).sum(axis=0, dtype=np.uint8)
    return sums


def _orders(rows: int, size: int, last: Integers) -> Integers:
    """Draws a fair order of the values other than `last` in each row, as ranks from 0; `last` gets the last rank.

    Words that are equal in a row would favour some order, so such a row is drawn again.
    """
    words = entropy.words64(rows * size).reshape(rows, size) >> np.uint64(1)
    words[np.arange(rows), last] = np.uint64(2**64 - 1)
    order = np.argsort(words, axis=1)
    sorted_words = np.take_along_axis(words, order, axis=1)
    equal = np.flatnonzero((sorted_words[:, 1:] == sorted_words[:, :-1]).any(axis=1))
    ranks: Integers = np.empty((rows, size), dtype=np.int64)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(size), (rows, size)), axis=1)
    if equal.size:
        ranks[equal] = _orders(len(equal), size, last[equal])
    return ranks
