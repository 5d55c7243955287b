"""What SELECTs around grouping sets and UNION compute: margins across results hold as often as they say, or none is stated."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.around import Around, releases
from dither.planning.outputs import Draw
from dither.planning.symbols import Margins, Release

KEYS, PARTS = ("a", "b", "c"), ("x", "y")
COUNTS = {("a", "x"): 400, ("a", "y"): 30, ("b", "x"): 90, ("b", "y"): 2, ("c", "x"): 0, ("c", "y"): 55}
ROLLUP = "SELECT k, p, GROUPING(k) AS gk, GROUPING(p) AS gp, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, p)"
UNION = "SELECT k, COUNT(*) AS n FROM t GROUP BY k UNION ALL SELECT p, COUNT(*) FROM t GROUP BY p"
TWICE = "SELECT k, COUNT(*) AS n FROM t GROUP BY k UNION ALL SELECT k, COUNT(*) FROM t GROUP BY k"


def catalog() -> dt.Catalog:
    rows = [(key, part, i) for (key, part), count in COUNTS.items() for i in range(count)]
    data = {
        "u": list(range(len(rows))),
        "k": [key for key, _, _ in rows],
        "p": [part for _, part, _ in rows],
        "x": [i % 10 for _, _, i in rows],
    }
    columns = {"k": dt.values(*KEYS), "p": dt.values(*PARTS), "x": dt.between(0, 10)}
    table = dt.Table(data, unit="u", key="u", max_rows=1, max_groups=1, columns=columns)
    return dt.Catalog({"t": table}, dt.Budget(epsilon=10**6, left_out=False))


@pytest.fixture(scope="module")
def survey() -> Any:
    with dt.open(catalog(), ledger=":memory:") as curator:
        yield curator


def without_noise(noise: Any, values: Any) -> Any:
    return np.array(list(values), dtype=np.int64).reshape(len(values), -1)


@pytest.fixture(scope="module")
def exact() -> Any:
    with dt.open(catalog(), ledger=":memory:") as curator:
        curator.steps = type(curator.steps)(draw=Draw(noise=without_noise))
        yield curator


HOLDING = [
    (f"SELECT SUM(n) AS s FROM ({UNION})", 0),
    (f"SELECT SUM(n) AS s FROM ({TWICE})", 0),
    (f"SELECT k, n / SUM(n) OVER () AS s FROM ({UNION})", 0),
    (f"SELECT k, p, n / SUM(n) FILTER (WHERE gk = 1) OVER () AS s FROM ({ROLLUP})", 0),
    (f"SELECT MAX(n) FILTER (WHERE gk = 1) - SUM(n) FILTER (WHERE gp = 0) AS s FROM ({ROLLUP})", 0),
    ("SELECT k, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING(k)) AS s FROM t GROUP BY ROLLUP (k)", 1),
]


def most(times: int) -> int:
    return int(binom.isf(share("margins around several results", len(HOLDING)), times, 0.05))


def misses(survey: dt.Curator, exact: dt.Curator, question: str, place: int, narrower: float = 1.0, times: int = 100) -> int:
    """Counts how often the truth is farther from a value than its margin, times `narrower`."""
    truth = exact.ask(question, epsilon=1)["s"][place]
    found = 0
    for _ in range(times):
        answer = survey.ask(question, epsilon=1, fresh=True)
        wide = answer.margins()["s"][place]
        assert wide is not None
        found += abs(float(answer["s"][place]) - float(truth)) > wide * narrower  # type: ignore[arg-type]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("question", "place"), HOLDING)
def test_margins_across_results_hold_as_often_as_they_say(
    survey: dt.Curator, exact: dt.Curator, question: str, place: int
) -> None:
    assert misses(survey, exact, question, place) <= most(100)


@pytest.mark.slow
@pytest.mark.parametrize(("question", "place"), HOLDING[:3])
def test_that_check_can_fail(survey: dt.Curator, exact: dt.Curator, question: str, place: int) -> None:
    assert misses(survey, exact, question, place, narrower=0.05) > most(100)


def test_a_question_that_is_a_part_twice_has_the_same_noise_twice(survey: dt.Curator) -> None:
    once = survey.ask("SELECT SUM(n) AS s FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)", epsilon=1)
    twice = survey.ask(f"SELECT SUM(n) AS s FROM ({TWICE})", epsilon=1)
    assert isinstance(twice, Around)
    assert [each.noise for each in releases(twice)] == [0, 0]
    assert twice["s"] == [2 * value for value in once["s"]]  # type: ignore[operator]
    (one,), (two,) = once.margins()["s"], twice.margins()["s"]
    assert one is not None
    assert two is not None
    assert 2 * one <= two < 2 * (one + 1)  # independent noise would be 1.4 times as wide
    assert twice.receipt.body["loss"]["epsilon"] == "1"


def test_noise_that_may_be_shared_in_another_order_is_not_taken_for_independent(survey: dt.Curator) -> None:
    answer = survey.ask(f"SELECT SUM(n) AS s FROM ({UNION})", epsilon=1)
    found = releases(answer)
    (source,) = answer.table.sources[0]
    shared = [Release(each.plan, each.noisy, each.columns, each.noise, 0) for each in found]
    plain, careful = (Margins(each, Fraction(19, 20)).of(source, answer["s"][0]) for each in (found, shared))
    assert plain is not None
    assert careful is not None
    assert careful > plain


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT SUM(n) AS s FROM ({UNION}) WHERE n > 10",
        f"SELECT SUM(n) AS s FROM ({UNION} ORDER BY n LIMIT 3)",
        f"SELECT SUM(n) AS s FROM ({TWICE.replace('UNION ALL', 'UNION')})",
        f"SELECT RANK() OVER (PARTITION BY gk, gp ORDER BY n) AS s FROM ({ROLLUP})",
        f"SELECT SUM(n) AS s FROM ({ROLLUP} HAVING COUNT(*) > 3)",
        f"SELECT SUM(n) AS s FROM ({ROLLUP} ORDER BY COUNT(*) DESC LIMIT 2)",
        f"SELECT k, SUM(n) OVER (ORDER BY n RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS s FROM ({UNION})",
        f"SELECT k, LAG(NULLIF(n, n) IGNORE NULLS) OVER (ORDER BY k) AS s FROM ({UNION})",
    ],
)
def test_no_margin_is_stated_where_noise_decides_what_is_combined(survey: dt.Curator, question: str) -> None:
    answer = survey.ask(question, epsilon=1)
    assert set(answer.margins()["s"]) == {None}


def test_what_is_public_in_a_noisy_column_has_no_noise(survey: dt.Curator) -> None:
    question = f"SELECT k, LAG(n, 1, 7) OVER (ORDER BY k, gp) AS s FROM ({ROLLUP}) WHERE gp = 1"
    answer = survey.ask(question, epsilon=1)
    assert answer["s"][0] == 7
    wide = answer.margins()["s"]
    assert wide[0] == 0
    assert None not in wide


def test_what_is_around_does_not_change_the_identity(survey: dt.Curator) -> None:
    for inner in (ROLLUP, UNION):
        first = survey.ask(inner, epsilon=2)
        again = survey.ask(f"SELECT SUM(n) AS s FROM ({inner}) WHERE n > 3", epsilon=2)
        assert again.replayed
        assert again.receipt.body["entry"] == first.receipt.body["entry"]


def test_a_union_in_a_list_has_one_share_that_its_parts_divide(survey: dt.Curator) -> None:
    questions = ["SELECT COUNT(*) AS n FROM t", UNION, f"SELECT MAX(n) AS top FROM ({UNION})"]
    answers = survey.ask(questions, epsilon=3)
    half = Fraction(3, 2)
    assert [answer.total.epsilon for answer in answers] == [half] * 3  # the last two are the same noise, asked once
    assert answers.total.epsilon == 3
    assert max(answers[1]["n"]) == answers[2]["top"][0]  # type: ignore[type-var]
    quotes = survey.quote(questions, epsilon=3)
    assert [quote.epsilon for quote in quotes] == [half] * 3
    weighted = survey.ask(questions[:2], epsilon=4, weights=[1, 3])
    assert [answer.total.epsilon for answer in weighted] == [1, 3]
    with pytest.raises(dt.QueryError, match="Question 2:"):
        survey.ask([questions[0], f"{UNION} ORDER BY z"], epsilon=1)


def test_each_part_is_made_consistent(survey: dt.Curator) -> None:
    answer = survey.ask(f"{ROLLUP} ORDER BY n DESC", epsilon="0.01")
    fixed = answer.consistent()
    assert len(fixed) == len(answer)
    assert fixed["n"] == sorted(fixed["n"], reverse=True)  # type: ignore[type-var]
    assert min(fixed["n"]) >= 0  # type: ignore[type-var,operator]
    assert "adding up; ± includes it" in fixed.footer()
    for level in range(3):
        before, after = ([row[4] for row in each if row[2] + row[3] == level] for each in (answer.rows, fixed.rows))  # type: ignore[operator]
        assert sum(after) == max(sum(before), 0)  # type: ignore[arg-type]
    around = survey.ask(f"SELECT k, p, n, n / SUM(n) OVER () AS share FROM ({ROLLUP})", epsilon="0.01")
    made = around.consistent()
    assert sorted(made["n"]) == sorted(fixed["n"])  # type: ignore[type-var]
    assert None not in made.margins()["n"]
    assert set(made.margins()["share"]) == {None}


def test_margins_of_consistent_parts_hold_where_the_plain_ones_do(survey: dt.Curator, exact: dt.Curator) -> None:
    question = f"SELECT k, p, n FROM ({ROLLUP})"
    truth = exact.ask(question, epsilon=1)["n"]
    for _ in range(20):
        answer = survey.ask(question, epsilon="0.05", fresh=True)
        fixed = answer.consistent()
        each = zip(truth, answer["n"], answer.margins()["n"], fixed["n"], fixed.margins()["n"], strict=True)
        for right, noisy, wide, moved, wider in each:
            if abs(noisy - right) <= wide:  # type: ignore[operator]
                assert abs(moved - right) <= wider  # type: ignore[operator]
