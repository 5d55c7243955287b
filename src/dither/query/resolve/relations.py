"""Resolves a query: infers kinds and bounds, finds the unit of every row, and makes it an ordinary column named UNIT.

    resolve(query, catalog, text)  ->  Resolved

After this step engines need to know nothing about privacy, and the planner nothing about tables.

`check_constants` refuses constants that SQL could not write, in queries built by hand from nodes: a plan must show them,
a ledger store them and an engine compare them.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from dither.catalog.values import Catalog, Rows
from dither.errors import QueryError
from dither.query.functions.base import Facts, either
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit, fit_aggregates, fit_named
from dither.query.functions.registry import alphabetical, known, typed
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
    Span,
    Union,
    WithinUnit,
    fresh,
    private,
    sources,
)
from dither.query.resolve.aggregates import aggregates, check_functions, check_sets, keys, outputs, show_kind
from dither.query.resolve.joins import (
    Pair,
    at_most_one,
    check_join,
    check_joins,
    check_pairs,
    check_scalar,
    check_semi,
    check_union,
    joined_bounds,
    joined_columns,
    unit_pair,
    with_mark,
)
from dither.query.resolve.joint import Joint, joints
from dither.query.resolve.listing import listed
from dither.query.resolve.lookups import looked_up
from dither.query.resolve.narrowing import filtered, made_of, possible, sides, traced, unlisted
from dither.query.resolve.per_unit import per_unit
from dither.query.resolve.pruning import prune, used_by
from dither.query.resolve.shapes import (
    BY_ROW,
    BY_UNIT,
    PUBLIC,
    Dependence,
    Known,
    Shape,
    check_names,
    check_once,
    equalities,
    scan,
    size,
)
from dither.query.resolve.windows import within_unit
from dither.query.work import UNIT

_LARGEST = 2**63  # engines' integers are smaller
_LONGEST = 4096  # the most bits of a numerator or denominator
_KINDS = (type(None), bool, int, float, Fraction, str, datetime.date, datetime.datetime)


def check_constants(query: Query) -> None:
    """Refuses literals, shares of quantiles and limits that SQL could not write.

    >>> from dither.query.nodes import Call, Column, Filter, Scan
    >>> adult = Call("ge", (Column("p.age"), Literal(b"18")))
    >>> check_constants(Query(Filter(Scan("people", "p"), adult), (), (), ()))
    Traceback (most recent call last):
    dither.errors.QueryError: A constant cannot be of the kind bytes.
      Fix: write a number, a text, a date, a timestamp without a zone, TRUE, FALSE or NULL.   Charged: nothing.
    """
    for node in _walk(query):
        if isinstance(node, Literal):
            _value(node.value, node.span)
        elif isinstance(node, Aggregate) and node.parameter is not None:
            _number(node.parameter, node.span)
    for name, rows in (("limit", query.limit), ("offset", query.offset)):
        if not (type(rows) is int and 0 <= rows < _LARGEST) and not (name == "limit" and rows is None):
            raise QueryError(f"The {name} is a whole number of rows.", fix=f"give {name} a number such as 10.")


def _walk(node: Any) -> Iterator[Any]:
    """Returns all nodes of a query, itself first."""
    if isinstance(node, tuple):
        for part in node:
            yield from _walk(part)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for each in fields(node):
            if each.name != "span":
                yield from _walk(getattr(node, each.name))


def _value(value: Any, span: tuple[int, int] | None) -> None:
    if type(value) not in _KINDS:  # a subclass may compare, hash or print in its own way
        raise QueryError(
            f"A constant cannot be of the kind {type(value).__name__}.",
            span=span,
            fix="write a number, a text, a date, a timestamp without a zone, TRUE, FALSE or NULL.",
        )
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        raise QueryError("A timestamp has no zone here.", span=span, fix="write it without one, as in the data.")
    if isinstance(value, str):
        _text(value, span)
    elif isinstance(value, (int, float, Fraction)):
        _number(value, span)


def _text(value: str, span: tuple[int, int] | None) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise QueryError("A text of the question is not valid Unicode.", span=span, fix="leave lone surrogates out.") from None


def _number(value: Any, span: tuple[int, int] | None) -> None:
    if type(value) not in (bool, int, float, Fraction):
        raise QueryError(
            f"A number is needed here, and this is {type(value).__name__}.", span=span, fix="write one such as 1/2."
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError("A constant is a finite number.", span=span, fix="write a number such as 16 or 1.5.")
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise QueryError("This number is too large.", span=span, fix="write a smaller number.")
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > _LONGEST:
        raise QueryError("This number has too many digits.", span=span, fix="write a number such as 16 or 1.5.")


@dataclass(frozen=True)
class Resolved:
    """A resolved query. `scope` has the facts of the source's columns; `rows` is empty unless the query is about all rows."""

    query: Query
    by_unit: bool
    tables: tuple[str, ...]
    max_rows: int | None  # None: not declared, like max_groups
    max_groups: int | None
    scope: Mapping[str, Facts] = field(hash=False)
    rows: Rows
    unit: str
    narrowed: Mapping[Expression, Facts] = field(default_factory=dict, hash=False)  # keys' facts, by the conditions too
    one_row: bool = False  # each unit has at most one row, whatever the bounds
    one_group: bool = False  # there are no keys, or all have one value per unit: max_groups is 1, whatever is declared
    public: bool = False  # it reads public tables only
    joint: tuple[Joint, ...] = ()  # keys that depend on each other
    # To compare it with earlier questions: the declared max_groups, columns with one value per unit, the source before pruning.
    declared_groups: int | None = None
    per_unit: frozenset[str] = frozenset()
    whole: Relation | None = field(default=None, compare=False, repr=False)

    @property
    def lists(self) -> bool:
        """Whether it only lists public keys: free, without a private row."""
        return not self.query.aggregates

    def operands(self) -> Operands:
        """Returns the keys' facts, the lowered aggregates and the facts of their arguments."""
        lowered = tuple(each.lowered() for each in self.query.aggregates)
        written = [key.expression for key in self.query.keys]
        keys = tuple(self.narrowed[key] if key in self.narrowed else facts(key, self.scope) for key in written)
        arguments = {each.argument: facts(each.argument, self.scope) for each in lowered if each.argument is not None}
        return Operands(keys, lowered, arguments)


