"""The programs under examples/ run, at small sizes, and show what they say."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
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


# --- every example, as a reader runs it -----------------------------------------------------------------------------

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
SAMPLED = ("several_analysts", "cohort_retention", "foreign_mechanism")  # in make test; all of them in make test-long


def runs(name: str, folder: Path) -> tuple[str, list[str]]:
    """Runs an example in an empty folder, with warnings as errors. Returns what it printed, and its pictures."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DITHER_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SAMPLED else pytest.mark.long) for name in EXAMPLES])
def test_the_example_runs_and_leaves_only_pictures(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    printed, files = runs(name, tmp_path)
    assert len(printed.splitlines()) >= 3
    assert all(re.fullmatch(r".*\.(png|html)", file) for file in files)
    drawn = re.findall(r"\"([\w-]+\.png)\"", (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    assert set(files) >= {file for file in drawn if name != "reconstruction"}  # which draws only where it is told to


def test_every_example_has_a_title_and_stands_in_the_index() -> None:
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+)\.py\)", index)) == EXAMPLES
    for name in EXAMPLES:
        docstring = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")))
        assert docstring
        assert ": " in docstring.splitlines()[0]


def test_that_an_example_which_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "wrong.py").write_text("import warnings; warnings.warn('x')", encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError):
        runs("wrong", tmp_path)
