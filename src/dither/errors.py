"""One family of errors: what went wrong, where, how to fix it, what was charged.

An error is built from the question and the catalog, never from rows, so it may be shown to anyone.
"""

from __future__ import annotations


class DitherError(Exception):
    """Anything a user of dither can cause. Catch this one to catch them all."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", charged: str = "nothing") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        self.charged = charged
        super().__init__(self._text())

    def _text(self) -> str:
        lines = [self.what]
        if self.where:
            lines += ["    " + line for line in self.where.splitlines()]
        last = f"  Fix: {self.fix}   " if self.fix else "  "
        return "\n".join([*lines, f"{last}Charged: {self.charged}."])


class ArgumentError(DitherError, ValueError):
    """An argument breaks its rule; the text names the argument, the rule and the value."""


class PriceError(DitherError):
    """A loss was asked for a price it cannot state, such as a pure epsilon of Gaussian noise."""
