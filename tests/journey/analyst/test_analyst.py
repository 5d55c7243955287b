"""65 questions that an analyst wrote down beforehand are right within what their answers say, against plain DuckDB.

A number is compared with what DuckDB has of the rows that count, and a sentence on what was left out with what is missing from
that. So noise is held against ±, and bias against words: neither excuses the other. The draws come from a recorded stream; the
checks hold for any draws, at a confidence that fails one time in 10^10 a number, or as often as chance allows at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import dither as dt
from dither.exact import replay
from journey.analyst import catalogs, questions, tables
from journey.analyst.check import Fault, faults, limits, numbers, statements
from journey.analyst.truth import Data, Question, declared_bounds

SURE = 1 - Fraction(1, 10**10)
USUAL = Fraction(95, 100)
CHANCE = 1e-7  # of failing by chance, at 95 %
ASKED = {1: (1, 50), 2: (1,)}  # seeds of the data, and the epsilons at which each question is asked
MAKERS = (
    (tables.shop, catalogs.shop, "customer", questions.SHOP),
    (tables.survey, catalogs.survey, "person", questions.SURVEY),
    (tables.events, catalogs.events, "user", questions.EVENTS),
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A question that was asked, and its answer."""

    question: Question
    answer: dt.Answer

    def wrong(self, confidence: Fraction = SURE) -> list[Fault]:
        return faults(self.answer, self.question, statements(self.answer, confidence), confidence)


def connected(frames: Mapping[str, pd.DataFrame], stack: ExitStack) -> duckdb.DuckDBPyConnection:
    """Returns the tables in DuckDB. Lines have the customer, as dither knows by reference."""
    connection = stack.enter_context(duckdb.connect())
    connection.execute("CREATE MACRO clamp(x, a, b) AS CASE WHEN x IS NOT NULL THEN least(greatest(x, a), b) END")
    for name, frame in frames.items():
        connection.register("bare_lines" if name == "lines" else name, frame)
    if "lines" in frames:
        connection.execute("CREATE VIEW lines AS SELECT l.*, o.customer FROM bare_lines l JOIN orders o USING (order_id)")
    return connection


def data_sets(seed: int, folder: Path, stack: ExitStack) -> Iterator[tuple[dt.Curator, Data, tuple[str, ...]]]:
    """Makes the four data sets, opened by dither and by DuckDB."""
    random = np.random.default_rng(seed)
    made = [(make(random), declare, unit, asked) for make, declare, unit, asked in MAKERS]
    each = [(declare(frames), frames, unit, asked) for frames, declare, unit, asked in made]
    path, clean = tables.office(random, folder)
    each.append((catalogs.office(path), {"mandates": clean}, "Personen-ID", questions.OFFICE))
    for catalog, frames, unit, asked in each:
        data = Data(connected(frames, stack), unit, declared_bounds(catalog.tables))
        yield stack.enter_context(dt.open(catalog, ledger=":memory:")), data, asked


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    """Asks every question, each at every epsilon and seed."""
    with ExitStack() as stack, replay.stream(b"analyst"):
        yield [
            Case(question, curator.ask(sql, epsilon=epsilon))
            for seed, epsilons in ASKED.items()
            for curator, data, asked in data_sets(seed, tmp_path_factory.mktemp("office"), stack)
            for sql in asked
            for question in [Question(sql, data)]
            for epsilon in epsilons
        ]


def at_most(trials: int, chance: float) -> int:
    """Returns a number that a binomial variable exceeds with probability CHANCE at most."""
    tail, misses = 1.0, -1
    while tail > CHANCE:
        misses += 1
        tail -= math.comb(trials, misses) * chance**misses * (1 - chance) ** (trials - misses)
    return misses


def test_there_are_enough_questions() -> None:
    assert len({*questions.SHOP, *questions.SURVEY, *questions.EVENTS, *questions.OFFICE}) >= 60


def test_every_answer_is_right_within_what_it_says(cases: list[Case]) -> None:
    wrong = [(case.question.sql, fault.text, case.answer.footer()) for case in cases for fault in case.wrong()]
    assert not wrong, wrong


def test_at_95_percent_few_numbers_and_sentences_are_wrong(cases: list[Case]) -> None:
    found = [case.wrong(USUAL) for case in cases]
    first = sum(any(each.kind == "number" and each.place == 0 for each in wrong) for wrong in found)
    assert first <= at_most(len(cases), 0.05)  # the first number of each answer: noise of different answers is independent
    sentences = sum(each.kind == "sentence" for wrong in found for each in wrong)
    assert sentences <= at_most(sum(len(case.answer.left_out) for case in cases), 0.05)


def test_that_check_finds_a_shifted_number(cases: list[Case]) -> None:
    found = 0
    for case in cases:
        first, *others = numbers(case.answer, case.question, SURE)
        if case.question.quantile is not None:
            continue
        kept = case.question.kept(*limits(case.answer), float(1 - SURE))
        spread = kept[first.key][first.name].spread if first.key in kept else 0.0
        far = 2.1 * (first.margin + spread) + 1e-3 * (1 + abs(first.value))
        stated = [first._replace(value=first.value + far), *others]
        wrong = faults(case.answer, case.question, statements(case.answer, SURE), SURE, stated)
        assert ("number", 0) in [(each.kind, each.place) for each in wrong], case.question.sql
        found += 1
    assert found > 0.9 * len(cases)


def test_that_check_finds_a_shifted_quantile(cases: list[Case]) -> None:
    quantiles = [case for case in cases if case.question.quantile is not None and case.answer.total.epsilon > 1]
    assert len(quantiles) == 4
    for case in quantiles:
        table = case.answer.table
        rows = tuple(tuple(1.5 * value for value in row) for row in table.rows)
        assert replace(case, answer=replace(case.answer, table=replace(table, rows=rows))).wrong()


def test_that_check_finds_silence(cases: list[Case]) -> None:
    """Nobody may be silent where rows are missing or sums are clipped."""
    silent = 0
    for case in cases:
        people = case.question.left_out(*limits(case.answer))
        cut = people["has"].sum() - people["keeps"].sum() > 1
        clipped = any(case.question.clipping(column)[1].sum() > 1 for column in case.question.clipped)
        wrong = [each.kind for each in faults(case.answer, case.question, (), SURE)]
        assert ("silence" in wrong) == bool(cut or clipped), case.question.sql
        silent += "silence" in wrong
    assert silent > len(cases) / 3


def test_that_check_finds_wrong_shares(cases: list[Case]) -> None:
    """A sentence that says all rows were left out is found, and one that says none were, where many were."""
    found = {"all": 0, "none": 0}
    for case in cases:
        people = case.question.left_out(*limits(case.answer))
        many = people["has"].sum() - people["keeps"].sum() > 0.3 * people["has"].sum()
        for said in [each for each in statements(case.answer, SURE) if not each.clipped]:
            for words, low, high in (("all", 1.0, 1.0), ("none", 0.0, 0.0)):
                wrong = faults(case.answer, case.question, (replace(said, low=low, high=high, beyond=None),), SURE)
                if words == "all" or many:
                    assert "sentence" in [each.kind for each in wrong], case.question.sql
                    found[words] += 1
    assert found["all"] > len(cases) / 4
    assert found["none"] > 5
