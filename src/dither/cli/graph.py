"""`graph`: questions about a table of edges, quoted or charged."""

from __future__ import annotations

import datetime
import inspect
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli import output
from dither.cli.app import (
    CATALOG,
    Analyst,
    Catalog,
    Epsilon,
    Key,
    Ledger,
    Witness,
    app,
    existing_catalog,
    existing_ledger,
    open_curator,
    outputs_of,
)
from dither.cli.ask import print_standing, standing
from dither.cli.output import Force, Listing, ListingFormat, as_csv, draw_bytes
from dither.cli.screen import ReadingProgress, note, print_lines
from dither.errors import ArgumentError, Fix, Shell

if TYPE_CHECKING:
    from dither.graph import CatalogGraph
    from dither.graphs.answer import GraphAnswer


class Asked(StrEnum):
    """The questions, by the names of the methods that ask them."""

    EDGES = "edge_count"
    DENSITY = "density"
    HISTOGRAM = "degree_histogram"
    SEQUENCE = "degree_sequence"
    BETWEEN = "edges_between"
    TRIANGLES = "triangles"
    STARS = "stars"
    CUMULATIVE = "cumulative_degrees"
    BOUNDED = "bounded_triangles"
    SUGGEST = "suggest_degree"


@app.command("graph")
def _graph(
    table: Annotated[str, typer.Argument(help="Table of edges.", show_default=False)],
    question: Annotated[Asked, typer.Argument(help="What to count.", show_default=False)],
    epsilon: Epsilon = None,
    quote: Annotated[bool, typer.Option("--quote", help="Show the price and the margin only. Free.")] = False,
    most_degree: Annotated[int | None, typer.Option(help="Most edges that count at one node. For node privacy.")] = None,
    most_triangles: Annotated[int | None, typer.Option(help="Most triangles that count at one node. For node privacy.")] = None,
    largest: Annotated[int | None, typer.Option(help="Largest degree to list, or to suggest.")] = None,
    side: Annotated[str | None, typer.Option(help='"at most" or "at least", for cumulative_degrees.')] = None,
    by: Annotated[str | None, typer.Option(help="Column of the public nodes, for edges_between.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Edges of a star.")] = None,
    margin_share: Annotated[str | None, typer.Option(help="Share of the price for a margin, such as 1/4.")] = None,
    for_epsilon: Annotated[str | None, typer.Option(help="Price of the count that suggest_degree is for.")] = None,
    left_out: Annotated[bool | None, typer.Option("--left-out/--no-left-out", help="Estimate what bounds leave out.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for a new answer, even if there is one.")] = False,
    form: ListingFormat = Listing.TABLE,
    receipt: Annotated[Path | None, typer.Option(help="Write the signed receipt to this file (JSON).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the numbers to this file (.png, .svg or .pdf).")] = None,
    force: Force = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    witness: Witness = None,
) -> None:
    """Count edges, degrees, triangles or stars of a graph.

    The table lists the edges: it has `edge` in the catalog. The price is charged before any edge is read.
    """
    if epsilon is None:
        raise typer.BadParameter("Missing option '--epsilon' / '-e': the price to pay.")
    output.check_drawable(plot)
    where = existing_ledger(existing_catalog(catalog), ledger)
    files = outputs_of(catalog, where, key, force, witness)
    files.check({"--receipt": receipt, "--plot": plot})
    given = {"most_degree": most_degree, "most_triangles": most_triangles, "largest": largest, "side": side, "by": by, "k": k}
    given |= {"margin_share": margin_share, "for_epsilon": for_epsilon, "left_out": left_out}
    with ReadingProgress() as progress, open_curator(catalog, where, key, analyst, progress, witness) as survey:
        graph = survey.graph(table, fresh=fresh)
        if quote:
            quoted = _ask(graph.quote, question, epsilon, given)
            print_lines(str(quoted), hang=15)
            if quoted.refusal:
                raise typer.Exit(3)
            return
        answer = _ask(graph, question, epsilon, given)
        left = standing(survey, analyst)
        picture = None if plot is None else draw_bytes(answer.plot, plot)
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


def _ask(graph: CatalogGraph | Any, question: Asked, epsilon: str, given: dict[str, Any]) -> Any:
    """Asks with the options that were given. Refuses those that the question does not have, and names those it needs."""
    method = getattr(graph, question.value)
    known = inspect.signature(method).parameters
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in known:
            option = Shell(f"--{name.replace('_', '-')}")
            raise ArgumentError(f"{question.value} has no such option.", fix=Fix("leave {it} out.", it=option))
    for name, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and name not in (*options, "epsilon"):
            option = Shell(f"--{name.replace('_', '-')}")
            raise ArgumentError(f"{question.value} needs one more option.", fix=Fix("give {it}.", it=option))
    return method(epsilon=epsilon, **options)


def _print(answer: GraphAnswer, form: Listing) -> None:
    wide = answer.margin()
    margin = None if wide is None else _plain(wide)
    if form is Listing.CSV:
        rows = [(*map(_plain, row), margin) for row in answer.rows]
        sys.stdout.write(as_csv([(*answer.columns, "margin"), *rows]))
    elif form is Listing.JSON:
        listed = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
        beside = answer.left_out
        told = None if beside is None else {"value": beside.value, "margin": _plain(beside.margin()), "text": str(beside)}
        found = {"graph": listed, "margin": margin, "confidence": "19/20", "unit": answer.unit, "bounds": answer.bounds}
        found |= {"left_out": told, "not_included": list(answer.notes), "charged": answer.charged}
        sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    else:
        print_lines(answer.table())


def _plain(value: Any) -> Any:
    """Returns a value as JSON and CSV write it: whole numbers as they are, others as decimals; a date as text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return int(value) if value == int(value) else float(value)
