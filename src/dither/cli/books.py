"""`budget`, `history` and `verify`: what was spent, by whom, and whether the books are true. They read no data.

None of them needs the curator's key, so an auditor can run them on a copy.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import CATALOG, Analyst, Catalog, Ledger, app, place, there
from dither.cli.formats import Books, Listing, as_csv
from dither.cli.screen import notes, out, say, show_table
from dither.errors import ArgumentError, LedgerError

if TYPE_CHECKING:
    from dither.ledger.entries import Entry
    from dither.ledger.ledger import Ledger as Opened
    from dither.ledger.receipts import Receipt
    from dither.ledger.store import Store
    from dither.ledger.verify import Report
    from dither.privacy.either import Caps, Sums

_COLUMNS = ("number", "time", "what", "analyst", "epsilon", "delta", "rule", "about", "question")


@app.command("budget")
def _budget(form: Books = Listing.TABLE, catalog: Catalog = CATALOG, ledger: Ledger = None, analyst: Analyst = None) -> None:
    """Show what was spent and what is left, for everyone together, and of one --analyst's quota."""
    from dither.cli import budgets
    from dither.ledger import opening

    with closing(opening.view(place(catalog, ledger))) as books:
        head, quota = books.head(), budgets.quota(books, analyst)
        caps, sums = _standing(books, catalog)
    if form is Listing.JSON:
        typer.echo(json.dumps(budgets.as_json(caps, sums, head, quota), indent=2))
    elif form is Listing.CSV:
        rows = [(line.name, part.sign, *part.plain().values()) for line in budgets.lines(caps, sums) for part in line.parts]
        sys.stdout.write(as_csv([("rule", "part", "total", "spent", "left"), *rows]))
    else:
        budgets.show(out(), caps, sums, quota)


def _standing(books: Opened, catalog: Path) -> tuple[Caps, Sums]:
    """What the ledger says; before its first catalog, what the catalog file declares."""
    from dither.privacy.either import Caps, Sums
    from dither.query.catalog_file import read

    if books.head().number:
        found = books.standing()
        return found.caps, found.sums
    declared = read(there(catalog)).budget
    return Caps.of(declared.epsilon, declared.delta), Sums()


