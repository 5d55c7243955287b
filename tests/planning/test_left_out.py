"""What bounds leave out is estimated within its interval, at the stated share of the price, and one person moves one class."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dither as dt
from dither.planning.left_out import SHARE, LeftOut, left_out_of, reserved
from dither.planning.left_out.estimate import Cells, share
from dither.planning.outputs import Noisy, release
from dither.planning.program import Batch
from dither.query.nodes import Compute, PerUnit

Frame = Mapping[str, np.ndarray]
SECRET = bytes(range(32))
MONTHS = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"
PEOPLE = "SELECT month, COUNT(DISTINCT person) AS n FROM visits GROUP BY month"
ALONE = "SELECT COUNT(*) AS n FROM visits"
SUM = "SELECT ward, SUM(weight) AS s FROM visits GROUP BY ward"  # counts no rows, so the classes are of all rows
BESIDE = "SELECT AVG(weight) AS w, SUM(month) AS m FROM visits"  # the mean counts only the rows that have a weight
FILTERS = "SELECT COUNT(*) FILTER (WHERE ward = 'a') AS a, SUM(weight) FILTER (WHERE ward = 'b') AS b FROM visits"


def heavy_tailed(people: int = 3000) -> dict[str, np.ndarray]:
    """Visits: most people have few, some have hundreds. Months 10 to 12 and the ward c are not public, weights may be NULL."""
    random = np.random.default_rng(14)
    person = np.repeat(np.arange(people), np.minimum(random.pareto(0.9, people) * 2 + 1, 400).astype(int))
    weight = random.lognormal(3, 1, len(person))
    weight[random.random(len(person)) < 0.1] = np.nan
    wards = random.choice(["a", "b", "c"], len(person), p=[0.6, 0.3, 0.1])
    return {"person": person, "month": random.integers(0, 13, len(person)), "ward": wards, "weight": weight}


FRAME = heavy_tailed()


def opened(
    frame: Frame = FRAME, unit: str = "person", key: str | None = None, epsilon: int = 10**6, **budget: Any
) -> dt.Curator:
    columns = {"month": dt.between(0, 9), "ward": dt.values("a", "b"), "weight": dt.between(0, 50)}
    bounds = {} if unit == "row" else {"max_rows": 2, "max_groups": 3}
    table = dt.Table(dict(frame), unit=unit, key=key, columns=columns, **bounds)
    return dt.open(dt.Catalog({"visits": table}, dt.Budget(epsilon, **budget)), ":memory:")


def not_counted(keys: str, where: str, max_rows: int, max_groups: int, of: str = "COUNT(*)") -> float:
    """Returns the expected share of what is not counted, in plain SQL."""
    visits = {name: values.astype(str) if name == "ward" else values for name, values in FRAME.items()}
    with duckdb.connect() as connection:
        connection.register("visits", __import__("pyarrow").table(visits))
        ((found,),) = connection.execute(f"""
            WITH own AS (SELECT person, {keys} AS key, {of} AS k FROM visits WHERE {where} GROUP BY ALL),
            person AS (SELECT COUNT(*) AS g, SUM(k) AS t, SUM(LEAST(k, {max_rows})) AS m FROM own GROUP BY person)
            SELECT 1 - SUM(m * LEAST(1, {max_groups} / g)) / SUM(t) FROM person""").fetchall()
    return float(found)


NOT_NULL = "NOT isnan(weight)"
TRUTHS = {
    MONTHS: not_counted("month", "month <= 9", 2, 3),
    PEOPLE: not_counted("month", "month <= 9", 1, 3, "1"),
    ALONE: not_counted("0", "TRUE", 2, 1),
    SUM: not_counted("ward", f"ward <> 'c' AND {NOT_NULL}", 2, 3),
    BESIDE: not_counted("0", "TRUE", 2, 1),
    FILTERS: not_counted("0", f"ward = 'a' OR (ward = 'b' AND {NOT_NULL})", 2, 1),
}


@pytest.mark.parametrize("sql", TRUTHS)
def test_without_noise_the_estimate_is_the_truth(sql: str) -> None:
    """From the engine's exact numbers. Only the groups that are kept are random, and here their secret is fixed."""
    with opened() as curator:
        program = _program(curator, sql, epsilon=2)
        exact = [curator.engine.run(plan.work, SECRET) for plan in program.plans]
    assert _bounded_truth(program, exact) == pytest.approx(TRUTHS[sql], abs=0.01)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("sql", TRUTHS)
