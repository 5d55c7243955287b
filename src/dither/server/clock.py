"""A clock that does not tell: a paid answer leaves at a tick, after a random delay with a guarantee of its own.

    rows are read ─▶ T, when that ended ─▶ T + reach + K ─▶ the next tick ─▶ entry in the ledger ─▶ answer

K is two-sided geometric noise on a grid of 0.1 ms, given that |K| <= reach:

    Pr[K = k] proportional to a^|k|        a = exp(-epsilon / effect)        effect: in steps of the grid

Why it is private: let one person change the time of a question by at most `effect` steps. Then Pr[T + K = t] changes by the
factor e^epsilon at most where both are possible. At most `effect` values of K on one side have no counterpart, and `reach` is
so large that they have the probability `delta` at most. So the moment is (epsilon, delta)-differentially private; the next
tick, and everything that happens at it or after it, follows from the moment alone.
References: Geng, Ding, Guo and Kumar, AISTATS 2020 (the noise); Ratliff and Vadhan, 2024 (delays).

Why one at a time: `hold` lets one question read rows at once, in all worker processes, and the next one begins at or after the
tick of the one before. So the time that a question waits for another is told by ticks that were told already, and k questions
tell (k epsilon, k delta) together, whatever they are.

Relies on: `effect`, the most that one person adds to the time of a question of SIZE characters. `most_rows` in the catalog
bounds a person's rows, `longest` their cells, and `dither serve --check` measures. A longer question, and a list, count as
several, and the guarantee is as many times weaker.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb

from dither.catalog.values import amount
from dither.errors import ArgumentError, BudgetError, DitherError
from dither.exact import balls
from dither.exact.laws.geometric import TwoSided
from dither.exact.numbers import show
from dither.server.store import ServiceStore
from dither.text import did_you_mean

try:
    import fcntl
except ImportError:  # Windows has no such locks, and its servers one worker
    fcntl = None  # type: ignore[assignment]

STEPS = 10_000  # of the grid, in a second
SIZE = 1000  # characters: what counts as one question
MOST_PARTS = 100  # questions that one turn counts as: a request that counts as more is refused, so that others get theirs
MOST_SETS = 64  # grouping sets of one SELECT: a question with more is refused
_SETS = re.compile(r"\b(?:CUBE|ROLLUP|SETS)\b")
OFF = "off"
DEFAULTS: Mapping[str, str] = {"tick": "0.25 s", "epsilon": "0.1", "effect": "5 ms", "delta": "1e-6"}
_NAMES = (*DEFAULTS, "total")
_TIMES = ("tick", "effect")
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|ms)", re.ASCII)
_EXAMPLE = 'write clock = { tick = "0.25 s", epsilon = "0.1", effect = "5 ms" }, or clock = "off".'
_LONGEST = 3600 * STEPS


@dataclass(frozen=True)
class Delay:
    """The delay of an answer. `tick`, `effect` and `reach` are in steps of the grid.

    Guarantee: (epsilon, delta)-DP of the moment at which an answer leaves, between times at most `effect` steps apart.

    >>> delay = Delay(tick=2500, effect=50, epsilon=Fraction(1, 10), delta=Fraction(1, 10**6))
    >>> delay.reach, delay.seconds, delay.longest
    (5435, 0.6685, 1.337)
    """

    tick: int
    effect: int
    epsilon: Fraction
    delta: Fraction
    reach: int = field(init=False)
    noise: TwoSided = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", TwoSided(Fraction(self.effect) / self.epsilon))
        object.__setattr__(self, "reach", self._reach())

    def _reach(self) -> int:
        """Returns the smallest reach at which `effect` values of K on one side have the probability delta at most:

        a^(reach + 1) (e^epsilon - 1 + 2 delta) <= delta (1 + a)
        """
        with balls.working(192):
            share = balls.exp(self.epsilon) - 1 + 2 * balls.ball(self.delta)
            least = (share / (balls.ball(self.delta) * (1 + balls.exp(-1 / self.noise.scale)))).log()
            return max(math.ceil(balls.upper(least * balls.ball(self.noise.scale))) - 1, self.effect)

    def pmf(self, k: int) -> arb:
        """Returns Pr[reach + K = k]: the probability of a delay of k steps, before the tick."""
        if not 0 <= k <= 2 * self.reach:
            return arb(0)
        return self.noise.pmf(k - self.reach) / (1 - 2 * self.noise.more_than(self.reach))

    def draw(self) -> int:
        """Draws a delay, in steps: from 0 to twice the reach."""
        while abs(drawn := self.noise.draw()) > self.reach:
            pass
        return self.reach + drawn

    def leaves(self, end: int, drawn: int) -> int:
        """Returns the tick, in steps, at which what ended at `end` leaves."""
        return -(-(end + drawn) // self.tick) * self.tick

    def times(self, parts: int) -> Delay:
        """Returns the delay of what counts as several questions: noise of the same scale, with a longer reach."""
        return self if parts == 1 else Delay(self.tick, parts * self.effect, parts * self.epsilon, self.delta)

    @property
    def seconds(self) -> float:
        """The mean delay, with half a tick."""
        return (self.reach + self.tick / 2) / STEPS

    @property
    def longest(self) -> float:
        """The longest delay, in seconds."""
        return (2 * self.reach + self.tick) / STEPS


class Clock:
    """Holds back what was computed until its tick.

    `place`: a file that the worker processes lock in turn. `wait`: another way to wait, for tests.
    """

    def __init__(
        self,
        delay: Delay,
        total: Fraction | None,
        store: ServiceStore,
        place: Path,
        wait: Callable[[Delay], None] | None = None,
    ) -> None:
        self.delay = delay
        self.total = total
        self._store = store
        self._place = place
        place.touch(mode=0o600)  # here, where nothing is charged yet, if it cannot be made
        self.wait = wait_for_tick if wait is None else wait
        self._lock = threading.Lock()
        self._now = threading.local()  # of a thread: how many questions its question counts as, and whether it was held

    @contextmanager
    def question(self, parts: int) -> Iterator[None]:
        """Counts a question that is asked inside the block, before it is asked; not if it reads no rows."""
        self._count(parts, self.total)
        self._now.parts, self._now.held = parts, False
        try:
            yield
        finally:
            if not self._now.held:
                with suppress(DitherError):  # it stays counted, rather than the answer lost
                    self._count(-parts, None)
            self._now.parts = 1

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Around the reading of rows: lets one question in at once, and lets it go at its tick, failed or not."""
        delay = self.delay.times(getattr(self._now, "parts", 1))
        self._now.held = True
        with self._alone():
            try:
                yield
            finally:
                self.wait(delay)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock, open(self._place, "ab") if fcntl is not None else nullcontext() as file:
            if fcntl is not None and file is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # freed when the file is closed, or its process gone
            yield

    def _count(self, parts: int, total: Fraction | None) -> None:
        """Adds questions to the account of the clock. Refuses what would exceed the total."""
        with self._store.transaction(durable=True) as inside:
            row = inside.execute("SELECT epsilon, delta FROM clock").fetchone() or ("0", "0")
            epsilon, delta = Fraction(row[0]) + parts * self.delay.epsilon, Fraction(row[1])
            refused = total is not None and epsilon > total
            if not refused:
                delta += (1 if parts > 0 else -1) * self.delay.delta
                inside.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?)", (str(epsilon), str(delta)))
        if refused:
            raise BudgetError(
                "The times of answers have told as much as this server allows.",
                fix="ask for a stored answer; or the curator raises clock.total, or asks beside the data.",
            )

    def price(self, parts: int) -> dict[str, Any]:
        """Returns what the time of an answer tells, and what the delay costs."""
        delay = self.delay.times(parts)
        return {"epsilon": show(delay.epsilon), "delta": show(delay.delta), "seconds": delay.seconds}

    def spent(self) -> dict[str, Any]:
        """Returns what the times of all answers have told, and what the time of one more tells."""
        row = (self._store.read("SELECT epsilon, delta FROM clock") or [("0", "0")])[0]
        return {
            "each": self.price(1) | {"effect": self.delay.effect / STEPS, "tick": self.delay.tick / STEPS},
            "spent": {"epsilon": show(Fraction(row[0])), "delta": show(Fraction(row[1]))},
            "total": None if self.total is None else show(self.total),
        }


