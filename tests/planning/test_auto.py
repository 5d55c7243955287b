"""Bounds that a question chooses: priced for every path, chosen from noisy counts alone, and not by noise on small data."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.engines.reference import Reference
from dither.planning import auto as choosing
from dither.planning import outputs
from dither.planning.auto import Auto, Candidates, Kind, believed, left_out, predicted_error
from dither.planning.contributions import Bin
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.program import charge
from dither.planning.records import encode_noisy
from dither.planning.terms import Terms, plan_answer
from dither.privacy.filters import Caps
from dither.query.read import read
from dither.query.work import Group, Work

MONTHS = tuple(range(1, 13))
PEOPLE = "SELECT month, COUNT(DISTINCT person) AS n FROM visits GROUP BY month"
VISITS = "SELECT month, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY month"
KINDS = {"visits": {"person": "int", "month": "int", "cost": "int"}}
SECRET = bytes(32)


def catalog(delta: Any = 0, neighbours: str = "add-remove", months: Sequence[int] = MONTHS, **table: Any) -> dt.Catalog:
    columns = {"month": dt.values(*months), "cost": dt.between(0, 100, kind="int")}
    tables = {"visits": dt.Table("visits.parquet", unit="person", columns=columns, **table)}
    if neighbours == "replace":
        tables["people"] = dt.Table("people.parquet", unit="person", max_rows=1, rows={"public": 9})
    return dt.Catalog(tables, dt.Budget(100, delta), neighbours)


def planned(text: str, declared: dt.Catalog, epsilon: Any = 1, **terms: Any) -> Any:
    caps = Caps.of(declared.budget.epsilon, declared.budget.delta)
    return plan_answer(read(text, declared), declared, caps, Terms.of(epsilon, **terms), text)


def auto(text: str = VISITS, declared: dt.Catalog | None = None, epsilon: Any = 1, **terms: Any) -> Auto:
    made = planned(text, catalog() if declared is None else declared, epsilon, **terms)
    assert isinstance(made, Auto)
    return made


def pairs(program: Auto) -> list[tuple[int, int]]:
    return [(each.bounding.max_rows, each.bounding.max_groups) for each in plans(program)]


def plans(program: Auto) -> list[Plan]:
    """The plans of the answer, one for each pair of bounds."""
    return [each.plans[0] for each in program.candidates]


# --- candidates: public, planned before anything is read --------------------------------------------------------


def test_candidates_are_powers_of_two_up_to_the_public_groups() -> None:
    assert auto().listed == Candidates((1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 2, 4, 8, 12))
    assert len(auto().candidates) == 45


def test_caps_limit_them() -> None:
    assert auto(declared=catalog(caps={"max_rows": 6, "max_groups": 3})).listed == Candidates((1, 2, 4, 6), (1, 2, 3))


def test_they_are_never_too_many() -> None:
    text = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"  # of counts, the largest is in range
    wide = auto(text, catalog(months=range(5000), caps={"max_rows": 10**6, "max_groups": 4000}))
    assert len(wide.candidates) <= choosing.MOST_CANDIDATES
    assert pairs(wide)[-1] == (10**6, 4000), "the caps stay among them"


def test_a_question_about_people_has_no_choice_of_rows() -> None:
    assert auto(PEOPLE).listed.rows == (1,)
    assert pairs(auto(PEOPLE)) == [(1, 1), (1, 2), (1, 4), (1, 8), (1, 12)]


def test_what_the_question_or_the_catalog_names_is_not_chosen() -> None:
    assert auto(declared=catalog(max_rows=7)).listed.rows == (7,)
    assert auto(max_rows=5).listed.rows == (5,)
    assert auto(declared=catalog(max_rows=7, max_groups=2), max_groups="auto").listed == Candidates((7,), (1, 2, 4, 8, 12))
    assert not isinstance(planned(VISITS, catalog(), max_rows=5, max_groups=3), Auto)
    assert not isinstance(planned(VISITS, catalog(max_rows=5, max_groups=3)), Auto)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT person) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM (SELECT person, COUNT(*) AS k FROM visits GROUP BY person) t WHERE k > 3",
    ],
)
def test_where_one_candidate_is_left_nothing_is_paid_for_a_choice(text: str) -> None:
    made = planned(text, catalog())
    assert not isinstance(made, Auto)
    assert made.plans[0].price.epsilon == 1
    assert (made.plans[0].bounding.max_rows, made.plans[0].bounding.max_groups) == (1, 1)


def test_one_row_for_each_person_needs_no_choice_even_where_it_is_asked_for() -> None:
    people = {"people": dt.Table("p.parquet", unit="person", key="person", columns={"age": dt.between(0, 9, kind="int")})}
    declared = dt.Catalog(people, dt.Budget(1))
    for terms in ({}, {"max_rows": "auto", "max_groups": "auto"}):
        made = planned("SELECT age, COUNT(*) AS n FROM people GROUP BY age", declared, **terms)
        assert made.plans[0].bounding.max_rows == made.plans[0].bounding.max_groups == 1
        assert made.plans[0].price.epsilon == 1


def test_candidates_whose_noise_is_out_of_range_are_left_out() -> None:
    columns = {"month": dt.values(*MONTHS), "cost": dt.between(0, 2**40, step=1)}
    declared = dt.Catalog({"visits": dt.Table("v.parquet", unit="person", columns=columns)}, dt.Budget(10))
    program = auto("SELECT month, SUM(cost) AS s FROM visits GROUP BY month", declared, epsilon=8)
    assert 1 < len(program.candidates) < 45
    with pytest.raises(dt.DitherError, match="out of range"):
        planned("SELECT month, SUM(cost) AS s FROM visits GROUP BY month", declared, epsilon="1/10")


def test_declared_rows_do_not_count_where_rows_are_chosen() -> None:
    people = {
        "people": dt.Table("p.parquet", unit="person", max_rows=1, rows={"at_least": 100}, columns={"x": dt.between(0, 1)})
    }
    made = planned("SELECT AVG(x) AS x FROM people", dt.Catalog(people, dt.Budget(1)), max_rows="auto")
    assert made.quoted.rows is None


def test_all_candidates_have_one_family_of_noise_and_one_price() -> None:
    program = auto(declared=catalog(delta="1e-6"))
    assert len({each.price for each in plans(program)}) == 1
    assert len({tuple(noise.gaussian for noise in each.noises) for each in plans(program)}) == 1
    assert {each.loss for each in plans(program)} == {plans(program)[0].loss}


def test_a_margin_has_no_price_where_bounds_are_chosen() -> None:
    with pytest.raises(dt.DitherError, match="name both bounds, as in max_rows=10 and max_groups=5"):
        planned(VISITS, catalog(), epsilon=None, margin=5)


# --- the charge: every path, and no less ------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("text", [VISITS, PEOPLE, "SELECT month, MEDIAN(cost) AS m FROM visits GROUP BY month"])
def test_the_charge_covers_every_path_in_every_component(text: str, neighbours: str, delta: Any) -> None:
    program = auto(text, catalog(delta, neighbours))
    paths = [charge([program.histogram, *program.beside, each]) for each in plans(program)]
    assert len(program.beside) == (text == VISITS), "costs may be clipped, and that is estimated whatever is chosen"
    for part in ("epsilon", "delta", "rho", "slack"):
        assert getattr(program.charge, part) == max(getattr(path, part) for path in paths)
    assert program.charge.epsilon == 1


@dataclass(frozen=True)
class Cheap(Auto):
    """The twin: charges for the chosen plan only."""

    @property
    def charge(self) -> Any:  # type: ignore[override]
        return self.candidates[-1].charge


def rows(*people: tuple[int, ...]) -> list[dict[str, Any]]:
    """People by the months of their visits."""
    return [{"person": who, "month": month, "cost": 1} for who, months in enumerate(people) for month in months]


@dataclass(frozen=True)
class Exact:
    """A program's exact numbers on one table, and the probability of everything it may release."""

    program: Auto
    table: list[dict[str, Any]]

    def integers(self, plan: Plan) -> list[int]:
        engine = Reference({"visits": self.table}, KINDS)
        by_key = {group.key: group for group in engine.run(plan.work, SECRET)}
        keys = outputs.choose_keys(plan, by_key)
        return [by_key[key].measures[0][0] if key in by_key else 0 for key in keys]  # type: ignore[index]

    def logs(self, plan: Plan, reach: Sequence[int]) -> list[list[float]]:
        """log Pr[cell = k] for each cell and each k in `reach`."""
        noise = plan.noises[0].mechanism
        return [[math.log(float(noise.law(exact).probability(k))) for k in reach] for exact in self.integers(plan)]


