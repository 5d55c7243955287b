"""The law of the clock's delay, point by point: its ε_t and δ_t for every change of time that is allowed, and the ticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import pytest
import sqlglot
from flint import arb

from dither.exact import balls, replay
from dither.exact.laws.geometric import TwoSided
from dither.query.sql.sets import MOST_SETS, expand, has_sets
from dither.server import clock
from dither.server.clock import Delay, make_delay, parts_of

Pmf = list[arb]
SMALL = Delay(tick=25, effect=5, epsilon=Fraction(1, 2), delta=Fraction(1, 10**4))
USUAL = make_delay({})
assert USUAL is not None


def pmf(delay: Delay) -> Pmf:
    return [delay.pmf(k) for k in range(2 * delay.reach + 1)]


def beyond(p: Pmf, q: Pmf, epsilon: Fraction) -> Fraction:
    """Returns at least the delta at which p is within e^epsilon of q: the sum of p - e^epsilon q where that is above 0."""
    factor, found = balls.exp(epsilon), Fraction(0)
    for left, right in zip(p, q, strict=True):
        found += max(Fraction(0), balls.upper(left - factor * right))
    return found


def moved(p: Pmf, by: int, length: int) -> Pmf:
    return [arb(0)] * by + p + [arb(0)] * (length - len(p) - by)


def on_ticks(p: Pmf, start: int, delay: Delay) -> Pmf:
    """Returns the law of the tick, if rows were read at `start`."""
    ticks = [arb(0)] * (delay.leaves(start + 2 * delay.effect, len(p)) // delay.tick + 1)
    for k, chance in enumerate(p):
        ticks[delay.leaves(start, k) // delay.tick] += chance
    return ticks


def worst(delay: Delay, shifts: list[int]) -> Fraction:
    """Returns the largest delta over these changes of the time, in both directions."""
    p = pmf(delay)
    length = len(p) + max(shifts)
    pairs = [(moved(p, 0, length), moved(p, by, length)) for by in shifts]
    return max(max(beyond(a, b, delay.epsilon), beyond(b, a, delay.epsilon)) for a, b in pairs)


@pytest.mark.parametrize("delay", [SMALL, USUAL, SMALL.times(3), Delay(10, 1, Fraction(1, 10), Fraction(1, 10**6))])
def test_the_delay_keeps_its_epsilon_and_delta_for_every_change_of_time(delay: Delay) -> None:
    with balls.working(192):
        shifts = list(range(1, delay.effect + 1)) if delay.effect <= 15 else [1, delay.effect // 2, delay.effect]
        assert worst(delay, shifts) <= delay.delta
        assert balls.upper(abs(sum(pmf(delay), arb(0)) - 1)) < Fraction(1, 2**150)


@dataclass(frozen=True)
class Broken(Delay):
    """A delay with less noise, or a shorter reach, than it says."""

    scale: Fraction = Fraction(1)
    shorter: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise", TwoSided(self.noise.scale * self.scale))
        object.__setattr__(self, "reach", self.reach - self.shorter)


BROKEN: dict[str, Callable[[], Delay]] = {
    "scale": lambda: Broken(25, 5, Fraction(1, 2), Fraction(1, 10**4), scale=Fraction(9, 10)),
    "reach": lambda: Broken(25, 5, Fraction(1, 2), Fraction(1, 10**4), shorter=1),
}


@pytest.mark.parametrize("which", BROKEN)
def test_that_check_notices_less_noise_or_a_shorter_reach(which: str) -> None:
    with balls.working(192):
        assert worst(BROKEN[which](), list(range(1, 6))) > SMALL.delta


def test_a_change_beyond_the_effect_is_not_covered() -> None:
    with balls.working(192):
        assert worst(SMALL, [SMALL.effect + 1]) > SMALL.delta  # so the effect is not larger than it says


def test_ticks_follow_from_the_moment_alone() -> None:
    with balls.working(192):
        p = pmf(SMALL)
        for start in range(SMALL.tick):  # every phase: nobody can tune a question around a tick
            for by in (1, SMALL.effect):
                a, b = on_ticks(p, start, SMALL), on_ticks(p, start + by, SMALL)
                length = max(len(a), len(b))
                a, b = moved(a, 0, length), moved(b, 0, length)
                assert max(beyond(a, b, SMALL.epsilon), beyond(b, a, SMALL.epsilon)) <= SMALL.delta


def test_that_ticks_without_the_delay_tell() -> None:
    certain = [arb(1)]
    a, b = on_ticks(certain, SMALL.tick - 1, SMALL), on_ticks(certain, SMALL.tick + 4, SMALL)
    assert a != b
    assert beyond(moved(b, 0, max(len(a), len(b))), moved(a, 0, max(len(a), len(b))), SMALL.epsilon) == 1


def test_draws_are_the_noise_within_its_reach() -> None:
    short = Delay(tick=10, effect=1, epsilon=Fraction(2), delta=Fraction(1, 10))  # every third draw is beyond it
    with replay.stream(b"clock"):
        drawn = [short.draw() for _ in range(200)]
    with replay.stream(b"clock"):
        noise = iter(short.noise.draw, None)
        within = list(islice((short.reach + k for k in noise if abs(k) <= short.reach), 200))
    assert drawn == within
    assert {min(drawn), max(drawn)} == {0, 2 * short.reach}


def test_a_list_and_a_long_question_count_as_several() -> None:
    assert parts_of("SELECT 1") == 1
    assert parts_of("x" * 1000, "y" * 1001) == 3
    several = SMALL.times(3)
    assert (several.epsilon, several.effect, several.noise) == (3 * SMALL.epsilon, 3 * SMALL.effect, SMALL.noise)


@pytest.mark.parametrize(
    "keys",
    [
        "a, b, c",
        "CUBE (a, b, c)",
        "a, CUBE (b, c)",
        "cube (a), /* , */ Rollup (b, c)",
        "ROLLUP (a, b, c, d)",
        "GROUPING SETS ((a, b), (a), ())",
        "GROUPING\n  SETS (CUBE (a, b), ROLLUP (c, d), ())",
        "GROUPING SETS (a, b), GROUPING SETS (c, d)",
        "CUBE (a, b, c, d, e, f)",
        "CUBE ((a, b), (c, d))",
        "CUBE (a, ')', b, c)",
    ],
)
def test_a_question_counts_for_each_of_its_grouping_sets(keys: str) -> None:
    text = f"SELECT COUNT(*) FROM t GROUP BY {keys}"
    group = sqlglot.parse_one(text, dialect="duckdb").args["group"]
    items = [each for kind in ("expressions", "cube", "rollup", "grouping_sets") for each in group.args.get(kind) or ()]
    sets = len(expand(items, None))  # type: ignore[arg-type]
    assert sets <= parts_of(text) <= 64 * 3
    if has_sets(items):
        assert parts_of(f"{text} UNION ALL {text}") >= 2 * sets
        assert sets > -(-len(text) // 1000)  # twin: by its length alone it counts too little


def test_no_question_has_more_grouping_sets_than_are_counted() -> None:
    assert clock.MOST_SETS == MOST_SETS