def test_with_little_noise_it_is_seen_that_rows_were_left_out(sql: str) -> None:
    with opened() as curator:
        (found, *_) = curator.ask(sql, epsilon=1000).left_out
    assert found.seen
    assert found.low <= TRUTHS[sql] + 0.02


@pytest.mark.usefixtures("recorded")
@pytest.mark.slow
@pytest.mark.parametrize("sql", TRUTHS)
def test_the_interval_holds_the_truth_at_its_rate(sql: str) -> None:
    lows, highs = _misses(sql)
    assert lows + highs <= 6  # of 60 at 95 %, and the intervals are wider


@pytest.mark.usefixtures("recorded")
@pytest.mark.slow
def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin thinks that the noise reaches a tenth as far as it does."""
    honest = Cells.reach
    monkeypatch.setattr(Cells, "reach", lambda self, weights, confidence: honest(self, weights, confidence) / 10)
    assert sum(_misses(MONTHS)) > 6


def _misses(sql: str, times: int = 60) -> tuple[int, int]:
    """Returns how often the truth is below the interval, or above it, of draws on the same exact numbers."""
    with opened() as curator:
        program = _program(curator, sql, epsilon=2)
        exact = [curator.engine.run(plan.work, SECRET) for plan in program.plans]
    truth = _bounded_truth(program, exact)
    low = high = 0
    for _ in range(times):
        released = [release(plan, groups) for plan, groups in zip(program.plans, exact, strict=True)]
        found = program.left_out(released, Fraction(95, 100))[0]
        low += truth < found.low
        high += found.beyond is None and truth > found.high
    return low, high


def _program(curator: dt.Curator, sql: str, **terms: Any) -> Batch:
    return curator.quote(sql, **terms).program


def _bounded_truth(program: Batch, exact: list[Any]) -> float:
    """Returns the share for the groups that were kept: the same estimate, from exact numbers."""
    noisy = []
    for plan, groups in zip(program.plans, exact, strict=True):
        by_key = {group.key: group for group in groups}
        drawn = release(plan, groups)
        cells = [
            np.array([by_key[key].measures[i] if key in by_key else noise.of.empty_value for key in drawn.keys])
            for i, noise in enumerate(plan.noises)
        ]
        noisy.append(Noisy(drawn.keys, tuple(each.reshape(len(drawn.keys), -1) for each in cells)))
    quiet = [replace(plan, noises=tuple(replace(n, mechanism=_Quiet()) for n in plan.noises)) for plan in program.plans]
    return left_out_of(program.cuts.parts, quiet, noisy, Fraction(95, 100))[0].estimate


class _Quiet:
    noise_scale = 0.0
    gaussian = False


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("unit", ["person", "row"])
def test_clipped_sums_are_estimated(unit: str) -> None:
    """Of rows with a public ward: what lies above 50, of everything. Infinite weights count as the far bound."""
    frame = {name: values.copy() for name, values in FRAME.items()}
    frame["weight"][:3] = [np.inf, -np.inf, np.nan]
    kept = (FRAME["ward"] != "c") & np.isfinite(frame["weight"])
    truth = np.maximum(frame["weight"][kept] - 50, 0).sum() / frame["weight"][kept].sum()
    sql = "SELECT ward, COUNT(*) AS n, AVG(weight) AS w FROM visits GROUP BY ward"
    with opened(frame, unit) as curator:
        found = {each.bounds[0][0]: each for each in curator.ask(sql, epsilon=1000).left_out if each.clipped}
    assert found["above"].estimate == pytest.approx(truth, abs=0.02 if unit == "row" else 0.06)  # which rows count is random
    assert found["above"].seen
    assert not found["below"].seen


def test_a_clamp_of_the_question_is_a_cut_too() -> None:
    kept = np.isfinite(FRAME["weight"])
    truth = np.maximum(FRAME["weight"][kept] - 20, 0).sum() / FRAME["weight"][kept].sum()
    with opened(unit="row") as curator:
        found = curator.ask("SELECT SUM(CLAMP(weight, 0, 20)) AS w FROM visits", epsilon=1000).left_out
        nothing = curator.ask("SELECT SUM(CASE WHEN weight > 20 THEN 1 ELSE 0 END) AS w FROM visits", epsilon=1000)
    assert found[0].estimate == pytest.approx(truth, abs=0.02)
    assert nothing.left_out == ()


def test_sums_of_any_sign_are_said_as_amounts() -> None:
    frame = {**FRAME, "weight": np.where(np.arange(len(FRAME["person"])) % 2 == 0, 60.0, -70.0)}
    table = dt.Table(dict(frame), unit="row", columns={"weight": dt.between(-50, 50)})
    with dt.open(dt.Catalog({"visits": table}, dt.Budget(10**6)), ":memory:") as curator:
        above, below = curator.ask("SELECT SUM(weight) AS s FROM visits", epsilon=1000).left_out
    many = len(frame["person"]) / 2
    assert (above.amount, below.amount) == (True, True)
    assert above.estimate == pytest.approx(10 * many, rel=0.02)
    assert below.estimate == pytest.approx(20 * many, rel=0.02)
    assert "too high: clipped at -50" in str(below)


# --- price ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.01", "1", "100", "1000"])
@pytest.mark.parametrize("sql", [MONTHS, "SELECT ward, COUNT(*) AS n, AVG(weight) AS w FROM visits GROUP BY ward"])
def test_the_answer_and_the_estimate_cost_the_price_together(sql: str, epsilon: str) -> None:
    price = Fraction(epsilon)
    with opened() as curator:
        program = _program(curator, sql, epsilon=price)
        assert program.charge.epsilon == price
        assert sum(plan.price.epsilon for plan in program.plans[1:]) == reserved(price) <= price * SHARE
        answer = curator.ask(sql, epsilon=price)
        assert curator.budget.spent.epsilon == price
    assert answer.as_data()["price"]["epsilon"] == str(price)
    assert f"charged ε = {epsilon};" in answer.footer()


@pytest.mark.parametrize(
    ("sql", "how"),
    [
        (ALONE, {"unit": "row"}),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", {"unit": "row"}),
        ("SELECT COUNT(DISTINCT person) AS n FROM visits", {}),
        ("SELECT ward, COUNT(DISTINCT person) AS n FROM visits GROUP BY ward", {}),  # two wards, three may count
        ("SELECT COUNT(*) AS n FROM (SELECT person, COUNT(*) AS k FROM visits GROUP BY person) t WHERE k > 2", {}),
        (MONTHS, {"left_out": False}),
    ],
)
def test_where_nothing_can_be_cut_the_whole_price_buys_the_answer(sql: str, how: dict[str, Any]) -> None:
    with opened(**how) as curator:
        program = _program(curator, sql, epsilon=1)
    assert len(program.plans) == 1
    assert program.plans[0].price.epsilon == 1


def test_a_person_of_one_declared_row_cannot_be_cut() -> None:
    _, first = np.unique(FRAME["person"], return_index=True)
    with opened({name: values[first] for name, values in FRAME.items()}, key="person") as curator:
        assert len(_program(curator, MONTHS, epsilon=1).plans) == 1
        assert "each person counts" not in curator.ask(MONTHS, epsilon=1).footer()


def test_a_question_can_turn_it_off_and_on() -> None:
    with opened() as curator, opened(left_out=False) as without:
        assert len(_program(curator, MONTHS, epsilon=1).plans) == 2
        assert len(_program(curator, MONTHS, epsilon=1, left_out=False).plans) == 1
        assert len(_program(without, MONTHS, epsilon=1, left_out=True).plans) == 2
        with pytest.raises(dt.DitherError, match="left_out must be True or False"):
            curator.quote(MONTHS, epsilon=1, left_out="no")


def test_a_margin_is_reached_beside_the_estimate() -> None:
    with opened(epsilon=100) as curator:
        program = _program(curator, ALONE, margin=50)
        answer = curator.ask(ALONE, margin=50)
    assert (answer.margins()["n"][0] or 99) <= 50
    assert len(program.plans) == 2


# --- privacy ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [*TRUTHS, "SELECT AVG(weight) AS w FROM visits"])
def test_a_person_with_ten_thousand_rows_moves_one_class_by_one(sql: str) -> None:
    for noise, moved in _moves(sql, lambda program: program.plans[1:]):
        assert moved <= noise.mechanism.sensitivity.total(None) == noise.of.row


def test_that_this_check_can_fail() -> None:
    """The twin counts each row of a person, not each person: the source of the histogram before it is grouped."""

    def twin(program: Batch) -> list[Any]:
        plan = program.plans[1]
        source = plan.work.source
        assert isinstance(source, Compute)
        rows = source.source
        while not isinstance(rows, PerUnit):
            rows = rows.source
        return [replace(plan, work=replace(plan.work, source=_ungrouped(source)))]

    assert any(moved > noise.of.row for noise, moved in _moves(ALONE, twin))


def _ungrouped(relation: Any) -> Any:
    """Returns the histogram's source with each row as its own person: grouped by month too, and therefore many rows each."""
    if isinstance(relation, PerUnit):
        from dither.query.nodes import Column, Named

        month = (Named("#month", Column("visits.month")),)
        inner = relation.source
        assert isinstance(inner, Compute)
        with_month = Compute(inner.source, (*inner.columns, Named("visits.month", Column("visits.month"))))
        return replace(relation, source=with_month, keys=(*relation.keys, *month))
    return replace(relation, source=_ungrouped(relation.source))


