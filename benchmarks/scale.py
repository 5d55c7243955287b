"""Simulates how a question about 10^9 people in 10^11 rows spreads over 1,000 executors: bytes shuffled, and uneven persons.

    python benchmarks/scale.py                  the table of docs/scale.md
    python benchmarks/scale.py --sample 1e6     fewer simulated persons

Persons have rows by a power law (a few have very many) in at most as many groups as a question has. A sample of them is drawn;
the rest is like it. Bytes are those of Spark's rows: 8 of flags, 8 for each field, text in steps of 8. Two ways are compared:
`gather` sends every row to the executor of its person. `sums` first adds up where rows lie, and shuffles twice: by person and
group, and then by person, with the hash by which groups are chosen. Rows are as wide as Spark's plans show them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PEOPLE, ROWS, EXECUTORS, PARTITIONS = 10**9, 10**11, 1000, 20_000
TASKS = 100_000  # that read files: a person's rows are scattered over them
GROUPS, KEPT, SHARES = 50, 3, 3
_TEXT, _HASH = 16, 64  # of a short text, such as a region, and of the digits of a hash


@dataclass(frozen=True)
class Spread:
    """What a question moves: bytes per person in all shuffles, and the fullest partition of the first against the mean."""

    name: str
    bytes_per_person: float
    fullest: float
    largest_gb: float


def row_bytes(numbers: int, texts: int) -> int:
    """Returns the size of a row in a shuffle.

    >>> row_bytes(2, 1)
    48
    """
    return 8 + 8 * (numbers + texts) + _TEXT * texts


def draw(sample: int, tail: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Returns the rows of each person: a power law with the mean of the whole table; at most a thousandth of all rows."""
    rows = rng.pareto(tail, sample) + 1
    return np.minimum(np.maximum(np.round(rows * (ROWS / PEOPLE) / rows.mean()), 1), ROWS / 1000)


def heaviest(tail: float) -> float:
    """Returns the rows of the heaviest of all persons: a sample would not have them."""
    return min(PEOPLE ** (1 / tail) * (ROWS / PEOPLE) * (tail - 1) / tail, ROWS / 1000)


def pairs_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the pairs of person and group after adding up in each task: scattered rows are alone in theirs."""
    return np.minimum(rows, TASKS * np.minimum(rows, GROUPS))


def spread(name: str, rows: NDArray[np.float64], tail: float) -> list[Spread]:
    """Returns both ways. The fullest partition has its share of all persons, and the heaviest of them."""
    row, pair = row_bytes(2, 1), row_bytes(1 + SHARES, 1)
    chosen = row_bytes(1 + SHARES + 1, 1) + _HASH  # with the hash
    one = np.array([heaviest(tail)])
    last = KEPT * row_bytes(1 + SHARES, 1) / 100  # the last grouping is added up before it is shuffled
    ways = (
        ("gather", rows * row, 0.0, float(one[0] * row)),
        ("sums", pairs_of(rows) * pair, np.minimum(rows, GROUPS) * chosen, float(pairs_of(one)[0] * pair) / GROUPS),
    )
    result = []
    for way, first, second, heavy in ways:
        mean = float(first.mean()) * PEOPLE / PARTITIONS
        moved = float(np.mean(first + second)) + last
        result.append(Spread(f"{name}, {way}", moved, (mean + heavy) / mean, (mean + heavy) / 1e9))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sample", type=float, default=5e6, help="persons that are drawn")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    print(f"{PEOPLE:.0e} people, {ROWS:.0e} rows, {EXECUTORS:,} executors, {PARTITIONS:,} partitions; before compression")
    print(f"{'':34} {'bytes per person':>17} {'per executor':>13} {'fullest / mean':>15} {'fullest':>9}")
    for name, tail in (("nearly even (tail 8)", 8.0), ("uneven (tail 2)", 2.0), ("very uneven (tail 1.2)", 1.2)):
        for each in spread(name, draw(int(options.sample), tail, rng), tail):
            total = each.bytes_per_person * PEOPLE / EXECUTORS / 1e9
            print(
                f"{each.name:34} {each.bytes_per_person:17,.0f} {total:10.1f} GB {each.fullest:15.2f} {each.largest_gb:6.2f} GB"
            )
    print("\nwidths: 2^40 rows are proved; a sum is a BIGINT up to 2^22 steps for each row, then a DECIMAL(38, 0) up to 2^86")


if __name__ == "__main__":
    main()
