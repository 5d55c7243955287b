"""Real signals to a question on many rows: it ends as interrupted, and says what the ledger says of the charge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dither.cli.app import SIGNALS
from journey.preloaded import ROOT, command

CATALOG = """\
[budget]
epsilon = 100
[tables.people]
source = "people.parquet"
unit = "who"
max_rows = 1
[tables.people.columns]
v = { between = [0, 1000] }
"""
ROWS = 30_000_000
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
ENVIRONMENT |= {"PYTHONPATH": str(ROOT / "src")}
PAID, UNKNOWN = "Charged: ε = 0.01, and it stays charged.", "Charged: nothing, unless `dither history` shows a new entry."
NOTHING = "Charged: nothing."  # stopped before the reservation, or after it and before any row was read: given back
STATES = {PAID: [["interrupted"]], NOTHING: [[], ["cancelled"]]}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowd")
    with duckdb.connect() as connection:
        rows = f"SELECT range AS who, (range * 7919) % 1000 AS v FROM range({ROWS})"
        connection.execute(f"COPY ({rows}) TO '{folder}/people.parquet'")
    (folder / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    assert dither(folder, "init").wait(60) == 0
    return folder


def dither(folder: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(command(*words), cwd=folder, env=ENVIRONMENT, text=True, stderr=subprocess.DEVNULL, **options)


def history(folder: Path) -> list[dict[str, Any]]:
    listed = dither(folder, "history", "--format", "json", stdout=subprocess.PIPE)
    return [json.loads(line) for line in listed.communicate(timeout=60)[0].splitlines()]


def spent(folder: Path) -> Fraction:
    shown = dither(folder, "budget", "--format", "json", stdout=subprocess.PIPE)
    return Fraction(json.loads(shown.communicate(timeout=60)[0])["rules"]["sum"]["epsilon"]["spent"])


def asking(folder: Path, question: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "dither.cli", "ask", question, "-e", "0.01"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(line, cwd=folder, env=ENVIRONMENT, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def listens(child: subprocess.Popen[str]) -> None:
    """Waits until a slow machine has brought the child to the point where it handles signals, or to its end.

    That is when it handles all of them: Python itself handles SIGINT from its start, with a traceback.
    """
    status, bits = Path(f"/proc/{child.pid}/status"), sum(1 << (number - 1) for number in SIGNALS)
    while child.poll() is None and status.exists():
        caught = re.search(r"^SigCgt:\s*(\w+)", status.read_text(encoding="utf-8"), re.MULTILINE)
        if caught is None or int(caught[1], 16) & bits == bits:
            return
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "Terminated."), (signal.SIGHUP, 129, "Interrupted.")],
)
@pytest.mark.parametrize("moment", [0.7, 0.9, 1.1, 1.4])
def test_a_signal_ends_the_question_and_tells_its_charge(
    crowd: Path, number: signal.Signals, code: int, word: str, moment: float
) -> None:
    question = f"SELECT SUM(v * v) AS s FROM people WHERE v <> {int(number)}{int(moment * 10)}"
    child = asking(crowd, question)
    time.sleep(moment)
    listens(child)
    child.send_signal(number)
    shown, told = child.communicate(timeout=60)
    entries = [each for each in history(crowd) if each["question"] == question]
    if child.returncode == 0 or shown:  # it was faster; the signal may still have met the interpreter at its end
        assert entries[0]["state"] == "answered"
        return
    assert child.returncode == code, told
    assert (shown, told.splitlines()[0]) == ("", word)
    assert len(told.splitlines()) == 2
    charge = told.splitlines()[1].strip()
    assert charge in (PAID, UNKNOWN, NOTHING)
    assert charge == UNKNOWN or [each["state"] for each in entries] in STATES[charge]
    assert spent(crowd) == sum(Fraction(each["epsilon"]) for each in history(crowd) if each["state"] != "cancelled")


PARSING = """
import os, signal, sys
from dither import cli
from dither.cli.app import Commands

whole = Commands.make_context

number, way, sys.argv = int(sys.argv[1]), sys.argv[2], ["dither", "explain", "1"]