def wait_for_tick(delay: Delay) -> None:
    """Sleeps until the tick at which something that ended now may leave."""
    end = -(-time.monotonic_ns() * STEPS // 10**9)
    leaves = delay.leaves(end, delay.draw())
    while (left := Fraction(leaves, STEPS) - Fraction(time.monotonic_ns(), 10**9)) > 0:
        time.sleep(float(left))


def parts_of(*texts: str) -> int:
    """Returns how many questions these count as: one for each SIZE characters begun, of each, times its grouping sets.

    >>> parts_of("SELECT COUNT(*) FROM people", "x" * 1001)
    3
    """
    return sum(max(1, -(-len(text) // SIZE)) * sets_of(text) for text in texts)


def check_parts(parts: int) -> None:
    """Refuses what would hold the one turn of paid questions for too long."""
    if parts > MOST_PARTS:
        raise ArgumentError(
            f"By the clock this counts as {parts:,} questions, and one request has at most {MOST_PARTS}.",
            fix="ask in several requests, in shorter questions, or for fewer grouping sets.",
        )


def sets_of(text: str) -> int:
    """Returns a number that the grouping sets of a text do not exceed: one person adds to the time of each of them.

    It is counted by words and commas, never too small: a CUBE of k keys has k - 1 commas behind its GROUP, wherever they stand.

    >>> sets_of("SELECT a, COUNT(*) FROM t GROUP BY a, b"), sets_of("SELECT a, COUNT(*) FROM t GROUP BY CUBE (a, b)")
    (1, 4)
    """
    _, _, behind = text.upper().partition("GROUP")
    words, most = _SETS.findall(behind), 1
    parts = behind.count(",") + 1
    for word in words:
        each = 2 ** min(parts, 7) if word == "CUBE" else parts + 1 if word == "ROLLUP" else parts
        most = min(most * each, MOST_SETS)
    return max(1, len(words)) * most


# --- settings -----------------------------------------------------------------------------------------------------


def steps(text: Any) -> int | None:
    """Returns a time as steps of the grid; None if it is none.

    >>> steps("0.25 s"), steps("5 ms"), steps("0.03 ms"), steps("5")
    (2500, 50, None, None)
    """
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    count = Fraction(found[1]) * STEPS / (1000 if found[2] == "ms" else 1)
    return int(count) if count.denominator == 1 and 1 <= count <= _LONGEST else None


def clock_fault(value: Any) -> str | None:
    """Returns how to write the setting, if it is wrong."""
    if value == OFF:
        return None
    if not isinstance(value, dict):
        return _EXAMPLE
    for name, given in value.items():
        if name not in _NAMES:
            return f"{name} is not known. {did_you_mean(name, _NAMES)}Known are: {', '.join(_NAMES)}."
        if name in _TIMES and steps(given) is None:
            return f'write {name} = "{DEFAULTS[name]}", a whole number of 0.1 ms, at most an hour.'
        if name not in _TIMES and not 0 < (amount(given) or 0) <= (1 if name == "delta" else 10**6):
            return f'write {name} = "{DEFAULTS.get(name, "10")}", a number above 0.'
    delay = make_delay(value)
    return None if delay is not None else "the delay would be above an hour: write a larger epsilon, or a smaller effect."


def clock_value(value: Any) -> str | dict[str, str]:
    """Returns the setting as texts, which can be passed on."""
    if value == OFF:
        return OFF
    return {name: given if name in _TIMES else str(amount(given)) for name, given in value.items()}


def make_delay(value: Mapping[str, Any]) -> Delay | None:
    """Returns the delay of a setting that is right; None if it is above an hour."""
    given = {**DEFAULTS, **value}
    tick, effect = (steps(given[name]) or 1 for name in _TIMES)
    epsilon, delta = (amount(given[name]) or Fraction(1) for name in ("epsilon", "delta"))
    made = None
    with suppress(ValueError):  # a scale out of range
        made = Delay(tick, effect, epsilon, delta)
    return made if made is not None and made.longest <= 3600 else None
