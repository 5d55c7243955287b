"""Replays a whole pipeline on D and on D′ with the same recorded randomness, and compares everything that can be seen.

    from dither.audit.replay.replay import replay
    print(replay(my_mean, epsilon=1, data="numbers", noise="rng"))

Finds with certainty what differs whatever the noise (error, message, warning, type, shape, keys, holes, exact numbers), and
losses that follow from the laws of the draws: sensitivity, scales that depend on data, noise used twice. Datasets are
generated, never read. A violation is made smaller before it is reported.
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
from functools import partial
from typing import Any

from dither.audit.replay.adapters import NAMED, Adapter
from dither.audit.replay.judge import HIDDEN, Judgement, judge
from dither.audit.replay.observe import Difference, Side, is_confirmed
from dither.audit.replay.pairs import ADD_REMOVE, Given, Records, Source, source
from dither.audit.verdict import NOT_FOUND, VIOLATES, Verdict
from dither.errors import ArgumentError, Fix
from dither.exact.numbers import rational

OVER = "the time was up before the pair was compared"
PATIENCE = 400  # trials to make a counterexample smaller
BLIND = (
    "Replay sees only the datasets it tried, and only the noise that the adapter records. It treats draws as exact real or "
    "whole numbers, so it does not see the low bits of floating-point noise, bad generators or run time. For outputs that hide "
    "their draws, and for decisions that depend on noise, use the black box."
)


class _LateError(BaseException):
    """The time is up. Not an Exception, because those of the audited code are outputs."""


@dataclass
class _Session:
    """One running audit: the claim, the clock and the results so far."""

    function: Callable[..., Any]
    adapter: Adapter
    claim: tuple[Fraction, Fraction]
    seed: int
    until: float
    seconds: float = 0.0
    tried: int = 0
    aligned: int = 0  # pairs on which noise was drawn on both sides and aligned
    complete: int = 0  # of these, the ones that were compared without notes
    largest: float = 0.0
    moved: float = 0.0
    at: tuple[Any, Any] | None = None
    notes: Counter[str] = field(default_factory=Counter)

    def is_late(self) -> bool:
        return time.monotonic() > self.until

    def judge(self, make: Callable[[], tuple[Any, Any]], beyond: float = 0.0) -> Judgement:
        one, two = self._sides(make)
        try:
            return judge(one, two, float(self.claim[0]), float(self.claim[1]), self.seed, beyond)
        except _LateError:
            return Judgement(notes=[OVER])

    def confirms(self, make: Callable[[], tuple[Any, Any]], difference: Difference) -> bool:
        """Confirms a difference without a time limit, so that the clock never drops a violation."""
        sides = [replace(side, function=self.function) for side in self._sides(make)]
        return is_confirmed(sides[0], sides[1], difference, self.seed, float(self.claim[0]))

    def _sides(self, make: Callable[[], tuple[Any, Any]]) -> tuple[Side, Side]:
        return Side(self._in_time, self.adapter, lambda: make()[0]), Side(self._in_time, self.adapter, lambda: make()[1])

    def _in_time(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, and stops a slow pair when the time is up. The first pair has twice the time."""
        if time.monotonic() > self.until + (0 if self.tried else self.seconds):
            raise _LateError
        return self.function(*args, **kwargs)

    def record(self, result: Judgement, make: Callable[[], tuple[Any, Any]]) -> None:
        if OVER in result.notes:
            return
        self.tried += 1
        self.aligned += result.aligned
        self.complete += result.aligned and not result.notes
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
    """Audits a callable against (epsilon, delta) on generated neighbours.

    `data`: a name ("numbers", "array", "integers", "words", "counts", "rows", "table", "answers"), a source of pairs, a list of
    pairs (D, D′), a function from a random.Random to a pair, or a hypothesis strategy of pairs. `neighbours`: "add-remove" or
    "replace". `ordered`: the order of records is public. `unit`: the column that names the owner of a row.

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
        pairs = source(data, neighbours, ordered, unit) if isinstance(data, str) else _source(data)
        result = _by_search(session, pairs, examples)
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
    if all(hasattr(data, name) for name in ("pair", "built", "smaller", "standard")):
        pairs: Source = data
        return pairs
    if callable(data) or (isinstance(data, Sequence) and data and all(len(pair) == 2 for pair in data)):
        return Given(data)
    what = f"data must be a name, a source of pairs, pairs or a strategy, and it is a {type(data).__name__}."
    raise ArgumentError(what, fix=Fix("write {data}, or pass a list of pairs (D, D′).", data="numbers"))


# --- searching -----------------------------------------------------------------------------------------------

Result = tuple[Difference, tuple[Any, Any]] | None


def _by_search(session: _Session, source: Source, examples: int) -> Result:
    """Tries generated pairs until one violates the claim, and returns the violation on a smaller pair."""
    rng = random.Random(session.seed)
    poisoned = source.corners(rng) if isinstance(source, Records) else iter(())
    planned = (iter(()), poisoned, source.standard())  # in turns with random ones, until they end
    for turn in range(examples):
        if (session.tried or turn) and session.is_late():
            return None
        pair = next(planned[turn % 3], None)
        pair = source.pair(rng) if pair is None else pair
        build = partial(source.built, pair)
        judgement = session.judge(build, session.largest)
        session.record(judgement, build)
        difference = judgement.difference
        if difference is not None and session.confirms(build, difference):
            smaller, small = _shrink(session, source, pair, difference)
            if small is pair or session.confirms(partial(source.built, small), smaller):
                return smaller, source.built(small)
            return difference, build()
        if difference is not None:
            session.notes[f"{difference.event}; but not in all of many runs"] += 1
            session.largest, session.complete = 0.0, 0
    return None


def _shrink(session: _Session, source: Source, pair: Any, difference: Difference) -> tuple[Difference, Any]:
    """Takes the first smaller pair with the same kind of difference, until there is none or PATIENCE ends."""
    trials, shrunk = 0, True
    while shrunk and trials < PATIENCE and not session.is_late():
        shrunk = False
        for smaller in source.smaller(pair):
            trials += 1
            other = session.judge(partial(source.built, smaller)).difference
            if other is not None and other.kind == difference.kind:
                pair, difference, shrunk = smaller, other, True
                break
            if trials >= PATIENCE or session.is_late():
                break
    return difference, pair


def _is_strategy(data: Any) -> bool:
    """Looks for hypothesis among the loaded modules only; dither does not depend on it."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(data, module.SearchStrategy)


