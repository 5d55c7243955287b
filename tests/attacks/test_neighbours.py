"""Neighbours: the whole path on two tables that differ in one unit, with the same random bits (issue 3, Trust).

Exact integers move by at most what the noise was priced for. Error, status, shape, public keys, holes, noise and charge
are the same. A discovered key is shown with the probability of its law.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dither as dt
from attacks.moved import channels, complaints
from attacks.neighbours import add, any_rows, filled, heavy, ordinary, poisoned, small, survey, without
from attacks.paths import Observation, looser, observe, open_observed
from distribution.allowance import share
from distribution.fit import events_fit
from dither.planning.outputs import release
from dither.query.work import Group
from planning.test_golden import cases as plans
from sql.test_golden import cases as questions

GOLDEN = list(dict.fromkeys([text for _, text, _ in plans()] + [text for _, text, _ in questions("sql_to_nodes.txt")]))
ON_PEOPLE = [text for word, text, _ in plans() if word == "replace"]
BY_ROW = [text for text in GOLDEN if "FROM records" in text]


def with_one(person: Any) -> Any:
    tables = survey()
    add(tables, person)
    return tables


TABLES = {
    "nobody more": survey,
    "one ordinary": lambda: with_one(ordinary(555, random.Random(5))),
    "one heavy": lambda: with_one(heavy()),
    "one poisoned": lambda: with_one(poisoned()),
    "one less": lambda: without(survey(), 7),
    "one row more": lambda: {**survey(), "records": [*survey()["records"], {"x": -(2**63), "g": "q", "region": "rare"}]},
}


def asked_of(table: str, change: str = "") -> list[str]:
    """Returns the questions: those about records for a row more, and fewer for a careless engine."""
    if change:
        return [text for text in GOLDEN if "visits" in text or "prescriptions" in text]
    return BY_ROW if table == "one row more" else GOLDEN


@cache
def asked(table: str, change: str = "") -> list[Observation]:
    """Asks every golden question about one of the tables."""
    loose = {"": None, "rows": looser(rows=2), "groups": looser(groups=3)}[change]
    curator = open_observed(filled(TABLES[table]()), loose)
    about = asked_of(table, change)
    return [observe(curator, question, 2, "1e-6") for question in about]


def pairs(table: str, change: str = "") -> list[tuple[str, Observation, Observation]]:
    known = dict(zip(asked_of("nobody more", change), asked("nobody more", change), strict=True))
    return [(text, known[text], after) for text, after in zip(asked_of(table, change), asked(table, change), strict=True)]


NEIGHBOURS = [name for name in TABLES if name != "nobody more"]


@pytest.mark.parametrize("table", NEIGHBOURS)
def test_every_golden_question_moves_by_what_it_is_priced_for_and_shows_nothing_else(table: str) -> None:
    compared = pairs(table)
    planned = [(question, before, after) for question, before, after in compared if before.plan is not None]
    assert len(planned) > (3 if table == "one row more" else 90)
    assert [(question, found) for question, a, b in planned if (found := complaints(a, b))] == []
    assert [(question, found) for question, a, b in compared if (found := channels(a, b))] == []


def test_that_these_neighbours_do_move_the_integers() -> None:
    for table in NEIGHBOURS:
        moved = [before.groups != after.groups for _, before, after in pairs(table)]
        assert sum(moved) > len(moved) / (4 if table == "one poisoned" else 3), table


@pytest.mark.parametrize("change", ["rows", "groups"])
def test_that_an_engine_which_bounds_less_than_was_priced_is_caught(change: str) -> None:
    caught = [question for question, a, b in pairs("one heavy", change) if a.plan is not None and complaints(a, b)]
    assert len(caught) >= (5 if change == "rows" else 1)


@pytest.mark.parametrize("question", ON_PEOPLE)
def test_one_person_replaced(question: str) -> None:
    """Replaces an ordinary person, one at all upper bounds, or a poisoned one."""
    persons = [ordinary(555, random.Random(5)), heavy(), poisoned(), ordinary(556, random.Random(6))]
    seen = [observe(open_observed(filled(with_one({"people": one["people"]}), "replace", "0")), question) for one in persons]
    for one in seen:
        for other in seen:
            assert complaints(one, other) == []
            assert channels(one, other) == []


def test_that_a_replacement_is_not_priced_as_an_addition() -> None:
    """A plan for add-remove must fail the comparison with one person replaced."""
    rows = [[(1, 5, 1.0, "north", "a")], [(2, 5, 1.0, "south", "a")]]
    question = "SELECT region, COUNT(*) AS n FROM t GROUP BY region"
    one, two = (observe(open_observed(small(each)), question) for each in rows)
    assert complaints(one, two) != []
    one, two = (observe(open_observed(small(each, neighbours="replace")), question) for each in rows)
    assert complaints(one, two) == []


# --- generated tables -------------------------------------------------------------------------------------------

EVERYTHING = (
    "SELECT {keys} COUNT(*) AS n, COUNT(age) AS known, AVG(age) AS age, SUM(wage) AS wages, VAR_SAMP(wage) AS v, "
    "STDDEV_POP(age) AS s, MEDIAN(wage) AS m, MAX(age) AS top, COUNT(DISTINCT town) AS towns, "
    "COUNT(DISTINCT person) AS people, CLIPPED(wage) AS far FROM t {group}"
)
FEWER = "SELECT {keys} SUM(wage) AS s, COUNT(DISTINCT town) AS towns, COUNT(DISTINCT person) AS people FROM t {group}"


def generated(seed: int, change: Any = None) -> list[tuple[str, Observation, Observation]]:
    """Asks about a table with one unit, and about the same with that unit removed or replaced."""
    dice = random.Random(seed)
    replaced = seed % 3 == 0
    rows = [row for person in range(4) for row in any_rows(person, dice)]
    mine = any_rows(77, dice) or [(77, 60, 12.5, "north", "a")] * 9
    after = any_rows(78, dice) if replaced else []
    facts = {"max_rows": dice.randint(1, 4), "max_groups": dice.randint(1, 3)}
    facts |= {"neighbours": "replace"} if replaced else {}
    keys = dice.choice(["", "region", "town", "region, town"])
    text = dice.choice([EVERYTHING, EVERYTHING, FEWER]).format(
        keys=f"{keys}," if keys else "", group=f"GROUP BY {keys}" * bool(keys)
    )
    found = []
    for one in (rows + mine, rows + after):
        dice.shuffle(one)
        found.append(observe(open_observed(small(one, **facts), change), text, 1, "1e-6"))
    return [(text, found[0], found[1])]


@pytest.mark.parametrize("block", range(4))
def test_generated_tables_move_by_at_most_what_is_priced(block: int) -> None:
    for seed in range(7 * block, 7 * block + 7):
        for text, before, after in generated(seed):
            assert before.status == "answered", text
            assert complaints(before, after) == [], (seed, text)
            assert channels(before, after) == [], (seed, text)


def test_that_generated_tables_catch_an_engine_that_bounds_less() -> None:
    caught = [seed for seed in range(10) for _, a, b in generated(seed, looser(rows=2, groups=2)) if complaints(a, b)]
    assert len(caught) > 3


def test_a_row_that_is_its_own_unit_moves_by_one_row() -> None:
    dice = random.Random(1)
    text = EVERYTHING.format(keys="region,", group="GROUP BY region").replace("COUNT(DISTINCT person) AS people, ", "")
    rows = [row for person in range(9) for row in any_rows(person, dice)]
    one = observe(open_observed(small(rows, unit="row")), text)
    for place in range(0, len(rows), 6):
        two = observe(open_observed(small(rows[:place] + rows[place + 1 :], unit="row")), text)
        assert complaints(one, two) == []
        assert channels(one, two) == []


# --- keys -------------------------------------------------------------------------------------------------------

SHOWN = 20_000
COUNTS = (1, 8, 13, 15, 18, 30)


def shares(counts: tuple[int, ...] = COUNTS) -> tuple[Any, list[float]]:
    """Counts how often keys with so many people are shown, by the real plan for discovered keys."""
    question = "SELECT town, COUNT(*) AS n FROM t GROUP BY town"
    plan = open_observed(small([], max_groups=2)).quote(question, epsilon=4, delta="1e-3").plan
    assert plan.threshold is not None
    found = []
    for units in counts:
        groups = [Group((f"{i:05}",), units, ((units,),)) for i in range(SHOWN)]
        found.append(len(release(plan, groups).keys) / SHOWN)
    return plan.threshold, found


def test_a_discovered_key_is_shown_with_the_probability_of_its_law() -> None:
    rule, found = shares()
    chances = [float(rule.shown(units)) for units in COUNTS]
    assert any(0.05 < chance < 0.95 for chance in chances)
    assert events_fit(found, chances, SHOWN, share("attacks", 4))
    off_by_one = [float(rule.shown(units + 1)) for units in COUNTS]
    assert not events_fit(found, off_by_one, SHOWN, share("attacks", 4))


def test_that_law_is_what_one_person_in_max_groups_keys_may_move() -> None:
    """From m to m + 1 people, both ways, at (epsilon, delta) divided by the most keys one person is counted for."""
    rule, _ = shares(())
    assert rule.keys_per_unit == 2
    grown, leak = float(np.exp(float(rule.epsilon / 2))), float(rule.delta / 2)
    chances = [float(rule.shown(units)) for units in range(60)]
    assert chances[0] == 0
    for less, more in pairwise(chances):
        assert more <= grown * less + leak + 1e-12
        assert 1 - less <= grown * (1 - more) + leak + 1e-12


def test_units_and_not_rows_decide_on_keys() -> None:
    """One person with a thousand rows in a town of their own counts once."""
    rows = [(7, 60, 12.5, "north", "lonely")] * 1000 + [(i, 60, 1.0, "north", "big") for i in range(200)]
    seen = observe(
        open_observed(small(rows, max_rows=50, max_groups=3)), "SELECT town, COUNT(*) AS n FROM t GROUP BY town", 9, "1e-9"
    )
    assert {group.key[0]: group.units for group in seen.groups} == {"lonely": 1, "big": 200}
    assert seen.answer is not None
    assert [key for (key,) in seen.answer.noisy.keys] == ["big"]


def test_that_a_twin_with_another_plan_is_no_neighbour() -> None:
    seen = asked("nobody more")[0]
    assert seen.plan is not None
    assert complaints(seen, replace(seen, plan=replace(seen.plan, unit="row"))) == ["the plans differ"]


def test_the_golden_files_are_all_here() -> None:
    refused = {question for question, seen in zip(GOLDEN, asked("nobody more"), strict=True) if seen.status != "answered"}
    assert refused == set()  # a table without max_groups chooses them
    assert isinstance(open_observed(filled(survey())), dt.Curator)
