"""Running time as an attack, against the clock: with time that the test sets, and (long) through sockets with 20,000 rows.

The exact law is in server/test_clock_law.py; what can be seen before the tick in server/test_clock.py.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from attacks.clock import (
    NOTE,
    WITHOUT_NOISE,
    Virtual,
    advantage,
    at_once,
    both,
    costliest,
    costly,
    limit,
    shift,
    timer,
    two_servers,
    usual,
)
from dither.exact import replay
from dither.server import clock
from dither.server.clock import STEPS, Delay

DELAY = Delay(tick=2500, effect=50, epsilon=Fraction(1, 10), delta=Fraction(1, 10**6))
TICKS_ONLY = Delay(tick=2500, effect=1, epsilon=Fraction(100), delta=Fraction(1, 10**6))
COSTLY = {"tick": "0.1 s", "epsilon": "1", "effect": "2 s", "delta": "0.01"}
IN_LINE = COSTLY | {"epsilon": "0.5"}
PATIENT: dict[str, Any] = {"note": NOTE, "stop": 60.0, "wait": 170.0}
ERROR = 1e-10  # of the 1e-9 that all sampled tests share; draws are replayed, so a run repeats


def guessed(monkeypatch: pytest.MonkeyPatch, delay: Delay, lead: float, waits: int = 0, count: int = 2000) -> float:
    """Returns the lower limit of the advantage for a question sent `lead` seconds before a tick, after `waits` others.

    A question takes about 20 ms, and one person adds 5 ms to each.
    """
    time, chance = Virtual(), random.Random(1)
    monkeypatch.setattr(clock, "time", time)
    found: dict[bool, list[float]] = {True: [], False: []}
    tick = delay.tick * 10**9 // STEPS
    with replay.stream(b"attack"):
        for number in range(2 * count):
            present = number % 2 == 0
            time.now += -(time.now + round(lead * 1e9)) % tick
            begun = time.now
            for _ in range(waits + 1):  # one at a time: the next begins at the tick of the one before
                time.now += round(1e6 * (20 + chance.expovariate(2) + 5 * present))
                clock.wait_for_tick(delay)
            found[present].append(time.now - begun)
    return advantage(found[True], found[False], ERROR)[1]


@pytest.mark.parametrize("lead", [0.02, 0.0225, 0.1, 0.2])
def test_a_question_tuned_around_a_tick_gains_no_more_than_stated(monkeypatch: pytest.MonkeyPatch, lead: float) -> None:
    assert guessed(monkeypatch, DELAY, lead) <= limit(DELAY)


def test_that_check_notices_ticks_without_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guessed(monkeypatch, TICKS_ONLY, 0.0235) > 0.5 > limit(DELAY)


def test_that_check_notices_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = Delay(tick=10, effect=50, epsilon=Fraction(2), delta=Fraction(1, 10**6))
    assert guessed(monkeypatch, weak, 0.02) > limit(DELAY)


def test_a_place_in_the_line_tells_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    several = Delay(DELAY.tick, 4 * DELAY.effect, 4 * DELAY.epsilon, DELAY.delta)
    assert guessed(monkeypatch, DELAY, 0.0225, waits=3, count=500) <= limit(several)


@pytest.mark.long
@pytest.mark.parametrize("before", [0, 2])
def test_20000_rows_gain_no_more_than_stated_through_a_socket(tmp_path: Path, before: int) -> None:
    rule = {"tick": "0.1 s", "epsilon": "0.5", "effect": "20 ms", "delta": "1e-3"}
    delay = clock.make_delay(rule)
    assert delay is not None
    with two_servers(tmp_path, clock=rule) as servers:
        base = usual(timer(servers[1], delay.tick), 9, 5000) - delay.seconds
        sides = (timer(each, delay.tick, lead=max(base, 0.001), before=before) for each in servers)
        gained = advantage(*at_once(*sides, 200 // (before + 1)), 0.01)
    assert gained[1] <= limit(delay.times(before + 1))


@pytest.mark.long
def test_that_the_same_attack_finds_ticks_alone(tmp_path: Path) -> None:
    """With two million rows, so that a busy machine does not hide them."""
    rule = {"tick": "20 ms", "epsilon": "100", "effect": "0.1 ms"}
    with two_servers(tmp_path, rows=2_000_000, clock=rule) as servers:
        found = both(timer(servers[0], 200), timer(servers[1], 200), 60)
    assert advantage(*found, 0.01)[1] > 0.25


# --- a question whose time is mostly that of one person: detected without the noise, hidden with it -----------------------


def made(rule: dict[str, str]) -> Delay:
    found = clock.make_delay(rule)
    assert found is not None
    return found


def without_noise(folder: Path, rule: dict[str, str], count: int, **how: Any) -> tuple[list[float], list[float]]:
    """Returns the times of the same questions on servers whose delay is always the least: ticks without noise."""
    with two_servers(folder, clock=rule, program=WITHOUT_NOISE, **PATIENT) as servers:
        return both(*(timer(each, made(rule).tick, **how) for each in servers), count)


def with_noise(folder: Path, rule: dict[str, str], count: int, parts: int, **how: Any) -> None:
    """Checks that times tell no more than stated. Where the person adds more than `effect`, nothing is stated."""
    delay = made(rule)
    (folder / "first").mkdir()
    added = shift(without_noise(folder / "first", rule, 12, **how))
    if added > parts * delay.effect / clock.STEPS:
        pytest.skip(f"the machine is too busy: the person adds {added:.1f} s")
    with two_servers(folder, clock=rule, **PATIENT) as servers:
        base = usual(timer(servers[1], delay.tick, **how), 2, 5000) - parts * delay.seconds
        sides = (timer(each, delay.tick, lead=max(base, 0.001), **how) for each in servers)
        gained = advantage(*at_once(*sides, count), 0.01)
    stated = limit(delay.times(parts))
    print(f"advantage {gained[0]:+.2f}, at least {gained[1]:.2f}; stated at most {stated:.2f}; the person adds {added:.2f} s")
    assert gained[1] <= stated


@pytest.mark.long
def test_a_costly_question_tuned_around_ticks_gains_no_more_than_stated(tmp_path: Path) -> None:
    with_noise(tmp_path, COSTLY, 50, 1, question=costly)


@pytest.mark.long
def test_that_the_same_attack_finds_a_server_without_the_noise(tmp_path: Path) -> None:
    gained = advantage(*without_noise(tmp_path, COSTLY, 100, question=costly), 0.01)
    print(f"without the noise: advantage {gained[0]:+.2f}, at least {gained[1]:.2f}")
    assert gained[1] > limit(made(COSTLY))


@pytest.mark.long
def test_waiting_for_another_analysts_question_tells_no_more_than_stated(tmp_path: Path) -> None:
    """A cheap question that waits in the line behind a costly one of somebody else."""
    with_noise(tmp_path, IN_LINE, 40, 2, before=1, earlier=costliest)


@pytest.mark.long
def test_that_waiting_tells_it_without_the_noise(tmp_path: Path) -> None:
    gained = advantage(*without_noise(tmp_path, IN_LINE, 100, before=1, earlier=costliest), 0.01)
    print(f"in the line, without the noise: advantage {gained[0]:+.2f}, at least {gained[1]:.2f}")
    assert gained[1] > limit(made(IN_LINE).times(2))
