"""One fault of a declaration: where it stands, what is wrong, how to put it right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

Path = tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """`path` is what it is about, such as ("tables", "people", "max_rows"); a reader of files finds the line from it."""

    path: Path
    what: str
    fix: str


def nearest(word: str, known: Iterable[str]) -> str:
    """ "did you mean ...? " for a misspelt name, else nothing.

    >>> nearest("max_row", ["max_rows", "unit"]), nearest("zzz", ["unit"])
    ('did you mean max_rows? ', '')
    """
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {found[0]}? " if found else ""


def listed(words: Iterable[str]) -> str:
    """A few names in a row, for a fix.

    >>> listed(["b", "a"])
    'a, b'
    """
    names = sorted(words)
    return ", ".join(names[:30]) + (f" and {len(names) - 30} more" if len(names) > 30 else "")
