"""Bounds per question: a question names its own max_rows and max_groups, up to the caps of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.audit.ourselves.compare import complaints
from dither.audit.ourselves.observe import looser, observe, open_observed
from dither.curator import Curator
from dither.errors import ArgumentError
from dither.planning.terms import Terms
from journey.hospital import built, run

MONTHS = tuple(range(1, 13))
BY_MONTH = "SELECT month, COUNT(*) AS n, COUNT(DISTINCT person) AS people FROM orders GROUP BY month"
ALL = "SELECT COUNT(*) AS n FROM orders"


def orders(people: int = 40, each: int = 3) -> dict[str, list[int]]:
    """Everyone orders `each` times in every month."""
    rows = [(person, month) for person in range(people) for month in MONTHS for _ in range(each)]
    return {"person": [person for person, _ in rows], "month": [month for _, month in rows]}


def catalog(rows: dict[str, list[int]], **table: Any) -> dt.Catalog:
    declared = {"max_rows": 2, "max_groups": 3, "columns": {"month": dt.values(*MONTHS)}} | table
    people = dt.Table({"person": list(range(40))}, unit="person", max_rows=1, caps={"max_groups": 9})
    tables = {"orders": dt.Table(rows, unit={"column": "person", "references": "people.person"}, **declared), "people": people}
    return dt.Catalog(tables, dt.Budget(100_000))


@pytest.fixture
def survey() -> Iterator[Curator]:
    with dt.open(catalog(orders(), caps={"max_rows": 5, "max_groups": 12}), ledger=":memory:") as opened:
        yield opened


def test_a_question_is_answered_within_its_own_bounds(survey: Curator) -> None:
    few, all_of_them = survey.ask(BY_MONTH, epsilon=3000), survey.ask(BY_MONTH, epsilon=3000, max_rows=3, max_groups=12)
    assert sum(few["people"]) == 40 * 3
    assert sum(few["n"]) == 40 * 3 * 2
    assert all_of_them["n"] == [120] * 12
    assert all_of_them["people"] == [40] * 12


def test_what_it_says_is_what_is_priced_and_enforced(survey: Curator) -> None:
    plan = survey.quote(BY_MONTH, epsilon=1, max_rows=4, max_groups=7).plan
    assert (plan.bounding.max_rows, plan.bounding.max_groups, plan.work.max_groups) == (4, 7, 7)
    assert {measure.max_rows for measure in plan.work.measures} == {1, 4}, "people count once"
    assert {noise.mechanism.sensitivity.total(None) for noise in plan.noises} == {7, 28}
    counted = survey.quote("SELECT COUNT(DISTINCT month) AS n FROM orders", epsilon=1, max_rows=4).plan.work.measures[0]
    assert counted.max_values == 4


@pytest.mark.parametrize("neighbour", [39, 0])
def test_one_person_moves_an_answer_by_no_more_than_was_priced(neighbour: int) -> None:
    rows = orders()
    without = {
        name: [value for value, who in zip(part, rows["person"], strict=True) if who != neighbour]
        for name, part in rows.items()
    }
    bounds = {"max_rows": 3, "max_groups": 5}

    def wrong(change: Any = None) -> list[str]:
        with open_observed(catalog(rows), change) as full, open_observed(catalog(without), change) as less:
            return complaints(observe(full, BY_MONTH, **bounds), observe(less, BY_MONTH, **bounds))

    assert wrong() == []
    assert wrong(looser(groups=2)) != [], "an engine that keeps the table's bounds, not the question's, is found"


def test_the_default_written_out_is_the_same_question(survey: Curator) -> None:
    survey.ask(BY_MONTH, epsilon=1)
    assert survey.ask(BY_MONTH, epsilon=1, max_rows=2, max_groups=3).replayed
    assert survey.ask(BY_MONTH, epsilon=1, max_groups=3).replayed
    assert survey.budget.spent.epsilon == 1


@pytest.mark.parametrize("bounds", [{"max_rows": 3}, {"max_groups": 4}, {"max_rows": 1, "max_groups": 1}])
def test_two_bounds_are_two_questions(survey: Curator, bounds: dict[str, int]) -> None:
    survey.ask(BY_MONTH, epsilon=1)
    assert not survey.ask(BY_MONTH, epsilon=1, **bounds).replayed
    assert survey.budget.spent.epsilon == 2


def test_more_groups_than_there_are_is_all_of_them(survey: Curator) -> None:
    survey.ask(ALL, epsilon=1)
    assert survey.ask(ALL, epsilon=1, max_groups=9).replayed, "without GROUP BY there is one group"
    with dt.open(catalog(orders()), ledger=":memory:") as free:
        free.ask(BY_MONTH, epsilon=1, max_groups=12)
        assert free.ask(BY_MONTH, epsilon=1, max_groups=500).replayed


@pytest.mark.parametrize(("name", "most"), [("max_rows", 5), ("max_groups", 12)])
def test_a_bound_above_its_cap_is_refused_and_charges_nothing(survey: Curator, name: str, most: int) -> None:
    for call in (survey.ask, survey.quote):
        with pytest.raises(ArgumentError) as refused:
            call(BY_MONTH, epsilon=1, **{name: most + 1})
        assert str(refused.value).splitlines() == [
            f"{name} is {most + 1}, and a question about orders may say at most {most}.",
            f"    [tables.orders.caps] {name} = {most}",
            f"  Fix: give {name} a value of {most} or less, or let the curator raise the cap.   Charged: nothing.",
        ]
    assert survey.budget.spent.epsilon == 0
    survey.ask(BY_MONTH, epsilon=1, **{name: most})


def test_the_smallest_cap_of_all_tables_counts(survey: Curator) -> None:
    joined = "SELECT month, COUNT(*) AS n FROM orders JOIN people USING (person) GROUP BY month"
    with pytest.raises(ArgumentError, match="about people may say at most 9"):
        survey.quote(joined, epsilon=1, max_groups=10)
    assert survey.quote(joined, epsilon=1, max_groups=9).plan.bounding.max_groups == 9


def test_a_question_says_what_the_catalog_does_not() -> None:
    with dt.open(catalog(orders(), max_groups=None), ledger=":memory:") as survey:
        assert survey.quote(BY_MONTH, epsilon=1, max_groups=7).plan.bounding.max_groups == 7


def test_where_rows_are_protected_there_is_nothing_to_bound() -> None:
    table = dt.Table({"month": [1, 2]}, unit="row", columns={"month": dt.values(1, 2)})
    with dt.open(dt.Catalog({"orders": table}, dt.Budget(1)), ledger=":memory:") as survey:
        for name in ("max_rows", "max_groups"):
            with pytest.raises(ArgumentError, match=f"{name} bounds the rows of one person(.|\n)*Fix: leave {name} out"):
                survey.ask(ALL, epsilon=1, **{name: 2})


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many", [3]])
def test_a_bound_is_a_whole_number_above_zero(survey: Curator, value: Any) -> None:
    for name in ("max_rows", "max_groups"):
        with pytest.raises(ArgumentError, match=name):
            survey.quote(ALL, epsilon=1, **{name: value})


def test_declared_rows_do_not_count_where_a_person_may_have_several() -> None:
    """`rows` is about people with one row each: with more rows a mean must not be divided by it."""
    table = dt.Table({"person": [1, 2]}, unit="person", max_rows=1, rows={"at_least": 2})
    with dt.open(dt.Catalog({"people": table}, dt.Budget(1)), ledger=":memory:") as survey:
        query = survey.steps.read("SELECT COUNT(*) AS n FROM people", survey.catalog)
        terms = Terms.of(1)
        plan = survey.steps.plan
        assert plan(query, survey.catalog, survey.session.caps, terms, "").rows == 2
        assert plan(query, survey.catalog, survey.session.caps, replace(terms, max_rows=3), "").rows is None


def test_caps_are_part_of_the_catalog_and_change_no_older_digest() -> None:
    from dither.catalog.text import catalog_json

    assert "caps" not in catalog_json(catalog(orders())).replace('"caps": {"max_groups": 9, "max_rows": null}', "")
    assert '"max_groups": 12' in catalog_json(catalog(orders(), caps={"max_groups": 12}))


def test_the_command_line_passes_bounds_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(built(tmp_path))
    by_nights = "SELECT FLOOR(nights / 20) AS k, COUNT(*) AS n FROM visits GROUP BY k"
    quoted = run("quote", by_nights, "-e", "0.1", "--max-rows", "7", "--max-groups", "3")
    assert "counts at most 7 rows' worth in each of at most 3 groups" in " ".join(quoted.stdout.split())
    chosen = run("ask", "SELECT COUNT(*) AS n FROM visits", "-e", "0.1", "--max-rows", "auto")
    assert "max_rows = " in chosen.stderr
    assert "chosen for 10 % of ε" in " ".join(chosen.stderr.split())


@pytest.mark.usefixtures("recorded")
def test_the_command_line_warns_before_it_names_the_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty people with many rows: noise hides that, nearly always."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.csv").write_text("customer\n" + "".join(f"{n % 20}\n" for n in range(600)), encoding="utf-8")
    catalog = '[budget]\nepsilon = 10\n[tables.lines]\nsource = "lines.csv"\nunit = "customer"\n'
    (tmp_path / "catalog.toml").write_text(catalog, encoding="utf-8")
    assert run("init", "--catalog", "catalog.toml").exit_code == 0
    words = ("ask", "SELECT COUNT(*) AS n FROM lines", "-e", "0.1", "--max-rows", "auto", "--fresh")
    notes = [" ".join(run(*words).stderr.split()) for _ in range(5)]
    warned = [each for each in notes if "these numbers may be far off" in each]
    assert warned, notes
    assert all(each.startswith("these numbers may be far off") for each in warned)
    assert all("charged ε = 0.1" in each for each in notes)
