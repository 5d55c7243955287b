"""Encodes the identity of a question and its stored answer as text.

Identity. Questions with equal texts share one answer and pay once. The text holds what the engine computes, the noise of every
release by its mechanism's record, the threshold for keys, and the price. It leaves out post-processing: HAVING, ORDER BY,
LIMIT, names, arithmetic on aggregates, the order of SELECT and GROUP BY, the confidence.

It is JSON with sorted keys. The tables below encode every node: its tag under "is", and its fields under names of their own. So
renaming a class or rewording a sentence does not change the text (tests compare it with a file). Numbers are exact: a whole
number as itself, any other as {"is": "number", "value": "1/10"}. A value without an encoding is refused: two different
questions must never share a text. Releases and keys are sorted by their texts, and so are the numbers of a stored answer.

Stored answers. The text holds public values only: the keys shown and the noisy whole numbers. Keys carry their kind, because
TRUE, 1 and '1' are three keys. Whole numbers of any size are kept, with the width they were computed in.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.catalog.values import Key
from dither.errors import DitherError, Fix
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan
from dither.planning.releases.base import Noise
from dither.planning.releases.keys import Together, key_order
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Named,
    PerUnit,
    Relation,
    Rows,
    Scan,
    Semi,
    Sort,
    Union,
    Window,
    WithinUnit,
)
from dither.query.normal import form
from dither.query.work import UNIT, Bins, Cell, Distinct, Measure, Quantised, Sums

FORMAT = 2  # ledgers keep these texts: any change to them needs a new number

# Every node of a question: its tag, and the name in the text of each field that is part of the identity.
NODES: dict[type, tuple[str, dict[str, str]]] = {
    Column: ("column", {"name": "name"}),
    Call: ("call", {"name": "function", "arguments": "arguments"}),
    Named: ("named", {"name": "name", "expression": "expression"}),
    Scan: ("scan", {"table": "table", "alias": "alias"}),
    Filter: ("filter", {"source": "source", "condition": "condition"}),
    Compute: ("compute", {"source": "source", "columns": "columns"}),
    Join: ("join", {"left": "left", "right": "right", "equal": "equal", "kind": "kind", "scalar": "scalar"}),
    Semi: (
        "semi",
        {"source": "source", "other": "other", "equal": "equal", "negated": "negated", "listed": "listed", "mark": "mark"},
    ),
    PerUnit: ("per unit", {"source": "source", "keys": "keys", "aggregates": "aggregates"}),
    WithinUnit: ("within unit", {"source": "source", "windows": "windows"}),
    Window: (
        "window",
        {
            "name": "name",
            "function": "function",
            "arguments": "arguments",
            "partition": "partition",
            "order": "order",
            "rows": "rows",
            "ties": "ties",
        },
    ),
    Sort: ("sort", {"expression": "expression", "descending": "descending", "nulls_first": "nulls_first"}),
    Rows: ("rows", {"start": "start", "end": "end", "peers": "peers"}),
    Union: ("union", {"parts": "parts"}),
    Aggregate: (
        "aggregate",
        {
            "name": "name",
            "function": "function",
            "argument": "of",
            "parameter": "parameter",
            "where": "where",
            "second": "with",
            "among": "among",
        },
    ),
    Quantised: ("grid", {"expression": "expression", "low": "low", "step": "step", "steps": "steps"}),
    Cell: ("cell", {"argument": "of", "constant": "constant", "linear": "linear", "square": "square", "null": "null"}),
    Sums: ("sums", {"cells": "cells", "max_rows": "max_rows", "where": "where"}),
    Distinct: ("distinct", {"expression": "expression", "max_values": "max_values"}),
    Bins: ("bins", {"argument": "of", "max_rows": "max_rows", "where": "where"}),
}

# Fields that came later. They are left out where they are empty, so that older texts stay as they are.
LATER = frozenset({(Aggregate, "second"), (Aggregate, "among")})

# Constants: TRUE is not 1, and a decimal is not a whole number.
CONSTANTS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    Fraction: "decimal",
    float: "decimal",
    str: "text",
    datetime.date: "date",
    datetime.datetime: "timestamp",
}


@dataclass(frozen=True)
class Order:
    """The places of a plan's keys and releases, in the order of its text."""

    keys: tuple[int, ...]
    releases: tuple[int, ...]

    def stored(self, noisy: Noisy) -> Noisy:
        """Sorts into the order of the text."""
        return _arrange(noisy, self.keys, self.releases)

    def planned(self, noisy: Noisy) -> Noisy:
        """Sorts back into the order of the plan."""
        return _arrange(noisy, _inverse(self.keys), _inverse(self.releases))


