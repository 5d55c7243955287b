"""One person changes at most k steps of a stream, over all snapshots, and each by at most the claimed amount.

Histories of snapshots that only append are drawn at random, late rows included, with and without one person. What the engine
returns for both must not differ by more than the price is for.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.query.nodes import Filter, WithinUnit
from dither.query.work import Work
from dither.streams.plan import StreamPlan
from streams.visits import Visit, history, opened, planned, reference, totals

HORIZON, ENDS = 10, (3, 4, 8, 10)
SUM = "SELECT SUM(amount) FROM visits"
WHERE = "SELECT COUNT(*) FILTER (WHERE amount > 0) FROM visits WHERE amount IS NOT NULL"
QUESTIONS = ("SELECT COUNT(*) FROM visits", SUM, WHERE, "SELECT COUNT(amount) FROM visits")

visit = st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(-2, HORIZON + 2), st.none() | st.integers(-9, 20))
appended = st.lists(visit, max_size=12)
histories = st.lists(appended, min_size=len(ENDS), max_size=len(ENDS))  # what each snapshot adds: rows of any day, late or not


def snapshots(added: list[list[Visit]], without: int | None = None) -> list[list[Visit]]:
    """Returns the rows of each snapshot; without those of one person, in all of them."""
    rows: list[Visit] = []
    found = []
    for more in added:
        rows = [*rows, *(each for each in more if each[0] != without or without is None)]
        found.append(rows)
    return found


def changes(plan: StreamPlan, added: list[list[Visit]], person: int) -> list[int]:
    """Returns by how much the person changes each step."""
    both = (history([reference(rows) for rows in snapshots(added, who)], plan, ENDS) for who in (None, person))
    return [abs(a - b) for a, b in zip(*both, strict=True)]


def keeps(plan: StreamPlan, moved: list[int]) -> bool:
    """Whether the changes are within what the stream is priced for."""
    steps = [each for each in moved if each]
    return len(steps) <= plan.terms.contributions and max(steps, default=0) <= plan.terms.largest


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(question=st.sampled_from(QUESTIONS), k=st.sampled_from([1, 3]), added=histories, person=st.integers(0, 3))
def test_one_person_changes_at_most_k_steps_over_all_snapshots(
    question: str, k: int, added: list[list[Visit]], person: int
) -> None:
    plan = PLANS[question, k]
    assert keeps(plan, changes(plan, added, person))


PLANS = {(question, k): planned(question, max_groups=k, max_rows=2) for question in QUESTIONS for k in (1, 3)}

# A person who comes every day, and whose later days are all late once: k steps of each snapshot would be 4 k in all.
DAILY: list[list[Visit]] = [[(1, when, 5) for when in range(HORIZON)], [(1, 0, 5)], [(2, 7, 1)], [(1, 9, 5), (1, 1, 2)]]


def test_that_check_finds_a_bound_for_each_snapshot_alone() -> None:
    """The twin: the first k steps of what is new, as a bound on groups would have it."""
    plan = PLANS[QUESTIONS[0], 1]
    assert keeps(plan, changes(plan, DAILY, 1))
    assert not keeps(plan, changes(_Forgetful(**fields_of(plan)), DAILY, 1))


def test_that_check_finds_bounds_that_are_not_enforced() -> None:
    """The twin: no bound at all on steps, and none on rows."""
    plan = PLANS[QUESTIONS[0], 3]
    heavy: list[list[Visit]] = [[(1, 0, 5)] * 5, [], [], []]
    assert not keeps(plan, changes(_Unbounded(**fields_of(plan)), DAILY, 1))
    assert keeps(plan, changes(plan, heavy, 1))
    assert not keeps(plan, changes(replace(plan, max_rows=5), heavy, 1))  # enforced more loosely than it is priced


def test_the_lemma_needs_snapshots_that_only_append() -> None:
    """A person whose counted days are removed from later snapshots counts again: docs/known-limits.md says so."""
    plan = PLANS[QUESTIONS[0], 1]
    rows: list[list[Visit]] = [[(1, 0, 5)], [(1, 3, 5)], [(1, 5, 5)], [(1, 8, 5)]]
    assert sum(map(bool, history([reference(each) for each in rows], plan, ENDS))) == 4
    assert sum(map(bool, history([reference(each) for each in snapshots(rows)], plan, ENDS))) == 1


def fields_of(plan: StreamPlan) -> dict[str, Any]:
    return {each.name: getattr(plan, each.name) for each in fields(plan)}


class _Forgetful(StreamPlan):
    def work(self, start: int, end: int) -> Work:
        own = super().work(start, end)
        assert isinstance(own.source, Filter)
        assert isinstance(own.source.source, WithinUnit)
        return replace(own, source=own.source.source.source, max_groups=self.max_steps)


class _Unbounded(_Forgetful):
    def work(self, start: int, end: int) -> Work:
        return replace(super().work(start, end), max_groups=None)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(added=histories)
def test_what_is_appended_never_changes_what_was_read(added: list[list[Visit]]) -> None:
    """Rows of later days do not change the first days; so advancing in one go or day by day reads the same."""
    plan = PLANS[SUM, 3]
    last = snapshots(added)[-1]
    whole = totals(reference(last), plan, 0, HORIZON)
    days = [totals(reference([row for row in last if row[1] is None or row[1] < end]), plan, end - 1, end)[0] for end in ALL]
    assert whole == days == [totals(reference(last), plan, end - 1, end)[0] for end in ALL]


ALL = range(1, HORIZON + 1)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(added=histories)
def test_duckdb_reads_what_the_reference_engine_reads(added: list[list[Visit]]) -> None:
    rows = snapshots(added)[-1]
    with opened(rows) as survey:
        for plan in PLANS.values():
            assert totals(survey.engine, plan, 4, 9) == totals(reference(rows), plan, 4, 9)


@settings(max_examples=30, deadline=None)
@given(added=histories, kept=st.integers(0, 40))
def test_where_rows_are_protected_one_row_changes_one_step(added: list[list[Visit]], kept: int) -> None:
    plan = BY_ROW
    flat = [row for more in added for row in more]
    row = flat[kept % len(flat)] if flat else None
    less = [[each for each in more if each is not row] for more in added]
    both = [history([reference(rows) for rows in snapshots(each)], plan, ENDS) for each in (added, less)]
    assert keeps(plan, [abs(a - b) for a, b in zip(*both, strict=True)])


BY_ROW = planned(SUM, declared={"table": {"unit": "row", "max_rows": None, "max_groups": None}})


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(added=histories, other=histories)
def test_a_replaced_person_keeps_the_price_of_two(added: list[list[Visit]], other: list[list[Visit]]) -> None:
    plan = REPLACED
    rest = [[row for row in more if row[0] != 1] for more in added]
    sides: list[Any] = []
    for own in (added, other):
        mixed = [[*more, *(row for row in mine if row[0] == 1)] for more, mine in zip(rest, own, strict=True)]
        sides.append(history([reference(rows) for rows in snapshots(mixed)], plan, ENDS))
    assert keeps(plan, [abs(a - b) for a, b in zip(*sides, strict=True)])


REPLACED = planned(SUM, declared={"neighbours": "replace"}, max_groups=2)
