"""Many runs of the code under attack: errors are outputs, and the two inputs of a pair take turns."""

from __future__ import annotations

import random
from typing import Any

from dither.audit.outputs import Raised
from dither.audit.targets import Target


class BatchError(Exception):
    """A batch raised: which of its runs did is not known."""


def sampled(target: Target, data: Any, size: int, alone: bool = True) -> Any:
    """Outputs on `data`, errors among them where they are drawn one by one."""
    if target.batch is not None and not alone:
        try:
            return target.batch(data, size)
        except Exception as problem:
            raise BatchError from problem
    found: list[Any] = []
    for _ in range(size):
        try:
            found.append(target.run(data))
        except Exception as problem:
            found.append(Raised(type(problem).__name__))
        except SystemExit:
            found.append(Raised("SystemExit"))
    return found


def in_turns(target: Target, pair: tuple[Any, Any], size: int) -> tuple[list[Any], list[Any]]:
    """Outputs on both inputs, one by one and by turns, so that code which changes with time (a budget that runs out, a
    counter) changes for both alike. Who comes first is thrown each time: a fixed order would show in a counter's low bits.
    """
    dice = random.Random()  # not the shared one: the code under attack may seed that
    found: tuple[list[Any], list[Any]] = ([], [])
    for _ in range(size):
        first = dice.random() < 0.5
        for side in (first, not first):
            found[side].extend(sampled(target, pair[side], 1))
    return found
