"""`init`, `check` and `suggest`: draft a catalog, check it, and find bounds privately."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dither.cli.app import (
    CATALOG,
    Analyst,
    Catalog,
    Delta,
    Key,
    Ledger,
    Witness,
    app,
    existing_catalog,
    existing_ledger,
    key_file,
    ledger_files,
    ledger_place,
    open_curator,
)
from dither.cli.ask import print_standing, standing
from dither.cli.output import Outputs, protected, reporting_charge
from dither.cli.screen import ReadingProgress, note, print_lines
from dither.errors import ArgumentError, CatalogError, DitherError, Fix, Shell


@app.command("init")
def _init(
    data: Annotated[list[str] | None, typer.Argument(help="Parquet or CSV files, or file.duckdb#table.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", "-u", help="Column that identifies a person, or: row.")] = None,
    out: Annotated[Path, typer.Option("--out", "--catalog", "-c", help="Catalog file to write.")] = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Draft a catalog and create the ledger beside it.

    Reads names and types of columns, and whether values of key columns repeat, to propose references between tables.
    Without DATA, creates only the ledger. Replaces no catalog and no ledger.
    """
    from dither import workspace
    from dither.ledger import opening

    where = ledger_place(out, ledger)
    key_file(where, key)
    if where.strip().lower() == opening.MEMORY:
        raise ArgumentError("A ledger in memory ends with its process, so there is none to make.", fix="name a file.")
    if data:
        _draft(data, unit, out, ledger_files(where, key))
        note(f"{out} is written. Fill in what its comments ask for, then run: dither check {out}")
    elif not out.exists():
        raise ArgumentError(
            "No data is named.", fix=Fix("write: {init}.", init=Shell("dither init people.parquet --unit person_id"))
        )
    if workspace.make_ledger(where, key_file(where, key)):
        lies = f"is {key}" if key else "lies beside it"
        note(f"The ledger is {workspace.ledger_name(where)}, and its key {lies}. Keep both: what was spent stays spent.")
        note("The key signs in your name: keep it to yourself, and never commit it to a repository.")
    else:
        note(f"The ledger {workspace.ledger_name(where)} is there already, and what was spent stays spent.")


def _draft(data: list[str], unit: str | None, out: Path, books: dict[str, Path]) -> None:
    from dither import workspace

    if unit is None:
        raise ArgumentError(
            "No unit is named: which column identifies a person?",
            fix=Fix(
                "add {unit}, or {row} if every row is its own person.", unit=Shell("--unit person_id"), row=Shell("--unit row")
            ),
        )
    if os.path.lexists(out):  # never replaced, not even with --force: a catalog is a promise
        raise ArgumentError(
            f"{out} is there already.", fix=Fix("name another file with {out}, or move it away.", out=Shell("--out"))
        )
    files = Outputs(protected=protected({source: source for source in data}, books))
    files.check({"--out": out})
    if out.parent.resolve() != Path.cwd():
        data = [str(Path(source).resolve()) for source in data]  # sources in a catalog are relative to its folder
    try:
        text = workspace.draft(data, unit)
    except CatalogError as error:  # there is no catalog yet, so the data or the unit was wrong
        raise ArgumentError(error.what, where=error.where, fix=error.fix) from None
    try:
        files.write(out, text.encode("utf-8"))
    except OSError:
        raise DitherError(
            f"{out} cannot be written.", fix=Fix("name a file in a folder that is there, with {out}.", out=Shell("--out"))
        ) from None


@app.command("check")
def _check(
    file: Annotated[Path | None, typer.Argument(help="Catalog file. Same as --catalog.")] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    data: Annotated[bool, typer.Option("--data", help="Also read the rows. The findings are for the curator only.")] = False,
) -> None:
    """List all problems of a catalog, with their lines.

    Also lists changes that its ledger would refuse. Reads no rows without --data.
    """
    from dither import workspace

    named = existing_catalog(file or catalog)
    problems = workspace.check(named) or workspace.ledger_refusal(named, ledger_place(named, ledger))
    if problems := problems or (workspace.check_data(named) if data else ""):
        print_lines(problems, hang=6)
        raise typer.Exit(1)
    typer.echo(f"{named}: no problems found.")


@app.command("suggest")
def _suggest(
    column: Annotated[str, typer.Argument(help="Column to find bounds or values for, such as people.income.")],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Price to pay, such as 0.1.")],
    delta: Delta = None,
    by: Annotated[
        str | None, typer.Option(help="Key to group by: a column or an expression. Also proposes max_groups.")
    ] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    witness: Witness = None,
) -> None:
    """Propose bounds for a column, or values of a text column, from the data, privately, for a price."""
    where = existing_ledger(existing_catalog(catalog), ledger)
    with ReadingProgress() as progress, open_curator(catalog, where, key, analyst, progress, witness) as survey:
        proposal = survey.suggest(column, epsilon, delta, by=by)
        left = standing(survey, analyst)
    with reporting_charge(None, proposal.price):
        print_lines(str(proposal))
    note(f"charged {proposal.price}")
    print_standing(left)