def _moves(sql: str, chosen: Any) -> list[tuple[Any, int]]:
    """Returns each noise of the chosen plans, and how far its numbers move when a person with 10,000 heavy rows comes."""
    many = 10**4
    heavy = {"person": np.full(many, 99_999), "month": np.arange(many) % 13, "ward": np.array(["a", "b"] * (many // 2))}
    heavy["weight"] = np.linspace(-1000, 10**6, many)
    exact = []
    for frame in (FRAME, {name: np.concatenate([FRAME[name], heavy[name]]) for name in FRAME}):
        with opened(frame) as curator:
            plans = chosen(_program(curator, sql, epsilon=1))
            exact.append([{g.key: g.measures for g in curator.engine.run(plan.work, SECRET)} for plan in plans])
    found = []
    for place, plan in enumerate(plans):
        before, after = (each[place] for each in exact)
        for i, noise in enumerate(plan.noises):
            empty = noise.of.empty_value
            pairs = [(before[k][i] if k in before else empty, after[k][i] if k in after else empty) for k in before | after]
            found.append((noise, sum(abs(x - y) for one, two in pairs for x, y in zip(one, two, strict=True))))
    return found


# --- what is said -----------------------------------------------------------------------------------------------


def test_a_stored_answer_says_the_same_again() -> None:
    with opened() as curator:
        first = curator.ask(MONTHS, epsilon=1)
        again = curator.ask(f"{MONTHS} ORDER BY n", epsilon=1)
    assert again.replayed
    assert again.left_out == first.left_out


def test_the_footer_says_it_before_what_is_always_so() -> None:
    with opened() as curator:
        answer = curator.ask(MONTHS, epsilon=100)
        quote = str(curator.quote(MONTHS, epsilon=100))
    text = answer.footer()
    assert 0 < text.index("of rows or more were not counted") < text.index("not included in ±")
    assert "max_groups = 3" in text
    assert "rows with other values of month" in text
    assert answer.as_data()["left_out"][0]["of"] == "rows"
    assert "ε = 5 of the price is for an estimate of how many rows were not counted" in quote
    assert "were not counted" in answer._repr_html_()


@pytest.mark.parametrize(("key", "said"), [("MONTH(born)", True), ("late", True), ("COALESCE(MONTH(born), 0)", False)])
def test_the_footer_says_that_rows_without_a_key_are_in_no_group(key: str, said: bool) -> None:
    frame = pa.table({"id": [1, 2, 3], "born": [datetime.date(1990, 1, 1), None, None], "late": [True, None, False]})
    born = dt.column(between=(datetime.date(1980, 1, 1), datetime.date(1999, 12, 31)))
    table = dt.Table(frame, unit="id", key="id", max_rows=1, columns={"born": born, "late": dt.column()})
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10)), ledger=":memory:") as curator:
        answer = curator.ask(f"SELECT {key} AS m, COUNT(*) AS n FROM t GROUP BY m", epsilon=1)
    assert ("rows with other values of" in answer.footer()) == said