class Operands(NamedTuple):
    """The facts of the keys, the aggregates without FILTER (see `Aggregate.lowered`), the facts of their arguments."""

    keys: tuple[Facts, ...]
    aggregates: tuple[Aggregate, ...]
    arguments: dict[Expression, Facts]


def resolve(query: Query, catalog: Catalog, text: str = "") -> Resolved:
    """Resolves a query, or refuses it with the reason. Reads no row."""
    try:
        return _resolve(query, catalog)
    except QueryError as error:
        raise error.located(text) from None
    except RecursionError:
        raise QueryError("The question is nested too deeply.", text=text, fix="ask more simply.") from None


def aggregates_people(source: Relation, keys: Sequence[Named], catalog: Catalog) -> bool:
    """Returns whether an aggregation of a relation by these keys is across people: no key is the unit, tells which it is, or is
    the id of a row, which belongs to one."""
    shape = _relation(source, catalog)
    own = any(shape.within_unit(key.expression) for key in keys)
    return shape.private and not own and all(shape.depends(key.expression) < Dependence.COMPUTED for key in keys)


def _resolve(query: Query, catalog: Catalog) -> Resolved:
    check_constants(query)
    if not query.aggregates and not query.keys:
        raise QueryError("This asks for rows, and rows are never shown.", fix="ask for aggregates such as COUNT(*) or AVG(x).")
    check_functions(query.aggregates, private())
    check_sets(query)
    source = _relation(query.source, catalog)
    if source.protects == PUBLIC and query.aggregates:
        raise QueryError(
            "This asks only about public tables, so there is nothing to protect.",
            span=first_table(query.source),
            fix="read the public table directly; a list of its values is free: SELECT DISTINCT x, y FROM ...",
        )
    check_names([key.name for key in query.keys] + [each.name for each in query.aggregates])
    query, public = _with_lookups(_fitted(query, source), catalog)
    _check_size(query, source)
    resolved = replace(
        query, source=source.relation, keys=keys(query.keys, source), aggregates=aggregates(query.aggregates, source)
    )
    notes = (*unlisted(source, _compares(resolved)), *alphabetical(_walk(query)))
    resolved = replace(outputs(resolved, source.scope), unlisted=notes)
    narrowed = _narrowed(resolved, source, catalog)
    one_group = all(source.per_unit(key.expression) for key in query.keys)
    table = catalog.tables[source.whole] if source.whole and not query.keys else None
    return Resolved(
        query=prune(resolved, source.protects == BY_UNIT),
        by_unit=source.protects == BY_UNIT,
        tables=tuple(dict.fromkeys((*source.tables, *public))),
        max_rows=1 if source.max_rows is None and source.one_row else source.max_rows,
        max_groups=1 if one_group or (source.max_groups is None and source.one_row) else source.max_groups,
        scope=source.scope,
        rows=table.rows if table is not None and source.max_rows == 1 else Rows(),
        unit=source.root[1] if source.root else "row",
        narrowed=narrowed,
        one_row=source.one_row,
        one_group=one_group,
        public=source.protects == PUBLIC,
        joint=_joint(resolved, narrowed, source, catalog),
        declared_groups=source.max_groups,
        per_unit=frozenset(name for name, column in source.columns.items() if column.per_unit),
        whole=source.relation,
    )


