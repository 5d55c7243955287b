"""Consistent counts: whole, not negative, adding up; and margins that still hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dither as dt
from dither.planning import outputs
from dither.planning.consistent import consistent_margins, consistent_table, nearest
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan
from planning.test_outer import CONFIDENCE, INNER, KEYS, exact, groups, planned

counts = st.lists(st.integers(-30, 60), min_size=1, max_size=6)


@given(counts)
def test_counts_are_whole_not_negative_and_keep_their_total(values: list[int]) -> None:
    found = nearest(values)
    assert all(isinstance(value, int) and value >= 0 for value in found)
    assert sum(found) == max(sum(values), 0)


@given(counts, counts)
def test_no_such_table_is_much_nearer(values: list[int], other: list[int]) -> None:
    """Rounding may cost up to 1/2 in each count, and no more."""
    total = max(sum(values), 0)
    other = [abs(value) for value in (other * len(values))[: len(values)]]
    if not total or not sum(other):
        return
    rival = [Fraction(value * total, sum(other)) for value in other]
    far = sum((a - b) ** 2 for a, b in zip(nearest(values), values, strict=True))
    rivals = sum((a - b) ** 2 for a, b in zip(rival, values, strict=True))
    assert float(far) ** 0.5 <= float(rivals) ** 0.5 + len(values) ** 0.5


def test_that_check_can_fail() -> None:
    """Counts that are only cut off at 0 do not keep their total."""
    assert sum(max(value, 0) for value in (10, 5, -3)) != sum(nearest([10, 5, -3]))


def off_by(made: Plan, errors: list[int]) -> Noisy:
    """The numbers of `made`, each with the error given for its group."""

    def noise(_: Any, values: Any) -> Any:
        return np.array(list(values), dtype=np.int64).reshape(len(errors), -1) + np.array(errors)[:, None]

    return outputs.release(made, groups(made), Draw(noise=noise))


@given(st.lists(st.integers(-20, 20), min_size=len(KEYS), max_size=len(KEYS)))
@example([0, 0, 0, -9, 0])
def test_margins_of_consistent_counts_hold_where_the_plain_ones_do(errors: list[int]) -> None:
    made = planned(INNER)
    noisy, truth = off_by(made, errors), outputs.table(made, exact(made)).rows
    before, after = outputs.table(made, noisy), consistent_table(made, noisy)
    plain = outputs.margins(made, noisy, before, CONFIDENCE)
    wide = consistent_margins(made, noisy, after, plain, CONFIDENCE)["n"]
    assert (before.rows != after.rows) == any(old[1] < 0 for old in before.rows)  # type: ignore[operator]
    for old, new, true, first, margin in zip(before.rows, after.rows, truth, plain["n"], wide, strict=True):
        assert margin is not None
        assert first is not None
        if abs(old[1] - true[1]) <= first:  # type: ignore[operator]
            assert abs(new[1] - true[1]) <= margin  # type: ignore[operator]


def test_plain_margins_do_not_hold_for_consistent_counts() -> None:
    """One count far below 0 moves the others by more than their own error."""
    made = planned(INNER)
    noisy, truth = off_by(made, [-3, -3, -3, -20, -3]), outputs.table(made, exact(made)).rows
    plain = outputs.margins(made, noisy, outputs.table(made, noisy), CONFIDENCE)["n"]
    after = consistent_table(made, noisy).rows
    assert any(abs(new[1] - true[1]) > first for new, true, first in zip(after, truth, plain, strict=True))  # type: ignore[operator]


def test_other_counts_stay_within_all_rows_and_what_is_computed_has_no_margin() -> None:
    question = "SELECT k, COUNT(*) AS n, COUNT(x) AS m, COUNT(*) / COUNT(x) AS r, AVG(x) AS a FROM t GROUP BY k ORDER BY k"
    made = planned(question)
    for _ in range(20):
        noisy = outputs.release(made, groups(made))
        table = consistent_table(made, noisy)
        assert all(0 <= row[2] <= row[1] for row in table.rows)  # type: ignore[operator]
        wide = consistent_margins(made, noisy, table, outputs.margins(made, noisy, table, CONFIDENCE), CONFIDENCE)
        assert set(wide["r"]) == {None}
        assert None not in wide["a"]


@pytest.mark.parametrize("around", ["{}", "SELECT k, n, n / SUM(n) OVER () AS share FROM ({}) ORDER BY k"])
def test_an_answer_says_that_it_was_made_consistent(around: str) -> None:
    data = {"u": list(range(40)), "k": ["a", "b"] * 20}
    table = dt.Table(data, unit="u", max_rows=1, max_groups=1, columns={"k": dt.values("a", "b", "c", "d")})
    inner = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    with dt.open(dt.Catalog({"t": table}, dt.Budget(epsilon=10)), ledger=":memory:") as survey:
        answer = survey.ask(around.format(inner), epsilon="0.1")
        fixed = answer.consistent()
        assert sum(fixed["n"]) == max(sum(answer["n"]), 0)  # type: ignore[arg-type]
        assert min(fixed["n"]) >= 0  # type: ignore[type-var,operator]
        assert "adding up; ± includes it" in fixed.footer()
        assert "adding up" not in answer.footer()
        assert fixed.receipt == answer.receipt
        assert survey.budget.spent.epsilon == Fraction(1, 10)
        fixed.to_arrow(margins=True)
