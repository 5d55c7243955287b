"""Attacks on free answers: stored numbers serve no question that they do not answer, and nobody who may not get them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dither as dt
from dither.curator import Curator
from dither.ledger.verify.report import verify
from planning.free_survey import frames, survey, truth, without_engine

GROUPS = "SELECT region, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY region"
TOTAL = "SELECT COUNT(*) AS n FROM people"
WARDS = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
BINS = "SELECT FLOOR(age / {}) AS d, COUNT(*) AS n FROM people GROUP BY d"
CLAMPED = "SUM(CLAMP(income, 0, 100))"
VISITS = "SELECT COUNT(*) AS n FROM visits"


def refuses(curator: Curator, question: str, **terms: Any) -> bool:
    """Whether a free answer is refused, uncharged, and a quote does not offer it."""
    before = curator.budget
    with pytest.raises(dt.QueryError, match="No earlier answer gives this"):
        without_engine(curator).ask(question, free=True, **terms)
    assert curator.quote(question, epsilon="0.1", **terms).free is None
    return curator.budget == before


DIFFERENT: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (WARDS, {}, VISITS, {"max_rows": 3}),
    (WARDS, {"max_rows": 4}, VISITS, {}),
    (WARDS, {"max_groups": 3}, VISITS, {}),
    (WARDS, {}, VISITS, {"max_groups": 1}),
    (WARDS, {}, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {"max_groups": 4}),
    (GROUPS, {}, f"SELECT {CLAMPED} AS s FROM people", {}),
    (f"SELECT region, {CLAMPED} AS s FROM people GROUP BY region", {}, "SELECT SUM(income) AS s FROM people", {}),
    (GROUPS, {}, "SELECT COUNT(*) AS n FROM people WHERE age > 30", {}),
    (GROUPS, {}, "SELECT COUNT(*) AS n FROM people WHERE region = 'north' AND sex = 'F'", {}),
    (GROUPS, {}, "SELECT COUNT(*) AS n FROM people WHERE region = 'north' OR age > 30", {}),
    (f"{GROUPS.replace('GROUP BY', 'WHERE age > 30 GROUP BY')}", {}, TOTAL, {}),
    (f"{GROUPS.replace('GROUP BY', 'WHERE age > 30 GROUP BY')}", {}, "SELECT COUNT(*) AS n FROM people WHERE age > 31", {}),
    ("SELECT COUNT(*) AS n FROM people WHERE region = 'north'", {}, TOTAL, {}),
    ("SELECT region, COUNT(*) AS n FROM people WHERE region <> 'south' GROUP BY region", {}, TOTAL, {}),
    (GROUPS, {}, "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", {}),
    (GROUPS, {}, "SELECT COUNT(age) AS n FROM people", {}),
    (GROUPS, {}, "SELECT SUM(age) AS n FROM people", {}),
    (GROUPS, {}, "SELECT COUNT(*) AS n FROM (SELECT id FROM people WHERE sex = 'F')", {}),
    (BINS.format(20), {}, BINS.format(10), {}),
    (BINS.format(20), {}, BINS.format(30), {}),
    (BINS.format(10), {}, "SELECT COUNT(*) AS n FROM people WHERE age > 120", {}),
    (
        "SELECT COUNT(DISTINCT person) AS n, ward FROM visits GROUP BY ward",
        {},
        "SELECT COUNT(DISTINCT person) AS n FROM visits",
        {},
    ),
    ("SELECT CASE WHEN region = 'north' THEN 'n' END AS k, COUNT(*) AS n FROM people GROUP BY k", {}, TOTAL, {}),
    ("SELECT COUNT(DISTINCT person) AS n, ward FROM visits GROUP BY ward", {}, VISITS, {}),
    (VISITS, {}, "SELECT COUNT(DISTINCT person) AS n FROM visits", {}),
]


@pytest.mark.parametrize(("earlier", "then", "asked", "now"), DIFFERENT)
def test_other_rows_bounds_or_clipping_serve_nothing(
    earlier: str, then: dict[str, Any], asked: str, now: dict[str, Any]
) -> None:
    with survey() as curator:
        curator.ask(earlier, epsilon=1, **then)
        assert refuses(curator, asked, **now)


SAME: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (WARDS, {}, VISITS, {}),
    (WARDS, {}, VISITS, {"max_rows": 5, "max_groups": 2}),
    (WARDS, {"max_rows": 4, "max_groups": 3}, VISITS, {"max_rows": 4, "max_groups": 3}),
    (GROUPS, {}, "SELECT SUM(income) AS s FROM people", {}),
    (
        "SELECT region, COUNT(*) AS n FROM people WHERE region <> 'south' GROUP BY region",
        {},
        "SELECT COUNT(*) AS n FROM people WHERE region <> 'south'",
        {},
    ),
]


@pytest.mark.parametrize(("earlier", "then", "asked", "now"), SAME)
def test_that_check_can_fail(earlier: str, then: dict[str, Any], asked: str, now: dict[str, Any]) -> None:
    """The same bounds, rows and clipping do serve."""
    with survey() as curator:
        curator.ask(earlier, epsilon=1, **then)
        assert curator.quote(asked, epsilon="0.1", **now).free is not None
        assert without_engine(curator).ask(asked, free=True, **now).made_of


def test_another_snapshot_or_catalog_serves_nothing(tmp_path: Path) -> None:
    ledger = str(tmp_path / "a.ledger")
    with survey(ledger=ledger, snapshot="1") as curator:
        curator.ask(GROUPS, epsilon=1)
        assert curator.ask(TOTAL, free=True).made_of == (4,)
    with survey(ledger=ledger, snapshot="2") as curator:
        assert refuses(curator, TOTAL)
    with survey(ledger=ledger, snapshot="1", max_rows=6) as curator:
        assert refuses(curator, TOTAL), "another declaration, as for a repeated question"
    with survey(ledger=ledger, snapshot="1") as curator:
        assert curator.ask(TOTAL, free=True).made_of == (4,)


def test_an_open_session_serves_nothing_under_a_newer_catalog(tmp_path: Path) -> None:
    ledger = str(tmp_path / "a.ledger")
    with survey(ledger=ledger, snapshot="1") as old:
        old.ask(GROUPS, epsilon=1)
        with survey(ledger=ledger, snapshot="2") as new:
            new.ask(TOTAL, epsilon=1)
        assert old.quote(TOTAL, epsilon="0.1").free is None
        with pytest.raises(dt.DitherError, match="catalog was changed"):
            old.ask(TOTAL, free=True)


def _towns() -> dt.Catalog:
    frame = pd.DataFrame({"id": range(900), "town": ["a", "b", "c"] * 300, "sex": ["F", "M"] * 450})
    table = dt.Table(frame, unit="id", key="id", columns={"town": dt.column(kind="text"), "sex": dt.values("F", "M")})
    return dt.Catalog({"people": table}, dt.Budget(epsilon=100, delta="1e-4"))


def test_groups_that_were_found_in_the_data_serve_nothing() -> None:
    """Which of them are shown was decided by noise, and the others are missing."""
    with dt.open(_towns(), ledger=":memory:") as curator:
        assert len(curator.ask("SELECT town, COUNT(*) AS n FROM people GROUP BY town", epsilon=10)) == 3
        assert refuses(curator, TOTAL)
        with pytest.raises(dt.QueryError, match="not declared"):
            curator.ask("SELECT town, COUNT(*) AS n FROM people GROUP BY town", free=True)


def test_gaussian_and_geometric_noise_are_not_mixed() -> None:
    frame = pd.DataFrame({"id": [i % 50 for i in range(2000)], "k": [i % 40 for i in range(2000)]})
    table = dt.Table(frame, unit="id", max_rows=1, max_groups=40, columns={"k": dt.values(*range(40))})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10, delta="1e-5")), ledger=":memory:") as curator:
        question = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
        families = [curator.ask(question, epsilon=1, delta=delta).plan.noises[0].gaussian for delta in ("1e-6", 0)]
        assert families == [True, False]
        answer = curator.ask("SELECT COUNT(*) AS n FROM t", free=True)
        assert [noise.gaussian for noise in answer.plan.noises] == [True], "the one with less noise"


@pytest.mark.usefixtures("recorded")
def test_answers_of_a_list_and_of_grouping_sets_serve_as_what_they_are() -> None:
    cube = "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY CUBE (region, sex)"
    with survey() as curator:
        curator.ask(["SELECT AVG(age) AS a FROM people", GROUPS, WARDS], epsilon=10**5)
        total = without_engine(curator).ask(TOTAL, free=True)
        assert total["n"] == [1200]
        assert curator.ask("SELECT AVG(age) AS a FROM people", free=True)["a"] == pytest.approx(
            [truth("SELECT AVG(age) FROM people")[0][0]], abs=0.01
        )
    with survey() as curator:
        curator.ask(cube, epsilon=900)
        for text in (
            TOTAL,
            "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
            "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'",
        ):
            found = curator.ask(text, free=True)
            assert sorted(found.rows) == sorted(truth(text))
    with survey() as curator:
        curator.ask(["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", GROUPS], epsilon=1, max_rows="auto")
        assert refuses(curator, VISITS), "bounds that were chosen are in no plan"


def test_a_question_that_was_charged_and_never_answered_serves_nothing() -> None:
    def interrupt(*_: object) -> Any:
        raise KeyboardInterrupt

    with survey() as curator:
        engine = curator.engine
        steps = curator.steps
        curator.steps = type(steps)(run=interrupt)
        with pytest.raises(KeyboardInterrupt):
            curator.ask(GROUPS, epsilon=1)
        curator.steps = steps
        assert curator.engine is engine
        assert curator.budget.spent.epsilon == 1
        assert refuses(curator, TOTAL)


def test_a_stored_answer_that_was_edited_serves_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    with survey(ledger=str(ledger)) as curator:
        curator.ask(GROUPS, epsilon=1)
    with sqlite3.connect(ledger) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f'DROP TRIGGER "{name}"')
        table = _rows_table(file)
        (body,) = file.execute(f"SELECT body FROM {table} WHERE number = 4").fetchone()
        changed = body.replace('\\"values\\":[', '\\"values\\":[1', 1)
        assert changed != body
        file.execute(f"UPDATE {table} SET body = ? WHERE number = 4", (changed,))
    file.close()
    with survey(ledger=str(ledger)) as curator:
        assert curator.quote(TOTAL, epsilon="0.1").free is None
        with pytest.raises(dt.DitherError, match="was changed after it was written"):
            curator.ask(TOTAL, free=True)


def _rows_table(file: sqlite3.Connection) -> str:
    tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
    return next(name for name in tables if "body" in [row[1] for row in file.execute(f"PRAGMA table_info({name})").fetchall()])


# --- who may get them -------------------------------------------------------------------------------------------


def quotas(**more: Any) -> Callable[[], Curator]:
    return lambda: survey(epsilon=2, per_analyst=1, analysts=["ana", "ben"], **more)


def test_another_analyst_pays_in_the_quota_for_numbers_not_seen_before() -> None:
    with quotas()() as curator:
        curator.ask(GROUPS, epsilon="0.75", analyst="ana")
        before, quote = curator.budget, curator.quote(TOTAL, epsilon="0.1", analyst="ben")
        assert quote.free is not None
        assert quote.free.counted
        assert "counts in the quota of an analyst who has not seen them" in str(quote)
        answer = curator.ask(TOTAL, free=True, analyst="ben")
        assert curator.quota("ben").spent.epsilon == Fraction(3, 4)
        assert curator.budget == before
        assert "0.75, counts in the quota of ben" in answer.footer()
        assert answer.rows == curator.ask(TOTAL, free=True, analyst="ana").rows
        assert curator.quota("ana").spent.epsilon == Fraction(3, 4), "ana had seen them"
        curator.ask("SELECT SUM(income) AS s FROM people", free=True, analyst="ben")
        assert curator.quota("ben").spent.epsilon == Fraction(3, 4), "once"
        assert verify(curator.ledger.store, receipt=answer.receipt).problems == ()


def test_numbers_that_the_quota_does_not_allow_stay_hidden() -> None:
    with quotas()() as curator:
        curator.ask(GROUPS, epsilon="0.75", analyst="ana")
        curator.ask("SELECT AVG(age) AS a FROM people", epsilon="0.5", analyst="ben")
        head = curator.ledger.head()
        with pytest.raises(dt.BudgetError, match="quota of ben"):
            curator.ask(TOTAL, free=True, analyst="ben")
        assert curator.quote(TOTAL, epsilon="0.1", analyst="ben").free is None
        assert (curator.quota("ben").spent.epsilon, curator.ledger.head()) == (Fraction(1, 2), head)


def test_an_analyst_who_may_not_ask_gets_nothing() -> None:
    with quotas()() as curator:
        curator.ask(GROUPS, epsilon="0.75", analyst="ana")
        for who in ("eve", None):
            with pytest.raises(dt.ArgumentError, match="analyst"):
                curator.ask(TOTAL, free=True, analyst=who)


def test_what_was_seen_is_taken_first_where_there_are_quotas() -> None:
    with quotas()() as curator:
        curator.ask(GROUPS, epsilon="0.75", analyst="ana")
        curator.ask(GROUPS, epsilon="0.1", analyst="ben")
        mine = curator.ask(TOTAL, free=True, analyst="ben")
        assert mine.made_of == (6,)
        assert curator.quota("ben").spent.epsilon == Fraction(1, 10)


def test_all_are_combined_where_there_are_no_quotas() -> None:
    with survey() as curator:
        curator.ask(GROUPS, epsilon="0.75", analyst="ana")
        curator.ask(GROUPS, epsilon="0.7", analyst="ben")
        assert curator.ask(TOTAL, free=True, analyst="ben").made_of == (4, 6)


def test_free_answers_are_given_while_the_catalog_is_closed() -> None:
    def fail(*_: object) -> Any:
        raise ValueError("Mrs Miller")

    with survey() as curator:
        curator.ask(GROUPS, epsilon=1)
        steps = curator.steps
        curator.steps = type(steps)(run=fail)
        with pytest.raises(dt.DitherError):
            curator.ask(TOTAL, epsilon=1)
        curator.steps = steps
        assert curator.closed
        assert curator.ask(TOTAL, free=True).made_of == (4,)


def test_a_receipt_names_its_entries_and_verifies(tmp_path: Path) -> None:
    with survey(ledger=str(tmp_path / "a.ledger")) as curator:
        first = curator.ask(GROUPS, epsilon=1).receipt
        receipt = curator.ask(TOTAL, free=True).receipt
        read = dt.Receipt.from_json(receipt.to_json())
        assert read == receipt
        assert read.body["made_of"] == [first.body["entry"]]
        assert verify(curator.ledger.store, receipt=read).problems == ()
        forged = json.loads(receipt.to_json())
        forged["body"]["made_of"][0]["number"] = 3
        problems = " ".join(verify(curator.ledger.store, receipt=dt.Receipt.from_json(json.dumps(forged))).problems)
        assert "not signed" in problems
        assert "is no answer" in problems
    with survey(ledger=str(tmp_path / "b.ledger")) as other:
        other.ask(GROUPS, epsilon=1)
        assert verify(other.ledger.store, receipt=receipt).problems != ()


def test_rows_of_a_table_whose_rows_are_people() -> None:
    frame = frames()["people"]
    table = dt.Table(frame, unit="row", columns={"region": dt.values("north", "south", "east"), "income": dt.between(-50, 200)})
    with dt.open(dt.Catalog({"people": table}, dt.Budget(epsilon=10**6)), ledger=":memory:") as curator:
        curator.ask(GROUPS, epsilon=10**5)
        assert without_engine(curator).ask("SELECT COUNT(*) AS n, SUM(income) AS s FROM people", free=True).rows[0] == (
            pytest.approx(truth("SELECT COUNT(*), SUM(income) FROM people")[0], abs=0.5)
        )
