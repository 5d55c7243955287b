"""Closing a session while a thread asks: the answer that was paid for still comes."""

from __future__ import annotations

import threading

import pytest

import dither as dt
from dither.answer import Answer
from dither.curator import Curator
from dither.errors import DitherError
from dither.query.work import Group, Work
from dither.session import CloseGuard

QUESTION = "SELECT COUNT(*) AS n FROM people"


def _survey() -> Curator:
    table = dt.Table({"person": [1, 2, 3]}, unit="person", max_rows=1)
    return dt.open(dt.Catalog(tables={"people": table}, budget=dt.Budget(epsilon=1)), ledger=":memory:")


class _Held:
    """An engine in the middle of its work until it is let go."""

    name = "held"

    def __init__(self, survey: Curator) -> None:
        self._inner = survey.engine
        self.begun, self.let_go = threading.Event(), threading.Event()

    def prepare(self, work: Work) -> None:
        self._inner.prepare(work)

    def run(self, work: Work, secret: bytes) -> list[Group]:
        self.begun.set()
        assert self.let_go.wait(60)
        return self._inner.run(work, secret)


class Blind(CloseGuard):
    """Never refuses to close."""

    def check(self) -> None:
        pass


def _asked_while_closing(survey: Curator, held: _Held) -> list[object]:
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(survey.ask(QUESTION, epsilon="0.5"))
        except DitherError as error:
            found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert held.begun.wait(60)
    try:
        survey.close()
    except DitherError as error:
        found.append(error)
    held.let_go.set()
    thread.join(60)
    return found


def test_a_session_is_not_closed_in_the_middle_of_a_question() -> None:
    survey = _survey()
    held = _Held(survey)
    survey.engine = held
    refused, answer = _asked_while_closing(survey, held)
    assert isinstance(refused, DitherError)
    assert "still being answered" in str(refused)
    assert isinstance(answer, Answer)
    survey.close()
    with pytest.raises(DitherError, match="closed"):
        survey.ask(QUESTION, epsilon="0.1")


def test_that_the_answer_would_be_lost_otherwise() -> None:
    """The twin: running questions are not counted."""
    survey = _survey()
    held = _Held(survey)
    survey.engine = held
    survey.session.close_guard = Blind()
    (lost,) = _asked_while_closing(survey, held)
    assert isinstance(lost, DitherError)
