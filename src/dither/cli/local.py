"""`local`: surveys without a trusted curator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dither.cli.app import app
from dither.cli.output import Force, Outputs, check_drawable, draw_bytes
from dither.cli.screen import note, out

local = typer.Typer(help="Surveys in which everybody randomises their own answer.", no_args_is_help=True)
app.add_typer(local, name="local")


@local.command("simulate")
def _simulate(
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Price of a report, such as 1.")],
    people: Annotated[int, typer.Option(help="How many people report.")] = 100_000,
    values: Annotated[int, typer.Option(help="How many values there are.")] = 10,
    kind: Annotated[str | None, typer.Option(help="Randomiser; the best one if left out.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it to this file (.png, .svg or .pdf).")] = None,
    force: Force = False,
) -> None:
    """Run a survey on made-up people, and compare it with the truth and with a trusted curator."""
    from dither.local.simulate import simulate
    from dither.local.survey import LocalSurvey

    check_drawable(plot)
    files = Outputs(force)
    files.check({"--plot": plot})
    survey = LocalSurvey.choice("made-up question", values, epsilon=epsilon, kind=kind)
    found = simulate(survey, people)
    out().print(survey.explain(), highlight=False)
    out().print(str(found), highlight=False)
    if plot is not None:
        files.write(plot, draw_bytes(found.estimates.plot, plot))
        note(f"The picture is in {plot}.")
