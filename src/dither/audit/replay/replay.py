"""Replay: a whole pipeline on D and on D′ with the same recorded randomness, compared in everything that can be seen.

    from dither.audit.replay import replay
    print(replay(my_mean, epsilon=1, data="numbers", noise="rng"))

Found with certainty: what differs whatever the noise (error, message, warning, type, shape, keys, holes, exact numbers), and
losses that follow from the draws' laws: sensitivity, scales that depend on data, noise used twice. Datasets are made up,
never read. A violation is made smaller before it is told.
"""

from __future__ import annotations

import copy
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dither.audit.replay.adapters import NAMED, Adapter
from dither.audit.replay.judge import HIDDEN, Judgement, judge
from dither.audit.replay.observe import Found, Side, confirmed
from dither.audit.replay.pairs import ADD_REMOVE, Given, Records, Source, source
from dither.audit.verdict import NOT_FOUND, VIOLATES, Verdict
from dither.errors import ArgumentError, Fix
from dither.exact.numbers import rational

OVER = "the time was over before the pair had been compared"
PATIENCE = 400  # trials to make a counterexample smaller
BLIND = (
    "Replay sees only the datasets it tried, and of the noise only what the adapter records. It takes draws for exact real or "
    "whole numbers: the low bits of floating-point noise, bad generators and run time are not seen. Outputs that hide their "
    "draws, or decisions in which noise takes part, are the black box's business."
)


class _LateError(BaseException):
    """Time is over. Not an Exception, because those of the audited code are outputs."""


@dataclass
class _Session:
    """One audit under way: the claim, the clock and what has been learnt."""

    function: Callable[..., Any]
    adapter: Adapter
    claim: tuple[Fraction, Fraction]
    seed: int
    until: float
    seconds: float = 0.0
    tried: int = 0
    clear: int = 0  # pairs about which everything could be said
    largest: float = 0.0
    moved: float = 0.0
    at: tuple[Any, Any] | None = None
    notes: Counter[str] = field(default_factory=Counter)

    def late(self) -> bool:
        return time.monotonic() > self.until

    def judge(self, make: Callable[[], tuple[Any, Any]], beyond: float = 0.0) -> Judgement:
        one, two = self._sides(make)
        try:
            return judge(one, two, float(self.claim[0]), float(self.claim[1]), self.seed, beyond)
        except _LateError:
            return Judgement(notes=[OVER])

    def sure(self, make: Callable[[], tuple[Any, Any]], found: Found) -> bool:
        """In time of its own: a find that is dropped because the clock ran out would be a miss."""
        sides = [replace(side, function=self.function) for side in self._sides(make)]
        return confirmed(sides[0], sides[1], found, self.seed, float(self.claim[0]))

    def _sides(self, make: Callable[[], tuple[Any, Any]]) -> tuple[Side, Side]:
        return Side(self._in_time, self.adapter, lambda: make()[0]), Side(self._in_time, self.adapter, lambda: make()[1])

    def _in_time(self, *args: Any, **kwargs: Any) -> Any:
        """A pair takes a hundred runs or more, and slow code must not take all of them. The first pair has as long again."""
        if time.monotonic() > self.until + (0 if self.tried else self.seconds):
            raise _LateError
        return self.function(*args, **kwargs)

    def learn(self, result: Judgement, make: Callable[[], tuple[Any, Any]]) -> None:
        if OVER in result.notes:
            return
        self.tried += 1
        self.clear += not result.notes
        self.moved = max(self.moved, result.moved)
        self.notes.update(set(result.notes))
        if self.at is None or result.epsilon > self.largest:
            self.largest, self.at = max(self.largest, result.epsilon), make()


def replay(
    function: Callable[..., Any],
    epsilon: Any,
    delta: Any = 0,
    data: Any = "numbers",
    noise: str | Adapter = "plain",
    *,
    neighbours: str = ADD_REMOVE,
    ordered: bool = False,
    unit: str = "unit",
    examples: int = 200,
    seed: int = 0,
    seconds: float = 30.0,
    name: str = "",
) -> Verdict:
    """Audits a callable against (epsilon, delta) on made-up neighbours.

    `data`: a name ("numbers", "array", "integers", "words", "counts", "rows", "table", "answers"), a source of pairs, a list of
    pairs (D, D′), a function of a random.Random that makes one, or a hypothesis strategy of pairs. `neighbours` is
    "add-remove" or "replace", `ordered` says that order is public, `unit` names the column of rows that says whose they are.

    >>> def noisy_count(data, noise):
    ...     return noise.geometric(1, at=len(data))
    >>> replay(noisy_count, 1, examples=20).outcome
    'no violation found'
    >>> replay(noisy_count, Fraction(1, 2), examples=20).outcome
    'violates'
    """
    started = time.monotonic()
    claim = (rational(epsilon, "epsilon"), rational(delta, "delta"))
    _check(function, noise, claim, examples)
    adapter = NAMED[noise] if isinstance(noise, str) else noise
    session = _Session(function, adapter, claim, seed, started + seconds, seconds)
    if _is_strategy(data):
        result = _by_hypothesis(session, data, examples)
    else:
        made = source(data, neighbours, ordered, unit) if isinstance(data, str) else _source(data)
        result = _by_search(session, made, examples)
    return _verdict(session, name or getattr(function, "__name__", "function"), result, time.monotonic() - started, data)


