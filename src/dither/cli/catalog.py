"""`init`, `check` and `suggest`: draft a catalog, check it, and find bounds privately."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dither.cli import remote
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
)
from dither.cli.ask import opened, print_standing, standing
from dither.cli.output import Outputs, protected, reporting_charge
from dither.cli.remote import Ca, Server
from dither.cli.screen import ReadingProgress, note, print_lines, show_table
from dither.errors import ArgumentError, CatalogError, DitherError, Fix, Shell


@app.command("init")
def _init(
    data: Annotated[list[str] | None, typer.Argument(help="Parquet, CSV or Excel files, or file.duckdb#table.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", "-u", help="Column that identifies a person, or: row.")] = None,
    out: Annotated[Path, typer.Option("--out", "--catalog", "-c", help="Catalog file to write.")] = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Draft a catalog and create the ledger beside it.

    Reads names and types of columns, how the first rows of CSV files are written, and whether values of key columns repeat,
    to propose references between tables.
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


class Report(StrEnum):
    """The forms of a report on the data."""

    TABLE = "table"
    JSON = "json"


@app.command("check")
def _check(
    file: Annotated[Path | None, typer.Argument(help="Catalog file. Same as --catalog.")] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    data: Annotated[bool, typer.Option("--data", help="Also read the rows. The findings are for the curator only.")] = False,
    form: Annotated[Report, typer.Option("--format", "-f", help="Output format of the findings of --data.")] = Report.TABLE,
    analyst: Analyst = None,
) -> None:
    """List all problems of a catalog, with their lines.

    Also lists changes that its ledger would refuse. Reads no rows without --data. With --data, says how the rows fit the
    catalog, in exact numbers: cells that do not read as declared, rows without a person, repeated keys, what bounding leaves
    out. They are private: keep them to yourself.
    """
    from dither import workspace

    if data and analyst is not None:
        raise ArgumentError(
            "The findings about rows are for the curator, not for an analyst.",
            fix=Fix("leave {analyst} out, and unset DITHER_ANALYST, if you are the curator.", analyst=Shell("--analyst")),
        )
    named = existing_catalog(file or catalog)
    if problems := workspace.check(named) or workspace.ledger_refusal(named, ledger_place(named, ledger)):
        print_lines(problems, hang=6)
        raise typer.Exit(1)
    if data:
        _check_data(named, form)
    else:
        typer.echo(f"{named}: no problems found.")


def _check_data(catalog: Path, form: Report) -> None:
    """Prints how the rows fit a catalog. Exits with 1 if it does not open, or if hardly a cell of something fits."""
    from dither import workspace
    from dither.catalog import report as reporting

    with ReadingProgress() as progress:
        reports, refused = workspace.check_data(catalog, progress)
    warnings = [warning for report in reports for warning in report.warnings()]
    if form is Report.JSON:
        print_lines(reporting.to_json(reports, refused))
    else:
        for report in reports:
            print_lines(f"{report.table}: {report.rows:,} rows")
            if report.columns:
                show_table(reporting.HEAD, reporting.cells(report), [False, False, *[True] * 5])
            for line in report.notes():
                print_lines(f"  {line}.", hang=4)
        for line in warnings:
            print_lines(f"! {line}.", hang=4)
        if refused:
            print_lines(refused, hang=6)
        elif not warnings:
            typer.echo(f"{catalog}: no problems found.")
    if refused or any(report.serious for report in reports):
        raise typer.Exit(1)


def _declared_columns(context: typer.Context) -> list[tuple[str, str]]:
    """Returns the (table, column) about people that the catalog file declares; none if it cannot be read. Opens no data."""
    from dither.catalog.file import read

    try:
        tables = read(context.params.get("catalog") or CATALOG).tables
    except (DitherError, OSError):
        return []  # a shell shows nothing rather than an error
    return [(name, column) for name, table in tables.items() if not table.public for column in table.columns]


def _complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """Completes people.income."""
    return [found for found in map(".".join, _declared_columns(context)) if found.startswith(incomplete)]


def _complete_key(context: typer.Context, incomplete: str) -> list[str]:
    """Completes the name of a column of the same table."""
    table = str(context.params.get("column") or "").partition(".")[0]
    return [column for name, column in _declared_columns(context) if column.startswith(incomplete) and table in ("", name)]


@app.command("suggest")
def _suggest(
    context: typer.Context,
    column: Annotated[
        str,
        typer.Argument(help="Column to find bounds or values for, such as people.income.", autocompletion=_complete_column),
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Price to pay, such as 0.1.")],
    delta: Delta = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Key to group by: a column or an expression. Also proposes max_groups.", autocompletion=_complete_key
        ),
    ] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    witness: Witness = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """Propose bounds for a column, or values of a text column, from the data, privately, for a price.

    A small price on few people gives nothing, and is charged all the same. Bounds for numbers need an epsilon of about
    25,000 / number of rows: 2.8 for 9,000 rows. With fewer than some thousand, declare what everybody knows instead.
    """
    server = remote.chosen(context, server)
    where = "" if server else existing_ledger(existing_catalog(catalog), ledger)
    with ReadingProgress() as progress, opened(server, ca, catalog, where, key, analyst, progress, witness) as survey:
        proposal = survey.suggest(column, epsilon, delta, by=by)
        left = standing(survey, analyst)
    with reporting_charge(None, proposal.price):
        print_lines(str(proposal))
    note(f"charged {proposal.price}")
    print_standing(left)
