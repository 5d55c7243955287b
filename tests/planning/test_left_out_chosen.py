"""What chosen bounds leave out: read from the noisy count that chose them, for nothing, within its interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest

import dither as dt
from dither.answer import _number, _unsure
from dither.planning.auto import Auto
from dither.planning.left_out import LeftOut, reserved
from dither.planning.left_out.base import Kept
from dither.planning.left_out.bins import BinsPart
from dither.planning.outputs import Noisy, release
from dither.planning.program import Batch
from dither.planning.terms import Terms, plan_answer
from dither.query.read import read

SECRET = bytes(range(32))
CONFIDENCE = Fraction(95, 100)
SURE = 1 - Fraction(1, 10**10)
ALONE = "SELECT COUNT(*) AS n FROM visits"
MONTHS = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"
PEOPLE = "SELECT month, COUNT(DISTINCT person) AS n FROM visits GROUP BY month"
SUM = "SELECT ward, SUM(weight) AS s FROM visits GROUP BY ward"  # counts no rows
FOUND = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"  # keys are discovered, so not all of the count is shown
MEAN = "SELECT AVG(weight) AS w FROM visits"


def event_log(people: int = 3000) -> dict[str, np.ndarray]:
    """Visits of people, most of whom have few, and of a few robots with a thousand each. Months 11 and 12 are not public."""
    random = np.random.default_rng(11)
    many = np.minimum(random.pareto(0.9, people) * 2 + 1, 500).astype(int)
    many[:40] = random.integers(600, 2000, 40)
    person = np.repeat(np.arange(people), many)
    weight = random.lognormal(3, 1, len(person))
    weight[random.random(len(person)) < 0.1] = np.nan
    wards = random.choice(["a", "b", "c"], len(person), p=[0.6, 0.3, 0.1])
    day = random.integers(0, 30, len(person))
    return {"person": person, "month": random.integers(1, 13, len(person)), "ward": wards, "weight": weight, "day": day}


FRAME = event_log()


def opened(frame: Mapping[str, np.ndarray] = FRAME, left_out: bool = True, **table: Any) -> dt.Curator:
    columns = {
        "month": dt.between(1, 10),
        "ward": dt.values("a", "b"),
        "weight": dt.between(0, 50),
        "day": dt.column(kind="int"),
    }
    visits = dt.Table(dict(frame), unit="person", columns=columns, **table)
    return dt.open(dt.Catalog({"visits": visits}, dt.Budget(10**6, "1/1000", left_out=left_out)), ":memory:")


def program_of(curator: dt.Curator, sql: str, epsilon: Any, **terms: Any) -> Auto:
    asked = Terms.of(epsilon, **terms)
    made = plan_answer(read(sql, curator.catalog), curator.catalog, curator.session.caps, asked, sql)
    assert isinstance(made, Auto)
    return made


KEYS = {ALONE: "0", MONTHS: "month", PEOPLE: "month", SUM: "ward", FOUND: "day", MEAN: "0"}
WHERE = {MONTHS: "month <= 10", PEOPLE: "month <= 10", SUM: "ward <> 'c' AND NOT isnan(weight)", MEAN: "NOT isnan(weight)"}


@cache
def truth(sql: str, max_rows: int, max_groups: int) -> tuple[float, int]:
    """Returns the expected share of what is not counted, and the most that one person has, in plain SQL."""
    visits = {name: values.astype(str) if name == "ward" else values for name, values in FRAME.items()}
    of = "1" if sql == PEOPLE else "COUNT(*)"
    with duckdb.connect() as connection:
        connection.register("visits", pyarrow.table(visits))
        ((found, most),) = connection.execute(f"""
            WITH own AS (SELECT person, {KEYS[sql]} AS key, {of} AS k FROM visits WHERE {WHERE.get(sql, "TRUE")} GROUP BY ALL),
            person AS (SELECT COUNT(*) AS g, SUM(k) AS t, SUM(LEAST(k, {max_rows})) AS m FROM own GROUP BY person)
            SELECT 1 - SUM(m * LEAST(1, {max_groups} / g)) / SUM(t), MAX(t) FROM person""").fetchall()
    return float(found), int(most)


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    (ALONE, 1, {}),
    (ALONE, 20, {}),
    (MONTHS, 2, {}),
    (MONTHS, 20, {"caps": {"max_groups": 3, "max_rows": 8}}),
    (MONTHS, 20, {"max_rows": 2}),
    (PEOPLE, 2, {"caps": {"max_groups": 4}}),
    (PEOPLE, 20, {"caps": {"max_groups": 4}}),
    (SUM, 5, {}),
    (SUM, 50, {"max_groups": 1}),
    (FOUND, 10, {"caps": {"max_groups": 4}}),
    (MEAN, 10, {}),
]


def draws(sql: str, epsilon: Any, table: Mapping[str, Any], times: int) -> list[tuple[LeftOut, float, int]]:
    """Returns what is said about rows, the truth for the bounds that were chosen, and the most that one person has."""
    with opened(**table) as curator:
        program = program_of(curator, sql, epsilon)
        exact = {plan.work: curator.engine.run(plan.work, SECRET) for plan in program.plans}
    found = []
    for _ in range(times):
        counted = release(program.histogram, exact[program.histogram.work])
        (own,) = program.choose(counted).plans
        bounds = (own.bounding.max_rows, own.bounding.max_groups)
        beside = [release(plan, exact[plan.work]) for plan in program.beside]
        batch, noisy, _ = program.answer([counted, Noisy((bounds,), ()), release(own, exact[own.work]), *beside])
        rows = [each for each in batch.left_out(noisy, CONFIDENCE) if not each.clipped]
        found += [(each, *truth(sql, *bounds)) for each in rows]
    return found


def misses(sql: str, epsilon: Any, table: Mapping[str, Any], times: int = 60) -> int:
    """Returns how often the truth is outside of what is said. An upper end that leaves people out says nothing of them."""
    missed = 0
    for found, share, most in draws(sql, epsilon, table, times):
        held = found.beyond is None or most <= int(found.beyond.split()[0])
        missed += share < found.low or (held and share > found.high)
    return missed


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("sql", "epsilon", "table"), CASES)
def test_the_interval_holds_the_truth_at_its_rate(sql: str, epsilon: Any, table: dict[str, Any]) -> None:
    assert misses(sql, epsilon, table) <= 6  # of 60 at 95 %, and the intervals are wider


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("sql", "epsilon", "table"), [CASES[1], CASES[6]])
def test_that_check_can_fail(sql: str, epsilon: Any, table: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes the middle of a bin for what each person in it has."""
    monkeypatch.setattr(BinsPart, "_least", BinsPart._middle)
    monkeypatch.setattr(BinsPart, "_most", BinsPart._middle)
    assert misses(sql, epsilon * 50, table) > 6