@dataclass(frozen=True)
class Identity:
    """The text of plans that run together, and the order of their stored answer. `plans`: their places, in the order of the
    text."""

    text: str
    orders: tuple[Order, ...]
    plans: tuple[int, ...]

    def write(self, released: Sequence[Noisy]) -> str:
        """Encodes the stored answer: the same text for all questions that share the identity."""
        stored = [order.stored(noisy) for order, noisy in zip(self.orders, released, strict=True)]
        return encode_noisy([stored[place] for place in self.plans])

    def read(self, stored: str) -> tuple[Noisy, ...]:
        """Decodes a stored answer into the order of these plans."""
        noisy = decode_noisy(stored)
        own = (noisy[place] for place in _inverse(self.plans))
        return tuple(order.planned(each) for order, each in zip(self.orders, own, strict=True))


@dataclass(frozen=True)
class Forms:
    """A plan in normal form: its source, the unit's column there, and every expression over it."""

    source: Relation
    unit: str | None
    expressions: Mapping[Expression, Expression]
    spelled: dict[int, Any] = field(default_factory=dict, compare=False)  # encoded forms by id, each encoded once

    def encode(self, written: Expression) -> Any:
        """Encodes the normal form of an expression."""
        return self._encode(self.expressions[written])

    def _encode(self, node: Expression) -> Any:
        if id(node) not in self.spelled:
            self.spelled[id(node)] = self._encode_call(node) if isinstance(node, Call) else encode(node)
        return self.spelled[id(node)]

    def _encode_call(self, node: Call) -> Any:
        tag, names = NODES[Call]
        return {"is": tag, names["name"]: node.name, names["arguments"]: [self._encode(each) for each in node.arguments]}

    @classmethod
    def of(cls, plan: Plan) -> Forms:
        return cls.over(plan.work.source, plan.work.by_unit, plan.work.keys, [noise.of.measure for noise in plan.noises])

    @classmethod
    def over(cls, source: Relation, by_unit: bool, keys: Sequence[Named], measures: Sequence[Measure]) -> Forms:
        """Returns the forms of keys and measures over a relation."""
        used = [*(key.expression for key in keys), *_expressions(tuple(measures))]
        normal = form(source)
        return cls(normal.relation, normal.column(UNIT) if by_unit else None, normal.expressions(used))


def _expressions(value: Any) -> Iterator[Expression]:
    """Yields every whole expression in a measure."""
    if isinstance(value, (Column, Call, Literal)):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)
    elif type(value) in NODES:
        for name in NODES[type(value)][1]:
            yield from _expressions(getattr(value, name))


def identity(plans: Sequence[Plan], purpose: str = "answer") -> Identity:
    """Returns the identity of plans that run together, for a purpose: an answer, or a proposal of bounds.

    Grouping sets are sorted by their texts, and each states the price of all: their order does not matter.
    """
    sets = [plan for plan in plans if plan.level is not None]
    whole = sum((plan.price.epsilon for plan in sets), Fraction(0)), sum((plan.price.delta for plan in sets), Fraction(0))
    parts, orders = [], []
    for plan in plans:
        forms = Forms.of(plan)
        keys = [encode(key.expression, forms) for key in plan.work.keys]
        releases = [_release(noise, forms) for noise in plan.noises]
        order = Order(_sorted(keys), _sorted(releases))
        parts.append(_part(plan, forms, [keys[i] for i in order.keys], [releases[i] for i in order.releases], order))
        if plan.level is not None:
            parts[-1]["price"] = {"epsilon": encode(whole[0]), "delta": encode(whole[1])}
        orders.append(order if plan.level is None else Order(_sorted([keys[i] for i in plan.level]), order.releases))
    rest = [place for place, plan in enumerate(plans) if plan.level is None]
    places = sorted(set(range(len(plans))) - set(rest), key=lambda place: _json(parts[place])) + rest
    text = _json({"format": FORMAT, "purpose": purpose, "parts": [parts[place] for place in places]})
    return Identity(text, tuple(orders), tuple(places))


