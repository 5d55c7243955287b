"""`dither stream` in a shell, day after day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journey.hospital import run

CATALOG = """
snapshot = "{snapshot}"
[budget]
epsilon = 5
[tables.visits]
source = "visits.csv"
unit = "person"
max_rows = 1
max_groups = 3
[tables.visits.columns]
day = {{ between = [2026-01-01, 2026-12-31] }}
"""
TERMS = ("SELECT COUNT(*) FROM visits", "--by", "day", "--horizon", "365", "-e", "1")


def arrived(folder: Path, days: int) -> None:
    """Writes the visits up to a day, under a new label."""
    rows = [f"{person},2026-01-{1 + person % days:02}" for person in range(100 * days)]
    (folder / "visits.csv").write_text("\n".join(["person,day", *rows]) + "\n")
    (folder / "catalog.toml").write_text(CATALOG.format(snapshot=f"day {days}"))


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    arrived(tmp_path, 3)
    assert run("init").exit_code == 0
    return tmp_path


def test_a_stream_goes_on_from_day_to_day(visits: Path) -> None:
    quoted = run("stream", *TERMS, "--quote")
    assert (quoted.exit_code, "charged once" in quoted.stdout) == (0, True)
    first = run("stream", *TERMS, "--until", "2026-01-03", "--receipt", "first.json")
    assert first.exit_code == 0, first.stderr
    assert first.stdout.splitlines()[0].split() == ["day", "COUNT(*)", "so", "far"]
    assert "charged ε = 1, for all 365 steps" in first.stderr
    arrived(visits, 4)
    more = run("stream", *TERMS, "-f", "csv", "--plot", "visits.svg")
    assert more.exit_code == 0, more.stderr
    assert more.stdout.splitlines()[0] == "day,total,margin"
    assert more.stdout.splitlines()[1].startswith("2026-01-04,")
    assert "charged nothing now: paid for in entry 3" in more.stderr
    assert (visits / "visits.svg").stat().st_size > 1000
    all_of_them = json.loads(run("stream", *TERMS, "--released", "-f", "json").stdout)
    assert [row["day"] for row in all_of_them["stream"]] == [f"2026-01-0{number}" for number in range(1, 5)]
    assert json.loads(run("budget", "-f", "json").stdout)["rules"]["sum"]["epsilon"]["spent"] == "1"
    assert run("verify", "--receipt", "first.json").exit_code == 0
    history = run("history", "-f", "csv").stdout
    assert history.count("answered") == 3
    assert "advanced" in run("history", "--entries", "-f", "csv").stdout


def test_wrong_usage_is_said_in_words_and_charges_nothing(visits: Path) -> None:
    assert run("stream", TERMS[0]).exit_code == 2
    both = run("stream", *TERMS, "--quote", "--until", "2026-01-03")
    assert (both.exit_code, "leave two of them out" in both.stderr) == (2, True)
    late = run("stream", *TERMS, "--until", "2027-01-01")
    assert (late.exit_code, "until must be" in late.stderr, "Charged: nothing" in late.stderr) == (2, True, True), late.stderr
    dear = run("stream", *TERMS[:-1], "9", "--quote")
    assert (dear.exit_code, "does not allow" in dear.stdout) == (3, True)
    assert run("stream", *TERMS[:-1], "9").exit_code == 3
    assert json.loads(run("budget", "-f", "json").stdout)["rules"]["sum"]["epsilon"]["spent"] == "0"
