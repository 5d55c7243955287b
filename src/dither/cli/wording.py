"""A fix in the shell's words: what is `analyst="ada"` to whoever writes Python is `--analyst ada` here.

Errors are written once, where they arise; only their `fix` is put into other words, never a question or a name in them.
"""

from __future__ import annotations

import re

from dither.errors import DitherError

_OPTIONS = {
    name: f"--{name}" for name in ("epsilon", "delta", "margin", "confidence", "analyst", "ledger", "key", "witness", "by")
}
_OPTIONS |= {"assume_rows": "--rows", "fresh": "--fresh"}
_NAMES = "|".join(_OPTIONS)
_GIVEN = re.compile(rf"""\b({_NAMES})=(?:"([^"]*)"|(True)|(…)|([\w./-]*\w))?""")
_TOLD = re.compile(rf"\b(write|give|give a) ({_NAMES})(?= (?:a|as|of)\b)")
_OPENED = re.compile(r",? or by dt\.open\([^)]*\)|: dt\.open\([^)]*\)")


def refusal(error: DitherError) -> str:
    """The error's text, with its fix as it is done in a shell."""
    if not error.fix:
        return str(error)
    head, fix, tail = str(error).rpartition(f"  Fix: {error.fix}   ")
    return f"{head}  Fix: {in_a_shell(error.fix)}   {tail}" if fix else str(error)


def in_a_shell(fix: str) -> str:
    """Arguments as options.

    >>> in_a_shell('write epsilon="0.1", or margin=50 for the smallest price.')
    'write --epsilon 0.1, or --margin 50 for the smallest price.'
    >>> in_a_shell("ask with epsilon= instead of margin=, or fresh=True, with assume_rows=1000.")
    'ask with --epsilon instead of --margin, or --fresh, with --rows 1000.'
    >>> in_a_shell("write epsilon as in '1/2'.")
    "write --epsilon as in '1/2'."
    """
    fix = _TOLD.sub(lambda found: f"{found[1]} {_OPTIONS[found[2]]}", _OPENED.sub("", fix))
    return _GIVEN.sub(_option, fix)


def _option(found: re.Match[str]) -> str:
    name, quoted, true, any_, bare = found.groups()
    value = "FILE" if any_ else quoted if quoted is not None else bare
    return _OPTIONS[name] if true or value is None else f"{_OPTIONS[name]} {value}"