def parsed(self, *given, **named):
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt as stopped:
        if way == "plain":
            raise
        raise ImportError("as a library in C says it while it is loaded") from stopped
    return whole(self, *given, **named)

Commands.make_context = parsed
cli.main()
"""


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "Terminated."), (signal.SIGHUP, 129, "Interrupted.")],
)
@pytest.mark.parametrize("way", ["plain", "disguised"])
def test_a_signal_before_the_options_are_read_says_as_much(number: signal.Signals, code: int, word: str, way: str) -> None:
    program = [sys.executable, "-c", PARSING, str(int(number)), way]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert [line.strip() for line in done.stderr.splitlines()] == [word, UNKNOWN]


PROGRAM = """
import os, signal, sys, threading, time
import dither as dt
from dither.curator import STEPS, Steps
from dither.errors import EngineError
question, way = sys.argv[1:]
survey = dt.open("catalog.toml")

def run(engine, work):
    begun.set()
    return STEPS.run(engine, work)

def stop():
    begun.wait()
    time.sleep(0.2)
    if way == "signal":
        os.kill(os.getpid(), signal.SIGINT)
    while way == "interrupt" and not ended.wait(0.05):  # one that comes before the engine has begun stops nothing
        survey.engine.interrupt()

spent, begun, ended = survey.budget.spent.epsilon, threading.Event(), threading.Event()
survey.steps = Steps(run=run)
threading.Thread(target=stop).start()
try:
    survey.ask(question, epsilon="0.01")
except (KeyboardInterrupt, EngineError) as error:
    ended.set()
    chain, links = error, []
    while chain is not None:
        links.append(f"{type(chain).__name__}: {chain}")
        chain = chain.__context__
    print(type(error).__name__, error.charged, survey.budget.spent.epsilon - spent, "Query" in str(links), sep="; ")
assert survey.closed == (way == "interrupt")
survey.reopen()
survey.close()
"""


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("signal", "Interrupted; ε = 0.01, and it stays charged; 1/100; False"),
        ("interrupt", "EngineError; ε = 0.01; 1/100; False"),
    ],
)
def test_ctrl_c_in_the_engine_is_an_interrupt_in_python_and_nothing_else_is(crowd: Path, way: str, told: str) -> None:
    question = f"SELECT SUM(v * v * v) AS s FROM people WHERE v <> {len(way)}"
    program = [sys.executable, "-c", PROGRAM, question, way]
    done = subprocess.run(program, cwd=crowd, env=ENVIRONMENT, text=True, capture_output=True, check=False, timeout=60)
    assert (done.stdout.strip(), done.returncode) == (told, 0), done.stderr


MAIN = """
import sys, time
from dither.cli import main
from dither.engines.duckdb.engine import DuckDB
def run(*_):
    try:
        print("reading", flush=True)
        time.sleep(60)
    finally:
        print("cleaning", flush=True)
        time.sleep(60)
DuckDB.run = run
sys.argv[1:] = ["ask", "SELECT COUNT(*) AS n FROM people", "-e", "0.01"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_clean_up(crowd: Path, number: signal.Signals) -> None:
    program, pipes = [sys.executable, "-c", MAIN], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(program, cwd=crowd, env=ENVIRONMENT, text=True, **pipes)  # type: ignore[call-overload]
    for line in ("reading\n", "cleaning\n"):
        assert child.stdout.readline() == line
        child.send_signal(number)
    _, told = child.communicate(timeout=30)
    assert child.returncode == -number
    assert "Traceback" not in told


def test_the_library_installs_no_handler_and_the_command_line_restores_them() -> None:
    program = """
import signal, sys
before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
import dither, dither.curator, dither.cli
assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
sys.argv = ["dither", "--version"]
try:
    dither.cli.main()
except SystemExit:
    pass
assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
"""
    subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("words", ["ask --help", "--help", "explain -e 1"])
def test_a_reader_that_goes_away_is_141(tmp_path: Path, words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "dither.cli", *words.split()]
    child = subprocess.Popen(line, cwd=tmp_path, env=ENVIRONMENT, stdout=writing, stderr=subprocess.DEVNULL)
    os.close(writing)
    assert child.wait(60) == 141