def _compares(query: Query) -> list[Expression]:
    """Returns the expressions of a query besides WHERE that may compare columns with constants."""
    parts = (part for each in query.aggregates for part in (each.where, each.argument) if part is not None)
    return [*(key.expression for key in query.keys), *parts]


def _joint(query: Query, narrowed: Mapping[Expression, Facts], source: Shape, catalog: Catalog) -> tuple[Joint, ...]:
    """Returns the keys that depend on each other, if all groups are public."""
    public = all(facts.values is not None for facts in narrowed.values())
    several = len(query.keys) > 1 or (query.keys and _joins(query.source))
    return joints(query.keys, source, catalog) if query.aggregates and several and public else ()


def _joins(relation: Relation) -> bool:
    """Whether a relation is made from several."""
    each = sources(relation)
    return len(each) > 1 or any(map(_joins, each))


def _with_lookups(query: Query, catalog: Catalog) -> tuple[Query, tuple[str, ...]]:
    """Resolves the public side of subqueries above the groups. Returns the query, and the tables that they read."""
    tables: list[str] = []
    above = []
    for outer in query.above:
        lookups = []
        for each in outer.lookups:
            rows = _relation(each.rows, catalog)
            lookups.append(looked_up(each, rows))
            tables += rows.tables
        above.append(replace(outer, lookups=tuple(lookups)))
    return replace(query, above=tuple(above)), tuple(tables)


def _fitted(query: Query, source: Shape) -> Query:
    """Fits the keys and the aggregates to the kinds of the columns."""
    keys = fit_named(query.keys, source.scope)
    return replace(query, keys=keys, aggregates=fit_aggregates(query.aggregates, source.scope))


def _narrowed(query: Query, source: Shape, catalog: Catalog) -> dict[Expression, Facts]:
    """Returns the facts of the keys; those of a list must be public."""
    if not query.aggregates and source.protects != PUBLIC:
        return listed(query, source, catalog)
    if not query.aggregates:  # the engine reads public rows, so nothing needs to be narrowed
        return {key.expression: facts(key.expression, source.scope) for key in query.keys}
    return {key.expression: possible(key.expression, source) for key in query.keys}


def _relation(node: Relation, catalog: Catalog) -> Shape:
    if isinstance(node, Scan):
        check_names([node.alias], node.span)
        return scan(node, catalog)
    if isinstance(node, Filter):
        source = _relation(node.source, catalog)
        kept = condition(node.condition, source)
        sides = ((a, source.depends(b)) for pair in equalities(kept) for a, b in (pair, pair[::-1]))
        return filtered(replace(source.equated(sides), relation=Filter(source.relation, kept), whole=None), kept)
    if isinstance(node, Compute):
        return _compute(node, _relation(node.source, catalog))
    if isinstance(node, Join) and node.scalar is not None:
        return _join_scalars(node, catalog)
    if isinstance(node, Join):
        return _join(node, _relation(node.left, catalog), _relation(node.right, catalog), catalog)
    if isinstance(node, Semi):
        return _semi(node, _relation(node.source, catalog), _relation(node.other, catalog), catalog)
    if isinstance(node, PerUnit):
        return per_unit(node, _relation(node.source, catalog))
    if isinstance(node, WithinUnit):
        return within_unit(node, _relation(node.source, catalog))
    return _union(node, catalog)


