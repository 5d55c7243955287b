"""What had escaped the audit of dither: stored types, files with and without statistics, crowds, spellings, flights."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dither.audit.ourselves.cases import any_people, crowd, respell
from dither.audit.ourselves.catalogs import people, small
from dither.audit.ourselves.flight import Flight, differences, fly
from dither.audit.ourselves.observe import looser, with_changed_work
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.replay import run_harness
from dither.audit.ourselves.stored import TYPES, StoredCase, any_stored, compare_stored

HEAVY = (*((1, 10, 50) for _ in range(6)), (2, 10, 3))
SUM = "SELECT COUNT(*) AS n, SUM(x) AS s FROM t"


def test_every_stored_type_is_generated_with_and_without_statistics() -> None:
    made = [any_stored(random.Random(seed)) for seed in range(600)]
    assert {(case.kind, case.statistics) for case in made} == {(kind, has) for kind in TYPES for has in (True, False)}
    assert {case.group for case in made} == {1, 3, 1000}


@pytest.mark.slow
def test_neighbouring_files_are_answered_alike() -> None:
    for seed in range(6):
        case = any_stored(random.Random(seed))
        wrong, answered = compare_stored(case)
        assert wrong is None, f"{wrong}\n{case}"
        assert answered


@pytest.mark.slow
def test_that_check_can_fail() -> None:
    case = StoredCase("int64", HEAVY, 1, True, 3, SUM)
    assert compare_stored(case) == (None, True)
    wrong, _ = compare_stored(case, with_changed_work(looser(rows=2)))
    assert wrong is not None


@pytest.mark.parametrize("make", [small, people])
def test_a_crowd_has_a_thousand_rows_and_a_heavy_unit(make: Any) -> None:
    rng = random.Random(4)
    always, perhaps = crowd(make(rng), rng)
    assert sum(len(rows) for person in always for rows in person.values()) >= 1000
    assert len(perhaps) == 4


def test_crowds_come_now_and_then() -> None:
    rng = random.Random(2)
    setup = small(rng)
    sizes = [len(any_people(setup, rng)[0]) for _ in range(120)]
    assert max(sizes) > 50
    assert sorted(sizes)[100] < 10


def test_names_are_spelled_in_another_case_and_literals_are_not() -> None:
    setup = small(random.Random(1))
    question = Parts("region", ("SUM(age) AS a0",), "t", "town = 'age'", "region")
    spelled = {str(respell(question, setup, random.Random(seed))) for seed in range(20)}
    assert len(spelled) > 5
    assert all("'age'" in text for text in spelled)
    assert {re.sub(r"\s", "", text).lower() for text in spelled} == {re.sub(r"\s", "", str(question)).lower()}


@pytest.mark.slow
def test_questions_in_flight_cost_the_same_on_neighbours() -> None:
    rng = random.Random(5)
    setup = replace(small(rng), replace=False)
    those = [setup.person(number, rng) for number in range(1, 5)]
    asked = ("SELECT region, COUNT(*) AS n FROM t GROUP BY region", "SELECT COUNT(*) AS n FROM t")
    one, two = (fly(setup, those[:many], asked, (1, "1e-6")) for many in (4, 3))
    assert differences(one, two) == []
    assert sum("reserved/1" in text for text in one.entries) == 2, "four of the five are the same question"


def test_what_differs_in_flight_is_named() -> None:
    one = Flight(*map(_counted, (["a: answered"],)), "1, 0", _counted(['{"kind": "reserved/1"}']))
    failed = replace(one, endings=_counted(["a: EngineError"]))
    dearer = replace(one, charge="2, 0", entries=_counted(['{"kind": "reserved/1"}'] * 2))
    assert differences(one, one) == []
    assert differences(one, failed) == ["how questions in flight end"]
    assert "what questions in flight cost" in differences(one, dearer)
    assert "the same question is charged more than once" in differences(dearer, dearer)


def _counted(texts: list[str]) -> Any:
    return Counter(texts)


@pytest.mark.slow
def test_a_run_counts_the_other_cases() -> None:
    assert run_harness(3, 11).by_setup == {"stored files": 2, "streams": 4, "graphs": 4, "questions in flight": 1}
