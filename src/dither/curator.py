"""The whole path, end to end: a question in, a noisy table out, the charge in between.

    parse ─▶ resolve ─▶ plan ─▶ prepare ─▶ reserve ─▶ run ─▶ release ─▶ commit

`Curator.ask` is that path. Everything before `reserve` looks at the question and the catalog only; the charge is on the disk
before the engine is called, and stays whatever happens after that; the answer is on the disk before anyone sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from os import PathLike

from dither import paying
from dither.answer import Answer
from dither.books import (
    acceptable,
    beside,
    check,
    check_data,
    declaration,
    diagnosis_of,
    draft,
    held_to,
    ledger_for,
    make_ledger,
    named,
    read_declared,
)
from dither.busy import Busy
from dither.diagnosis import Diagnosis
from dither.engines.base import Engine, Progress
from dither.engines.registry import open_sources
from dither.errors import DitherError, LedgerError, QueryError
from dither.exact import entropy
from dither.exact.numbers import Number
from dither.ledger.asked import analyst_name
from dither.ledger.ledger import Ledger, Request
from dither.paying import ANYONE
from dither.planning import suggest as proposals
from dither.planning.finish import Noisy, release, table
from dither.planning.identity import Identity, identity
from dither.planning.plan import Plan
from dither.planning.suggest import Proposal
from dither.privacy.filters import Caps
from dither.query import fluent
from dither.query.catalog import Catalog
from dither.query.fluent import Asking
from dither.query.work import Group, Work
from dither.questions import Question, resolved, text, told
from dither.quote import Quote
from dither.session import Paid, Session
from dither.standing import Standing, quota
from dither.wanted import Wanted, planned_for, sure_of

__all__ = [
    "ANYONE",
    "Curator",
    "beside",
    "check",
    "check_data",
    "diagnosis_of",
    "draft",
    "held_to",
    "make_ledger",
    "named",
    "open",
]


def open(
    catalog: Catalog | str | PathLike[str],
    ledger: str | PathLike[str] | None = None,
    *,
    key: str | PathLike[str] | None = None,
    analyst: str | None = None,
    progress: Progress | None = None,
    make: bool = False,
    witness: str | PathLike[str] | None = None,
) -> Curator:  # the builtin's namesake, as dt.open
    """A curator for a catalog file or a Catalog.

    `ledger`: a path or a postgresql:// address, or the one beside the catalog file. It must be there: a path that is wrong must
    not be a fresh budget. `make=True` makes a new one if there is none, as `dither init` does. ":memory:" forgets what was
    spent when the process ends. `key` is the file that signs receipts, beside the ledger unless named; `analyst` is who asks.
    `progress` is called with a share from 0 to 1 while a question takes longer than two seconds: for the curator's eyes only.
    `witness` is a file in another place that keeps the ledger's heads, so that an older copy of the ledger is noticed
    (`dither witness` makes it).
    """
    declared, current = read_declared(catalog)
    sources, book = open_sources(declared, progress), None
    try:
        book = ledger_for(catalog, ledger, key, make, witness)
        return Curator(
            sources.catalog,
            sources.engine,
            book,
            declared=declared,
            files=sources.unchanged,
            current=current,
            analyst=analyst,
            closing=sources.close,
            diagnosis=diagnosis_of(catalog, ledger, key),
        )
    except BaseException:
        sources.close()
        if book is not None:
            book.close()
        raise


class Curator:
    """Answers questions about a catalog's tables until its budget ends."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        ledger: Ledger,
        *,
        declared: Catalog | None = None,
        files: Callable[[], bool] = lambda: True,
        current: Callable[[], bool] = lambda: True,
        analyst: str | None = None,
        closing: Callable[[], None] = lambda: None,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.catalog = catalog
        self.ledger = ledger
        self._engine = engine
        self._closing = closing
        self._files = files  # whether the sources are those that were opened
        self._current = current  # whether the catalog file says what it said
        self._analyst = None if analyst is None else analyst_name(analyst)
        self._declaration = declaration(declared or catalog)
        self._caps = Caps.of(catalog.budget.epsilon, catalog.budget.delta)
        self._busy = Busy()
        self._session = Session(ledger, self._declaration, acceptable(ledger, self._declaration), self._unchanged, diagnosis)

    def ask(
        self,
        question: Question,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
        analyst: str | None = None,
        fresh: bool = False,
    ) -> Answer:
        """A noisy table, charged before any row is read. Name the price (epsilon) or the margin you want.

        The same question at the same price is answered the same again, and costs nothing; `fresh` pays for a new answer.
        """
        sure = sure_of(confidence)
        found = resolved(question, self.catalog)  # query: from text to nodes; names, types, legality, who the unit is
        wanted = Wanted(epsilon, delta, margin, sure, assume_rows)
        planned = planned_for(found, question, self.catalog, self._caps, wanted)  # planning: noise and price
        self._prepare([planned], question)  # engines: what would fail on any rows fails here, uncharged
        same = identity([planned])
        asked = self._request([planned], same, found.tables, told(question), analyst, fresh)

        def compute() -> list[Noisy]:
            groups = self._run(planned.work)  # engines: exact integers, where the data lives
            return [release(planned, groups)]  # mechanisms: noise, once

        def show(paid: Paid) -> Answer:
            (noisy,) = paid.noisy
            rows, stored = table(planned, noisy), paid.stored is not None  # post-processing: free
            return Answer(planned, noisy, rows, sure, paid.receipt, stored, self._left(asked, paid))

        with self._busy.working():
            return self._session.charged(asked, same, compute, show)  # ledger: paid before `compute`, kept before `show`

    def quote(
        self,
        question: Question,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
        analyst: str | None = None,
    ) -> Quote:
        """The plan, its price, the margins to expect, and whether the budget pays for it. Free: reads no rows."""
        sure = sure_of(confidence)
        found = resolved(question, self.catalog)
        wanted = Wanted(epsilon, delta, margin, sure, assume_rows)
        planned = planned_for(found, question, self.catalog, self._caps, wanted)
        asked = self._request([planned], identity([planned]), found.tables, told(question), analyst, False)
        again = paying.before(self.ledger, asked)
        refusal = paying.refusal(self.ledger, self._declaration, self._session.before, asked, again)
        return Quote(planned, sure, wanted.rows(found), refusal, again)

    def suggest(
        self,
        column: str,
        epsilon: Number,
        delta: Number | None = None,
        *,
        by: str | None = None,
        analyst: str | None = None,
        fresh: bool = False,
    ) -> Proposal:
        """Bounds for "table.column" from the data, at a price like any question; `by` names a key to propose max_groups for."""
        name, field, asked = proposals.questions(self.catalog, column, by)
        bounds, *counts = (resolved(each, self.catalog) for each in asked)
        price = paying.price(self._caps, epsilon, delta)
        made = proposals.plans(bounds, field, counts, self.catalog, price)
        self._prepare(made, asked[0])
        text = f"suggest {column}" + (f" by {by}" if by else "")
        same = identity(made, "proposal")
        request = self._request(made, same, bounds.tables, text, analyst, fresh)
        declared = self.catalog.tables[name].columns[field]

        def show(paid: Paid) -> Proposal:
            charged = paying.words(request.charge)
            if paid.stored is not None:
                charged = f"nothing, given again from entry {paid.receipt.body['entry']['number']}"
            return proposals.read(name, field, made, paid.noisy, declared, charged)

        with self._busy.working():
            return self._session.charged(request, same, lambda: [release(one, self._run(one.work)) for one in made], show)

    def table(self, name: str, alias: str | None = None) -> Asking:
        """The beginning of a question in Python: table("people").where("age >= 18").agg(n=dt.count())."""
        return fluent.table(self.catalog, name, alias)

    @property
    def budget(self) -> Standing:
        """Total, spent and left, for everyone together."""
        return Standing.of(self.ledger, self._caps)

    def quota(self, analyst: str | None = None) -> Standing:
        """The same for one analyst, this session's unless named. In a catalog without quotas it is the budget."""
        who = self._analyst if analyst is None else analyst
        budget = self.budget
        return quota(self.ledger, budget.caps, self.catalog.budget, ANYONE if who is None else who) or budget

    @property
    def closed(self) -> bool:
        """Whether failures closed the catalog to new questions; `reopen` opens it again."""
        return bool(self.ledger.fuse().closed)

    @property
    def diagnosis(self) -> str:
        """What the engine said when it failed: for the curator only, it may quote the data."""
        return self._session.diagnosis.read()

    def reopen(self) -> int:
        """Let new questions in again after a failure, once its cause is gone. The entry that had closed the catalog, or 0."""
        forgiven = self.ledger.reopen()
        self._session.reopened()
        return forgiven.closed

    def close(self) -> None:
        """Lets go of the data and the ledger. `with dt.open(…) as survey:` does it at the end."""
        with self._busy.closing:
            self._busy.check()
            self.ledger.close()
            self._closing()

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Curator of {', '.join(self.catalog.tables)}; ledger {self.ledger.name}>"

    def _left(self, asked: Request, paid: Paid) -> str:
        """What is left when the question was paid. A replay counts in the quota of whoever sees the answer first."""
        quota = self.catalog.budget.per_analyst is not None and paid.stored is not None and paid.stored.charged
        counts = f"; its price, {paying.words(asked.charge)}, counts in the quota of {asked.analyst}" if quota else ""
        with suppress(LedgerError):  # the price is paid: an answer is not lost to a line about what is left
            return self.budget.remaining + counts
        return ""

    # --- the steps ----------------------------------------------------------------------------------------------

    def _prepare(self, planned: Sequence[Plan], question: Question) -> None:
        try:
            for one in planned:
                self._engine.prepare(one.work)
        except QueryError as error:
            raise error.located(text(question)) from None

    def _request(
        self,
        plans: Sequence[Plan],
        same: Identity,
        tables: Sequence[str],
        text: str,
        analyst: str | None,
        fresh: bool,
    ) -> Request:
        who = self._analyst if analyst is None else analyst
        return paying.request(self._declaration, plans, same, tables, text, who, fresh)

    def _unchanged(self) -> None:
        """Two versions of the data must not pass for one snapshot, nor two declarations for one catalog."""
        self._busy.wait_for_closing()
        if not self._current():
            raise LedgerError(
                "The catalog file was changed while this session was open.",
                fix="the curator opens the catalog again; what was spent stays spent.",
            )
        if not self._files():
            raise DitherError(
                "The files of this catalog are no longer those that were opened.",
                fix="the curator opens the catalog again, with a new `snapshot` label if the data is a new version.",
            )

    def _run(self, work: Work) -> Sequence[Group]:
        """The engine's integers. Whatever it raises may quote the data; the session keeps that from whoever asked."""
        if not work.measures and not work.count_units:
            return []  # everything asked is public
        return self._engine.run(work, entropy.bits(256).to_bytes(32, "big"))
