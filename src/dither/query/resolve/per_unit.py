"""Resolves aggregation inside one unit: legal if the unit is among the keys, exact because only whole numbers are added.

A key that belongs to one unit, such as the order that lines refer to, does as well as the unit: the unit is always grouped by.

A sum of fractions would depend on the order of rows. So a bounded column with a step is first put on its grid,
q = floor((x - low) / step + 1/2), the whole numbers q are added, and the sum is low * n + step * q. Without bounds
(a sum of sums) low is 0.

A unit's true rows are aggregated, however many there are: the bounding step comes later, before the private aggregate. So
nothing is known of a count or a sum from `max_rows`, and whoever adds it up states its bounds: SUM(CLAMP(k, 0, 20)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.query.functions.base import Facts, outward
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit_aggregates, fit_named
from dither.query.functions.registry import columns as columns_of
from dither.query.functions.registry import typed
from dither.query.nodes import (
    Aggregate,
    Call,
    Clip,
    Column,
    Compute,
    Expression,
    Join,
    Literal,
    Named,
    PerUnit,
    Relation,
    Union,
    fresh,
)
from dither.query.nodes import per_unit as functions
from dither.query.resolve.aggregates import check_functions, check_key, short, show_kind
from dither.query.resolve.narrowing import made_of, traced
from dither.query.resolve.shapes import BY_ROW, BY_UNIT, PUBLIC, Dependence, Known, Shape, check_names, constant, size
from dither.query.work import UNIT

_COUNTED = Facts("int", Fraction(0), None, nullable=False, whole=True, step=Fraction(1))


def per_unit(node: PerUnit, source: Shape, lookup: Join | None = None) -> Shape:
    """Returns the shape with one row for each unit and value of the other keys. `lookup`: the scalar join that reads it."""
    keys = fit_named(node.keys, source.scope)
    node = replace(node, keys=keys, aggregates=fit_aggregates(node.aggregates, source.scope))
    _check_parts(node, source, lookup)
    compared = lookup is not None and bool(lookup.equal)
    if source.protects == PUBLIC:
        return _public(node, source, compared)
    _check_unit(node, source, lookup)
    mine = [key for key in node.keys if source.is_unit(key.expression)]
    further = [key for key in node.keys if not source.is_unit(key.expression)]
    known = {key.name: facts(key.expression, source.scope) for key in further}
    _check_keys(node, known, compared or not node.aggregates)  # DISTINCT only compares
    source = traced(source, [name for key in further for name in columns_of(key.expression)])
    found = [lowered(each, source) for each in node.aggregates]
    inside = tuple(part for parts, _, _ in found for part in parts)
    relation: Relation = PerUnit(
        source.relation,
        (*(Named(key.name, typed(key.expression, source.scope)) for key in further), Named(UNIT, Column(UNIT))),
        inside,
        span=node.span,
    )
    named = [Named(key.name, Column(UNIT)) for key in mine] + [Named(key.name, Column(key.name)) for key in further]
    named += [Named(each.name, value) for each, (_, value, _) in zip(node.aggregates, found, strict=True)]
    relation = Compute(relation, (*named, Named(UNIT, Column(UNIT))))
    alone = all(source.per_unit(key.expression) for key in further)  # one row per unit
    columns = {key.name: replace(_origin(key.expression, source), unique=not further, per_unit=True) for key in mine}
    columns |= {
        key.name: Known(
            known[key.name],
            origin=_origin(key.expression, source).origin,
            depends=source.depends(key.expression),
            per_unit=source.per_unit(key.expression),
            of_one_unit=source.within_unit(key.expression),
            made_of=made_of(typed(key.expression, source.scope), source.columns),
        )
        for key in further
    }
    columns |= {
        each.name: Known(result, depends=_depends(each, source), per_unit=alone)
        for each, (_, _, result) in zip(node.aggregates, found, strict=True)
    }
    return replace(
        source,
        relation=relation,
        columns=columns,
        max_rows=1 if alone else source.max_rows,
        max_groups=1 if alone else source.max_groups,
        one_row=not further,
        whole=None,
        together=(*(key.name for key in mine[:1]), *known),
        halves=(),
    )


def _depends(each: Aggregate, source: Shape) -> Dependence:
    """Returns how an aggregate depends on the unit: a count does not, the largest id of a person does."""
    counts = each.argument is None or each.function in ("count", "count_distinct")
    return Dependence.NONE if counts or each.argument is None else source.depends(each.argument)


def _check_parts(node: PerUnit, source: Shape, lookup: Join | None) -> None:
    keys = [] if lookup is not None else [key.name for key in node.keys]
    check_names(keys + [each.name for each in node.aggregates], node.span)
    check_functions(node.aggregates, functions())
    arguments = [each.value for each in node.aggregates if each.value is not None]
    size([*(key.expression for key in node.keys), *arguments], source, node.span)


def _check_keys(node: PerUnit, known: Mapping[str, Facts], compared: bool) -> None:
    """Refuses kinds that cannot be keys; keys that are only compared may be of any kind but NULL."""
    for key in (key for key in node.keys if key.name in known):
        if not compared:
            check_key(known[key.name], key.expression)
        elif known[key.name].kind == "null":
            what = "This subquery equates something with NULL, which equals nothing."
            raise QueryError(what, span=key.expression.span or node.span, fix="write IS NULL, or leave it out.")


def _public(node: PerUnit, source: Shape, compared: bool) -> Shape:
    """Returns the shape of an aggregated public table: exact and public, one row for each value of the keys."""
    known = {key.name: facts(key.expression, source.scope) for key in node.keys}
    _check_keys(node, known, compared)
    found = [lowered(each, source) for each in node.aggregates]
    keys = tuple(Named(key.name, typed(key.expression, source.scope)) for key in node.keys)
    inside = tuple(part for parts, _, _ in found for part in parts)
    named = [Named(key.name, Column(key.name)) for key in node.keys]
    named += [Named(each.name, value) for each, (_, value, _) in zip(node.aggregates, found, strict=True)]
    source = traced(source, [name for key in keys for name in columns_of(key.expression)])
    columns = {
        key.name: Known(known[key.name], unique=len(keys) == 1, made_of=made_of(key.expression, source.columns)) for key in keys
    }
    columns |= {each.name: Known(result) for each, (_, _, result) in zip(node.aggregates, found, strict=True)}
    relation = Compute(PerUnit(source.relation, keys, inside, span=node.span), tuple(named))
    return replace(source, relation=relation, columns=columns, whole=None, together=tuple(known))


def _origin(expression: Expression, source: Shape) -> Known:
    if isinstance(expression, Column):
        return source.columns[expression.name]
    return Known(facts(expression, source.scope))


def _check_unit(node: PerUnit, source: Shape, lookup: Join | None) -> None:
    place = "GROUP BY" if node.aggregates else "SELECT"
    what = "aggregates" if node.aggregates else "looks for distinct rows"
    units = [key.name for key in node.keys if source.within_unit(key.expression)]
    unit = source.root[1] if source.root else "the unit column"
    if lookup is not None and lookup.equal and source.protects == BY_UNIT and not units:
        raise QueryError(
            "This subquery would put an exact number about other people into each row.",
            span=node.span,
            fix=f"{_reference_fix(source)}equate the unit ({unit}) of both sides in its WHERE.",
            mixes="number",
        )
    if lookup is not None and not lookup.equal:
        raise QueryError(
            "This subquery would put an exact number about people into the question.",
            span=node.span,
            fix="ask for it in a separate question and write the noisy number here, or take it from a public table.",
            mixes="number",
        )
    if source.protects == BY_UNIT:
        if units:
            return
        if not node.aggregates:
            raise _distinct(node, source, unit)
        own = f"{_reference_fix(source)}add {unit} to its {place}, so that it is per person"
        if node.within:
            own = f"compare the rows of one person: {node.within.replace('{unit}', unit)}"
        raise QueryError(
            f"This subquery {what} across people, and the question then asks about the result.",
            span=node.span,
            fix=f"{own}; or {_alone(node)}.",
            mixes="relation",
        )
    if source.protects == BY_ROW:
        raise QueryError(
            f"This subquery {what} over rows that are each protected on their own.",
            span=node.span,
            fix='ask in one step, or declare a unit column instead of unit = "row".',
        )


def _alone(node: PerUnit) -> str:
    """Returns the private form of a subquery across people."""
    return f"ask it alone, and write what it answers here: {node.alone}" if node.alone else "make it the whole question"


def _distinct(node: PerUnit, source: Shape, unit: str) -> QueryError:
    """Returns the refusal of DISTINCT across people."""
    names = ", ".join(key.name.rsplit(".", 1)[-1] for key in node.keys)
    if isinstance(node.source, Union):
        what = "UNION drops rows of different people that happen to be equal."
        fix = f"write UNION ALL, or select {unit} in both parts: SELECT {unit}, {names} ... UNION SELECT {unit}, ..."
        return QueryError(what, span=node.span, fix=fix)
    count = (
        f"; to count the different values, ask SELECT COUNT(DISTINCT {names}) without a subquery" if len(node.keys) == 1 else ""
    )
    return QueryError(
        "DISTINCT drops rows of different people that happen to be equal.",
        span=node.span,
        fix=f"{_reference_fix(source)}keep the person in it: SELECT DISTINCT {unit}, {names}{count}.",
    )


def unit_fix(source: Shape, template: str) -> str:
    """Returns the fix that writes the template with the unit's column for {unit}, in the question's names."""
    mine = next((name for name, known in source.columns.items() if known.unit), None)
    if mine is not None:
        return f"write {template.format(unit=mine)}."
    unit = source.root[1] if source.root else "the unit column"
    first = _reference_fix(source) or f"select {unit} in the subquery below; then "
    return f"{first}write {template.format(unit=unit)}."


def _reference_fix(source: Shape) -> str:
    """Returns the first step of a fix if the subquery has a column that leads to the unit, but not the unit."""
    columns = source.columns.values()
    if (
        source.root is None
        or any(known.unit for known in columns)
        or all(known.depends == Dependence.NONE for known in columns)
    ):
        return ""
    return f"follow the catalog's references: join it to the table that has {source.root[1]}; then "


Lowered = tuple[tuple[Aggregate, ...], Expression, Facts]


def lowered(each: Aggregate, source: Shape) -> Lowered:
    """Returns the aggregates that the engine computes, the value made from them, and its facts."""
    each = each.lowered()
    if each.argument is None or each.function in ("count", "count_distinct"):
        if each.argument is not None:
            facts(each.argument, source.scope)
        inner = None if each.argument is None else typed(each.argument, source.scope)
        return (replace(each, argument=inner),), Column(each.name), _COUNTED
    known = facts(each.argument, source.scope)
    argument = typed(each.argument, source.scope)
    if each.function in ("bool_or", "bool_and"):
        if known.kind != "bool":
            raise QueryError(f"{each.function.upper()} needs a condition.", span=each.span, fix="compare it: x > 0.")
        return (replace(each, argument=argument),), Column(each.name), Facts("bool", values=(False, True))
    if each.function in ("min", "max"):
        return (replace(each, argument=argument),), Column(each.name), replace(known, nullable=True)
    if not known.numeric:
        raise QueryError(
            f"{each.function.upper()} needs a number, and {short(each.argument)} is {show_kind(known.kind)}.",
            span=each.argument.span or each.span,
            fix="use a number, or CASE WHEN ... THEN 1 ELSE 0 END.",
        )
    return _added(replace(each, clip=_clip(argument, known, source)), argument, known)


def _clip(x: Expression, known: Facts, source: Shape) -> Clip | None:
    """Returns what values are clipped to, unless they are within that whatever the columns hold."""
    if known.low is None or known.high is None:
        return None
    free = facts(x, {name: replace(each, low=None, high=None, values=None) for name, each in source.scope.items()})
    inside = free.low is not None and free.high is not None and known.low <= free.low and free.high <= known.high
    return None if inside else Clip(x, known.low, known.high, None if known.whole else known.step)


def _added(each: Aggregate, x: Expression, known: Facts) -> Lowered:
    """Computes SUM and AVG from whole numbers; refuses sums of fractions without a grid."""
    result = _sum_facts(each, known)
    low, value = Fraction(0), x
    if known.low is not None and known.high is not None:
        low, value = known.low, Call("clamp", (x, constant(known.low), constant(known.high)), span=x.span)
    if known.whole:
        return (replace(each, argument=value),), Column(each.name), result
    if known.step is not None:
        return _on_grid(each, value, low, known.step, result)
    raise QueryError(
        f"{each.function.upper()}({short(x)}) inside a subquery adds fractions, and their sum depends on the order.",
        span=x.span or each.span,
        fix=f"declare bounds and a step for {short(x)} in the catalog, or write {each.function.upper()}(ROUND({short(x)})).",
    )


def _on_grid(each: Aggregate, x: Expression, low: Fraction, step: Fraction, result: Facts) -> Lowered:
    above = Call("sub", (x, Literal(low)))
    q = Call("floor", (Call("add", (Call("div", (above, Literal(step))), Literal(Fraction(1, 2)))),))
    total, number = fresh(f"sum {each.name}"), fresh(f"count {each.name}")
    parts = (Aggregate(total, "sum", q, span=each.span, clip=each.clip), Aggregate(number, "count", q, span=each.span))
    steps = Call("mul", (Literal(step), Column(total)))
    if each.function == "avg":
        value = Call("add", (Literal(low), Call("div", (steps, Column(number)))))
    else:
        value = Call("add", (Call("mul", (Literal(low), Column(number))), steps))
    return parts, value, result


def _sum_facts(each: Aggregate, known: Facts) -> Facts:
    """Returns the facts of a sum: of its size only the sign is known, because a unit may have any number of rows."""
    if each.function == "avg":
        return Facts("real", known.low, known.high)
    if known.low is None or known.high is None:
        return Facts("real", whole=known.whole, step=known.step)
    low, high = known.low if known.low >= 0 else None, known.high if known.high <= 0 else None
    return Facts("real", *outward(low, high), whole=known.whole, step=_sum_step(known.low, known.step))


def _sum_step(low: Fraction, step: Fraction | None) -> Fraction | None:
    """Returns a grid through 0 that contains every sum of numbers on the grid that begins at `low`.

    >>> _sum_step(Fraction(1, 2), Fraction(1)), _sum_step(Fraction(-10), Fraction(1, 100))
    (Fraction(1, 2), Fraction(1, 100))
    """
    if step is None:
        return None
    both = math.gcd(step.numerator * low.denominator, low.numerator * step.denominator)
    return Fraction(both, step.denominator * low.denominator)
