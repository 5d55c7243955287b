"""`audit`: checks the privacy claims of dither itself, or of any function."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dither.cli.app import app
from dither.cli.output import Force, Outputs
from dither.cli.screen import note, notes
from dither.errors import ArgumentError, DitherError, Fix, Shell

if TYPE_CHECKING:
    from dither.audit.report.report import Report

_FEW = 12


@app.command("audit")
def _audit(
    target: Annotated[
        str, typer.Argument(help="dither, module:function in the current folder, or a catalog.", show_default=False)
    ],
    epsilon: Annotated[str | None, typer.Option("--epsilon", "-e", help="Epsilon that the function claims.")] = None,
    delta: Annotated[str, typer.Option(help="Delta that the function claims.")] = "0",
    data: Annotated[
        str,
        typer.Option(
            help="Input of the function: auto, numbers, array, integers, words, counts, answers, rows, table, frame, count, "
            "item, bit or bits."
        ),
    ] = "auto",
    pairs: Annotated[str | None, typer.Option(help="Your own neighbouring inputs: module:name of a list or function.")] = None,
    neighbours: Annotated[
        str, typer.Option(help="One unit more or less, or one replaced: add-remove or replace.")
    ] = "add-remove",
    library: Annotated[str, typer.Option(help="Whose noise is recorded: auto, numpy, opendp or diffprivlib.")] = "auto",
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds: 120 for dither; for a function, 60 of processor time on all cores together."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the made-up data.")] = 1,
    synthetic: Annotated[bool, typer.Option(help="TARGET is a catalog: ask questions about tables generated for it.")] = False,
    questions: Annotated[
        str | None, typer.Option(help="With --synthetic: a file of questions, separated by semicolons.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file, and JSON beside it.")] = None,
    force: Force = False,
) -> None:
    """Check the privacy claim of dither itself, of a function, or of a catalog.

    Proves the claim, replays the noise or attacks the answers, on made-up data. Exit code 1 means that the claim is violated.
    If a function takes `rng` or `noise`, its noise is recorded and replayed. With --synthetic, questions about a catalog are
    asked on generated neighbouring tables.
    """
    from dither.audit import command
    from dither.audit.report import page

    if (target.endswith(".toml") and not synthetic) or (questions is not None and not synthetic):
        fix = Fix(
            "add {synthetic}: an audit never reads the rows of a catalog, it generates its own.", synthetic=Shell("--synthetic")
        )
        raise ArgumentError("A catalog is audited on generated tables.", fix=fix)
    files = Outputs(force)
    _check_page(report, files)
    asked = command.AuditRequest(
        target, epsilon, delta, data, pairs, neighbours, library, time_limit, seed, synthetic, questions
    )
    with _Steps() as steps:
        found = command.audit(asked, steps)
    _show(found)
    if report is not None:
        try:
            beside = page.save(found, report, files.write)
        except OSError:
            raise DitherError(f"{report} cannot be written.", fix="name a file in a folder that is there.") from None
        note(f"The report is in {report}, and for programs in {beside}.")
    if found.violations:
        raise typer.Exit(1)
    if all(verdict.open for verdict in found.verdicts):
        raise typer.Exit(2)


def _check_page(report: Path | None, files: Outputs) -> None:
    """Refuses a report that could not be written later."""
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"{report} is no name of a page.", fix="end it in .html.")
    files.check({"--report": report, "the JSON beside it": None if report is None else report.with_suffix(".json")})


def _show(report: Report) -> None:
    """Prints every verdict if they are few; of many, only those that are not proofs."""
    from dither.audit.verdict import PROVED, WALKED

    many = len(report.verdicts) > _FEW
    for verdict in report.verdicts:
        if not many or verdict.outcome not in (PROVED, WALKED):
            typer.echo(str(verdict))
    if many:
        outcomes = [verdict.outcome for verdict in report.verdicts]
        typer.echo(f"proved: {outcomes.count(PROVED)} prices on exact laws")
        typer.echo(f"walked: {outcomes.count(WALKED)} samplers agree with their laws; the page says what that assumes")
    for words, measured in report.extra.items():
        typer.echo(f"{words}: {measured}")
    typer.echo(report.summary())


class _Steps:
    """Shows the current step and its progress on stderr, if that is a terminal."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        console = notes()
        self._shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._shown.add_task("starting", total=1.0)

    def __enter__(self) -> _Steps:
        self._shown.start()
        return self

    def __call__(self, words: str, share: float) -> None:
        self._shown.update(self._task, description=words, completed=share)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._shown.stop()
