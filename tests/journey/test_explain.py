"""`dither explain`: every bound it prints is at least the truth (and at most a little more), and the pictures are drawn."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import dither as dt
from dither import plots
from dither.cli import explain
from journey.hospital import run

EPSILONS = ("0.01", "0.1", "1/3", "0.5", "1", "3", "10")


def said(*words: str) -> str:
    done = run("explain", *words)
    assert done.exit_code == 0, done.stderr
    return " ".join(done.stdout.replace("\u00a0", " ").split())


def close_above(shown: str, truth: float) -> bool:
    return truth <= float(shown) * (1 + 1e-9) and float(shown) <= truth * 1.0011


def close_below(shown: str, truth: float) -> bool:
    return truth >= float(shown) * (1 - 1e-9) and float(shown) >= truth * 0.9989


def belief(before: float, shift: float) -> float:
    return 1 / (1 + (1 - before) / before * math.exp(-shift))


def hit(alarms: float, eps: float, delta: float = 0.0) -> float:
    return min(math.exp(eps) * alarms + delta, 1 - math.exp(-eps) * max(1 - alarms - delta, 0), 1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_beliefs_and_tests_are_bounded_from_the_right_side(epsilon: str) -> None:
    text, eps = said("--epsilon", epsilon), float(dt.Pure(epsilon).epsilon())
    for before in (1, 10, 50, 90):
        found = re.search(rf" {before} % ([\d.e-]+) … ([\d.e-]+) % ([\d.e-]+) … ([\d.e-]+) % ([\d.e-]+) … ([\d.e-]+) % ", text)
        assert found, before
        for place, steps in ((1, 1), (3, 2), (5, 4)):  # one person; a value is two steps away; four people are four
            assert close_below(found[place], 100 * belief(before / 100, -steps * eps))
            assert close_above(found[place + 1], 100 * belief(before / 100, steps * eps))
    for alarms in (0.1, 1, 5, 10, 50):
        found = re.search(rf" {alarms} % at most ([\d.]+) % at most ([\d.]+) % ", text)
        assert found, alarms
        assert close_above(found[1], 100 * hit(alarms / 100, eps))
        assert close_above(found[2], 100 * hit(alarms / 100, 4 * eps))


def test_that_check_can_fail() -> None:
    assert not close_above("62.24", 100 * belief(0.5, 0.5))
    assert not close_below("37.76", 100 * belief(0.5, -0.5))
    assert not close_above("63", 100 * belief(0.5, 0.5))


def test_a_delta_is_said_and_no_belief_is_bounded_with_it() -> None:
    text = said("--epsilon", "0.5", "--delta", "1e-6")
    assert "ε = 0.5, δ = 1e-6" in text
    assert "…" not in text  # no table of beliefs: a delta bounds how often they move further, not how far
    found = re.search(r" 5 % at most ([\d.]+) % at most ([\d.]+) % ", text)
    assert found
    together = dt.Approx("0.5", "1e-6").group(4).pair()
    assert close_above(found[1], 100 * hit(0.05, 0.5, 1e-6))
    assert close_above(found[2], 100 * hit(0.05, *map(float, together)))


def test_the_error_of_a_count_is_the_mechanisms_own() -> None:
    noise = dt.Geometric(epsilon="0.5", sensitivity=1)
    assert f"{noise.margin('0.95')} in 95 % of all cases, {noise.margin('0.99')} in 99 %" in said("--epsilon", "0.5")


def test_a_huge_price_is_said_to_protect_nobody() -> None:
    assert "protects nobody" in said("--epsilon", "1000")


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "20"])
def test_the_picture_is_drawn(epsilon: str, tmp_path: Path) -> None:
    picture = tmp_path / "explain.png"
    done = run("explain", "--epsilon", epsilon, "--plot", str(picture))
    assert done.exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "picture" in done.stderr


def test_what_cannot_be_drawn_is_refused_before_anything_is_said(tmp_path: Path) -> None:
    for words in (("1e-9", "x.png"), ("21", "x.png"), ("1", "nowhere/x.png"), ("1", "x.doc")):
        done = run("explain", "--epsilon", words[0], "--plot", str(tmp_path / words[1]))
        assert (done.exit_code, done.stdout) == (2, "")


def test_the_curves_of_the_picture_keep_to_the_price() -> None:
    for eps in (0.01, 0.5, 3.0):
        x = plots._reach(eps)
        for law in (plots._chance, plots._at_least):
            without, taking = law(x, 0, eps), law(x, 1, eps)
            assert (taking <= without * math.exp(eps) * (1 + 1e-12)).all()
            assert not (taking <= without * math.exp(0.9 * eps)).all()  # the twin: a smaller price would not hold


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "20"])
def test_the_picture_draws_the_law_that_the_words_speak_of(epsilon: str) -> None:
    noise, eps = dt.Geometric(epsilon=epsilon, sensitivity=1), float(dt.Pure(epsilon).epsilon())
    law, x = noise.law(0), np.arange(-5.0, 6.0)
    for k, chance, reached in zip(x, plots._chance(x, 0, eps), plots._at_least(x, 0, eps), strict=True):
        assert math.isclose(chance, float(law.probability(int(k))), rel_tol=1e-9)
        assert math.isclose(reached - plots._at_least(np.array([k + 1]), 0, eps)[0], chance, abs_tol=1e-12)
    for sure in ("0.5", "0.95", "0.99"):
        assert plots._margins(np.array([eps]), float(sure))[0] == noise.margin(sure)


@pytest.mark.slow
def test_the_picture_states_the_margins_of_the_words(tmp_path: Path) -> None:
    words, picture = said("--epsilon", "1", "--plot", str(tmp_path / "explain.svg")), (tmp_path / "explain.svg")
    assert "at most 1 half of the time, 3 in 95 % of all cases, 4 in 99 %" in words
    drawn = picture.read_text(encoding="utf-8")
    for text in ("50 % of answers, here ± 1", "95 % of answers, here ± 3", "99 % of answers, here ± 4"):
        assert f"<!-- {text} -->" in drawn


@pytest.mark.parametrize(("value", "shown"), [("1/3", "0.3334"), ("1/2", "0.5"), ("1e-6", "1e-6"), ("1.23400000001", "1.235")])
def test_prices_are_shown_as_they_are_or_rounded_up(value: str, shown: str) -> None:
    assert explain._price(dt.Pure(value).epsilon()) == shown


@pytest.mark.parametrize("epsilon", [*EPSILONS, "20"])
def test_the_picture_has_the_number_of_the_words(epsilon: str) -> None:
    shown = plots.factor_words(float(dt.Pure(epsilon).epsilon()))
    assert f" = {shown}." in said("--epsilon", epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("answer", [100, 128, 129, 131])
def test_given_an_answer_beliefs_are_those_of_the_exact_law(epsilon: str, answer: int) -> None:
    text, eps = said("--epsilon", epsilon, "--answer", str(answer), "--others", "128"), float(dt.Pure(epsilon).epsilon())
    told = text[text.index("Given this answer") :]
    assert f"came out as {answer}. It is 128 without you and 129 with you" in told
    shift = eps * (abs(answer - 128) - abs(answer - 129))
    for before in (1, 10, 50, 90):
        found = re.search(rf" {before} % ([\d.e-]+) % ([\d.e-]+) … ([\d.e-]+) %", told)
        assert found, before
        assert close_above(found[1], 100 * belief(before / 100, shift))
        assert close_below(found[2], 100 * belief(before / 100, -eps))
        assert close_above(found[3], 100 * belief(before / 100, eps))


def test_an_answer_alone_is_refused() -> None:
    for words in (["--answer", "131"], ["--others", "128"], ["--answer", str(10**400), "--others", "128"]):
        done = run("explain", "--epsilon", "1", *words)
        assert done.exit_code == 2
        assert "Fix" in done.stderr
