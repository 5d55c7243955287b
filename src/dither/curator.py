"""Answers questions: the whole path from a question to a noisy table.

    read ─▶ plan ─▶ prepare ─▶ reserve ─▶ run ─▶ release ─▶ commit ─▶ table

`Curator.ask` is that path; `Curator.release` is its second half, the same for everything that is charged. The steps before
`reserve` read the question and the catalog only. The charge is on disk before the engine is called. A failure before that call
gives the price back; a failure after it keeps the price. The answer is on disk before it is shown.

`Steps` holds the steps as values, so that auditors can wrap them and tests replace them. Only the ledger reserves and commits.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import TypeVar, Unpack, overload

from dither.answer import Answer, Quote
from dither.answers import Answers, Quotes
from dither.catalog.spelling import raised_in_python
from dither.catalog.values import Catalog
from dither.diagnosis import Diagnosis
from dither.engines.base import Engine, Progress, Snapshots, prepare
from dither.engines.registry import open_sources
from dither.errors import ArgumentError, BudgetError, CatalogError, DitherWarning, Fix, LedgerError, Name, QueryError
from dither.exact import entropy
from dither.exact.numbers import Number, flag
from dither.finish import AskOptions, Options, answer_list, answer_of, answer_union, quote_each, quote_of, quote_union
from dither.free import find_offer, take_offer
from dither.graph import CatalogGraph
from dither.ledger.ledger import Ledger
from dither.ledger.records import StreamStep
from dither.ledger.rules import Preview
from dither.offered import Offered
from dither.planning import suggest as proposals
from dither.planning.aims import Earlier
from dither.planning.auto import Auto
from dither.planning.bounds import Bound
from dither.planning.free.search import Search
from dither.planning.listing import FREE, plan_list, read_list
from dither.planning.lookups import decide_groups, look_up, lookups
from dither.planning.outputs import DRAW, Draw, Noisy, Table, table
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.program import Batch, Program, Run, release
from dither.planning.proposal import Proposal
from dither.planning.recent import Planned, RecentPlans
from dither.planning.several import Asked, Several, check_list, plan_questions, plan_several, refusing
from dither.planning.terms import Terms, plan_answer
from dither.privacy.filters import Caps
from dither.query import fluent
from dither.query.fluent import FluentQuestion
from dither.query.nodes import Query
from dither.query.read import Question, list_with_params, read, read_by, read_union, show_question, text_of, with_params
from dither.query.resolve.relations import Resolved
from dither.query.sql.parameters import Params
from dither.query.union import Results, leaves
from dither.query.work import Group, Work
from dither.session import ANYONE, Commit, Paid, Session
from dither.standing import Standing, quota
from dither.stream import Stream
from dither.streams.plan import plan_stream
from dither.workspace import catalog_in_force, changed_data, declaration, diagnosis_of, ledger_for, marks_of, read_declared


def run(engine: Engine, work: Work) -> Sequence[Group]:
    """Returns the engine's exact integers, with a fresh secret. Its errors may quote the data; the session hides them."""
    if not work.measures and not work.count_units and work.edges is None:
        return []  # the whole answer is public
    return engine.run(work, entropy.bits(256).to_bytes(32, "big"))


@dataclass(frozen=True)
class Steps:
    """The steps from a question to its table. `draw` draws the noise of a release."""

    read: Callable[[Question, Catalog], Resolved] = read
    plan: Callable[[Resolved, Catalog, Caps, Terms, str], Batch | Auto] = plan_answer
    prepare: Callable[[Engine, Sequence[Work]], None] = prepare
    run: Callable[[Engine, Work], Sequence[Group]] = run
    release: Callable[[Program, Run, Draw], Sequence[Noisy]] = release
    draw: Draw = DRAW
    table: Callable[[Plan, Noisy], Table] = table


STEPS = Steps()
_CONFIDENCE = Fraction(19, 20)  # of a list: it has no margins


