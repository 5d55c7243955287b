"""An interactive adversary who picks each question and each epsilon from the answers so far, against a filter.

The data is one private bit, 0 or 1 on the two neighbouring tables. A question asks for the bit, its opposite, or
nothing, and is answered by randomized response: the true answer with probability e^epsilon / (1 + e^epsilon).
An answer that differs between the tables multiplies the ratio of the views' probabilities by exactly e^{+-epsilon},
so the log ratio of a whole view is an exact rational: the views are enumerated, and nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.exact import balls
from dither.privacy.filters import PureFilter
from dither.privacy.losses import Pure

View = tuple[str, ...]
Question = tuple[str, Fraction]  # what is asked, and the epsilon offered for it
Adversary = Callable[[View], Question | None]
BUDGET = Fraction(1)


def truth(asked: str, bit: int) -> int:
    return {"bit": bit, "opposite": 1 - bit, "nothing": 0}[asked]


def check_first(budget: PureFilter, epsilon: Fraction) -> tuple[bool, bool]:
    """(is it answered, does the session go on): the filter decides before the answer is made."""
    return budget.try_spend(Pure(epsilon)), True


def check_afterwards(budget: PureFilter, epsilon: Fraction) -> tuple[bool, bool]:
    """The broken order: answer, then see whether the sum still fits, and stop if it does not."""
    return True, budget.try_spend(Pure(epsilon))


Policy = Callable[[PureFilter, Fraction], tuple[bool, bool]]


def views(adversary: Adversary, policy: Policy, rounds: int) -> Iterator[tuple[View, list[tuple[Question, int]]]]:
    """Every possible view, with the answered questions and their answers."""

    def play(view: View, answered: list[tuple[Question, int]]) -> Iterator[tuple[View, list[tuple[Question, int]]]]:
        asked = adversary(view) if len(view) < rounds else None
        if asked is None:
            yield view, answered
            return
        budget = PureFilter(BUDGET)  # budgets cannot be copied, so each branch replays its past
        for (_, epsilon), _ in answered:
            budget.try_spend(Pure(epsilon))
        given_, goes_on = policy(budget, asked[1])
        if not given_:
            yield from play((*view, "refused"), answered)
            return
        for answer in (0, 1):
            after = (*view, str(answer)), [*answered, (asked, answer)]
            if goes_on:
                yield from play(*after)
            else:
                yield after

    yield from play((), [])


def log_ratio(answered: list[tuple[Question, int]]) -> Fraction:
    """log Pr[view | bit 1] - log Pr[view | bit 0], exactly."""
    total = Fraction(0)
    for (asked, epsilon), answer in answered:
        total += epsilon * ((truth(asked, 1) == answer) - (truth(asked, 0) == answer))
    return total


def probability(answered: list[tuple[Question, int]], bit: int) -> arb:
    result = arb(1)
    for (asked, epsilon), answer in answered:
        agrees = truth(asked, bit) == answer
        result *= 1 / (1 + balls.exp(-epsilon if agrees else epsilon))
    return result


def worst(adversary: Adversary, policy: Policy, rounds: int = 5) -> Fraction:
    return max(abs(log_ratio(answered)) for _, answered in views(adversary, policy, rounds))


questions = st.tuples(st.sampled_from(["bit", "opposite", "nothing"]), st.fractions(0, "3/2", max_denominator=6))


@st.composite
def adversaries(draw: st.DrawFn) -> Adversary:
    """A table of moves: the next question depends on the whole view, through the answers so far."""
    moves = draw(st.lists(questions, min_size=8, max_size=8))
    factors = draw(st.lists(st.integers(1, 7), min_size=5, max_size=5))

    def choose(view: View) -> Question:
        place = sum(f * {"0": 1, "1": 2, "refused": 3}[seen] for f, seen in zip(factors, view, strict=False))
        return moves[place % len(moves)]

    return choose


@given(adversary=adversaries())
def test_no_adversary_gets_past_a_pure_filter(adversary: Adversary) -> None:
    """The exact view probabilities on neighbouring data stay within e^epsilon."""
    assert worst(adversary, check_first) <= BUDGET


@pytest.mark.slow
@given(adversary=adversaries())
def test_the_enumerated_views_are_all_there_are(adversary: Adversary) -> None:
    found = list(views(adversary, check_first, 4))
    with balls.working(96):
        for bit in (0, 1):
            assert sum((probability(answered, bit) for _, answered in found), arb(0)).contains(1)
        for _, answered in found:
            quotient = probability(answered, 1) / probability(answered, 0)
            assert (quotient.log() - balls.ball(log_ratio(answered))).contains(0)


def greedy(view: View) -> Question:
    """Small steps first; once an answer was 1, everything on one question."""
    return ("bit", Fraction(5)) if "1" in view else ("bit", Fraction(1, 4))


def test_a_check_done_after_answering_is_no_filter() -> None:
    """The twin: the last answer is out before the sum is seen to be too large."""
    assert worst(greedy, check_afterwards) > BUDGET
    assert worst(greedy, check_afterwards) >= 5
    assert worst(greedy, check_first) <= BUDGET


def test_the_filter_lets_the_whole_budget_be_used() -> None:
    """It is not safe by refusing everything: asking the bit four times at a quarter reaches e^epsilon exactly."""
    assert worst(lambda view: ("bit", Fraction(1, 4)), check_first) == BUDGET