def test_sentences() -> None:
    rows = LeftOut("rows", 0.41, 0.37, 0.45, (("max_groups", "5", 0.4), ("max_rows", "20", 0.01)))
    assert str(rows) == "about 41 % of rows were not counted (37 % to 45 %): max_groups = 5"
    assert (
        str(replace(rows, beyond="640 rows")) == "about 41 % of rows or more were not counted (at least 37 %): max_groups = 5"
    )
    assert str(replace(rows, low=0.0, high=0.02)) == "no sign that rows were left out (at most 2 %)"
    aside = str(replace(rows, low=0.0, high=0.02, beyond="640 rows"))
    assert aside == "no sign that rows were left out (at most 2 %, people with more than 640 rows aside)"
    assert str(replace(rows, low=0.0, high=0.7)) == "noise hides how many rows were left out"
    nearly = str(replace(rows, estimate=0.9999, low=0.998, high=1.0, beyond="640 rows"))
    assert nearly == "nearly all rows were not counted (at least 99 %): max_groups = 5"
    both = replace(rows, bounds=(("max_groups", "5", 0.3), ("max_rows", "20", 0.11)))
    assert str(both).endswith(": max_groups = 5 (30 %), max_rows = 20 (11 %)")
    income = LeftOut("income", 0.12, 0.09, 0.15, (("above", "100000", 0.12),), "1600000", clipped=True)
    assert str(income) == "about 12 % or more of the sum of income was clipped at 100000 (at least 9 %)"


