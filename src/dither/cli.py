"""The command line: `dither demo`. The curator's and the analyst's commands come with the query path and the ledger."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from dither import __version__, demo
from dither.errors import DitherError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Answers about people's data, with a price on each.")


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
    """Mechanisms at work on made-up patients: charged first, answered with margins, refused when the budget ends."""
    demo.run(Console())


def main() -> None:
    """Run the command line; an error a user can cause prints its text and exits with 2, without a traceback."""
    try:
        app()
    except DitherError as error:
        Console(stderr=True).print(str(error), style="red", markup=False, highlight=False)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
