"""One fault of a declaration: where it stands, what is wrong, how to put it right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """`path` is what it is about, such as ("tables", "people", "max_rows"); a reader of files finds the line from it."""

    path: Path
    what: str
    fix: str


def listed(words: Iterable[str]) -> str:
    """A few names in a row, for a fix.

    >>> listed(["b", "a"])
    'a, b'
    """
    names = sorted(words)
    return ", ".join(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