def test_about_is_said_only_where_the_interval_supports_it() -> None:
    wide = LeftOut("rows", 0.41, 0.1, 0.8, (("max_groups", "5", 0.3), ("max_rows", "20", 0.11)))
    assert str(wide) == "10 % to 80 % of rows were not counted: max_groups = 5, max_rows = 20"
    open_end = replace(wide, estimate=1.0, low=0.034, high=1.0, beyond="640 rows")
    assert str(open_end) == "at least 3.4 % of rows were not counted, noise hides how many: max_groups = 5, max_rows = 20"
    assert str(replace(open_end, low=0.00049)).startswith("some rows were not counted, noise hides how many: ")
    rating = LeftOut("rating", 2.4e-5, 7.1e-7, 0.3, (("above", "3", 2.4e-5),), "8", clipped=True)
    assert str(rating) == "a part of the sum of rating was clipped at 3, noise hides how much"
    assert str(replace(rating, low=0.01)) == "at least 1 % of the sum of rating was clipped at 3, noise hides how much"
    assert str(replace(rating, low=0.01, beyond=None)) == "1 % to 30 % of the sum of rating was clipped at 3"
    low = replace(rating, bounds=(("below", "0", 2.4e-5),))
    assert str(low) == "the sum of rating is too high: clipped at 0, noise hides how much"
    assert str(replace(low, low=0.01)) == "the sum of rating is at least 1 % too high: clipped at 0, noise hides how much"
    amount = replace(rating, estimate=90.0, low=10.0, high=np.inf, amount=True)
    assert str(amount) == "at least 10 of the sum of rating was clipped at 3, noise hides how much"