def encode_identities(texts: Sequence[str]) -> str:
    """Encodes the identity of programs that are charged together: the identities of its parts, in order."""
    return _json({"format": FORMAT, "purpose": "several", "programs": list(texts)})


def _part(plan: Plan, forms: Forms, keys: list[Any], releases: list[Any], order: Order) -> dict[str, Any]:
    work, known = plan.work, plan.work.known
    return {
        "source": encode(forms.source, known={}),
        "unit": forms.unit,
        "keys": keys,
        "known": None if known is None else [sorted(map(_constant, known[i]), key=_json) for i in order.keys],
        "max_groups": work.max_groups,
        "releases": releases,
        "shown": None if plan.threshold is None else plan.threshold.record(),
        "price": {"epsilon": encode(plan.price.epsilon), "delta": encode(plan.price.delta)},
        **({} if plan.level is None else {"level": sorted(order.keys.index(place) for place in plan.level)}),
        **({} if work.sample is None else {"sample": encode(work.sample)}),
        **({} if not plan.together else {"together": sorted((_together(each, order) for each in plan.together), key=_json)}),
    }


def _together(together: Together, order: Order) -> dict[str, Any]:
    """Encodes keys that depend on each other, in the order of the keys."""
    places = sorted((order.keys.index(place), number) for number, place in enumerate(together.places))
    values = [[_constant(key[number]) for _, number in places] for key in together.values]
    return {"keys": [place for place, _ in places], "values": sorted(values, key=_json)}


def _release(noise: Noise, forms: Forms) -> dict[str, Any]:
    extra = {name: encode(value) for name, value in noise.of.parameters.items()}
    times = {"groups": noise.groups, "steps": noise.steps}
    return {"measure": encode(noise.of.measure, forms), **extra, "noise": noise.record, **times}


