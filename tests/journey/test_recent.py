"""What is remembered of a question is its plan, never what the ledger says of it: quotes and stored answers are of now."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither import curator
from dither.curator import Curator
from dither.planning import recent as plans
from dither.planning.free.derive import Wanted
from dither.planning.free.groups import serving
from dither.planning.free.index import StoredIndex
from dither.planning.free.search import Search
from dither.planning.free.stored import parts_of
from dither.planning.recent import RecentPlans, key_of
from dither.planning.terms import Terms
from dither.query.read import WithParams
from planning.free_survey import survey as free_survey

CATALOG = """\
snapshot = "1"
[budget]
epsilon = 1
per_analyst = 0.6
[tables.people]
source = "people.csv"
unit = "id"
max_rows = 1
[tables.people.columns]
ward = {{ values = ["a", "b"{more}] }}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("id,ward\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(50)), encoding="utf-8")
    path = tmp_path / "catalog.toml"
    path.write_text(CATALOG.format(more=""), encoding="utf-8")
    curator.open(path, make=True).close()
    return path


@pytest.fixture
def survey(catalog: Path) -> Iterator[Curator]:
    with curator.open(catalog, analyst="ada") as opened:
        yield opened


@pytest.fixture
def other(catalog: Path) -> Iterator[Curator]:
    """Another process, as far as the ledger is concerned."""
    with curator.open(catalog, analyst="ben") as opened:
        yield opened


def quoted(survey: Curator, question: str = COUNT, epsilon: str = "0.5", **terms: Any) -> dt.Quote:
    """Quotes twice: the second one is of a plan that is remembered."""
    survey.quote(question, epsilon, **terms)
    before = len(survey._plans)
    found = survey.quote(question, epsilon, **terms)
    assert len(survey._plans) == before >= 1
    return found


def test_a_spent_budget_is_seen_at_once(survey: Curator, other: Curator) -> None:
    assert not quoted(survey).refusal
    other.ask(BY_WARD, "0.55")
    assert "budget" in quoted(survey).refusal


def test_a_spent_quota_is_seen_at_once(survey: Curator) -> None:
    assert not quoted(survey).refusal
    survey.ask(BY_WARD, "0.2")
    assert "quota of ada" in quoted(survey).refusal
    assert not quoted(survey, analyst="ben").refusal, "what is remembered is nobody's"


def test_an_answer_of_another_process_is_seen_at_once(survey: Curator, other: Curator) -> None:
    assert quoted(survey).again is None
    entry = other.ask(COUNT, "0.5").receipt.body["entry"]["number"]
    assert quoted(survey).again == entry


def test_a_free_answer_is_offered_as_soon_as_it_follows(survey: Curator, other: Curator) -> None:
    assert quoted(survey).free is None
    survey.ask(BY_WARD, "0.1")
    first = quoted(survey).free
    assert first is not None
    other.ask(BY_WARD, "0.2")
    second = quoted(survey).free
    assert second is not None
    assert len(first.entries) == 1
    assert first.entries == second.entries, "of an answer that she has not seen she would pay the quota"


def test_a_closed_and_a_reopened_catalog_is_seen_at_once(survey: Curator, other: Curator) -> None:
    survey.ask(COUNT, "0.1")
    assert not quoted(survey, BY_WARD).refusal
    other.ledger.close_questions("cora")
    assert quoted(survey, BY_WARD).refusal
    other.reopen()
    assert not quoted(survey, BY_WARD).refusal


def test_a_policy_and_an_approval_are_seen_at_once(survey: Curator, other: Curator) -> None:
    survey.ask(BY_WARD, "0.1")
    assert not quoted(survey).waits
    other.ledger.set_policy(Fraction(1, 10))
    assert quoted(survey).waits
    with pytest.raises(dt.ApprovalError) as raised:
        survey.ask(COUNT, "0.5")
    other.ledger.decide(raised.value.request, "cora", approve=True, seconds=60)
    assert not quoted(survey).waits


def test_a_changed_catalog_is_seen_at_once(survey: Curator, catalog: Path) -> None:
    assert not quoted(survey, BY_WARD).refusal
    survey.ask(BY_WARD, "0.1")
    catalog.write_text(CATALOG.format(more=', "c"'), encoding="utf-8")
    with pytest.raises(dt.LedgerError, match="changed"):
        survey.ask(BY_WARD, "0.1")
    with curator.open(catalog, analyst="ada") as again:
        again.ask(BY_WARD, "0.1")
        assert len(again.ask(BY_WARD, "0.1")) == 3
    assert "catalog was changed" in quoted(survey, COUNT).refusal


def test_another_catalog_object_is_planned_anew(survey: Curator) -> None:
    people = survey.catalog.tables["people"]
    first = quoted(survey, BY_WARD)
    more = replace(people, columns={**people.columns, "ward": replace(people.columns["ward"], values=("a", "b", "c"))})
    survey.catalog = replace(survey.catalog, tables={"people": more})
    assert survey.quote(BY_WARD, "0.5").plan.work.known != first.plan.work.known


def test_a_stored_answer_that_was_edited_is_refused_though_it_was_read_before(survey: Curator, catalog: Path) -> None:
    for _ in range(3):
        survey.ask(COUNT, "0.1")
    assert survey.ask(COUNT, "0.1").replayed
    entry = survey.ask(COUNT, "0.1").receipt.body["entry"]["number"]
    with sqlite3.connect(catalog.with_suffix(".ledger")) as raw:
        (body,) = raw.execute("SELECT body FROM entries WHERE number = ?", (entry,)).fetchone()
        raw.executescript("DROP TRIGGER entries_stay")
        raw.execute("UPDATE entries SET body = ? WHERE number = ?", (body.replace("values", "valueS"), entry))
    with pytest.raises(dt.LedgerError, match="verify"):
        survey.ask(COUNT, "0.1")


def test_whoever_changes_a_receipt_changes_only_theirs(survey: Curator) -> None:
    survey.ask(COUNT, "0.1")
    body: Any = survey.ask(COUNT, "0.1").receipt.body
    body["mechanisms"][0]["epsilon"] = "changed"
    body["question"] = "changed"
    again = survey.ask(COUNT, "0.1").receipt
    assert again.body["question"] == COUNT
    assert again.verify(survey.ledger.public_key)


# --- what is kept -----------------------------------------------------------------------------------------------


def test_the_plans_of_questions_in_use_are_kept(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MOST", 3)
    used = survey.quote(COUNT, "0.5").plan
    for place in range(2, 12):
        survey.quote(COUNT, Fraction(1, place * 7))
        assert survey.quote(COUNT, "0.5").plan is used
        assert len(survey._plans) <= 3


def test_no_more_text_is_kept_than_fits(survey: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    survey.quote(COUNT, "0.5")
    size = survey._plans._size
    monkeypatch.setattr(plans, "LARGEST", int(2.5 * size))
    for place in range(2, 12):
        survey.quote(COUNT, Fraction(1, place * 7))
        assert survey._plans._size <= 2.5 * size
    assert len(survey._plans) == 2
    monkeypatch.setattr(plans, "LARGEST", size // 2)
    survey.quote(COUNT, "0.31")
    assert len(survey._plans) <= 2, "what is too large is not kept"
    survey.forget_plans()
    assert (len(survey._plans), survey._plans._size) == (0, 0)


VALUES = [1, 1.0, True, "1", Decimal(1), Decimal("1.0"), None, 0.0, -0.0, datetime.date(2026, 1, 1), [1], [True], ["1"], [1, 1]]


def test_values_of_parameters_are_told_apart_by_their_types() -> None:
    terms = Terms.of("0.1")
    keys = [key_of(WithParams(COUNT, {"x": value}), terms) for value in VALUES]
    assert len(set(keys)) == len(VALUES)
    assert None not in keys
    assert key_of(WithParams(COUNT, {"x": object()}), terms) is None
    assert key_of(WithParams(COUNT, {"x": 1}), terms) != key_of(WithParams(COUNT, {"y": 1}), terms)


def test_terms_are_part_of_what_a_plan_is_found_by(survey: Curator) -> None:
    known = (survey.steps, survey.catalog, survey.session.caps)
    recent = RecentPlans()
    planned = survey._planned(COUNT, Terms.of("0.1"))
    recent.keep(COUNT, planned)
    assert recent.find(COUNT, Terms.of("1/10"), known) is planned
    assert recent.find(COUNT, Terms.of("0.2"), known) is None
    assert recent.find(COUNT, Terms.of("0.1", confidence="0.9"), known) is None
    assert recent.find(COUNT, Terms.of("0.1"), (survey.steps, replace(survey.catalog), survey.session.caps)) is None


# --- the index of stored answers --------------------------------------------------------------------------------

ASKED = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region",
    "SELECT region, sex, COUNT(*) AS n FROM people GROUP BY region, sex",
    "SELECT region, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY region",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 AND region = 'north' GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE age > 30 AND region = 'north' AND sex = 'F'",
    "SELECT ward, SUM(cost) AS c FROM visits GROUP BY ward",
    "SELECT SUM(cost) AS c FROM visits WHERE ward = 'a'",
    "SELECT SUM(cost) AS c FROM visits WHERE ward = 'a' OR ward = 'b'",
]


def test_the_index_finds_all_that_can_serve() -> None:
    with free_survey() as curator:
        for question in ASKED:
            curator.ask(question, epsilon="0.1", max_rows=5, max_groups=2)
        index, parts = StoredIndex(), []
        for each in curator.ledger.earlier(curator.session.declaration).read_on():
            parts += list(parts_of(each.entry, each.question.plan))
            index.add(parts_of(each.entry, each.question.plan))
        assert len(parts) >= len(ASKED)
        served = 0
        for question in ASKED:
            want = Search.of(curator.steps.read(question, curator.catalog), curator.catalog, Terms.of("0.1")).want
            assert isinstance(want, Wanted)
            right = {part.entry for part in parts if serving(want.asked, part) is not None}
            found = index.find(want.asked.rows, want.asked.unit)
            served += len(right)
            assert right <= set(found)
            assert found == sorted(found)
            assert index.find(want.asked.rows, want.asked.unit, found[0]) == found[1:]
        assert served > len(ASKED), "more than each by itself"
