"""Reads from a function what data it takes: from its signature, from the constants in its code, and by calling it.

    count: int                 an exact count          neighbours differ by 1
    bit: int, item: str        one person's value      neighbours are any two values (the local model)
    answers, scores: list      answers to questions    neighbours differ by at most 1 in each
    counts, histogram: list    a histogram             neighbours differ by 1 in one cell
    list[float], rows, df …    records                 neighbours have one record, or one unit, more or less

Annotations are used before names, and names before trying. Constants (bounds, thresholds, keys, column names) are where code
changes its behaviour, so generated data lies on them and beside them. The report states the kind that was read: neighbours of
another kind would be another claim.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

_MOST = 24  # constants of each type
_DEEP = 3  # functions that call functions
_NAMES: dict[str, tuple[str, ...]] = {
    "bit": ("bit", "flag", "answer_is_yes", "truth"),
    "item": ("item", "symbol", "category", "element", "code"),
    "bits": ("bits", "flags"),
    "answers": ("answers", "queries", "scores", "utilities", "qualities", "query_answers"),
    "counts": ("counts", "histogram", "hist", "bins", "cells", "stream", "cell_counts"),
    "count": ("count", "n", "x", "total", "true_count", "exact", "true_answer", "answer", "size"),
    "frame": ("df", "frame", "dataframe"),
    "rows": ("rows", "records", "people", "users", "events", "visits"),
    "words": ("words", "texts", "labels", "names", "keys", "categories"),
    "table": ("table", "columns"),
    "array": ("array", "arr"),
}
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names}


@dataclass(frozen=True)
class Hints:
    """What the code of a function reveals: numbers and words in it, columns it reads, and whether it mentions None."""

    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    none: bool = False
    width: int | None = None  # of a tuple whose length the signature states


def data_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    """Returns the parameter that takes the data: the first one."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return parameters[0] if parameters else None


def kinds(function: Callable[..., Any], hints: Hints) -> tuple[str, ...]:
    """Returns the kinds of data to try, the likeliest first; a single one if annotation or name decides.

    >>> def noisy(count: int): ...
    >>> def total(values: list[float]): ...
    >>> kinds(noisy, Hints()), kinds(total, Hints())
    (('count',), ('numbers',))
    """
    parameter = data_parameter(function)
    name = "" if parameter is None else parameter.name.lower()
    text = "" if parameter is None or parameter.annotation is parameter.empty else _annotation(parameter.annotation)
    named = _BY_NAME.get(name, "")
    by_type = _by_annotation(text, named)
    if by_type:
        return (by_type,)
    if named in ("rows", "words") and not (named == "rows" and hints.columns):
        named = ""  # too common a name to decide without columns
    if named and named not in ("count", "array"):
        return (named,)
    rows = ("rows",) if hints.columns else ()
    first = (named,) if named else ()
    rest = (*rows, "numbers", "array", "words", "rows", "table", "integers", "count", "item")
    return tuple(dict.fromkeys((*first, *rest)))


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if not isinstance(annotation, (str, type)) or getattr(annotation, "__args__", None):
        text = annotation if isinstance(annotation, str) else str(annotation)
    return str(text).lower().replace("typing.", "").replace(" ", "")


def _by_annotation(text: str, named: str) -> str:
    """Returns the kind that an annotation decides, with the name's help where a list may be several things."""
    plain = text.removesuffix("|none").removeprefix("optional[")
    if plain in ("int", "float", "bool", "str"):
        scalar = named if named in ("bit", "item", "count") else ""
        return {"bool": "bit", "str": "item"}.get(plain, scalar or "count")
    if "ndarray" in text or text.endswith("array"):
        return named if named in ("answers", "counts") else "array"
    for part, kind in (("dataframe", "frame"), ("table", ""), ("[dict", "rows"), ("[mapping", "rows"), ("dict[", "table")):
        if part in text:
            return kind
    if re.match(r"(list|sequence|iterable|collection|tuple)\[", text):
        inside = text.partition("[")[2]
        if named in ("answers", "counts", "bits"):
            return named
        return "words" if "str" in inside else "numbers" if "float" in inside else "integers" if "int" in inside else ""
    return ""


# --- constants in the code -----------------------------------------------------------------------------------------


def read_hints(function: Callable[..., Any]) -> Hints:
    """Returns the constants of a function and of the functions of its own module that it calls.

    >>> def clipped(values): return sum(min(v, 120) for v in values)
    >>> read_hints(clipped).numbers
    (120.0,)
    """
    values = list(_constants(function, _DEEP, set()))
    reals = dict.fromkeys(float(one) for one in values if _is_real(one))
    words = dict.fromkeys(one for one in values if isinstance(one, str) and 0 < len(one) <= 30 and one.isprintable())
    columns = _columns(function)
    spoken = tuple(word for word in words if word not in columns)[:_MOST]
    parameter = data_parameter(function)
    text = "" if parameter is None or parameter.annotation is parameter.empty else _annotation(parameter.annotation)
    width = text.count(",") + 1 if text.startswith("tuple[") and "..." not in text else None
    return Hints(tuple(reals)[:_MOST], spoken, columns, any(one is None for one in values) or "none" in text, width)


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and abs(value) <= 2.0**64


def _constants(value: Any, deep: int, seen: set[int]) -> Iterator[Any]:
    """Yields the constants of a function: literals, defaults, closed-over values and globals that it names."""
    value = inspect.unwrap(value) if callable(value) else value
    code = getattr(value, "__code__", None)
    if not isinstance(value, FunctionType) or code is None or id(code) in seen or deep < 0:
        return
    seen.add(id(code))
    yield from _literals(code)
    yield from _flat(value.__defaults__ or ())
    reachable = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    reachable += [value.__globals__[name] for name in _names(code) if name in value.__globals__]
    for one in reachable:
        if isinstance(one, FunctionType) and one.__module__ == value.__module__:
            yield from _constants(one, deep - 1, seen)
        else:
            yield from _flat((one,))


def _names(code: CodeType) -> Iterator[str]:
    """Yields the global names that the code uses, and the code inside it: comprehensions are functions of their own."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _literals(code: CodeType) -> Iterator[Any]:
    documentation = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else None
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from (inner for inner in _literals(one) if inner is not None)
        elif one is not documentation and not (one is None and not _compares_none(code)):
            yield from _flat((one,))


def _compares_none(code: CodeType) -> bool:
    """Tells whether None may be more than the implicit result, which is a constant of its own."""
    return None in code.co_consts and len(code.co_consts) > 1


def _flat(values: Iterable[Any], deep: int = 2) -> Iterator[Any]:
    for one in values:
        if isinstance(one, (int, float, str)) or one is None:
            yield one
        elif isinstance(one, (tuple, list, set, frozenset)) and deep and len(one) <= 64:
            yield from _flat(one, deep - 1)
        elif isinstance(one, dict) and deep and len(one) <= 64:
            yield from _flat((*one.keys(), *one.values()), deep - 1)


def _columns(function: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the names by which the source reads fields: row["age"], row.get("age")."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        inside: Any = None
        if isinstance(node, ast.Subscript):
            inside = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            inside = node.args[0]
        if isinstance(inside, ast.Constant) and isinstance(inside.value, str):
            found[inside.value] = None
    return tuple(found)
