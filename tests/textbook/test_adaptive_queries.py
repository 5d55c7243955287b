"""A mechanism that is private for questions fixed in advance, and tells everything to one who asks by what was answered.

The service prints a token with its first answer, one of a hundred, drawn without looking at the data. Its second answer is
the person's bit if the question names the token, and 0 otherwise. Whoever fixes the second question in advance guesses the
token once in a hundred: (0, 1/100)-DP. Whoever reads the first answer first knows the token: every bit is told.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dt
from distribution.allowance import share
from dither.audit import NOT_FOUND, VIOLATES, Target
from dither.audit.blackbox.attack import attack
from textbook.tables import Table, excess, ratio, tables

TOKENS = 100
TOKEN = dt.Channel([[Fraction(1, TOKENS)] * TOKENS] * 2)
CLEAR, SILENT = dt.Channel([[1, 0], [0, 1]]), dt.Channel([[1, 0], [1, 0]])


def asking_for(token: int) -> dt.Adaptive:
    """The service, asked for a token that was fixed in advance."""
    return dt.Adaptive(TOKEN, lambda printed: CLEAR if printed == token else SILENT)


ADAPTIVE = dt.Adaptive(TOKEN, lambda printed: CLEAR)  # asked for the token that it has just printed


def test_every_question_fixed_in_advance_is_private() -> None:
    for token in (0, 7, TOKENS - 1):
        found = dt.verify(asking_for(token), [(0, 1)], 0, delta=Fraction(1, TOKENS))
        assert found.holds
        assert found.worst - Fraction(1, TOKENS) < Fraction(1, 1 << 400)
        assert not dt.verify(asking_for(token), [(0, 1)], 0, delta=Fraction(1, TOKENS + 1)).holds


def test_a_question_that_depends_on_the_first_answer_is_not() -> None:
    for epsilon in (0, 1, 10):
        found = dt.verify(ADAPTIVE, [(0, 1)], epsilon, delta=Fraction(1, TOKENS))
        assert not found.holds
        assert found.at_least > Fraction(999, 1000)


@pytest.mark.slow
def test_the_auditor_finds_it_too() -> None:
    def target(name: str, service: dt.Adaptive) -> Target:
        return Target(name, service.release, Fraction(1, 10), Fraction(1, TOKENS), pairs=((0, 1),))

    assert attack(target("adaptive", ADAPTIVE), seconds=60).outcome == VIOLATES
    assert attack(target("fixed", asking_for(7)), seconds=0.3, strict=share("audit", 10)).outcome == NOT_FOUND


# --- why it needs a delta ---------------------------------------------------------------------------------------

Service = list[Table]  # one table for each second question: data -> probabilities of (first answer, second answer)


@st.composite
def services(draw: st.DrawFn) -> tuple[Table, list[list[Table]]]:
    """A first table, and a second one for each first answer and each of two questions."""
    first = draw(tables(inputs=2, outputs=2))
    return first, [[draw(tables(inputs=2, outputs=2)) for _ in range(2)] for _ in range(2)]


def transcript(first: Table, later: list[list[Table]], asked: tuple[int, int], data: int) -> tuple[Fraction, ...]:
    """The probabilities of all transcripts if question `asked[a]` follows the first answer a."""
    return tuple(first[data][a] * later[a][asked[a]][data][b] for a, b in product(range(2), repeat=2))


def worst(first: Table, later: list[list[Table]], strategies: list[tuple[int, int]]) -> Fraction:
    return max(ratio(*(transcript(first, later, asked, data) for data in (0, 1))) for asked in strategies)


@settings(max_examples=60, deadline=None)
@given(service=services())
def test_without_a_delta_choosing_gains_nothing(service: tuple[Table, list[list[Table]]]) -> None:
    """Each transcript of an adaptive analyst is one of an analyst who fixed both questions: the worst ratio is the same."""
    fixed, adaptive = [(0, 0), (1, 1)], list(product(range(2), repeat=2))
    assert worst(*service, adaptive) == worst(*service, fixed)


def test_with_a_delta_it_does() -> None:
    """The twin: deltas of different first answers add up, and an adaptive analyst takes the worst question at each."""
    clear, silent = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))), ((Fraction(1), Fraction(0)),) * 2
    first, later = ((Fraction(1, 2),) * 2,) * 2, [[clear, silent], [silent, clear]]
    shift = {
        asked: excess(*(transcript(first, later, asked, data) for data in (0, 1)), Fraction(1))
        for asked in product(range(2), repeat=2)
    }
    assert shift[(0, 0)] == shift[(1, 1)] == Fraction(1, 2)
    assert shift[(0, 1)] == 1
