"""Keys that depend on each other show the combinations that a row can have: no other, and all of them, empty or not."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.planning.outputs import release
from dither.planning.plan import plan
from dither.planning.price import Price
from dither.planning.records import identity
from dither.query.read import read
from dither.query.resolve import joint
from dither.query.work import Group

STATES = ["CA", "NY", "PA", "TX", "WA"]
REGION = dict(zip(STATES, ["West", "East", "East", "South", "West"], strict=True))
JOINED = "people p JOIN states s ON p.state = s.abbrev"
BY_STATE = f"SELECT s.region, s.abbrev, COUNT(*) AS n FROM {JOINED} GROUP BY 1, 2"


def catalog(people: int = 900) -> dt.Catalog:
    ids = np.arange(people)
    born = np.datetime64("1950-03-01") + ids % 3000
    born[:40] = np.datetime64("1950-01-15")  # outside the bounds
    rows = {"person": ids, "state": np.array(STATES)[ids % 4], "home": np.array(STATES)[ids % 3], "born": born}
    between = dt.between(datetime.date(1950, 3, 1), datetime.date(1958, 12, 31))
    columns = {"state": dt.values(*STATES), "home": dt.values(*STATES), "born": between}
    states = {"abbrev": np.array(STATES), "region": np.array(list(REGION.values()))}
    held = {
        "people": dt.Table(rows, unit="person", max_rows=1, columns=columns),
        "states": dt.Table(states, public=True, key="abbrev"),
    }
    return dt.Catalog(tables=held, budget=dt.Budget(epsilon=10**7))


@pytest.fixture(scope="module")
def curator() -> Iterator[dt.Curator]:
    with dt.open(catalog(), ledger=":memory:") as opened:
        yield opened


def groups(curator: dt.Curator, question: str) -> list[tuple[Any, ...]]:
    return [row[:-1] for row in curator.ask(question, epsilon=1).rows]


def test_all_rows_of_a_public_table_are_groups_also_without_anybody(curator: dt.Curator) -> None:
    assert sorted(groups(curator, BY_STATE)) == sorted((REGION[state], state) for state in STATES)  # nobody lives in WA


def test_a_condition_on_another_column_narrows(curator: dt.Curator) -> None:
    question = f"SELECT s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'West' GROUP BY 1"
    assert groups(curator, question) == [("CA",), ("WA",)]


def test_the_other_side_of_a_join_is_the_same_key(curator: dt.Curator) -> None:
    question = f"SELECT p.state, s.region, COUNT(*) AS n FROM {JOINED} GROUP BY 1, 2"
    assert sorted(groups(curator, question)) == sorted((state, REGION[state]) for state in STATES)


def test_a_left_join_also_shows_rows_without_a_partner(curator: dt.Curator) -> None:
    found = groups(curator, BY_STATE.replace("JOIN", "LEFT JOIN"))
    assert len(found) == 6
    assert (None, None) in found


TWICE = (
    "SELECT a.region AS one, b.abbrev AS two, COUNT(*) AS n FROM people p JOIN states a ON p.state = a.abbrev "
    "JOIN states b ON p.home = b.abbrev GROUP BY 1, 2"
)


def test_two_rows_of_a_public_table_are_not_taken_for_one(curator: dt.Curator) -> None:
    assert len(groups(curator, TWICE)) == 15
    assert sum(row[-1] for row in curator.ask(TWICE, epsilon=200).rows) == 900


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_read_once", lambda relation, catalog: frozenset(["states"]))
    with dt.open(catalog(), ledger=":memory:") as curator:
        assert sum(row[-1] for row in curator.ask(TWICE, epsilon=200).rows) < 900


def test_parts_of_one_date(curator: dt.Curator) -> None:
    question = "SELECT QUARTER(born) AS q, MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2"
    assert groups(curator, question) == [((m + 2) // 3, m) for m in range(1, 13)]


def test_rows_outside_the_bounds_are_in_no_impossible_group(curator: dt.Curator) -> None:
    """January 1950 is outside; as parts they are within: 1950 and January."""
    question = "SELECT YEAR(born) AS y, MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2"
    answer = curator.ask(question, epsilon=200)
    assert (1950, 1) not in {row[:2] for row in answer.rows}
    assert len(answer) == 8 * 12 + 10
    assert sum(row[2] for row in answer.rows) == 860
    totals = curator.ask(question.replace("1, 2", "ROLLUP (1, 2)"), epsilon=200)
    assert {row[0]: row[2] for row in totals.rows if row[1] is None}[None] == 860


def test_coarser_grouping_sets_are_projections(curator: dt.Curator) -> None:
    question = f"SELECT s.region, s.abbrev, p.home, COUNT(*) AS n FROM {JOINED} GROUP BY CUBE (1, 2, 3)"
    found = groups(curator, question)
    assert len(found) == len(set(found)) == (5 + 5 + 3 + 1) * 6
    assert {(r, s) for r, s, _ in found if r is not None and s is not None} == {(REGION[s], s) for s in STATES}


def test_a_level_of_one_key_of_a_condition_is_narrowed_too(curator: dt.Curator) -> None:
    question = f"SELECT s.abbrev, p.home, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'East' GROUP BY CUBE (1, 2)"
    assert len(groups(curator, question)) == 3 * 6


def test_independent_keys_are_still_crossed(curator: dt.Curator) -> None:
    question = "SELECT state, home, COUNT(*) AS n FROM people GROUP BY 1, 2"
    assert groups(curator, question) == list(itertools.product(STATES, STATES))


def test_no_group_is_refused_and_free(curator: dt.Curator) -> None:
    question = f"SELECT s.abbrev, COUNT(*) AS n FROM {JOINED} WHERE s.region = 'East' AND s.abbrev = 'CA' GROUP BY 1"
    with pytest.raises(dt.DitherError, match="there is no group") as caught:
        curator.ask(question, epsilon=1)
    assert "Charged: nothing" in str(caught.value)


@pytest.mark.parametrize("key", ["NULLIF(state, state)", "CAST('abc' AS INT)", "CASE WHEN FALSE THEN state END"])
def test_a_key_that_is_always_null_has_no_group_and_is_free(curator: dt.Curator, key: str) -> None:
    """Also where an earlier answer could give groups: a quote looks for one."""
    curator.ask("SELECT state, COUNT(*) AS n FROM people GROUP BY 1", epsilon=1)
    before = curator.budget.spent
    for call in (curator.quote, curator.ask):
        with pytest.raises(dt.DitherError, match="has no group") as caught:
            call(f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY 1", epsilon=1)
        assert "Charged: nothing" in str(caught.value)
    assert curator.budget.spent == before


def test_the_plan_says_how_many(curator: dt.Curator) -> None:
    assert "5 public values of region, abbrev" in curator.quote(BY_STATE, epsilon=1).explain()


def test_the_groups_and_the_price_do_not_depend_on_people() -> None:
    with dt.open(catalog(0), ledger=":memory:") as empty, dt.open(catalog(), ledger=":memory:") as full:
        one, two = (each.ask(BY_STATE, epsilon=1) for each in (empty, full))
        assert [row[:2] for row in one.rows] == [row[:2] for row in two.rows]
        assert one.price == two.price
        assert one.plan == two.plan


def test_a_group_that_is_not_possible_is_dropped_before_the_noise() -> None:
    text = "SELECT MONTH(born) AS a, QUARTER(born) AS b, COUNT(*) AS n FROM people GROUP BY 1, 2"
    known = catalog()
    made = plan(read(text, known), known, Price(Fraction(1000)))
    exact = [Group((m, q), None, ((7,),)) for m in range(1, 13) for q in range(1, 5)]
    noisy = release(made, exact)
    assert noisy.keys == tuple((m, (m + 2) // 3) for m in range(1, 13))
    assert [int(cell) for cell in np.asarray(noisy.cells[0]).ravel()] == [7] * 12


def test_such_a_question_is_another_one_than_before() -> None:
    """A ledger that has an answer with impossible groups keeps it, for its own question."""
    known = catalog()
    one, two = (
        plan(read(f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY 1, 2", known), known, Price(Fraction(1)))
        for keys in ("MONTH(born) AS a, QUARTER(born) AS b", "QUARTER(born) AS b, MONTH(born) AS a")
    )
    assert one.together
    assert identity([one]).text != identity([replace(one, together=())]).text
    assert identity([one]).text == identity([two]).text


def test_free_answers_show_the_same_groups() -> None:
    """Stored answers by finer keys give the combinations that can be; those by keys that depend on each other give nothing."""
    with dt.open(catalog(), ledger=":memory:") as curator:
        curator.ask("SELECT born, COUNT(*) AS n FROM people GROUP BY 1", epsilon=1)
        question = "SELECT QUARTER(born) AS q, MONTH(born) AS m, COUNT(*) AS n FROM people GROUP BY 1, 2"
        answer = curator.ask(question, free=True)
        assert [row[:-1] for row in answer.rows] == [((m + 2) // 3, m) for m in range(1, 13)]
        curator.ask(BY_STATE, epsilon=1)
        with pytest.raises(dt.DitherError):
            curator.ask(f"SELECT s.region, COUNT(*) AS n FROM {JOINED} GROUP BY 1", free=True)
