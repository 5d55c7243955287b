"""Measures what the time of an answer tells about a person with 20,000 rows, through the socket, and what hiding it costs.

    python benchmarks/clock.py                 about five minutes
    python benchmarks/clock.py --count 40      quicker, with wider limits

Two servers with the same data but for that person; the attacker asks each the same paid questions and guesses by a threshold
that is chosen on the first half of the times and counted on the second. Use a quiet machine: the load is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from attacks.clock import HEAVY, advantage, at_once, both, limit, timer, two_servers, usual
from dither.server.clock import make_delay
from dither.server.effect import SAFETY, time_of_row

MODES: dict[str, tuple[Any, bool, int]] = {  # the setting; whether questions are tuned around ticks; others asked just before
    "no clock": ("off", False, 0),
    "ticks of 0.25 s, tuned": ({"epsilon": "100", "effect": "0.1 ms"}, True, 0),
    "the clock": ({}, False, 0),
    "the clock, tuned": ({}, True, 0),
    "the clock, third in the line": ({}, False, 2),
}


def measure(name: str, count: int) -> None:
    setting, tuned, before = MODES[name]
    delay = None if setting == "off" else make_delay(setting)
    tick = 1 if delay is None else delay.tick
    with tempfile.TemporaryDirectory() as folder, two_servers(Path(folder), clock=setting) as servers:
        untuned = [timer(each, tick, before=before) for each in servers]
        base = usual(untuned[1], 9, 5000)
        lead = max(base - (delay.seconds if delay else 0.0), 0.001) if tuned else None
        sides = [timer(each, tick, lead, before) for each in servers]
        times = (both if delay is None else at_once)(sides[0], sides[1], count)
    gained, lower = advantage(*times, 0.01)
    stated = "" if delay is None or "ticks" in name else f"; stated at most {limit(delay.times(before + 1)):.3f}"
    middle = [statistics.median(side) for side in times]
    print(
        f"{name:30} {middle[0]:.3f} s with, {middle[1]:.3f} s without; advantage {gained:+.2f}, at least {lower:.2f}{stated}",
        flush=True,
    )


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--count", type=int, default=120)
    given.add_argument("--modes", nargs="*", default=list(MODES))
    chosen = given.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; one person with {HEAVY:,} rows", flush=True)
    for longest in (0, 64):
        row = time_of_row(longest)
        heavy = HEAVY * row * SAFETY / 1e6
        print(f"a row with texts of {longest} characters: {row:,.0f} ns; {HEAVY:,} rows x {SAFETY}: {heavy:.1f} ms", flush=True)
    for name in chosen.modes:
        measure(name, chosen.count)


if __name__ == "__main__":
    main()
