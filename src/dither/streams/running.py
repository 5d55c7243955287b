"""A running sum: whole numbers in as they come, the noisy sum of all so far after each, at one price for all of them.

The noise does not depend on the numbers (feedback.py, tree.py), so a running sum is the exact sum plus the noise so far, and
what is released is rounded to whole numbers afterwards. Together they are the state, and the state is secret.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from threading import Lock
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError, DitherError
from dither.exact.laws.base import Integers
from dither.exact.numbers import Number, show, show_percent, whole
from dither.mechanisms.base import check_confidence, refuse_masked
from dither.privacy.losses import Loss
from dither.process import Origin
from dither.streams.feedback import Feedback
from dither.streams.terms import MOST_SEGMENTS, Design, Terms

WIDEST = 1 << 40  # a number beyond it counts as this
FORMAT = 1
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _State:
    """What a running sum has seen: secret, except for `step`."""

    step: int  # in all
    total: int  # the exact sum
    carried: int  # noise of the segments before, in units of 1 / scale of this one
    segment: int
    begun: int  # steps of this segment
    noise: tuple[int, ...]


class RunningSum:
    """Noisy sums of a stream, one after each step, at one price for the whole stream.

    Guarantee: epsilon-DP (geometric noise) or rho-zCDP (Gaussian noise; also for epsilon with delta), for adding or removing
    one unit, also if numbers depend on earlier sums. The price holds for all steps together. Nothing is charged in a ledger.
    Believes, and cannot check: one unit changes at most `contributions` steps, and each of them by at most `largest`.
    `horizon`: the most steps, up to 2^20. With None, up to 2^22 steps, with more noise: see terms.py.

    >>> visits = RunningSum(365, rho="1/8")
    >>> type(visits.feed(5)), visits.step, visits.loss()
    (<class 'int'>, 1, ZCDP(rho=Fraction(1, 8)))
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        contributions: int = 1,
        largest: int = 1,
    ) -> None:
        self._begin(Terms.of(horizon, epsilon, delta, rho, contributions, largest))

    @classmethod
    def of_terms(cls, terms: Terms) -> RunningSum:
        """Returns a running sum with terms that were checked."""
        made = cls.__new__(cls)
        made._begin(terms)
        return made

    def _begin(self, terms: Terms) -> None:
        self.terms = terms
        self._state = _State(0, 0, 0, 0, 0, self.terms.segment(0).first)
        self._guard, self._origin, self._gone = Lock(), Origin(), False

    # --- feeding ------------------------------------------------------------------------------------------------

    @overload
    def feed(self, values: int) -> int: ...
    @overload
    def feed(self, values: NDArray[np.integer[Any]] | Sequence[int]) -> Integers: ...
    def feed(self, values: int | NDArray[np.integer[Any]] | Sequence[int]) -> int | Integers:
        """Takes the next number, or an array of them, and returns the noisy sum after each.

        Refuses by type, shape and count, before anything is drawn. A number beyond 2^40 counts as 2^40.
        """
        single = isinstance(values, (int, np.integer)) and not isinstance(values, (bool, np.bool_))
        exact = _read([min(max(int(values), -WIDEST), WIDEST)] if single else values)  # type: ignore[arg-type]
        with self._alone():
            left = self.terms.steps - self._state.step
            if len(exact) > left:
                raise ArgumentError(
                    f"This running sum takes {left} more steps of {self.terms.steps}, and {len(exact)} were given.",
                    fix="make a new one with a larger horizon, at its own price.",
                )
            sums, self._state = self._advance(exact)
        return int(sums[0]) if single else sums

    def _advance(self, exact: Integers) -> tuple[Integers, _State]:
        """Returns the noisy sums and the state after them."""
        state, released = self._state, []
        while len(exact):
            design, now = self.terms.segment(state.segment), exact[: self.terms.length(state.segment) - state.begun]
            drawn = np.asarray(design.noise.release(np.zeros(len(now), dtype=np.int64)))
            sums, state = _continue(design, state, now, drawn)
            released.append(sums)
            exact = exact[len(now) :]
            if state.begun == design.horizon:
                state = self._next(design, state)
        return np.concatenate(released) if released else np.zeros(0, dtype=np.int64), state

    def _next(self, design: Design, state: _State) -> _State:
        """Returns the state at the start of the next segment, which adds to the last sum before."""
        if state.step == self.terms.steps:
            return state
        after = self.terms.segment(state.segment + 1)
        carried = _rounded((state.carried + design.last(state.noise)) * after.scale, design.scale)
        return replace(state, carried=carried, segment=state.segment + 1, begun=0, noise=after.first)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lets one thread work at a time, in the process that made this, until it is saved."""
        self._origin.check(
            "This running sum was made in another process, which may still use it: noise may not be used twice.",
            "make it in this process, or save it there and load it here.",
        )
        with self._guard:
            if self._gone:
                raise DitherError(
                    "This running sum was saved, and continues from its file.", fix="load it: RunningSum.load(path, key)."
                )
            yield

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """How many numbers were taken."""
        return self._state.step

    def loss(self) -> Loss:
        """Returns the price of the whole stream. It is due once, before the first step."""
        return self.terms.loss()

    def margin(self, confidence: Number = "0.95") -> int:
        """Returns the margin of the next sum: it is off by at most this, with this confidence."""
        if self.step == self.terms.steps:
            raise ArgumentError("This running sum has no next step.", fix="ask for the margins of all steps: margins().")
        return int(self.margins(confidence, self.step + 1)[-1])

    def margins(self, confidence: Number = "0.95", steps: int | None = None) -> Integers:
        """Returns the margin of each sum up to `steps` (the horizon, or without one the steps so far). Each holds alone."""
        sure = check_confidence(confidence)
        if steps is None:
            steps = self.step if self.terms.horizon is None else self.terms.horizon
        count = whole(steps, "steps", least=0)
        if count > self.terms.steps:
            raise ArgumentError(f"This running sum has at most {self.terms.steps} steps.", fix="ask for fewer.")
        deviations, off = self._errors(count)
        tail = float(1 - sure) / 2
        reach = -NormalDist().inv_cdf(tail)
        if self.terms.gaussian:
            return np.floor(deviations * reach + off + 0.5).astype(np.int64)
        wide = np.ceil(deviations * max(reach, -math.log(2 * tail) / math.sqrt(2)))
        return np.where(deviations**2 <= 2 * tail, 0, wide).astype(np.int64)  # whole noise: Pr[not 0] <= variance

    def _errors(self, count: int) -> tuple[Floats, Floats]:
        """Returns the standard deviation of each sum's noise, and the most that rounding adds."""
        variances, off, number, before, carried = [np.zeros(0)], [np.zeros(0)], 0, 0.0, 0.0
        while sum(map(len, variances)) < count:
            design = self.terms.segment(number)
            variances.append(before + design.deviations**2)
            rounding = design.off if isinstance(design, Feedback) else np.zeros(design.horizon)
            off.append(carried + rounding)
            before, carried, number = float(variances[-1][-1]), float(off[-1][-1]), number + 1
        return np.sqrt(np.concatenate(variances)[:count]), np.concatenate(off)[:count]

    def plot(self, path: str | PathLike[str], released: NDArray[Any] | Sequence[int], confidence: Number = "0.95") -> Path:
        """Draws the sums that `feed` returned, from the first step on, with the band of their margins."""
        from dither.plots import running_picture  # matplotlib is an extra

        sums = _array(released, "released")
        if len(sums) > self.step:
            raise ArgumentError(
                f"released has {len(sums)} sums, and there were {self.step} steps.",
                fix="pass what feed returned, from the start on.",
            )
        margins = self.margins(confidence, len(sums))
        note = f"each with {show_percent(check_confidence(confidence))} confidence"
        return running_picture(sums.tolist(), margins.tolist(), f"Running sum, {_price_words(self.terms)} in all", note, path)

    def __repr__(self) -> str:
        return f"RunningSum({self.terms.words()}) at step {self.step}; contributions and largest are believed"

    # --- the state ----------------------------------------------------------------------------------------------

    def state(self) -> bytes:
        """Returns everything that is needed to continue. Secret: it has the exact sum and the noise of all sums so far.

        Whoever reads it beside the released sums knows the exact numbers. Keep it encrypted, or use `save`. Continue from
        one state once: two continuations release the same steps with different noise, at twice the price.
        """
        with self._alone():
            return self._encoded()

    def _encoded(self) -> bytes:
        now, design = self._state, self.terms.segment(self._state.segment)
        fields = {
            "format": FORMAT,
            "terms": self.terms.record(),
            "design": design.record(),
            "step": now.step,
            "total": now.total,
        }
        fields |= {"carried": now.carried, "segment": now.segment, "begun": now.begun, "noise": now.noise}
        return json.dumps(fields, sort_keys=True).encode("ascii")

    @classmethod
    def resume(cls, state: bytes) -> RunningSum:
        """Continues from a state. Nothing that was drawn is drawn again."""
        try:
            fields = json.loads(state)
            terms = dict(fields["terms"])
            made = cls(terms.pop("horizon"), **terms)
            now = _decoded(fields)
            if fields["format"] == FORMAT and made._fits(now, fields["design"]):
                made._state = now
                return made
        except (ValueError, TypeError, KeyError, RecursionError, DitherError):
            pass
        raise ArgumentError(
            "This is no state of a running sum that this version can continue.", fix="pass what state() returned."
        )

    def _fits(self, now: _State, design: Any) -> bool:
        """Returns whether a state can be one of this running sum, with the same noise."""
        if not 0 <= now.segment <= MOST_SEGMENTS or self.terms.before(now.segment) + now.begun != now.step:
            return False
        here = self.terms.segment(now.segment)
        ended = now.begun == here.horizon and now.step == self.terms.steps
        right = (0 <= now.begun < here.horizon and now.step <= self.terms.steps) or ended
        return right and len(now.noise) == len(here.first) and json.loads(json.dumps(here.record())) == design

    def save(self, path: str | PathLike[str], key: bytes | str | PathLike[str]) -> Path:
        """Writes the state to a new file, encrypted and authenticated, and ends this object: continue with `load`.

        `key`: a secret of at least 32 bytes, or the curator's key file.
        """
        from dither.streams import sealed

        with self._alone():
            target = sealed.write(sealed.place(path), sealed.seal(self._encoded(), sealed.secret(key)))
            self._gone = True
        return target

    @classmethod
    def load(cls, path: str | PathLike[str], key: bytes | str | PathLike[str]) -> RunningSum:
        """Continues from a file that `save` wrote, and removes it: a state is used once. A copy of it would not be noticed."""
        from dither.streams import sealed

        with sealed.taken(sealed.place(path)) as content:
            return cls.resume(sealed.unseal(content, sealed.secret(key)))

    def __reduce__(self) -> NoReturn:
        raise DitherError(
            "A running sum cannot be copied: two copies would use its noise twice.", fix="save it, and load it once."
        )


