"""Checks a ledger after processes that used it were killed."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from dither.curator import Curator
from dither.errors import DitherError
from dither.ledger import opening
from dither.ledger.records import Cancelled, Committed, Reserved
from dither.ledger.verify.report import verify

PRICE = "0.1"


class Journal:
    """What lives have told: "run" when the data is called on for a question, "got" when its answer was given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *line: Any) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())
        if line[0] == "got":
            os.fsync(self._file)

    def lines(self) -> list[list[Any]]:
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def texts(self, kind: str) -> Counter[str]:
        return Counter(line[1] for line in self.lines() if line[0] == kind)


def settled(where: str) -> None:
    """Wait until a server has done with the sessions of the dead: it may still be carrying out what they last said.

    They are known by the name that the address gives them.
    """
    if opening.is_address(where):
        ask = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(where.partition("#")[0], autocommit=True) as link:
            while link.execute(ask).fetchall() != [(0,)]:
                time.sleep(0.001)


def examined(where: str, key: str, journal: Journal, before: str | None) -> tuple[str | None, list[str]]:
    """The new head, and all that is wrong. `before` is the head of before this life: nothing up to it may be lost."""
    settled(where)
    try:
        ledger = opening.open(where, key)
    except DitherError as error:
        return before, [f"the ledger does not open: {error}"]
    try:
        report = verify(ledger.store, head=before)
        entries = list(ledger.history())
        standing = ledger.balance().sums.epsilon
    finally:
        ledger.close()
    problems = [f"verify: {problem}" for problem in report.problems]
    reserved = {entry.number: entry.record.question for entry in entries if isinstance(entry.record, Reserved)}
    cancelled = [entry.record.reserved for entry in entries if isinstance(entry.record, Cancelled)]
    kept = [entry.record.reserved for entry in entries if isinstance(entry.record, Committed)]
    charged = Counter(text for number, text in reserved.items() if number not in cancelled)
    run, got = journal.texts("run"), journal.texts("got")
    problems += [f"the data was read for {text!r} and nothing was charged" for text in run - charged]
    problems += [f"an answer to {text!r} was given and nothing was charged" for text in got - charged]
    problems += [f"an answer to {text!r} was given and is not kept" for text in got - Counter(reserved[n] for n in kept)]
    # Once more in sums, by the code that shares nothing with the ledger's: an answer that came out just before its line was
    # written is among the questions the data was called on for.
    released = Fraction(PRICE) * max(run.total(), got.total())
    if report.spent["epsilon"] < released:
        problems.append(f"spent {report.spent['epsilon']}, released {released}")
    if report.spent["epsilon"] != Fraction(PRICE) * charged.total() or not standing:
        problems.append("a question that was reserved and not cancelled is not charged")
    return report.head, problems


def asked_again(where: str, journal: Journal, open_: Callable[[], Curator], born: Callable[..., tuple[int, int]]) -> list[str]:
    """Asks every question again without being killed: stored answers are shown, others are paid again."""
    ledger = opening.view(where)
    entries = list(ledger.history())
    ledger.close()
    reserved = {entry.number: entry.record.question for entry in entries if isinstance(entry.record, Reserved)}
    kept = {reserved[entry.record.reserved] for entry in entries if isinstance(entry.record, Committed)}
    texts = list(dict.fromkeys(reserved.values()))
    shown = {line[1]: line[2] for line in journal.lines() if line[0] == "got"}

    def ask(_: int) -> None:
        survey = open_()
        for text in texts:
            spent = survey.budget.spent.epsilon
            answer = survey.ask(text, epsilon=PRICE)
            paid = survey.budget.spent.epsilon - spent
            journal.write("again", text, answer.replayed, str(paid), json.loads(json.dumps(answer.rows)))
        survey.ledger.close()

    child, told = born(ask)
    os.close(told)
    if os.waitpid(child, 0)[1]:
        return ["the questions could not be asked again"]
    problems = [] if len(texts) > 1 else ["nothing was asked again"]
    for _, text, replayed, paid, rows in [line for line in journal.lines() if line[0] == "again"]:
        if replayed != (text in kept) or Fraction(paid) != (0 if text in kept else Fraction(PRICE)):
            problems.append(f"{text!r} was asked again, kept: {text in kept}, given again: {replayed}, paid: {paid}")
        if text in shown and shown[text] != rows:
            problems.append(f"{text!r} was answered otherwise when it was asked again")
    if not texts or not set(texts) - kept or not kept:
        problems.append("no question was left unanswered, or none was kept: nothing was tried")
    return problems
