"""The command line.

    app         the application, shared options, exit codes, signals
    catalog     init, check, suggest     declare the data, create the ledger, find bounds
    ask         quote, ask               the price of a question; its answer
    stream      stream                   a running sum over time
    graph       graph                    counts of edges, degrees and triangles
    ledger      budget, verify           what was spent; whether the ledger is intact
                backup, restore          copies of the ledger
                witness, reopen          heads kept elsewhere; new questions after a failure
    history     history                  who asked what
    approvals   approvals, close         questions that wait for a curator; no new questions
                rotate                   another key for the ledger
    audit       audit                    checks a privacy claim
    explain     explain, demo            what an epsilon means; a tour on made-up data
    local       local simulate           a survey without a trusted curator
    serve       serve, people            answers over HTTP; who may ask there
    login       login, logout            a token for a server
    output      output files and formats
    screen      text, tables and bars on stdout and stderr

Rule: stdout is for data only; every error is a text and an exit code, never a traceback. A command imports what it uses
when it runs, because `dither --help` must not wait for a database.
"""

from __future__ import annotations

from dither.cli import approvals, ask, audit, catalog, explain, graph, history, ledger, local, login, serve, stream
from dither.cli.app import app, handle_signals
from dither.cli.screen import replace_closed_streams, set_utf8

__all__ = [
    "app",
    "approvals",
    "ask",
    "audit",
    "catalog",
    "explain",
    "graph",
    "history",
    "ledger",
    "local",
    "login",
    "main",
    "serve",
    "stream",
]


def main() -> None:
    """Runs the command line."""
    with handle_signals():
        replace_closed_streams()
        set_utf8()
        app()
