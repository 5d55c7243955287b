"""`approvals`, `close` and `rotate`: questions that wait for a curator, no new questions at all, and another key."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dither.cli.app import CATALOG, Catalog, Key, Ledger, Witness, app, existing_ledger, key_file, ledger_place
from dither.cli.output import Listing, ListingFormat
from dither.cli.screen import escape, escape_json, note, print_head, show_table
from dither.errors import ArgumentError, Fix, Shell

if TYPE_CHECKING:
    from dither.ledger.ledger import Ledger as Opened

By = Annotated[str | None, typer.Option("--by", help="Name of the curator who decides.")]
Words = Annotated[str, typer.Option(help="The reason, for the ledger.")]


@app.command("approvals")
def _approvals(
    approve: Annotated[int | None, typer.Option(min=1, help="Request to approve.")] = None,
    refuse: Annotated[int | None, typer.Option(min=1, help="Request to refuse.")] = None,
    by: By = None,
    words: Words = "",
    days: Annotated[float, typer.Option(min=0.0, max=366.0, help="Days in which the approval may be used.")] = 7.0,
    form: ListingFormat = Listing.TABLE,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """List questions that wait for a curator, or decide on one."""
    if approve is not None or refuse is not None:
        if (approve is None) == (refuse is None) or by is None:
            fix = Fix("write {it}.", it=Shell("dither approvals --approve 12 --by cora"))
            raise ArgumentError("A decision is on one request, by somebody.", fix=fix)
        number = approve if approve is not None else refuse or 0
        with closing(_open(catalog, ledger, key)) as opened:
            opened.decide(number, by, approve=approve is not None, words=words, seconds=86400 * days)
        note(f"Request {number} is {'approved' if approve is not None else 'refused'}.")
        return
    _list(form, ledger_place(catalog, ledger))


def _list(form: Listing, where: str) -> None:
    from dither.history import ApprovalLog
    from dither.ledger import opening
    from dither.ledger.ledger import time_now

    with closing(opening.view(where)) as opened:
        rows = ApprovalLog(opened.store).read(opened.head().number, time_now())
    if form is Listing.JSON:
        for row in rows:
            typer.echo(escape_json(json.dumps(row, ensure_ascii=False)))
        return
    names = ("id", "state", "analyst", "epsilon", "by", "question")
    cells = [[str(row[name] if row[name] is not None else "") for name in names] for row in rows]
    show_table(
        ("no", *names[1:]), [[*each[:-1], " ".join(each[-1].split())] for each in cells], (True, *[False] * 5), "question"
    )


@app.command("close")
def _close(
    by: Annotated[str, typer.Option("--by", help="Name of the curator who closes it.")],
    words: Words = "",
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Close the catalog to new questions, until dither reopen. Stored answers are still given."""
    with closing(_open(catalog, ledger, key)) as opened:
        head = opened.close_questions(by, words)
    note(f"Closed to new questions by entry {head.number}: dither reopen opens it again. {escape(by)} is on record.")


@app.command("rotate")
def _rotate(
    by: Annotated[str, typer.Option("--by", help="Name of the curator who rotates it.")],
    words: Words = "",
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    witness: Witness = None,
) -> None:
    """Replace the ledger's key by a new one. Both sign the entry that says so.

    What was signed before stays valid. Servers must be restarted: with the old key they refuse every question, uncharged.
    If the command is interrupted, run it again: it finishes what was begun.
    """
    from dither.ledger import rotation

    where = existing_ledger(catalog, ledger)
    made = rotation.rotate(where, key_file(where, key), by, words, witness)
    if made.resumed:
        note("An interrupted rotation is finished; no other one was begun.")
    note(f"The new key is in force, and analysts' programs follow it. Its public key is {made.public_key}.")
    note(f"The old one is {escape(made.retired.name)}: it signs nothing any more. Only backups from before need it.")
    note("Back up the new key and the ledger now, and restart the servers.")
    print_head(str(made.head))


def _open(catalog: Path, ledger: str | None, key: Path | None) -> Opened:
    from dither.ledger import opening

    where = existing_ledger(catalog, ledger)
    return opening.open(where, key_file(where, key))
