"""`budget` and `verify`: what was spent, and whether the books are true. They read no data.

Neither needs the curator's key, so an auditor can run them on a copy.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import CATALOG, Analyst, Catalog, Ledger, Witness, app, place, there
from dither.cli.formats import Books, Listing, Verdict, as_csv
from dither.cli.screen import harmless, harmless_json, notes, out, say
from dither.errors import ArgumentError, Fix, LedgerError, Shell

if TYPE_CHECKING:
    from dither.ledger.ledger import Ledger as Opened
    from dither.ledger.receipts import Receipt
    from dither.ledger.state import Terms
    from dither.ledger.store import Store
    from dither.ledger.verify import Report
    from dither.query.catalog import Budget
    from dither.standing import Standing


@app.command("budget")
def _budget(form: Books = Listing.TABLE, catalog: Catalog = CATALOG, ledger: Ledger = None, analyst: Analyst = None) -> None:
    """Show what was spent and what is left, for everyone together, and of one --analyst's quota."""
    from dither import standing
    from dither.cli import budgets
    from dither.ledger import opening

    with closing(opening.view(place(catalog, ledger))) as books:
        head, (budget, declared) = books.head(), _standing(books, catalog)
        quota = None if analyst is None else standing.quota(books, budget.caps, declared, analyst)
        closed = books.fuse().closed
    if form is Listing.JSON:
        found = budgets.as_data(budget, head, quota) | {"closed": closed or None}
        typer.echo(json.dumps(found, indent=2))  # ASCII: a name is only shown
    elif form is Listing.CSV:
        sys.stdout.write(as_csv([budgets.COLUMNS, *budgets.as_rows(budget, quota)]))
    else:
        budgets.show(out(), budget, quota)
    if analyst is not None and quota is None:
        sys.stdout.flush()
        say(f"This catalog has no quotas: {harmless(analyst)} may use all that is left.", "dim")
    if closed:
        sys.stdout.flush()
        say(f"Entry {closed} closed the catalog to new questions: dither reopen shows the curator why, and opens it again.")


def _standing(books: Opened, catalog: Path) -> tuple[Standing, Terms | Budget]:
    """What the ledger says; before its first catalog, what the catalog file declares."""
    from dither.ledger.state import Terms
    from dither.privacy.filters import Caps, Sums
    from dither.query.catalog_file import read
    from dither.standing import Standing

    if books.head().number:
        found = books.standing()
        return Standing(found.caps, found.sums), Terms.parse(books.store.get("catalog") or "")
    declared = read(there(catalog)).budget
    return Standing(Caps.of(declared.epsilon, declared.delta), Sums()), declared


