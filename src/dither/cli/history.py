"""`history`: who asked what, when, at which price, and how it ended. Reads no data and needs no key.

Each row is one reserved question and how it ended, or a stored answer shown again. `--entries` lists the ledger's entries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from dither.cli import remote
from dither.cli.app import CATALOG, Catalog, Ledger, app, ledger_place
from dither.cli.output import Listing, ListingFormat, as_csv
from dither.cli.remote import Ca, Server
from dither.cli.screen import escape_json, escape_lines, note, out, print_head, show_table

if TYPE_CHECKING:
    from dither.history import HistoryRow

_SCREENFUL = 50


@app.command("history")
def _history(
    context: typer.Context,
    form: ListingFormat = Listing.TABLE,
    entries: Annotated[bool, typer.Option("--entries", help="List the ledger's entries, several per question.")] = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "--last", "-n", min=1, help="Show only the last N. Default: 50 on a terminal, else all."),
    ] = None,
    everyone: Annotated[bool, typer.Option("--everyone", help="With --server: all analysts' questions, for auditors.")] = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """List who asked what, when, at which price, and how it ended.

    With --server, what you asked there.
    """
    from dither.history import ENTRIES, QUESTIONS, questions
    from dither.history import entries as read_entries
    from dither.ledger import opening

    if (server := remote.chosen(context, server)) is not None:
        if entries:
            raise remote.refuse("--entries", "its entries are the auditor's, in the ledger itself")
        _history_there(server, ca, form, limit, everyone)
        return
    with closing(opening.view(ledger_place(catalog, ledger))) as opened:
        last = opened.head().number
        most = limit or (_SCREENFUL if sys.stdout.isatty() else None)
        if entries:
            start = max(1, last - most + 1) if most else 1
            rows, more = read_entries(opened.store, start), start > 1
        else:
            found, more = questions(opened.store, last, most)
            rows = iter(found)
        _show(rows, ENTRIES if entries else QUESTIONS, form, most if more and limit is None else None)
        if form is Listing.TABLE:
            print_head(str(opened.head()))


def _history_there(server: str, ca: str | None, form: Listing, limit: int | None, everyone: bool) -> None:
    from dither.history import QUESTIONS

    most = limit or (_SCREENFUL if sys.stdout.isatty() else None)
    with remote.connected(server, ca) as there:
        rows, more = remote.history(there, most, everyone)
        _show(rows, QUESTIONS, form, most if more and limit is None else None)
        if form is Listing.TABLE:
            print_head(there.seen.head)


def _show(rows: Iterable[HistoryRow], columns: Sequence[str], form: Listing, cut: int | None) -> None:
    """Prints rows, and how many if older ones were left out."""
    if form is Listing.TABLE:
        _table(rows, "state" if "state" in columns else "what")
    else:
        _stream(rows, columns, form)
    sys.stdout.flush()  # print the rows before the notes about them
    if cut is not None:
        note(f"The last {cut} are shown: --limit shows more.", "dim")


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
