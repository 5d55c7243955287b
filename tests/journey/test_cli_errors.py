"""What goes wrong at the command line ends with a text, an exit code and no traceback; and never with an unpaid answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from dither.cli import output
from dither.engines.duckdb.engine import DuckDB
from journey.hospital import BY_WARD, COUNT, built, run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent() -> Fraction:
    return Fraction(json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"])


@pytest.mark.slow
def test_every_refusal_has_its_exit_code_and_says_what_was_charged(hospital: Path) -> None:
    cases = {
        ("ask", "SELECT weight FROM patients", "-e", "0.1"): 1,
        ("ask", "SELECT FROM WHERE", "-e", "0.1"): 1,
        ("ask", "SELECT COUNT(*) FROM nobody", "-e", "0.1"): 1,
        ("ask", COUNT, "-e", "nan"): 2,
        ("ask", COUNT, "-e", "-1"): 2,
        ("ask", COUNT, "-e", "0"): 2,
        ("ask", COUNT, "-e", "0.1", "--delta", "1e-6"): 2,
        ("ask", COUNT, "-e", "0.1", "--confidence", "1"): 2,
        ("ask", COUNT): 2,
        ("ask", COUNT, "-e", "0.1", "--margin", "40"): 2,
        ("ask", COUNT, "-e", "0.1", "--catalog", "nowhere.toml"): 2,
        ("ask", COUNT, "-e", "1.5"): 3,
        ("ask", COUNT, "-e", "0.1", "--ledger", "nowhere.ledger"): 4,
        ("ask", COUNT, "-e", "0.1", "--ledger", "catalog.toml"): 4,
        ("ask", COUNT, "-e", "0.1", "--key", "nowhere.key"): 4,
        ("suggest", "patients.nothing", "-e", "0.1"): 2,
        ("budget", "--ledger", "nowhere.ledger"): 4,
        ("verify", "--head", "not a head"): 2,
        ("verify", "--head", "8"): 2,
        ("verify", "--head", "\u0663:" + "0" * 64): 2,  # a digit, and not one of ours
        ("ask", COUNT, "-e", "0.1", "--catalog", "."): 2,
        ("ask", COUNT, "-e", "0.1", "--catalog", ".", "--ledger", "catalog.ledger"): 2,
        ("budget", "--catalog", "."): 2,
        ("verify", "--catalog", ".."): 2,
        ("quote", COUNT, "-e", "0.1", "--ledger", "."): 4,
        ("quote", COUNT, "-e", "0.1", "--ledger", "catalog.toml"): 4,
        ("verify", "--receipt", "patients.parquet"): 2,
        ("check", "nowhere.toml"): 2,
        ("init", "patients.parquet", "--catalog", "new.toml"): 2,
        ("init", "patients.parquet", "--unit", "patient"): 2,
        ("init", "--catalog", "nowhere.toml"): 2,
        ("explain", "--epsilon", "much"): 2,
        ("explain", "--epsilon", "1", "--delta", "1"): 2,
    }
    for words, code in cases.items():
        done = run(*words)
        assert (words, done.exit_code) == (words, code)
        assert done.stdout == "", words
        assert done.stderr.rstrip().endswith("Charged: nothing."), words
    assert spent() == 0
    assert not (hospital / "nowhere.ledger").exists()  # a misspelt path starts no fresh budget


def test_wrong_options_are_told_apart_from_refusals(hospital: Path) -> None:
    wrong = (("ask", COUNT, "-e", "1", "--format", "xml"), ("ask", COUNT, "-e", "1", "--rows", "0"), ("history", "--last", "0"))
    for words in (("dance",), ("ask",), *wrong):
        done = run(*words)
        assert done.exit_code == 2
        assert "Usage" in done.stderr


def test_only_declared_analysts_may_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, 'epsilon = 1.0\nanalysts = ["ana"]')
    for _ in range(2):  # before it was answered, and after: an old answer is not for everyone either
        for command in ("ask", "quote"):
            stranger, nobody = run(command, COUNT, "-e", "0.1", "--analyst", "eve"), run(command, COUNT, "-e", "0.1")
            assert (stranger.exit_code, stranger.stdout, nobody.exit_code, nobody.stdout) == (2, "", 2, "")
            assert "eve is none of the catalog's analysts" in stranger.stderr
            assert "not said who asks" in nobody.stderr
        assert run("ask", COUNT, "-e", "0.1", "--analyst", "ana").exit_code == 0
        assert run("quote", COUNT, "-e", "0.1", "--analyst", "ana").exit_code == 0


def test_a_quote_of_an_old_answer_knows_the_quota_it_would_count_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    assert run("ask", COUNT, "-e", "0.2", "--analyst", "ana").exit_code == 0
    assert run("ask", BY_WARD, "-e", "0.2", "--analyst", "ben").exit_code == 0
    for command in ("quote", "ask"):
        done = run(command, COUNT, "-e", "0.2", "--analyst", "ben")
        assert (done.exit_code, "quota of ben" in done.output) == (3, True)
    for analyst in ("ana", "cat", "cat"):  # who asked it; who has enough left; who has seen it and nothing left
        for command in ("quote", "ask"):
            done = run(command, COUNT, "-e", "0.2", "--analyst", analyst)
            assert (done.exit_code, "charged nothing" in done.output) == (0, True)


def test_where_nothing_can_be_written_nothing_is_asked(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for option in ("--out", "--receipt", "--plot"):
        done = run("ask", COUNT, "-e", "0.1", option, "nowhere/file.png")
        assert done.exit_code == 2
        assert "cannot be written" in done.stderr
    assert run("ask", COUNT, "-e", "0.1", "--plot", "picture.doc").exit_code == 2
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    told = run("ask", COUNT, "-e", "0.1", "--plot", "picture.png").stderr
    assert "matplotlib" in told
    assert "pip install -e '.[plots]'" in told
    assert spent() == 0


def test_an_answer_that_could_not_be_written_is_not_lost(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(output, "_text", full)
        lost = run("ask", COUNT, "-e", "0.1", "--out", "answer.csv")
    assert lost.exit_code == 4
    assert "ask the same again" in lost.stderr
    again = run("ask", COUNT, "-e", "0.1", "--out", "answer.csv")
    assert "charged nothing" in again.stderr
    assert (hospital / "answer.csv").exists()
    assert spent() == Fraction(1, 10)


def test_an_engine_that_fails_shows_one_text_and_stays_charged(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the value 84.2 of patient 17")

    monkeypatch.setattr(DuckDB, "run", fail)
    done = run("ask", COUNT, "-e", "0.1")
    assert done.exit_code == 4
    assert "could not be computed" in done.stderr
    assert "84.2" not in done.output
    assert spent() == Fraction(1, 10)


def test_ctrl_c_ends_without_a_traceback_and_the_price_stays_spent(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DuckDB, "run", interrupted)
    done = run("ask", COUNT, "-e", "0.1")
    assert done.exit_code == 130
    assert (done.stdout, "stays charged" in done.stderr) == ("", True)
    assert spent() == Fraction(1, 10)
    assert run("verify").exit_code == 0


def test_parquet_is_not_thrown_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(output.ArgumentError, match="not for a terminal"):
        output.chosen(output.Format.PARQUET, None)
    assert output.chosen(None, None) is output.Format.TABLE


def test_a_lost_key_stops_asking_and_nothing_else(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1")
    (hospital / "catalog.ledger.key").unlink()
    done = run("ask", BY_WARD, "-e", "0.1")
    assert done.exit_code == 4
    assert "key file" in done.stderr
    assert run("verify").exit_code == 0
    assert spent() == Fraction(1, 10)


def test_a_question_cannot_command_the_curators_terminal(hospital: Path) -> None:
    escape = "\x1b[2J"
    assert run("ask", f"{COUNT} WHERE ward = '{escape}'", "-e", "0.1", "--analyst", "eve").exit_code == 0
    table, refusal = run("history"), run("ask", f"SELECT '{escape}' AS a, weight FROM patients", "-e", "0.1")
    assert escape not in table.output + refusal.output
    assert "\\x1b[2J" in table.stdout


# --- a process of its own ---------------------------------------------------------------------------------------


def process(code: str, folder: Path, **options: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    words = [sys.executable, "-c", code]
    return subprocess.Popen(words, cwd=folder, env=environment, text=True, stderr=subprocess.PIPE, **options)


MAIN = "import sys\nfrom dither.cli import main\nsys.argv = ['dither', *{words!r}]\nmain()\n"


def test_a_reader_that_goes_away_is_no_error_to_shout_about(hospital: Path) -> None:
    run("ask", COUNT, "-e", "0.1")
    reading, writing = os.pipe()
    os.close(reading)
    child = process(MAIN.format(words=["history", "--format", "json"]), hospital, stdout=writing)
    os.close(writing)
    _, told = child.communicate(timeout=60)
    assert (child.returncode, told) == (141, "")


@pytest.mark.slow
def test_a_locale_without_greek_loses_no_answer(hospital: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    child = process(MAIN.format(words=["ask", BY_WARD, "-e", "0.1"]), hospital, stdout=subprocess.PIPE)
    shown, told = child.communicate(timeout=60)
    assert child.returncode == 0, told
    assert "Traceback" not in told
    assert "hearts" in shown


@pytest.mark.slow
def test_a_signal_while_the_engine_reads(hospital: Path) -> None:
    waiting = (
        "import sys, time\nfrom dither.engines.duckdb.engine import DuckDB\n"
        "def run(*_):\n    print('reading', flush=True)\n    time.sleep(60)\n"
        "DuckDB.run = run\n" + MAIN.format(words=["ask", COUNT, "-e", "0.1"])
    )
    child = process(waiting, hospital, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == "reading\n"
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in told
    assert spent() == Fraction(1, 10)


def test_an_answer_that_cannot_say_its_margin_is_written_all_the_same(hospital: Path) -> None:
    done = run("ask", "SELECT MEDIAN(weight) AS kg FROM patients", "-e", "0.5", "--format", "csv")
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--epsilon", ("-e", "0.01", "--epsilon", "0.001")),
        ("--margin", ("--margin", "50", "-m", "60")),
        ("--delta", ("-e", "0.1", "--delta", "0", "--delta=0")),
        ("--analyst", ("-e", "0.1", "-a", "ana", "-aben")),
        ("--ledger", ("-e", "0.1", "-l", "catalog.ledger", "--ledger", "catalog.ledger")),
        ("--catalog", ("-e", "0.1", "-c", "catalog.toml", "-c", "catalog.toml")),
        ("--key", ("-e", "0.1", "--key", "a", "--key", "b")),
    ],
)
def test_an_option_that_is_given_twice_is_wrong_usage(hospital: Path, option: str, words: tuple[str, ...]) -> None:
    done = run("ask", COUNT, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{option} is given more than once.")
    assert spent() == 0


def test_what_only_looks_given_twice_is_not_refused(hospital: Path) -> None:
    assert run("ask", COUNT, "--fresh", "--fresh", "-e", "0.1", "--analyst", "--epsilon").exit_code == 0
    assert run("ask", "-e", "0.1", "--", COUNT).exit_code == 0