Shown = TypeVar("Shown")
Questions = list[Question] | list[str] | tuple[Question, ...]


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
    """Opens a catalog file or a Catalog.

    `ledger`: a path or a postgresql:// address; by default the one beside the catalog file. It must exist: a wrong path must
    not be a fresh budget. `make=True` makes a new one if there is none, as `dither init` does. ":memory:" forgets what was
    spent when the process ends. `key`: the file that signs receipts, by default beside the ledger. `analyst`: who asks.
    `progress`: called with a share from 0 to 1 while a question takes longer than two seconds; for the curator only.
    `witness`: a file in another place that stores the ledger's heads, so that an older copy of the ledger is detected
    (`dither witness` makes it).

    Without `analyst`, warns if a file was replaced under an unchanged snapshot.
    """
    declared, current = read_declared(catalog)
    try:
        sources, opened_ledger = open_sources(declared, progress), None
    except CatalogError as error:
        raise (error if current is not None else raised_in_python(error)) from None
    try:
        opened_ledger = ledger_for(catalog, ledger, key, make, witness)
        marks = marks_of(catalog, ledger, key, opened_ledger, declared, sources)
        if marks is not None and analyst is None and (tables := marks.changed()):
            warnings.warn(changed_data(tables, declared.snapshot, marks.path), DitherWarning, stacklevel=2)
        return Curator(
            sources.catalog,
            sources.engine,
            opened_ledger,
            declared=declared,
            files=sources.unchanged,
            current=current,
            analyst=analyst,
            closing=sources.close,
            diagnosis=diagnosis_of(catalog, ledger, key),
            mark=None if marks is None else marks.record,
        )
    except BaseException:
        sources.close()
        if opened_ledger is not None:
            opened_ledger.close()
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
        files: Callable[[], bool] | None = None,
        current: Callable[[], bool] | None = None,
        analyst: str | None = None,
        closing: Callable[[], None] = lambda: None,
        diagnosis: Diagnosis | None = None,
        mark: Callable[[], None] | None = None,
        steps: Steps = STEPS,
    ) -> None:
        record = declaration(declared or catalog)
        self.catalog = catalog
        self.ledger = ledger
        self.engine = engine
        self.steps = steps
        self.session = Session(
            ledger,
            record,
            catalog_in_force(ledger, record),
            files=files,
            current=current,
            analyst=analyst,
            diagnosis=diagnosis,
            mark=mark,
            snapshot=engine.snapshot if isinstance(engine, Snapshots) else nullcontext,
        )
        self._closing = closing
        self._plans = RecentPlans()

    @overload
    def ask(
        self, question: Question, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[AskOptions]
    ) -> Answer: ...
    @overload
    def ask(
        self, question: Questions, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[AskOptions]
    ) -> Answers: ...
    def ask(
        self,
        question: Question | Questions,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        of: Number | Answer | None = None,
        params: Params | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
        max_rows: Bound = None,
        max_groups: Bound = None,
        left_out: bool | None = None,
        weights: Sequence[Number] | None = None,
        sample: Number | None = None,
        analyst: str | None = None,
        fresh: bool = False,
        free: bool = False,
        stored: bool = False,
    ) -> Answer | Answers:
        """Returns a noisy table, charged before any row is read. Pass the price (epsilon) or the margin you want.

        A list of questions is answered at one price: epsilon is the total, divided evenly or in proportion to `weights`.

        The same question at the same price returns the stored answer for free; `fresh` pays for a new one. A margin may be a
        share ("2 %") of a public number, `of`: an earlier answer or a number. `params`: the values of ?, $1 and :name.
        `max_rows`, `max_groups`: the bounds of each person in this question, by default those of the catalog.
        `left_out=False` spends nothing on an estimate of what they leave out.

        `sample="1/10"` looks at a secret sample, in which each person is with probability 1/10, and estimates the whole table
        from it. `epsilon` is what is charged. ± includes the sampling error.

        `free=True` computes the answer from stored ones, without a price, if it follows from them: a total after its groups.
        `stored=True` returns a stored answer, or refuses: it never charges, and counts in no quota.
        """
        if stored is not False and flag(stored, "stored"):
            _no_spending(fresh=fresh, free=free)
        if free is not False and flag(free, "free"):
            _no_price(epsilon=epsilon, delta=delta, margin=margin, of=of, weights=weights, sample=sample, fresh=fresh or None)
            return self._ask_free(question, params, Terms.free(confidence, assume_rows, max_rows, max_groups), analyst)
        if epsilon is None and margin is None and (listed := self._free_list(question, params)) is not None:
            return self._list(listed)
        bounds = max_rows, max_groups, left_out
        terms = Terms.of(epsilon, delta, margin, confidence, assume_rows, *bounds, of=_public(of), sample=sample)
        if isinstance(question, (list, tuple)):
            filled_list = self._filled_list(question, params)
            several, shapes, asked = self._planned_list(filled_list, terms, weights)
            self._prepare_list(several, shapes, filled_list)
            show_all = partial(answer_list, self.steps.table, several, shapes, terms)
            return self._charge(several, asked, show_all, analyst, fresh, stored=stored)
        _no_weights(weights)
        filled = with_params(question, params)
        planned = self._plans.find(filled, terms, (self.steps, self.catalog, self.session.caps))
        union = None if planned is not None else self._planned_union(filled, terms)
        if union is not None:
            several, results = union
            put = partial(answer_union, self.steps.table, several, results, terms)
            asked, within = show_question(filled), text_of(filled)
            return self.release(several, asked, put, analyst=analyst, fresh=fresh, within=within, stored=stored)
        planned = planned or self._planned(filled, terms)
        if planned.listed:
            return self._list(planned.program)
        show = partial(answer_of, self.steps.table, planned.program, terms)
        return self.release(
            planned.program, planned.text, show, analyst=analyst, fresh=fresh, within=planned.within, stored=stored
        )

    @overload
    def quote(
        self, question: Question, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[Options]
    ) -> Quote: ...
    @overload
    def quote(
        self, question: Questions, epsilon: Number | None = None, delta: Number | None = None, **terms: Unpack[Options]
    ) -> Quotes: ...
    def quote(
        self,
        question: Question | Questions,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        margin: Number | None = None,
        of: Number | Answer | None = None,
        params: Params | None = None,
        confidence: Number = "0.95",
        assume_rows: int | None = None,
        max_rows: Bound = None,
        max_groups: Bound = None,
        left_out: bool | None = None,
        weights: Sequence[Number] | None = None,
        sample: Number | None = None,
        analyst: str | None = None,
    ) -> Quote | Quotes:
        """Returns the plan, its price, the margins to expect, whether the budget allows it. Free: it reads no private row."""
        if epsilon is None and margin is None and (listed := self._free_list(question, params)) is not None:
            return Quote(listed, _CONFIDENCE, FREE)
        bounds = max_rows, max_groups, left_out
        terms = Terms.of(epsilon, delta, margin, confidence, assume_rows, *bounds, of=_public(of), sample=sample)
        if isinstance(question, (list, tuple)):
            several, shapes, asked = self._planned_list(self._filled_list(question, params), terms, weights)
            state, waits = self._preview(several, asked, analyst)
            together = "" if several.bundled is None else several.bundled.summary
            return Quotes(quote_each(several, shapes, terms), several.total, *state, together, waits)
        _no_weights(weights)
        filled = with_params(question, params)
        planned = self._plans.find(filled, terms, (self.steps, self.catalog, self.session.caps))
        union = None if planned is not None else self._planned_union(filled, terms)
        if union is not None:
            several, results = union
            state, waits = self._preview(several, show_question(filled), analyst)
            return replace(quote_union(several, results, terms, *state), waits=waits)
        planned = planned or self._planned(filled, terms)
        if planned.listed:
            return Quote(planned.program.quoted, terms.confidence, FREE)
        state, waits = self._preview(planned.program, planned.text, analyst)
        quoted = replace(quote_of(planned.program, terms, *state), waits=waits)
        return quoted if quoted.again is not None else replace(quoted, free=self._offered(planned, analyst))

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
        """Proposes bounds or values for "table.column" from the data, at a price. `by`: a key to propose max_groups for."""
        asked, program, text = self._suggestion(column, epsilon, delta, by)
        show = partial(_propose, asked, program)
        return self.release(program, text, show, analyst=analyst, fresh=fresh, within=text_of(asked.questions[0]))

    def preview_suggestion(
        self, column: str, epsilon: Number, delta: Number | None = None, *, by: str | None = None, analyst: str | None = None
    ) -> tuple[Price, Preview]:
        """Returns what `suggest` would charge, and what the ledger would do now. Free."""
        _, program, text = self._suggestion(column, epsilon, delta, by)
        return program.total, self.session.preview(self.session.request(program, text, analyst))

    def _suggestion(
        self, column: str, epsilon: Number, delta: Number | None, by: str | None
    ) -> tuple[proposals.Asked, Batch, str]:
        """Returns what is asked about a column, its plan and its text."""
        asked = proposals.ask_about(self.catalog, column, by)
        resolved = [self.steps.read(each, asked.catalog) for each in asked.questions]
        price = Terms.of(epsilon, delta).price(self.session.caps)
        program = Batch(proposals.plans(asked, resolved, price), resolved[0].tables, "proposal")
        return asked, program, f"suggest {column}" + (f" by {by}" if by else "")

    def stream(
        self,
        question: Question,
        *,
        by: str,
        horizon: int,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        start: str | int | datetime.date | None = None,
        max_rows: Bound = None,
        max_groups: Bound = None,
        params: Params | None = None,
        confidence: Number = "0.95",
        analyst: str | None = None,
    ) -> Stream:
        """Returns the running sum of a COUNT or SUM over the steps of `by`, such as days. Charges nothing yet.

        The first `advance` charges once for all `horizon` steps; later ones, over new snapshots of the data too, are free.
        `start`: the first step, by default the declared low end of `by`. `max_groups`: the most steps in which one unit
        counts, over the whole horizon. `max_rows`: the most rows of one unit that count in one step.
        """
        filled = with_params(question, params)
        within = text_of(filled)
        try:
            plan = plan_stream(
                read_by(filled, by, self.catalog),
                self.catalog,
                self.session.caps,
                by=by,
                horizon=horizon,
                start=start,
                price=(epsilon, delta, rho),
                max_rows=max_rows,
                max_groups=max_groups,
            )
        except QueryError as error:
            raise error.located(within) from None
        return Stream(plan, show_question(filled), self.session, partial(self.release, analyst=analyst), analyst, confidence)

    def graph(self, name: str, *, analyst: str | None = None, fresh: bool = False) -> CatalogGraph:
        """Returns the graph of a table of edges. Its methods ask, each at its price; those of its `quote` are free.

        The same question at the same price returns the stored answer for free; `fresh` pays for a new one.
        """
        return CatalogGraph(self.catalog, name, self.session, self.release, self._count_public, analyst, fresh)

    def release(
        self,
        program: Program,
        question: str,
        show: Callable[[Paid], Shown],
        *,
        analyst: str | None = None,
        fresh: bool = False,
        within: str = "",
        stream: StreamStep | None = None,
        commit: Commit | None = None,
        stored: bool = False,
    ) -> Shown:
        """Prepares a program, charges for it, releases it, and returns what `show` makes of it: the path of every question.

        `question` is its name in the ledger; `within` is the text in which a refusal marks its place. `stream` and `commit`:
        the stream that it is a part of, and how its steps are stored. `stored`: only a stored answer will do.
        """
        self._prepare(program, within)
        return self._charge(program, question, show, analyst, fresh, stream, commit, stored=stored)

    def _prepare(self, program: Program, within: str) -> None:
        try:
            self.steps.prepare(self.engine, program.works)  # engines: what would fail on any rows fails here, uncharged
        except QueryError as error:
            raise error.located(within) from None

    def _charge(
        self,
        program: Program,
        question: str,
        show: Callable[[Paid], Shown],
        analyst: str | None,
        fresh: bool,
        stream: StreamStep | None = None,
        commit: Commit | None = None,
        *,
        stored: bool = False,
    ) -> Shown:
        steps = self.steps
        request = self.session.request(program, question, analyst, fresh, stream)
        compute = partial(steps.release, program, partial(steps.run, self.engine), steps.draw)  # exact integers; noise, once
        # ledger: paid before `compute`, stored before `show`
        return self.session.charged(program, request, compute, show, commit, stored=stored)

    def forget_plans(self) -> None:
        """Plans every question from its text again. Answers do not change: what is remembered depends on no row."""
        self._plans.clear()

    def table(self, name: str, alias: str | None = None) -> FluentQuestion:
        """Starts a question in Python: table("people").where("age >= 18").agg(n=dt.count())."""
        return fluent.table(self.catalog, name, alias)

    @property
    def budget(self) -> Standing:
        """Total, spent and left, for everyone together."""
        return Standing.of(self.ledger, self.session.caps)

    def quota(self, analyst: str | None = None) -> Standing:
        """Returns total, spent and left for one analyst (by default this session's); the budget if there are no quotas."""
        who = self.session.analyst if analyst is None else analyst
        budget = self.budget
        return quota(self.ledger, budget.caps, self.catalog.budget, ANYONE if who is None else who) or budget

    @property
    def closed(self) -> bool:
        """Whether a failure closed the catalog to new questions; `reopen` opens it again."""
        return bool(self.ledger.fuse().closed)

    @property
    def diagnosis(self) -> str:
        """The engine's messages on failures, for the curator only: they may quote the data."""
        return self.session.diagnosis.read()

    def reopen(self) -> int:
        """Opens the catalog to new questions again after a failure. Returns the entry that had closed it, or 0."""
        return self.session.reopen()

    def close(self) -> None:
        """Closes the data and the ledger. `with dt.open(…) as survey:` does it at the end."""
        with self.session.close_guard.closing:
            self.session.close_guard.check()
            self.ledger.close()
            self._closing()

    def __enter__(self) -> Curator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Curator of {', '.join(self.catalog.tables)}; ledger {self.ledger.name}>"

    def _free_list(self, question: Question | Questions, params: Params | None) -> Batch | None:
        """Returns the plan of a list of public keys, which needs no price; None for other questions."""
        if isinstance(question, (list, tuple)) or read_union(filled := with_params(question, params), self.catalog) is not None:
            return None
        query = self._read(filled)
        return plan_list(query, self.catalog) if query.lists else None

    def _list(self, program: Program) -> Answer:
        """Returns a list of public keys. It touches no private row and no ledger, so it is answered whatever is spent."""
        if not isinstance(program, Batch):
            raise TypeError("a list is one plan")
        self.steps.prepare(self.engine, program.works)
        with self.session.close_guard.question_lock():
            self.session.close_guard.wait_for_closing()
            self.session.check_unchanged()
            listed = read_list(program.plans[0], partial(self.steps.run, self.engine))
        return Answer(program, (listed,), self.steps.table(program.plans[0], listed), _CONFIDENCE, None, FREE)

    def _planned(self, question: Question, terms: Terms) -> Planned:
        """Plans a question. Its plan is kept for a while, unless public tables have decided something of it."""
        within, known = text_of(question), (self.steps, self.catalog, self.session.caps)
        query = self.steps.read(question, self.catalog)  # query: names, types, legality, who the unit is
        text = show_question(question)
        if query.query.above or query.joint:
            query = self._with_public(query, question)
        if query.lists:
            return Planned(plan_list(query, self.catalog), text, within, query, terms, known, listed=True)
        program = self.steps.plan(query, self.catalog, self.session.caps, terms, within)  # planning
        planned = Planned(program, text, within, query, terms, known)
        again = query.query.above and any(lookups(query))  # public tables are read again
        return planned if again else self._plans.keep(question, planned)

    def _read(self, question: Question) -> Resolved:
        return self._with_public(self.steps.read(question, self.catalog), question)

    def _with_public(self, query: Resolved, question: Question) -> Resolved:
        """Returns the query with what public tables decide: the subqueries above its groups, and which groups there can be.
        No private row is read."""
        if not any(lookups(query)) and all(each.rows is None for each in query.joint):
            return query
        with self.session.close_guard.question_lock():
            self.session.close_guard.wait_for_closing()
            self.session.check_unchanged()
            try:
                calls = partial(self.steps.prepare, self.engine), partial(self.steps.run, self.engine)
                return decide_groups(look_up(query, *calls), *calls)
            except QueryError as error:
                raise error.located(text_of(question)) from None

    def _plan(self, query: Resolved, terms: Terms, within: str) -> Batch | Auto:
        if query.lists:  # one of several questions
            raise QueryError(
                "A list of public values is free, and part of no other question.", text=within, fix="ask it alone."
            )
        return self.steps.plan(query, self.catalog, self.session.caps, terms, within)  # planning

    def _planned_union(self, question: Question, terms: Terms) -> tuple[Several, Results] | None:
        """Returns the plans of results that UNION puts together, and how; None for other questions."""
        union = read_union(question, self.catalog)
        if union is None:
            return None
        queries, results = union
        found = tuple(self._with_public(each, question) for each in queries)
        return plan_several([Asked(found, text_of(question))], terms, None, self._plan, "Part", self.session.caps), results

    def _filled_list(self, questions: Sequence[Question], params: Params | None) -> list[Question]:
        check_list(questions)
        return list_with_params(questions, params)

    def _planned_list(
        self, questions: Sequence[Question], terms: Terms, weights: Sequence[Number] | None
    ) -> tuple[Several, list[Query | Results], str]:
        """Returns the plans of a list of questions, how the answer of each is put together, and the list as text."""
        return plan_questions(questions, terms, weights, self._read_any, self._plan, self.session.caps)

    def _read_any(self, question: Question) -> tuple[list[Resolved], Query | Results]:
        """Returns the private questions of a question, and how its answer is put together."""
        union = read_union(question, self.catalog)
        if union is not None:
            return [self._with_public(each, question) for each in union[0]], union[1]
        query = self._read(question)
        return [query], query.query

    def _count_public(self, work: Work) -> int:
        """Returns the one number of a Work over a public table. No private row is read."""
        with self.session.close_guard.question_lock():
            self.session.close_guard.wait_for_closing()
            self.session.check_unchanged()
            self.steps.prepare(self.engine, [work])
            (group,) = self.steps.run(self.engine, work)
            return int(group.measures[0])  # type: ignore[arg-type]

    def _prepare_list(self, several: Several, shapes: Sequence[Query | Results], questions: Sequence[Question]) -> None:
        parts = iter(several.questions)
        for place, (question, shape) in enumerate(zip(questions, shapes, strict=True), start=1):
            with refusing("Question", place, len(questions)):
                for _ in leaves(shape):
                    self._prepare(next(parts), text_of(question))

    def _ask_free(self, question: Question | Questions, params: Params | None, terms: Terms, analyst: str | None) -> Answer:
        """Returns an answer made of stored ones. Calls no engine and charges nothing."""
        if isinstance(question, (list, tuple)) or read_union(filled := with_params(question, params), self.catalog) is not None:
            raise ArgumentError("Earlier answers give one question at a time.", fix="ask each question alone.")
        query = self._read(filled)
        if query.lists:
            return self._list(plan_list(query, self.catalog))
        try:
            offer = find_offer(self.session, Search.of(query, self.catalog, terms), terms, analyst)
        except QueryError as error:
            raise error.located(text_of(filled)) from None
        return take_offer(self.session, self.steps.table, offer, show_question(filled), terms, analyst)

    def _offered(self, planned: Planned, analyst: str | None) -> Offered | None:
        """Returns what stored answers give for nothing, for a quote; None if they do not give it, or it is not allowed."""
        try:
            offer = find_offer(self.session, planned.search(self.catalog), planned.terms, analyst)
        except (QueryError, BudgetError, LedgerError):
            return None
        return offer.quoted(planned.terms)

    def _preview(self, program: Program, asked: str, analyst: str | None) -> tuple[tuple[str, int | None, bool], str]:
        """Returns what asking now would do: why it is refused, the entry it repeats, whether that counts in a quota; and why it
        would wait for a curator."""
        preview = self.session.preview(self.session.request(program, asked, analyst))
        return (preview.refusal, preview.again, preview.counted), preview.waits


