"""The command line for what needs no ledger: `demo`, `init`, `check` and `quote`.

`ask` and the rest of the curator's day come with the durable ledger: a budget that a second command forgets is none.
A command imports what it uses when it runs: `dither --help` took four times as long while it waited for a database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dither import __version__
from dither.errors import DitherError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Answers about people's data, with a price on each.")

_Catalog = Annotated[Path, typer.Argument(help="The catalog file.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dither {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Answers about people's data, with a price on each."""


@app.command("demo")
def _demo() -> None:
    """A made-up hospital: quoted, charged first, answered with margins, refused when the budget ends."""
    from dither import demo

    demo.run(Console())


@app.command("init")
def _init(
    data: Annotated[list[str], typer.Argument(help="Parquet or CSV files, or file.duckdb#table.")],
    unit: Annotated[str, typer.Option(help="The column that says whose row it is, or: row.")],
    out: Annotated[Path, typer.Option(help="The catalog file to write.")] = Path("catalog.toml"),
) -> None:
    """Draft a catalog from column names and types only; no value is looked at."""
    from dither import curator

    if out.exists():
        raise DitherError(f"{out} is there already.", fix="name another file with --out, or move it away.")
    if out.parent.resolve() != Path.cwd():
        data = [str(Path(source).resolve()) for source in data]  # a catalog's relative sources are relative to its folder
    text = curator.draft(data, unit)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError:
        raise DitherError(f"{out} cannot be written.", fix="name a file in a folder that is there, with --out.") from None
    typer.echo(f"{out} is written. Fill in what its comments ask for, then run: dither check {out}")


@app.command("check")
def _check(catalog: _Catalog = Path("catalog.toml")) -> None:
    """Report every problem of a catalog at once, with its line. Reads schemas, never rows."""
    from dither import curator

    problems = curator.check(catalog)
    if problems:
        typer.echo(problems, err=True)
        raise typer.Exit(1)
    typer.echo(f"{catalog}: nothing to complain about.")


@app.command("quote")
def _quote(
    question: Annotated[str, typer.Argument(help="The question, in SQL.")],
    epsilon: Annotated[str, typer.Option(help="The price to pay.")],
    delta: Annotated[str | None, typer.Option(help="The delta to pay, in catalogs that have one.")] = None,
    rows: Annotated[int | None, typer.Option(help="Rows to assume, for the margins of means.")] = None,
    catalog: Annotated[Path, typer.Option(help="The catalog file.")] = Path("catalog.toml"),
) -> None:
    """Show the plan, its price and the margins to expect. Free."""
    from dither import curator

    survey = curator.open(catalog, ledger=":memory:")  # never charged: a quote is free
    typer.echo(str(survey.quote(question, epsilon=epsilon, delta=delta, assume_rows=rows)))


def main() -> None:
    """Run the command line; an error a user can cause prints its text and exits with 2, without a traceback."""
    try:
        app()
    except DitherError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
