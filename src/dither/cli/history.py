"""`history`: who asked what, when, at which price, and how it ended. Reads no data and needs no key.

Each row is one reserved question and how it ended, or a stored answer shown again. `--entries` lists the ledger's entries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import CATALOG, Catalog, Ledger, app, ledger_place
from dither.cli.output import Listing, ListingFormat, as_csv
from dither.cli.screen import escape_json, escape_lines, note, out, print_head, show_table

if TYPE_CHECKING:
    from dither.ledger.records import Entry, Record
    from dither.ledger.stores.base import Store

ENTRIES = ("number", "time", "what", "analyst", "epsilon", "delta", "rule", "about", "question")
QUESTIONS = ("number", "time", "state", "analyst", "epsilon", "delta", "rule", "question", "quota_epsilon")
_SCREENFUL = 50
_EACH = 4  # first guess of the entries per question

HistoryRow = dict[str, Any]


@app.command("history")
def _history(
    form: ListingFormat = Listing.TABLE,
    entries: Annotated[bool, typer.Option("--entries", help="List the ledger's entries, several per question.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "--last", "-n", min=1, help="Show only the last N. Default: 50 on a terminal, else all."),
    ] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """List who asked what, when, at which price, and how it ended."""
    from dither.ledger import opening

    with closing(opening.view(ledger_place(catalog, ledger))) as opened:
        last = opened.head().number
        most = limit or (_SCREENFUL if sys.stdout.isatty() else None)
        if entries:
            start = max(1, last - most + 1) if most else 1
            rows, more = _entries(opened.store, start), start > 1
        else:
            found, more = _questions(opened.store, last, most)
            rows = iter(found)
        if form is Listing.TABLE:
            _table(rows, "what" if entries else "state")
        else:
            _stream(rows, ENTRIES if entries else QUESTIONS, form)
        sys.stdout.flush()  # print the rows before the notes about them
        if more and limit is None:
            note(f"The last {most} are shown: --limit shows more.", "dim")
        if form is Listing.TABLE:
            print_head(str(opened.head()))


# --- one row for each entry -------------------------------------------------------------------------------------


def _entries(store: Store, start: int) -> Iterator[HistoryRow]:
    from dither.ledger.records import parse

    return (_entry(parse(row)) for row in store.rows(start))


def _entry(entry: Entry) -> HistoryRow:
    """Returns an entry as a row with the columns ENTRIES; exact numbers as text."""
    from dither.ledger.records import (
        Advanced,
        Cancelled,
        Committed,
        Failed,
        Lapsed,
        Reopened,
        Replayed,
        Reserved,
        Restored,
    )

    record = entry.record
    found: HistoryRow = dict.fromkeys(ENTRIES)
    found |= {"number": entry.number, "time": entry.time, "what": entry.kind.partition("/")[0]}
    if isinstance(record, Reserved):
        found |= {"rule": record.rule, "question": _one_line(record.question)}
    if isinstance(record, Reserved | Replayed):
        found |= {"analyst": record.analyst, "epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta)}
    if isinstance(record, Committed | Advanced | Cancelled | Failed | Lapsed):
        found["about"] = record.reserved
    if isinstance(record, Replayed):
        found["about"] = record.committed
    if isinstance(record, Reopened):
        found["about"] = record.closed or None
    if isinstance(record, Restored):
        found["about"] = record.backup
    return found


# --- one row for each question ----------------------------------------------------------------------------------


def _questions(store: Store, last: int, most: int | None) -> tuple[list[HistoryRow], bool]:
    """Returns the last questions, and whether there are more before them. Reads further back until there are enough."""
    back = last if most is None else _EACH * most
    while True:
        start = max(1, last - back + 1)
        found = _read_questions(store, start, last)
        if start == 1 or (most is not None and len(found) > most):
            break
        back *= 2
    more = most is not None and len(found) > most
    return (found[-most:] if most else found), more


def _read_questions(store: Store, start: int, last: int) -> list[HistoryRow]:
    """Returns the questions from entry `start` on. How a question ended is always in a later entry."""
    from dither.ledger.records import Replayed, Reserved, parse

    found: dict[int, HistoryRow] = {}
    quotas = _has_quotas(store)
    for each in store.rows(start, last) if last else ():
        entry = parse(each)
        record, place = entry.record, {"number": entry.number, "time": entry.time}
        if isinstance(record, Reserved):
            price = {"epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta), "rule": record.rule}
            asked = {"question": _one_line(record.question), "quota_epsilon": price["epsilon"] if quotas else None}
            found[entry.number] = place | {"state": "reserved", "analyst": record.analyst} | price | asked
        elif isinstance(record, Replayed):
            free = {"epsilon": "0", "delta": "0", "rule": None}
            paid = str(record.loss.epsilon) if quotas else None
            shown = {"question": _question_of(store, record.committed, found), "quota_epsilon": paid}
            found[entry.number] = place | {"state": "shown again", "analyst": record.analyst} | free | shown
        elif (row := found.get(getattr(record, "reserved", 0))) is not None:
            _set_state(row, record)
    return list(found.values())


def _has_quotas(store: Store) -> bool:
    """Returns whether analysts have quotas now. Without quotas, the use of each analyst is not shown."""
    from dither.ledger.state import Terms

    text = store.get("catalog")
    return bool(text and Terms.parse(text).per_analyst is not None)


def _set_state(row: HistoryRow, record: Record) -> None:
    """Sets how a reserved question ended."""
    from dither.ledger.records import ENGINE, Advanced, Cancelled, Committed, Failed

    if isinstance(record, Failed):
        row["state"] = "failed" if record.why == ENGINE else "interrupted"
    else:
        row["state"] = {Committed: "answered", Advanced: "answered", Cancelled: "cancelled"}.get(type(record), "process died")
    if isinstance(record, Cancelled) and row["quota_epsilon"] is not None:
        row["quota_epsilon"] = "0"


def _question_of(store: Store, committed: int, found: dict[int, HistoryRow]) -> str:
    """Returns the question of a stored answer, which may be before the listed entries."""
    from dither.ledger.records import Committed, Reserved, parse

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


# --- output -----------------------------------------------------------------------------------------------------


def _stream(rows: Iterable[HistoryRow], columns: Sequence[str], form: Listing) -> None:
    """Writes one row per line as it is read: a ledger may be long. JSON is one object per line."""
    safe = escape_lines if sys.stdout.isatty() else str
    if form is Listing.CSV:
        sys.stdout.write(as_csv([columns]))
    for row in rows:
        if form is Listing.CSV:
            sys.stdout.write(safe(as_csv([[row[name] for name in columns]])))
        else:
            sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=False)) + "\n")


def _table(rows: Iterable[HistoryRow], state: str) -> None:
    cells, narrow = [], sys.stdout.isatty() and out().width < 90
    for row in rows:
        time = row["time"][:19].replace("T", " ")
        time = time[5:16] if narrow else time
        text = row["question"] or (f"of {row['about']}" if row.get("about") else "")
        cells.append([str(row["number"]), time, row[state], row["analyst"] or "", _price(row, state), row["rule"] or "", text])
    columns = ("no", "time (UTC)", state, "who", "price", "rule", "question")
    show_table(columns, cells, (True, *[False] * 6), long="question")


def _price(row: HistoryRow, state: str) -> str:
    """Shows what was charged, rounded up."""
    from dither.exact.numbers import show_about

    if row[state] == "shown again":
        quota = row["quota_epsilon"]
        return "nothing" if quota in (None, "0") else f"nothing; ε = {show_about(Fraction(quota), up=True)} of the quota"
    if row[state] == "cancelled" and row["epsilon"]:
        return "given back"
    if row["epsilon"] is None or row[state] == "replayed":
        return ""
    slack = f", δ = {show_about(Fraction(row['delta']), up=True)}" if row["delta"] != "0" else ""
    return f"ε = {show_about(Fraction(row['epsilon']), up=True)}{slack}"
