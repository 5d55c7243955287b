"""The command line: the curator's and the analyst's day in a shell.

    init, check, suggest      curating.py     declare the data, and make the ledger
    quote, ask                asking.py       what would it cost; the answer
    budget, verify            books.py        what was spent, and is it true
    history                   history.py      who asked what
    backup, restore           keeping.py      copies of the ledger that are no second budget
    witness, reopen           keeping.py      heads kept elsewhere; new questions after a failure
    audit                     auditing.py     is a promise kept, ours or anyone's
    explain, demo             telling.py      what an epsilon means; the whole story on made-up data

May import: the public names of dither, `curator`, `ledger` (the books need no data), `audit`, `plots`, `demo`. The law it
keeps: data goes to stdout and nothing else does; every error is a text and an exit code, never a traceback. A command imports
what it uses when it runs, because `dither --help` should not wait for a database.
"""

from __future__ import annotations

from dither.cli import ask, audit, catalog, explain, history, ledger
from dither.cli.app import app, handled
from dither.cli.screen import occupy_streams, speak_utf8

__all__ = ["app", "ask", "audit", "catalog", "explain", "history", "ledger", "main"]


def main() -> None:
    """Run the command line."""
    with handled():
        occupy_streams()
        speak_utf8()
        app()
