"""Asks from a notebook cell: `%load_ext dither`, then

    %%dither --epsilon 0.1 --catalog survey.toml
    SELECT region, COUNT(*) AS n FROM people GROUP BY region

The answer is shown as a table with margins, and is the value of the cell. `--into name` also keeps it in a variable. Without
`--catalog`, the session in the variable `survey` is asked, if there is one, else `catalog.toml`. A catalog is opened once, and
closed by `%unload_ext dither` or with the notebook.
"""

from __future__ import annotations

import argparse
import atexit
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from dither.answer import Answer, Quote
from dither.curator import Curator
from dither.curator import open as open_curator
from dither.errors import ArgumentError, DitherError, Fix, Shell
from dither.options import bound, param_values, shell

SESSION, CATALOG = "survey", "catalog.toml"


class _Words(argparse.ArgumentParser):
    """Reads the words after %%dither; a wrong one is an error like any other."""

    def error(self, message: str) -> NoReturn:
        raise ArgumentError(
            f"%%dither: {message}.", fix=Fix("write {it}, and the question below it.", it=Shell("%%dither --epsilon 0.1"))
        )


def _words() -> _Words:
    words = _Words(prog="%%dither", add_help=False)
    for name in ("epsilon", "delta", "margin", "of", "analyst", "max-rows", "max-groups", "sample", "ledger", "key", "into"):
        words.add_argument(f"--{name}")
    words.add_argument("--catalog", "-c")
    words.add_argument("--confidence", default="0.95")
    words.add_argument("--param", action="append")
    for name in ("fresh", "free", "quote"):
        words.add_argument(f"--{name}", action="store_true")
    words.add_argument("--no-left-out", dest="left_out", action="store_const", const=False)
    return words


class Magic:
    """The command `%%dither` of one notebook, and the catalogs that it has opened."""

    def __init__(self, ipython: Any) -> None:
        self._ipython = ipython
        self._opened: dict[tuple[str, str | None, str | None], Curator] = {}

    def __call__(self, line: str, cell: str | None = None) -> Answer | Quote | None:
        """Asks the question of the cell. Prints an error without a traceback, which would show nothing of use."""
        try:
            return self._ask(line, cell)
        except DitherError as error:
            sys.stderr.write(error.text_in(shell) + "\n")
            return None

    def _ask(self, line: str, cell: str | None) -> Answer | Quote:
        try:
            typed = shlex.split(line)
        except ValueError:
            raise ArgumentError("%%dither: a quote is not closed.", fix="close it.") from None
        given = _words().parse_args(typed)
        if cell is None or not cell.strip():
            raise ArgumentError("There is no question.", fix="begin the cell with %%dither, and write the question below it.")
        terms: dict[str, Any] = {
            "epsilon": given.epsilon,
            "delta": given.delta,
            "margin": given.margin,
            "of": given.of,
            "params": param_values(given.param),
            "confidence": given.confidence,
            "max_rows": bound(given.max_rows),
            "max_groups": bound(given.max_groups),
            "left_out": given.left_out,
            "sample": given.sample,
            "analyst": given.analyst,
        }
        survey = self._survey(given)
        found = survey.quote(cell, **terms) if given.quote else survey.ask(cell, **terms, fresh=given.fresh, free=given.free)
        if given.into:
            self._ipython.push({given.into: found})
        return found

    def _survey(self, given: argparse.Namespace) -> Curator:
        """Returns the session to ask: of the catalog that is named, of the variable, or of catalog.toml."""
        variable = self._ipython.user_ns.get(SESSION)
        if given.catalog is None and isinstance(variable, Curator):
            return variable
        place = (str(Path(given.catalog or CATALOG).absolute()), given.ledger, given.key)
        if place not in self._opened:
            self._opened[place] = open_curator(given.catalog or CATALOG, given.ledger, key=given.key)
        return self._opened[place]

    def close(self) -> None:
        """Closes the catalogs that it opened."""
        while self._opened:
            _, survey = self._opened.popitem()
            with suppress(DitherError):
                survey.close()


_LOADED: dict[int, Magic] = {}  # by the notebook's id


def load(ipython: Any) -> None:
    """Adds %%dither to a notebook."""
    magic = _LOADED[id(ipython)] = Magic(ipython)
    ipython.register_magic_function(magic, "line_cell", "dither")
    atexit.register(magic.close)


def unload(ipython: Any) -> None:
    """Removes %%dither, and closes what it opened."""
    magic = _LOADED.pop(id(ipython), None)
    if magic is not None:
        magic.close()
        atexit.unregister(magic.close)
    for kind in ("line", "cell"):
        ipython.magics_manager.magics[kind].pop("dither", None)
