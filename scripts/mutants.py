"""Breaks the code on purpose, one fault at a time, and checks that the test named for each fault fails.

    python scripts/mutants.py                the whole table
    python scripts/mutants.py --only NAME    one mutant; can be repeated
    python scripts/mutants.py --jobs 2       two at once

A mutant is one replacement in one file under src/dither (scripts/mutants_table.py lists them). The script makes it in a copy
of the source and the tests in a temporary folder, and only reads the working tree. Outcomes:

    killed      an assertion of the test failed
    survived    the test passed: it does not find the fault
    broken      the test failed for another reason, such as an import, or did not end
    stale       the text to replace does not occur exactly once, or the test is gone

All tests must pass on the unchanged copy first. Exits with 1 unless every mutant is killed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutants_table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "docs", "pyproject.toml")
MOST_SECONDS = 300  # for the test of one mutant
KILLED, SURVIVED, BROKEN, STALE = "killed", "survived", "broken", "stale"

# Runs in the copy. Reports which dither it imported, and how each test ended: "passed", "failed" by an assertion, or "error".
CHILD = """
import json, sys
import pytest

out, *tests = sys.argv[1:]
found = {"ended": []}


def asserted(error):
    if isinstance(error, BaseExceptionGroup):  # several failures of Hypothesis
        return all(map(asserted, error.exceptions))
    return isinstance(error, (AssertionError, pytest.fail.Exception))


class Recorder:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call" or not report.passed:
            error = call.excinfo.value if call.excinfo else None
            ended = "passed" if report.passed else "failed" if call.when == "call" and asserted(error) else "error"
            found["ended"].append([item.nodeid, ended, "" if error is None else f"{type(error).__name__}: {error}"[:300]])
        return report


code = pytest.main(["-x", "-p", "no:xdist", "-p", "no:dither", *tests], plugins=[Recorder()])
import dither  # not before pytest, which warns of plugins that are imported already
found["dither"] = dither.__file__
with open(out, "w") as file:
    json.dump(found | {"code": int(code)}, file)
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one mutant."""

    mutant: Mutant
    status: str
    why: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """One run of tests in a copy: how each test ended, and the output of the run."""

    ended: Sequence[tuple[str, str, str]]
    code: int
    output: str

    @property
    def status(self) -> str:
        """The outcome of a mutant with this run."""
        if self.code == 0 and self.ended and all(how == "passed" for _, how, _ in self.ended):
            return SURVIVED
        failed = [how for _, how, _ in self.ended if how != "passed"]
        return KILLED if self.code == 1 and failed and set(failed) == {"failed"} else BROKEN

    @property
    def why(self) -> str:
        """The message of the first test that did not pass, in one line."""
        message = next((f"{test.rpartition('::')[2]}: {error}" for test, how, error in self.ended if how != "passed"), "")
        return " ".join(message.split()) or (self.output.strip().splitlines() or [""])[-1]


def stale(mutant: Mutant) -> str:
    """Returns why the mutant no longer fits the code, or ""."""
    path = ROOT / "src" / "dither" / mutant.file
    if not path.exists():
        return f"{mutant.file} is gone"
    times = path.read_text(encoding="utf-8").count(mutant.old)
    if times != 1:
        return f"its text occurs {times} times in {mutant.file}"
    file, _, name = mutant.test.partition("::")
    name = name.partition("[")[0]
    tests = ROOT / file
    if not tests.exists() or name not in _functions(tests):
        return f"{file} has no test {name}"
    return ""


def _functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def copy_tree(folder: Path) -> None:
    """Copies the source and the tests, without compiled files."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, folder / name)


def run_tests(folder: Path, tests: Iterable[str], seconds: float = MOST_SECONDS) -> Run:
    """Runs these tests against the source in the folder."""
    out = folder / "ended.json"
    env = {name: value for name, value in os.environ.items() if name not in ("DITHER_SEARCH", "PYTEST_ADDOPTS")}
    env["PYTHONPATH"] = str(folder / "src")
    command = [sys.executable, "-c", CHILD, str(out), *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Run((), -1, f"did not end within {seconds:.0f} s")
    if not out.exists():
        return Run((), -1, done.stderr)
    result = json.loads(out.read_text(encoding="utf-8"))
    if not Path(result["dither"]).is_relative_to(folder / "src"):
        raise SystemExit(f"The tests did not import the copy, but {result['dither']}.")
    return Run([(test, how, why) for test, how, why in result["ended"]], result["code"], done.stdout + done.stderr)


def try_mutant(mutant: Mutant, whole: Path) -> Outcome:
    """Makes the mutant in a second copy, and runs its test."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name).resolve() / "copy"
        shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("ended.json"))
        path = folder / "src" / "dither" / mutant.file
        text = path.read_text(encoding="utf-8").replace(mutant.old, mutant.new)
        compile(text, str(path), "exec")
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
        ran = run_tests(folder, [mutant.test])
    return Outcome(mutant, ran.status, ran.why, time.monotonic() - started)


def try_all(mutants: Sequence[Mutant], jobs: int = 1) -> list[Outcome]:
    """Returns the outcome of each in order, once their tests have passed on the unchanged copy."""
    old = {mutant.name: why for mutant in mutants if (why := stale(mutant))}
    fresh = [mutant for mutant in mutants if mutant.name not in old]
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        whole = Path(name).resolve() / "whole"
        whole.mkdir()
        copy_tree(whole)
        if fresh:
            ran = run_tests(whole, dict.fromkeys(mutant.test for mutant in fresh), MOST_SECONDS * len(fresh))
            if ran.status != SURVIVED:
                raise SystemExit(f"The tests do not pass on the unchanged code: {ran.why}")

        def outcome(mutant: Mutant) -> Outcome:
            return Outcome(mutant, STALE, old[mutant.name]) if mutant.name in old else try_mutant(mutant, whole)

        with ThreadPoolExecutor(jobs) as pool:
            return [show(one) for one in pool.map(outcome, mutants)]


def show(one: Outcome) -> Outcome:
    """Prints an outcome and returns it."""
    print(f"{one.status:8}  {one.seconds:5.1f} s  {one.mutant.name}: {one.mutant.fault}")
    print(f"{'':19}{one.mutant.test}")
    if one.status != KILLED:
        print(f"{'':19}{one.why[:400]}")
    sys.stdout.flush()
    return one


def main() -> int:
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--only", action="append", metavar="NAME", choices=[mutant.name for mutant in MUTANTS])
    reader.add_argument("--jobs", type=int, default=2, metavar="N")
    args = reader.parse_args()
    outcomes = try_all([mutant for mutant in MUTANTS if args.only is None or mutant.name in args.only], args.jobs)
    counts = [f"{sum(one.status == status for one in outcomes)} {status}" for status in (KILLED, SURVIVED, BROKEN, STALE)]
    print(f"\n{len(outcomes)} mutants: {', '.join(counts)}")
    return int(any(one.status != KILLED for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