def first_table(node: Relation) -> Span:
    """Returns the span of the first table of a relation."""
    if isinstance(node, Scan):
        return node.span
    inner = node.left if isinstance(node, Join) else node.parts[0] if isinstance(node, Union) else node.source
    return first_table(inner)


def condition(expression: Expression, source: Shape) -> Expression:
    """Types a condition over the source's columns; refuses an expression that is not true, false or NULL."""
    expression = fit(expression, source.scope)
    kind = known(expression, source.scope).kind
    if kind not in ("bool", "null"):
        raise QueryError(
            f"A condition is needed here, and this is {show_kind(kind)}.", span=expression.span, fix="compare it: x > 0."
        )
    size([expression], source)
    return typed(expression, source.scope)


def _check_size(query: Query, source: Shape) -> None:
    arguments = [value for each in query.aggregates for value in each.values]
    size([*(key.expression for key in query.keys), *arguments], source)


def _compute(node: Compute, source: Shape) -> Shape:
    check_names(each.name for each in node.columns)
    return _computed(replace(node, columns=fit_named(node.columns, source.scope)), source)


def _computed(node: Compute, source: Shape) -> Shape:
    size((each.expression for each in node.columns), source)
    source = traced(source, used_by(tuple(each for each in node.columns if not isinstance(each.expression, Column))))
    columns, named = {}, []
    for each in node.columns:
        inner = each.expression
        plain = source.columns[inner.name] if isinstance(inner, Column) and inner.name in source.columns else None
        columns[each.name] = plain or Known(
            facts(inner, source.scope),
            unit=source.is_unit(inner),
            size=size([inner], source),
            depends=source.depends(inner),
            per_unit=source.is_unit(inner) or source.per_unit(inner),
            made_of=made_of(typed(inner, source.scope), source.columns),
        )
        named.append(Named(each.name, typed(inner, source.scope)))
    if source.protects == BY_UNIT:
        named.append(Named(UNIT, Column(UNIT)))
    together, halves = _renamed(source.together, node.columns), _renamed(source.halves, node.columns)
    computed = Compute(source.relation, tuple(named))
    return replace(source, relation=computed, columns=columns, together=together, halves=halves)


def _renamed(together: tuple[str, ...], columns: tuple[Named, ...]) -> tuple[str, ...]:
    """Returns the new names of columns that are unique together; none if one of them is dropped."""
    names = {each.expression.name: each.name for each in columns if isinstance(each.expression, Column)}
    return tuple(names[name] for name in together) if all(name in names for name in together) else ()


def _join(node: Join, left: Shape, right: Shape, catalog: Catalog) -> Shape:
    span = node.span
    if node.kind not in ("inner", "left", "full"):
        raise QueryError(f"There is no join of the kind {node.kind}.", span=span, fix='write "inner", "left" or "full".')
    check_once((*left.columns, *right.columns), span)
    pairs = check_pairs(node.equal, left, right, span)
    check_join(left, right, pairs, node.kind, catalog, span)
    once = at_most_one(pairs, 0, left, right), at_most_one(pairs, 1, left, right)
    plain = pairs
    if node.scalar is not None:
        check_scalar(once[1], span)
    both = left.private and right.private
    joins = check_joins(left.joins + right.joins + (both and not any(once)), span)
    other, own = right.relation, ""
    if both:
        own = fresh("unit", _column_names(left.relation) | _column_names(other))
        other = Compute(other, (*(Named(name, Column(name)) for name in right.columns), Named(own, Column(UNIT))))
        pairs = _equated(pairs, left, right, own)
    left, right = (
        left.equated((a, right.depends(b)) for a, b in node.equal),
        right.equated((b, left.depends(a)) for a, b in node.equal),
    )
    left, right, same = sides(left, right, plain, node.kind)
    columns = joined_columns(left, right, plain, node.kind, once, catalog)
    # A left join on a unique public key keeps each row of a by-row table once; an inner one may drop some.
    whole = left.whole if left.protects == BY_ROW and once[1] and node.kind == "left" else None
    one_row = (left.one_row and once[1]) or (not left.private and right.one_row and once[0])
    joined: Relation = Join(left.relation, other, pairs, node.kind, span=span)
    if node.kind == "full":
        one_row = left.one_row and right.one_row and len(plain) == 1
        joined = _with_either_unit(joined, columns, own)
    rows, groups = joined_bounds(left, right, node, once)
    owner, tables = left if left.private else right, tuple(dict.fromkeys((*left.tables, *right.tables)))
    halves = _halves(plain, left, right) if node.kind == "full" else ()
    shape = Shape(joined, columns, owner.protects, owner.root, tables, rows, groups, one_row, whole, joins, halves=halves)
    return replace(
        shape,
        leaves={**left.leaves, **right.leaves},
        origins={**left.origins, **right.origins},
        equal=(*left.equal, *right.equal, *same),
        conditions=(*left.conditions, *right.conditions),
    )


