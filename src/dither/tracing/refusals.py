"""Refuses what would show a private value, with the line of the program that tried.

A private value never becomes a bool, a number, a text with its value, a hash or an array: `if`, `while`, `range`, `f"{x:.2f}"`,
sets, dictionaries and numpy all go through one of these. So control flow, errors and everything else that a program can
observe are functions of public and noisy values.
"""

from __future__ import annotations

import inspect
import linecache
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

from dither.errors import DitherError, Fix, Python

NOT_PROGRAM = ("dither", "numpy", "contextlib", "threading")


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.text}"


def place() -> Place:
    """Returns the line of the program that is being run: the innermost one that is not dither's own."""
    frame = inspect.currentframe()
    if frame is None:  # a Python without frames
        return Place("the program", 0, "")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in NOT_PROGRAM:
        frame = frame.f_back
    path, line = frame.f_code.co_filename, frame.f_lineno
    return Place(PurePath(path).name, line, linecache.getline(path, line, frame.f_globals).strip())


def refused(what: str, fix: str) -> DitherError:
    """Returns the error, with the line of the program."""
    return DitherError(what, where=str(place()), fix=fix)


_BRANCH = Fix(
    "release it with a mechanism, and use what comes back: {call}.",
    call=Python('x.release(dt.Geometric(epsilon="1/10", sensitivity=1))'),
)
_COMPARE = Fix(
    "release it and compare what comes back, or let a mechanism compare: {call} for the largest, {above} for a threshold.",
    call=Python("x.release(dt.NoisyMax(…))"),
    above=Python("x.release(dt.SparseVector(…))"),
)


_METHODS = "use their own methods, such as x.sum(); a mean is x.sum() / len(x). docs/traced-programs.md lists them."


class MissingError(DitherError, AttributeError):
    """A private value has no such attribute; `hasattr` is false."""

    code = "missing"


class Secret:
    """A value that cannot be looked at."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves arithmetic with arrays to this class

    def __bool__(self) -> bool:
        raise refused("A private value cannot decide what the program does next.", _BRANCH)

    def _number(self) -> DitherError:
        return refused("A private value cannot become a plain number.", _BRANCH)

    def __int__(self) -> int:
        raise self._number()

    def __float__(self) -> float:
        raise self._number()

    def __complex__(self) -> complex:
        raise self._number()

    def __index__(self) -> int:
        raise self._number()

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise self._number()

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        raise refused("A private value cannot become a numpy array.", _BRANCH)

    def __array_function__(self, function: Any, *args: Any) -> NoReturn:
        name = getattr(function, "__name__", "a function")
        raise refused(f"numpy's {name} does not take private values.", _METHODS)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise MissingError(f"Private values have no {name}.", where=str(place()), fix=_METHODS)

    def _compare(self, other: object) -> NoReturn:
        raise refused("A private value cannot be compared.", _COMPARE)

    __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __eq__(self, other: object) -> NoReturn:
        self._compare(other)

    def __ne__(self, other: object) -> NoReturn:
        self._compare(other)

    def __contains__(self, other: object) -> NoReturn:
        self._compare(other)

    def __hash__(self) -> int:
        raise refused(
            "A private value cannot be in a set, or be the key of a dictionary.", "use its public position as the key."
        )

    def __format__(self, spec: str) -> str:
        if spec:
            raise refused("A private value cannot be formatted.", _BRANCH)
        return repr(self)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise refused("Private values do not change in place.", "compute a new value, such as x + y.")

    def __truediv__(self, other: object) -> Any:
        return NotImplemented

    def __rtruediv__(self, other: object) -> NoReturn:
        raise refused("Nothing is divided by a private value: it may be 0.", "release it, and divide by what comes back.")

    __rfloordiv__ = __rmod__ = __rpow__ = __rtruediv__

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise refused("A private value cannot be stored or sent elsewhere.", _BRANCH)