def loss(one: Exact, two: Exact, reach: Sequence[int]) -> float:
    """Returns the largest log ratio of two tables' probabilities over all (histogram, choice, answer) in the box."""
    program, worst = one.program, 0.0
    keys = tuple(outputs.choose_keys(program.histogram, {}))
    first = [np.subtract(a, b) for a, b in zip(*(each.logs(program.histogram, reach) for each in (one, two)), strict=True)]
    answers: dict[tuple[int, int], tuple[float, float]] = {}
    for plan in plans(program):
        cells = [np.subtract(a, b) for a, b in zip(*(each.logs(plan, reach) for each in (one, two)), strict=True)]
        bounds = (plan.bounding.max_rows, plan.bounding.max_groups)
        answers[bounds] = (sum(min(cell) for cell in cells), sum(max(cell) for cell in cells))
    for places in itertools.product(range(len(reach)), repeat=len(keys)):
        counted = Noisy(keys, (np.array([[reach[place]] for place in places]),))
        chosen = program.choose(counted).plans[0].bounding
        here = sum(float(cell[place]) for cell, place in zip(first, places, strict=True))
        low, high = answers[(chosen.max_rows, chosen.max_groups)]
        worst = max(worst, abs(here + low), abs(here + high))
    return worst


NEIGHBOURS = [
    (rows((1, 2, 3), (1,)), rows((1, 2, 3))),
    (rows((1, 2, 3), (1,), (2, 3)), rows((1,), (2, 3))),
    (rows((1, 2), (1, 2), (3,)), rows((1, 2), (3,))),
]