def encode(value: Any, forms: Forms | None = None, known: dict[int, Any] | None = None) -> Any:
    """Encodes a value for JSON in exactly one way; expressions in normal form if `forms` are given.

    `known`: encoded calls by id, so that a part that is used many times is encoded once. The value must keep them alive.

    >>> encode((1, Fraction(2), Fraction(1, 2), True, None, "1"))
    [1, 2, {'is': 'number', 'value': '1/2'}, True, None, '1']
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, tuple):
        return [encode(each, forms, known) for each in value]
    if known is not None and id(value) in known:
        return known[id(value)]
    if isinstance(value, (Column, Call, Literal)) and forms is not None:
        return forms.encode(value)
    if isinstance(value, Literal):
        return _constant(value.value)
    if isinstance(value, (int, Fraction)):
        return _number(Fraction(value))
    if type(value) not in NODES:
        raise TypeError(f"a question holds a {type(value).__name__}, which has no spelling")
    tag, names = NODES[type(value)]
    parts = {name: getattr(value, name) for name in names}
    told = {name: part for name, part in parts.items() if part or (type(value), name) not in LATER}
    made = {"is": tag, **{names[name]: encode(part, forms, known) for name, part in told.items()}}
    if known is not None and isinstance(value, Call):
        known[id(value)] = made
    return made


def _constant(value: Any) -> dict[str, Any]:
    kinds = [kind for kind in type(value).__mro__ if kind in CONSTANTS]  # the first is the nearest: a bool is also an int
    if not kinds or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(f"a question holds a constant of type {type(value).__name__}, which has no spelling")
    plain = value.isoformat() if isinstance(value, datetime.date) else Fraction(value) if isinstance(value, float) else value
    return {"is": "constant", "kind": CONSTANTS[kinds[0]], "value": encode(plain)}


def _number(exact: Fraction) -> Any:
    if exact.denominator == 1 and short(exact.numerator):
        return exact.numerator
    return {"is": "number", "value": f"{digits(exact.numerator)}/{digits(exact.denominator)}"}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _sorted(texts: Sequence[Any]) -> tuple[int, ...]:
    return tuple(sorted(range(len(texts)), key=lambda place: _json(texts[place])))


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(place) for place in range(len(order)))


def _arrange(noisy: Noisy, keys: tuple[int, ...], releases: tuple[int, ...]) -> Noisy:
    """Returns keys and releases in another order, and the groups in the order of their keys."""
    moved = [tuple(key[i] for i in keys) for key in noisy.keys]
    groups = sorted(range(len(moved)), key=lambda group: key_order(moved[group]))
    return Noisy(tuple(moved[group] for group in groups), tuple(noisy.cells[i][groups] for i in releases))


STORED_FORMAT = 1
_PLAIN_DIGITS = 4000  # Python writes and reads whole numbers up to 4300 digits


def digits(value: int) -> str:
    """Encodes a whole number of any size; int(text, 0) decodes it."""
    return str(value) if short(value) else hex(value)


def short(value: int) -> bool:
    """Whether Python can write and read the number in decimal digits."""
    return value.bit_length() < 3 * _PLAIN_DIGITS


_WIDTHS = {"int64": np.dtype(np.int64), "any": np.dtype(object)}

# How each kind of key is encoded and decoded. Timestamps come before dates, because a datetime is also a date.
_KINDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "bool": (bool, lambda value: "true" if value else "false", lambda text: {"true": True, "false": False}[text]),
    "int": (int, digits, lambda text: int(text, 0)),
    "real": (float, float.hex, float.fromhex),
    "text": (str, str, str),
    "timestamp": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
}


def encode_noisy(released: Sequence[Noisy]) -> str:
    """Encodes the releases of one charge, in order.

    >>> print(encode_noisy([Noisy((("north",), (None,)), (np.array([[3], [-1]]),))]))
    {"format":1,"released":[{"cells":[{"shape":[2,1],"values":[3,-1],"width":"int64"}],"keys":[[["text","north"]],[null]]}]}
    """
    body = [
        {"keys": [[_key(part) for part in key] for key in one.keys], "cells": [_cells(c) for c in one.cells]}
        for one in released
    ]
    return json.dumps({"format": STORED_FORMAT, "released": body}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def decode_noisy(text: str) -> tuple[Noisy, ...]:
    """Decodes the releases of one charge. Refuses a text of another format."""
    try:
        read = json.loads(text)
        if read["format"] != STORED_FORMAT:
            raise ValueError("another format")
        return tuple(
            Noisy(tuple(tuple(map(_read_key, key)) for key in one["keys"]), tuple(map(_read_cells, one["cells"])))
            for one in read["released"]
        )
    except (KeyError, TypeError, ValueError):
        raise unreadable() from None


def unreadable() -> DitherError:
    """Returns the refusal of a stored answer that another version wrote."""
    return DitherError(
        "This version of dither cannot read the stored answer.",
        fix=Fix("ask with {fresh} for a new answer at its full price, or use the version that gave it.", fresh=True),
    )


def _key(value: Key) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, np.generic):  # an engine may return numpy scalars
        value = value.item()
    for kind, (python_type, write, _) in _KINDS.items():
        if isinstance(value, python_type):
            return [kind, write(value)]
    raise TypeError(f"a key of type {type(value).__name__} cannot be stored")


def _read_key(part: list[str] | None) -> Any:
    return None if part is None else _KINDS[part[0]][2](part[1])


def _cells(cells: NDArray[Any]) -> dict[str, Any]:
    widths = [name for name, dtype in _WIDTHS.items() if cells.dtype == dtype]  # not a generator: closing one can lose a Ctrl-C
    if not widths or cells.ndim != 2:
        raise TypeError(f"released numbers of type {cells.dtype} cannot be stored")
    return {"width": widths[0], "shape": list(cells.shape), "values": [_whole(value) for value in cells.ravel().tolist()]}


def _whole(value: Any) -> int | str:
    """Encodes numbers beyond 2^53 as text: other JSON readers turn numbers into doubles."""
    number = int(value)
    return number if abs(number) <= 1 << 53 else digits(number)


def _read_cells(stored: dict[str, Any]) -> NDArray[Any]:
    values = [int(value, 0) if isinstance(value, str) else int(value) for value in stored["values"]]
    cells = np.empty(len(values), dtype=_WIDTHS[stored["width"]])
    cells[:] = values
    return cells.reshape(stored["shape"])