def _decoded(fields: dict[str, Any]) -> _State:
    step, total, carried, segment, begun = (
        whole(fields[name], name) for name in ("step", "total", "carried", "segment", "begun")
    )
    return _State(step, total, carried, segment, begun, tuple(whole(each, "noise") for each in fields["noise"]))


def _array(values: Any, name: str) -> NDArray[Any]:
    """Returns an array of whole numbers. Refuses others by type and shape."""
    array = None
    if isinstance(values, (list, tuple)) or hasattr(values, "__array__"):
        with suppress(ValueError, TypeError):  # lists of unequal lengths, and classes
            array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array is not None and not array.size and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array is None or array.ndim != 1 or array.dtype.kind not in "iu":
        got = type(values).__name__ if array is None else f"{array.ndim}-dimensional array of {array.dtype}"
        raise ArgumentError(f"{name} must be a whole number or an array of them, and it is a {got}.", fix="give ints.")
    refuse_masked(array, name)
    return array


def _read(values: Any) -> Integers:
    """Returns the numbers of some steps, within +-2^40."""
    array = _array(values, "values")
    if array.dtype.kind == "u":
        return np.minimum(array.astype(np.uint64), np.uint64(WIDEST)).astype(np.int64)
    return np.clip(array.astype(np.int64), -WIDEST, WIDEST)


def _continue(design: Design, state: _State, exact: Integers, drawn: Integers) -> tuple[Integers, _State]:
    """Returns the noisy sums of some steps of one segment, from the noise that was drawn for them, and the state after them."""
    noise, after = design.follow(state.noise, state.begun, drawn)
    totals = state.total + np.cumsum(exact)
    sums = totals + _rounded(noise + state.carried, design.scale)
    return sums, replace(
        state, step=state.step + len(exact), begun=state.begun + len(exact), total=int(totals[-1]), noise=after
    )


def _rounded(noise: Any, scale: int) -> Any:
    """Returns noise / scale, rounded: (exact + noise) rounded is exact + noise rounded."""
    return (2 * noise + scale) // (2 * scale)


def _price_words(terms: Terms) -> str:
    if terms.rho is not None:
        return f"ρ = {show(terms.rho)}"
    return f"ε = {show(terms.epsilon)}" + ("" if terms.delta is None else f", δ = {show(terms.delta)}")
