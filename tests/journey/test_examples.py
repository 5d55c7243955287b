"""The programs under examples/ run, at small sizes, and show what they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def example(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"examples_{name}", ROOT / "examples" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


attacks = example("reconstruction")
N = 100  # by chance, 90 of 100 fair bits are guessed once in 10^17 times
RECOVERED = 0.9


@pytest.mark.parametrize("solve", ["least_squares", "linear_programme"])
def test_little_noise_gives_the_secret_bits_away(solve: str) -> None:
    assert attacks.without_a_budget(N, 4 * N, 0.5, getattr(attacks, solve)).share > RECOVERED


def test_noise_as_large_as_the_table_does_not() -> None:
    """The twin: the same attack, which then does no better than guessing."""
    assert attacks.without_a_budget(N, 4 * N, N).share < RECOVERED


def test_the_filter_refuses_before_the_attack_works() -> None:
    stopped = attacks.with_a_filter(N, 4 * N, 8)
    assert (stopped.questions, stopped.epsilon) == (8, 1)
    assert stopped.share < RECOVERED


@pytest.mark.slow
def test_published_tables_give_the_secret_bits_away_and_dither_refuses_to_answer_them() -> None:
    assert attacks.census_without_a_budget(N, 12 * N, 0.5).share > RECOVERED
    stopped = attacks.census_with_dither(N, 40, 8)
    assert (stopped.questions, stopped.epsilon) == (8, 1)
    assert stopped.share < RECOVERED


@pytest.mark.slow
def test_the_whole_program_runs_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert len(attacks.main(n=24)) == 6
    assert capsys.readouterr().out.count("bits recovered") == 6
    assert attacks.picture(tmp_path / "shares.png", n=24, counts=(12, 24), repeats=1).stat().st_size > 10_000
