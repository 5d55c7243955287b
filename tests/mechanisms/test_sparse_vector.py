"""Sparse vector: one price for a session, by the exact law of its transcripts."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import warnings
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, DitherError
from dither.exact.balls import ball, working
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import SparseVector
from dither.mechanisms.noisy_max import Race
from dither.privacy.losses import Pure
from dither.privacy.proof import verify

counts = st.lists(st.integers(-8, 8), min_size=1, max_size=4)


@settings(max_examples=20, deadline=None)
@given(x=counts, moves=st.lists(st.integers(-1, 1), min_size=4, max_size=4), cutoff=st.integers(1, 3))
def test_every_transcript_stays_within_epsilon(x: list[int], moves: list[int], cutoff: int) -> None:
    watch = SparseVector(epsilon=1, sensitivity=1, threshold=0, cutoff=cutoff)
    y = [a + m for a, m in zip(x, moves, strict=False)]
    assert verify(watch, [(tuple(x), tuple(y))]).holds


def log_ratio(mechanism: SparseVector, x: list[int], y: list[int], transcript: list[bool]) -> arb:
    with working(300):
        return (mechanism.probability(x, transcript) / mechanism.probability(y, transcript)).log()


def test_ten_questions_at_a_tenth_come_close_to_the_price() -> None:
    """Counts alike and far above the threshold; nine times no, then yes; fine steps: 0.0997531 for continuous noise."""
    fine = 1000
    watch = SparseVector(epsilon="0.1", sensitivity=fine, threshold=0)
    x, y = [200 * fine] * 10, [201 * fine] * 9 + [199 * fine]
    found = log_ratio(watch, x, y, [False] * 9 + [True])
    assert round(float(found), 7) == 0.0997531


def test_the_price_is_reached_in_the_limit() -> None:
    watch = SparseVector(epsilon=1, sensitivity=1, threshold=0)
    found = log_ratio(watch, [40] * 9 + [-40], [41] * 9 + [-41], [False] * 9 + [True])
    assert found < ball(1)
    assert found > ball(Fraction(999, 1000))


def test_a_tenth_less_noise_breaks_the_price() -> None:
    less = SparseVector(epsilon=Fraction(10, 9), sensitivity=1, threshold=0)
    assert log_ratio(less, [300] * 9 + [-300], [301] * 9 + [-301], [False] * 9 + [True]) > ball(1)


def planted(scale: int, power: int, x: list[int], transcript: list[bool]) -> arb:
    """A session whose questions get noise of `scale`, and whose threshold gets 1/power of that."""
    refused = tuple(c + 1 for c, yes in zip(x, transcript, strict=True) if not yes)
    accepted = tuple(c + 1 for c, yes in zip(x, transcript, strict=True) if yes)
    return Race(Fraction(scale), 0, power, refused, accepted).probability()


def test_noise_that_ignores_the_cutoff_is_broken() -> None:
    """A known bug: with cutoff 4, threshold noise 2/epsilon and question noise 4/epsilon whatever the cutoff."""
    x, y = [300] * 9 + [-300] * 4, [301] * 9 + [-301] * 4
    transcript = [False] * 9 + [True] * 4
    honest = SparseVector(epsilon=1, sensitivity=1, threshold=0, cutoff=4)
    assert not log_ratio(honest, x, y, transcript) > ball(1)
    with working(300):
        assert (planted(4, 2, x, transcript) / planted(4, 2, y, transcript)).log() > ball(Fraction(12, 5))


def test_no_cutoff_is_broken() -> None:
    """A known bug: a session priced for one yes that goes on."""
    watch = SparseVector(epsilon=1, sensitivity=1, threshold=0, cutoff=1)
    x, y = [300] * 9 + [-300] * 8, [301] * 9 + [-301] * 8
    assert log_ratio(watch, x, y, [False] * 9 + [True] * 8) > ball(4)


def by_summation(watch: SparseVector, x: list[int], transcript: tuple[bool, ...]) -> arb:
    bound, noise, total = watch.threshold_noise(), watch.question_noise(), arb(0)
    for r in range(-400, 401):
        term = bound.pmf(r)
        for count, yes in zip(x, transcript, strict=False):
            edge = watch.threshold + r - count
            term *= noise.more_than(edge - 1) if yes else noise.at_most(edge - 1)
        total += term
    return total


@pytest.mark.parametrize("cutoff", [1, 2])
def test_the_law_is_the_sum_over_the_noisy_threshold(cutoff: int) -> None:
    watch = SparseVector(epsilon=2, sensitivity=1, threshold=3, cutoff=cutoff)
    x = [2, 5, 3]
    law = watch.law(x)
    with working(200):
        found = [k for k in range(16) if not law.pmf(k).is_zero()]
        for k in found:
            assert abs(law.pmf(k) - by_summation(watch, x, watch.outcome(k))) < 1e-40
        assert sum((law.pmf(k) for k in found), arb(0)).contains(1)
    shown = {watch.outcome(k) for k in found}
    stopped = {t for n in (1, 2, 3) for t in itertools.product((False, True), repeat=n) if sum(t) == cutoff and t[-1]}
    ran_out = {t for t in itertools.product((False, True), repeat=3) if sum(t) < cutoff}
    assert shown == stopped | ran_out


def test_a_session_ends_at_the_cutoff_and_is_charged_once() -> None:
    watch = SparseVector(epsilon="1/2", sensitivity=1, threshold=10**6, cutoff=2)
    assert watch.loss() == Pure("1/2")
    session = watch.start()
    assert [session.ask(0) for _ in range(20)] == [False] * 20
    assert session.ask(10**9)
    assert session.open
    assert session.ask(10**9)
    assert not session.open
    with pytest.raises(DitherError, match="over"):
        session.ask(0)


def test_a_session_cannot_be_copied() -> None:
    session = SparseVector(epsilon=1, sensitivity=1, threshold=0).start()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(session)


@pytest.mark.parametrize("confidence", ["0.5", "0.9", "0.999"])
def test_the_margin_is_the_smallest_that_holds_for_one_question(confidence: str) -> None:
    watch = SparseVector(epsilon=1, sensitivity=1, threshold=100)
    m, wanted = watch.margin(confidence), Fraction(confidence)
    with working(200):
        assert watch.probability([100 + m], [True]) >= ball(wanted)
        assert watch.probability([100 - m - 1], [False]) >= ball(wanted)
        assert watch.probability([100 + m - 1], [True]) < ball(wanted)


def test_noise_scales_are_those_of_the_proof() -> None:
    watch = SparseVector(epsilon="1/2", sensitivity=3, threshold=0, cutoff=5)
    assert watch.threshold_noise() == TwoSided(12)
    assert watch.question_noise() == TwoSided(120)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"threshold": 1.5}, "threshold"),
        ({"cutoff": 0}, "cutoff"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        SparseVector(**{"epsilon": 1, "sensitivity": 1, "threshold": 0, **arguments})


def test_a_forked_child_cannot_ask_the_same_noisy_threshold() -> None:
    session = SparseVector(epsilon=1, sensitivity=1, threshold=0).start()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            session.ask(10**9)
            os.write(writing, b"answered")
        except DitherError:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"refused"
    assert session.ask(10**9)


def test_bad_questions_are_refused_and_do_not_use_up_the_session() -> None:
    watch = SparseVector(epsilon=1, sensitivity=1, threshold=0)
    session = watch.start()
    with pytest.raises(ArgumentError, match="exact"):
        session.ask(0.5)
    assert session.open
    for wrong in ([], [1, 2.0]):
        with pytest.raises(ArgumentError, match="exact"):
            watch.release(wrong)
    with pytest.raises(ArgumentError, match="transcript"):
        watch.law([0] * 13)