@app.command("verify")
def _verify(
    head: Annotated[str | None, typer.Option(help="A head kept elsewhere, number:hash: the ledger must still have it.")] = None,
    receipt: Annotated[
        list[Path] | None, typer.Option(help="A receipt file: the ledger must still have its entries. May be given again.")
    ] = None,
    witness: Witness = None,
    public_key: Annotated[str | None, typer.Option(help="The curator's public key, as you know it (-f json shows it).")] = None,
    form: Annotated[Verdict, typer.Option("--format", "-f", help="How to write it.")] = Verdict.TABLE,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """Re-walk the chain, re-add every loss and re-check every signature, with code of its own.

    Rollback to an old copy is found against a receipt, a head or a witness from later, and against nothing else.
    """
    from dither.ledger import opening
    from dither.ledger.verify import verify

    _well_written(public_key)
    heads = {} if head is None else {"the head": head_of(head)}
    held = {f"the receipt {file}": receipt_of(file) for file in receipt or ()}
    with closing(opening.readable(place(catalog, ledger))) as store, notes().status("checking every entry"):
        seen = _witnessed(witness, store)
        name, report = store.name, verify(store, heads | seen, held, public_key)
        smooth = not report.problems and _has_rho(store)
        signed = {} if report.problems else {"public_key": json.loads(store.get("ledger") or "{}").get("public_key")}
    if form is Verdict.JSON:
        typer.echo(harmless_json(json.dumps(_as_json(name, report) | signed, indent=2, ensure_ascii=False)))
    elif report.problems:
        many = "1 problem" if len(report.problems) == 1 else f"{len(report.problems)} problems"
        told = [f"{name}: {many} in {report.entries:,} entries.", *(f"  {each}" for each in report.problems)]
        typer.echo("\n".join(map(harmless, told)))  # who meddled with a ledger may have left something for the terminal
    else:
        typer.echo(_verdict(harmless(name), report, smooth, receipt or (), witness if seen else None))
    if report.problems:
        raise typer.Exit(1)
    if not (heads or seen or held):
        say(
            "Keep the head elsewhere. An old copy in this one's place is found with --head, --receipt or --witness, "
            "and by nothing else.",
            "dim",
        )


def _witnessed(file: Path | None, store: Store) -> dict[str, str]:
    """The newest head in the witness, read before the ledger is: a question that is asked meanwhile is in both then."""
    from dither.ledger.state import Identity
    from dither.ledger.witness import Witness

    if file is None:
        return {}
    try:
        identity = Identity.parse(store.get("ledger"), store.name)
    except LedgerError:
        return {}  # verification says what is wrong
    seen = Witness(file).newest(identity.ledger)
    if seen is None:
        say(f"The witness {harmless(str(file))} has no head of this ledger: dither witness adds one.")
        return {}
    return {f"the witness {file}": str(seen)}


def _has_rho(store: Store) -> bool:
    """Whether this budget adds up ρ at all: in a pure one the sum of it would only puzzle."""
    from dither.ledger import state

    text = store.get("caps")
    return bool(text and state.caps(text).rho_max)


def _verdict(name: str, report: Report, smooth: bool, receipts: Sequence[Path], witness: Path | None) -> str:
    from dither.exact.numbers import about

    count = {kind.partition("/")[0]: number for kind, number in report.kinds.items()}
    signs = {"epsilon": "ε", "delta": "δ"} | ({"rho": "ρ", "slack": "δ of keys"} if smooth else {})
    sums = [(sign, report.spent[part]) for part, sign in signs.items()]
    spent = ", ".join(f"{sign} = {about(value, up=True)}" for sign, value in sums if value)
    lines = [
        f"{name}: {report.entries:,} entries, nothing wrong.",
        f"  answered   {count.get('committed', 0):,}, and {count.get('replayed', 0):,} shown again",
        f"  cancelled  {count.get('cancelled', 0):,} before any row was read",
        f"  open       {report.open:,} charged without an answer so far",
        f"  spent      {spent or 'nothing'}",
        *([f"  closed     by entry {report.closed}: no new questions until dither reopen"] if report.closed else []),
        *([f"  restored   from a backup, {_times(report.restored)}"] if report.restored else []),
        *(f"  receipt    {harmless(str(file))}: the ledger has its entries" for file in dict.fromkeys(receipts)),
        *([f"  witness    {harmless(str(witness))}: the ledger has its newest head"] if witness else []),
        f"  head       {report.head}",
    ]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _as_json(name: str, report: Report) -> dict[str, Any]:
    """The verdict for programs; exact numbers as text."""
    count = {kind.partition("/")[0]: number for kind, number in report.kinds.items()}
    return {
        "ledger": name,
        "ok": report.ok,
        "problems": list(report.problems),
        "entries": report.entries,
        "answered": count.get("committed", 0),
        "shown_again": count.get("replayed", 0),
        "cancelled": count.get("cancelled", 0),
        "open": report.open,
        "closed": report.closed or None,
        "restored": report.restored,
        "spent": {part: str(value) for part, value in report.spent.items()},
        "head": report.head,
    }


def receipt_of(file: Path) -> Receipt:
    """A receipt from its file; what is none is a slip of whoever named it."""
    from dither.ledger.receipts import Receipt

    saved = Fix("name the file that `{ask}` wrote.", ask=Shell("dither ask --receipt"))
    try:
        return Receipt.from_json(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ArgumentError(f"There is no receipt {file} here.", fix=saved) from None
    except IsADirectoryError:
        raise ArgumentError(f"{file} is a folder, and a receipt is a file.", fix=saved) from None
    except OSError:
        raise ArgumentError(f"{file} cannot be read.", fix="see that you may read it, or ask for a copy.") from None
    except (UnicodeDecodeError, LedgerError):
        raise ArgumentError(f"{file} is no receipt of dither, or not a whole one.", fix=saved) from None


def head_of(text: str) -> str:
    """A head as it was written down: a slip of the pen must not read as a ledger that was meddled with."""
    if not re.fullmatch(r"[0-9]{1,18}:[0-9a-f]{64}", text.strip()):
        raise ArgumentError(
            "A head is written as number:hash, the hash in 64 digits from 0 to f.",
            fix=f"give it as `dither verify` printed it, as in 8:{'d9dfd342' * 8}.",
        )
    return text.strip()


def _well_written(public_key: str | None) -> None:
    if public_key is not None and not re.fullmatch(r"[0-9a-f]{64}", public_key):
        raise ArgumentError(
            "A public key is written in 64 digits from 0 to f.",
            fix=Fix("give it as `{verify}` printed it.", verify=Shell("dither verify --format json")),
        )