def test_no_sign_is_said_only_where_little_can_be_left_out() -> None:
    rows = LeftOut("rows", 0.02, 0.0, 0.1, (("max_rows", "20", 0.02),))
    assert str(rows) == "no sign that rows were left out (at most 10 %)"
    assert str(replace(rows, high=0.44)) == "noise hides how many rows were left out (at most 44 %)"
    gap = replace(rows, of="gap", high=0.36, bounds=(("above", "3", 0.02),), clipped=True)
    assert str(gap) == "noise hides how much of gap was clipped (at most 36 % of the sum)"
    assert str(replace(gap, high=3.7e7, amount=True)) == "noise hides how much of gap was clipped"
    assert str(replace(gap, high=0.0, amount=True)) == "no sign that gap was clipped (at most 0 of the sum)"


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
@pytest.mark.parametrize("sql", TRUTHS)
def test_about_is_never_far_from_the_truth(sql: str, epsilon: str) -> None:
    """One in twenty intervals may miss the truth."""
    assert _far_off(sql, epsilon, lambda found: str(found).startswith("about")) <= 6


@pytest.mark.usefixtures("recorded")
def test_that_every_estimate_would_be_far_from_it() -> None:
    """The twin says "about" whenever something was seen, however wide the interval is."""
    assert _far_off(MONTHS, "1", lambda found: found.seen) > 6


def _far_off(sql: str, epsilon: str, about: Callable[[LeftOut], bool], times: int = 40) -> int:
    """Returns how often an estimate with "about" is more than twice the truth, or less than half of it."""
    with opened() as curator:
        program = _program(curator, sql, epsilon=epsilon)
        exact = [curator.engine.run(plan.work, SECRET) for plan in program.plans]
    truth, wrong = _bounded_truth(program, exact), 0
    for _ in range(times):
        released = [release(plan, groups) for plan, groups in zip(program.plans, exact, strict=True)]
        found = program.left_out(released, Fraction(95, 100))[0]
        wrong += about(found) and not truth / 2 <= found.estimate <= 2 * truth
    return wrong


def test_people_beyond_the_last_class_make_it_at_least() -> None:
    """Fifty people with a million rows' worth each: the last class has no end, so the estimate is a lower bound."""
    ones, many = np.ones(4), np.array([100.0, 0.0, 0.0, 50.0])
    cells = Cells(many, 0.1 * ones, np.arange(4), np.array([0.0, 1, 10, 100]), np.array([1.0, 2, 20, 200]), ones)
    found = share(cells, [1.0] * 4, 0, Fraction(95, 100))
    assert found.level == 3
    assert 0 < found.low < found.estimate


@pytest.mark.usefixtures("recorded")
def test_a_small_limit_is_not_stated_where_many_people_may_be_beyond_it() -> None:
    """Four in ten people far outside, under noise that hides them: no reassuring upper end."""
    rng = np.random.default_rng(3)
    salary = np.where(rng.random(850) < 0.4, 5e6, 5e5)
    table = dt.Table(
        {"id": np.arange(850), "salary": salary.astype(int)}, unit="id", key="id", columns={"salary": dt.column(kind="int")}
    )
    with dt.open(dt.Catalog({"p": table}, dt.Budget(10**6)), ledger=":memory:") as curator:
        for _ in range(10):
            answer = curator.ask("SELECT AVG(CLAMP(salary, 0, 1000000)) AS s FROM p", epsilon="0.3", fresh=True)
            assert all(each.seen or each.high > 0.6 for each in answer.left_out if each.bounds[0][0] == "above")


def test_that_a_limit_for_light_people_alone_would_be() -> None:
    """The twin: the limit of the classes near the bounds, whoever is beyond them."""
    people = np.array([500.0, 10.0, 340.0])
    cells = Cells(people, np.full(3, 5.0), np.arange(3), np.array([0.0, 0.1, 4.0]), np.array([1.0, 1.1, 5.0]), np.ones(3))
    assert share(cells.up_to(1), [1.0] * 2, 0, Fraction(95, 100)).high < 0.1
    assert share(cells, [1.0] * 3, 0, Fraction(95, 100)).high > 0.6
