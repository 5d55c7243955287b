"""What the server remembers of requests: answers as they were sent, questions that still run, idempotency keys.

An Idempotency-Key is written, durably, before its question is asked. A second request with the same key never asks again: it
gets what the first one got, or is told that it still runs or was lost. The key is forgotten only if nothing was charged.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dither.errors import ConflictError, DitherError
from dither.ledger.reservations import process
from dither.server.store import ServiceStore

ANSWERING, DONE, FAILED = "answering", "done", "failed"
_NEW = "INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, NULL, NULL, ?)"
_FAULT = DitherError(
    "The server could not do this.",
    fix="tell the curator; your history says whether anything was charged.",
    charged="nothing, unless your history shows a new entry",
)
FAULT: Mapping[str, Any] = _FAULT.as_data() | {"code": "server"}  # of the server itself: its text is constant
_ENDED = DitherError(
    "The server ended while it was answering this question.",
    fix="ask it again: if it was answered, the stored answer is free. Your history says what was charged.",
    charged="the price of the question, if your history shows its entry",
)
LOST: Mapping[str, Any] = _ENDED.as_data() | {"code": "server"}


@dataclass(frozen=True)
class Job:
    """A question that was asked: whether it is answered, and with what."""

    id: str
    person: str
    state: str
    ticks: int = 0
    body: str | None = None
    problem: Mapping[str, Any] | None = None


def new_id() -> str:
    return "q" + secrets.token_hex(12)


class Requests:
    """The requests that were made to this service."""

    def __init__(self, store: ServiceStore, tick: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._tick = tick
        self._clock = clock
        self._worker = process(os.getpid())

    def begin(self, person: str, key: str, request: bytes, job: str) -> str:
        """Claims a key for a request. Returns the job that has it: this one, or the earlier one of the same request."""
        digest = hashlib.sha256(request).digest()
        try:
            with self._store.transaction(durable=True) as inside:
                inside.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", (person, key, digest, job, self._clock()))
                inside.execute(_NEW, (job, person, self._worker, ANSWERING, self._clock()))
            return job
        except sqlite3.IntegrityError:
            pass
        rows = self._store.read("SELECT request, job FROM keys WHERE person = ? AND key = ?", person, key)
        if not rows:
            raise ConflictError("This key was just given up.", fix="send the request again.", status=409)
        if rows[0][0] != digest:
            raise ConflictError("This Idempotency-Key was used for another request.", fix="take a new key.", status=422)
        return str(rows[0][1])

    def start(self, job: str, person: str) -> None:
        """Notes a question that takes long, so that any worker can tell how it stands."""
        self._store.write(_NEW, job, person, self._worker, ANSWERING, self._clock())

    def finish(self, job: str, person: str, entry: int | None, body: str) -> None:
        """Keeps an answer as it was sent: once for each person, and once for each job that somebody may look up."""
        kept = self._store.read("SELECT 1 FROM answers WHERE entry = ? AND person = ? LIMIT 1", entry, person)
        if kept and not self._store.read("SELECT 1 FROM jobs WHERE id = ?", job):
            return
        with self._store.transaction() as inside:
            known = inside.execute("UPDATE jobs SET state = ?, entry = ? WHERE id = ?", (DONE, entry, job)).rowcount
            row = (entry, person)
            if known or not inside.execute("SELECT 1 FROM answers WHERE entry = ? AND person = ? LIMIT 1", row).fetchone():
                values = (job, entry, person, body.encode(), self._clock())
                inside.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", values)

    def fail(self, job: str, problem: Mapping[str, Any]) -> None:
        """Notes why a question has no answer. If nothing was charged, its key is free again."""
        with self._store.transaction() as inside:
            inside.execute("UPDATE jobs SET state = ?, problem = ? WHERE id = ?", (FAILED, json.dumps(problem), job))
            if problem.get("charged") == "nothing":
                inside.execute("DELETE FROM keys WHERE job = ?", (job,))

    def find(self, job: str, person: str) -> Job | None:
        """Returns a job of this person; None if there is none."""
        kept = self._store.read("SELECT body FROM answers WHERE job = ? AND person = ?", job, person)
        if kept:
            return Job(job, person, DONE, body=kept[0][0].decode())
        rows = self._store.read("SELECT state, problem, created, worker FROM jobs WHERE id = ? AND person = ?", job, person)
        if not rows:
            return None
        state, problem, created, worker = rows[0]
        if state == ANSWERING and worker != process(int(worker.partition(".")[0])):
            return Job(job, person, FAILED, problem=LOST)
        ticks = max(0, int((self._clock() - created) // self._tick))
        return Job(job, person, state, ticks, problem=None if problem is None else json.loads(problem))

    def answer(self, entry: int, person: str) -> str | None:
        """Returns the answer of an entry as this person got it last."""
        rows = self._store.read(
            "SELECT body FROM answers WHERE entry = ? AND person = ? ORDER BY created DESC LIMIT 1", entry, person
        )
        return rows[0][0].decode() if rows else None

    def terms(self, entries: Sequence[int | None]) -> dict[int, dict[str, Any]]:
        """Returns the terms at which the answers of these entries were asked for, as far as they were asked for here."""
        numbers = [entry for entry in entries if entry is not None]
        rows = self._store.read(
            "SELECT entry, json_extract(CAST(body AS TEXT), '$.terms') FROM answers "
            f"WHERE entry IN ({', '.join('?' * len(numbers))}) ORDER BY created",
            *numbers,
        )
        return {entry: json.loads(text) for entry, text in rows if text is not None}
