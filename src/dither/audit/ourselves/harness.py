"""Opens one catalog through the public API, and exchanges its tables for neighbouring ones.

Every table goes through `Curator.ask` with `fresh=True`: the ledger's reservation, the real DuckDB engine on the exchanged
rows, every mechanism, the commit and the finished table. Reading, planning and preparing run once per question on the first
table, and again on the last one, which confirms that they depend on the question and the catalog only. Opening happens once,
with everyone's rows, so that every smaller table is legal too. DuckDB gets one thread, because the auditor runs one process per
core.
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
from dither.audit.ourselves.spelled import params_of
from dither.audit.ourselves.survey import Person
from dither.curator import STEPS, Steps
from dither.engines.duckdb.backend import DuckDBBackend
from dither.engines.duckdb.frames import readable
from dither.planning.price import Price
from dither.query.nodes import Scan
from dither.query.work import Cell, Sums, Work

CRASHED = "crashed"


class Harness:
    """Asks questions about any subset of the people it was opened with. A person is a place in `everyone`."""

    def __init__(self, setup: CatalogSetup, everyone: Sequence[Person], steps: Steps = STEPS) -> None:
        self.setup, self.everyone = setup, tuple(everyone)
        self._pools, self._places = self._pool()
        cached = {name: self._run_once(name, getattr(steps, name)) for name in ("read", "plan", "prepare")}
        self.curator = open_curator(setup.catalog(self._pools), replace(steps, **cached), DuckDBBackend(threads=1))
        self._asking, self._results = False, dict[str, Any]()
        self._present: dict[str, list[int]] = {}  # whose rows are in each table now
        self._personal = [name for name in self._pools if any(person.get(name) for person in self.everyone)]

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, *_: object) -> None:
        self.curator.close()

    def _pool(self) -> tuple[dict[str, Any], dict[str, list[range]]]:
        """Returns every table with everyone in it, and the range of each person's rows; rows without a person come first."""
        pools, places = {}, {}
        for name in self.setup.schemas:
            parts = [person.get(name, []) for person in (self.setup.rows_without_unit, *self.everyone)]
            starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
            places[name] = [range(start, start + len(part)) for start, part in zip(starts, parts, strict=True)]
            pools[name] = readable(self.setup.arrow(name, [row for part in parts for row in part]))
        return pools, places

    def _engine(self) -> Any:
        """Returns the DuckDB engine: all sources are frames."""
        return self.curator.engine

    def fill(self, people: Iterable[int], rng: random.Random, *, reorder: bool = False) -> None:
        """Fills the tables with exactly these people, in random order.

        Leaves a table alone if the same people are in it, unless `reorder` is set.
        """
        chosen, engine = sorted(people), self._engine()
        for name in self._personal:
            ranges = self._places[name]
            there = [person for person in chosen if ranges[person + 1]]
            if there == self._present.get(name) and not reorder:
                continue
            rows = [*ranges[0], *(row for person in there for row in ranges[person + 1])]
            rng.shuffle(rows)
            engine.exchange(name, self._pools[name].take(pa.array(rows, pa.int64())))
            self._present[name] = there

    def rows(self, table: str) -> int:
        """Returns how many rows the engine sees."""
        work = Work(Scan(table, "t"), (), None, False, None, (Sums((Cell(constant=1),), 1),))
        (group,) = self._engine().run(work, b"")
        return int(group.measures[0][0])

    def forget_plans(self) -> None:
        """Plans the next question from its text."""
        self._results = {}
        self.curator.forget_plans()

    def ask(
        self,
        question: str,
        price: tuple[Any, Any],
        like: Trace | None = None,
        bounds: tuple[Any, Any] = (None, None),
        sample: str | None = None,
    ) -> Observation:
        """Asks one question about the rows in the tables now. An error that is not a refusal of ours is an observation too."""
        self._asking = True
        try:
            terms = {"max_rows": bounds[0], "max_groups": bounds[1], "sample": sample}
            observed = observe(self.curator, question, *price, like=like, **terms)
            if observed.status.startswith("EngineError"):  # it closed the catalog, and the next table needs it open
                self.curator.reopen()
            return observed
        except Exception as error:  # not a DitherError: an analyst would see a traceback
            status = f"{CRASHED}, {type(error).__name__}: {error}"
            return Observation(status, None, [], None, Price(Fraction(0), Fraction(0)))
        finally:
            self._asking = False

    def _run_once(self, name: str, step: Any) -> Any:
        """Returns the step, which runs once for all tables of a question."""

        def once(*arguments: Any) -> Any:
            if not self._asking:
                return step(*arguments)
            if name not in self._results:
                self._results[name] = step(*arguments)
            return self._results[name]

        return once

    def is_answerable(self, question: str, price: tuple[Any, Any], sample: str | None = None) -> bool:
        """Tells whether this question is legal and affordable. Reads no rows."""
        try:
            return not self.curator.quote(question, *price, params=params_of(question), sample=sample).refusal
        except dt.DitherError:
            return False
