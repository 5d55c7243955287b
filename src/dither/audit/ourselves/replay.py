"""Replays dither's own path over generated neighbours, and reports how many pairs were compared and what was found.

    replay(pairs=2000, seed=1)      one process
    replay(pairs=100_000, seed=1, jobs=2, progress=show)

A run consists of cases, each with its own number; seed and number repeat the case. All rows are generated; the sources of a
real catalog are never read.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, islice
from typing import Any

from dither.audit.ourselves.cases import (
    Case,
    Comparison,
    Finding,
    Violation,
    any_bounds,
    any_people,
    any_question,
    any_sample,
    compare,
)
from dither.audit.ourselves.catalogs import CatalogSetup, any_setup, small
from dither.audit.ourselves.flight import differences, fly
from dither.audit.ourselves.graphs import any_graph, compare_graphs
from dither.audit.ourselves.harness import Harness
from dither.audit.ourselves.questions import Parts
from dither.audit.ourselves.shrink import show_finding, shrink
from dither.audit.ourselves.stored import any_stored, compare_stored
from dither.audit.ourselves.streams import any_stream, compare_streams
from dither.audit.verdict import NOT_FOUND, SHARE, VIOLATES, Verdict
from dither.curator import STEPS, Steps

Progress = Callable[[int, int], None]  # pairs done, pairs to do
EACH = 4  # questions asked in one harness
_OTHERS = 12  # every so many harnesses, files, streams, graphs and questions in flight instead
_EACH_OTHER = 4  # streams and graphs then
HARNESSES = 4  # harnesses in one task of a worker
TARGET = "dither: the path from a question to its answer"


@dataclass
class Tally:
    """The result of a run so far."""

    pairs: int = 0
    tables: int = 0
    questions: int = 0
    answered: int = 0
    moved: int = 0
    reached: float = 0.0
    counterexample: str = ""
    words: tuple[str, ...] = ()
    sides: tuple[Any, Any] | None = None
    price: tuple[Any, Any] | None = None
    case: str = ""
    share: float = 0.0
    cpu: float = 0.0
    by_setup: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, one: Comparison) -> None:
        self.pairs, self.tables = self.pairs + one.pairs, self.tables + one.tables
        self.questions, self.answered = self.questions + 1, self.answered + one.answered
        self.moved, self.reached = self.moved + one.moved, max(self.reached, one.reached)
        self.by_setup[name] = self.by_setup.get(name, 0) + one.pairs

    def join(self, other: Tally) -> None:
        for name in ("pairs", "tables", "questions", "answered", "moved", "cpu"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reached = max(self.reached, other.reached)
        for name, pairs in other.by_setup.items():
            self.by_setup[name] = self.by_setup.get(name, 0) + pairs
        if other.counterexample and not self.counterexample:
            for name in ("counterexample", "words", "sides", "price", "case", "share"):
                setattr(self, name, getattr(other, name))

    def other(self, name: str, answered: bool, wrong: Violation | None, case: str, shown: str, share: float = 0.0) -> None:
        """Counts one pair that is not a case of a harness. `share`: how far it moved, of what was priced."""
        self.pairs, self.tables, self.questions = self.pairs + 1, self.tables + 2, self.questions + 1
        self.answered, self.moved, self.reached = self.answered + answered, self.moved + (share > 0), max(self.reached, share)
        self.by_setup[name] = self.by_setup.get(name, 0) + 1
        if wrong is not None:
            words, share, details = wrong
            self.counterexample, self.words, self.share, self.case = "\n".join([shown, *words, *details]), words, share, case

    def note(self, case: str, finding: Finding) -> None:
        small, price = finding.case, finding.case.price
        one, two = (tuple(small.perhaps[i] for i in side) + small.always for side in finding.pair)
        self.counterexample, self.words, self.sides, self.price = show_finding(finding), finding.words, (one, two), price
        self.case, self.share = case, finding.share


def replay(
    pairs: int = 2000,
    seed: int = 1,
    seconds: float | None = None,
    progress: Progress | None = None,
    *,
    jobs: int = 1,
    steps: Steps = STEPS,
) -> Verdict:
    """Compares so many neighbouring pairs, or as many as `seconds` allow. The first finding ends the run, made small.

    `steps` may hold a planted bug (one process only).
    """
    start = time.perf_counter()
    done = Tally()
    runs = _in_process(seed, steps) if jobs == 1 else _in_workers(seed, jobs)
    for tally in runs:
        done.join(tally)
        if progress is not None:
            progress(min(done.pairs, pairs), pairs)
        if done.counterexample or done.pairs >= pairs or (seconds is not None and time.perf_counter() - start >= seconds):
            break
    runs.close()
    return _verdict(done, seed, time.perf_counter() - start)


def run_harness(seed: int, number: int, steps: Steps = STEPS) -> Tally:
    """Runs one harness with its questions, and shrinks a finding."""
    rng, tally, before = random.Random(f"{seed}/{number}"), Tally(), time.process_time()
    if number % _OTHERS == _OTHERS - 1:
        _run_others(f"{seed}/{number}", rng, tally, steps)
        tally.cpu = time.process_time() - before
        return tally
    setup = any_setup(rng)
    always, perhaps = any_people(setup, rng)
    with Harness(setup, (*perhaps, *always), steps) as harness:
        for place in range(EACH):
            sample = any_sample(setup, rng)
            text, price = any_question(harness, rng, sample)
            bounds = any_bounds(rng) if sample is None else (None, None)
            one = compare(harness, Case(setup, always, perhaps, text, price, bounds, sample), rng)
            tally.count(setup.name if sample is None else f"{setup.name}, on a sample", one)
            if one.finding is not None:
                tally.note(f"{seed}/{number}/{place}", shrink(one.finding, seed, steps))
                break
    tally.cpu = time.process_time() - before
    return tally


def _run_others(name: str, rng: random.Random, tally: Tally, steps: Steps) -> None:
    """Compares neighbouring files of any stored type, streams, graphs, and questions in flight on neighbouring tables."""
    for _ in range(2):
        file = any_stored(rng)
        wrong, answered = compare_stored(file, steps)
        tally.other("stored files", answered, wrong, name, str(file))
    for _ in range(_EACH_OTHER):
        stream = any_stream(rng)
        wrong, share = compare_streams(stream, rng, steps)
        tally.other("streams", share is not None, wrong, name, str(stream), share or 0.0)
        graph = any_graph(rng)
        wrong, share = compare_graphs(graph, rng, steps)
        tally.other("graphs", share is not None, wrong, name, str(graph), share or 0.0)
    _run_flight(name, rng, tally, steps)


def _run_flight(name: str, rng: random.Random, tally: Tally, steps: Steps) -> None:
    """Compares questions in flight on neighbouring tables."""
    setup = small(rng)
    people = [setup.person(number, rng) for number in range(1, 6)]
    last = setup.person(99, rng) if setup.replace else {}  # replaced, or left out
    same, others = str(setup_question(setup, rng)), "SELECT COUNT(*) AS n FROM t WHERE active"
    one, two = (fly(setup, [*people[:-1], each], (same, others), (1, "1e-6"), steps) for each in (people[-1], last))
    words = tuple(differences(one, two))
    wrong = (words, float("inf"), ()) if words else None
    tally.other("questions in flight", True, wrong, name, f"{same}\nwith and without {people[-1]!r}")


def setup_question(setup: CatalogSetup, rng: random.Random) -> Parts:
    """Generates one question, legal or not."""
    if setup.maker is None:
        raise TypeError("this setup generates no questions")
    return setup.maker(rng.randrange(2**32)).parts(0.05)


def _in_process(seed: int, steps: Steps) -> Generator[Tally, None, None]:
    yield from (run_harness(seed, number, steps) for number in count())


def _run_harnesses(seed: int, numbers: Sequence[int]) -> Tally:
    """Runs several harnesses in a worker, up to the first finding."""
    done = Tally()
    for number in numbers:
        done.join(run_harness(seed, number))
        if done.counterexample:
            break
    return done


def _in_workers(seed: int, jobs: int) -> Generator[Tally, None, None]:
    """Runs the same harnesses in several processes. Spawned, not forked: DuckDB has threads."""
    starts = count(0, HARNESSES)
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as workers:
        waiting = {workers.submit(_run_harnesses, seed, range(start, start + HARNESSES)) for start in islice(starts, 2 * jobs)}
        try:
            while True:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in finished:
                    start = next(starts)
                    waiting.add(workers.submit(_run_harnesses, seed, range(start, start + HARNESSES)))
                    yield one.result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)


def _verdict(done: Tally, seed: int, seconds: float) -> Verdict:
    """Returns the verdict in units of the price: `epsilon` is the largest share of it that a pair reached, 1 is all."""
    evidence = {
        "pairs": done.pairs,
        "tables asked about": done.tables,
        "questions": done.questions,
        "questions answered": done.answered,
        "pairs whose integers differ": done.moved,
        "pairs by kind of catalog": dict(done.by_setup),
        SHARE: done.reached,
        "pairs per CPU second": round(done.pairs / done.cpu, 1) if done.cpu else None,
        "seed": seed,
    }
    one_price = (Fraction(1), Fraction(0))
    if not done.counterexample:
        return Verdict(TARGET, "replay", NOT_FOUND, one_price, done.reached, 1.0, None, "", evidence, seconds)
    evidence |= {"case": done.case, "counterexample": done.counterexample, "price": done.price}
    return Verdict(TARGET, "replay", VIOLATES, one_price, done.share, 1.0, done.sides, "; ".join(done.words), evidence, seconds)


__all__ = ["replay", "run_harness"]