def outside(sql: str, table: Mapping[str, Any], bounds: dict[str, int]) -> int:
    """Returns how many people lose or keep something else than the ends of their bin say, by the arithmetic of the engine."""
    with opened(**table) as curator:
        program = program_of(curator, sql, 1)
    (own,) = next(each.plans for each in program.candidates if bounds.items() <= vars(each.plans[0].bounding).items())
    batch, _, _ = program.answer([Noisy((), ()), Noisy(((own.bounding.max_rows, own.bounding.max_groups),), ()), Noisy((), ())])
    part, random, found = batch.cuts.parts[0], np.random.default_rng(5), 0
    assert isinstance(part, BinsPart)
    for _ in range(2000):
        groups = int(random.integers(1, (part.last or 40) + 1))
        rows = np.minimum(random.pareto(0.7, groups) * 2 + 1, 60_000).astype(int)
        place = part.classes.place("groups", groups), part.classes.place("rows", int(rows.max()))
        ends = part._ends([place[0]], [place[1]])
        kept = np.minimum(rows, part.max_rows).sum() * min(1, part.max_groups / groups)
        least, most = part._least(ends), part._most(ends)
        lost = rows.sum() - kept
        within = least.lost[0] - 1e-6 <= lost and most.kept[0] - 1e-6 <= kept <= least.kept[0] + 1e-6
        found += not (within and (ends.open[0] or lost <= most.lost[0] + 1e-6))
    return found


ENDS: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    (ALONE, {}, {"max_rows": 64}),
    (MONTHS, {}, {"max_rows": 4, "max_groups": 4}),
    (MONTHS, {"max_rows": 6}, {"max_groups": 2}),
    (FOUND, {"caps": {"max_groups": 4}}, {"max_rows": 1, "max_groups": 4}),
]


@pytest.mark.parametrize(("sql", "table", "bounds"), ENDS)
def test_everyone_loses_and_keeps_what_the_ends_of_a_bin_allow(sql: str, table: Any, bounds: Any) -> None:
    assert outside(sql, table, bounds) == 0