def _check(function: Any, noise: Any, claim: tuple[Fraction, Fraction], examples: int) -> None:
    if not callable(function):
        raise ArgumentError(
            f"function must be callable, and it is a {type(function).__name__}.", fix="pass the function itself."
        )
    if claim[0] < 0 or not 0 <= claim[1] < 1:
        what = f"a claim needs epsilon >= 0 and 0 <= delta < 1, and it is ({claim[0]}, {claim[1]})."
        raise ArgumentError(what, fix="state the epsilon and delta that the code promises.")
    if isinstance(noise, str) and noise not in NAMED:
        raise ArgumentError(f"no adapter is called {noise!r}.", fix=f"write one of {', '.join(NAMED)}, or pass an adapter.")
    if examples < 1:
        raise ArgumentError(f"examples must be at least 1, and it is {examples}.", fix="try 200.")


def _source(data: Any) -> Source:
    if hasattr(data, "pair") and hasattr(data, "built") and hasattr(data, "smaller"):
        found: Source = data
        return found
    if callable(data) or (isinstance(data, Sequence) and data and all(len(pair) == 2 for pair in data)):
        return Given(data)
    what = f"data must be a name, a source of pairs, pairs or a strategy, and it is a {type(data).__name__}."
    raise ArgumentError(what, fix=Fix("write {data}, or pass a list of pairs (D, D′).", data="numbers"))


# --- searching -----------------------------------------------------------------------------------------------

Result = tuple[Found, tuple[Any, Any]] | None


def _by_search(session: _Session, made: Source, examples: int) -> Result:
    dice = random.Random(session.seed)
    corners = made.corners(dice) if isinstance(made, Records) else iter(())  # every poison once, soon
    for turn in range(examples):
        if (session.tried or turn) and session.late():
            return None
        pair = next(corners, None) if turn % 2 else None
        pair = made.pair(dice) if pair is None else pair
        result = session.judge(lambda pair=pair: made.built(pair), session.largest)  # type: ignore[misc]
        session.learn(result, lambda pair=pair: made.built(pair))  # type: ignore[misc]
        if result.found is not None and session.sure(lambda pair=pair: made.built(pair), result.found):  # type: ignore[misc]
            found, small = _smaller(session, made, pair, result.found)
            if small is pair or session.sure(lambda: made.built(small), found):  # noqa: B023  # called at once
                return found, made.built(small)
            return result.found, made.built(pair)
        if result.found is not None:
            session.notes[f"{result.found.event}; but not in every one of many runs"] += 1
            session.largest, session.clear = 0.0, 0
    return None


def _smaller(session: _Session, made: Source, pair: Any, found: Found) -> tuple[Found, Any]:
    """Greedy: the first smaller pair on which the same kind of thing is found, until none is or patience ends."""
    trials, again = 0, True
    while again and trials < PATIENCE and not session.late():
        again = False
        for smaller in made.smaller(pair):
            trials += 1
            other = session.judge(lambda smaller=smaller: made.built(smaller)).found  # type: ignore[misc]
            if other is not None and other.kind == found.kind:
                pair, found, again = smaller, other, True
                break
            if trials >= PATIENCE or session.late():
                break
    return found, pair


def _is_strategy(data: Any) -> bool:
    """Whoever passes a strategy has loaded hypothesis; the package itself does without."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(data, module.SearchStrategy)


def _by_hypothesis(session: _Session, strategy: Any, examples: int) -> Result:
    hypothesis = sys.modules["hypothesis"]
    errors = hypothesis.errors.NoSuchExample

    known: set[str] = set()
    ends: list[int] = []

    def broken(pair: tuple[Any, Any]) -> bool:
        if repr(pair) in known:
            return True  # said once, said always: hypothesis asks again at the end
        if session.tried and (session.late() or (ends and session.tried > ends[0])):
            return False
        result = session.judge(lambda: copy.deepcopy(pair), session.largest if session.largest < session.claim[0] else 0.0)
        session.learn(result, lambda: pair)
        if result.found is not None:
            known.add(repr(pair))
            ends.append(session.tried + PATIENCE // 4)
        return result.found is not None

    settings = hypothesis.settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    try:
        pair = hypothesis.find(strategy, broken, settings=settings, random=random.Random(session.seed))
    except errors:
        return None
    found = session.judge(lambda: copy.deepcopy(pair)).found
    return None if found is None or not session.sure(lambda: copy.deepcopy(pair), found) else (found, pair)


def _why(session: _Session) -> str:
    if not session.tried:
        return OVER
    if session.notes[HIDDEN]:
        return HIDDEN
    return session.notes.most_common(1)[0][0] if session.notes else "no pair could be compared"


def _verdict(session: _Session, name: str, result: Result, seconds: float, data: Any) -> Verdict:
    evidence: dict[str, Any] = {
        "pairs tried": session.tried,
        "pairs about which everything could be said": session.clear,
        "data": data if isinstance(data, str) else getattr(data, "name", type(data).__name__),
        "noise": session.adapter.name,
        "seed": session.seed,
        "largest loss": session.largest,
        "largest move of a location, in scales": session.moved,
        "not concluded": dict(session.notes.most_common(12)),
        "cannot see": BLIND,
    }
    if result is None:
        seen = session.clear and not session.notes[HIDDEN]  # noise that is not seen may agree in two runs by chance
        why = "" if seen or session.largest else _why(session)
        return Verdict(
            name, "replay", NOT_FOUND, session.claim, session.largest, 1.0, session.at, "", evidence, seconds, open=why
        )
    found, pair = result
    evidence["kind"] = found.kind
    return Verdict(
        name, "replay", VIOLATES, session.claim, found.epsilon, found.confidence, pair, found.event, evidence, seconds
    )