@app.command("history")
def _history(
    form: Books = Listing.TABLE,
    last: Annotated[int | None, typer.Option("--last", "-n", min=1, help="Only so many entries from the end.")] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """List the ledger's entries: who asked what, when, at which price."""
    from dither.ledger import opening
    from dither.ledger.entries import parse

    with closing(opening.view(place(catalog, ledger))) as books:
        start = max(1, books.head().number - last + 1) if last else 1
        rows = (_row(parse(row)) for row in books.store.rows(start))
        if form is Listing.TABLE:
            _table(list(rows))
            typer.echo(f"head {books.head()}", err=True)  # in one piece, to be copied
        else:
            _stream(rows, form)


def _stream(rows: Iterator[dict[str, Any]], form: Listing) -> None:
    """One entry a line, as it is read: a ledger may be long. JSON is one object a line, too."""
    if form is Listing.CSV:
        sys.stdout.write(as_csv([_COLUMNS]))
    for row in rows:
        sys.stdout.write(as_csv([row.values()]) if form is Listing.CSV else json.dumps(row, ensure_ascii=False) + "\n")


def _row(entry: Entry) -> dict[str, Any]:
    """What an entry says, under the names of _COLUMNS; exact numbers as text."""
    from dither.ledger.entries import Cancelled, Committed, Replayed, Reserved

    record = entry.record
    found: dict[str, Any] = dict.fromkeys(_COLUMNS)
    found |= {"number": entry.number, "time": entry.time, "what": entry.kind.partition("/")[0]}
    if isinstance(record, Reserved):
        found |= {"rule": record.rule, "question": " ".join(record.question.split())}
    if isinstance(record, Reserved | Replayed):
        found |= {"analyst": record.analyst, "epsilon": str(record.loss.epsilon), "delta": str(record.loss.delta)}
    if isinstance(record, Committed | Cancelled):
        found["about"] = record.reserved
    if isinstance(record, Replayed):
        found["about"] = record.committed
    return found


def _table(rows: list[dict[str, Any]]) -> None:
    from dither.ledger.state import shown

    cells, narrow = [], sys.stdout.isatty() and out().width < 90
    for row in rows:
        price = f"ε = {shown(Fraction(row['epsilon']), up=True)}" if row["what"] == "reserved" else ""
        if price and row["delta"] != "0":
            price += f", δ = {shown(Fraction(row['delta']), up=True)}"
        time = row["time"][:19].replace("T", " ")
        time = time[5:16] if narrow else time
        text = row["question"] or (f"of {row['about']}" if row["about"] else "")
        cells.append([str(row["number"]), time, row["what"], row["analyst"] or "", price, text])
    show_table(("no", "time (UTC)", "what", "who", "price", "question"), cells, (True, *[False] * 5), long="question")


@app.command("verify")
def _verify(
    head: Annotated[str | None, typer.Option(help="A head kept elsewhere, number:hash: the ledger must still have it.")] = None,
    receipt: Annotated[Path | None, typer.Option(help="A receipt file: the ledger must still have its entries.")] = None,
    public_key: Annotated[str | None, typer.Option(help="The curator's public key, as you know it from elsewhere.")] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """Re-walk the chain, re-add every loss and re-check every signature, with code of its own.

    Rollback to an old copy is found against a receipt or a head from later, and against nothing else.
    """
    from dither.ledger import opening
    from dither.ledger.verify import verify

    if head is not None and not re.fullmatch(r"\d{1,18}:[0-9a-f]{64}", head.strip()):
        raise ArgumentError("A head is written as number:hash.", fix="give it as `dither verify` printed it.")
    held = _receipt(receipt) if receipt is not None else None
    with closing(opening.find(place(catalog, ledger))) as store, notes().status("checking every entry"):
        name, report = store.name, verify(store, head, held, public_key)
        smooth = not report.problems and _has_rho(store)
    if report.problems:
        many = "1 problem" if len(report.problems) == 1 else f"{len(report.problems)} problems"
        typer.echo("\n".join([f"{name}: {many} in {report.entries:,} entries.", *(f"  {each}" for each in report.problems)]))
        raise typer.Exit(1)
    typer.echo(_verdict(name, report, smooth))
    if head is None and receipt is None:
        say(
            "Keep the head elsewhere. An old copy in this one's place is found with --head or --receipt, and by nothing else.",
            "dim",
        )


def _has_rho(store: Store) -> bool:
    """Whether this budget adds up ρ at all: in a pure one the sum of it would only puzzle."""
    from dither.ledger import state

    text = store.get("caps")
    return bool(text and state.caps(text).rho_max)


def _verdict(name: str, report: Report, smooth: bool) -> str:
    from dither.ledger.state import shown

    count = {kind.partition("/")[0]: number for kind, number in report.kinds.items()}
    signs = {"epsilon": "ε", "delta": "δ"} | ({"rho": "ρ", "slack": "δ of keys"} if smooth else {})
    sums = [(sign, report.spent[part]) for part, sign in signs.items()]
    spent = ", ".join(f"{sign} = {shown(value, up=True)}" for sign, value in sums if value)
    lines = [
        f"{name}: {report.entries:,} entries, nothing wrong.",
        f"  answered   {count.get('committed', 0):,}, and {count.get('replayed', 0):,} shown again",
        f"  cancelled  {count.get('cancelled', 0):,} before any row was read",
        f"  open       {report.open:,} charged without an answer so far",
        f"  spent      {spent or 'nothing'}",
        f"  head       {report.head}",
    ]
    return "\n".join(lines)


def _receipt(file: Path) -> Receipt:
    from dither.ledger.receipts import Receipt

    try:
        return Receipt.from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, LedgerError):
        raise ArgumentError(
            f"{file} is no receipt that can be read.", fix="name a file that was saved with an answer."
        ) from None