def _public(of: Number | Answer | None) -> Number | Earlier | None:
    """Returns what a margin is relative to: a number, or the columns of an earlier answer."""
    if of is None or not isinstance(of, Answer):
        return of
    return Earlier({name: of[name] for name in of.columns}, of.receipt.answers[-1]["number"])


def _no_price(**given: object) -> None:
    """Refuses arguments about a price beside `free`."""
    named = next((name for name, value in given.items() if value is not None), None)
    if named is not None:
        raise ArgumentError(
            "A free answer is made of earlier ones, and has no price.",
            fix=Fix("leave {it} out, or {free}.", it=Name(named), free=Name("free")),
        )


def _no_spending(**given: object) -> None:
    """Refuses arguments that ask for another answer than the stored one."""
    if named := next((name for name, value in given.items() if value), None):
        raise ArgumentError(
            "A stored answer is given as it is.", fix=Fix("leave {it} out, or {s}.", it=Name(named), s=Name("stored"))
        )


def _no_weights(weights: Sequence[Number] | None) -> None:
    if weights is not None:
        raise ArgumentError("Weights divide the price of a list of questions.", fix="leave weights out, or pass a list.")


def _propose(asked: proposals.Asked, program: Batch, paid: Paid) -> Proposal:
    return proposals.read(asked, program.plans, paid.noisy, paid.charged)
