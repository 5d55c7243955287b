"""The two programs of a stream on a catalog: opening it, which is charged, and advancing it, which is paid for by that.

    Opening    price of the whole horizon; prepares the first work, reads no row, releases nothing
    Advance    no price; runs one work, feeds the running sum, releases the sums of its steps

The exact numbers go from the engine into the running sum, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dither.errors import DitherError
from dither.planning.outputs import Draw, Noisy
from dither.planning.program import Run
from dither.privacy.filters import Charge
from dither.query.work import Group, Work
from dither.streams.plan import StreamPlan
from dither.streams.running import WIDEST, RunningSum

FORMAT = 1
FREE = Charge(Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Opening:
    """Opens a stream: charges for its horizon. `until`: the steps that will be read first, so that they can be prepared."""

    plan: StreamPlan
    until: int

    @property
    def identity(self) -> str:
        return self.plan.identity

    @property
    def charge(self) -> Charge:
        return self.plan.charge

    @property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return self.plan.mechanisms

    @cached_property
    def works(self) -> tuple[Work, ...]:
        return (self.plan.work(0, self.until),)

    @property
    def tables(self) -> tuple[str, ...]:
        return self.plan.tables

    @property
    def unit(self) -> str:
        return self.plan.unit_words

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        return ()

    def write(self, released: Sequence[Noisy]) -> str:
        return encode_sums(0, ())

    def read(self, stored: str) -> Sequence[Noisy]:
        return ()


@dataclass(frozen=True)
class Advance:
    """Releases the steps after `start`, up to `end`. `identity` names the stream and the step that it goes on from.

    The noise is drawn by the running sum, which was made with the price of the stream; it does not depend on the numbers.
    """

    plan: StreamPlan
    identity: str
    start: int
    end: int
    running: RunningSum = field(compare=False, repr=False)
    charge: Charge = FREE
    mechanisms: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def works(self) -> tuple[Work, ...]:
        return (self.plan.work(self.start, self.end),)

    @property
    def tables(self) -> tuple[str, ...]:
        return self.plan.tables

    @property
    def unit(self) -> str:
        return self.plan.unit_words

    def release(self, run: Run, draw: Draw) -> Sequence[Noisy]:
        exact = step_totals(run(self.works[0]), self.plan.steps[self.start : self.end])
        sums = self.running.feed(exact)
        keys = tuple((step,) for step in self.plan.steps[self.start : self.end])
        return (Noisy(keys, (np.asarray(sums).reshape(-1, 1),)),)

    def write(self, released: Sequence[Noisy]) -> str:
        return encode_sums(self.start, released[0].cells[0].ravel().tolist())

    def read(self, stored: str) -> Sequence[Noisy]:
        raise TypeError("steps of a stream are never asked for again")


def step_totals(groups: Sequence[Group], steps: Sequence[Any]) -> list[int]:
    """Returns the exact total of each step, 0 where it has no rows, within +-2^40."""
    totals: dict[Any, int] = {}
    for group in groups:
        (cells,) = group.measures
        totals[group.key[0]] = int(cells[0])  # type: ignore[index]
    return [min(max(totals.get(step, 0), -WIDEST), WIDEST) for step in steps]


def encode_sums(start: int, sums: Sequence[int]) -> str:
    """Encodes released sums, of the steps after `start`."""
    return json.dumps({"format": FORMAT, "start": start, "sums": list(sums)}, sort_keys=True, separators=(",", ":"))


def decode_sums(text: str) -> tuple[int, list[int]]:
    """Decodes released sums: the step before them, and the sums."""
    try:
        fields = json.loads(text)
        if fields["format"] == FORMAT and all(type(each) is int for each in (fields["start"], *fields["sums"])):
            return fields["start"], fields["sums"]
    except (ValueError, TypeError, KeyError):
        pass
    raise DitherError("This version of dither cannot read the released steps.", fix="use the version that released them.")
