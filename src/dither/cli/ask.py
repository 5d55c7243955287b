"""`quote` and `ask`: the price of a question, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dither.cli import output, remote
from dither.cli.app import (
    CATALOG,
    Analyst,
    Catalog,
    Confidence,
    Consistent,
    Delta,
    Epsilon,
    File,
    Key,
    Ledger,
    LeftOut,
    Margin,
    MaxGroups,
    MaxRows,
    Of,
    Param,
    Question,
    Rows,
    Sample,
    Weights,
    Witness,
    app,
    existing_catalog,
    existing_ledger,
    ledger_place,
    open_curator,
    outputs_of,
    question_text,
    weight_list,
)
from dither.cli.output import Force, Form, Out, draw_bytes
from dither.cli.remote import Ca, Server
from dither.cli.screen import ReadingProgress, note, notes, print_lines
from dither.errors import LedgerError, NoLedgerError
from dither.options import bound, param_values

if TYPE_CHECKING:
    from dither.answer import Answer
    from dither.client.remote import Remote
    from dither.curator import Curator
    from dither.standing import Standing


@app.command("quote")
def _quote(
    context: typer.Context,
    question: Question = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
    of: Of = None,
    param: Param = None,
    delta: Delta = None,
    confidence: Confidence = "0.95",
    rows: Rows = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    left_out: LeftOut = None,
    sample: Sample = None,
    file: File = None,
    weights: Weights = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """Show the plan, the price and the expected margins of a question.

    Free: reads no rows and charges nothing.
    """
    asked: Any = question_text(question, file)
    server = remote.chosen(context, server)
    where = "" if server else _quoting(ledger_place(existing_catalog(catalog), ledger))
    with opened(server, ca, catalog, where, key, analyst) as survey:
        found = survey.quote(
            asked,
            epsilon,
            delta,
            margin=margin,
            of=of,
            params=param_values(param),
            confidence=confidence,
            assume_rows=rows,
            max_rows=bound(max_rows),
            max_groups=bound(max_groups),
            left_out=left_out,
            weights=weight_list(weights),
            sample=sample,
        )
    print_lines(str(found), hang=15)
    if found.refusal:
        raise typer.Exit(3)


def _quoting(where: str) -> str:
    """Returns the ledger, or one in memory if there is none yet: a quote writes nothing."""
    from dither import workspace
    from dither.ledger import opening

    try:
        if where != opening.MEMORY:
            opening.find(where).close()
        return where
    except NoLedgerError:
        if not opening.is_address(where) and Path(where).exists():
            raise  # it is a folder
    note(f"There is no ledger {workspace.ledger_name(where)} yet: dither init makes it, and then you can ask.")
    return opening.MEMORY


@app.command("ask")
def _ask(
    context: typer.Context,
    question: Question = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
    of: Of = None,
    param: Param = None,
    delta: Delta = None,
    confidence: Confidence = "0.95",
    rows: Rows = None,
    max_rows: MaxRows = None,
    max_groups: MaxGroups = None,
    left_out: LeftOut = None,
    sample: Sample = None,
    file: File = None,
    weights: Weights = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Pay for new noise if the question was answered before.")] = False,
    free: Annotated[bool, typer.Option("--free", help="Compute it from stored answers, if it follows from them.")] = False,
    consistent: Consistent = False,
    form: Form = None,
    out: Out = None,
    receipt: Annotated[Path | None, typer.Option(help="Write the signed receipt to this file (JSON).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the answer to this file (.png, .svg or .pdf).")] = None,
    force: Force = False,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
    analyst: Analyst = None,
    witness: Witness = None,
    server: Server = None,
    ca: Ca = None,
) -> None:
    """Answer a question and charge its price.

    The price is charged before any row is read. Asking the same question again at the same price is free, and so is --free:
    an answer that follows from earlier ones, such as a total after its groups.
    """
    output.check_drawable(plot)
    server = remote.chosen(context, server)
    where = "" if server else existing_ledger(existing_catalog(catalog), ledger)
    files = remote.outputs(force) if server else outputs_of(catalog, where, key, force, witness)
    files.check({"--out": out, "--receipt": receipt, "--plot": plot})
    form = output.choose_format(form, out)
    asked: Any = question_text(question, file)
    if file is not None:
        output.check_list_format(form, plot)
    with ReadingProgress() as progress, opened(server, ca, catalog, where, key, analyst, progress, witness) as survey:
        answer = survey.ask(
            asked,
            epsilon,
            delta,
            margin=margin,
            of=of,
            params=param_values(param),
            confidence=confidence,
            assume_rows=rows,
            max_rows=bound(max_rows),
            max_groups=bound(max_groups),
            left_out=left_out,
            weights=weight_list(weights),
            sample=sample,
            fresh=fresh,
            free=free,
        )
        left = standing(survey, analyst)
    if consistent:
        answer = answer.consistent()
    charged = "nothing, it was given again" if answer.replayed else "nothing, it is free" if free else answer.price
    if receipt is not None:
        with output.reporting_charge(receipt, charged):
            files.write(receipt, (answer.receipt.to_json() + "\n").encode())
    with output.reporting_charge(out, charged):
        output.write_answers(answer, form, None if out is None else partial(files.write, out))
    for line in answer.notes():
        note(line)
    print_standing(left)
    if plot is not None:  # last, because it may fail: the charge has been reported by then
        with output.reporting_charge(plot, charged):
            files.write(plot, draw_bytes(cast("Answer", answer).plot, plot))


def print_standing(left: tuple[Standing, Standing | None] | None) -> None:
    """Prints the budget bars below an answer. Ignores write errors: the answer is already out."""
    from dither.cli.ledger import show

    if left is not None:
        with suppress(OSError):
            show(notes(), *left)


@contextmanager
def opened(
    server: str | None,
    ca: str | None,
    catalog: Path,
    where: str,
    key: Path | None,
    analyst: str | None,
    progress: Callable[[float], None] | None = None,
    witness: Path | None = None,
) -> Iterator[Curator | Remote]:
    """Opens the catalog here, or a server."""
    if server is not None:
        with remote.connected(server, ca) as there:
            yield there
        return
    with open_curator(catalog, where, key, analyst, progress, witness) as here:
        yield here


def standing(survey: Curator | Remote, analyst: str | None) -> tuple[Standing, Standing | None] | None:
    """Returns the budget and the quota, or None if the ledger fails: the answer is paid for and must be shown."""
    from dither.client.remote import Remote
    from dither.session import ANYONE
    from dither.standing import quota

    if isinstance(survey, Remote):
        return remote.standing(survey)
    try:
        budget = survey.budget
        who = ANYONE if analyst is None else analyst
        return budget, quota(survey.ledger, budget.caps, survey.catalog.budget, who)
    except LedgerError:
        return None
