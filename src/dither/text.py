"""Compares names of tables and columns, for questions and for the ledger, and suggests the nearest one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher, get_close_matches

_CUTOFF = 0.6  # the similarity of AVERAGE and AVG
_OTHER = 0.7  # for names of another first letter and length: that of kids and id is 0.67
_MOST = 5  # near names that are looked at


# Equal for names that are the same in SQL, which ignores case (STRASSE is Straße). Unicode forms are not normalised: a letter
# with its accent in one character or in two gives two names.
folded = str.casefold
_PLAIN = re.compile(r"[^\W\d]\w*")


def visible(name: str) -> str:
    """Returns a name, in quotes if there are blanks around it.

    >>> print(visible("sex"), visible(" sex"))
    sex " sex"
    """
    return name if name == name.strip() else f'"{name}"'


def sql_name(name: str) -> str:
    """Returns a name as a question writes it: in quotes if it has other characters than letters, digits and underscores.

    >>> print(sql_name("Größe"), sql_name("Einkommen (EUR)"), sql_name("2024"), sql_name('the "good" ones'))
    Größe "Einkommen (EUR)" "2024" "the ""good"" ones"
    """
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def did_you_mean(word: str, known: Iterable[str], of: str = "", show: Callable[[str], str] = visible) -> str:
    """Returns "did you mean ...? " for a misspelt name, else "". `of` comes before the name: its table.

    >>> did_you_mean("max_row", ["max_rows", "unit"]), did_you_mean("zzz", ["unit"]), did_you_mean("kids", ["id"])
    ('did you mean max_rows? ', '', '')
    >>> did_you_mean("sex", [" sex"])
    'did you mean " sex"? (it begins with a blank) '
    """
    near = get_close_matches(word, sorted(set(known)), n=_MOST, cutoff=_CUTOFF)
    name = next((each for each in near if _is_near(word, each)), None)
    if name is None:
        return ""
    where = [verb for verb, bare in (("begins", name.lstrip()), ("ends", name.rstrip())) if bare != name]
    blank = f"(it {' and '.join(where)} with a blank) " if where else ""
    return f"did you mean {of}{show(name)}? {blank}"


def _is_near(word: str, name: str) -> bool:
    """Whether similar names are near: they begin alike, are of one length, or differ in little."""
    alike = folded(word[:1]) == folded(name[:1]) or len(word) == len(name)
    return alike or SequenceMatcher(None, name, word).ratio() >= _OTHER