def test_that_this_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BinsPart, "_most", BinsPart._middle)
    assert outside(*ENDS[1]) > 0


@pytest.mark.usefixtures("recorded")
def test_robots_beyond_the_largest_candidate_are_seen() -> None:
    """Forty robots have most of the rows, and the largest candidate is 256 rows."""
    found = draws(ALONE, 20, {}, 20)
    assert all(each.seen and each.low > 0.1 for each, _, _ in found)
    assert all(abs(each.estimate - share) < 0.15 for each, share, _ in found)


@pytest.mark.usefixtures("recorded")
def test_groups_that_are_all_public_have_an_upper_end() -> None:
    found = draws(PEOPLE, 20, {"caps": {"max_groups": 4}}, 20)
    assert all(each.beyond is None and each.of == "people in groups" for each, _, _ in found)
    assert all(each.high - each.low < 0.4 for each, _, _ in found)


@pytest.mark.usefixtures("recorded")
def test_at_most_is_not_said_where_nobody_beyond_the_bounds_is_meant() -> None:
    """At a small price noise hides robots, and an upper end without them would hide them a second time."""
    for found, _, _ in draws(ALONE, Fraction(1, 10), {}, 10):
        assert found.seen or found.high == 1.0 or int((found.beyond or "0").split()[0]) >= 4 * int(found.bounds[0][1])


def test_nobody_within_the_bounds_loses_anything() -> None:
    few = {name: values[np.unique(FRAME["person"], return_index=True)[1]] for name, values in FRAME.items()}
    with opened(few) as curator:
        answer = curator.ask(ALONE, epsilon=1000)
    (found,) = answer.left_out
    assert (found.low, found.seen) == (0.0, False)
    assert found.estimate < 0.01


# --- price ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.01", "1", "1000"])
@pytest.mark.parametrize("sql", [MONTHS, SUM, MEAN])
def test_the_choice_the_answer_and_the_values_cost_the_price_together(sql: str, epsilon: str) -> None:
    price = Fraction(epsilon)
    with opened() as curator:
        program = program_of(curator, sql, price)
        assert program.charge.epsilon == price
        assert sum(plan.price.epsilon for plan in program.beside) == (0 if sql == MONTHS else reserved(price))
        curator.ask(sql, epsilon=price)
        assert curator.budget.spent.epsilon == price


def test_values_are_asked_about_alike_whatever_is_chosen() -> None:
    with opened() as curator:
        first, *others = [program_of(curator, SUM, 1, **bounds).parts for bounds in ({}, {"max_rows": 7}, {"max_groups": 1})]
    assert first
    assert all([each.question.query for each in first] == [each.question.query for each in other] for other in others)


def test_what_is_free_is_said_even_where_nothing_is_spent_on_it() -> None:
    with opened() as curator, opened(left_out=False) as without:
        assert len(program_of(curator, MEAN, 1).beside) == 1
        assert program_of(curator, MEAN, 1, left_out=False).beside == ()
        assert program_of(without, MEAN, 1).beside == ()
        (rows,) = without.ask(MEAN, epsilon=20).left_out
        quote = without.quote(MEAN, epsilon=20)
    assert rows.of == "rows"
    assert quote.as_data()["left_out"] == {"epsilon": "0", "for": ["how many rows were not counted"]}
    assert "how many rows were not counted is estimated from the same noisy count of people, free" in str(quote)
    assert "of the price is for an estimate" not in str(quote)


def test_where_one_candidate_is_left_its_bounds_are_fixed_and_so_is_their_estimate() -> None:
    """One group: max_groups has one candidate, and the catalog names max_rows."""
    with opened(max_rows=2) as curator:
        program: Any = curator.quote(ALONE, epsilon=1).program
        (found,) = curator.ask(ALONE, epsilon=1000).left_out
    assert len(program.plans) == 2
    assert found.seen


# --- what is said -----------------------------------------------------------------------------------------------


def test_a_stored_answer_says_the_same_again() -> None:
    with opened() as curator:
        first = curator.ask(MEAN, epsilon=20)
        again = curator.ask("SELECT AVG(weight) AS other FROM visits", epsilon=20)
    assert again.replayed
    assert again.left_out == first.left_out
    assert {each.of for each in first.left_out} == {"rows", "visits.weight"}


