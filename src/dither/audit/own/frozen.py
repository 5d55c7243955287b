"""Frozen mechanisms: they draw as always, and what they gave the first time is what everyone after them sees.

With the outputs of all mechanisms frozen, whatever still differs between two neighbouring tables has gone past the noise:
rows, order, holes, the text in the ledger. What they really drew is kept too, because noise must not look at the answer.
The two places where a plan draws are `Noise.release` and the choice of keys in planning/finish.py; each gets a recorded
stream of its own, so that one that draws more (a choice among scores) does not shift the dice of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither.exact import replay
from dither.planning import finish
from dither.planning.releases.base import Noise
from dither.query.work import Bins

_DONE = object()


@dataclass
class Trace:
    """What the mechanisms of one question did: the keys they showed, what they gave, and given minus exact."""

    keys: list[Any] | None = None
    outputs: list[Any] = field(default_factory=list)
    noise: list[Any] = field(default_factory=list)  # None for choices: they have no noise that could be subtracted
    astray: bool = False  # drew in another order or shape than the run it was to be like

    def same_noise(self, other: Trace) -> bool:
        """Whether noise was the same wherever it is a number."""
        if len(self.noise) != len(other.noise):
            return False
        return all((a is None) == (b is None) and np.array_equal(a, b) for a, b in zip(self.noise, other.noise, strict=True))


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` inside the block. For one thread: the auditor runs processes, never threads."""
    own = vars(owner).get(name, _DONE)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is _DONE:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


@contextmanager
def frozen(key: bytes, like: Trace | None) -> Iterator[Trace]:
    """Records what mechanisms give in the block; with `like`, passes its outputs on instead."""
    trace, shown, release = Trace(), vars(finish)["_shown"], Noise.release

    def frozen_keys(plan: Any, found: Any) -> Any:
        with replay.stream(key + b" keys"):
            trace.keys = shown(plan, found)
        return trace.keys if like is None or like.keys is None else list(like.keys)

    def frozen_release(noise: Noise, exact: Sequence[Any]) -> Any:
        place = len(trace.outputs)
        with replay.stream(key + b" noise %d" % place):
            given = release(noise, exact)
        trace.outputs.append(given)
        trace.noise.append(None if isinstance(noise.of.measure, Bins) else _noise(given, exact))
        if like is None:
            return given
        if place >= len(like.outputs) or like.outputs[place].shape != given.shape:
            trace.astray = True
            return given
        return like.outputs[place].copy()

    with patched(finish, "_shown", frozen_keys), patched(Noise, "release", frozen_release):
        yield trace


def _noise(given: Any, exact: Sequence[Any]) -> Any:
    cells = [value if isinstance(value, tuple) else (value,) for value in exact]
    return given.astype(object) - np.array(cells, dtype=object).reshape(given.shape)
