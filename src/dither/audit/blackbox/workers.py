"""Draws outputs in several processes, one for each core.

Every worker makes the target for itself, by a function that can be pickled, with a random stream of its own. Workers are
spawned, not forked: a fork would copy the state of every generator, and equal outputs counted twice would look like certainty.
Code that seeds a generator when it is imported has the same stream in every worker all the same. So all workers first answer
the same call a few times; if any two agree in all of them, the outputs are drawn in one process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any

from dither.audit.blackbox.outputs import Outputs, Raised, collect, join
from dither.audit.verdict import Target

Make = Callable[[int], Target]  # from the number of a worker to its own target
Both = tuple[Outputs, Outputs]
_ALIKE = 24  # outputs by which workers are compared
_FIRST = (0, 0)  # asks for these
_STARTING = 60.0  # seconds until a worker must have started


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def draw_in_turns(target: Target, pair: tuple[Any, Any], size: int) -> tuple[list[Any], list[Any]]:
    """Returns outputs on both inputs, drawn in turns. Errors are outputs too.

    Code that changes with time (a budget that runs out, a counter) then changes for both alike. The order of each turn is
    random, from the operating system: a fixed order would show in a counter's low bits, and the code may seed other generators.
    """
    outputs: tuple[list[Any], list[Any]] = ([], [])
    for coins in os.urandom(size):
        first = coins & 1
        for side in (first, 1 - first):
            outputs[side].append(draw_one(target.run, pair[side]))
    return outputs


def draw_one(run: Callable[[Any], Any], data: Any) -> Any:
    try:
        return run(data)
    except Exception as problem:
        return Raised(type(problem).__name__)
    except SystemExit:
        return Raised("SystemExit")


@dataclass
class Workers:
    """Processes that draw outputs. Without any, the caller draws for itself."""

    processes: list[BaseProcess] = field(default_factory=list)
    lines: list[Connection] = field(default_factory=list)
    cpu: float = 0.0  # processor seconds of all workers so far

    @classmethod
    def start(cls, make: Make, count: int | None = None) -> Workers:
        """Starts workers, by default one for each core; none if they cannot be started, or if their outputs are the same."""
        made = cls()
        if (count or cores()) < 2 or not _is_portable(make):
            return made
        context = multiprocessing.get_context("spawn")
        for number in range(count or cores()):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, make, number), daemon=True)
            process.start()
            there.close()
            made.processes.append(process)
            made.lines.append(here)
        if not made._is_independent():
            made.stop()
        return made

    def _is_independent(self) -> bool:
        """Tells whether the first outputs on one input, drawn in the same order, differ between any two workers."""
        try:
            for line in self.lines:
                line.send(_FIRST)
            answers = [self._answer(line, _STARTING) for line in self.lines]
        except (OSError, EOFError):
            return False
        marks = {tuple(answer[0].marks().tolist()) for answer in answers if answer is not None}
        return len(marks) == len(self.lines)

    def _answer(self, line: Connection, patience: float | None = None) -> Both | None:
        if patience is not None and not line.poll(patience):
            return None
        answer, cpu = line.recv()
        self.cpu += cpu
        both: Both | None = answer
        return both

    def draw(self, place: int, size: int) -> Both | None:
        """Returns outputs on both sides of a pair, drawn by all workers; None if there are no workers, or one has ended."""
        if not self.lines:
            return None
        each = -(-size // len(self.lines))
        sizes = [min(each, size - start) for start in range(0, size, each)]
        try:
            for line, part in zip(self.lines, sizes, strict=False):
                line.send((place, part))
            parts = [self._answer(line) for line, _ in zip(self.lines, sizes, strict=False)]
        except (OSError, EOFError):
            self.stop()
            return None
        whole = [part for part in parts if part is not None]
        return join([part[0] for part in whole]), join([part[1] for part in whole])

    def stop(self) -> None:
        for line in self.lines:
            line.close()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(5)
        self.lines, self.processes = [], []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _is_portable(make: Make) -> bool:
    try:
        pickle.dumps(make)
    except Exception:
        return False
    return True


def _serve(line: Connection, make: Make, number: int) -> None:
    """Draws what it is asked for until the line is closed."""
    target = make(number)
    while True:
        try:
            place, size = line.recv()
        except (EOFError, OSError):
            return
        start = time.process_time()
        if (place, size) == _FIRST:
            outputs = [draw_one(target.run, target.pairs[0][0]) for _ in range(_ALIKE)], [0]
        else:
            outputs = draw_in_turns(target, target.pairs[place], size)
        line.send(((collect(outputs[0]), collect(outputs[1])), time.process_time() - start))
