"""Compares names of tables and columns, for questions and for the ledger, and suggests the nearest one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_CUTOFF = 0.6  # the similarity of AVERAGE and AVG


# Equal for names that are the same in SQL, which ignores case (STRASSE is Straße). Unicode forms are not normalised: a letter
# with its accent in one character or in two gives two names.
folded = str.casefold


def did_you_mean(word: str, known: Iterable[str], of: str = "") -> str:
    """Returns "did you mean ...? " for a misspelt name, else "". `of` comes before the name: its table.

    >>> did_you_mean("max_row", ["max_rows", "unit"]), did_you_mean("zzz", ["unit"])
    ('did you mean max_rows? ', '')
    >>> did_you_mean("sex", [" sex"])
    'did you mean " sex"? (it begins with a blank) '
    """
    matches = get_close_matches(word, sorted(set(known)), n=1, cutoff=_CUTOFF)
    if not matches:
        return ""
    name = matches[0]
    where = [verb for verb, bare in (("begins", name.lstrip()), ("ends", name.rstrip())) if bare != name]
    blank = f"(it {' and '.join(where)} with a blank) " if where else ""
    return f"did you mean {of}{visible(name)}? {blank}"


def visible(name: str) -> str:
    """Returns a name, in quotes if there are blanks around it.

    >>> print(visible("sex"), visible(" sex"))
    sex " sex"
    """
    return name if name == name.strip() else f'"{name}"'
