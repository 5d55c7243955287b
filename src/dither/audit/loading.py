"""Loads what the command line names: a function, its neighbouring inputs, and how the function gets its noise."""

from __future__ import annotations

import importlib
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dither.errors import ArgumentError


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Puts the current folder first on sys.path, as `python -m` does."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def load_object(name: str, what: str) -> Any:
    """Imports the object `module:name`. Refuses a name that cannot be imported."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise ArgumentError(
            f"{what} must be written module:name, and it is {name!r}.", fix="write, for example, counts:release."
        )
    with _current_folder_first():
        try:
            importlib.invalidate_caches()
            value: Any = importlib.import_module(module)
        except ModuleNotFoundError as problem:
            if problem.name is not None and module.split(".")[0] == problem.name.split(".")[0]:
                raise ArgumentError(
                    f"there is no module {module!r} here.", fix=f"run it in the folder of {module}.py."
                ) from None
            raise ArgumentError(f"{module} needs {problem.name!r}, which is not installed.", fix="install it first.") from None
        except (Exception, SystemExit) as problem:
            raise ArgumentError(
                f"{module} cannot be imported: {_describe(problem)}.", fix="make it importable first."
            ) from None
    for part in path.split("."):
        if not hasattr(value, part):
            raise ArgumentError(f"{module} has no {path!r}.", fix=f"name one of {_names(value)}.")
        value = getattr(value, part)
    return value


def _describe(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    return type(problem).__name__ + (f": {text[0]}" if text else "")


def _names(module: Any) -> str:
    names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    return ", ".join(names[:8]) or "its functions"


def load_function(name: str) -> Callable[..., Any]:
    """Imports the function `module:function`."""
    value = load_object(name, "TARGET")
    if not callable(value):
        raise ArgumentError(f"{name} is a {type(value).__name__} and cannot be called.", fix="name a function of the data.")
    function: Callable[..., Any] = value
    return function


def takes(function: Callable[..., Any]) -> str:
    """Returns how the function gets its noise: "noise" or "rng" for an argument, "" if it draws its own.

    >>> takes(lambda data, rng: 0), takes(lambda data: 0)
    ('rng', '')
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ""
    needed = [one for one in parameters if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    names = {one.name for one in parameters}
    spare = [one.name for one in needed[1:] if one.name not in ("noise", "rng", "size")]
    if spare or not parameters:
        takes = ", ".join(sorted(names)) or "nothing"
        what = f"the function must take the data, and may take noise, rng or size; it takes {takes}."
        raise ArgumentError(what, fix="wrap it: def audited(data): return yours(data, ...).")
    return next((name for name in ("noise", "rng") if name in names), "")


def takes_size(function: Callable[..., Any]) -> bool:
    """Tells whether the function has a parameter `size`, to return so many independent outputs at once.

    >>> takes_size(lambda data, rng, size=None: 0)
    True
    """
    try:
        return "size" in list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        return False


def library_of(function: Callable[..., Any]) -> str:
    """Returns "opendp" or "diffprivlib" if the function's module uses one of them, otherwise "numpy"."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    homes = {
        str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).split(".")[0] for value in names.values()
    }
    return next((library for library in ("opendp", "diffprivlib") if library in homes), "numpy")


def load_pairs(name: str | None) -> Any:
    """Returns the user's neighbouring inputs, a list or a function, or None."""
    if name is None:
        return None
    pairs = load_object(name, "--pairs")
    if callable(pairs):
        return _check_pairs(pairs, name)
    if not isinstance(pairs, Sequence) or not pairs or not all(_is_pair(one) for one in pairs):
        raise ArgumentError(f"{name} must be pairs of neighbouring inputs.", fix="write a list such as [([1, 2], [1])].")
    return [(one, two) for one, two in pairs]


def _is_pair(one: Any) -> bool:
    return isinstance(one, (tuple, list)) and len(one) == 2


def _check_pairs(make: Callable[..., Any], name: str) -> Callable[[random.Random], tuple[Any, Any]]:
    def pair(rng: random.Random) -> tuple[Any, Any]:
        result = make(rng)
        if not _is_pair(result):
            raise ArgumentError(f"{name} must give a pair of neighbouring inputs.", fix="return (D, D′) from it.")
        one, two = result
        return one, two

    return pair
