"""Strategies in the cache folder: found once, and never trusted for more than accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dither.workloads import cache, choose
from dither.workloads.blocks import Coefficients, Record
from dither.workloads.workload import Workload

GRAM = Workload.thresholds(cache.WORTH).gram()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_strategy_is_found_once() -> None:
    times: list[int] = []

    def find() -> tuple[np.ndarray, float]:
        times.append(1)
        return np.eye(cache.WORTH), 2.5

    for _ in range(3):
        matrix, number = cache.kept(GRAM, "test", find)
        assert number == 2.5
        assert (matrix == np.eye(cache.WORTH)).all()
    assert len(times) == 1
    cache.kept(GRAM * 2, "test", find)
    cache.kept(GRAM, "another", find)
    assert len(times) == 3


def test_small_ones_are_not_kept() -> None:
    cache.kept(GRAM[:5, :5], "test", lambda: (np.eye(5), 1.0))
    assert not cache.folder().exists()


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_files_are_found_again(damage: bytes | None) -> None:
    cache.kept(GRAM, "test", lambda: (np.eye(cache.WORTH), 1.0))
    (path,) = cache.folder().iterdir()
    path.write_bytes(path.read_bytes()[:300] if damage is None else damage)
    matrix, _ = cache.kept(GRAM, "test", lambda: (2 * np.eye(cache.WORTH), 1.0))
    assert matrix[0, 0] == 2


def test_a_changed_file_cannot_make_a_strategy_too_cheap() -> None:
    """Whatever coefficients the file has, the price is for them."""
    choose._best(GRAM, True, 20)
    (path,) = cache.folder().iterdir()
    np.savez(path, matrix=3 * np.eye(cache.WORTH), number=np.float64(1.0))
    matrix, _ = choose._best(GRAM, True, 20)
    assert Coefficients((matrix,)).moves(Record(), False).squares == (3 << 20) ** 2


@pytest.mark.parametrize("entry", [1e30, -5.0, np.nan, np.inf])
def test_a_changed_file_with_coefficients_of_no_strategy_is_found_again(entry: float) -> None:
    cache.kept(GRAM, "test", lambda: (np.eye(cache.WORTH), 1.0))
    (path,) = cache.folder().iterdir()
    wrong = np.eye(cache.WORTH)
    wrong[0, 0] = entry
    np.savez(path, matrix=wrong, number=np.float64(1.0))
    matrix, _ = cache.kept(GRAM, "test", lambda: (2 * np.eye(cache.WORTH), 1.0))
    assert matrix[0, 0] == 2


def test_without_a_folder_everything_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    matrix, _ = cache.kept(GRAM, "test", lambda: (np.eye(cache.WORTH), 1.0))
    assert len(matrix) == cache.WORTH
