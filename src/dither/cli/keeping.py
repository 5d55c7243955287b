"""`backup`, `restore`, `witness` and `reopen`: keeping a ledger from day to day. They read no data."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from dither.cli.app import CATALOG, Catalog, Key, Ledger, Witness, app, outputs_of, place, signing
from dither.cli.books import head_of, receipt_of
from dither.cli.screen import harmless, harmless_lines, notes, say, say_head
from dither.errors import ArgumentError, CatalogError


@app.command("backup")
def _backup(
    file: Annotated[Path, typer.Argument(help="The new file to write.", show_default=False)],
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """Copy the ledger as it is now into a new file. Needs no key, and questions may go on meanwhile.

    Nobody can spend from a backup. budget, history and verify read it: dither verify --ledger FILE.
    """
    from dither.ledger import copies

    where = place(catalog, ledger)
    _free(file, catalog, where)
    head = copies.back_up(where, file)
    say(f"{harmless(str(file))} is a backup up to entry {head.number}. Keep it, and a copy of the key, on another disk.")
    say_head(str(head))


def _free(file: Path, catalog: Path, where: str) -> None:
    """Refuses a new file among the data or the ledger's own files, as far as a catalog says where those are."""
    try:
        what = outputs_of(catalog, where, None, False).protected.name_of(file) if catalog.is_file() else None
    except CatalogError:
        return  # a ledger is kept whatever is wrong with its catalog
    if what is not None and not os.path.lexists(file):
        raise ArgumentError(f"{file} would become part of {what}.", fix="name another file.")


@app.command("restore")
def _restore(
    backup: Annotated[Path, typer.Argument(help="The file that `dither backup` wrote.", show_default=False)],
    head: Annotated[list[str] | None, typer.Option(help="A head kept elsewhere, number:hash. May be given again.")] = None,
    receipt: Annotated[list[Path] | None, typer.Option(help="A receipt file, the newest there is. May be given again.")] = None,
    witness: Witness = None,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="Restore though nothing from elsewhere is named.")] = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Make a ledger from a backup, where the ledger was lost. The new ledger says so in an entry of its own.

    Refused where a ledger is, and if the backup lacks what a head, a receipt or the witness names.
    """
    from dither.ledger import copies
    from dither.ledger import witness as witnesses

    heads = {f"the head {head_of(each)}": head_of(each) for each in head or ()}
    receipts = {f"the receipt {file}": receipt_of(file) for file in receipt or ()}
    evidence = copies.Evidence(heads, receipts, None if witness is None else witnesses.Witness(witness))
    where = place(catalog, ledger)
    beside = [place(catalog, None)] if ledger else []
    with notes().status("checking every entry"):
        made = copies.restore(backup, where, signing(where, key), evidence, unchecked=unchecked, beside=beside)
    say(f"The ledger goes on from {harmless(str(backup))}, which ends with entry {made.backup}.")
    if made.checked:
        say(f"The newest entry known from elsewhere is {made.checked.partition(':')[0]}, and the backup has it.")
        if witness is None:
            say("A head or a receipt tells nothing about later answers: those are spent, and this ledger does not count them.")
    else:
        say("Nothing was compared. What was answered after the backup was made is spent, and this ledger does not count it.")
    say_head(str(made.head))


@app.command("witness")
def _witness(
    file: Annotated[Path, typer.Argument(help="The file of heads, on another disk or machine.", show_default=False)],
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """Compare the ledger with the newest head in a file, and add the present one. Makes the file if it is missing.

    With --witness FILE, or DITHER_WITNESS, every question does the same: an older copy of the ledger then answers nothing.
    """
    from dither.ledger import opening, witness

    where, kept = place(catalog, ledger), witness.Witness(file)
    if not file.exists():
        _free(file, catalog, where)
    with closing(opening.readable(where, backup=False)) as store:
        made = kept.create()
        seen, head = witness.bring_up_to_date(kept, store)
    name = harmless(str(file))
    if seen is not None:
        say(f"The ledger has entry {seen.number}, the newest that {name} names.")
    if not head.number:
        say("The ledger has no entries yet, so there is no head to keep: the first question adds it.")
    elif head != seen:
        say(f"The head of entry {head.number} is in {name} now.")
    if made:
        say(f"{name} is made. Compare with it at every question: --witness {name} or DITHER_WITNESS={name};")
        say(f'in Python dt.open(…, witness="{name}").')
    if file.absolute().parent == Path(where).absolute().parent:
        say("It lies beside the ledger: whoever puts an old copy of the folder back puts both back. Keep it elsewhere.")


@app.command("reopen")
def _reopen(catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None, witness: Witness = None) -> None:
    """Let new questions in again after a failure closed the catalog. Shows why the engine failed, to the curator only."""
    from dither import curator
    from dither.ledger import opening

    where = place(catalog, ledger)
    with closing(opening.open(where, signing(where, key), witness)) as books:
        diagnosis = curator.diagnosis_of(catalog, where, key)
        if found := diagnosis.read():
            for line in harmless_lines(found.rstrip()).split("\n"):
                say(line)
        forgiven = books.reopen()
        diagnosis.clear()
    dead = (
        f"{forgiven.dead} death{'s' if forgiven.dead > 1 else ''} of processes {'are' if forgiven.dead > 1 else 'is'} forgiven"
    )
    if forgiven.closed:
        say(f"The catalog is open again. Entry {forgiven.closed} had closed it{f'; {dead}' if forgiven.dead else ''}.")
    elif forgiven.dead:
        say(f"The catalog was not closed; {dead}.")
    else:
        say("The catalog is not closed: there is nothing to reopen.")
