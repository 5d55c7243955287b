"""Questions on a secret sample, in a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journey.hospital import COUNT, built, run


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return built(tmp_path)


def test_a_quote_says_what_is_charged_and_ask_charges_it(hospital: Path) -> None:
    quote = run("quote", COUNT, "--epsilon", "0.1", "--sample", "1/10")
    assert quote.exit_code == 0
    assert "noise at ε = 0.718673 on the sample, charged ε = 0.1" in " ".join(quote.stdout.split())
    done = run("ask", COUNT, "--epsilon", "0.1", "--sample", "1/10", "--format", "json")
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["sample"] == "1/10"
    assert answer["charged"] == {"epsilon": "1/10", "delta": "0"}
    assert "estimated from a secret sample" in " ".join(done.stderr.split())
    assert json.loads(run("ask", COUNT, "--epsilon", "0.1", "--sample", "0.1", "--format", "json").stdout)["replayed"]


def test_a_refusal_names_the_option(hospital: Path) -> None:
    done = run("ask", COUNT, "--margin", "50", "--sample", "1/10")
    assert done.exit_code != 0
    assert "ask without --sample" in done.stderr
    assert "Charged: nothing" in done.stderr
