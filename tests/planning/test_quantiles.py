"""A list of quantiles: one release, by all its outcomes on small tables. Its price, its order, its margins and its ranks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from distribution.allowance import share
from dither.audit.ourselves import compare
from dither.mechanisms import Exponential
from dither.planning.margins import exponentials
from dither.planning.releases import quantiles
from dither.planning.releases.quantile import COVERED
from dither.planning.releases.quantiles import Levels, Node, Part, Several, levels, tree
from dither.planning.releases.ranks import rank_scores, width_runs, widths
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import AddRemove, Replace
from dither.query.nodes import Column
from dither.query.work import SCALE, Histogram, Quantised

QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
OUTER = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
FIVE = (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(19, 20))
Path = tuple[tuple[int, int, int], ...]  # the place, the value and the cut of each quantile
Split = Callable[[Part, int, int], tuple[Part, Part]]


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three places in a step, so that all cuts can be listed. Nothing in the proof depends on their number."""
    monkeypatch.setattr(quantiles, "PLACES", 3)
    yield
    law_of.cache_clear()


def noise_of(
    shares: Sequence[Fraction], steps: int, epsilon: Any = 1, rows: int = 2, groups: int = 1, neighbours: Any = AddRemove
) -> Levels:
    release = Several(Column("x"), Quantised(Column("x"), Fraction(0), Fraction(1), steps), tuple(shares), rows)
    return levels(release.pure(Fraction(epsilon), Bounding(rows, groups, groups, neighbours())))


def several(noise: Levels) -> Several:
    assert isinstance(noise.of, Several)
    return noise.of


# --- the law, over all outcomes -------------------------------------------------------------------------------------------


def logs(mechanism: Exponential, scores: Any, counts: Any = 1) -> Any:
    """The logarithms of all probabilities."""
    exponents = np.asarray(scores, dtype=float) / float(mechanism.scale) + np.log(counts)
    top = exponents.max()
    return exponents - top - np.log(np.exp(exponents - top).sum())


def outcomes(noise: Levels, node: Node, part: Part, split: Split) -> Iterator[tuple[Path, float]]:
    values = logs(noise.values[node.place], part.runs(node.p).expanded())
    for step, first in enumerate(values.tolist()):
        value = part.low + step
        if not node.cuts:
            yield ((node.place, value, 0),), first
            continue
        cuts = logs(noise.cuts[node.place], part.peak(node.p, value).expanded())
        for cut, second in enumerate(cuts.tolist()):
            halves = zip((node.lower, node.upper), split(part, value, cut), strict=True)
            under = [list(outcomes(noise, child, half, split)) for child, half in halves if child is not None]
            for parts in itertools.product(*under):
                paths = itertools.chain.from_iterable(path for path, _ in parts)
                yield ((node.place, value, cut), *paths), first + second + sum(log for _, log in parts)


@cache
def law_of(noise: Levels, rows: tuple[tuple[int, int], ...], split: Split = Part.split) -> dict[Path, float]:
    of = several(noise)
    return dict(outcomes(noise, of.root, Part(Histogram.of(dict(rows)), 0, of.grid.steps), split))


def ratio(noise: Levels, one: dict[int, int], other: dict[int, int], split: Split = Part.split) -> float:
    """The largest log ratio of any outcome, values and cuts."""
    p, q = (law_of(noise, tuple(sorted(rows.items())), split) for rows in (one, other))
    return max(abs(p[path] - q[path]) for path in p)


def width_ratio(noise: Levels, one: dict[int, int], other: dict[int, int]) -> float:
    """The largest log ratio of any outcome, with the widths of all margins."""
    of, (p, q) = several(noise), (law_of(noise, tuple(sorted(rows.items()))) for rows in (one, other))
    wide = {
        (place, value): float(np.abs(_widths(noise, place, value, one) - _widths(noise, place, value, other)).max())
        for place in range(len(of.shares))
        for value in range(of.grid.steps + 1)
    }
    return max(abs(p[path] - q[path]) + sum(wide[place, value] for place, value, _ in path) for path in p)


def _widths(noise: Levels, place: int, value: int, rows: dict[int, int]) -> Any:
    member, width = several(noise).members[place], noise.widths[place]
    runs = width_runs(rows, member.p, value, member.grid.steps, member.slack(width))
    return logs(width, runs.scores, runs.counts)


def tables(steps: int, most: int) -> list[dict[int, int]]:
    """All tables of so many rows at most."""
    found = (rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(range(steps + 1), n))
    return [{b: SCALE * rows.count(b) for b in set(rows)} for rows in found]


