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
from dither.exact.samplers.choice import Classes, draw_index
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
