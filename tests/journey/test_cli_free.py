"""Free answers in a shell: what a quote offers, --free takes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from journey.hospital import BY_WARD, COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def spent() -> Fraction:
    return Fraction(json.loads(run("budget", "--format", "json").stdout)["rules"]["sum"]["epsilon"]["spent"])


def test_a_quote_offers_a_free_answer_and_ask_takes_it(hospital: Path) -> None:
    assert "free from earlier answers" not in run("quote", COUNT, "--epsilon", "0.1").stdout
    groups = json.loads(run("ask", BY_WARD, "--epsilon", "0.1", "--format", "json").stdout)
    before = spent()
    assert "free from earlier answers" in run("quote", COUNT, "--epsilon", "0.1").stdout
    done = run("ask", COUNT, "--free", "--format", "json", "--receipt", "total.json")
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["rows"] == [[sum(row[1] for row in groups["rows"])]]
    assert answer["made_of"] == [groups["receipt"]["body"]["entry"]["number"]]
    assert answer["charged"] == {"epsilon": "0", "delta": "0"}
    assert spent() == before
    assert run("verify", "--receipt", "total.json").exit_code == 0


def test_a_refusal_says_what_to_do(hospital: Path) -> None:
    done = run("ask", COUNT, "--free")
    assert done.exit_code != 0
    assert "No earlier answer gives this" in done.stderr
    assert "--epsilon 0.1" in done.stderr
    assert "Charged: nothing" in done.stderr


def test_free_and_a_price_exclude_each_other(hospital: Path) -> None:
    done = run("ask", COUNT, "--free", "--epsilon", "0.1")
    assert "leave --epsilon out, or --free" in done.stderr
