"""The whole path, end to end: a question in, a noisy table out, the charge in between.

    parse ─▶ resolve ─▶ plan ─▶ reserve ─▶ run ─▶ release        (commit and receipts come with the durable ledger)

`Curator.ask` is that path. Everything before `reserve` looks at the question and the catalog only; the charge is made
before the engine is called and stays whatever happens after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path

from dither.answer import Answer, Quote
from dither.engines.base import Engine
from dither.engines.duckdb import DuckDB, Progress
from dither.engines.sources import open_catalog, schema
from dither.errors import ArgumentError, BudgetError, DitherError, EngineError, QueryError
from dither.exact import entropy
from dither.exact.numbers import Number, between, not_negative, positive, whole
from dither.planning import suggest as proposals
from dither.planning.choose import Price
from dither.planning.explain import plan_price
from dither.planning.finish import release, table
from dither.planning.plan import Plan, plan
from dither.planning.search import cheapest
from dither.planning.suggest import Proposal
from dither.privacy.filters import ApproxFilter, PureFilter
from dither.privacy.losses import Loss, total
from dither.query import catalog_file, fluent
from dither.query import check as checking
from dither.query import draft as drafting
from dither.query.catalog import Catalog
from dither.query.fluent import Asking
from dither.query.nodes import Query
from dither.query.resolve import Resolved, resolve
from dither.query.sql import parse
from dither.query.work import Group, Work

Question = str | Query | Asking


class Memory:
    """A ledger that lasts as long as this process: for trying things out. It cannot be overdrawn, copied or forked."""

    def __init__(self, catalog: Catalog) -> None:
        budget = catalog.budget
        self._filter = ApproxFilter(budget.epsilon, budget.delta) if budget.delta else PureFilter(budget.epsilon)

    def reserve(self, loss: Loss) -> bool:
        """Charge the loss and say True, or charge nothing and say False. Nothing is ever given back."""
        return self._filter.try_spend(loss)

    def spent(self) -> Price:
        spent = self._filter.spent
        return Price(*spent) if isinstance(spent, tuple) else Price(spent)


@dataclass(frozen=True)
class Standing:
    """What there is for everyone together, what was spent, what is left."""

    total: Price
    spent: Price

    @property
    def left(self) -> Price:
        return Price(self.total.epsilon - self.spent.epsilon, self.total.delta - self.spent.delta)

    def __str__(self) -> str:
        return f"total {self.total}; spent {self.spent}; left {self.left}"


def open(
    catalog: Catalog | str | PathLike[str], *, ledger: str | None = None, progress: Progress | None = None
) -> Curator:  # the builtin's namesake, as dt.open
    """A curator for a catalog file or a Catalog. Until the durable ledger is there, the ledger is ":memory:", by name.

    `progress` is called with a share from 0 to 1 while a question takes longer than two seconds: for the curator's eyes only.
    """
    if ledger != ":memory:":
        raise DitherError(
            "A ledger has to be named, and this version keeps ledgers in memory only.",
            fix='write ledger=":memory:", and mind that what was spent is forgotten when the process ends.',
        )
    declared = catalog if isinstance(catalog, Catalog) else catalog_file.read(Path(catalog))
    sources = open_catalog(declared)
    kinds = {name: sources.schema(name) for name in sources.catalog.tables}
    engine = DuckDB(sources.connection, kinds, progress)
    return Curator(sources.catalog, engine, Memory(sources.catalog), sources.unchanged)


def draft(data: Sequence[str], unit: str) -> str:
    """The text of a first catalog for these sources, from column names and types only; `unit` names a column, or is "row"."""
    return drafting.draft(data, unit, schema)


def check(catalog: str | PathLike[str]) -> str:
    """Every problem of a catalog file, with its line; empty if there is none. Reads schemas, never rows."""
    found = checking.check(Path(catalog), schema)
    return checking.report(found, str(catalog)) if found else ""


class Curator:
    """Answers questions about a catalog's tables until its budget ends."""

    def __init__(self, catalog: Catalog, engine: Engine, ledger: Memory, unchanged: Callable[[], bool] = lambda: True) -> None:
        self.catalog = catalog
        self._engine = engine
        self._ledger = ledger
        self._unchanged = unchanged

    def ask(
        self,
        question: Question,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
    ) -> Answer:
        """A noisy table, charged before any row is read. Name the price (epsilon) or the margin you want."""
        sure = _sure(confidence)
        resolved = self._resolve(question)  # query: from text to nodes; names, types, legality, who the unit is
        planned = self._plan(resolved, question, epsilon, delta, margin, sure, assume_rows)  # planning: noise and price
        self._prepare([planned], question)  # engines: what would fail on any rows fails here, uncharged
        self._reserve(planned.loss)  # privacy: charged from here on, whatever happens
        groups = self._run(planned.work, plan_price(planned))  # engines: exact integers, where the data lives
        noisy = release(planned, groups)  # mechanisms: noise, once
        return Answer(planned, noisy, table(planned, noisy), sure)  # post-processing: free

    def quote(
        self,
        question: Question,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
    ) -> Quote:
        """The plan, its price and the margins to expect. Free: reads no rows, charges nothing."""
        sure = _sure(confidence)
        resolved = self._resolve(question)
        planned = self._plan(resolved, question, epsilon, delta, margin, sure, assume_rows)
        return Quote(planned, sure, _rows(resolved, assume_rows))

    def suggest(self, column: str, epsilon: Number, delta: Number | None = None, *, by: str | None = None) -> Proposal:
        """Bounds for "table.column" from the data, at a price like any question; `by` names a key to propose max_groups for."""
        name, _, field = column.partition(".")
        if name not in self.catalog.tables or field not in self.catalog.tables[name].columns:
            raise DitherError(f"{column} is no column of this catalog.", fix='write "table.column", as in "people.income".')
        start = self.table(name)
        counts = []
        if self.catalog.tables[name].unit is not None:
            asked = ["COUNT(*)"] + ([f"COUNT(DISTINCT {by})"] if by else [])
            counts = [start.per_unit(c=each).group_by(k=proposals.POWER).agg(n=fluent.count()) for each in asked]
        written = '"' + field.replace('"', '""') + '"'
        bounds = self._resolve(start.agg(n=fluent.count(written)))
        price = self._price(epsilon, delta)
        made = proposals.plans(bounds, field, [self._resolve(each) for each in counts], self.catalog, price)
        self._prepare(made, start)
        self._reserve(total([one.loss for one in made]))
        released = [release(one, self._run(one.work, str(price))) for one in made]
        is_whole = self.catalog.tables[name].columns[field].kind == "int"
        return proposals.read(name, field, made, released, is_whole, str(price))

    def table(self, name: str, alias: str | None = None) -> Asking:
        """The beginning of a question in Python: table("people").where("age >= 18").agg(n=dt.count())."""
        return fluent.table(self.catalog, name, alias)

    @property
    def budget(self) -> Standing:
        """Total, spent and left, for everyone together."""
        return Standing(Price(self.catalog.budget.epsilon, self.catalog.budget.delta), self._ledger.spent())

    # --- the steps ----------------------------------------------------------------------------------------------

    def _resolve(self, question: Question) -> Resolved:
        if isinstance(question, str):
            return resolve(parse(question, self.catalog), self.catalog, question)
        if isinstance(question, Asking):
            return resolve(question.query, self.catalog, question.text)
        if isinstance(question, Query):
            return resolve(question, self.catalog)
        raise ArgumentError(
            f"A question is SQL text or a fluent question, and this is a {type(question).__name__}.",
            fix='write ask("SELECT COUNT(*) FROM people", epsilon="0.1").',
        )

    def _plan(
        self,
        resolved: Resolved,
        question: Question,
        epsilon: Number | None,
        delta: Number | None,
        margin: Number | None,
        sure: Fraction,
        assume_rows: int | None,
    ) -> Plan:
        if (epsilon is None) == (margin is None):
            raise ArgumentError(
                "Name the price or the margin, one of the two.", fix='write epsilon="0.1", or margin=50 for the smallest price.'
            )
        try:
            if epsilon is not None:
                return plan(resolved, self.catalog, self._price(epsilon, delta))
            rows = _rows(resolved, assume_rows)
            wanted = positive(margin or 0, "margin")
            most = self.catalog.budget.epsilon
            return cheapest(lambda e: plan(resolved, self.catalog, self._price(e, delta)), most, wanted, sure, rows)
        except QueryError as error:
            raise error.located(_text(question)) from None

    def _price(self, epsilon: Number, delta: Number | None) -> Price:
        """Without a delta, the share of the catalog's delta that epsilon is of its epsilon."""
        budget, spend = self.catalog.budget, positive(epsilon, "epsilon")
        if delta is None:
            return Price(spend, min(budget.delta, budget.delta * spend / budget.epsilon))
        allowed = not_negative(delta, "delta")
        if allowed and not budget.delta:
            raise ArgumentError("This catalog is pure: its budget has no delta.", fix="leave delta out.")
        return Price(spend, between(allowed, "delta", 0, 1, open_high=True))

    def _prepare(self, planned: Sequence[Plan], question: Question) -> None:
        try:
            for one in planned:
                self._engine.prepare(one.work)
        except QueryError as error:
            raise error.located(_text(question)) from None

    def _reserve(self, loss: Loss) -> None:
        """Nothing is charged for data that was replaced under an open catalog: two versions must not pass for one snapshot."""
        if not self._unchanged():
            raise DitherError(
                "The files of this catalog are no longer those that were opened.",
                fix="the curator opens the catalog again, with a new `snapshot` label if the data is a new version.",
            )
        if not self._ledger.reserve(loss):
            raise BudgetError(f"The budget does not allow this question: {self.budget}.")

    def _run(self, work: Work, charged: str) -> Sequence[Group]:
        """The engine's integers, or one constant error, raised where no trace of the engine's own is attached."""
        if not work.measures and not work.count_units:
            return []  # everything asked is public
        secret = entropy.bits(256).to_bytes(32, "big")
        try:
            return self._engine.run(work, secret)
        except Exception:  # whatever an engine raises may quote the data, so nothing of it is kept
            pass
        raise EngineError(charged)


def _sure(confidence: Number) -> Fraction:
    return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)


def _rows(resolved: Resolved, assumed: int | None) -> int | None:
    """How many rows a group is taken to have: what the analyst assumes, or what the catalog declares public."""
    if assumed is not None:
        return whole(assumed, "assume_rows", least=1)
    return resolved.rows.public or resolved.rows.at_least


def _text(question: Question) -> str:
    return question if isinstance(question, str) else question.text if isinstance(question, Asking) else ""
