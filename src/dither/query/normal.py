"""Rewrites questions that mean the same into one normal form, so that a stored answer is found however it was written.

    form(relation)  ->  Form, for the relation and expressions over it
    normal(query)   ->  Query

The form unifies: the sides of a comparison (18 <= age, age >= 18), whole numbers with a decimal point (18.0), NOT over
conditions, the order and repetition of AND and OR, IN and equalities, FILTER and CASE, COUNT(1) and COUNT(*), aliases,
nested filters, and subqueries that only pass columns on. It leaves out post-processing of the noisy result.

Each rewriting keeps the value of an expression on every row, NULL included, and all facts inferred about it, so the
planner finds the same bounds and grids. It also keeps the rows and their number. The form serves only to compare
questions; explanations and plans are made from the question as it was written.
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
    Window,
    WithinUnit,
)
from dither.query.work import UNIT

Pair = tuple[Expression, Expression]
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}  # x < y is y > x
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "and": "or", "or": "and"}
_NEUTRAL = {"and": True, "or": False}
_COMMUTATIVE = ("add", "mul")  # in doubles, too
_IN_DOUBLES = ("add", "sub", "mul", "div", "mod")
_EXACT = 2**53  # every smaller whole number is a double


def normal(query: Query) -> Query:
    """Returns the normal form of a resolved query: keys in their order, names by position, no post-processing."""
    source = form(query.source)
    keys = tuple(Named(f"k{place}", _expression(key.expression, source)) for place, key in enumerate(query.keys, start=1))
    aggregates = _aggregates((each.lowered() for each in query.aggregates), source, "a")
    relation = source.relation
    if UNIT in source.names:
        read = [expression for each in aggregates for expression in (each.argument, each.second)]
        used = sorted(_columns([*(key.expression for key in keys), *read]))
        named = tuple(Named(name, Column(name)) for name in used)
        relation = Compute(relation, (*named, Named(UNIT, Column(source.names[UNIT]))))
    return Query(relation, keys, tuple(aggregates), ())


# --- relations --------------------------------------------------------------------------------------------------


def form(relation: Relation) -> Form:
    """Returns the normal form of a relation, which also gives the forms of expressions over it."""
    return _relation(relation, itertools.count(1))


@dataclass(frozen=True)
class Form:
    """A relation in normal form, with the old and new names of its columns."""

    relation: Relation
    names: Mapping[str, str] = field(hash=False)
    aliases: tuple[tuple[str, str], ...] = ()  # (old, new) aliases of tables whose columns are all visible

    def expressions(self, written: Iterable[Expression]) -> dict[Expression, Expression]:
        """Maps expressions over the old relation to their normal forms. A part that many of them share is formed once."""
        listed, known = list(written), dict[int, Expression]()  # by id: the list keeps them alive
        return {each: _expression(each, self, known) for each in listed}

    def column(self, name: str) -> str:
        """Returns the new name of a column."""
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
    if isinstance(node, WithinUnit):
        return _within_unit(node, _relation(node.source, places), places)
    if isinstance(node, Union):
        return _union([(part, _relation(part, places)) for part in node.parts], places)
    if isinstance(node, Join):
        left, right = _relation(node.left, places), _relation(node.right, places)
        joined = replace(node, left=left.relation, right=right.relation, equal=_pairs(node.equal, left, right))
        return Form(joined, {**right.names, **left.names}, (*left.aliases, *right.aliases))
    return _semi(node, _relation(node.source, places), _relation(node.other, places))


def _filter(node: Filter, source: Form) -> Form:
    """Merges nested filters and drops WHERE TRUE."""
    condition, inner = _expression(node.condition, source), source.relation
    if condition == Literal(True):
        return source
    if isinstance(inner, Filter):
        condition, inner = _join("and", [inner.condition, condition], node.condition), inner.source
    return replace(source, relation=Filter(inner, condition))


def _compute(node: Compute, source: Form, places: Iterator[int]) -> Form:
    """Drops a Compute that only renames columns."""
    plain = {each.name: source.column(each.expression.name) for each in node.columns if isinstance(each.expression, Column)}
    if len(plain) == len(node.columns):
        return Form(source.relation, plain)
    known = dict[int, Expression]()
    read = {each.name: _expression(each.expression, source, known) for each in node.columns}
    named = _named(_unique(read.values()), f"c{next(places)}.")
    names = {each.expression: each.name for each in named}
    return Form(Compute(source.relation, named), {old: names[value] for old, value in read.items()})


def _per_unit(node: PerUnit, source: Form, places: Iterator[int]) -> Form:
    alias = f"u{next(places)}."
    read = {key.name: _expression(key.expression, source) for key in node.keys}
    keys = _named(_unique(read.values()), f"{alias}k")
    aggregates = _aggregates((each.lowered() for each in node.aggregates), source, f"{alias}a")
    names = {each.expression: each.name for each in keys}
    new_names = {old: names[value] for old, value in read.items()}
    for each in node.aggregates:
        (one,) = _aggregates([each.lowered()], source, "")
        new_names[each.name] = next(other.name for other in aggregates if replace(other, name=one.name) == one)
    return Form(PerUnit(source.relation, keys, tuple(aggregates), span=node.span), new_names)


def _within_unit(node: WithinUnit, source: Form, places: Iterator[int]) -> Form:
    """Names windows by position; the order of PARTITION BY has no meaning."""
    alias = f"w{next(places)}."

    def formed(each: Window, name: str) -> Window:
        return replace(
            each,
            name=name,
            arguments=tuple(_expression(argument, source) for argument in each.arguments),
            partition=_unique(_expression(part, source) for part in each.partition),
            order=tuple(replace(key, expression=_expression(key.expression, source)) for key in each.order),
            ties=tuple(_expression(tie, source) for tie in each.ties),
        )

    windows = tuple(formed(each, f"{alias}{place}") for place, each in enumerate(node.windows, start=1))
    names = {old.name: new.name for old, new in zip(node.windows, windows, strict=True)}
    return Form(WithinUnit(source.relation, windows), {**source.names, **names}, source.aliases)


def _union(parts: list[tuple[Relation, Form]], places: Iterator[int]) -> Form:
    """Gives all parts the same names, in an order that follows from their own columns."""
    alias = f"v{next(places)}."
    columns_of = {name: tuple(source.column(name) for _, source in parts) for name in parts[0][1].names}
    rows = sorted(set(columns_of.values()))
    names = {columns: f"{alias}{place}" for place, columns in enumerate(rows, start=1)}
    relations = (
        Compute(source.relation, tuple(Named(names[columns], Column(columns[place])) for columns in rows))
        for place, (_, source) in enumerate(parts)
    )
    return Form(Union(tuple(relations)), {old: names[columns] for old, columns in columns_of.items()})


def _semi(node: Semi, source: Form, other: Form) -> Form:
    listed = None if node.listed is None else _pairs((node.listed,), source, other)[0]
    equal = _pairs(node.equal, source, other)
    relation = replace(node, source=source.relation, other=other.relation, equal=equal, listed=listed)
    return replace(source, relation=relation)


def _pairs(pairs: Iterable[Pair], left: Form, right: Form) -> tuple[Pair, ...]:
    unique = {(_expression(a, left), _expression(b, right)): None for a, b in pairs}
    return tuple(sorted(unique, key=lambda pair: (_order(pair[0]), _order(pair[1]))))


def _aggregates(lowered: Iterable[Aggregate], source: Form, prefix: str) -> list[Aggregate]:
    """Returns each aggregate once, sorted, named by its position. `lowered` have no FILTER."""
    unique: dict[Aggregate, None] = {}
    for each in lowered:
        inner = None if each.argument is None else _expression(each.argument, source)
        every = each.function == "count" and isinstance(inner, Literal) and inner.value is not None
        second = None if each.second is None else _expression(each.second, source)
        unique[replace(each, name="", argument=None if every else inner, second=second, among=())] = None
    ordered = sorted(unique, key=lambda each: (each.function, str(each.parameter), _order(each.argument), _order(each.second)))
    return [replace(each, name=f"{prefix}{place}") for place, each in enumerate(ordered, start=1)]


def _named(expressions: Iterable[Expression], prefix: str) -> tuple[Named, ...]:
    return tuple(Named(f"{prefix}{place}", each) for place, each in enumerate(expressions, start=1))


def _columns(expressions: Iterable[Expression | None]) -> frozenset[str]:
    """Returns the names of the columns that expressions read."""
    names: set[str] = set()
    for each in expressions:
        if isinstance(each, Column):
            names.add(each.name)
        elif isinstance(each, Call):
            names |= _columns(each.arguments)
    return frozenset(names)


# --- expressions ------------------------------------------------------------------------------------------------


def _expression(node: Expression, source: Form, known: dict[int, Expression] | None = None) -> Expression:
    """Returns the form of an expression. `known`: forms by id, so that a part that is used many times is formed once."""
    if isinstance(node, Literal):
        return node
    if isinstance(node, Column):
        return Column(source.column(node.name), node.span, node.words)
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = _call(node, [_expression(argument, source, known) for argument in node.arguments])
    return known[id(node)]


def _call(node: Call, arguments: list[Expression]) -> Expression:
    """Returns the form of a call with these arguments."""
    if node.name == "not":
        return _negation(arguments[0], node)
    if node.name in _NEUTRAL:
        return _join(node.name, arguments, node)
    if node.name == "in_list":
        return _join("or", [_comparison("eq", arguments[0], choice, node) for choice in arguments[1:]], node)
    if node.name in _SWAPPED:
        return _comparison(node.name, arguments[0], arguments[1], node)
    if node.name in _IN_DOUBLES:
        arguments = [_whole(argument) for argument in arguments]
    if node.name in _COMMUTATIVE:
        arguments = sorted(arguments, key=_order)
    return replace(node, arguments=tuple(arguments))


def _comparison(name: str, left: Expression, right: Expression, node: Call) -> Call:
    left, right = _whole(left), _whole(right)
    first, second = _rank(left), _rank(right)
    if first > second or (first == second and _order(left) > _order(right)):
        name, left, right = _SWAPPED[name], right, left
    return replace(node, name=name, arguments=(left, right))


def _whole(node: Expression) -> Expression:
    """Rewrites 18.0 as 18 where it is compared or computed in doubles: below 2^53 both are the same double."""
    value = node.value if isinstance(node, Literal) else None
    exact = isinstance(value, Fraction) and value.denominator == 1 and abs(value) < _EXACT
    return Literal(int(value), span=node.span) if exact and isinstance(value, Fraction) else node


def _negation(inner: Expression, node: Expression) -> Expression:
    """Negates a form: turns comparisons (NULL stays NULL), swaps AND and OR, drops double NOT."""
    if isinstance(inner, Literal) and isinstance(inner.value, bool):
        return replace(inner, value=not inner.value)
    if isinstance(inner, Call) and inner.name == "not":
        return inner.arguments[0]
    if isinstance(inner, Call) and inner.name in _NEUTRAL:
        return _join(_NEGATED[inner.name], [_negation(part, part) for part in inner.arguments], node)
    if isinstance(inner, Call) and inner.name in _NEGATED:
        return replace(inner, name=_NEGATED[inner.name])
    return Call("not", (inner,), span=node.span)


def _join(name: str, parts: Iterable[Expression], node: Expression) -> Expression:
    """Joins forms by AND or OR: flat, sorted, each part once, without TRUE in AND and FALSE in OR."""
    flat = [
        part
        for each in parts
        for part in (each.arguments if isinstance(each, Call) and each.name == name else (each,))
        if part != Literal(_NEUTRAL[name])
    ]
    ordered = _unique(flat)
    if len(ordered) > 1:
        return Call(name, ordered, span=node.span)
    return ordered[0] if ordered else Literal(_NEUTRAL[name], span=node.span)


def _unique(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    unique, known = list(dict.fromkeys(expressions)), dict[int, tuple[Any, ...]]()
    return tuple(sorted(unique, key=lambda each: _order(each, known)) if len(unique) > 1 else unique)


def _order(node: Expression | None, known: dict[int, tuple[Any, ...]] | None = None) -> tuple[Any, ...]:
    """Returns a sort key for expressions: columns, then calls, then constants. `known`: keys of calls by id."""
    if known is not None and id(node) in known:
        return known[id(node)]
    rank = _rank(node)
    if isinstance(node, Column):
        return (rank, node.name)
    if isinstance(node, Call):
        key = (rank, node.name, tuple(_order(argument, known) for argument in node.arguments))
        if known is not None:
            known[id(node)] = key
        return key
    return (rank,) if node is None else (rank, node.kind, str(node.value))


def _rank(node: Expression | None) -> int:
    return 0 if node is None else 1 if isinstance(node, Column) else 2 if isinstance(node, Call) else 3
