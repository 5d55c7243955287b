"""`dither audit` on the command line: what it finds, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dither.audit import command
from dither.audit.verdict import NOT_FOUND, PROVED, WALKED
from dither.cli import app

CODE = '''
import random
import sys
import time
import numpy as np

ROWS = [([{"seen": 0}], [{"seen": 0}, {"seen": 0}])]
PAIRS = [([1.0], []), ([1.0, 2.0], [1.0])]
HOLES = [([1.0], [1.0, float("nan")])]
SAME = [([1.0], [1.0])]
WRONG = [1, 2, 3]

def kept(data):
    """A count with enough noise, in whole numbers."""
    return len(data) + round(np.random.laplace(0, 1.5))

def broken(data):
    return len(data) + round(np.random.laplace(0, 0.2))

def exact_error(data, rng):
    if any(x != x for x in data):
        raise ValueError("a value is missing")
    return len(data) + rng.laplace(0, 1)

def right(data, noise):
    return noise.geometric(1, at=len(data))

def half(data, noise):
    return noise.geometric(2, at=len(data))

def fails(data):
    raise RuntimeError("never works")

def greedy(data, other):
    return 0

def changes(data):
    data.append(3)
    return round(len(data) + np.random.laplace(0, 1.5))

def neighbours(dice):
    rows = [dice.random() for _ in range(3)]
    return rows, rows[:-1]

def marks(data):
    """Writes into its input: a second run on the same rows would skip them all."""
    new = sum(1 for row in data if not row["seen"])
    for row in data:
        row["seen"] = 1
    return new + round(np.random.laplace(0, 0.2))

def hangs(data):
    while True:
        time.sleep(0.01)

def hangs_at_two(data):
    while len(data) == 2:
        time.sleep(0.01)
    return len(data)

def leaves(data):
    sys.exit(3)

def odd(data):
    return {"\\ud800<b>": round(len(data) + random.choice([-1, 1]) * random.expovariate(0.5)), object: object()}

number = 3
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "audited.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "unfinished.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "quits.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "needy.py").write_text("import there_is_no_such_package\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("audited", "unfinished", "needy"):
        sys.modules.pop(name, None)


def run(*words: str) -> Result:
    found = CliRunner().invoke(app, ["audit", *words])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def test_a_kept_promise_passes(here: Path) -> None:
    found = run("audited:kept", "--epsilon", "2", "--pairs", "audited:PAIRS", "--time-limit", "0.5")
    assert found.exit_code == 0, found.output
    assert "No violation found" in found.stdout


def test_a_broken_promise_is_exit_code_one_with_a_page(here: Path) -> None:
    words = ("audited:broken", "--epsilon", "1", "--pairs", "audited:neighbours", "--time-limit", "9", "--report", "out.html")
    found = run(*words)
    assert found.exit_code == 1, found.output
    assert "violates ε = 1" in found.stdout
    assert "out.html" in found.stderr
    told = json.loads((here / "out.json").read_text(encoding="utf-8"))
    assert told["violated"] is True
    given = [*words[:3], "--delta", "0", "--data", "auto", *words[3:5], "--neighbours", "add-remove", *words[5:7]]
    assert told["command"] == f"dither audit {' '.join(given)} --seed 1"
    assert "<svg" in (here / "out.html").read_text(encoding="utf-8")


def test_an_error_that_depends_on_one_value_is_found_by_replay(here: Path) -> None:
    found = run("audited:exact_error", "-e", "5", "--pairs", "audited:HOLES", "--time-limit", "5")
    assert found.exit_code == 1, found.output
    first = found.stdout.splitlines()[0]
    assert "violates" in first
    assert "(replay" in first
    assert "nan" in first


@pytest.mark.parametrize(("name", "code"), [("right", 0), ("half", 1)])
def test_recorded_noise_is_compared_with_the_claim(here: Path, name: str, code: int) -> None:
    found = run(f"audited:{name}", "-e", "1", "--time-limit", "0.5")
    assert found.exit_code == code, found.output
    assert "black box" not in found.stdout  # the noise is the auditor's own


def test_code_that_changes_its_data_is_given_a_copy(here: Path) -> None:
    assert run("audited:changes", "-e", "2", "--pairs", "audited:PAIRS", "--time-limit", "0.5").exit_code == 0


def test_rows_that_the_code_writes_into_are_copied_too(here: Path) -> None:
    found = run("audited:marks", "-e", "1", "--pairs", "audited:ROWS", "--time-limit", "9")
    assert any("violates" in line and "(black box" in line for line in found.stdout.splitlines()), found.stdout


def test_code_that_hangs_on_one_input_concludes_nothing(here: Path) -> None:
    found = run("audited:hangs_at_two", "-e", "1", "--pairs", "audited:neighbours", "--time-limit", "0.4")
    assert found.exit_code == 2, found.output
    assert found.stdout.count("nothing concluded about ε = 1: the time was over before anything could be counted") == 2
    assert "Nothing could be concluded" in found.stdout


def test_outputs_that_cannot_be_written_down_make_no_traceback(here: Path) -> None:
    words = ("audited:odd", "-e", "1", "--pairs", "audited:PAIRS", "--time-limit", "0.5", "--report", "out.html")
    found = run(*words)
    assert found.exit_code == 0, found.output
    assert "<b>" not in (here / "out.html").read_text(encoding="utf-8")
    json.loads((here / "out.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere:f", "-e", "1"], "no module 'nowhere'"),
        (["unfinished:f", "-e", "1"], "cannot be imported: SyntaxError"),
        (["needy:f", "-e", "1"], "needs 'there_is_no_such_package'"),
        (["audited:absent", "-e", "1"], "has no 'absent'"),
        (["audited:number", "-e", "1"], "cannot be called"),
        (["audited", "-e", "1"], "module:name"),
        (["audited:kept"], "needs the epsilon that the code claims"),
        (["audited:kept", "-e", "-1"], "epsilon >= 0"),
        (["audited:kept", "-e", "one"], "epsilon must be"),
        (["audited:kept", "-e", "nan"], "epsilon must be"),
        (["audited:kept", "-e", "1", "--delta", "1"], "delta < 1"),
        (["audited:kept", "-e", "1", "--data", "pictures"], "no data is called"),
        (["audited:kept", "-e", "1", "--pairs", "audited:WRONG"], "must be pairs"),
        (["audited:kept", "-e", "1", "--pairs", "audited:SAME"], "equal inputs only"),
        (["audited:kept", "-e", "1", "--time-limit", "0"], "time-limit"),
        (["audited:kept", "-e", "1", "--report", "out.txt"], "end it in .html"),
        (["audited:kept", "-e", "1", "--report", "no/such/out.html"], "cannot be written"),
        (["audited:fails", "-e", "1"], "raises RuntimeError on both inputs of every pair: never works"),
        (["audited:leaves", "-e", "1"], "raises SystemExit on both inputs"),
        (["audited:hangs", "-e", "1", "--time-limit", "0.2"], "did not end within the time limit"),
        (["quits:f", "-e", "1"], "cannot be imported: SystemExit"),
        (["audited:greedy", "-e", "1"], "may take noise, rng or size"),
        (["dither", "-e", "1"], "its own prices"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_audited_is_a_text_and_exit_code_two(here: Path, words: list[str], told: str) -> None:
    found = run(*words)
    assert found.exit_code == 2, found.output
    assert told in found.stderr
    assert "Fix:" in found.stderr
    assert "Traceback" not in found.output
    assert found.stdout == ""


def test_our_own_system_passes_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses few samplers, pairs and seconds: the methods have tests of their own."""
    monkeypatch.setattr(command.samplers, "samplers", lambda: tuple(command.samplers._families())[:2])
    monkeypatch.setattr(command, "mechanisms", ours_few)
    monkeypatch.setattr(command, "STRICT", 1e-9)  # a tight mechanism, attacked in every run of the tests
    monkeypatch.setattr(command, "timing", lambda seconds, seed: {"clock": "not measured"})
    steps: list[float] = []
    found = command.audit(command.AuditRequest("dither", time_limit=0.5), lambda words, share: steps.append(share))
    assert not found.violations
    assert {(one.method, one.outcome) for one in found.verdicts} == {
        ("exact", PROVED),
        ("exact", WALKED),
        ("replay", NOT_FOUND),
        ("black box", NOT_FOUND),
    }
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    assert found.not_checked


WHOLE = command.mechanisms()


def ours_few() -> tuple[object, ...]:
    return WHOLE[2:3]


def test_every_mechanism_with_an_epsilon_is_attacked() -> None:
    names = {target.name.split("(")[0] for target in WHOLE}
    assert {"Geometric", "Laplace", "Gaussian", "RandomizedResponse", "SparseVector", "Threshold"} <= names


@pytest.mark.parametrize("target", WHOLE, ids=lambda target: target.name)
def test_batches_have_the_shape_of_single_runs(target: object) -> None:
    one = target.run(target.pairs[0][0])  # type: ignore[attr-defined]
    several = target.sample(target.pairs[0][0], 3)  # type: ignore[attr-defined]
    assert len(several) == 3
    assert isinstance(one, tuple) == isinstance(several[0], tuple)


def test_the_command_is_listed_with_the_others() -> None:
    assert "audit" in CliRunner().invoke(app, ["--help"]).stdout
