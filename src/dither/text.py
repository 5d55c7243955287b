"""How names of tables and columns are compared, for questions and for the ledger alike."""

from __future__ import annotations


def folded(name: str) -> str:
    """The spelling that two names share if they are one: SQL tells no difference between capitals and small letters.

    Unicode forms are not normalised: a letter with its accent in one character or in two is two names.

    >>> folded("People") == folded("PEOPLE"), folded("Straße") == folded("STRASSE"), folded("ΣΑΣ") == folded("σας")
    (True, True, True)
    """
    return name.casefold()
