"""Twenty thousand questions: each is answered or refused cleanly, never with a traceback, never in the engine's words."""

from __future__ import annotations

import re

import pytest

import dither as dt
from attacks.questions import Maker, poisoned

BATCHES, EACH, RUN = 8, 2500, 70
ENGINE = re.compile(r"duckdb|binder|catalog error|conversion error|out of range|hugeint|traceback|sqlglot", re.I)


def outcome(curator: dt.Curator, question: str, run: bool) -> str:
    """Returns how a question ended. An error that is not a DitherError fails the test."""
    try:
        (curator.ask if run else curator.quote)(question, epsilon="1/10", delta="1e-9")
    except dt.QueryError as refusal:
        text = str(refusal).replace(question, "")
        return "refused" if "Charged: nothing." in text and not ENGINE.search(text) else f"{question}\n{refusal}"
    return "answered" if run else "planned"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_question_is_answered_or_refused_cleanly(batch: int) -> None:
    curator, maker = dt.open(poisoned(), ledger=":memory:"), Maker(batch)
    planned, ends = [], {"planned": 0, "refused": 0}
    for _ in range(EACH):
        question = maker.question()
        end = outcome(curator, question, run=False)
        assert end in ends, end
        ends[end] += 1
        if end == "planned":
            planned.append(question)
    assert min(ends.values()) > EACH // 20, ends
    for form in (
        r"= p\.person_id[^()]*\) [<=>]",
        r"\(\(SELECT",
        r"NOT IN \(SELECT [^()]*regions",
        r"NOT IN \(SELECT [^()]*visits",
        r"OR ([a-z_.]+ )?(NOT )?(IN|EXISTS) \(SELECT [^()]*person_id = p\.person_id",
        r"\) IS (NOT )?(NULL|TRUE|FALSE)",
        r"CASE WHEN [^()]* IN \(SELECT",
        r"^SELECT (NOT )?[^(),]*(IN|EXISTS) \(SELECT [^()]*\) AS k",
        r"\) FROM visits v WHERE v\.person_id = p\.person_id AND v\.ward = p\.region\)",
        r"ON v\.person_id = p\.person_id AND \(v\.cost > 10 OR",
    ):
        assert any(re.search(form, question) for question in planned), form
    runs = [outcome(curator, question, run=True) for question in planned[:RUN]]
    assert runs == ["answered"] * RUN


def test_that_the_engine_would_speak_if_it_were_let() -> None:
    assert ENGINE.search("Conversion Error: Could not convert string 'secret' to INT32")
