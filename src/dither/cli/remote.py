"""`--server`: asks a server instead of the files here, in every command for which `dt.connect` has a method.

The answers, their checks and their errors are those of `dt.connect`. The server knows who asks by the token that `dither login`
stored, or by DITHER_TOKEN; so options that name files here, or an analyst, do not go with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import warnings_as_notes
from dither.cli.output import Outputs, protected
from dither.errors import AccessError, ArgumentError, DitherError, Fix, Shell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dither.client.remote import Remote
    from dither.history import HistoryRow
    from dither.ledger.receipts import Receipt
    from dither.ledger.verify.report import Report
    from dither.standing import Standing

Server = Annotated[
    str | None,
    typer.Option("--server", "-s", envvar="DITHER_SERVER", help="Ask this server, instead of files here. See: dither login."),
]
Ca = Annotated[
    str | None,
    typer.Option("--ca", envvar="DITHER_CA", help="With --server: file of certificates to trust besides the system's."),
]
_HERE = ("catalog", "ledger", "key", "witness", "analyst")  # options that name files here, or who asks
_PAGE = 500  # questions of a history that a server sends at once


def chosen(context: typer.Context, server: str | None) -> str | None:
    """Returns the server to ask; None: the files here. Files that are named win over DITHER_SERVER; --server refuses them."""

    def is_typed(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    named = [name for name in _HERE if name in context.params and is_typed(name)]
    if server is None or not named:
        return server or None
    if "analyst" in named or is_typed("server"):
        name = "analyst" if "analyst" in named else named[0]
        why = "your login says who you are" if name == "analyst" else "it has its own"
        typed = "--server" if is_typed("server") else "DITHER_SERVER"
        raise ArgumentError(f"--{name} does not go with {typed}: {why}.", fix="leave one of the two out.")
    return None


def refuse(option: str, why: str) -> ArgumentError:
    """Returns the error for an option that a server does not offer."""
    return ArgumentError(f"{option} does not go with --server: {why}.", fix=Fix("leave {it} out.", it=Shell(option)))


@contextmanager
def connected(server: str, ca: str | None, public_key: str | None = None) -> Iterator[Remote]:
    """Connects to a server for one command."""
    from dither.client.remote import connect

    with warnings_as_notes(), connect(server, ca=ca, public_key=public_key) as remote:
        yield remote


def outputs(force: bool) -> Outputs:
    """Returns the writer of output files: none may replace the pinned keys or the tokens."""
    from dither.client.known import default_file
    from dither.client.logins import Logins

    return Outputs(force, protected({}, {"the known servers": default_file(), "the tokens": Logins().path}))


def standing(remote: Remote) -> tuple[Standing, Standing | None] | None:
    """Returns the budget and your quota, or None if the server fails: an answer is paid for and must be shown."""
    try:
        return remote.budget, None if remote.catalog.budget.per_analyst is None else remote.quota()
    except DitherError:
        return None


def history(remote: Remote, most: int | None, everyone: bool) -> tuple[list[HistoryRow], bool]:
    """Returns your last questions, newest last, and whether there are more."""
    found: list[HistoryRow] = []
    before: int | None = None
    while most is None or len(found) <= most:  # one more than is shown tells whether there are more
        page = remote.history(_PAGE if most is None else min(_PAGE, most + 1 - len(found)), before=before, everyone=everyone)
        found, before = page + found, page[0]["number"] if page else None
        if not page:
            break
    cut = most is not None and len(found) > most
    return (found[-most:] if most is not None else found), cut


def verify(remote: Remote, heads: Mapping[str, str], receipts: Mapping[str, Receipt]) -> tuple[Report | None, list[str]]:
    """Returns the server's verdict on its ledger, and what this client finds wrong by the heads and receipts that were kept.

    Verifying the whole needs the scope `audit`; comparing what was kept does not, and then there is no verdict.
    """
    problems = list(remote.compare(heads, receipts))
    try:
        data: Mapping[str, Any] = remote.transport.get("/v1/verify")
    except AccessError as error:
        if error.status != 403 or not (heads or receipts):
            raise
        return None, problems
    return _report(data, problems, len(remote.keys.terms) - 1), problems


def _report(data: Mapping[str, Any], problems: list[str], rotated: int) -> Report:
    from dither.ledger.verify.report import Report

    kinds = {"committed/1": data["answered"], "replayed/1": data["shown_again"], "cancelled/1": data["cancelled"]}
    kinds |= {"rotated/1": rotated} if rotated else {}
    spent = {name: Fraction(value) for name, value in data["spent"].items()}
    counts = (int(data["open"]), int(data["closed"] or 0), int(data["restored"]))
    return Report((*data["problems"], *problems), int(data["entries"]), str(data["head"]), kinds, *counts, spent)
