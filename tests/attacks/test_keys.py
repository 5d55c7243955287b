"""Keys and thresholds: group names that reveal their members (PITFALLS, Keys and thresholds)."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dither as dt
from attacks.paths import Observation, ask, catalog, observe, open_observed
from distribution.allowance import share
from distribution.fit import events_fit
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import Threshold
from dither.planning.outputs import release
from dither.query.work import Group

TOWNS = "SELECT town, COUNT(*) AS n FROM t GROUP BY town"
TEXT = {"town": dt.column(kind="text")}


def towns(counts: dict[str, int], question: str = TOWNS, **more: Any) -> Observation:
    people = [(name, i) for name, size in counts.items() for i in range(size)]
    table = {"u": [f"{name}{i}" for name, i in people], "town": [name for name, _ in people]}
    return observe(open_observed(catalog(table, TEXT, delta="1/2", **more)), question, 2, "1e-6")


def shown(seen: Observation) -> list[Any]:
    assert seen.answer is not None
    return [key for (key,) in seen.answer.noisy.keys]


def rule(**more: Any) -> Threshold:
    seen = towns({"big": 1}, **more)
    assert seen.plan is not None
    assert seen.plan.threshold is not None
    return seen.plan.threshold


def test_rare_group_keys_are_not_shown() -> None:
    """Never shown in 300 releases: the probability of each is delta."""
    seen = towns({"big": 500, "rare": 1, "two": 2})
    assert {group.key[0]: group.units for group in seen.groups} == {"big": 500, "rare": 1, "two": 2}
    assert seen.plan is not None
    for _ in range(300):
        assert release(seen.plan, seen.groups).keys == (("big",),)


def test_keys_nobody_has_are_never_shown() -> None:
    seen = towns({"big": 500})
    assert seen.plan is not None
    ghosts = [Group((f"ghost {i}",), 0, ((10**9,),)) for i in range(1000)]
    assert release(seen.plan, ghosts).keys == ()


@pytest.mark.parametrize("groups", [1, 3])
def test_the_delta_of_a_threshold_is_not_off_by_one(groups: int) -> None:
    """A key of one person is shown with exactly its delta, and every further person by what (epsilon, delta) allows."""
    found = rule(max_groups=groups)
    each = found.epsilon / groups, found.delta / groups
    assert found.keys_per_unit == groups
    assert float(found.shown(1)) == pytest.approx(float(each[1]), rel=1e-12)
    assert found.delta <= Fraction(1, 10**6)
    too_small = Threshold(epsilon=1, delta="0.0049", rule="geometric")
    assert float(too_small.shown(1)) <= 0.0049
    assert float(too_small.noise.more_than(too_small.threshold - 3)) > 0.0049  # the twin: one less, and delta is broken


def test_threshold_and_samples_are_of_the_same_noise() -> None:
    """Keys are shown as often as the priced rule says, not as noise and a threshold would."""
    seen = towns({"big": 500})
    assert seen.plan is not None
    found, times = seen.plan.threshold, 20_000
    assert found is not None
    middle = found.margin("0.5")
    sizes = [middle - 3, middle, middle + 3]
    shares = [len(release(seen.plan, [Group((f"{i:05}",), m, ((m,),)) for i in range(times)]).keys) / times for m in sizes]
    assert events_fit(shares, [float(found.shown(m)) for m in sizes], times, share("attacks", 8))
    noise = TwoSided(1 / found.epsilon)
    other = [float(noise.more_than(middle - m - 1)) for m in sizes]
    assert not events_fit(shares, other, times, share("attacks", 8))


def test_no_float_threshold_is_truncated_to_an_integer() -> None:
    """A threshold of 12.3 people is 13, not 12: probabilities are exact at every whole count."""
    found = rule()
    chances = [found.shown(m) for m in range(1, 80)]
    assert all(b >= a for a, b in pairwise(chances))
    for m in (1, 5, 20):
        law = found.law(m)
        assert float(law.pmf(1) + law.pmf(0)) == pytest.approx(1, abs=1e-15)
    assert isinstance(Threshold(epsilon="0.3", delta="1e-5", rule="geometric").threshold, int)


def test_a_filter_that_matches_nobody_returns_its_row() -> None:
    columns = {"g": dt.values("a", "b"), "x": dt.between(0, 9)}
    table = {"u": [1, 2], "g": ["a", "b"], "x": [1, 2]}
    aggregates = "COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, VAR_POP(x) AS v, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d"
    for condition in ("x > 99", "FALSE", "x <> x"):
        alone = ask(f"SELECT {aggregates} FROM t WHERE {condition}", table, columns)
        grouped = ask(f"SELECT g, {aggregates} FROM t WHERE {condition} GROUP BY g", table, columns)
        assert alone.answer is not None
        assert grouped.answer is not None
        assert len(alone.answer) == 1
        assert grouped.answer["g"] == ["a", "b"]
        assert not any(value is None for row in (*alone.answer, *grouped.answer) for value in row)
    assert shown(towns({"big": 500}, "SELECT town, COUNT(*) AS n FROM t WHERE FALSE GROUP BY town")) == []  # nothing to find
    nobody = ask(f"SELECT g, {aggregates} FROM t WHERE g = 'nobody' GROUP BY g", table, columns)
    assert "No declared value" in nobody.status  # no group is possible: refused by question and catalog, without a charge


def test_category_codes_in_order_of_appearance_change_nothing() -> None:
    """The same people, rows in any order, categories numbered as they came: same integers, same noise, same answer."""
    people = [("zoe", "z"), ("ann", "a"), ("bob", "b"), ("amy", "a")] * 3
    answers = []
    for order in (people, people[::-1], sorted(people)):
        frame = pd.DataFrame({"u": [u for u, _ in order], "town": [town for _, town in order]})
        seen_first = list(dict.fromkeys(frame["town"]))
        frame["town"] = pd.Categorical(frame["town"], categories=seen_first)
        for declared in (dt.values("a", "b", "z"), dt.column()):
            table = dt.Table(frame, unit="u", max_rows=3, max_groups=1, columns={"town": declared})
            seen = observe(open_observed(dt.Catalog({"t": table}, dt.Budget(100, "9/10"))), TOWNS, 20, "0.4")
            assert seen.answer is not None
            answers.append((seen.answer.rows, sorted(seen.integers().items())))
    assert answers[0] == answers[2] == answers[4]
    assert answers[1] == answers[3] == answers[5]
    codes = [pd.factorize(pd.Series([town for _, town in order]))[0].tolist()[:4] for order in (people, sorted(people))]
    assert codes[0] != codes[1]  # the twin: codes by order of appearance do depend on who came first


def test_which_groups_a_person_keeps_depends_on_nobody_else() -> None:
    """A person in too many groups keeps the same ones whatever the other rows, and others under another secret."""
    mine = [("me", f"town {i}") for i in range(12)]
    kept = []
    for others, key in (([], b"one"), ([("you", "town 3")] * 5, b"one"), ([], b"two"), ([], b"three")):
        rows = mine + others
        table = {"u": [u for u, _ in rows], "town": [town for _, town in rows]}
        curator = open_observed(catalog(table, TEXT, delta="1/2", max_rows=2, max_groups=3))
        seen = observe(curator, TOWNS, 2, "1e-6", key)
        kept.append({group.key[0]: group.units for group in seen.groups})
        assert sum(kept[-1].values()) == 3 + bool(others)  # type: ignore[arg-type]
    apart = {town: units - (town == "town 3") for town, units in kept[1].items() if units - (town == "town 3")}  # type: ignore[operator]
    assert apart == kept[0]
    assert len({frozenset(each) for each in kept}) > 2


def test_declared_keys_are_all_shown_and_no_others() -> None:
    columns = {"g": dt.values("a", "b", None)}
    table = {"u": [1, 2, 3, 4], "g": ["a", "secret diagnosis", None, "secret diagnosis"]}
    seen = ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", table, columns)
    assert shown(seen) == ["a", "b", None]
    assert {group.key for group in seen.groups} == {("a",), (None,)}


def test_a_release_of_no_keys_is_an_empty_table_with_its_columns() -> None:
    seen = towns({"rare": 1})
    assert seen.answer is not None
    assert (len(seen.answer), seen.answer.columns) == (0, ("town", "n"))
    assert seen.charge == towns({"big": 500}).charge
    assert np.array(seen.answer.margins()["n"]).size == 0
