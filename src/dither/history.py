"""Reads from a ledger who asked what, when, at which price, and how it ended. Needs no key and no data.

Each row is one reserved question and how it ended, or a stored answer shown again. `entries` lists the ledger's entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dither.ledger.records import (
    ENGINE,
    Advanced,
    Approved,
    Cancelled,
    CancelledApproved,
    Closed,
    Committed,
    Denied,
    Entry,
    Failed,
    Record,
    Reopened,
    Replayed,
    Requested,
    Reserved,
    Restored,
    Settled,
    parse,
)
from dither.ledger.state import Terms
from dither.ledger.stores.base import Store

ENTRIES = ("number", "time", "what", "analyst", "epsilon", "delta", "rule", "about", "question")
QUESTIONS = ("number", "time", "state", "analyst", "epsilon", "delta", "rule", "question", "quota_epsilon", "answer")
_EACH = 4  # first guess of the entries per question

HistoryRow = dict[str, Any]


def entries(store: Store, start: int) -> Iterator[HistoryRow]:
    return (_entry(parse(row)) for row in store.rows(start))


def _entry(entry: Entry) -> HistoryRow:
    """Returns an entry as a row with the columns ENTRIES; exact numbers as text."""
    record = entry.record
    found: HistoryRow = dict.fromkeys(ENTRIES)
    found |= {"number": entry.number, "time": entry.time, "what": entry.kind.partition("/")[0]}
    if isinstance(record, Reserved):
        found |= {"rule": record.rule, "question": _one_line(record.question)}
    if isinstance(record, Requested):
        found["question"] = _one_line(record.question)
    if isinstance(record, Reserved | Replayed | Requested):
        found |= {"analyst": record.analyst, "epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta)}
    if isinstance(record, Settled):
        found["about"] = record.reserved
    if isinstance(record, Replayed):
        found["about"] = record.committed
    if isinstance(record, Reopened):
        found["about"] = record.closed or None
    if isinstance(record, Restored):
        found["about"] = record.backup
    if isinstance(record, Approved | Denied):
        found["about"] = record.requested
    if isinstance(record, Approved | Denied | Closed):
        found["analyst"] = record.by
    return found


# --- one row for each question ----------------------------------------------------------------------------------


def questions(store: Store, last: int, most: int | None, analyst: str | None = None) -> tuple[list[HistoryRow], bool]:
    """Returns the last questions up to entry `last`, and whether there are more before them. Reads further back until there
    are enough. `analyst`: only those of one analyst."""
    back = last if most is None else _EACH * most
    while True:
        start = max(1, last - back + 1)
        found = [row for row in _read_questions(store, start, last) if analyst in (None, row["analyst"])]
        if start == 1 or (most is not None and len(found) > most):
            break
        back *= 2
    more = most is not None and len(found) > most
    return (found[-most:] if most else found), more


def _read_questions(store: Store, start: int, last: int) -> list[HistoryRow]:
    """Returns the questions from entry `start` on. How a question ended is always in a later entry."""
    found: dict[int, HistoryRow] = {}
    quotas = _has_quotas(store)
    for each in store.rows(start, last) if last else ():
        entry = parse(each)
        record, place = entry.record, {"number": entry.number, "time": entry.time}
        if isinstance(record, Reserved):
            price = {"epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta), "rule": record.rule}
            asked = {
                "question": _one_line(record.question),
                "quota_epsilon": price["epsilon"] if quotas else None,
                "answer": None,
            }
            found[entry.number] = place | {"state": "reserved", "analyst": record.analyst} | price | asked
        elif isinstance(record, Replayed):
            free = {"epsilon": "0", "delta": "0", "rule": None}
            paid = str(record.loss.epsilon) if quotas else None
            shown = {
                "question": _question_of(store, record.committed, found),
                "quota_epsilon": paid,
                "answer": record.committed,
            }
            found[entry.number] = place | {"state": "shown again", "analyst": record.analyst} | free | shown
        elif (row := found.get(getattr(record, "reserved", 0))) is not None:
            _set_state(row, record)
            if isinstance(record, Committed | Advanced):
                row["answer"] = entry.number
    return list(found.values())


def _has_quotas(store: Store) -> bool:
    """Returns whether analysts have quotas now. Without quotas, the use of each analyst is not shown."""
    text = store.get("catalog")
    return bool(text and Terms.parse(text).per_analyst is not None)


def _set_state(row: HistoryRow, record: Record) -> None:
    """Sets how a reserved question ended."""
    if isinstance(record, Failed):
        row["state"] = "failed" if record.why == ENGINE else "interrupted"
    else:
        states = {Committed: "answered", Advanced: "answered", Cancelled: "cancelled", CancelledApproved: "cancelled"}
        row["state"] = states.get(type(record), "process died")
    if row["state"] == "cancelled" and row["quota_epsilon"] is not None:
        row["quota_epsilon"] = "0"


def _question_of(store: Store, committed: int, found: dict[int, HistoryRow]) -> str:
    """Returns the question of a stored answer, which may be before the listed entries."""
    answer = store.entry(committed)
    record = parse(answer).record if answer else None
    if not isinstance(record, Committed):
        return ""  # `dither verify` reports what is wrong
    if record.reserved in found:
        return str(found[record.reserved]["question"])
    question = store.entry(record.reserved)
    asked = parse(question).record if question else None
    return _one_line(asked.question) if isinstance(asked, Reserved) else ""


def _one_line(question: str) -> str:
    return " ".join(question.split())


# --- questions that waited for a curator ------------------------------------------------------------------------

WAITING, APPROVED, USED, EXPIRED, DENIED = "waiting", "approved", "used", "expired", "denied"


@dataclass
class ApprovalLog:
    """Reads the requests for approvals and how they were decided. Remembers what it has read."""

    store: Store
    _last: int = 0
    _found: dict[int, HistoryRow] = field(default_factory=dict)

    def read(self, last: int, now: str) -> list[HistoryRow]:
        """Returns all requests up to entry `last`, the oldest first. `now`: the time, for approvals that have ended."""
        for row in self.store.rows(self._last + 1, last) if last > self._last else ():
            if row.kind in _OF_APPROVALS:
                self._add(parse(row))
        self._last = max(self._last, last)
        rows = [dict(each) for each in self._found.values()]
        for each in rows:
            if each["state"] == APPROVED and each["until"] < now:
                each["state"] = EXPIRED
        return rows

    def _add(self, entry: Entry) -> None:
        record = entry.record
        if isinstance(record, Requested):
            price = {"epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta)}
            asked = {"analyst": record.analyst, "question": record.question, "tables": list(record.tables), **price}
            later = {"by": None, "words": "", "until": None, "decided": None, "digest": record.digest}
            self._found[entry.number] = {"id": entry.number, "time": entry.time, "state": WAITING, **asked, **later}
        elif isinstance(record, Approved | Denied) and record.requested in self._found:
            until = record.until if isinstance(record, Approved) else None
            state = DENIED if until is None else APPROVED
            decided = {"state": state, "by": record.by, "words": record.words, "until": until, "decided": entry.time}
            self._found[record.requested] |= decided
        elif isinstance(record, Reserved):
            for each in self._found.values():  # an approval may be used once: by the first question that can
                same = (each["digest"], each["analyst"]) == (record.digest, record.analyst)
                if same and each["state"] == APPROVED and entry.time <= each["until"]:
                    each["state"] = USED
                    break
        elif isinstance(record, CancelledApproved) and record.approval in self._found:
            self._found[record.approval]["state"] = APPROVED


_OF_APPROVALS = (Requested.KIND, Approved.KIND, Denied.KIND, Reserved.KIND, CancelledApproved.KIND)
