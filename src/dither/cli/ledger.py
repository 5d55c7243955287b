"""`budget`, `verify`, `backup`, `restore`, `witness` and `reopen`: the commands about the ledger. They read no data.

`budget`, `verify`, `backup` and `witness` need no key, so an auditor can run them on a copy.

With a delta there are two sums, and a question is admitted if it fits one of them; each sum has its bar. An analyst's quota
has the same sums and bars as the whole budget.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dither.cli import remote
from dither.cli.app import (
    CATALOG,
    Analyst,
    Catalog,
    Key,
    Ledger,
    Witness,
    app,
    existing_catalog,
    key_file,
    ledger_place,
    outputs_of,
)
from dither.cli.output import Listing, ListingFormat, Verdict, as_csv
from dither.cli.remote import Ca, Server
from dither.cli.screen import bar, escape, escape_json, escape_lines, note, notes, out, print_head, wrap_words
from dither.errors import ArgumentError, CatalogError, Fix, LedgerError, Shell

if TYPE_CHECKING:
    from dither.catalog.values import Budget
    from dither.ledger.ledger import Ledger as Opened
    from dither.ledger.receipts import Receipt
    from dither.ledger.state import Head, Terms
    from dither.ledger.stores.base import Store
    from dither.ledger.verify.report import Report
    from dither.standing import Line, Part, Standing

COLUMNS = ("rule", "part", "total", "spent", "left", "analyst")
_NAME = 20  # most letters of an analyst's name beside a bar
_BAR, _WORDS = 8, 28  # the least width of a bar, and of the words beside it


def show(console: Console, budget: Standing, quota: Standing | None = None) -> None:
    """Prints a bar for each sum, as wide as the window allows."""
    found = _labels("budget", "", budget.lines)
    if quota is not None:
        name = f"{_short(escape(quota.analyst))}'s quota"
        found += _labels(name, f"{name} ", quota.lines)
    rows = [
        (label, line.fullest, "; ".join(p.words() for p in line.parts if p.spent or p is line.parts[0]))
        for label, line in found
    ]
    labels, told = max(cell_len(label) for label, _, _ in rows), max(cell_len(words) for _, _, words in rows)
    if console.width - labels - _BAR - 4 < min(told, _WORDS):
        _print_below(console, rows)
        return
    width = max(_BAR, min(30, console.width - labels - told - 4))
    grid = Table.grid(padding=(0, 2))
    for label, part, words in rows:
        beside = wrap_words(words, console.width - labels - width - 4)
        grid.add_row(Text(label, style="bold", no_wrap=True), bar(part.spent, part.total, width), Text(beside))
    console.print(grid)


def _print_below(console: Console, rows: list[tuple[str, Part, str]]) -> None:
    """Prints the words below the bars, in a narrow window."""
    for label, part, words in rows:
        console.print(Text(wrap_words(label, console.width), style="bold"), soft_wrap=True)
        console.print(Text("  ") + bar(part.spent, part.total, min(30, max(1, console.width - 2))), soft_wrap=True)
        console.print(Text(wrap_words(f"  {words}", console.width, "  ")), soft_wrap=True)


def _labels(alone: str, before: str, found: tuple[Line, ...]) -> list[tuple[str, Line]]:
    """Returns each sum with its label. Two alternative sums are labelled by what they add up."""
    if not any(part.sign == "δ" for part in found[0].parts):
        return [(alone, found[0])]
    return list(zip((f"{before}by ε", "or by ρ"), found, strict=False))


def _short(name: str) -> str:
    """Cuts a long name to fit beside a bar."""
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def as_rows(budget: Standing, quota: Standing | None = None) -> list[tuple[str, ...]]:
    """Returns every exact sum as a row with COLUMNS: those of everyone, and those of an analyst's quota."""
    standings = [budget, *([quota] if quota is not None else [])]
    return [
        (line.rule, part.sign, *part.as_data().values(), each.analyst)
        for each in standings
        for line in each.lines
        for part in line.parts
    ]