@pytest.mark.parametrize("place", range(len(NEIGHBOURS)))
def test_neighbours_through_the_whole_program_stay_within_the_charge(place: int) -> None:
    """Exactly: over every noisy histogram, what it chooses, and every answer. The twin that forgets the histogram fails."""
    program = auto(PEOPLE, catalog(months=(1, 2, 3), caps={"max_groups": 2}), epsilon=20)
    assert pairs(program) == [(1, 1), (1, 2)]
    light, heavy = (Noisy(program_keys(program), (np.array(each),)) for each in ([[9], [0], [0]], [[9], [9], [9]]))
    assert [program.choose(each).plans[0].bounding.max_groups for each in (light, heavy)] == [1, 2], "both ways are taken"
    one, two = (Exact(program, table) for table in NEIGHBOURS[place])
    worst = loss(one, two, range(-3, 8))
    twin = Cheap(program.histogram, program.candidates, program.listed, program.tables, program.query, program.classes)
    assert worst <= float(program.charge.epsilon) * (1 + 1e-9)
    if place == 1:
        assert worst > float(twin.charge.epsilon), "a person in both groups uses more than the chosen plan was priced for"


def program_keys(program: Auto) -> tuple[Any, ...]:
    return tuple(outputs.choose_keys(program.histogram, {}))


# --- the choice: from noisy counts and public facts ------------------------------------------------------------


def test_the_choice_runs_on_the_noisy_histogram_alone() -> None:
    """The engine's numbers reach the choice through the noise only."""
    program, seen = auto(PEOPLE), []

    def run(work: Work) -> Sequence[Group]:
        return Reference({"visits": rows(*[MONTHS] * 50)}, KINDS).run(work, SECRET)

    def noise(noise: Any, exact: Sequence[Any]) -> Any:
        seen.append(list(exact))
        return np.zeros((len(exact), 1), dtype=np.int64)

    _, bounds, _ = program.release(run, Draw(noise=noise))
    assert seen[0] == [(0,), (0,), (0,), (0,), (50,)], "everyone is in twelve groups, and there are no more"
    assert bounds.keys == ((1, 1),), "and the noise says that nobody is there"


def bins(program: Auto, people: dict[tuple[int, int], float]) -> list[Bin]:
    groups, most = len(program.classes.groups), len(program.classes.rows)
    return [Bin(g, r, int(people.get((g, r), 0))) for g in range(groups + 1) for r in range(most + 1)]


def chosen(program: Auto, people: dict[tuple[int, int], float]) -> tuple[int, int]:
    scale = program.histogram.noises[0].scale
    kinds = believed(bins(program, people), program.classes, program.quoted.plans[0].bounding.groups, scale)
    best = min(plans(program), key=lambda each: predicted_error(each, kinds)).bounding
    return best.max_rows, best.max_groups


def test_bounds_follow_the_people() -> None:
    """Classes are places: groups end at 1, 2, 4, 8, 12, rows at 1, 2, 4, ..., 256."""
    program = auto("SELECT month, COUNT(*) AS n FROM visits GROUP BY month", epsilon=2)
    assert chosen(program, {(0, 0): 5000}) == (1, 1)
    assert chosen(program, {(4, 0): 5000}) == (1, 12)
    assert chosen(program, {(0, 3): 50000}) == (8, 1)
    assert chosen(program, {(4, 3): 50000}) == (8, 12)


