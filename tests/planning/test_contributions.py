"""People counted by what they contribute: the classes are right, and one person moves one count by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither.planning.contributions import Bin, Classes, histogram, read
from dither.planning.outputs import release
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.query.nodes import Compute
from dither.query.read import read as read_question

CLASSES = Classes(rows=(1, 2, 4, 8), groups=(1, 2, 4))
MONTHS = "SELECT month, COUNT(*) AS n FROM visits GROUP BY month"
SECRET = bytes(32)
Frame = Mapping[str, np.ndarray]


def heavy_tailed(people: int = 400, rows: int = 6000) -> dict[str, np.ndarray]:
    """Visits: few people have most of them. Months go from 0 to 12; costs may be missing."""
    random = np.random.default_rng(20)
    cost = random.integers(0, 100, rows).astype(float)
    cost[random.random(rows) < 0.3] = np.nan
    return {"person": random.zipf(1.5, rows) % people, "month": random.integers(0, 13, rows), "cost": cost}


def visits(frame: Frame, neighbours: str = "add-remove") -> dt.Curator:
    """Opens the visits. Months beyond 9 are not public."""
    columns = {"month": dt.between(0, 9), "cost": dt.between(0, 100, step=1)}
    tables = {"visits": dt.Table(dict(frame), unit="person", max_rows=2, max_groups=2, columns=columns)}
    people = {"person": np.unique(frame["person"])}
    if neighbours == "replace":  # then the number of people is public
        tables["people"] = dt.Table(people, unit="person", max_rows=1, rows=dt.Rows(public=len(people["person"])))
    return dt.open(dt.Catalog(tables=tables, budget=dt.Budget(epsilon=10**6), neighbours=neighbours), ":memory:")


def planned(curator: dt.Curator, sql: str, classes: Classes, epsilon: int = 1) -> Plan:
    question = read_question(sql, curator.catalog)
    own = plan(question, curator.catalog, Price(Fraction(1)))
    return plan(histogram(question, own.work, classes), curator.catalog, Price(Fraction(epsilon)))


def counts(curator: dt.Curator, made: Plan) -> dict[Any, int]:
    """Returns the engine's exact counts."""
    return {group.key: group.measures[0][0] for group in curator.engine.run(made.work, SECRET)}  # type: ignore[index]


def truth(frame: Frame, kept: Any, by_month: bool) -> Counter[tuple[int, int]]:
    """Counts people by hand."""
    own: dict[int, Counter[int]] = {}
    for person, month in zip(frame["person"][kept], frame["month"][kept], strict=True):
        own.setdefault(int(person), Counter())[int(month) if by_month else 0] += 1
    places = ((CLASSES.place("groups", len(each)), CLASSES.place("rows", max(each.values()))) for each in own.values())
    return Counter(places)


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(cost)", "AVG(cost)", "MEDIAN(cost)"])
def test_people_are_counted_by_groups_and_by_the_most_rows_in_one(aggregate: str) -> None:
    frame = heavy_tailed()
    kept = (frame["month"] <= 9) if aggregate == "COUNT(*)" else (frame["month"] <= 9) & ~np.isnan(frame["cost"])
    every = frame["month"] <= 9  # a person whose costs are all missing is in a group, with no counted row
    with visits(frame) as curator:
        made = planned(curator, f"SELECT month, {aggregate} AS n FROM visits GROUP BY month", CLASSES, 500)
        bins = read(release(made, curator.engine.run(made.work, SECRET)), CLASSES)
    found = Counter({(each.groups, each.rows): each.people for each in bins if each.people})
    if aggregate == "COUNT(*)":
        assert found == truth(frame, kept, True)
    assert sum(found.values()) == len(set(frame["person"][every]))
    rows, right = Counter[int](), Counter[int]()
    for (_, place), number in found.items():
        rows[place] += number
    for (_, place), number in truth(frame, kept, True).items():
        right[place] += number
    assert all(rows[place] == right[place] for place in range(1, 5))  # class 0 also has those without a counted row


def test_without_group_by_there_is_one_group() -> None:
    frame = heavy_tailed()
    with visits(frame) as curator:
        made = planned(curator, "SELECT COUNT(*) AS n FROM visits", Classes(rows=CLASSES.rows))
        found = counts(curator, made)
    every = truth(frame, slice(None), False)
    assert found == {(rows,): number for (_, rows), number in every.items()}


def test_different_measures_count_a_person_by_the_largest() -> None:
    frame = {"person": np.array([1] * 5 + [2]), "month": np.array([0] * 6), "cost": np.array([1.0, 2.0, 2.0, 2.0, np.nan, 1.0])}
    with visits(frame) as curator:
        made = planned(
            curator, "SELECT SUM(cost) AS s, COUNT(DISTINCT FLOOR(cost)) AS d FROM visits", Classes(rows=CLASSES.rows)
        )
        assert counts(curator, made) == {(2,): 1, (0,): 1}  # four costs, two of them different


@pytest.mark.parametrize(("neighbours", "most"), [("add-remove", 1), ("replace", 2)])
def test_one_person_moves_one_count_by_one(neighbours: str, most: int) -> None:
    made, moved = _moves(neighbours, planned)
    assert moved == most
    assert made.noises[0].mechanism.sensitivity.total(None) == most


def test_that_check_can_fail() -> None:
    """The twin puts each row into a class instead of each person."""

    def twin(curator: dt.Curator, sql: str, classes: Classes) -> Plan:
        rows = read_question("SELECT month, COUNT(*) AS n FROM visits GROUP BY month", curator.catalog)
        return plan(rows, curator.catalog, Price(Fraction(1)))

    _, moved = _moves("add-remove", twin)
    assert moved > 1


def _moves(neighbours: str, build: Any) -> tuple[Plan, int]:
    """Returns how far the counts move when a person with 10,000 rows comes, or takes the place of one with a single row."""
    frame = heavy_tailed()
    heavy = {"person": np.full(10**4, 999), "month": np.arange(10**4) % 13, "cost": np.arange(10**4) % 100 + 0.0}
    light = {name: values[:1] for name, values in heavy.items()}
    other = light if neighbours == "replace" else {name: values[:0] for name, values in heavy.items()}
    exact = []
    for further in (other, heavy):
        joined = {name: np.concatenate([frame[name], further[name]]) for name in frame}
        with visits(joined, neighbours) as curator:
            made = build(curator, MONTHS, CLASSES)
            exact.append(counts(curator, made))
    return made, sum(abs(exact[0].get(key, 0) - exact[1].get(key, 0)) for key in exact[0].keys() | exact[1].keys())


def test_a_class_ends_at_its_number_and_the_last_is_open() -> None:
    assert [CLASSES.place("rows", k) for k in (1, 2, 3, 4, 5, 8, 9, 10**9)] == [0, 1, 2, 2, 3, 3, 4, 4]
    assert Bin(0, 0, 5).people == 5


def test_the_histogram_is_one_row_per_person_before_it_is_counted() -> None:
    with visits(heavy_tailed()) as curator:
        made = planned(curator, MONTHS, CLASSES)
    assert isinstance(made.work.source, Compute)
    assert (made.bounding.max_rows, made.bounding.max_groups) == (1, 1)