def as_data(budget: Standing, head: Head, quota: Standing | None = None) -> dict[str, Any]:
    """Returns the budget as JSON data, with exact numbers as text. A quota has the same rules, and its epsilon once more."""
    found: dict[str, Any] = budget.as_data() | {"entries": head.number, "head": str(head)}
    if quota is not None:
        own = quota.as_data()
        found["analyst"] = {"name": quota.analyst, "epsilon": own["rules"]["sum"]["epsilon"]} | own
    return found


@app.command("budget")
def _budget(
    context: typer.Context,
    form: ListingFormat = Listing.TABLE,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    analyst: Analyst = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """Show what is spent and what is left of the budget.

    With --analyst, also of that analyst's quota; with --server, of yours.
    """
    from dither import standing
    from dither.ledger import opening
    from dither.ledger.state import Head

    if (server := remote.chosen(context, server)) is not None:
        with remote.connected(server, ca) as there:
            head, closed = Head(there.seen.number, there.seen.hash), int(there.closed)
            budget, quota = there.budget, None if there.catalog.budget.per_analyst is None else there.quota()
    else:
        with closing(opening.view(ledger_place(catalog, ledger))) as opened:
            head, (budget, declared) = opened.head(), _standing(opened, catalog)
            quota = None if analyst is None else standing.quota(opened, budget.caps, declared, analyst)
            closed = opened.fuse().closed
    if form is Listing.JSON:
        found = as_data(budget, head, quota) | {"closed": (closed if server is None else True) if closed else None}
        typer.echo(json.dumps(found, indent=2))  # ASCII, so that a name cannot control a terminal
    elif form is Listing.CSV:
        sys.stdout.write(as_csv([COLUMNS, *as_rows(budget, quota)]))
    else:
        show(out(), budget, quota)
    if analyst is not None and quota is None:
        sys.stdout.flush()
        note(f"This catalog has no quotas: {escape(analyst)} may use all that is left.", "dim")
    if closed and server is not None:
        sys.stdout.flush()
        note("The catalog is closed to new questions: stored answers are still given. The curator opens it again.")
    elif closed:
        sys.stdout.flush()
        note(f"Entry {closed} closed the catalog to new questions: dither reopen shows the curator why, and opens it again.")


def _standing(opened: Opened, catalog: Path) -> tuple[Standing, Terms | Budget]:
    """Returns the budget in the ledger or, before its first catalog, the one in the catalog file."""
    from dither.catalog.file import read
    from dither.ledger.state import Terms
    from dither.privacy.filters import Caps, Sums
    from dither.standing import Standing

    if opened.head().number:
        found = opened.balance()
        return Standing(found.caps, found.sums), Terms.parse(opened.store.get("catalog") or "")
    declared = read(existing_catalog(catalog)).budget
    return Standing(Caps.of(declared.epsilon, declared.delta), Sums()), declared


@app.command("verify")
def _verify(
    context: typer.Context,
    head: Annotated[str | None, typer.Option(help="Head kept elsewhere (number:hash) that the ledger must have.")] = None,
    receipt: Annotated[
        list[Path] | None, typer.Option(help="Receipt file whose entries the ledger must have. Repeatable.")
    ] = None,
    witness: Witness = None,
    public_key: Annotated[str | None, typer.Option(help="Expected public key of the curator (-f json prints it).")] = None,
    form: Annotated[Verdict, typer.Option("--format", "-f", help="Output format.")] = Verdict.TABLE,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """Check every entry, sum and signature of the ledger.

    Needs no key and no data. Only a later --head, --receipt or --witness detects that the ledger is an older copy.
    With --server, auditors let the server verify; --head and --receipt are compared here, by anyone.
    """
    from dither.ledger import opening
    from dither.ledger.verify.report import verify

    _check_public_key(public_key)
    heads = {} if head is None else {"the head": head_of(head)}
    held = {f"the receipt {file}": receipt_of(file) for file in receipt or ()}
    if (server := remote.chosen(context, server)) is not None:
        _verify_there(server, ca, heads, held, receipt or (), public_key, form)
        return
    with closing(opening.open_readonly(ledger_place(catalog, ledger))) as store, notes().status("checking every entry"):
        seen = _witnessed(witness, store)
        name, report = store.name, verify(store, heads | seen, held, public_key)
        smooth = not report.problems and _has_rho(store)
        signed = {} if report.problems else {"public_key": _key_in_force(store)}
    _tell(name, report, signed, form, smooth, receipt or (), witness if seen else None)
    if not (heads or seen or held):
        note(
            "Keep the head elsewhere. An old copy in this one's place is found with --head, --receipt or --witness, "
            "and by nothing else.",
            "dim",
        )


def _tell(
    name: str,
    report: Report,
    signed: dict[str, str],
    form: Verdict,
    smooth: bool,
    receipts: Sequence[Path],
    witness: Path | None = None,
) -> None:
    """Prints the verdict, and exits with 1 if something is wrong."""
    if form is Verdict.JSON:
        typer.echo(escape_json(json.dumps({"ledger": name} | report.as_data() | signed, indent=2, ensure_ascii=False)))
    elif report.problems:
        many = "1 problem" if len(report.problems) == 1 else f"{len(report.problems)} problems"
        told = [f"{name}: {many} in {report.entries:,} entries.", *(f"  {each}" for each in report.problems)]
        typer.echo("\n".join(map(escape, told)))  # an edited ledger may contain control sequences
    else:
        typer.echo(_verdict(escape(name), report, smooth, receipts, witness))
    if report.problems:
        raise typer.Exit(1)


def _verify_there(
    server: str,
    ca: str | None,
    heads: dict[str, str],
    held: dict[str, Receipt],
    receipts: Sequence[Path],
    public_key: str | None,
    form: Verdict,
) -> None:
    """Verifies the ledger of a server."""
    with remote.connected(server, ca, public_key) as there, notes().status("checking every entry"):
        report, problems = remote.verify(there, heads, held)
        signed = {} if report is None or report.problems else {"public_key": there.keys.in_force}
        name, smooth = there.transport.origin, bool(there.caps.rho_max)
    if report is None:
        _tell_kept(name, problems, [*heads, *held], form)
        return
    _tell(name, report, signed, form, smooth, receipts)
    note("The server read its own ledger. Auditors who have the file verify it themselves: dither verify --ledger FILE.", "dim")


def _tell_kept(name: str, problems: list[str], kept: list[str], form: Verdict) -> None:
    """Prints what comparing heads and receipts found, for somebody who may not verify the whole."""
    if form is Verdict.JSON:
        typer.echo(escape_json(json.dumps({"ledger": name, "ok": not problems, "problems": problems}, indent=2)))
    elif problems:
        typer.echo("\n".join(map(escape, [f"{name}:", *(f"  {each}" for each in problems)])))
    else:
        typer.echo("\n".join(map(escape, [f"{name}:", *(f"  {each}: the ledger has its entries" for each in kept)])))
    if problems:
        raise typer.Exit(1)
    note("Only these were compared: verifying the whole ledger is for auditors.", "dim")


def _key_in_force(store: Store) -> str:
    from dither.ledger.receipts import Keys
    from dither.ledger.state import Identity

    return Keys.parse(store.get("keys"), *Identity.parse(store.get("ledger"), store.name)).in_force


def _witnessed(file: Path | None, store: Store) -> dict[str, str]:
    """Returns the newest head in the witness. Read it before the ledger, so that a question asked meanwhile is no problem."""
    from dither.ledger.state import Identity
    from dither.ledger.witness import Witness

    if file is None:
        return {}
    try:
        identity = Identity.parse(store.get("ledger"), store.name)
    except LedgerError:
        return {}  # verification reports what is wrong
    seen = Witness(file).newest(identity.ledger)
    if seen is None:
        note(f"The witness {escape(str(file))} has no head of this ledger: dither witness adds one.")
        return {}
    return {f"the witness {file}": str(seen)}


def _has_rho(store: Store) -> bool:
    """Returns whether this budget adds up ρ."""
    from dither.ledger import state

    text = store.get("caps")
    return bool(text and state.decode_caps(text).rho_max)


def _verdict(name: str, report: Report, smooth: bool, receipts: Sequence[Path], witness: Path | None) -> str:
    from dither.exact.numbers import show_about

    count = {kind.partition("/")[0]: number for kind, number in report.kinds.items()}
    signs = {"epsilon": "ε", "delta": "δ"} | ({"rho": "ρ", "slack": "δ of keys"} if smooth else {})
    sums = [(sign, report.spent[part]) for part, sign in signs.items()]
    spent = ", ".join(f"{sign} = {show_about(value, up=True)}" for sign, value in sums if value)
    lines = [
        f"{name}: {report.entries:,} entries, nothing wrong.",
        f"  answered   {count.get('committed', 0):,}, and {count.get('replayed', 0):,} shown again",
        f"  cancelled  {count.get('cancelled', 0):,} before any row was read",
        f"  open       {report.open:,} charged without an answer so far",
        f"  spent      {spent or 'nothing'}",
        *([f"  closed     by entry {report.closed}: no new questions until dither reopen"] if report.closed else []),
        *([f"  rotated    the key, {_times(count['rotated'])}; each time both keys signed"] if "rotated" in count else []),
        *([f"  restored   from a backup, {_times(report.restored)}"] if report.restored else []),
        *(f"  receipt    {escape(str(file))}: the ledger has its entries" for file in dict.fromkeys(receipts)),
        *([f"  witness    {escape(str(witness))}: the ledger has its newest head"] if witness else []),
        f"  head       {report.head}",
    ]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def receipt_of(file: Path) -> Receipt:
    """Reads a receipt. Refuses a file that is not one as wrong usage: the ledger itself was not judged."""
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
    """Returns the head. Refuses a malformed one as wrong usage: a typo must not look like an edited ledger."""
    if not re.fullmatch(r"[0-9]{1,18}:[0-9a-f]{64}", text.strip()):
        raise ArgumentError(
            "A head is written as number:hash, the hash in 64 digits from 0 to f.",
            fix=f"give it as `dither verify` printed it, as in 8:{'d9dfd342' * 8}.",
        )
    return text.strip()


def _check_public_key(public_key: str | None) -> None:
    if public_key is not None and not re.fullmatch(r"[0-9a-f]{64}", public_key):
        raise ArgumentError(
            "A public key is written in 64 digits from 0 to f.",
            fix=Fix("give it as `{verify}` printed it.", verify=Shell("dither verify --format json")),
        )


@app.command("backup")
def _backup(
    file: Annotated[Path, typer.Argument(help="New file to write.", show_default=False)],
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Copy the ledger into a new file.

    Reads no key, and questions may run meanwhile. Nobody can spend from a backup.
    budget, history and verify can read it: dither verify --ledger FILE.
    The marks of the data, which are beside the key, go into FILE.data.
    """
    from dither.ledger import copies

    where = ledger_place(catalog, ledger)
    _check_free(file, catalog, where)
    head = copies.back_up(where, file, key)
    note(f"{escape(str(file))} is a backup up to entry {head.number}. Keep it, and a copy of the key, on another disk.")
    print_head(str(head))


def _check_free(file: Path, catalog: Path, where: str) -> None:
    """Refuses a new file that would become part of the data or of the ledger's files."""
    try:
        what = outputs_of(catalog, where, None, False).protected.name_of(file) if catalog.is_file() else None
    except CatalogError:
        return  # a broken catalog must not prevent a backup
    if what is not None and not os.path.lexists(file):
        raise ArgumentError(f"{file} would become part of {what}.", fix="name another file.")


@app.command("restore")
def _restore(
    backup: Annotated[Path, typer.Argument(help="File written by dither backup.", show_default=False)],
    head: Annotated[list[str] | None, typer.Option(help="Head kept elsewhere (number:hash). Repeatable.")] = None,
    receipt: Annotated[list[Path] | None, typer.Option(help="Receipt file, the newest you have. Repeatable.")] = None,
    witness: Witness = None,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="Restore without --head, --receipt or --witness.")] = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Create a ledger from a backup, after the ledger was lost.

    The new ledger records the restore. Refused if there is a ledger already.
    Also refused if the backup lacks an entry that --head, --receipt or --witness names.
    """
    from dither.ledger import copies
    from dither.ledger import witness as witnesses

    heads = {f"the head {head_of(each)}": head_of(each) for each in head or ()}
    receipts = {f"the receipt {file}": receipt_of(file) for file in receipt or ()}
    evidence = copies.Evidence(heads, receipts, None if witness is None else witnesses.Witness(witness))
    where = ledger_place(catalog, ledger)
    beside = [ledger_place(catalog, None)] if ledger else []
    with notes().status("checking every entry"):
        made = copies.restore(backup, where, key_file(where, key), evidence, unchecked=unchecked, beside=beside)
    note(f"The ledger goes on from {escape(str(backup))}, which ends with entry {made.backup}.")
    if made.checked:
        note(f"The newest entry known from elsewhere is {made.checked.partition(':')[0]}, and the backup has it.")
        if witness is None:
            note("A head or a receipt does not show later answers. Those are spent, and this ledger does not count them.")
    else:
        note("Nothing was compared. Answers after the backup are spent, and this ledger does not count them.")
    if not made.marked:
        note("There are no marks of the data. If it was replaced since answers were given, declare a new snapshot.")
    print_head(str(made.head))


@app.command("witness")
def _witness(
    file: Annotated[Path, typer.Argument(help="File of heads, on another disk or machine.", show_default=False)],
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
) -> None:
    """Record the ledger's head in a file kept elsewhere.

    First compares the ledger with the newest head in the file. Creates the file if it is missing.
    With --witness FILE or DITHER_WITNESS every question does the same: an older copy of the ledger answers nothing.
    """
    from dither.ledger import opening, witness

    where, heads = ledger_place(catalog, ledger), witness.Witness(file)
    if not file.exists():
        _check_free(file, catalog, where)
    with closing(opening.open_readonly(where, backup=False)) as store:
        made = heads.create()
        seen, head = witness.bring_up_to_date(heads, store)
    name = escape(str(file))
    if seen is not None:
        note(f"The ledger has entry {seen.number}, the newest that {name} names.")
    if not head.number:
        note("The ledger has no entries yet, so there is no head to keep: the first question adds it.")
    elif head != seen:
        note(f"The head of entry {head.number} is in {name} now.")
    if made:
        note(f"{name} is made. Compare with it at every question: --witness {name} or DITHER_WITNESS={name};")
        note(f'in Python dt.open(…, witness="{name}").')
    if file.absolute().parent == Path(where).absolute().parent:
        note("It lies beside the ledger: whoever puts an old copy of the folder back puts both back. Keep it elsewhere.")


@app.command("reopen")
def _reopen(catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None, witness: Witness = None) -> None:
    """Allow new questions again after a failure closed the catalog.

    Shows the curator why the engine failed.
    """
    from dither import workspace
    from dither.ledger import opening

    where = ledger_place(catalog, ledger)
    with closing(opening.open(where, key_file(where, key), witness)) as opened:
        diagnosis = workspace.diagnosis_of(catalog, where, key)
        if found := diagnosis.read():
            for line in escape_lines(found.rstrip()).split("\n"):
                note(line)
        forgiven = opened.reopen()
        diagnosis.clear()
    dead = (
        f"{forgiven.dead} death{'s' if forgiven.dead > 1 else ''} of processes {'are' if forgiven.dead > 1 else 'is'} forgiven"
    )
    if forgiven.closed:
        note(f"The catalog is open again. Entry {forgiven.closed} had closed it{f'; {dead}' if forgiven.dead else ''}.")
    elif forgiven.dead:
        note(f"The catalog was not closed; {dead}.")
    else:
        note("The catalog is not closed: there is nothing to reopen.")
