"""How names of tables and columns are compared, for questions and for the ledger alike, and which was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_ALIKE = 0.6  # of 1: AVERAGE is as like AVG as this


# The spelling that two names share if they are one: SQL tells no difference between capitals and small letters (STRASSE is
# Straße). Unicode forms are not normalised: a letter with its accent in one character or in two is two names.
folded = str.casefold


def did_you_mean(word: str, known: Iterable[str], of: str = "") -> str:
    """ "did you mean ...? " for a misspelt name, else nothing. `of` is written before the name: its table.

    >>> did_you_mean("max_row", ["max_rows", "unit"]), did_you_mean("zzz", ["unit"])
    ('did you mean max_rows? ', '')
    """
    found = get_close_matches(word, sorted(set(known)), n=1, cutoff=_ALIKE)
    return f"did you mean {of}{found[0]}? " if found else ""
