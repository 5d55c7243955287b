"""Composition, group privacy and post-processing, as properties of random small mechanisms with exact probabilities."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from textbook.tables import Row, Table, both, chain_ratio, excess, image, ratio, row, tables, then

pairs = tables(inputs=2)


@given(first=pairs, second=pairs)
def test_sequential_composition_adds_epsilon(first: Table, second: Table) -> None:
    together = tuple(both(a, b) for a, b in zip(first, second, strict=True))
    assert chain_ratio(together) <= chain_ratio(first) * chain_ratio(second)


def test_sequential_composition_needs_the_whole_sum() -> None:
    """The twin: the same release twice costs twice, and nothing less."""
    mechanism = row([2, 1]), row([1, 2])
    twice = tuple(both(r, r) for r in mechanism)
    assert chain_ratio(twice) == chain_ratio(mechanism) ** 2


@given(first=pairs, later=st.lists(pairs, min_size=3, max_size=3))
def test_adaptive_composition_adds_epsilon(first: Table, later: list[Table]) -> None:
    """The second mechanism is chosen by the first output; the price is the dearest choice."""
    together = tuple(then(first[data], lambda output, data=data: later[output][data]) for data in (0, 1))
    assert chain_ratio(together) <= chain_ratio(first) * max(chain_ratio(table) for table in later)


def test_adaptive_composition_cannot_charge_the_average_choice() -> None:
    """The twin: the expensive branch is taken rarely, and still decides."""
    first, cheap, dear = (row([9, 1]), row([9, 1])), (row([1, 1]), row([1, 1])), (row([9, 1]), row([1, 9]))
    together = tuple(then(first[data], lambda output, data=data: (cheap, dear)[output][data]) for data in (0, 1))
    assert chain_ratio(together) == 9


# Parallel composition: a part holds nobody (0), a person with value a (1), or with value b (2).
NOBODY, A, B = 0, 1, 2


def in_part(table: Table) -> Fraction:
    """e^epsilon of a part's mechanism under add/remove within the part."""
    return max(ratio(table[NOBODY], table[A]), ratio(table[NOBODY], table[B]))


def on(parts: tuple[Table, Table], data: tuple[int, int]) -> Row:
    return both(parts[0][data[0]], parts[1][data[1]])


@given(left=tables(inputs=3), right=tables(inputs=3))
def test_parallel_composition_is_the_largest_under_add_remove(left: Table, right: Table) -> None:
    largest = max(in_part(left), in_part(right))
    for value in (A, B):
        for other in (NOBODY, A, B):
            assert ratio(on((left, right), (NOBODY, other)), on((left, right), (value, other))) <= largest
            assert ratio(on((left, right), (other, NOBODY)), on((left, right), (other, value))) <= largest


@given(left=tables(inputs=3), right=tables(inputs=3))
def test_parallel_composition_doubles_under_replace(left: Table, right: Table) -> None:
    """A replaced person stays in a part with another value, or leaves one part and enters the other."""
    largest, parts = max(in_part(left), in_part(right)), (left, right)
    for before, after in [((A, NOBODY), (B, NOBODY)), ((NOBODY, A), (NOBODY, B)), ((A, NOBODY), (NOBODY, B)), ((B, A), (A, A))]:
        assert ratio(on(parts, before), on(parts, after)) <= largest**2


def test_parallel_composition_under_replace_needs_the_factor_two() -> None:
    """The twins: one part's price is exceeded by moving, the sum of the two largest by staying."""
    dear = row([2, 2]), row([4, 1]), row([1, 4])
    cheap = row([10, 11]), row([11, 10]), row([10, 11])
    assert ratio(on((dear, dear), (A, NOBODY)), on((dear, dear), (NOBODY, A))) > in_part(dear)
    assert ratio(on((dear, cheap), (A, NOBODY)), on((dear, cheap), (B, NOBODY))) > in_part(dear) * in_part(cheap)


@given(table=tables(inputs=5), k=st.integers(1, 4))
def test_group_privacy_by_a_chain_of_neighbours(table: Table, k: int) -> None:
    assert ratio(table[0], table[k]) <= chain_ratio(table) ** k


def test_group_privacy_needs_the_whole_chain() -> None:
    """The twin: an output whose probability doubles at every step reaches e^{k epsilon}."""
    table = tuple(row([2**k, 1000]) for k in range(5))
    assert ratio(table[0], table[4]) > chain_ratio(table) ** 3


@given(table=tables(inputs=5), factor=st.fractions("21/20", 3, max_denominator=20), k=st.integers(1, 4))
def test_group_privacy_with_delta(table: Table, factor: Fraction, k: int) -> None:
    """delta grows to delta (e^{k epsilon} - 1) / (e^epsilon - 1)."""
    delta = max(max(excess(a, b, factor), excess(b, a, factor)) for a, b in pairwise(table))
    assert excess(table[0], table[k], factor**k) <= delta * (factor**k - 1) / (factor - 1)


def test_group_privacy_with_delta_needs_more_than_k_times_delta() -> None:
    """The twin: output 1 starts at delta and is multiplied by 3 on its way, so k delta is too little."""
    factor, delta = Fraction(3), Fraction(1, 100)
    shares = [Fraction(0), delta, delta * 4, delta * 13]
    table = tuple((1 - p, p) for p in shares)
    assert max(excess(b, a, factor) for a, b in pairwise(table)) == delta
    assert excess(table[3], table[0], factor**3) == 13 * delta > 3 * delta


@given(
    table=pairs,
    channel=st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2).filter(any).map(row), min_size=3, max_size=3),
)
def test_post_processing_is_free(table: Table, channel: list[Row]) -> None:
    """Any function of the output, randomized or not, keeps both epsilon and every delta."""
    after = tuple(image(r, channel) for r in table)
    for factor in (Fraction(1), Fraction(3, 2), chain_ratio(table)):
        assert excess(*after, factor) <= excess(*table, factor)
    assert all(a <= chain_ratio(table) * b for left, right in (after, after[::-1]) for a, b in zip(left, right, strict=True))


def test_looking_at_the_data_again_is_not_post_processing() -> None:
    """The twin: the channel itself depends on the data set."""
    table = row([1, 1]), row([1, 1])
    after = image(table[0], [row([3, 1])] * 2), image(table[1], [row([1, 3])] * 2)
    assert ratio(*after) > ratio(*table)
