"""`dither budget`: what is left for everyone together and of one analyst's quota, by every rule that could admit a question."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import dither as dt
from dither.privacy.filters import Caps, Charge, Sums
from dither.standing import Standing
from journey.hospital import BY_WARD, COUNT, built, run


def test_a_quota_is_shown_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    assert run("ask", COUNT, "-e", "0.2", "--analyst", "ana").exit_code == 0
    refused = run("ask", BY_WARD, "-e", "0.2", "--analyst", "ana")
    assert refused.exit_code == 3
    assert "quota of ana" in refused.stderr
    assert run("ask", BY_WARD, "-e", "0.2", "--analyst", "ben").exit_code == 0
    assert "ana's quota" in run("budget", "--analyst", "ana").stdout
    found = json.loads(run("budget", "--analyst", "ana", "--format", "json").stdout)
    assert found["analyst"]["epsilon"] == {"total": "1/4", "spent": "1/5", "left": "1/20"}


def test_python_sees_the_quota_that_the_shell_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, 'epsilon = 1.0\nper_analyst = 0.25\nanalysts = ["ana", "ben", "eve"]')
    with dt.open("catalog.toml", analyst="ana") as survey:
        assert str(survey.quota("ben")) == "total ε = 0.25; spent ε = 0; left ε = 0.25"  # before the first question
        survey.ask(COUNT, "0.2")
        survey.ask(COUNT, "0.2", analyst="ben")  # free to the total, not to his quota
        for found in (survey.quota(), survey.quota("ana"), survey.quota("ben")):
            assert (found.total.epsilon, found.spent.epsilon, found.left.epsilon) == tuple(
                map(Fraction, ("1/4", "1/5", "1/20"))
            )
        assert survey.quota("eve").spent.epsilon == 0
        assert survey.budget.spent.epsilon == Fraction("1/5")
        with pytest.raises(dt.ArgumentError, match="zoe is none of the catalog's analysts"):
            survey.quota("zoe")
    shown = json.loads(run("budget", "--analyst", "ben", "--format", "json").stdout)["analyst"]["epsilon"]
    assert shown == {"total": "1/4", "spent": "1/5", "left": "1/20"}


def test_without_quotas_there_is_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    with dt.open("catalog.toml") as survey:
        survey.ask(COUNT, "0.2", analyst="ana")
        assert survey.quota("ben") == survey.quota() == survey.budget


def test_with_a_delta_both_sums_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\ndelta = 1e-6")
    assert run("ask", BY_WARD, "-e", "0.1").exit_code == 0
    shown = run("budget").stdout
    assert "or by ρ" in shown
    assert "by ε" in shown
    assert "ε = 0.1 of 1" in shown
    parts = list(csv.DictReader(io.StringIO(run("budget", "--format", "csv").stdout)))
    assert [(part["rule"], part["part"]) for part in parts] == [
        ("sum", "ε"),
        ("sum", "δ"),
        ("zcdp", "ρ"),
        ("zcdp", "δ of keys"),
    ]
    assert {part["analyst"] for part in parts} == {""}
    assert run("verify").exit_code == 0


def test_with_a_delta_a_quota_is_shown_by_the_rule_that_admits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\ndelta = 1e-6\nper_analyst = 0.25")
    assert run("ask", BY_WARD, "-e", "0.1", "--analyst", "ana").exit_code == 0
    shown = run("budget", "--analyst", "ana").stdout.splitlines()
    assert [line.split("  ")[0] for line in shown] == ["by ε", "or by ρ", "ana's quota by ε", "or by ρ"]
    assert "ε = 0.1 of 0.25 spent, 0.15 left" in shown[2]
    caps = Caps.of(Fraction(1), Fraction("1e-6")).share(Fraction("0.25"))
    found = json.loads(run("budget", "--analyst", "ana", "--format", "json").stdout)["analyst"]["rules"]
    assert {rule: {part: Fraction(sum_["total"]) for part, sum_ in parts.items()} for rule, parts in found.items()} == {
        "sum": {"epsilon": caps.epsilon, "delta": caps.delta_sums},
        "zcdp": {"rho": caps.rho_max, "delta_of_keys": caps.delta_keys},
    }
    assert all(
        Fraction(s["spent"]) + Fraction(s["left"]) == Fraction(s["total"]) for rule in found.values() for s in rule.values()
    )
    rows = list(csv.DictReader(io.StringIO(run("budget", "--analyst", "ana", "--format", "csv").stdout)))
    assert [row["analyst"] for row in rows] == [""] * 4 + ["ana"] * 4
    assert {row["part"]: row["left"] for row in rows[4:]}["ρ"] == found["zcdp"]["rho"]["left"]


def test_what_the_quota_shows_as_left_is_what_it_admits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    assert run("ask", COUNT, "-e", "0.2", "--analyst", "ana").exit_code == 0
    left = Fraction(json.loads(run("budget", "-a", "ana", "-f", "json").stdout)["analyst"]["rules"]["sum"]["epsilon"]["left"])
    assert run("ask", BY_WARD, "-e", str(left + Fraction(1, 10**9)), "--analyst", "ana").exit_code == 3
    assert run("ask", BY_WARD, "-e", str(left), "--analyst", "ana").exit_code == 0


def test_a_quota_is_there_before_the_first_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    assert "ana's quota" in run("budget", "--analyst", "ana").stdout
    assert "quota" not in run("budget").stdout


def test_who_asks_without_a_name_is_shown_the_quota_of_all_who_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    assert "anyone's quota" in run("ask", COUNT, "-e", "0.1").stderr


def test_a_budget_without_quotas_says_so_to_who_asks_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, 'epsilon = 1.0\nanalysts = ["ana"]')
    assert "no quotas" in run("budget", "--analyst", "ana").stderr
    stranger = run("budget", "--analyst", "eve")
    assert (stranger.exit_code, stranger.stdout) == (2, "")
    assert "eve is none of the catalog's analysts" in stranger.stderr


def test_a_long_name_leaves_room_for_its_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path, "epsilon = 1.0\nper_analyst = 0.25")
    shown = run("budget", "--analyst", "a" * 200).stdout.splitlines()
    assert len(shown) == 2
    assert "…'s quota" in shown[1]


def test_a_ledger_that_lost_its_catalog_is_not_an_unspent_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    assert run("ask", COUNT, "-e", "0.1").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "catalog.ledger")) as database, database:
        database.execute("DELETE FROM state WHERE key = 'catalog'")
    done = run("budget")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "dither verify" in done.stderr


@pytest.mark.parametrize("spent", ["13034.5", "1/3", "0.1", "999999.9999995"])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_what_is_left_has_one_spelling_and_is_rounded_down(spent: str, delta: str | int) -> None:
    caps, sums = Caps.of(10**6, Fraction(delta)), Sums().plus(Charge(Fraction(spent), Fraction(0), Fraction(spent)))
    standing = Standing(caps, sums)
    told = standing.remaining.removeprefix("left ε = ").split(",")[0]
    assert standing.lines[0].parts[0].words().endswith(f", {told} left")
    assert 0 <= 10**6 - Fraction(spent) - Fraction(told) < 1


@pytest.mark.parametrize("sure", ["0.999999999999999999", "0.9999999"])
def test_nothing_below_it_is_said_at_100_percent_confidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sure: str) -> None:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    for command in ("quote", "ask"):
        done = run(command, COUNT, "-e", "0.1", "--confidence", sure)
        text = " ".join((done.stdout + done.stderr).split())
        assert (done.exit_code, "99.9999 % confidence" in text, "100 %" in text) == (0, True, False)
