"""The desk that every protocol ends at: who, what and terms become a quote, an answer or a stored answer.

    who may it? ─▶ line (or 503, uncharged) ─▶ key claimed ─▶ project's quota ─▶ survey.ask ─▶ kept ─▶ sent

The desk decides who may ask and when. What a question costs, whether the budget allows it and what it returns is decided by the
curator and the ledger, as everywhere. A token with the scope `replay` takes the path that cannot charge (`stored=True`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dither import curator
from dither.answer import Answer
from dither.answers import Answers
from dither.curator import Curator
from dither.errors import AccessError, ArgumentError, BudgetError, BusyError, ConflictError, DitherError
from dither.exact.numbers import positive
from dither.history import ApprovalLog, HistoryRow
from dither.ledger import opening
from dither.ledger.ledger import time_now
from dither.ledger.records import Advanced, Committed, parse
from dither.ledger.verify.report import Report, verify
from dither.planning.plan import Field
from dither.server.accounts import Accounts, Who
from dither.server.clock import Clock, check_parts, parts_of
from dither.server.line import GoneError, Line, Still
from dither.server.replies import Replies, write
from dither.server.requests import ANSWERING, FAULT, Job, Requests, new_id
from dither.server.settings import Settings
from dither.server.sources import check_sources
from dither.server.store import ServiceStore
from dither.text import folded
from dither.workspace import beside

LONGEST_KEY = 200
MOST_QUESTIONS = 100
TERMS = ("epsilon", "delta", "margin", "of", "confidence", "assume_rows", "max_rows", "max_groups", "left_out", "sample")
Step = tuple[Line, Callable[[str], str | None]]  # where it waits for its turn, and what it does then


@dataclass(frozen=True)
class Asked:
    """A question and its terms, as `survey.ask` takes them. `payload`: also send the noisy numbers as the ledger has them."""

    question: str | tuple[str, ...]
    terms: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False
    free: bool = False
    payload: bool = False

    @property
    def given(self) -> str | list[str]:
        return self.question if isinstance(self.question, str) else list(self.question)


class Desk:
    """An open catalog with its accounts: answers whoever may ask."""

    def __init__(self, survey: Curator, settings: Settings, store: ServiceStore) -> None:
        self.survey = survey
        self.settings = settings
        self.store = store
        self.accounts = Accounts(store)
        self.requests = Requests(store, settings.tick)
        self.asking = Line(settings.threads, settings.waiting, settings.waiting_each, "ask")
        self.reading = Line(2, 4 * settings.waiting, 4 * settings.waiting_each, "read")
        self.paying = Line(1, settings.waiting, settings.waiting_each, "pay")  # with a clock: one paid question at a time
        self.clock = make_clock(settings, store)
        if self.clock is not None:
            survey.session.clock = self.clock.hold
        self._replies = Replies()
        self._verifying = asyncio.Semaphore(1)
        self._log = ApprovalLog(survey.ledger.store)
        self._log_lock = threading.Lock()

    # --- questions ----------------------------------------------------------------------------------------------

    async def quote(self, who: Who, asked: Asked, still: Still | None = None) -> dict[str, Any]:
        """Returns the quote of a question as data. It is free."""
        who.require("replay")
        self._check_length(asked)
        question: Any = asked.given
        call: Callable[[], Any] = partial(self.survey.quote, question, **asked.terms, analyst=who.name)
        data: dict[str, Any] = await self.reading.run(who.name, lambda: call().as_data(), still)
        return data if self.clock is None else data | {"clock": self.clock.price(_parts(asked))}

    async def schema(self, who: Who, asked: Asked) -> tuple[Field, ...]:
        """Returns the columns of a question's answer. They follow from its plan: nothing is run, and nothing is charged."""
        who.require("replay")
        self._check_length(asked)
        question: Any = asked.given
        call: Callable[[], Any] = partial(self.survey.quote, question, **asked.terms, analyst=who.name)
        found: tuple[Field, ...] = await self.reading.run(who.name, lambda: call().schema)
        return found

    async def ask(
        self, who: Who, asked: Asked, key: str | None = None, request: bytes = b"", *, wait: float, still: Still | None = None
    ) -> Job:
        """Answers a question, or returns the job that is still being answered after `wait` seconds."""
        stored = not who.may("ask")
        who.require("replay")
        self._check_length(asked)
        if stored and (asked.fresh or asked.free):
            who.require("ask")
        call = partial(self._answer, who, asked, stored)
        steps: list[Step] = [(self.asking, call)]
        if self.clock is not None and not (stored or asked.free):
            parts = _parts(asked)
            check_parts(parts)
            look = partial(self._look_up, who, asked)
            steps = [*([] if asked.fresh else [(self.asking, look)]), (self.paying, partial(self._on_clock, parts, call))]
        return await self._run(who, steps, key, request, asked.fresh, wait, still)

    async def suggest(
        self, who: Who, column: str, terms: Mapping[str, Any], key: str | None, request: bytes, *, wait: float, still: Still
    ) -> Job:
        """Proposes bounds for a column, at a price."""
        who.require("ask")
        texts = (column, column, *([terms["by"]] if terms.get("by") else []))  # its questions: values, rows, groups of a person
        self._check_length(Asked(texts))
        call = partial(self._suggest, who, column, terms)
        parts = parts_of(*texts)
        if self.clock is not None:
            check_parts(parts)
        step = (self.asking, call) if self.clock is None else (self.paying, partial(self._on_clock, parts, call))
        return await self._run(who, [step], key, request, bool(terms.get("fresh")), wait, still)

    async def preview_suggestion(
        self, who: Who, column: str, terms: Mapping[str, Any], still: Still | None = None
    ) -> dict[str, Any]:
        """Returns what a suggestion costs, and what asking for it now would do. It is free."""
        who.require("ask")
        self._check_length(Asked((column, str(terms.get("by") or ""))))
        call = partial(self.survey.preview_suggestion, column, **terms, analyst=who.name)
        price, found = await self.reading.run(who.name, call, still)
        data = {"price": {"epsilon": str(price.epsilon), "delta": str(price.delta)}}
        return data | {"refused": found.refusal or None, "waits": found.waits or None, "entry": found.again}

    async def _run(
        self,
        who: Who,
        steps: Sequence[Step],
        key: str | None,
        request: bytes,
        fresh: bool,
        wait: float,
        still: Still | None,
    ) -> Job:
        job = new_id()
        if key is not None:
            earlier = await self._claim(who, key, request, job)
            if earlier is not None:
                return earlier
        elif fresh:
            raise ArgumentError(
                "A fresh answer is paid for each time, so a request for one needs an Idempotency-Key.",
                fix="send a header Idempotency-Key with a new random text; a retry sends the same one.",
            )
        promised = False

        async def wanted() -> bool:
            return promised or still is None or await still()

        try:
            task = self._begin(who, job, steps, None if still is None else wanted)
            done, _ = await asyncio.wait({task}, timeout=wait)
            if done:
                return Job(job, who.name, "done", body=task.result())
        except (BusyError, GoneError) as error:
            self._give_up(job, key, error)
            raise
        promised = True  # whoever asked was told where to look, and need not stay
        self.requests.start(job, who.name)
        if task.done() and not task.cancelled() and task.exception() is None:  # it ended meanwhile
            return Job(job, who.name, "done", body=task.result())
        task.add_done_callback(lambda ended: None if ended.cancelled() else self._note(job, who, ended))
        return Job(job, who.name, ANSWERING)

    def _begin(self, who: Who, job: str, steps: Sequence[Step], still: Still | None) -> asyncio.Future[str | None]:
        """Takes a place in a line for the first step, or refuses. A single step needs no task of its own."""
        if len(steps) > 1:
            return asyncio.create_task(self._in_turn(who, job, steps, still))
        line, call = steps[0]
        return line.enter(who.name, partial(self._settled, who, job, call), still)

    async def _in_turn(self, who: Who, job: str, steps: Sequence[Step], still: Still | None) -> str | None:
        """Takes one step after the other, each in its line, until one gives the answer."""
        for line, call in steps:
            found = await line.run(who.name, partial(self._settled, who, job, call), still)
            if found is not None:
                return found
        raise TypeError("the last step gives an answer")

    async def _claim(self, who: Who, key: str, request: bytes, job: str) -> Job | None:
        """Claims a key for a new job; or returns the job of the earlier request with this key."""
        if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
            raise ArgumentError(f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.", fix="send a random text.")
        found = await asyncio.to_thread(self.requests.begin, who.name, key, request, job)
        if found == job:
            return None
        earlier = self.requests.find(found, who.name)
        if earlier is None:
            raise ConflictError("This key was just given up.", fix="send the request again.", status=409)
        return earlier

    def _give_up(self, job: str, key: str | None, error: Exception) -> None:
        if key is not None:
            problem = error.as_data() if isinstance(error, DitherError) else {"charged": "nothing"}
            self.requests.fail(job, problem)

    def _note(self, job: str, who: Who, ended: asyncio.Future[str | None]) -> None:
        """Takes note of how a job ended that nobody waits for. A thread has stored it already, unless nobody could look the job
        up at that moment, or it never began."""
        found, error = self.requests.find(job, who.name), ended.exception()
        if found is None or found.state != ANSWERING:
            return
        if error is None:
            self.requests.finish(job, who.name, None, ended.result() or "")
        else:
            told = BusyError() if isinstance(error, GoneError) else error
            self.requests.fail(job, told.as_data() if isinstance(told, DitherError) else FAULT)

    def _settled(self, who: Who, job: str, call: Callable[[str], str | None]) -> str | None:
        """Runs in a thread: answers, and notes a failure for whoever looks the job up. Who was removed meanwhile is refused."""
        try:
            self.accounts.check_still(who)
            return call(job)
        except DitherError as error:
            self.requests.fail(job, error.as_data())
            raise
        except Exception:  # a fault of our own, after which nobody knows what was charged: its key stays taken
            self.requests.fail(job, FAULT)
            raise

    def _look_up(self, who: Who, asked: Asked, job: str) -> str | None:
        """Returns the stored answer, which waits for no tick; None if there is none, or it would count in a quota."""
        try:
            return self._answer(who, asked, True, job)
        except BudgetError:
            return None

    def _on_clock(self, parts: int, call: Callable[[str], str], job: str) -> str:
        if self.clock is None:
            return call(job)
        with self.clock.question(parts):
            return call(job)

    def _answer(self, who: Who, asked: Asked, stored: bool, job: str) -> str:
        terms: dict[str, Any] = dict(asked.terms) | {"analyst": who.name}
        terms |= {"free": True} if asked.free else {"fresh": asked.fresh, "stored": stored}
        question: Any = asked.given
        held = None if stored or asked.free else self._hold(who, asked)
        charged: int | None = 0
        try:
            found: Answer | Answers = self.survey.ask(question, **terms)
            charged = None if found.replayed or asked.free else _entry(found)
        except DitherError as error:
            charged = None if error.charged == "nothing" else 0
            raise
        finally:
            with suppress(DitherError):  # it stays counted, rather than the answer lost
                self.accounts.settle(held, charged)
        body = self._body(found, asked)
        self._keep(job, who, _entry(found), body)
        return body

    def _keep(self, job: str, who: Who, entry: int | None, body: str) -> None:
        """Keeps an answer for whoever looks it up. If that fails it is given all the same: an error here would say that nothing
        was charged, and a retry would pay again."""
        with suppress(DitherError):
            self.requests.finish(job, who.name, entry, body)

    def _hold(self, who: Who, asked: Asked) -> int | None:
        """Counts the price in the quota of the token's project, if it has one."""
        if who.project is None:
            return None
        question: Any = asked.given
        quoted: Any = self.survey.quote(question, **asked.terms, analyst=who.name)
        again = quoted.again is not None and not asked.fresh
        return None if again else self.accounts.hold(who, quoted.total.epsilon)

    def _suggest(self, who: Who, column: str, terms: Mapping[str, Any], job: str) -> str:
        held = self.accounts.hold(who, positive(terms["epsilon"], "epsilon"))
        charged: int | None = 0
        try:
            proposal = self.survey.suggest(column, **terms, analyst=who.name)
            charged = None if proposal.price.startswith("nothing") else 0
        except DitherError as error:
            charged = None if error.charged == "nothing" else 0
            raise
        finally:
            with suppress(DitherError):  # it stays counted, rather than the answer lost
                self.accounts.settle(held, charged)
        body = write({"kind": "proposal", "id": job} | proposal.as_data())
        self._keep(job, who, None, body)
        return body

    def _body(self, found: Answer | Answers, asked: Asked) -> str:
        """Writes an answer. What is left of the budget is that of now, also in a stored answer."""
        entry = _entry(found)
        if entry is None or type(found) is not Answer or not found.replayed:
            return write(self._data(found, asked, entry) | {"left": found.left()})
        key, left = (entry, asked.question, repr(asked.terms), asked.payload), found.left()
        data = self._replies.find(key, partial(self._data, replace(found, left=str), asked, entry))
        *notes, last = data["notes"]
        return write({**data, "left": left, "notes": [*notes, f"{last}; {left}" if left else last]})

    def _data(self, found: Answer | Answers, asked: Asked, entry: int | None) -> dict[str, Any]:
        data = found.as_data() | {"id": None if entry is None else str(entry), "entry": entry}
        data["terms"] = {name: value for name in TERMS if (value := asked.terms.get(name)) is not None}
        data["notes"] = found.notes()
        if isinstance(found, Answer):
            data["cells"] = found.cells()
        else:
            for part, answer, text in zip(data["answers"], found, asked.given, strict=True):
                part |= {"question": text, "notes": answer.notes(), "cells": answer.cells()}
        if asked.payload:
            data |= self._committed(entry)
        return data

    def _committed(self, entry: int | None) -> dict[str, str | None]:
        """Returns the noisy numbers as the ledger has them, and their whole entry: the receipt has signed its hash."""
        row = None if entry is None else self.survey.ledger.store.entry(entry)
        record = None if row is None else parse(row).record
        if row is None or not isinstance(record, Committed | Advanced):
            return {"payload": None, "committed": None}
        return {"payload": record.payload, "committed": row.body}

    def _check_length(self, asked: Asked) -> None:
        if not isinstance(asked.question, str) and len(asked.question) > MOST_QUESTIONS:
            raise ArgumentError(f"A list has at most {MOST_QUESTIONS} questions.", fix="ask in several requests.")
        total = len(asked.question) if isinstance(asked.question, str) else sum(map(len, asked.question))
        if total > self.settings.question:
            raise ArgumentError(
                f"A question has at most {self.settings.question:,} characters.", fix="ask in several questions."
            )

    # --- approvals ----------------------------------------------------------------------------------------------

    async def approvals(self, who: Who) -> list[HistoryRow]:
        """Returns the questions that wait or waited for a curator: one's own, or everyone's for curators and auditors."""
        found = await self.reading.run(who.name, self._approvals)
        every = who.may("curate") or who.may("audit")
        return [each for each in found if every or each["analyst"] == who.name]

    def _approvals(self) -> list[HistoryRow]:
        with self._log_lock:
            return self._log.read(self.survey.ledger.head().number, time_now())

    async def decide(self, who: Who, number: int, approve: bool, words: str, days: float) -> HistoryRow:
        """Approves or refuses a question that waits. Nobody decides on their own."""
        who.require("curate")
        if not 0 < days <= 366:
            raise ArgumentError("An approval lasts more than 0 and at most 366 days.", fix="name another number of days.")
        call = partial(self.survey.ledger.decide, number, who.name, approve=approve, words=words, seconds=86400 * days)
        await self.asking.run(who.name, call)
        return next(each for each in await self.approvals(who) if each["id"] == number)

    # --- reading ------------------------------------------------------------------------------------------------

    async def read(self, who: Who, call: Callable[[], Any], still: Still | None = None) -> Any:
        """Runs a call that only reads, in its turn."""
        return await self.reading.run(who.name, call, still)

    async def verify(self, who: Who) -> Report:
        """Checks the whole ledger, one at a time: it takes long in a long ledger."""
        who.require("audit")
        if self._verifying.locked():
            raise BusyError("The ledger is being verified already.")
        async with self._verifying:
            return await asyncio.to_thread(self._verify)

    def _verify(self) -> Report:
        with closing(opening.open_readonly(self.ledger_place)) as store:
            return verify(store)

    @property
    def ledger_place(self) -> str:
        return self.settings.ledger or str(beside(self.settings.catalog))

    def job(self, who: Who, ident: str) -> Job:
        """Returns a job of this person by its id, or the answer of an entry as they got it."""
        who.require("replay")
        if ident.isascii() and ident.isdecimal() and len(ident) < 19:
            body = self.requests.answer(int(ident), who.name)
            found = None if body is None else Job(ident, who.name, "done", body=body)
        else:
            found = self.requests.find(ident, who.name)
        if found is None:
            raise AccessError("You have no such answer.", status=404, fix="ask its question: a stored answer is free.")
        return found

    def is_ready(self) -> bool:
        """Returns whether questions can be answered: the key is in force, ledger and accounts can be read, the line is open."""
        try:
            self.survey.ledger.check_key()
            self.store.read("SELECT 1")
            self.survey.session.check_unchanged()
        except DitherError:
            return False
        return True

    # --- ending -------------------------------------------------------------------------------------------------

    async def stop(self, seconds: float) -> None:
        """Refuses who waits, lets what runs end, and settles what does not end in time: its price stays charged."""
        lines = (self.asking, self.paying)
        for line in (*lines, self.reading):
            line.close()
        if not all(await asyncio.gather(*(line.drained(seconds) for line in lines))):
            await asyncio.to_thread(self.survey.ledger.abandon)

    def close(self) -> None:
        with suppress(DitherError):  # a question still runs: the process ends, and takes it along
            self.survey.close()
        self.store.close()


def _entry(found: Answer | Answers) -> int | None:
    """Returns the entry of an answer; None for a list of public values, and for one that was made of others."""
    receipt = found.issued if isinstance(found, Answer) else found.receipt
    return None if receipt is None or receipt.derived else int(receipt.body["entry"]["number"])


def _parts(asked: Asked) -> int:
    """Returns how many questions this counts as for the clock. Its parameters are part of its text."""
    more = str(asked.terms.get("params") or "")
    texts = [asked.question] if isinstance(asked.question, str) else list(asked.question)
    return parts_of(texts[0] + more, *texts[1:]) if texts else 1


def make_clock(settings: Settings, store: ServiceStore) -> Clock | None:
    """Returns the clock that answers leave by; None if they leave when they are there."""
    if settings.delay is None:
        return None
    total = settings.clock.get("total") if isinstance(settings.clock, Mapping) else None
    return Clock(
        settings.delay, None if total is None else Fraction(total), store, store.path.with_name(f"{store.path.name}.clock")
    )


def people_file(settings: Settings) -> Path:
    """Returns the file of accounts: as named, or beside the ledger's key."""
    if settings.people is not None:
        return Path(settings.people)
    key = opening.key_path(settings.ledger or beside(settings.catalog), settings.key)
    return key.with_name(key.name.removesuffix(".key") + ".people")


def put_policy(survey: Curator, settings: Settings) -> None:
    """Puts the policy of approvals in force, if the settings have one or the ledger has another."""
    tables = [table for table in settings.approve_tables if folded(table) not in map(folded, survey.catalog.tables)]
    if tables:
        raise ArgumentError(f"approve_tables names {tables[0]}, which is no table.", fix="name tables of the catalog.")
    now = survey.ledger.approvals()
    if settings.threshold is not None or settings.approve_tables or now.above is not None or now.tables:
        survey.session.declare()
        survey.ledger.set_policy(settings.threshold, settings.approve_tables)


def open_desk(settings: Settings) -> Desk:
    """Opens the catalog, its ledger and the accounts."""
    check_sources(Path(settings.catalog), settings.roots)
    store = ServiceStore(people_file(settings))
    try:
        survey = curator.open(settings.catalog, settings.ledger, key=settings.key, witness=settings.witness)
    except BaseException:
        store.close()
        raise
    try:
        put_policy(survey, settings)
        return Desk(survey, settings, store)
    except BaseException:
        survey.close()
        store.close()
        raise
