"""Closed, full and shared outputs lose no paid answer, and no text controls a terminal."""

from __future__ import annotations

import json
import os
import pty
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from journey.hospital import COUNT, built, run
from journey.preloaded import ROOT, command

ESCAPE = "\x1b[2J\x9b2J"
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent() -> Fraction:
    return Fraction(json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"])


def shell(line: str, folder: Path, program: Sequence[str] = (sys.executable, "-m", "dither.cli")) -> CompletedProcess[str]:
    """A command line with redirections; `dither` is the one that is tested."""
    words = line.replace("dither", shlex.join(program), 1)
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")} | {"PYTHONPATH": source}
    done = subprocess.run(["sh", "-c", words], cwd=folder, env=clean, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


# --- outputs that cannot be written -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("where", [">&-", pytest.param("> /dev/full", marks=full)])
def test_an_answer_without_an_output_is_kept_and_told_so(hospital: Path, where: str) -> None:
    done = shell(f"dither ask '{COUNT}' -e 0.1 {where}", hospital)
    assert done.returncode == 4
    assert "The answer is kept." in done.stderr
    assert "costs nothing more" in done.stderr
    again = run("ask", COUNT, "-e", "0.1")
    assert (again.exit_code, "charged nothing" in again.stderr) == (0, True)
    assert spent() == Fraction(1, 10)
    assert run("verify").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("where", [">&-", pytest.param("> /dev/full", marks=full)])
@pytest.mark.parametrize("words", [f"quote '{COUNT}' -e 0.1", "budget", "history", "history -f json", "verify", "check"])
def test_what_costs_nothing_says_so_when_it_cannot_be_shown(hospital: Path, words: str, where: str) -> None:
    run("ask", COUNT, "-e", "0.1")
    done = shell(f"dither {words} {where}", hospital, command())
    assert done.returncode == 4
    assert done.stderr.rstrip().endswith("Charged: nothing.")


@pytest.mark.parametrize("name", ["a.ods", "a.CSV2", "a.table"])
def test_an_ending_that_nobody_knows_is_refused_before_the_charge(hospital: Path, name: str) -> None:
    done = run("ask", COUNT, "-e", "0.1", "-o", name)
    assert done.exit_code == 2
    assert (
        "end it in one of .csv .json .parquet .txt .md .tex .xlsx, or name a --format as well.   Charged: nothing."
        in done.stderr
    )
    assert (spent(), Path(name).exists()) == (0, False)
    for known in (("-o", "a.TXT"), ("-o", "a.CSV"), ("-o", "plain"), ("-o", name, "-f", "csv")):
        assert run("ask", COUNT, "-e", "0.1", *known).exit_code == 0
    assert "±" in Path("a.TXT").read_text(encoding="utf-8")
    assert Path(name).read_text(encoding="utf-8") == Path("a.CSV").read_text(encoding="utf-8")


@pytest.mark.slow
@full
def test_proposed_bounds_are_kept_too(hospital: Path) -> None:
    done = shell("dither suggest patients.income -e 0.1 > /dev/full", hospital)
    assert (done.returncode, "The answer is kept." in done.stderr) == (4, True)
    assert spent() == Fraction(1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["2>&-", pytest.param("2> /dev/full", marks=full), "<&- 2>&-"])
def test_an_answer_is_shown_though_nothing_can_be_said_about_it(hospital: Path, where: str) -> None:
    done = shell(f"dither ask '{COUNT}' -e 0.1 {where}", hospital)
    assert (done.returncode, "±" in done.stdout) == (0, True)


@pytest.mark.slow
def test_the_ledger_never_stands_where_stdout_was(hospital: Path) -> None:
    done = shell(f"dither ask '{COUNT}' -e 0.1 <&- >&- 2>&-", hospital)
    assert done.returncode == 4
    assert run("verify").exit_code == 0


# --- outputs that are one file ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_outputs_in_one_file_are_refused_before_anything_is_charged(hospital: Path) -> None:
    (hospital / "folder").mkdir()
    (hospital / "link.png").symlink_to("x.png")
    (hospital / "here").symlink_to(".")
    pairs = [("x.png", "x.png"), ("x.png", "./x.png"), ("x.png", "folder/../x.png"), ("x.png", str(hospital / "x.png"))]
    for one, other in [*pairs, ("x.png", "link.png"), ("link.png", "x.png"), ("here/x.png", "x.png")]:
        for options in (("--receipt", "--out"), ("--out", "--plot"), ("--plot", "--receipt")):
            done = run("ask", COUNT, "-e", "0.1", options[0], one, options[1], other)
            assert (done.exit_code, "the same file" in done.stderr) == (2, True), (options, one, other)
    (hospital / "a.json").touch()
    (hospital / "b.json").hardlink_to(hospital / "a.json")
    assert run("ask", COUNT, "-e", "0.1", "--receipt", "a.json", "--out", "b.json").exit_code == 2
    assert spent() == 0
    assert run("ask", COUNT, "-e", "0.1", "--receipt", "d.json", "--out", "c.json", "--plot", "x.png").exit_code == 0


@pytest.mark.parametrize("file", ["catalog.toml", "catalog.ledger", "catalog.ledger.key"])
def test_an_answer_takes_the_place_of_no_book(hospital: Path, file: str) -> None:
    before = (hospital / file).read_bytes()
    for option in ("--out", "--receipt"):
        assert run("ask", COUNT, "-e", "0.1", option, file).exit_code == 2
    assert (hospital / file).read_bytes() == before
    assert spent() == 0


# --- terminals --------------------------------------------------------------------------------------------------


def on_a_terminal(folder: Path, *words: str) -> str:
    """Returns what a terminal shows."""
    leader, follower = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    clean |= {"PYTHONPATH": str(ROOT / "src"), "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}
    child = subprocess.Popen(command(*words), cwd=folder, env=clean, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 65536):
            seen += part
    except OSError:
        pass  # how Linux says that the other end is closed
    child.wait(timeout=60)
    os.close(leader)
    return seen.decode("utf-8", "replace")


def test_that_a_terminal_is_looked_at(hospital: Path) -> None:
    code = "import sys; print('\\x1b[2J', sys.stdout.isatty())"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=follower, check=True)
    os.close(follower)
    assert os.read(leader, 100).startswith(b"\x1b[2J True")
    os.close(leader)


@pytest.mark.slow
def test_a_meddler_cannot_write_the_verdict(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1")
    lie = f"{ESCAPE}\x1b[Hcatalog.ledger: 4 entries, nothing wrong.\x1b[8m"
    with closing(sqlite3.connect(hospital / "catalog.ledger")) as database, database:
        database.execute("INSERT INTO state VALUES (?, '1')", (lie,))
    shown = on_a_terminal(hospital, "verify")
    assert "problem" in shown
    for each in (shown, on_a_terminal(hospital, "verify", "-f", "json"), run("verify").stdout):
        assert "\x1b[2J" not in each
        assert "\x9b" not in each


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_the_history_of_others_cannot_command_a_terminal(hospital: Path, form: str) -> None:
    question = f'SELECT COUNT(*) AS "a{ESCAPE}b" FROM patients'
    assert run("ask", question, "-e", "0.1").exit_code == 0
    asked = ("ask", question, "-e", "0.1", "-f", form)
    for words in (("history", "-f", form), ("history", "--entries", "-f", form), asked, ("quote", question, "-e", "0.2")):
        shown = on_a_terminal(hospital, *words)
        assert "SELECT" in shown or "a\\" in shown
        assert "\x1b[2J" not in shown
        assert "\x9b" not in shown
    piped = run("history", "-f", "json").stdout
    assert "\x9b" not in piped
    assert json.loads(piped.splitlines()[0])["question"] == question  # escaped, and the same


@pytest.mark.slow
def test_a_terminal_is_shown_the_last_fifty(hospital: Path) -> None:
    for _ in range(51):
        run("ask", COUNT, "-e", "0.001", "--fresh")
    shown = on_a_terminal(hospital, "history")
    assert shown.count(COUNT) == 50
    assert "--limit" in shown
    assert run("history").stdout.count(COUNT) == 51
