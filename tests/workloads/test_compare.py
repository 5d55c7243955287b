"""Ways to ask many questions, and the worked case of the lectures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dither as dt
from dither.workloads.asked import as_vector, each_alone
from dither.workloads.workload import Workload

RECORDS = ["000", "101", "010", "101", "000", "001", "110", "000", "010", "101"]
CELLS = np.bincount([int(each, 2) for each in RECORDS], minlength=8)
WORKS = [
    Workload.thresholds(6),
    Workload.ranges(5),
    Workload.histogram(4),
    Workload.histogram(1),
    Workload.attributes(3),
    Workload.marginals((3, 2, 1), 2),
    Workload.thresholds(3) * Workload.ranges(3),
    Workload.matrix([[1, -2, 0], [4, 4, 4]]) * Workload.histogram(2),
    Workload.thresholds(4) + Workload.total(4),
]


def test_the_exact_answers_of_the_lectures() -> None:
    (at_most,) = Workload.thresholds(8).answers(CELLS)
    assert at_most.tolist() == [3, 4, 6, 6, 6, 9, 10, 10]
    counts = Workload.attributes(3).answers(CELLS.reshape(2, 2, 2))
    assert [int(each.sum()) for each in counts] == [4, 3, 4]


@pytest.mark.parametrize(
    ("work", "neighbours", "one_by_one", "vector"),
    [
        (Workload.thresholds(8), "add-remove", 8, 8),
        (Workload.thresholds(8), "replace", 8, 7),
        (Workload.attributes(3), "add-remove", 3, 3),
        (Workload.attributes(3), "replace", 3, 3),
        (Workload.histogram(8), "add-remove", 8, 1),
        (Workload.histogram(8), "replace", 8, 2),
    ],
    ids=str,
)
def test_the_prices_of_the_lectures(work: Workload, neighbours: str, one_by_one: int, vector: int) -> None:
    found = work.compare(epsilon=1)
    assert found["one by one", neighbours].times == one_by_one
    assert found["as one vector", neighbours].times == vector
    assert found["as a histogram", neighbours].times == (1 if neighbours == "add-remove" else 2)


@pytest.mark.parametrize("given", [{"epsilon": "1/3"}, {"epsilon": 1, "delta": "1e-6"}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize("work", WORKS, ids=repr)
def test_a_strategy_is_never_worse_than_the_other_ways(work: Workload, given: dict[str, str]) -> None:
    found = work.compare(**given)  # type: ignore[arg-type]
    for neighbours in ("add-remove", "replace"):
        others = ["one by one", "as one vector"] + (["as a histogram"] if neighbours == "add-remove" else [])
        best = found["by a strategy", neighbours].rmse
        assert all(best <= found[way, neighbours].rmse * 1.0001 for way in others)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("work", WORKS, ids=repr)
def test_how_far_questions_move_follows_from_their_rows(work: Workload, replaced: bool) -> None:
    rows = work.rows()
    pairs = [rows[:, [j]] - rows if replaced else rows for j in range(work.cells)]
    moved = np.abs(np.concatenate(pairs, axis=1))
    found = as_vector(work, replaced)
    assert (found.total, found.squares) == (moved.sum(axis=0).max(), (moved**2).sum(axis=0).max())
    assert sorted(each_alone(work, replaced).tolist()) == sorted(moved.max(axis=1).tolist())


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("work", WORKS, ids=repr)
def test_closed_forms_cover_what_is_not_written_down(work: Workload, replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    written = as_vector(work, replaced)
    monkeypatch.setattr("dither.workloads.asked.MOST_WRITTEN", 0)
    closed = as_vector(work, replaced)
    assert closed.total >= written.total
    assert closed.squares >= written.squares
    if closed.exact:
        assert (closed.total, closed.squares) == (written.total, written.squares)


def test_a_comparison_prints_and_draws(tmp_path: Path) -> None:
    found = Workload.thresholds(16).compare(epsilon=Fraction(1, 2))
    assert "16 questions about 16 cells, ε = 0.5 in all" in str(found)
    assert found.plot(tmp_path / "ways.png").stat().st_size > 5000
    assert found.best().name == "by a strategy"


def test_large_domains_are_never_written_down() -> None:
    work = dt.Workload.marginals((10,) * 12, 3)
    found = work.compare(rho="1/2")
    assert work.cells == 10**12
    assert found.best().name == "by a strategy"
    assert (dt.Workload.thresholds(200) * dt.Workload.ranges(200)).design(rho=1).rmse < 30


@pytest.mark.parametrize(
    "build",
    [
        dt.Workload.histogram,
        lambda: dt.Workload.thresholds(0),
        lambda: dt.Workload.thresholds(2.5),  # type: ignore[arg-type]
        lambda: dt.Workload.marginals((2, 3), [(0, 5)]),
        lambda: dt.Workload.marginals((2, 3), []),
        lambda: dt.Workload.thresholds(3) + dt.Workload.thresholds(4),
        lambda: dt.Workload.thresholds(3).weighted(0),
        lambda: dt.Workload.matrix([[0.5]]),
    ],
)
def test_workloads_that_make_no_sense_are_refused(build: object) -> None:
    with pytest.raises(dt.ArgumentError, match="Fix"):
        build()  # type: ignore[operator]