def test_an_empty_histogram_chooses_the_least_noise() -> None:
    for text in (VISITS, PEOPLE, "SELECT COUNT(*) AS n FROM visits"):
        assert chosen(auto(text), {}) == (1, 1)
        assert chosen(auto(text), dict.fromkeys(itertools.product(range(6), range(10)), -50)) == (1, 1)


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "text", [PEOPLE, "SELECT COUNT(*) AS n FROM visits", "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"]
)
def test_on_small_data_noise_does_not_choose_large_bounds(text: str) -> None:
    """Thirty people with one row each, under the noise of the histogram: nearly always the smallest bounds."""
    program = auto(text)
    noise = program.histogram.noises[0].mechanism
    found = []
    for _ in range(300):
        drawn = {(g, r): 30 * (g == r == 0) + int(noise.release(0)) for g in range(6) for r in range(10)}
        found.append(chosen(program, drawn))
    assert found.count((1, 1)) >= 270


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice that believes every positive count takes large bounds for noise."""
    monkeypatch.setattr(choosing, "_LIKELY", -100.0)
    monkeypatch.setattr(choosing, "_CERTAIN", 0.0)
    program = auto("SELECT COUNT(*) AS n FROM visits")
    noise = program.histogram.noises[0].mechanism
    found = [chosen(program, {(0, r): 30 * (r == 0) + int(noise.release(0)) for r in range(10)}) for _ in range(300)]
    assert found.count((1, 1)) < 270


def test_what_is_left_out_never_grows_with_the_bounds() -> None:
    people = [Kind(3.5, 6.5, 100), Kind(1, 1, 900), Kind(12, 40, 7)]
    for m, g in itertools.product((1, 2, 4, 8, 16, 32), (1, 2, 4, 8)):
        assert left_out(people, 2 * m, g) <= left_out(people, m, g)
        assert left_out(people, m, 2 * g) <= left_out(people, m, g)
    assert left_out(people, 1000, 1000) == 0


def test_a_mean_needs_no_bounds_that_a_count_needs() -> None:
    people = {(0, 0): 3000.0, (4, 2): 300.0}
    counts = chosen(auto("SELECT month, COUNT(*) AS n FROM visits GROUP BY month"), people)
    means = chosen(auto("SELECT month, AVG(cost) AS m FROM visits GROUP BY month"), people)
    assert means[0] * means[1] < counts[0] * counts[1]


# --- what is stored ---------------------------------------------------------------------------------------------


def released(program: Auto) -> tuple[Noisy, ...]:
    def run(work: Work) -> Sequence[Group]:
        return Reference({"visits": rows(*[MONTHS] * 50)}, KINDS).run(work, SECRET)

    return program.release(run, outputs.DRAW)


@pytest.mark.parametrize("text", [VISITS, PEOPLE])
def test_a_stored_answer_names_what_was_chosen_and_is_never_chosen_again(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = auto(text, epsilon=10)
    first = released(program)
    stored = program.write(first)
    monkeypatch.setattr(Auto, "choose", lambda *_: pytest.fail("chosen again"))
    again = program.read(stored)
    assert [each.keys for each in again] == [each.keys for each in first]
    assert all(
        np.array_equal(a, b) for one, two in zip(first, again, strict=True) for a, b in zip(one.cells, two.cells, strict=True)
    )
    assert program.answer(again)[0] == program.answer(first)[0]
    assert f'"keys":[[["int","{program.answer(first)[0].plans[0].bounding.max_rows}"],' in stored


def test_the_identity_is_of_everything_that_may_run() -> None:
    program = auto()
    assert auto().identity == program.identity
    others = [
        auto(epsilon=2),
        auto(PEOPLE),
        auto(max_rows=1),
        auto(declared=catalog(caps={"max_rows": 128})),
        replace(program, candidates=program.candidates[:-1]),
        replace(program, histogram=auto(epsilon=2).histogram),
    ]
    assert len({each.identity for each in (program, *others)}) == len(others) + 1


def test_unreadable_bounds_are_refused() -> None:
    program = auto(PEOPLE, epsilon=10)
    counted, _, answer = released(program)
    other = (counted, Noisy(((3, 5),), ()), answer)
    with pytest.raises(dt.DitherError, match="cannot read the stored answer"):
        program.read(encode_noisy(other))


FILE = Path(__file__).parent.parent / "golden" / "auto.txt"


def test_the_identity_and_a_stored_answer_are_those_of_the_file() -> None:
    """Ledgers hold both for ever."""
    program = auto(PEOPLE, catalog(months=(1, 2, 3), caps={"max_groups": 2}))
    counted = Noisy(program_keys(program), (np.array([[9], [-2], [40]]),))
    answer = Noisy(((1,), (2,), (3,)), (np.array([[7], [0], [-1]]),))
    stored = program.write((counted, Noisy(((1, 2),), ()), answer))
    found = f"{program.identity}\n\n{stored}\n"
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(found, encoding="utf-8")
    assert found == FILE.read_text(encoding="utf-8")
    assert program.answer(program.read(stored))[2] == "max_groups = 2, chosen for 10 % of ε"