def _by_hypothesis(session: _Session, strategy: Any, examples: int) -> Result:
    """Lets hypothesis search and shrink."""
    hypothesis = sys.modules["hypothesis"]
    known: set[str] = set()  # violating pairs: hypothesis tries its best one once more at the end
    ends: list[int] = []

    def violates(pair: tuple[Any, Any]) -> bool:
        if repr(pair) in known:
            return True
        if session.tried and (session.is_late() or (ends and session.tried > ends[0])):
            return False
        beyond = session.largest if session.largest < session.claim[0] else 0.0
        judgement = session.judge(lambda: copy.deepcopy(pair), beyond)
        session.record(judgement, lambda: pair)
        if judgement.difference is not None:
            known.add(repr(pair))
            ends.append(session.tried + PATIENCE // 4)
        return judgement.difference is not None

    settings = hypothesis.settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    try:
        pair = hypothesis.find(strategy, violates, settings=settings, random=random.Random(session.seed))
    except hypothesis.errors.NoSuchExample:
        return None
    difference = session.judge(lambda: copy.deepcopy(pair)).difference
    confirmed = difference is not None and session.confirms(lambda: copy.deepcopy(pair), difference)
    return (difference, pair) if difference is not None and confirmed else None


def _why(session: _Session) -> str:
    """Returns why nothing could be concluded."""
    if not session.tried:
        return OVER
    if session.notes[HIDDEN]:
        return HIDDEN
    return session.notes.most_common(1)[0][0] if session.notes else "no pair could be compared"


def _verdict(session: _Session, name: str, result: Result, seconds: float, data: Any) -> Verdict:
    evidence: dict[str, Any] = {
        "pairs tried": session.tried,
        "pairs on which noise was aligned": session.aligned,
        "pairs compared in full": session.complete,
        "data": data if isinstance(data, str) else getattr(data, "name", type(data).__name__),
        "noise": session.adapter.name,
        "seed": session.seed,
        "largest loss": session.largest,
        "largest move of a location, in scales": session.moved,
        "not concluded": dict(session.notes.most_common(12)),
        "cannot see": BLIND,
    }
    if result is None:
        visible = session.complete and not session.notes[HIDDEN]  # hidden noise may agree in two runs by chance
        why = "" if visible or session.largest else _why(session)
        return Verdict(
            name, "replay", NOT_FOUND, session.claim, session.largest, 1.0, session.at, "", evidence, seconds, open=why
        )
    difference, pair = result
    evidence["kind"] = difference.kind
    return Verdict(
        name,
        "replay",
        VIOLATES,
        session.claim,
        difference.epsilon,
        difference.confidence,
        pair,
        difference.event,
        evidence,
        seconds,
    )
