"""Sensitivity: one person moves a number farther than its noise allows (PITFALLS, Sensitivity)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import dither as dt
from attacks.moved import complaints
from attacks.paths import Observation, ask, catalog, observe, open_observed
from dither.mechanisms import Geometric
from dither.query.work import SCALE

NAN = float("nan")


def scale_in_rows(seen: Observation, place: int = 0) -> Fraction:
    """Returns noise scale times epsilon over the move of one row: 1 if the measure is priced for one row."""
    assert seen.plan is not None
    noise = seen.plan.noises[place]
    assert isinstance(noise.mechanism, Geometric)
    return noise.mechanism.scale * noise.mechanism.epsilon / noise.of.row


@pytest.mark.parametrize(("low", "high"), [(-10, 10), (-3, 50), (0, 7), (-50, -20)])
def test_variance_around_zero_is_not_under_noised(low: int, high: int) -> None:
    """Both sums behind a variance move by at most their claim, from one end to the other and anywhere between."""
    columns = {"x": dt.between(low, high)}
    nobody = ask("SELECT VAR_POP(x) AS v FROM t", {"u": [2], "x": [NAN]}, columns)
    reach = set()
    for x in (low - 99.0, float(low), (low + high) / 2, low / 3 + high / 2, float(high), high + 99.0):
        one = ask("SELECT VAR_POP(x) AS v FROM t", {"u": [1], "x": [x]}, columns)
        assert complaints(one, nobody) == []
        assert one.plan is not None
        reach.add(Fraction(abs(one.only()[1][0]), one.plan.noises[1].of.row))
    assert max(reach) == 1  # the claim is reached, so half of it would be half the noise that is needed


def test_group_by_columns_are_clamped_too() -> None:
    """SUM(y) GROUP BY y: a value out of bounds is no group, and its sum is within its bounds."""
    table = {"u": [1, 2, 3], "y": [3, 999_999_999, -(2**62)]}
    seen = ask("SELECT y, SUM(y) AS s FROM t GROUP BY y", table, {"y": dt.between(0, 9)}, key="u")
    assert seen.answer is not None
    assert seen.answer["y"] == list(range(10))
    assert {group.key: group.measures for group in seen.groups} == {(3,): ((3,),)}
    wide = ask("SELECT y > 5 AS k, SUM(y) AS s FROM t GROUP BY k", table, {"y": dt.between(0, 9)}, key="u")
    assert {group.key: group.measures for group in wide.groups} == {(True,): ((9,),), (False,): ((3,),)}


def test_a_group_of_at_most_k_rows_changes_by_2k_when_a_person_is_replaced() -> None:
    """A signed sum can go from -k to k times its bound."""
    held = {}
    for neighbours in ("add-remove", "replace"):
        more = dt.Table({"u": [1]}, unit="u", max_rows=1, rows={"public": 5})
        tables = {
            end: dt.Table({"u": [1] * 9, "x": [end] * 9}, unit="u", max_rows=3, columns={"x": dt.between(-10, 10)})
            for end in (-10, 10)
        }
        seen = []
        for table in tables.values():
            declared = {"t": table} | ({"everyone": more} if neighbours == "replace" else {})
            seen.append(observe(open_observed(dt.Catalog(declared, dt.Budget(9), neighbours)), "SELECT SUM(x) AS s FROM t"))
        held[neighbours] = complaints(*seen)
        parts = 2048  # of a step, where people may be cut
        assert [one.only() for one in seen] == [((-30 * parts,),), ((30 * parts,),)]
    assert held["replace"] == []
    assert held["add-remove"] != []  # the twin: priced for a person more or less, it would not do


def test_bounding_then_merging_groups_does_not_keep_the_old_bound() -> None:
    """Five wards with three rows each: if wards are merged, three rows count in the merged group."""
    table = {"u": [1] * 15, "ward": [f"w{i % 5}" for i in range(15)]}
    columns = {"ward": dt.values(*[f"w{i}" for i in range(5)])}
    merged = "SELECT CASE WHEN ward = 'w0' THEN 'a' ELSE 'b' END AS k, COUNT(*) AS n FROM t GROUP BY k"
    for question, most in (("SELECT COUNT(*) AS n FROM t", 3), (merged, 6)):
        seen = ask(question, table, columns, max_rows=3, max_groups=5)
        assert sum(group.measures[0][0] for group in seen.groups) == most  # type: ignore[index]
        assert (
            complaints(seen, ask(question, {"u": [], "ward": pa.array([], pa.string())}, columns, max_rows=3, max_groups=5))
            == []
        )
    twice = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT u, ward FROM t) s"
    assert ask(twice, table, columns, max_rows=3, max_groups=5).only() == ((3,),)
    fine = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"
    apart = ask(fine, table, columns, max_rows=3, max_groups=5)
    assert sum(group.measures[0][0] for group in apart.groups) == 15  # type: ignore[index]  # the twin: unmerged, all count


def test_parallel_composition_under_replacement_has_its_factor_two() -> None:
    """A person who leaves one group and enters another moves two counts."""
    question = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    columns = {"g": dt.values("a", "b", "c")}
    scales = {}
    for neighbours in ("add-remove", "replace"):
        more: dict[str, Any] = {"rows": {"public": 1}, "max_rows": 1} if neighbours == "replace" else {}
        a, b = (ask(question, {"u": [1], "g": [g]}, columns, neighbours=neighbours, **more) for g in "ab")
        scales[neighbours] = scale_in_rows(a)
        assert (complaints(a, b) == []) == (neighbours == "replace")
    assert scales == {"add-remove": 1, "replace": 2}


def test_the_largest_group_with_its_value_costs_the_whole_histogram() -> None:
    """ORDER BY n DESC LIMIT 1 shows a noisy maximum and its value: every count is noisy and paid for, none is exact."""
    table, columns = {"u": [1, 2, 3], "g": ["a", "a", "b"]}, {"g": dt.values("a", "b", "c")}
    whole = ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", table, columns)
    best = ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 1", table, columns)
    assert whole.answer is not None
    assert best.answer is not None
    assert best.charge == whole.charge
    assert list(best.answer.noisy.cells[0][:, 0]) == list(whole.answer.noisy.cells[0][:, 0])
    assert best.answer["n"] == [max(whole.answer["n"])]  # type: ignore[type-var]


def test_a_mean_is_not_divided_by_a_count_that_includes_nan() -> None:
    table = {"u": list(range(6)), "x": [10.0, 10.0, NAN, None, NAN, 10.0]}
    seen = ask(
        "SELECT AVG(x) AS a, COUNT(x) AS n, COUNT(*) AS all FROM t", table, {"x": dt.between(0, 20, step=1)}, 900, key="u"
    )
    assert seen.answer is not None
    assert seen.only() == ((30, 30, 60),)  # the values, what is missing to the upper bound, the missing values
    ((mean, known, everyone),) = seen.answer.rows
    assert (round(mean, 2), known, everyone) == (10, 3, 6)  # type: ignore[arg-type]
    naive = sum(x for x in table["x"] if x is not None and x == x) / 6
    assert naive == 5  # the twin: what the wrong denominator would give


def test_no_noise_scale_is_taken_from_the_data() -> None:
    question = "SELECT g, COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m, VAR_POP(x) AS v FROM t GROUP BY g"
    columns = {"x": dt.between(0, 9), "g": dt.values("a", "b")}
    plans = []
    for size in (0, 1, 500):
        table = {"u": pa.array(range(size)), "x": pa.array([5] * size, pa.int64()), "g": pa.array(["a"] * size, pa.string())}
        plans.append(ask(question, table, columns).plan)
    assert plans[0] == plans[1] == plans[2]
    assert plans[0] is not None
    assert ask(question.replace("VAR_POP(x)", "SUM(x)"), table, columns).plan != plans[0]  # the twin: plans can differ


def test_a_count_of_a_column_declared_not_null_is_not_exact_and_not_free() -> None:
    columns = {"x": dt.column(kind="int", null=False)}
    seen = ask("SELECT COUNT(x) AS n FROM t", {"u": [1, 2, 3], "x": [1, None, 3]}, columns)
    assert seen.charge.epsilon == 1
    assert seen.plan is not None
    assert isinstance(seen.plan.noises[0].mechanism, Geometric)
    assert scale_in_rows(seen) == 1
    free = open_observed(
        catalog({"u": [1], "x": [None]}, {"x": dt.between(0, 1)}, neighbours="replace", rows={"public": 7}, max_rows=1)
    )
    known = observe(free, "SELECT COUNT(*) AS n FROM t")
    assert known.answer is not None
    assert known.answer.rows == ((7,),)  # the twin: what is declared public is free, and comes from the catalog, not from rows
    assert known.charge.epsilon == 0


@pytest.mark.parametrize(
    ("clip", "values", "added"),
    [("LEAST(GREATEST(x, 0), 9)", 5, 13), ("CLAMP(x, 0, 9)", 3, 13), ("GREATEST(LEAST(x, 9), 0)", 5, 31), ("x", 3, 96)],
)
def test_clipping_does_not_turn_null_into_a_bound(clip: str, values: int, added: int) -> None:
    """LEAST and GREATEST skip NULL, as in DuckDB and PostgreSQL; CLAMP and the bounds of a column, which clip, never do."""
    table: dict[str, Any] = {"u": list(range(5)), "x": pa.array([None, NAN, 4.0, -7.0, 99.0], pa.float64())}
    columns = {"x": dt.between(-100, 100)}
    seen = ask(f"SELECT COUNT({clip}) AS n FROM t", table, columns)
    assert seen.only() == ((values,),)
    assert ask("SELECT COUNT(COALESCE(x, 0)) AS n FROM t", table, columns).only() == ((5,),)  # the twin: asked for, it is one
    total = ask(f"SELECT SUM({clip}) AS s FROM t", table, columns)
    assert total.plan is not None
    reading: Any = total.plan.readings[0]
    assert total.only()[0][0] * reading.terms[0].weight == added


def test_one_person_weighs_at_most_their_rows_in_a_median() -> None:
    columns = {"x": dt.between(0, 10)}
    seen = ask("SELECT MEDIAN(x) AS m FROM t", {"u": [1] * 50 + [2], "x": [10] * 50 + [0]}, columns, max_rows=2)
    assert seen.only() == ({10: 2 * SCALE, 0: SCALE},)
