"""One catalog, opened once through the public door, whose tables can be exchanged for neighbouring ones.

What is exercised for every table: `Curator.ask` with `fresh=True`, that is the ledger's reservation, the real DuckDB engine
on the exchanged rows, every mechanism, the commit and the finished table. What is done once per question, on the first
table, and again on the last one: reading, planning, preparing. They see the question and the catalog only, which the second
time confirms. What is done once per room: opening, with everybody's rows in, so that every smaller table is legal
too. DuckDB gets one thread, because the auditor runs as many processes as there are cores.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

import dither as dt
from dither.audit.ourselves.catalogs import CatalogSetup
from dither.audit.ourselves.observe import Observation, Trace, observe, open_curator
from dither.audit.ourselves.survey import Person
from dither.curator import STEPS, Steps
from dither.engines.duckdb.frames import readable
from dither.engines.duckdb.sources import DuckDBBackend
from dither.planning.price import Price
from dither.query.nodes import Scan
from dither.query.work import Cell, Sums, Work

CRASHED = "crashed"


class Harness:
    """Asks about any choice of the people it was opened with. People are known by their place in `everyone`."""

    def __init__(self, setup: CatalogSetup, everyone: Sequence[Person], steps: Steps = STEPS) -> None:
        self.setup, self.everyone = setup, tuple(everyone)
        self._pools, self._places = self._pool()
        once = {name: self._run_once(name, getattr(steps, name)) for name in ("read", "plan", "prepare")}
        self.curator = open_curator(setup.catalog(self._pools), replace(steps, **once), DuckDBBackend(threads=1))
        self._asking, self._once = False, dict[str, Any]()
        self._in: dict[str, list[int]] = {}  # whose rows are in each table now
        self._moving = [name for name in self._pools if any(person.get(name) for person in self.everyone)]

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, *_: object) -> None:
        self.curator.close()

    def _pool(self) -> tuple[dict[str, Any], dict[str, list[range]]]:
        """Every table with everybody in it, and where each person's rows are; nobody's rows come first."""
        pools, places = {}, {}
        for name in self.setup.schemas:
            parts = [person.get(name, []) for person in (self.setup.nobody, *self.everyone)]
            starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
            places[name] = [range(start, start + len(part)) for start, part in zip(starts, parts, strict=True)]
            pools[name] = readable(self.setup.arrow(name, [row for part in parts for row in part]))
        return pools, places

    def _engine(self) -> Any:
        """DuckDB, since all sources are frames."""
        return self.curator.engine

    def fill(self, people: Iterable[int], rng: random.Random, *, reorder: bool = False) -> None:
        """Exactly these people are in the tables now, in an order of the dice's choice.

        A table in which nobody came or went is left alone, unless all are to be ordered `anew`.
        """
        chosen, engine = sorted(people), self._engine()
        for name in self._moving:
            ranges = self._places[name]
            there = [person for person in chosen if ranges[person + 1]]
            if there == self._in.get(name) and not reorder:
                continue
            rows = [*ranges[0], *(row for person in there for row in ranges[person + 1])]
            rng.shuffle(rows)
            engine.exchange(name, self._pools[name].take(pa.array(rows, pa.int64())))
            self._in[name] = there

    def rows(self, table: str) -> int:
        """How many rows the engine sees."""
        counted = Work(Scan(table, "t"), (), None, False, None, (Sums((Cell(constant=1),), 1),))
        (group,) = self._engine().run(counted, b"")
        return int(group.measures[0][0])

    def forget_plans(self) -> None:
        """The next question is planned from its text."""
        self._once = {}

    def ask(self, question: str, price: tuple[Any, Any], like: Trace | None = None) -> Observation:
        """One question about the rows that are in the tables now. Anything but our own refusals is a finding too."""
        self._asking = True
        try:
            observed = observe(self.curator, question, *price, like=like)
            if observed.status.startswith("EngineError"):  # which closed the catalog, and the next table has to be seen, too
                self.curator.reopen()
            return observed
        except Exception as error:  # not one of ours: an analyst would see a traceback
            words = f"{CRASHED}, {type(error).__name__}: {error}"
            return Observation(words, None, [], None, Price(Fraction(0), Fraction(0)))
        finally:
            self._asking = False

    def _run_once(self, name: str, step: Any) -> Any:
        """The step, done once for all tables of a question."""

        def once(*arguments: Any) -> Any:
            if not self._asking:
                return step(*arguments)
            if name not in self._once:
                self._once[name] = step(*arguments)
            return self._once[name]

        return once

    def is_answerable(self, question: str, price: tuple[Any, Any]) -> bool:
        """Whether this question is legal and affordable, which reads no rows."""
        try:
            return not self.curator.quote(question, *price).refusal
        except dt.DitherError:
            return False
