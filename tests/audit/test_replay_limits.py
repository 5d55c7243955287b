"""The limits of replay: what it leaves open, how small its counterexamples are, and its parts."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from audit.test_replay import (
    mean_by_exact_count,
    mean_of_two_releases,
    noisy_sum,
    released_sum,
    sum_with_half_noise,
    sum_with_nan,
    total,
)
from dither.audit.replay.observe import read
from dither.audit.replay.pairs import source
from dither.audit.replay.replay import replay
from dither.audit.replay.tape import Tape
from dither.audit.verdict import NOT_FOUND, VIOLATES
from dither.errors import ArgumentError

# --- what must not be claimed ----------------------------------------------------------------------------------------


def noisy_max(data: Any, noise: Any) -> Any:
    return int(np.argmax([value + noise.laplace(2) for value in data]))


def absolute(data: Any, noise: Any) -> Any:
    return abs(len(data) + noise.laplace(1))


def sparse(data: Any, noise: Any) -> Any:
    level, answers = 2 + noise.laplace(2), []
    for value in data:
        answers.append(bool(value + noise.laplace(4) >= level))
        if answers[-1]:
            break
    return answers


def truth_or_not(data: Any, noise: Any) -> Any:
    return [value % 2 if noise.uniform() < math.e / (1 + math.e) else 1 - value % 2 for value in data]


@pytest.mark.parametrize("function", [noisy_max, sparse, truth_or_not])
def test_outputs_that_hide_their_noise_are_left_to_the_black_box(function: Any) -> None:
    verdict = replay(function, 1, data="answers", examples=100)
    assert verdict.outcome == NOT_FOUND, str(verdict)
    assert verdict.evidence["not concluded"]


def keys_above_a_threshold(data: Any, noise: Any) -> Any:
    counts = Counter(data)
    noisy = {key: noise.laplace(1, at=counts[key]) for key in sorted(counts, key=str)}
    return {key: value for key, value in noisy.items() if value > 1 + math.log(1 / (2 * 1e-6))}


def scale_from_a_release(data: Any, noise: Any) -> Any:
    count = len(data) + noise.laplace(2)
    return [count, total(data) + noise.laplace(40 if count > 3 else 20)]


def scale_from_the_count(data: Any, noise: Any) -> Any:
    count = len(data) + noise.laplace(2)
    return [count, total(data) + noise.laplace(40 if len(data) > 3 else 20)]


def test_keys_above_a_threshold_are_not_accused() -> None:
    verdict = replay(keys_above_a_threshold, 1, Fraction(1, 10**6), data="words", examples=100)
    assert verdict.outcome == NOT_FOUND, str(verdict)


def test_a_scale_may_follow_a_release_and_not_the_data() -> None:
    assert replay(scale_from_a_release, 1, examples=100).outcome == NOT_FOUND
    assert replay(scale_from_the_count, 1, examples=100).outcome == VIOLATES


def test_no_loss_is_claimed_where_two_noises_give_one_output() -> None:
    verdict = replay(absolute, Fraction(1, 2), examples=60)
    assert verdict.outcome == NOT_FOUND
    assert verdict.epsilon == 0


def test_rounded_outputs_are_judged_with_what_rounding_hides_taken_off() -> None:
    def rounded(data: Any, noise: Any) -> Any:
        return round(total(data) + noise.laplace(10))

    verdict = replay(rounded, 1, examples=60)
    assert verdict.outcome == NOT_FOUND
    assert 0.7 < verdict.epsilon <= 1
    assert any("rounded" in note for note in verdict.evidence["not concluded"])
    assert replay(rounded, Fraction(1, 2), examples=60).outcome == VIOLATES


def test_noise_that_is_not_seen_and_seldom_does_anything_is_no_accusation() -> None:
    """Tells the truth all but once in 300 runs: epsilon is 5.7. A few dozen runs do not show it."""
    for seed in range(5):
        dice = random.Random(seed)

        def response(data: list[float], noise: object, dice: random.Random = dice) -> bool:
            return (len(data) > 0) != (dice.random() < 1 / 300)

        assert replay(response, 6, data=[([], [1.0])], examples=3, seed=seed).outcome == NOT_FOUND


def test_an_answer_that_never_lies_is_one() -> None:
    assert replay(lambda data, noise: len(data) > 0, 6, data=[([], [1.0])], examples=3).outcome == VIOLATES


def test_every_poison_is_tried_soon() -> None:
    def clamped(data: list[float], noise: Any) -> float:
        return noise.laplace(1, at=float(np.clip(np.array(data, dtype=float), 0, 1).sum()))

    found = replay(clamped, 1, examples=22)
    assert found.outcome == VIOLATES
    assert "nan" in found.event


def test_whole_noise_that_is_not_seen_concludes_nothing() -> None:
    """Two runs may agree by chance; the verdict must still say that randomness is hidden."""
    dice = random.Random(3)
    verdict = replay(lambda data, noise: len(data) + dice.choice((0, 1)), 1, examples=40)
    assert verdict.outcome == NOT_FOUND
    assert "does not see" in verdict.open


def test_unseen_randomness_is_said() -> None:
    verdict = replay(lambda data, noise: random.random() + len(data), 1, examples=5)
    assert verdict.outcome == NOT_FOUND
    assert "randomness that the adapter does not see" in verdict.open


def test_a_run_that_waits_for_its_noise_ends() -> None:
    def waits(data: Any, noise: Any) -> Any:
        while noise.laplace(1) < 1e9:
            pass

    assert replay(waits, 1, examples=1).outcome == NOT_FOUND


# --- counterexamples -------------------------------------------------------------------------------------------------


def test_a_counterexample_is_small_and_printed() -> None:
    verdict = replay(sum_with_nan, 1, examples=300)
    assert verdict.pair is not None
    assert sorted(map(len, verdict.pair)) == [0, 1]
    assert "nan" in str(verdict)
    assert "violates" in str(verdict)


def test_the_same_seed_finds_the_same() -> None:
    first, again = (replay(mean_by_exact_count, 1, examples=50, seed=7) for _ in range(2))
    assert (first.event, repr(first.pair), first.epsilon) == (again.event, repr(again.pair), again.epsilon)


def test_pairs_of_the_caller_are_used_as_they_are() -> None:
    pairs = [([1, 2], [1, 2, 3]), ([5], [5, 6])]
    assert replay(released_sum, 1, data=pairs, examples=2).outcome == NOT_FOUND
    assert replay(sum_with_half_noise, 1, data=pairs, examples=2).pair == ([5], [5, 6])
    made = replay(sum_with_half_noise, 1, data=lambda dice: ([], [float(dice.randint(6, 10))]), examples=2)
    assert made.outcome == VIOLATES


def test_a_hypothesis_strategy_gives_pairs_and_shrinks_them() -> None:
    lists = st.lists(st.floats(0, 10), max_size=4)
    pairs = st.tuples(lists, st.floats(0, 10)).map(lambda both: (both[0], [*both[0], both[1]]))
    assert replay(released_sum, 1, data=pairs, examples=40).outcome == NOT_FOUND
    found = replay(mean_by_exact_count, 1, data=pairs, examples=40)
    assert found.outcome == VIOLATES
    assert found.pair is not None
    assert sum(map(len, found.pair)) <= 3


def test_the_package_does_without_hypothesis() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from dither.audit.replay.replay import replay\n"
        "print(replay(lambda data, noise: len(data) + noise.laplace(1), 1, examples=5).outcome)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == NOT_FOUND


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["numbers", "array", "integers", "words", "counts", "rows", "table"])
def test_neighbours_differ_by_one_unit(name: str) -> None:
    dice = random.Random(3)
    made = source(name)
    for _ in range(200):
        pair = made.pair(dice)
        assert (pair.one is None) or (pair.two is None)
        for smaller in list(made.smaller(pair))[:20]:
            assert (smaller.one is None) == (pair.one is None)
            assert (smaller.two is None) == (pair.two is None)
            made.built(smaller)


def test_poison_is_among_the_data() -> None:
    dice, made = random.Random(1), source("rows")
    seen = [row["value"] for _ in range(500) for side in made.built(made.pair(dice)) for row in side]
    assert None in seen
    assert math.inf in seen
    assert any(value != value for value in seen if value is not None)


def test_what_is_seen_of_an_output() -> None:
    facts, numbers = read({"a": np.array([1, 2]), "b": (None, "x", True, math.inf)})
    assert numbers == {"['a'][0]": 1, "['a'][1]": 2}
    assert facts["holes"] == "['b'][0] is None, ['b'][3] is inf"
    assert facts["words"] == "['b'][1] = x, ['b'][2] = True"
    assert read([1])[0] != read([1.0])[0]
    assert read({"a": 1, "b": 2})[0] != read({"b": 2, "a": 1})[0]


def test_frozen_releases_are_passed_on() -> None:
    first = Tape(5)
    given = first.additive("laplace", 2.0, at=10.0)
    second = Tape(5, like=first.draws)
    assert second.additive("laplace", 2.0, at=11.0) == given
    assert second.draws[0].noise[0] == pytest.approx(first.draws[0].noise[0] - 1)
    assert Tape(5).additive("laplace", 2.0, at=11.0) == pytest.approx(given + 1)


def test_data_used_after_a_release_is_noted() -> None:
    def hidden(data: Any, noise: Any) -> Any:
        return noise.laplace(20, at=total(data)) * noise.laplace(2, at=len(data)) + len(data)

    notes = replay(hidden, 1, examples=20).evidence["not concluded"]
    assert any(note.startswith("equal releases, but different") for note in notes)
    assert not any(
        note.startswith("equal releases") for note in replay(mean_of_two_releases, 1, examples=20).evidence["not concluded"]
    )


def test_wrong_arguments_are_refused() -> None:
    bad: list[dict[str, Any]] = [{"data": "people"}, {"noise": "loud"}, {"neighbours": "far"}, {"examples": 0}, {"data": 3}]
    for how in bad:
        with pytest.raises(ArgumentError):
            replay(noisy_sum, 1, **how)
    with pytest.raises(ArgumentError):
        replay(noisy_sum, -1)