def _with_either_unit(joined: Relation, columns: Mapping[str, Known], own: str) -> Relation:
    """Returns the rows of a FULL JOIN: each has the unit of the side that is there."""
    unit = Named(UNIT, Call("coalesce", (Column(UNIT), Column(own))))
    return Compute(joined, (*(Named(name, Column(name)) for name in columns), unit))


def _halves(pairs: tuple[Pair, ...], left: Shape, right: Shape) -> tuple[str, ...]:
    """Returns the unit columns of both sides, as one pair equates them."""
    pair = unit_pair(pairs, left, right)
    return () if pair is None else tuple(side.name for side in pair if isinstance(side, Column))


def _equated(pairs: tuple[Pair, ...], left: Shape, right: Shape, own: str) -> tuple[Pair, ...]:
    """Returns the pairs with one that equates UNIT, in place of the pair that equates the unit columns, if any."""
    written = unit_pair(pairs, left, right)
    return ((Column(UNIT), Column(own)), *(pair for pair in pairs if pair is not written))


def _column_names(node: Relation) -> frozenset[str]:
    """Returns the column names of a resolved relation, without those of tables, which begin with an alias."""
    if isinstance(node, Scan):
        return frozenset()
    if isinstance(node, Compute):
        return frozenset(each.name for each in node.columns)
    if isinstance(node, PerUnit):
        return frozenset([*(each.name for each in node.keys), *(each.name for each in node.aggregates)])
    if isinstance(node, Join):
        return _column_names(node.left) | _column_names(node.right)
    if isinstance(node, WithinUnit):
        return _column_names(node.source) | {each.name for each in node.windows}
    return _column_names(node.parts[0] if isinstance(node, Union) else node.source)


def _join_scalars(node: Join, catalog: Catalog) -> Shape:
    """Resolves joins of scalar subqueries.

    A subquery without pairs is joined on a column that is 1 in all rows, which is added once, below all joins.
    """
    above = [node]
    while isinstance(above[-1].left, Join) and above[-1].left.scalar is not None:
        above.append(above[-1].left)
    source = _relation(above[-1].left, catalog)
    one = fresh("one", source.columns)
    if not all(each.equal for each in above):
        every = tuple(Named(name, Column(name)) for name in source.columns)
        source = _computed(Compute(source.relation, (*every, Named(one, Literal(1)))), source)
    for each in reversed(above):
        source = _join_scalar(each, source, _relation(each.right, catalog), Column(one), catalog)
    return source


def _join_scalar(node: Join, source: Shape, other: Shape, one: Column, catalog: Catalog) -> Shape:
    """Groups the subquery's rows by the equated columns and left-joins them to the source."""
    scalar, span = node.scalar, node.span
    if scalar is None:
        raise TypeError("this join looks up no value")
    if node.kind != "left":
        raise QueryError("A value is looked up for every row.", span=span, fix='write the kind "left".')
    pairs = node.equal or ((one, Literal(1)),)
    names = [fresh("subquery key" if number == 1 else f"subquery key {number}") for number in range(1, len(pairs) + 1)]
    names = names if node.equal else [fresh("one")]
    keys = tuple(Named(name, inside) for name, (_, inside) in zip(names, pairs, strict=True))
    rows = per_unit(PerUnit(node.right, keys, scalar.aggregates, span=span), other, node)
    columns = [*names, *(each.name for each in scalar.aggregates)]
    renamed = Compute(rows.relation, tuple(Named(f"{scalar.alias}.{name}", Column(name)) for name in columns))
    equal = tuple(
        (outside, Column(f"{scalar.alias}.{name}", span=span)) for name, (outside, _) in zip(names, pairs, strict=True)
    )
    return _join(replace(node, equal=equal), source, _computed(renamed, rows), catalog)