@pytest.mark.usefixtures("recorded")
def test_the_answer_says_it() -> None:
    with opened() as curator:
        answer = curator.ask(MEAN, epsilon=50)
        quote = str(curator.quote(MEAN, epsilon=50))
    text = answer.footer()
    assert 0 < text.index("of rows or more were not counted") < text.index("chosen for 10 % of ε") < text.index("not included")
    assert "of the sum of visits.weight was clipped at 50" in text
    assert answer.as_data()["left_out"][0]["of"] == "rows"
    assert "ε = 2.5 of the price is for an estimate of how much of visits.weight was clipped" in quote


def test_what_was_clipped_is_not_scaled_by_an_estimate_that_noise_hides() -> None:
    hidden = LeftOut("rows", 0.43, 0.0, 0.75, ())
    assert Kept().after(hidden) == Kept(0.25, 1.0, 1.0)
    seen = LeftOut("rows", 0.5, 0.25, 0.75, ())
    assert Kept().after(seen) == Kept(0.25, 0.5, 0.75)
    assert Kept().after(seen).after(hidden) == Kept(0.0625, 0.5, 0.75)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("people", [600, 3000])
def test_the_clipped_share_holds_whatever_was_counted(people: int) -> None:
    """The share of the whole sum that is beyond the bound is in the interval, however many rows noise hides."""
    frame = event_log(people)
    weight = np.where(np.isnan(frame["weight"]), 0, frame["weight"])
    over = np.maximum(weight - 50, 0).sum() / weight.sum()
    with opened(frame) as curator:
        for _ in range(4):
            answer = curator.ask(MEAN, epsilon=20, fresh=True)
            (clipped,) = (each for each in answer.program.left_out(answer.released, SURE) if each.clipped and each.high <= 1)
            assert clipped.low <= over <= clipped.high or (clipped.beyond is not None and clipped.low <= over)


# --- a warning before the numbers --------------------------------------------------------------------------------


def shop(**table: Any) -> dt.Curator:
    """A shop as small as its noise: 59 customers with 2,240 lines, a third of them of one genre."""
    line = np.arange(2240)
    genre = np.array(["rock", "metal", "jazz", "rock", "latin", "blues"])[line % 6]
    frame = {"customer": line % 59, "genre": genre, "price": 1.0 + line % 2}
    columns = {"genre": dt.values("blues", "jazz", "latin", "metal", "rock"), "price": dt.between(0, 2)}
    lines = dt.Table(frame, unit="customer", columns=columns, **table)
    return dt.open(dt.Catalog({"lines": lines}, dt.Budget(10**6)), ":memory:")


GENRES = "SELECT genre, COUNT(*) AS n FROM lines GROUP BY genre"
ROCK = 747  # lines, as plain SQL counts them


@pytest.mark.usefixtures("recorded")
def test_hidden_losses_within_chosen_bounds_lead_the_note() -> None:
    warned = 0
    with shop() as curator:
        for _ in range(12):
            answer = curator.ask(GENRES, epsilon="0.3", fresh=True)
            (rows,) = (each for each in answer.left_out if not each.clipped)
            assert bool(answer.warning) == rows.hidden
            assert answer.as_data()["warning"] == (answer.warning or None)
            if answer.warning:
                warned += 1
                first, *rest = answer.notes()
                assert first == answer.warning
                assert str(answer).endswith("\n".join(answer.notes()))
                assert first.startswith(
                    "these numbers may be far off, whatever ± says: noise hides how many rows were left out"
                )
                assert rows.seen or not any("noise hides how many rows" in each for each in rest)  # said once
                assert f"<strong>{answer.warning}" in answer._repr_html_()
                if "max_rows = 1 and max_groups = 1," in answer.chosen:
                    assert answer["n"][answer["genre"].index("rock")] < ROCK / 2  # type: ignore[operator]
    assert warned >= 3  # nearly all; each misses with less than a half


def payments() -> tuple[dict[str, Any], int]:
    """Returns 4,000 payments of people by Zipf's law (a few have most), and those in the first quarter."""
    rng = np.random.default_rng(1)
    person = np.minimum(rng.zipf(1.5, 4000), 10**6)
    quarter = rng.integers(1, 5, 4000)
    return {"person": person, "quarter": quarter}, int((quarter == 1).sum())


QUARTERS = "SELECT quarter, COUNT(*) AS n FROM payments GROUP BY quarter"