def persons(steps: int, rows: int) -> list[dict[int, int]]:
    """What one person may add: up to two rows, or parts of three."""
    heavy = [{0: SCALE * 2 // 3, steps // 2: SCALE * 2 // 3, steps: SCALE * 2 // 3}] if rows > 1 else []
    return [each for each in tables(steps, rows) if each] + heavy


def plus(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    return {b: one.get(b, 0) + other.get(b, 0) for b in one.keys() | other.keys()}


def price(noise: Levels, *, unpaid: int = 0) -> float:
    """What all values and cuts cost, with the values of so many levels left unpaid."""
    count = several(noise).levels
    return float((count - unpaid) * noise.mechanism.epsilon + (count - 1) * noise.cuts[0].epsilon) + 1e-9


def worst(noise: Levels, steps: int, split: Split = Part.split, rows: int = 2, others: int = 2) -> float:
    pairs = itertools.product(tables(steps, others), persons(steps, rows))
    return max(ratio(noise, rest, plus(rest, mine), split) for rest, mine in pairs)


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize(("shares", "steps"), [(QUARTERS, 3), (OUTER, 3), (FIVE, 1)], ids=str)
def test_a_person_moves_all_values_and_cuts_by_what_is_paid_for_them(shares: Sequence[Fraction], steps: int) -> None:
    for epsilon in (1, 10):
        noise = noise_of(shares, steps, epsilon)
        assert worst(noise, steps) <= price(noise)


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
def test_that_every_level_must_be_paid_for() -> None:
    noise = noise_of(QUARTERS, 3, 10, rows=1)
    assert price(noise, unpaid=1) < worst(noise, 3, rows=1, others=3) <= price(noise)


def test_that_cuts_must_be_paid_for() -> None:
    """A person in the chosen value moves the chances of its cuts by all that is paid for them, and no more."""
    noise = noise_of(QUARTERS, 3, 10, rows=1)
    node, mechanism = several(noise).root, noise.cuts[several(noise).root.place]
    found = 0.0
    for rest, mine in itertools.product(tables(3, 2), persons(3, 1)):
        first, second = (Part(Histogram.of(rows), 0, 3).peak(node.p, 1) for rows in (rest, plus(rest, mine)))
        places = range(0, quantiles.PLACES + 1, quantiles.PLACES // 16)
        p, q = (logs(mechanism, [-abs(peak.start + peak.slope * u) for u in places]) for peak in (first, second))
        found = max(found, float(np.abs(p - q).max()))
    assert float(mechanism.epsilon) / 2 < found <= float(mechanism.epsilon) + 1e-9


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
def test_that_a_person_with_two_rows_is_not_one_with_one_row_in_each_part() -> None:
    """The twin: sensitivities of one row, for a person with a row in each of two parts."""
    noise = noise_of(QUARTERS, 3, 4, rows=1)
    assert worst(noise, 3, rows=1) <= price(noise)
    assert worst(noise, 3, rows=2) > price(noise)


def exceeded(noise: Levels, one: dict[int, int], other: dict[int, int]) -> list[str]:
    """What the auditor complains about: moves of a level beyond the price of one part."""
    found = compare.list_moves(several(noise), noise, [(one, other)], noise.steps)
    return [each.words for each in found if each.by > each.most]


@pytest.mark.slow
def test_parts_of_a_level_move_together_by_the_price_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: below and above the middle, quantiles are chosen among all rows, those beyond the cut moved to it."""
    noises, mine = [noise_of(shares, 9) for shares in (QUARTERS, FIVE)], [{2: SCALE, 7: SCALE}, {5: 2 * SCALE}]
    pairs = [(rest, plus(rest, who)) for who in mine for rest in tables(9, 2)[::7]]
    assert not any(exceeded(noise, *pair) for noise in noises for pair in pairs)
    monkeypatch.setattr(Part, "split", shared)
    assert all(any(exceeded(noise, *pair) for pair in pairs) for noise in noises)


def shared(part: Part, value: int, cut: int) -> tuple[Part, Part]:
    rows = [(b, part.rows[b]) for b in part.rows]
    lower, upper = ([(end(b, value), w) for b, w in rows] for end in (min, max))
    both = (Histogram.of({b: sum(w for c, w in each if c == b) for b, _ in each}) for each in (lower, upper))
    return Part(next(both), part.low, value), Part(next(both), value, part.high)


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("neighbours", [AddRemove, Replace])
def test_the_whole_price_covers_values_cuts_and_margins(neighbours: Any) -> None:
    noise = noise_of(OUTER, 3, 1, groups=2, neighbours=neighbours)
    assert noise.loss.epsilon() == 1
    mine = persons(3, 2)
    pairs = itertools.product(mine, [{}] if neighbours is AddRemove else mine[::3])
    found = max(width_ratio(noise, plus(rest, a), plus(rest, b)) for rest in tables(3, 1) for a, b in pairs)
    assert 2 * found <= float(noise.loss.epsilon()) + 1e-9  # in two groups


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
def test_a_replaced_person_costs_two_steps() -> None:
    noise, mine = noise_of(QUARTERS, 3, 10, rows=1), persons(3, 1)
    pairs = itertools.product(tables(3, 3), mine, mine)
    found = max(ratio(noise, plus(rest, one), plus(rest, other)) for rest, one, other in pairs)
    assert price(noise) < found <= 2 * price(noise)  # the twin: one step is not enough


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("changes", [1, 2])
def test_the_second_price_covers_values_and_cuts(changes: int) -> None:
    noise = noise_of(QUARTERS, 3, 2, neighbours=Replace if changes == 2 else AddRemove)
    paid = sum(each.epsilon**2 / 8 for each in noise.paid[: -len(noise.widths)]) * changes**2
    assert noise.zcdp.rho == sum(each.epsilon**2 / 8 for each in noise.paid) * changes**2
    for rest, mine, instead in itertools.product(
        tables(3, 1), persons(3, 2)[::2], persons(3, 2)[::3] if changes == 2 else [{}]
    ):
        p, q = (np.array(list(law_of(noise, tuple(sorted(plus(rest, who).items()))).values())) for who in (mine, instead))
        for order in (1.01, 2.0, 8.0):
            divergence = float(np.log(np.exp(order * p + (1 - order) * q).sum())) / (order - 1)
            assert divergence <= order * float(paid) + 1e-9


# --- what is drawn --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
def test_what_is_drawn_follows_the_listed_law() -> None:
    noise, rows, times = noise_of(QUARTERS, 2, 3), {0: 2 * SCALE, 1: SCALE, 2: 3 * SCALE}, 2000
    expected: dict[tuple[int, ...], float] = {}
    for path, log in law_of(noise, tuple(sorted(rows.items()))).items():
        values = tuple(value for _, value, _ in sorted(path))
        expected[values] = expected.get(values, 0.0) + float(np.exp(log))
    assert sum(expected.values()) == pytest.approx(1)
    drawn = [tuple(row[::2]) for row in noise.release([rows] * times).tolist()]
    allowed = np.sqrt(np.log(2 * len(expected) / share("other", 8)) / (2 * times))  # Hoeffding
    assert all(abs(drawn.count(values) / times - chance) <= allowed for values, chance in expected.items())
    other = law_of(noise, ((0, 6 * SCALE),))  # the twin: another table
    top = max(other, key=lambda path: other[path])
    alike = tuple(value for _, value, _ in sorted(top))
    chance = sum(float(np.exp(log)) for path, log in other.items() if tuple(v for _, v, _ in sorted(path)) == alike)
    assert abs(drawn.count(alike) / times - chance) > allowed


def skewed(rows: int, zeros: float) -> Histogram:
    random = np.random.default_rng(11)
    cents = np.where(random.random(rows) < zeros, 0, np.minimum(random.lognormal(8, 1.5, rows), 10**6)).astype(np.int64)
    bins, counts = np.unique(cents, return_counts=True)
    return Histogram(bins, counts * SCALE)


@pytest.mark.parametrize("epsilon", ["1/100", "1", "100"])
def test_values_never_fall(epsilon: str) -> None:
    noise = noise_of(FIVE, 10**6, epsilon)
    drawn = noise.release([skewed(500, 0.3), {}, {7: SCALE}, {0: SCALE, 10**6: SCALE}] * 5)[:, ::2]
    assert (np.diff(drawn, axis=1) >= 0).all()


def off(rows: Histogram, p: Fraction, value: int) -> float:
    """How many rows a value's rank is off."""
    return -float(rank_scores(rows, p, np.array([value]))[0]) / (SCALE * p.denominator)


def too_far(noise: Levels, rows: Histogram, confidence: Fraction, times: int) -> float:
    """How often a rank was off by more than is stated, the worst of all members."""
    of = several(noise)
    stated = [of.rank(noise, place, confidence) for place in range(len(of.shares))]
    drawn = noise.release([rows] * times)[:, ::2]
    wrong = [
        [off(rows, p, int(v)) > most for v in drawn[:, i]] for i, (p, most) in enumerate(zip(of.shares, stated, strict=True))
    ]
    return max(float(np.mean(each)) for each in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("shares", [OUTER, FIVE], ids=str)
def test_ranks_are_off_by_no_more_than_is_stated(zeros: float, shares: Sequence[Fraction]) -> None:
    rows = skewed(3000, zeros)
    for confidence in (Fraction(1, 2), Fraction(19, 20)):
        assert too_far(noise_of(shares, 10**6, "1/2", rows=1), rows, confidence, 100) <= 1 - confidence


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.5), (3.0, 2.9), (40.0, 1.0)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_sums_of_exponential_variables_reach_as_far_as_is_said(a: float, b: float, confidence: float) -> None:
    def beyond(t: float) -> float:
        return float(a * np.exp(-t / a) - b * np.exp(-t / b)) / (a - b)

    reach = exponentials((a, b), confidence)
    assert beyond(reach) <= 1 - confidence < beyond(reach * 0.98)


def test_that_rows_of_one_value_must_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: all rows of the chosen value go to the lower part. Then the quantiles above it are far off."""
    rows = skewed(20_000, 0.7)
    assert too_far(noise_of(QUARTERS, 10**6, 1, rows=1), rows, Fraction(19, 20), 20) == 0
    split = Part.split
    monkeypatch.setattr(Part, "split", lambda part, value, _: split(part, value, quantiles.PLACES))
    assert too_far(noise_of(QUARTERS, 10**6, 1, rows=1), rows, Fraction(19, 20), 20) > 0.9


# --- margins --------------------------------------------------------------------------------------------------------------


def missed(noise: Levels, rows: dict[int, int], slack: int | None = None) -> float:
    """The probability that an interval leaves out its quantile, over all values and widths; the worst of all members."""
    of, wrong = several(noise), [0.0] * len(several(noise).shares)
    steps, total = of.grid.steps, sum(rows.values())
    upto = np.cumsum([rows.get(b, 0) for b in range(steps + 1)])
    for path, log in law_of(noise, tuple(sorted(rows.items()))).items():
        for place, value, _ in path:
            member, p = of.members[place], of.shares[place]
            truth = [b for b in range(steps + 1) if upto[b] >= p * total >= (upto[b - 1] if b else 0)]
            own = member.slack(noise.widths[place]) if slack is None else slack
            runs = width_runs(rows, p, value, steps, own)
            around = np.array(widths(max(value, steps - value)))
            bad = (value - around > min(truth)) | (value + around < max(truth))
            wrong[place] += float(np.exp(log) * np.exp(logs(noise.widths[place], runs.scores, runs.counts))[bad].sum())
    return max(wrong)


TIED = {0: 6 * SCALE, 2: 9 * SCALE, 3: SCALE, 6: 8 * SCALE}
SPREAD = {b: SCALE * (1 + b % 3) for b in range(8)}


@pytest.mark.slow
@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("rows", [TIED, SPREAD, {}], ids=["tied", "spread", "empty"])
def test_the_margin_of_each_quantile_holds_at_99_percent(rows: dict[int, int]) -> None:
    for epsilon in (1, 20):
        assert missed(noise_of(OUTER, 7, epsilon, rows=1), rows) <= 1 - COVERED


@pytest.mark.usefixtures("few_places")
def test_that_margins_without_slack_would_miss() -> None:
    assert missed(noise_of(OUTER, 7, 1, rows=1), SPREAD, slack=0) > 0.05


# --- the tree -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 19, 99])
def test_every_quantile_is_chosen_once_and_in_few_levels(count: int) -> None:
    shares = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    nodes = list(tree(shares).all())
    assert sorted(node.place for node in nodes) == list(range(count))
    assert max(node.level for node in nodes) + 1 == count.bit_length() == Several(*_blank(), shares, 1).levels
    for node in nodes:
        low = Fraction(0) if node.below is None else shares[node.below]
        high = Fraction(1) if node.above is None else shares[node.above]
        assert low + node.p * (high - low) == shares[node.place]
        assert node.p.denominator <= 1000


def _blank() -> tuple[Column, Quantised]:
    return Column("x"), Quantised(Column("x"), Fraction(0), Fraction(1), 9)


def test_a_list_needs_less_price_than_its_members() -> None:
    """Each value of a list is chosen at a larger epsilon than if the price were split."""
    for count, more in ((3, 1.2), (9, 1.7), (19, 2.9)):
        shares = (
            tuple(Fraction(i, 20) for i in range(1, 20))
            if count == 19
            else tuple(Fraction(i, count + 1) for i in range(1, count + 1))
        )
        noise = noise_of(shares, 100, 1)
        assert float(noise.mechanism.epsilon) > more / (2 * count)
        assert noise.loss.epsilon() == 1
