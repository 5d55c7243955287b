"""Running counts over groups, measured by a strategy: the right numbers, their margins, and what one person can move."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dither as dt
from distribution.allowance import share
from dither.planning.outputs import Draw
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.planning.releases.count import Rows
from dither.planning.releases.running import Correlated, Running, strategy
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import AddRemove, Replace

CELLS = 32
RUNNING = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS c FROM t GROUP BY g"
SAME = [
    "SELECT g, SUM(n) OVER (ORDER BY g) AS c FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g)",
    "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM t GROUP BY g",
]
OTHERS = [
    "SELECT g, COUNT(*) AS c FROM t GROUP BY g",
    "SELECT g, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY g) AS c FROM t GROUP BY g",  # its groups are shown, too
    "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g DESC) AS c FROM t GROUP BY g",
    "SELECT g, SUM(COUNT(*)) OVER (ORDER BY COUNT(*)) AS c FROM t GROUP BY g",
    "SELECT g, SUM(COUNT(*)) OVER () AS c FROM t GROUP BY g",
]
VALUES = [(i * i) % CELLS for i in range(500)]


def opened(delta: str | int = 0, values: Sequence[int] = VALUES, **given: Any) -> dt.Curator:
    table: dict[str, Any] = {"unit": "u", "key": "u"} if not given.get("visits") else {"unit": "u", **given.pop("visits")}
    units = given.pop("units", None) or list(range(len(values)))
    rows = {"rows": {"public": len(values)}, "max_rows": 1} if given.get("neighbours") == "replace" else {}
    people = dt.Table({"u": units, "g": list(values)}, columns={"g": dt.values(*range(CELLS))}, **table, **rows)
    return dt.open(dt.Catalog({"t": people}, dt.Budget(epsilon=100, delta=delta), **given), ledger=":memory:")


def planned(question: str, delta: str | int = 0, **given: Any) -> Plan:
    with opened(delta, **given) as survey:
        return survey.quote(question, epsilon=1, left_out=False).plan


@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_running_counts_have_less_error_by_a_strategy(delta: str | int) -> None:
    with opened(delta) as survey:
        quote = survey.quote(RUNNING, epsilon=1, left_out=False)
        (noise,) = quote.plan.noises
        assert isinstance(noise, Correlated)
        plain = survey.quote(OTHERS[0], epsilon=1, left_out=False).plan.noises[0]
        assert noise.plain == pytest.approx(plain.variance * (CELLS + 1) / 2)
        assert noise.sums < 0.75 * noise.plain
        assert f"{(noise.sums / noise.plain) ** 0.5:.4g} times the error of adding up noisy groups" in str(quote)
        answer = survey.ask(RUNNING, epsilon=1, left_out=False)
        assert max(answer.margins()["c"]) <= quote.margins()["c"]  # type: ignore[operator,type-var]


MOVING = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g ROWS BETWEEN {} PRECEDING AND {}) AS c FROM t GROUP BY g"


@pytest.mark.parametrize(("before", "after"), [("24", "CURRENT ROW"), ("12", "12 FOLLOWING"), ("20", "2 FOLLOWING")])
@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_moving_counts_have_less_error_by_a_strategy_where_windows_are_wide(before: str, after: str, delta: str | int) -> None:
    plan = planned(MOVING.format(before, after), delta)
    (noise,) = plan.noises
    assert isinstance(noise, Correlated)
    assert noise.sums < 0.9 * noise.plain
    assert "moving sums" in noise.of.words
    assert not isinstance(planned(MOVING.format(2, "CURRENT ROW"), delta).noises[0], Correlated)


def test_moving_counts_are_right() -> None:
    groups = np.bincount(VALUES, minlength=CELLS)
    for before, after, first, last in (("24", "CURRENT ROW", -24, 0), ("12", "12 FOLLOWING", -12, 12)):
        with opened() as survey:
            answer = survey.ask(MOVING.format(before, after), epsilon=50, left_out=False)
        truth = [int(groups[max(0, place + first) : place + last + 1].sum()) for place in range(CELLS)]
        wide = np.array(answer.margins("0.999999999999")["c"])
        assert (np.abs(np.array(answer["c"]) - truth) <= wide).all()
        assert (wide < 10).all()


@pytest.mark.parametrize("gaussian", [False, True])
def test_bounds_of_moving_counts_hold_for_every_person(gaussian: bool) -> None:
    found = strategy(6, gaussian, ((-3, 1),))
    assert found is not None
    stated = Running(Rows(2), found.matrix, found.name, ((-3, 1),)).moves(Bounding(2, 2, 6, AddRemove()))
    total, squares = worst(found.matrix, 2, 2, False)
    assert total <= stated.total
    assert squares <= stated.squares


def test_other_questions_keep_their_noise() -> None:
    assert [isinstance(planned(each).noises[0], Correlated) for each in [*SAME, *OTHERS]] == [True] * 2 + [False] * 5


def test_a_running_count_is_the_same_question_however_it_is_written() -> None:
    with opened() as survey:
        first = survey.ask(RUNNING, epsilon=1)
        assert all(survey.ask(each, epsilon=1).replayed for each in SAME)
        assert survey.ask(SAME[0], epsilon=1).rows == first.rows
        assert not survey.ask(OTHERS[0], epsilon=1).replayed  # other noise, so another question


@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_numbers_are_right_and_margins_hold(delta: str | int) -> None:
    truth = np.cumsum(np.bincount(VALUES, minlength=CELLS))
    with opened(delta) as survey:
        answer = survey.ask(RUNNING, epsilon="0.2", left_out=False)
    wide, (noise,) = np.array(answer.margins()["c"]), answer.plan.noises
    assert (np.abs(np.array(answer["c"]) - truth) < 20 * wide).all()
    exact, missed, times = [(int(each),) for each in np.diff([0, *truth])], 0, 800
    for number in range(times):
        place = 1 + number % (CELLS - 1)  # one of each release: they are correlated
        off = abs(int(np.cumsum(noise.release(exact)[:, 0])[place]) - int(truth[place]))
        missed += off > wide[place]
    assert binom.sf(missed - 1, times, 0.05) > share("bundles of a list", 2)
    assert missed > times * 0.01  # nor are they much too wide


# --- what one person can move ---------------------------------------------------------------------------------------


BOUNDS = [(groups, rows, neighbours) for groups in (1, 2, 3) for rows in (1, 2) for neighbours in (AddRemove(), Replace())]


def worst(matrix: np.ndarray, groups: int, rows: int, replaced: bool) -> tuple[int, int]:
    """The largest sum of moves and of squares over all that one person can have, by trying everything."""
    cells = matrix.shape[1]
    people = [
        np.array([rows * (cell in own) for cell in range(cells)])
        for size in range(groups + 1)
        for own in itertools.combinations(range(cells), size)
    ]
    moves = [matrix @ (one - other) for one in people for other in (people if replaced else people[:1])]
    return max(int(np.abs(each).sum()) for each in moves), max(int((each**2).sum()) for each in moves)


@pytest.mark.parametrize(("groups", "rows", "neighbours"), BOUNDS)
@pytest.mark.parametrize("gaussian", [False, True])
def test_bounds_hold_for_every_person(groups: int, rows: int, neighbours: AddRemove | Replace, gaussian: bool) -> None:
    found = strategy(6, gaussian)
    assert found is not None
    release = Running(Rows(rows), found.matrix, found.name)
    stated = release.moves(Bounding(rows, groups, 6, neighbours))
    total, squares = worst(found.matrix, groups, rows, isinstance(neighbours, Replace))
    assert total <= stated.total
    assert squares <= stated.squares
    if groups > 1 and gaussian and not isinstance(neighbours, Replace):  # the bound for disjoint cells is broken
        once = worst(found.matrix, 1, 1, replaced=False)[1]
        assert squares > groups * rows**2 * once


@pytest.mark.parametrize("delta", [0, "1e-2"])
@pytest.mark.parametrize("given", [{}, {"neighbours": "replace"}])
def test_neighbours_through_the_engine(given: dict[str, Any], delta: str | int) -> None:
    """One person more, or another in their place, moves the numbers of the strategy by no more than the noise is for."""
    before, noise = measured(VALUES, delta, **given)
    after, _ = measured([*VALUES[:-1], 0], delta, **given) if given else measured([*VALUES, CELLS - 1], delta, **given)
    moves = np.abs(noise.of.matrix @ (after - before))
    most = noise.mechanism.sensitivity
    moved, allowed = (int((moves**2).sum()), most.squares(None)) if noise.gaussian else (int(moves.sum()), most.total(None))
    assert 0 < moved <= allowed


def test_visits_through_the_engine() -> None:
    """A person with three visits in each of five groups counts for two in each of three."""
    visits = {"max_rows": 2, "max_groups": 3}
    before, noise = measured(VALUES, 0, visits=visits)
    more = [*VALUES, *([0, 8, 16, 24, 31] * 3)]
    after, _ = measured(more, 0, visits=visits, units=[*range(len(VALUES)), *([10**6] * 15)])
    assert (after - before).sum() == 6
    moves = np.abs(noise.of.matrix @ (after - before)).sum()
    assert moves <= noise.mechanism.sensitivity.total(None)
    assert moves > noise.mechanism.sensitivity.total(None) / 3  # of one group it would not be hidden


def measured(values: Sequence[int], delta: str | int, **given: Any) -> tuple[np.ndarray, Any]:
    """The exact groups, and the noise on the strategy's numbers."""
    seen: list[tuple[Noise, np.ndarray]] = []

    def record(noise: Noise, exact: Sequence[Any]) -> Any:
        seen.append((noise, np.array([group[0] for group in exact])))
        return noise.release(exact)

    with opened(delta, values, **given) as survey:
        program = survey.quote(RUNNING, epsilon=1, left_out=False).program
        program.release(lambda work: survey.engine.run(work, bytes(32)), Draw(noise=record))
    ((noise, exact),) = seen
    return exact, noise


def test_strategies_are_whole_numbers_before_data_is_touched() -> None:
    """With fractions, the measured numbers would show which group a person is in whatever the noise: see tests/attacks."""
    for gaussian in (False, True):
        found = strategy(CELLS, gaussian)
        assert found is not None
        assert found.matrix.dtype == np.int64
        noise = Running(Rows(1), found.matrix, found.name).pure(Fraction(1), Bounding(1, 1, CELLS, AddRemove()))
        assert noise.mechanism.release(found.matrix @ np.ones(CELLS, dtype=np.int64)).dtype == np.int64