@pytest.mark.usefixtures("recorded")
def test_hidden_losses_of_a_few_heavy_people_lead_the_note_whatever_was_chosen() -> None:
    """Bounds above the smallest, and most rows left out: 300 ± 20 payments in a quarter that has 1,000."""
    frame, first = payments()
    table = dt.Table(frame, unit="person", columns={"quarter": dt.values(1, 2, 3, 4)})
    larger = 0
    with dt.open(dt.Catalog({"payments": table}, dt.Budget(10**4)), ":memory:") as curator:
        for _ in range(12):
            answer = curator.ask(QUARTERS, epsilon=5, fresh=True)
            (rows,) = answer.left_out
            if rows.hidden:
                assert answer.notes()[0] == answer.warning
                assert answer.warning.startswith("these numbers may be far off, whatever ± says: noise hides how many rows")
                larger += "max_rows = 1 " not in answer.chosen
            else:  # then the answer says how much it left out
                assert rows.seen
                assert rows.low <= 1 - float(answer["n"][0]) / first + 0.1  # type: ignore[arg-type]
    assert larger >= 6  # nearly all


def test_the_warning_is_given_again_with_the_answer() -> None:
    with shop() as curator:
        answers = [curator.ask(GENRES, epsilon="0.3") for _ in range(2)]
    assert answers[1].replayed
    assert answers[0].warning == answers[1].warning


@pytest.mark.parametrize(("estimate", "warned"), [(0.9999, True), (0.6, True), (0.34, False)])
def test_an_answer_that_seems_to_leave_out_most_rows_has_the_warning(
    estimate: float, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise makes it seem so at times; the numbers are not to be read without doubt either way."""
    found = LeftOut("rows", estimate, estimate * 0.9, min(1.0, estimate * 1.5), (("max_rows", "8", estimate),), "256 rows")
    monkeypatch.setattr(Batch, "left_out", lambda self, released, confidence: (found,))
    with shop() as curator:
        answer = curator.ask(GENRES, epsilon=900)
        assert (
            answer.warning.startswith("these numbers may be far off, whatever ± says: most rows seem to be left out") == warned
        )
        assert (answer.warning != "") == warned
        if warned:
            assert answer.notes()[0] == answer.warning


def test_that_other_answers_have_no_warning() -> None:
    """The twins: named bounds, a price that shows what was lost, and nothing that can be lost."""
    with shop() as curator:
        assert curator.ask(GENRES, epsilon="0.3", max_rows=1, max_groups=1).warning == ""
        plain = curator.ask(GENRES, epsilon=900)
        assert plain["n"][plain["genre"].index("rock")] == pytest.approx(ROCK, abs=2)
        assert plain.warning == ""
        assert curator.ask("SELECT COUNT(DISTINCT customer) AS n FROM lines", epsilon="0.1").warning == ""


def test_parts_of_one_answer_warn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part chooses bounds of its own: the warning and the note name them all, in one sentence each."""
    found = LeftOut("rows", 0.9, 0.8, 1.0, (("max_rows", "8", 0.9),), "256 rows")
    monkeypatch.setattr(Batch, "left_out", lambda self, released, confidence: (found,))
    each = " UNION ALL ".join(
        f"SELECT '{key}' AS k, COUNT(*) AS n FROM lines WHERE genre {test}"
        for key, test in (("one", "= 'jazz'"), ("two", "IN ('rock', 'metal')"), ("all", "IS NOT NULL"))
    )
    with shop() as curator:
        text = str(curator.ask(each, epsilon=900))
    assert text.count("may be far off") == 1
    assert text.count("each person counts") == 1
    assert re.search(r"under the same noise \(max_rows = \d+( or \d+)+\)", text)


def test_a_key_that_is_not_shown_is_named_as_it_is_written() -> None:
    with shop() as curator:
        answer = curator.ask(
            "SELECT genre, COUNT(*) AS n FROM lines GROUP BY genre, UPPER(genre)", epsilon=900, max_rows=99, max_groups=9
        )
    assert "rows with other values of genre or UPPER(lines.genre)" in answer.footer()


def test_no_minus_is_shown_before_zero() -> None:
    assert (_number(-0.3, 56.0), _number(-0.0, 5.4), _number(-7, 3.0)) == ("0 ± 56", "0.0 ± 5.4", "-7 ± 3")
    assert _unsure(-0.0) == "0 ± ?"
