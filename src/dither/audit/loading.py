"""Finding what is to be audited: `module:function` in the current folder, and what it takes."""

from __future__ import annotations

import importlib
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dither.audit.pairs import Given, Source, source
from dither.errors import ArgumentError


@contextmanager
def _here() -> Iterator[None]:
    """The current folder comes first, as it does for `python -m`."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def found(name: str, what: str) -> Any:
    """The object behind `module:name`; what importing it may raise becomes one text."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise ArgumentError(
            f"{what} must be written module:name, and it is {name!r}.", fix="write, for example, counts:release."
        )
    with _here():
        try:
            importlib.invalidate_caches()
            here: Any = importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name is not None and module.split(".")[0] == problem.name.split(".")[0]:
                raise ArgumentError(
                    f"there is no module {module!r} here.", fix=f"run it in the folder of {module}.py."
                ) from None
            raise ArgumentError(f"{module} needs {problem.name!r}, which is not installed.", fix="install it first.") from None
        except (Exception, SystemExit) as problem:
            raise ArgumentError(f"{module} cannot be imported: {_told(problem)}.", fix="make it importable first.") from None
    for part in path.split("."):
        if not hasattr(here, part):
            raise ArgumentError(f"{module} has no {path!r}.", fix=f"name one of {_names(here)}.")
        here = getattr(here, part)
    return here


def _told(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    return type(problem).__name__ + (f": {text[0]}" if text else "")


def _names(module: Any) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names[:8]) or "its functions"


def function(name: str) -> Callable[..., Any]:
    """The function behind `module:function`."""
    here = found(name, "TARGET")
    if not callable(here):
        raise ArgumentError(f"{name} is a {type(here).__name__} and cannot be called.", fix="name a function of the data.")
    called: Callable[..., Any] = here
    return called


def takes(called: Callable[..., Any]) -> str:
    """How the function takes its noise: "noise" or "rng" as a second argument, or "" if it draws on its own.

    >>> takes(lambda data, rng: 0), takes(lambda data: 0)
    ('rng', '')
    """
    try:
        given = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        return ""
    needed = [one for one in given if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    names = {one.name for one in given}
    spare = [one.name for one in needed[1:] if one.name not in ("noise", "rng")]
    if spare or not given:
        what = f"the function must take the data, and may take noise or rng; it takes {', '.join(sorted(names)) or 'nothing'}."
        raise ArgumentError(what, fix="wrap it: def audited(data): return yours(data, ...).")
    return next((name for name in ("noise", "rng") if name in names), "")


def pairs(name: str | None, data: str) -> Source:
    """Where neighbouring inputs come from: the user's own list or function, or data of the named kind."""
    if name is None:
        return source(data)
    here = found(name, "--pairs")
    if callable(here):
        return Given(_checked(here, name))
    if not isinstance(here, Sequence) or not here or not all(_is_pair(one) for one in here):
        raise ArgumentError(f"{name} must be pairs of neighbouring inputs.", fix="write a list such as [([1, 2], [1])].")
    return Given([(one, two) for one, two in here])


def _is_pair(one: Any) -> bool:
    return isinstance(one, (tuple, list)) and len(one) == 2


def _checked(make: Callable[..., Any], name: str) -> Callable[[random.Random], tuple[Any, Any]]:
    def pair(dice: random.Random) -> tuple[Any, Any]:
        made = make(dice)
        if not _is_pair(made):
            raise ArgumentError(f"{name} must give a pair of neighbouring inputs.", fix="return (D, D′) from it.")
        one, two = made
        return one, two

    return pair
