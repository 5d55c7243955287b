"""`stream`: a running sum over time, charged once, continued with every new day."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dither.cli import output
from dither.cli.app import (
    CATALOG,
    Analyst,
    Catalog,
    Confidence,
    Delta,
    Epsilon,
    Key,
    Ledger,
    MaxGroups,
    MaxRows,
    Param,
    Question,
    Witness,
    app,
    existing_catalog,
    existing_ledger,
    open_curator,
    outputs_of,
    question_text,
)
from dither.cli.ask import print_standing, standing
from dither.cli.output import Force, Listing, ListingFormat, as_csv, draw_bytes
from dither.cli.screen import ReadingProgress, note, print_lines
from dither.errors import ArgumentError
from dither.options import bound, param_values

if TYPE_CHECKING:
    from dither.stream import Stream, StreamAnswer


@app.command("stream")
def _stream(
    question: Question = None,
    by: Annotated[str, typer.Option("--by", help="Column or expression whose values are the steps, such as day.")] = "",
    horizon: Annotated[int, typer.Option("--horizon", min=1, help="Number of steps that the price is for.")] = 0,
    until: Annotated[str | None, typer.Option("--until", help="Last step to release. Default: the next one.")] = None,
    quote: Annotated[bool, typer.Option("--quote", help="Show the price and the margins only. Free.")] = False,
    released: Annotated[bool, typer.Option("--released", help="Show what was released so far. Free.")] = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Annotated[str | None, typer.Option(help="Price in zCDP, if the catalog has a delta. Instead of --epsilon.")] = None,
    start: Annotated[str | None, typer.Option(help="First step. Default: the declared low end.")] = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    param: Param = None,
    confidence: Confidence = "0.95",
    form: ListingFormat = Listing.TABLE,
    receipt: Annotated[Path | None, typer.Option(help="Write the signed receipt to this file (JSON).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw all that was released to this file (.png, .svg or .pdf).")] = None,
    force: Force = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    witness: Witness = None,
) -> None:
    """Release a running COUNT or SUM, one step after the other.

    The first call charges once for all steps of the horizon. Later calls with the same question and terms, over newer data,
    release the next steps for nothing. Rows that come after their step was read are not counted.
    """
    if not by or not horizon:
        raise typer.BadParameter("Missing option: name the steps with --by, and how many there will be with --horizon.")
    if quote + released > 1 or (until is not None and (quote or released)):
        raise ArgumentError("--until, --quote and --released are three things to ask for.", fix="leave two of them out.")
    output.check_drawable(plot)
    where = existing_ledger(existing_catalog(catalog), ledger)
    files = outputs_of(catalog, where, key, force, witness)
    files.check({"--receipt": receipt, "--plot": plot})
    asked = str(question_text(question, None))
    with ReadingProgress() as progress, open_curator(catalog, where, key, analyst, progress, witness) as survey:
        stream = survey.stream(
            asked,
            by=by,
            horizon=horizon,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            start=start,
            max_rows=bound(max_rows),
            max_groups=bound(max_groups),
            params=param_values(param),
            confidence=confidence,
        )
        if quote:
            _print_quote(stream)
            return
        answer = stream.released() if released else stream.advance(until)
        left = standing(survey, analyst)
        picture = None if plot is None else draw_bytes(stream.plot, plot)
    if receipt is not None and answer.receipt is not None:
        with output.reporting_charge(receipt, answer.charged):
            files.write(receipt, (answer.receipt.to_json() + "\n").encode())
    with output.reporting_charge(None, answer.charged):
        _print(answer, form)
    for line in answer.footer():
        note(line)
    print_standing(left)
    if plot is not None and picture is not None:
        with output.reporting_charge(plot, answer.charged):
            files.write(plot, picture)


def _print_quote(stream: Stream) -> None:
    quoted = stream.quote
    print_lines(str(quoted), hang=15)
    if quoted.refusal:
        raise typer.Exit(3)


def _print(answer: StreamAnswer, form: Listing) -> None:
    if form is Listing.CSV:
        sys.stdout.write(as_csv([answer.columns, *answer.rows]))
    elif form is Listing.JSON:
        rows = [dict(zip(answer.columns, (str(key), value, margin), strict=True)) for key, value, margin in answer]
        found = {"stream": rows, "confidence": str(answer.confidence), "not_included": answer.notes}
        sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    else:
        print_lines(answer.table())
