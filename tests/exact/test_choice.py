"""A choice among weighted candidates keeps its law at any size of gap; balls decide where floats could be wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.exact import balls, replay
from dither.exact.laws.categorical import Categorical
from dither.exact.samplers import uniform
from dither.exact.samplers.choice import Classes, draw_index, draw_run, proposals
from exact.chosen import specified, with_bits

below_best = st.lists(st.fractions(min_value="1/1000", max_value=900, max_denominator=1000), max_size=30, unique=True)
gap_lists = below_best.map(lambda gaps: [Fraction(0), *sorted(gaps)])


def classes(gaps: list[Fraction], counts: list[int]) -> Classes:
    floats = np.array([min(float(g), 1000.0) for g in gaps])
    return Classes(floats, np.array(counts, dtype=np.int64), gaps.__getitem__)


@given(gaps=gap_lists, data=st.data())
def test_running_sums_lie_far_inside_their_margin(gaps: list[Fraction], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 10**6), min_size=len(gaps), max_size=len(gaps)))
    law = classes(gaps, counts)
    with balls.working(200):
        exact = arb(0)
        for j, gap in enumerate(gaps):
            exact += balls.exp(-gap) * counts[j]
            assert abs(balls.ball(Fraction(law.sums[j])) - exact) < law.margin / 100


@given(gaps=gap_lists, u=st.integers(0, 2**64 - 1))
def test_any_word_gives_what_the_specification_gives(gaps: list[Fraction], u: int) -> None:
    law = classes(gaps, [1] * len(gaps))
    word = u.to_bytes(8, "little")
    truth = specified(law, u)
    assert with_bits(word + bytes(8 * 1023), law.draw) == specified(law, u) or near_edge(law, u)
    assert int(with_bits(word, lambda: law.draw(1))[0]) == truth


def near_edge(law: Classes, u: int) -> bool:
    """Returns whether u is at an edge: only there do the further bits matter, which a draw reads from the buffer."""
    return bool(np.any(np.abs(np.asarray(law.sums) - u / 2**64 * law.sums[-1]) <= 2 * law.margin))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
def test_words_at_an_edge_are_decided_by_balls(offset: int) -> None:
    law = classes([Fraction(0), Fraction(1, 3), Fraction(7)], [1, 2, 5])
    edge = balls.floor_near(lambda: law.at_most(0), 64)
    asked: list[int] = []
    original = law.value_at
    law.value_at = lambda u: asked.append(u.prefix) or original(u)  # type: ignore[method-assign]
    found = with_bits((edge + offset).to_bytes(8, "little"), lambda: law.draw(1))
    assert asked == [edge + offset]
    assert int(found[0]) == (
        0 if offset < 0 else specified(classes([Fraction(0), Fraction(1, 3), Fraction(7)], [1, 2, 5]), edge + offset)
    )


def test_huge_gaps_and_huge_fractions_are_safe() -> None:
    assert draw_index(np.array([0, 10**18, 3]), Fraction(10**300)) == 1
    assert draw_index(np.array([-(2**63), 2**63 - 1]), Fraction(1, 10)) == 1
    assert Categorical((0, Fraction(10**400), -Fraction(10**400))).draw() == 1
    assert Categorical((Fraction(10**399 + 1, 10**399), Fraction(1), Fraction(10**9))).draw() == 2
    assert {draw_index(np.array([3, 9, 4]), Fraction(0)) for _ in range(200)} == {0, 1, 2}


def test_a_remote_candidate_has_its_exact_probability_not_zero() -> None:
    law = Categorical((0, -(10**9)))
    with balls.working(64):
        assert law.pmf(1) > 0
        assert law.pmf(1).log() < -(10**9) + 1
    classes_law = classes([Fraction(0), Fraction(10**9)], [1, 1])
    with replay.stream(b"remote"):
        assert classes_law.value_at(type("Last", (), {"below": lambda self, real: False})()) == 1


def test_equal_candidates_are_chosen_alike() -> None:
    law = Categorical((1, 0, 1, 1))
    with balls.working(100):
        assert law.pmf(0).overlaps(law.pmf(3))
    seen = {law.draw() for _ in range(300)} | set(law.draw(300).tolist())
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("scores", [np.array([]), np.array([1.5]), np.array([[1]]), np.array(["a"])])
def test_bad_scores_are_refused(scores: object) -> None:
    with pytest.raises(ArgumentError, match="scores"):
        draw_index(scores, Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rate"):
        draw_index(np.array([1]), Fraction(-1))


def test_dice_are_fair_by_counting_words() -> None:
    # Of the 2^64 words those up to 2^64 - 1 - (2^64 mod n) are kept: a whole number of rounds of n.
    for n in (1, 2, 3, 10, 2**32 + 1, 2**63):
        spare = 2**64 % n
        assert (2**64 - spare) % n == 0
        last_kept, first_lost = 2**64 - 1 - spare, 2**64 - spare
        kept = with_bits(last_kept.to_bytes(8, "little"), lambda n=n: uniform.below_each(np.array([n], dtype=np.uint64)))
        assert int(kept[0]) == n - 1
        if spare:
            both = first_lost.to_bytes(8, "little") + (5).to_bytes(8, "little")
            again = with_bits(both, lambda n=n: uniform.below_each(np.array([n], dtype=np.uint64)))
            assert int(again[0]) == 5 % n
    assert with_bits((2**64 - 1).to_bytes(8, "little") + bytes(8), lambda: uniform.below(6)) == 0


# --- runs of equal candidates ---------------------------------------------------------------------------------------------

run_lists = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**12)), min_size=1, max_size=30)


@given(runs=run_lists, rate=st.fractions(min_value=0, max_value=2, max_denominator=10**6))
def test_proposals_are_never_below_the_exact_weights(runs: list[tuple[int, int]], rate: Fraction) -> None:
    """Then a run is kept with a probability of at most 1, so that kept runs follow their exact weights."""
    gaps, counts = (np.array(part) for part in zip(*runs, strict=True))
    gaps = gaps - gaps.min()
    estimates = counts * np.exp(-np.minimum(gaps * float(rate), 1000))
    shares, power = proposals(estimates)
    assert 0 < sum(map(int, shares)) < 2**62
    with balls.working(200):
        for gap, count, share in zip(gaps.tolist(), counts.tolist(), shares.tolist(), strict=True):
            exact = balls.exp(-rate * gap) * count * arb(2) ** power
            assert exact < share
            assert exact * (1 + arb(2) ** -36) + 2 > share  # and close: few proposals are refused


def test_that_check_can_fail() -> None:
    shares, power = proposals(np.array([1.0, 0.5]) * (1 - 2.0**-30))
    with balls.working(200):
        assert not arb(1) * arb(2) ** power < int(shares[0])


def kept(scores: list[int], counts: list[int], rate: Fraction) -> list[Fraction]:
    """Returns how often each run is drawn, over all proposals and with the exact chance to keep each: to within 2^-90."""
    gaps = np.max(scores) - np.array(scores)
    shares, power = proposals(np.array(counts) * np.exp(-np.minimum(gaps * float(rate), 1000)))
    with balls.working(200):
        chances = [
            int(share) * balls.fraction((balls.exp(-rate * int(gap)) * count * arb(2) ** power / int(share)).mid())
            for share, gap, count in zip(shares, gaps, counts, strict=True)
        ]
    return [chance / sum(chances) for chance in chances]


small = st.lists(st.tuples(st.integers(-40, 0), st.integers(1, 5)), min_size=1, max_size=6)


@given(runs=small, rate=st.fractions(min_value="1/100", max_value=2, max_denominator=100))
def test_runs_follow_the_law_of_all_their_candidates(runs: list[tuple[int, int]], rate: Fraction) -> None:
    scores, counts = (list(part) for part in zip(*runs, strict=True))
    plain = Categorical(tuple(rate * score for score, count in runs for _ in range(count)))
    assert matches(kept(scores, counts, rate), plain, counts)


def matches(found: list[Fraction], plain: Categorical, counts: list[int]) -> bool:
    """Whether each run has the probability of its candidates under the plain law."""
    ends = np.cumsum(counts)
    with balls.working(200):
        exact = [sum((plain.pmf(k) for k in range(end - count, end)), arb(0)) for end, count in zip(ends, counts, strict=True)]
        return all(abs(balls.ball(one) - other) < arb(2) ** -80 for one, other in zip(found, exact, strict=True))


def test_lengths_off_by_one_would_be_noticed() -> None:
    rate, counts = Fraction(1, 3), [2, 1, 4]
    plain = Categorical(tuple(rate * score for score, count in zip([-3, 0, -1], counts, strict=True) for _ in range(count)))
    assert matches(kept([-3, 0, -1], counts, rate), plain, counts)
    assert not matches(kept([-3, 0, -1], [2, 1, 5], rate), plain, counts)


def test_a_run_draws_each_of_its_members() -> None:
    drawn = {draw_run(np.array([0, 1]), np.array([3, 2]), Fraction(1, 2)) for _ in range(500)}
    assert drawn == {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)}
    huge = [draw_run(np.array([0, -(10**15)]), np.array([2**40, 1]), Fraction(1))[1] for _ in range(20)]
    assert 2**30 < max(huge) < 2**40
