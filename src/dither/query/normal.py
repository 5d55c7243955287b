"""One form for questions that mean the same, so that an answer is found again however it was written.

    form(relation)  ->  Form, for the relation and expressions over it
    normal(query)   ->  Query

What is made alike: the sides of a comparison (18 <= age, age >= 18), whole numbers with a decimal point (18.0), NOT over
conditions, the order and repetition of AND and OR, IN as equalities, FILTER as CASE, COUNT(1), aliases, filters one above
the other, subqueries that only hand columns on, and all that is done with the noisy result, which is no part of this form.

Each rewriting keeps an expression's value on every row, NULL included, and all that is inferred of it: the planner finds
the same bounds and grids. Which rows there are, and how often, stays the same too. So this is for telling questions apart;
words and plans are made from the question as it was written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

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
    Query,
    Relation,
    Scan,
    Semi,
    Union,
)
from dither.query.work import UNIT

Pair = tuple[Expression, Expression]
_TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # x < y is y > x
_DENIED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "and": "or", "or": "and"}
_NEUTRAL = {"and": True, "or": False}
_EITHER_WAY = ("add", "mul")  # commutative in doubles, too
_IN_DOUBLES = ("add", "sub", "mul", "div", "mod")
_EXACT = 2**53  # whole numbers below it are doubles, and so are their neighbours


def normal(query: Query) -> Query:
    """The form of a resolved question. Keys stay in their order; names are places; what is done afterwards is left out."""
    source = form(query.source)
    keys = tuple(Named(f"k{place}", _expression(key.expression, source)) for place, key in enumerate(query.keys, start=1))
    aggregates = _aggregates((each.lowered() for each in query.aggregates), source, "a")
    relation = source.relation
    if UNIT in source.names:
        used = sorted(_read([*(key.expression for key in keys), *(each.argument for each in aggregates)]))
        named = tuple(Named(name, Column(name)) for name in used)
        relation = Compute(relation, (*named, Named(UNIT, Column(source.names[UNIT]))))
    return Query(relation, keys, tuple(aggregates), ())


# --- relations --------------------------------------------------------------------------------------------------


def form(relation: Relation) -> Form:
    """The form of a relation, in which expressions over it find theirs."""
    return _relation(relation, itertools.count(1))


@dataclass(frozen=True)
class Form:
    """A relation in its form, and what its columns were called before."""

    relation: Relation
    names: Mapping[str, str] = field(hash=False)
    aliases: tuple[tuple[str, str], ...] = ()  # old and new ones of tables that offer all of their columns

    def expressions(self, written: Iterable[Expression]) -> dict[Expression, Expression]:
        """The forms of expressions over the relation as it was."""
        return {each: _expression(each, self) for each in written}

    def column(self, name: str) -> str:
        """What a column is called now."""
        if name in self.names:
            return self.names[name]
        old, new = next(pair for pair in self.aliases if name.startswith(f"{pair[0]}."))
        return new + name[len(old) :]


def _relation(node: Relation, places: Iterator[int]) -> Form:
    if isinstance(node, Scan):
        alias = f"t{next(places)}"
        return Form(Scan(node.table, alias, span=node.span), {}, ((node.alias, alias),))
    if isinstance(node, Filter):
        return _filter(node, _relation(node.source, places))
    if isinstance(node, Compute):
        return _compute(node, _relation(node.source, places), places)
    if isinstance(node, PerUnit):
        return _per_unit(node, _relation(node.source, places), places)
    if isinstance(node, Union):
        return _union([(part, _relation(part, places)) for part in node.parts], places)
    if isinstance(node, Join):
        left, right = _relation(node.left, places), _relation(node.right, places)
        joined = replace(node, left=left.relation, right=right.relation, equal=_pairs(node.equal, left, right))
        return Form(joined, {**right.names, **left.names}, (*left.aliases, *right.aliases))
    return _semi(node, _relation(node.source, places), _relation(node.other, places))


def _filter(node: Filter, source: Form) -> Form:
    """Filters one above the other are one; WHERE TRUE is none."""
    condition, inner = _expression(node.condition, source), source.relation
    if condition == Literal(True):
        return source
    if isinstance(inner, Filter):
        condition, inner = _together("and", [inner.condition, condition], node.condition), inner.source
    return replace(source, relation=Filter(inner, condition))


def _compute(node: Compute, source: Form, places: Iterator[int]) -> Form:
    """What only hands columns on is nothing but names for them."""
    plain = {each.name: source.column(each.expression.name) for each in node.columns if isinstance(each.expression, Column)}
    if len(plain) == len(node.columns):
        return Form(source.relation, plain)
    read = {each.name: _expression(each.expression, source) for each in node.columns}
    named = _named(_once(read.values()), f"c{next(places)}.")
    names = {each.expression: each.name for each in named}
    return Form(Compute(source.relation, named), {old: names[value] for old, value in read.items()})


def _per_unit(node: PerUnit, source: Form, places: Iterator[int]) -> Form:
    alias = f"u{next(places)}."
    read = {key.name: _expression(key.expression, source) for key in node.keys}
    keys = _named(_once(read.values()), f"{alias}k")
    aggregates = _aggregates((each.lowered() for each in node.aggregates), source, f"{alias}a")
    names = {each.expression: each.name for each in keys}
    found = {old: names[value] for old, value in read.items()}
    for each in node.aggregates:
        (one,) = _aggregates([each.lowered()], source, "")
        found[each.name] = next(other.name for other in aggregates if replace(other, name=one.name) == one)
    return Form(PerUnit(source.relation, keys, tuple(aggregates), span=node.span), found)


def _union(parts: list[tuple[Relation, Form]], places: Iterator[int]) -> Form:
    """All parts under the same names, in an order that their own columns give."""
    alias = f"v{next(places)}."
    offered = {name: tuple(source.column(name) for _, source in parts) for name in parts[0][1].names}
    rows = sorted(set(offered.values()))
    names = {columns: f"{alias}{place}" for place, columns in enumerate(rows, start=1)}
    relations = (
        Compute(source.relation, tuple(Named(names[columns], Column(columns[place])) for columns in rows))
        for place, (_, source) in enumerate(parts)
    )
    return Form(Union(tuple(relations)), {old: names[columns] for old, columns in offered.items()})


def _semi(node: Semi, source: Form, other: Form) -> Form:
    listed = None if node.listed is None else _pairs((node.listed,), source, other)[0]
    equal = _pairs(node.equal, source, other)
    found = replace(node, source=source.relation, other=other.relation, equal=equal, listed=listed)
    return replace(source, relation=found)


def _pairs(pairs: Iterable[Pair], left: Form, right: Form) -> tuple[Pair, ...]:
    found = {(_expression(a, left), _expression(b, right)): None for a, b in pairs}
    return tuple(sorted(found, key=lambda pair: (_order(pair[0]), _order(pair[1]))))


def _aggregates(asked: Iterable[Aggregate], source: Form, prefix: str) -> list[Aggregate]:
    """Each once, in one order, named by its place. `asked` have no FILTER."""
    found: dict[Aggregate, None] = {}
    for each in asked:
        inner = None if each.argument is None else _expression(each.argument, source)
        every = each.function == "count" and isinstance(inner, Literal) and inner.value is not None
        found[replace(each, name="", argument=None if every else inner)] = None
    ordered = sorted(found, key=lambda each: (each.function, str(each.parameter), _order(each.argument)))
    return [replace(each, name=f"{prefix}{place}") for place, each in enumerate(ordered, start=1)]


def _named(expressions: Iterable[Expression], prefix: str) -> tuple[Named, ...]:
    return tuple(Named(f"{prefix}{place}", each) for place, each in enumerate(expressions, start=1))


def _read(expressions: Iterable[Expression | None]) -> frozenset[str]:
    """The columns that these name."""
    found: set[str] = set()
    for each in expressions:
        if isinstance(each, Column):
            found.add(each.name)
        elif isinstance(each, Call):
            found |= _read(each.arguments)
    return frozenset(found)


# --- expressions ------------------------------------------------------------------------------------------------


def _expression(node: Expression, source: Form) -> Expression:
    if isinstance(node, Literal):
        return node
    if isinstance(node, Column):
        return replace(node, name=source.column(node.name))
    arguments = [_expression(argument, source) for argument in node.arguments]
    if node.name == "not":
        return _denied(arguments[0], node)
    if node.name in _NEUTRAL:
        return _together(node.name, arguments, node)
    if node.name == "in_list":
        return _together("or", [_compared("eq", arguments[0], choice, node) for choice in arguments[1:]], node)
    if node.name in _TURNED:
        return _compared(node.name, arguments[0], arguments[1], node)
    if node.name in _IN_DOUBLES:
        arguments = [_whole(argument) for argument in arguments]
    if node.name in _EITHER_WAY:
        arguments = sorted(arguments, key=_order)
    return replace(node, arguments=tuple(arguments))


def _compared(name: str, left: Expression, right: Expression, node: Call) -> Call:
    left, right = _whole(left), _whole(right)
    if _order(left) > _order(right):
        name, left, right = _TURNED[name], right, left
    return replace(node, name=name, arguments=(left, right))


def _whole(node: Expression) -> Expression:
    """18.0 as 18, where it is compared or computed with in doubles: below 2^53 nobody can tell."""
    value = node.value if isinstance(node, Literal) else None
    exact = isinstance(value, Fraction) and value.denominator == 1 and abs(value) < _EXACT
    return Literal(int(value), span=node.span) if exact and isinstance(value, Fraction) else node


def _denied(inner: Expression, node: Expression) -> Expression:
    """NOT of a form: comparisons are turned round (NULL stays NULL), AND becomes OR, two NOTs are none."""
    if isinstance(inner, Literal) and isinstance(inner.value, bool):
        return replace(inner, value=not inner.value)
    if isinstance(inner, Call) and inner.name == "not":
        return inner.arguments[0]
    if isinstance(inner, Call) and inner.name in _NEUTRAL:
        return _together(_DENIED[inner.name], [_denied(part, part) for part in inner.arguments], node)
    if isinstance(inner, Call) and inner.name in _DENIED:
        return replace(inner, name=_DENIED[inner.name])
    return Call("not", (inner,), span=node.span)


def _together(name: str, parts: Iterable[Expression], node: Expression) -> Expression:
    """AND or OR of forms: flat, each part once, in one order, without TRUE in AND and FALSE in OR."""
    flat = [
        part
        for each in parts
        for part in (each.arguments if isinstance(each, Call) and each.name == name else (each,))
        if part != Literal(_NEUTRAL[name])
    ]
    ordered = _once(flat)
    if len(ordered) > 1:
        return Call(name, ordered, span=node.span)
    return ordered[0] if ordered else Literal(_NEUTRAL[name], span=node.span)


def _once(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(dict.fromkeys(expressions), key=_order))


def _order(node: Expression | None) -> tuple[Any, ...]:
    """A place in one order of all expressions: columns, calls, constants."""
    if node is None:
        return (0,)
    if isinstance(node, Column):
        return (1, node.name)
    if isinstance(node, Call):
        return (2, node.name, tuple(_order(argument) for argument in node.arguments))
    return (3, node.kind, str(node.value))
