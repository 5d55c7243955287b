"""Ctrl-C while DuckDB runs.

DuckDB looks for signals while it runs a query in the main thread. If the handler of one raises (Python's own does on Ctrl-C),
DuckDB stops and drops that exception for a RuntimeError. Other threads never see a signal, and `interrupt()` from one of them
is an InterruptException, so the two are told apart by class and text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_TEXT = "Query interrupted"


def interruptible(call: Callable[[], _T]) -> _T:
    """Calls what calls DuckDB. Ctrl-C is a KeyboardInterrupt, raised where no error of DuckDB's is attached to it."""
    try:
        return call()
    except RuntimeError as error:
        if type(error) is not RuntimeError or str(error) != _TEXT:
            raise
    raise KeyboardInterrupt
