"""Every formula of `dither.privacy.sensitivity` against all pairs of neighbouring tables over a small universe."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms.geometric import Geometric
from dither.privacy import sensitivity as s
from dither.privacy.neighbours import AddRemove, Group, Neighbours, Replace, one_step

LOW, HIGH, MIDDLE = Fraction(-1), Fraction(2), Fraction(1, 2)
VALUES = (LOW, Fraction(0), MIDDLE, HIGH)
Table = tuple[Fraction, ...]


def tables(sizes: range, values: tuple[Fraction, ...] = VALUES) -> Iterator[Table]:
    for n in sizes:
        yield from itertools.combinations_with_replacement(values, n)


@cache
def neighbouring(sizes: range, values: tuple[Fraction, ...], relation: Neighbours) -> list[tuple[Table, Table]]:
    """All pairs of tables of these sizes that the relation calls neighbours, by counting what is only in one of them."""
    counted = [(table, tuple(table.count(v) for v in values)) for table in tables(sizes, values)]
    found = []
    for (left, a), (right, b) in itertools.combinations(counted, 2):
        moves = [x - y for x, y in zip(a, b, strict=True)]
        out, into = sum(m for m in moves if m > 0), -sum(m for m in moves if m < 0)
        replacing = isinstance(one_step(relation), Replace)
        if out == into <= relation.steps if replacing else out + into <= relation.steps:
            found.append((left, right))
    return found


def enumerated(
    statistic: Callable[[Table], Fraction | tuple[Fraction, ...]],
    relation: Neighbours,
    sizes: range,
    values: tuple[Fraction, ...] = VALUES,
) -> Fraction:
    """The largest L1 distance of the statistic over all neighbouring tables of these sizes."""
    known = {table: statistic(table) for table in tables(sizes, values)}
    worst = Fraction(0)
    for left, right in neighbouring(sizes, values, relation):
        x, y = known[left], known[right]
        pairs = [(x, y)] if isinstance(x, Fraction) else zip(x, y, strict=True)
        worst = max(worst, sum((abs(a - b) for a, b in pairs), start=Fraction(0)))
    return worst


def mean(table: Table, empty: Fraction = MIDDLE) -> Fraction:
    return sum(table, start=Fraction(0)) / len(table) if table else empty


def centred(table: Table, at_least: int) -> Fraction:
    return MIDDLE + sum((x - MIDDLE for x in table), start=Fraction(0)) / max(len(table), at_least)


def lower_median(table: Table) -> Fraction:
    return sorted(table)[(len(table) - 1) // 2] if table else MIDDLE


def midpoint_median(table: Table) -> Fraction:
    if not table:
        return MIDDLE
    ordered = sorted(table)
    return (ordered[(len(table) - 1) // 2] + ordered[len(table) // 2]) / 2


def variance(table: Table, less: int = 0) -> Fraction:
    if len(table) <= less:
        return Fraction(0)
    centre = mean(table)
    return sum(((x - centre) ** 2 for x in table), start=Fraction(0)) / (len(table) - less)


RELATIONS = [AddRemove(), Group(AddRemove(), 2), Group(AddRemove(), 3), Replace(), Group(Replace(), 2)]
SIZED = [
    Replace(1),
    Replace(2),
    Replace(3),
    Replace(4),
    Group(Replace(2), 2),
    Group(Replace(3), 2),
    Group(Replace(2), 3),
    Group(Replace(4), 3),
]


def sizes(relation: Neighbours, at_least: int = 0, most: int = 5) -> range:
    inner = one_step(relation)
    if isinstance(inner, Replace):
        return range(inner.n, inner.n + 1) if inner.n else range(max(at_least, 1), most + 1)
    return range(at_least, most + 1)


@pytest.mark.parametrize("relation", RELATIONS + SIZED, ids=repr)
def test_count_sum_extremes_and_histogram(relation: Neighbours) -> None:
    over = sizes(relation, most=4)
    assert s.count(relation) == enumerated(lambda t: Fraction(sum(x > 0 for x in t)), relation, over)
    assert s.sum(LOW, HIGH, relation) == enumerated(lambda t: sum(t, start=Fraction(0)), relation, over)
    assert s.maximum(LOW, HIGH, relation) == enumerated(lambda t: max(t, default=MIDDLE), relation, over)
    assert s.minimum(LOW, HIGH, relation) == enumerated(lambda t: min(t, default=MIDDLE), relation, over)
    assert s.histogram(relation) == enumerated(lambda t: tuple(Fraction(t.count(v)) for v in VALUES), relation, over)
    assert s.thresholds(3, relation) == enumerated(
        lambda t: tuple(Fraction(sum(x <= p for x in t)) for p in VALUES[:3]), relation, over
    )


@pytest.mark.parametrize("relation", RELATIONS + SIZED, ids=repr)
@pytest.mark.parametrize("at_least", [0, 1, 2, 3])
def test_mean_and_medians(relation: Neighbours, at_least: int) -> None:
    over = sizes(relation, at_least, most=6)
    values = (LOW, MIDDLE, HIGH)
    assert s.mean(LOW, HIGH, relation, at_least=at_least) == enumerated(mean, relation, over, values)
    assert s.median(LOW, HIGH, relation, at_least=at_least) == enumerated(lower_median, relation, over, values)
    claimed = s.median(LOW, HIGH, relation, at_least=at_least, convention="midpoint")
    assert claimed == enumerated(midpoint_median, relation, over, values)


@pytest.mark.parametrize("empty", [LOW, Fraction(0), MIDDLE, HIGH])
def test_the_empty_table_counts_when_it_is_possible(empty: Fraction) -> None:
    claimed = s.mean(LOW, HIGH, empty=empty)
    assert claimed == enumerated(lambda t: mean(t, empty), AddRemove(), range(4))


@pytest.mark.parametrize("at_least", [1, 2, 3])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_the_centred_mean_keeps_its_sensitivity_over_every_table(at_least: int, steps: int) -> None:
    relation = Group(AddRemove(), steps)
    claimed = s.centred_mean(LOW, HIGH, at_least, relation)
    assert claimed == enumerated(lambda t: centred(t, at_least), relation, range(9), (LOW, HIGH))


@pytest.mark.parametrize("relation", [Replace(), Replace(2), Replace(4), Group(Replace(2), 3), Group(Replace(), 2)], ids=repr)
@pytest.mark.parametrize("at_least", [1, 3])
def test_the_centred_mean_under_replace(relation: Neighbours, at_least: int) -> None:
    over = sizes(relation, 1, most=5)
    assert s.centred_mean(LOW, HIGH, at_least, relation) == enumerated(lambda t: centred(t, at_least), relation, over)


@pytest.mark.parametrize("relation", [AddRemove(), Replace(), Group(Replace(), 2), *SIZED], ids=repr)
@pytest.mark.parametrize("at_least", [0, 1, 2, 3])
@pytest.mark.parametrize("sample", [False, True])
def test_variance(relation: Neighbours, at_least: int, sample: bool) -> None:
    over = sizes(relation, at_least, most=6)
    claimed = s.variance(LOW, HIGH, relation, at_least=at_least, sample=sample)
    assert claimed == enumerated(lambda t: variance(t, int(sample)), relation, over, (LOW, MIDDLE, HIGH))


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("at_least", [0, 1, 2, 3])
@pytest.mark.parametrize("sample", [False, True])
def test_variance_of_groups_under_add_remove_is_bounded(steps: int, at_least: int, sample: bool) -> None:
    relation = Group(AddRemove(), steps)
    found = enumerated(lambda t: variance(t, int(sample)), relation, range(at_least, 7), (LOW, MIDDLE, HIGH))
    assert found <= s.variance(LOW, HIGH, relation, at_least=at_least, sample=sample)


def test_means_of_several_attributes_add_up() -> None:
    points = tuple(itertools.product((LOW, HIGH), repeat=2))
    worst = max(
        sum((abs(sum(x[i] for x in left) - sum(x[i] for x in right)) for i in range(2)), start=Fraction(0)) / 3
        for left in itertools.combinations_with_replacement(points, 3)
        for right in itertools.combinations_with_replacement(points, 3)
        if (Counter(left) - Counter(right)).total() <= 1
    )
    assert s.attribute_means([(LOW, HIGH)] * 2, Replace(3)) == worst


def test_enumeration_exposes_a_smaller_formula() -> None:
    """Twins that must fail: the errors seen in released systems."""
    halved_range = (HIGH - LOW) ** 2 / 4 * Fraction(3, 16)  # variance over [-B, B] with B^2 for (2B)^2
    assert enumerated(variance, Replace(4), range(4, 5)) > halved_range
    assert enumerated(lambda t: tuple(Fraction(t.count(v)) for v in VALUES), Replace(), range(1, 4)) > s.histogram(AddRemove())
    assert enumerated(lambda t: sum(t, start=Fraction(0)), Replace(), range(1, 4)) > s.sum(LOW, HIGH, AddRemove())
    assert enumerated(mean, Replace(), range(3, 6)) > s.mean(LOW, HIGH, AddRemove(), at_least=3)
    assert enumerated(mean, AddRemove(), range(5)) > s.mean(LOW, HIGH, at_least=2)


def test_mean_age_worked_example() -> None:
    """Ages 0 to 120: with at least 100 records, and with no restriction."""
    assert s.mean(0, 120, at_least=100) == Fraction(120, 101)
    assert s.mean(0, 120, Replace(), at_least=100) == Fraction(120, 100)
    assert s.mean(0, 120, Replace()) == 120  # a table of one person
    assert s.mean(0, 120, empty=0) == 120  # nobody, then one person of 120
    assert s.mean(0, 120) == 60  # nobody is given the middle, 60
    assert isinstance(s.mean(), s.Unbounded)


@given(
    low=st.fractions(-50, 50, max_denominator=8),
    width=st.fractions("1/8", 50, max_denominator=8),
    scale=st.fractions("1/8", 9, max_denominator=8),
)
def test_sensitivities_scale_with_the_range(low: Fraction, width: Fraction, scale: Fraction) -> None:
    for statistic, power in ((s.sum, 1), (s.mean, 1), (s.median, 1), (s.maximum, 1), (s.variance, 2)):
        for relation in (AddRemove(), Replace(7), Group(Replace(), 3)):
            one = statistic(low, low + width, relation)
            many = statistic(low * scale, (low + width) * scale, relation)
            assert isinstance(one, Fraction)
            assert many == one * scale**power


@given(k=st.integers(1, 9), n0=st.integers(1, 9))
def test_a_group_is_never_hidden_better_than_its_chain_allows(k: int, n0: int) -> None:
    for statistic in (s.mean, s.median, s.variance):
        for relation in (AddRemove(), Replace()):
            one, many = (statistic(0, 1, r, at_least=n0) for r in (relation, Group(relation, k)))
            assert one <= many <= k * one


@pytest.mark.parametrize("statistic", [s.sum, s.mean, s.median, s.variance, s.maximum, s.minimum])
def test_without_bounds_the_answer_is_a_reason(statistic: Callable[..., object]) -> None:
    for bounds in ((), (0, float("inf")), (float("-inf"), 0), (None, 5)):
        found = statistic(*bounds)
        assert isinstance(found, s.Unbounded)
        assert "declare bounds" in str(found)


def test_a_sensitivity_feeds_straight_into_a_mechanism_and_a_reason_does_not() -> None:
    assert Geometric(epsilon=1, sensitivity=s.histogram(Replace())).scale == 2
    with pytest.raises(ArgumentError, match="sensitivity"):
        Geometric(epsilon=1, sensitivity=s.maximum())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: s.sum(3, 3),
        lambda: s.sum(5, 1),
        lambda: s.sum(float("nan"), 1),
        lambda: s.mean(0, 1, AddRemove),  # type: ignore[arg-type]
        lambda: s.mean(0, 1, at_least=-1),
        lambda: s.mean(0, 1, empty=2),
        lambda: s.median(0, 1, convention="upper"),  # type: ignore[arg-type]
        lambda: s.thresholds(0),
        lambda: s.attribute_means([]),
        lambda: Replace(0),
        lambda: Group(AddRemove(), 0),
        lambda: Group(Group(AddRemove(), 2), 2),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError, match="Fix"):
        call()