def _semi(node: Semi, source: Shape, other: Shape, catalog: Catalog) -> Shape:
    span: Span = node.span
    if node.negated and node.mark is not None:
        raise QueryError("A mark cannot be negated.", span=span, fix="write NOT around its column.")
    pairs = check_pairs(node.equal, source, other, span)
    listed = check_pairs((node.listed,) if node.listed is not None else (), source, other, span)
    if (not node.negated and node.mark is None) or unit_pair(listed, source, other):
        pairs, listed = (*listed, *pairs), ()  # a unit is never NULL: rows without one are dropped
    one = listed[0] if listed else None
    check_semi(source, other, pairs, catalog, span, one, node.negated)
    if source.private and other.private:
        pairs = _equated(pairs, source, other, UNIT)
    tables = tuple(dict.fromkeys((*source.tables, *other.tables)))
    shape = replace(source, tables=tables, joins=check_joins(source.joins + other.joins, span))
    if node.mark is not None:
        return with_mark(node.mark, shape, other, pairs, one, span)
    if not node.negated:
        shape = shape.equated((a, other.depends(b)) for a, b in pairs)
    return replace(shape, relation=Semi(source.relation, other.relation, pairs, node.negated, one, span=span), whole=None)


def _union(node: Union, catalog: Catalog) -> Shape:
    """Resolves UNION ALL: a unit has its rows of every part, so max_rows and max_groups add up."""
    if not node.parts:
        raise QueryError("A union has at least one part.", fix="name the parts.")
    parts = [_relation(part, catalog) for part in node.parts]
    check_union(parts, first_table(node))
    columns = {}
    for name in parts[0].columns:
        known = [part.columns[name] for part in parts]
        unit = all(each.unit for each in known)
        largest, depends = max(each.size for each in known), max(each.depends for each in known)
        columns[name] = Known(_merged([each.facts for each in known]), unit, size=largest, depends=depends, per_unit=unit)
    relations = tuple(_alike(part, columns) for part in parts)
    return replace(
        parts[0],
        relation=Union(relations),
        columns=columns,
        tables=tuple(dict.fromkeys(table for part in parts for table in part.tables)),
        max_rows=_total([part.max_rows for part in parts]),
        max_groups=_total([part.max_groups for part in parts]),
        one_row=False,
        whole=None,
        together=(),
        halves=(),
        leaves={},
        origins={},
        equal=(),
        conditions=(),
        joins=check_joins(sum(part.joins for part in parts), first_table(node)),
    )


def _merged(known: list[Facts]) -> Facts:
    """Returns the facts of a column of UNION ALL. Its values are public if they are in every part."""
    merged = either(known, any(each.nullable for each in known))
    merged = replace(merged, clipped=any(each.clipped for each in known))
    lists = [each.values for each in known if each.values is not None and each.kind == merged.kind]
    if len(lists) < len(known):
        return merged
    return replace(merged, values=tuple(dict.fromkeys(value for values in lists for value in values)))


def _total(bounds: list[int | None]) -> int | None:
    """Returns the sum of the bounds, or None if one is not declared."""
    return None if None in bounds else sum(bound for bound in bounds if bound is not None)


def _alike(part: Shape, columns: Mapping[str, Known]) -> Relation:
    """Casts a part's integers to real where another part has reals, and orders its columns alike."""
    named = []
    for name, column in columns.items():
        value: Expression = Column(name)
        if column.facts.kind == "real" and part.columns[name].facts.kind == "int":
            value = Call("to_real", (value,))
        named.append(Named(name, value))
    if part.protects == BY_UNIT:
        named.append(Named(UNIT, Column(UNIT)))
    return Compute(part.relation, tuple(named))
