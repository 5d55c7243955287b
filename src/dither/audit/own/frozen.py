"""Frozen mechanisms: they draw as always, and what they gave the first time is what everyone after them sees.

With the outputs of all mechanisms frozen, whatever still differs between two neighbouring tables has gone past the noise:
rows, order, holes, the text in the ledger. What they really drew is kept too, because noise must not look at the answer.
The two places where a plan draws are the two of `planning.finish.Draw`; each gets a recorded stream of its own, so that one
that draws more (a choice among scores) does not shift the dice of the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither.exact import replay
from dither.planning.finish import DRAW, Draw
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.query.work import Bins, Group


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


class Frozen:
    """Draws with the dice of `key` and records it in `trace`; with `like`, passes that run's outputs on instead."""

    def __init__(self, key: bytes, like: Trace | None, draw: Draw = DRAW) -> None:
        self.trace = Trace()
        self._key, self._like, self._draw = key, like, draw

    def keys(self, plan: Plan, found: Mapping[tuple[Any, ...], Group]) -> list[tuple[Any, ...]]:
        with replay.stream(self._key + b" keys"):
            shown = self._draw.keys(plan, found)
        self.trace.keys = shown
        return shown if self._like is None or self._like.keys is None else list(self._like.keys)

    def noise(self, noise: Noise, exact: Sequence[Any]) -> Any:
        place = len(self.trace.outputs)
        with replay.stream(self._key + b" noise %d" % place):
            given = self._draw.noise(noise, exact)
        self.trace.outputs.append(given)
        self.trace.noise.append(None if isinstance(noise.of.measure, Bins) else _noise(given, exact))
        if self._like is None:
            return given
        if place >= len(self._like.outputs) or self._like.outputs[place].shape != given.shape:
            self.trace.astray = True
            return given
        return self._like.outputs[place].copy()


def _noise(given: Any, exact: Sequence[Any]) -> Any:
    cells = [value if isinstance(value, tuple) else (value,) for value in exact]
    return given.astype(object) - np.array(cells, dtype=object).reshape(given.shape)
