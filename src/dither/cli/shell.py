"""Spells the fixes of errors as options of the command line: `analyst="ada"` in Python is `--analyst ada` here."""

from __future__ import annotations

from dither.errors import Argument, Blank, Name, Part, Python, python

_OPTIONS = {
    name: f"--{name}" for name in ("epsilon", "delta", "margin", "confidence", "analyst", "ledger", "key", "witness", "by")
}
_OPTIONS |= {"assume_rows": "--rows", "fresh": "--fresh"}


def shell(part: Part) -> str:
    """A part of a fix as a shell has it. What no option stands for is spelled as in Python.

    >>> shell(Argument("epsilon", "0.1")), shell(Argument("fresh", True)), shell(Argument("key", Blank("FILE")))
    ('--epsilon 0.1', '--fresh', '--key FILE')
    >>> shell(Name("assume_rows")), shell(Argument("sensitivity", 1))
    ('--rows', 'sensitivity=1')
    """
    match part:
        case Argument(name, value) if name in _OPTIONS:
            shown = value.word if isinstance(value, Blank) else "" if value is True else str(value)
            return f"{_OPTIONS[name]} {shown}".rstrip()
        case Name(name):
            return _OPTIONS.get(name, name)
        case Python(shell=str() as words):
            return words
        case _:
            return python(part)
