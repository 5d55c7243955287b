"""`assert_private`, for the tests of other projects."""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from dither.audit.testing import assert_private

TESTS = """
import random

def flipped(bit: int) -> int:
    return bit if random.random() < 0.75 else 1 - bit

def test_right(assert_private):
    assert_private(flipped, epsilon="1.1", seconds=0.3)

def test_wrong(assert_private):
    assert_private(flipped, epsilon="0.4", seconds=30)
"""


def released(data: list[float], noise: Any) -> Any:
    return noise.geometric(1, at=len(data))


def test_a_claim_that_holds_passes() -> None:
    assert assert_private(released, epsilon=1, seconds=1)[0].epsilon == pytest.approx(1)


def test_a_violated_claim_fails_with_the_inputs() -> None:
    with pytest.raises(AssertionError, match=r"violates ε = 0.5.*D = .*D′ = "):
        assert_private(released, epsilon="1/2", seconds=1)


def test_a_check_that_concludes_nothing_fails() -> None:
    with pytest.raises(AssertionError, match="nothing concluded"):
        assert_private(lambda data, noise: bool(noise.laplace(1) > 0), epsilon=1, data="numbers", seconds=0.5)


def test_replaced_records_are_another_claim() -> None:
    def histogram(counts: list[int], noise: Any) -> Any:
        return [noise.geometric(1, at=count) for count in counts]

    assert_private(histogram, epsilon=1, seconds=1)
    with pytest.raises(AssertionError, match="violates"):
        assert_private(histogram, epsilon=1, neighbours="replace", seconds=1)


def test_own_pairs_are_taken() -> None:
    assert_private(lambda x: x + random.choice([0, 1]), epsilon=3, pairs=[(0, 0), (1, 1), (0, False)], seconds=0.3)


@pytest.mark.slow
def test_the_plugin_gives_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_flipped.py").write_text(TESTS, encoding="utf-8")
    installed = any(point.value == "dither.audit.plugin" for point in entry_points(group="pytest11"))
    loaded = [] if installed else ["-p", "dither.audit.plugin"]  # an environment from before the entry point
    words = [sys.executable, "-m", "pytest", *loaded, "-p", "no:cacheprovider", "-q", str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "violates ε = 0.4" in done.stdout


def test_the_plugin_is_an_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"dither": "dither.audit.plugin"}
