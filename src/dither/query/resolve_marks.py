"""IN and EXISTS as a value of each row, made of left joins to one row for each value of what is equated.

    x IN (y of the partners)  =  TRUE if some y equals x, else FALSE if there is no partner, else NULL if x or some y is
                                 NULL, else FALSE

So two things are looked up: how many partners the row has and how many of them list something, and whether there is one
that lists x. Both sides of such a join are grouped by all that is equated, in the kind in which it is compared, so no row
finds two. Private partners are grouped by their unit as well, which legality.py has equated with the row's: unit-local.
"""

from __future__ import annotations

from dataclasses import replace

from dither.query.function import family
from dither.query.infer import Facts, facts
from dither.query.legality import Pair
from dither.query.nodes import (
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Join,
    Literal,
    Named,
    PerUnit,
    Relation,
    Span,
    fresh,
)
from dither.query.shapes import BY_UNIT, Known, Shape, check_names, check_once, size
from dither.query.work import UNIT


def marked(name: str, source: Shape, other: Shape, pairs: tuple[Pair, ...], listed: Pair | None, span: Span) -> Shape:
    """The source's rows with the column `name`: whether they have a partner, or list. The pairs are checked and typed."""
    check_names([] if "." in name else [name], span)  # the reader's own have an alias, as in "#subquery 2.exists"
    check_once([*source.columns, name], span)
    relation, kept = source.relation, _kept(source)
    equal = every = tuple((a, _comparable(a, b, source, other)) for a, b in pairs)
    partners, same, one = (fresh(f"{name} {word}", source.columns) for word in ("any", "same", "one"))
    if not pairs:  # all rows have the same partners
        relation, every = Compute(relation, (*kept, Named(one, Literal(1)))), ((Column(one), Literal(1)),)
    if listed is None:
        relation = _looked_up(relation, other.relation, every, partners, None)
        found, parts = _there(partners), 3
    else:
        x, y = listed[0], _comparable(*listed, source, other)
        relation = _looked_up(relation, other.relation, every, partners, y)
        relation = _looked_up(relation, other.relation, (*equal, (x, y)), same, None)
        found, parts = _truth(x, partners, same), 15 + size([x], source, span)
    column = Known(Facts("bool", nullable=listed is not None, values=(False, True)), size=parts)
    relation = Compute(relation, (*kept, Named(name, found)))
    return replace(source, relation=relation, columns={**source.columns, name: column})


def _kept(source: Shape) -> tuple[Named, ...]:
    unit = [UNIT] if source.protects == BY_UNIT else []
    return tuple(Named(name, Column(name)) for name in [*source.columns, *unit])


def _comparable(a: Expression, b: Expression, left: Shape, right: Shape) -> Expression:
    """b in the kind in which it is compared with a: whole numbers that are one double must be one group."""
    ours, theirs = (_kind(side, shape) for side, shape in ((a, left), (b, right)))
    kind = family([ours, theirs])
    if kind == "real" and theirs == "int":
        return Call("to_real", (b,), span=b.span)
    if theirs == "null" and kind not in (None, "null"):  # a bare NULL in a column has no kind that an engine could compare
        return Call(f"to_{'date' if kind == 'timestamp' else kind}", (b,), span=b.span)
    return b


def _kind(expression: Expression, shape: Shape) -> str:
    """The unit, which `columns` does not list, is compared with a unit, which is of its kind."""
    return "unit" if expression == Column(UNIT) else facts(expression, shape.scope).kind


def _looked_up(left: Relation, right: Relation, equal: tuple[Pair, ...], tag: str, y: Expression | None) -> Relation:
    """Each row of the left once, with how many rows of the right are equal in all pairs, and in how many y is not NULL."""
    names = [f"{tag} {place}" for place in range(len(equal))]
    keys = [Named(name, b) for name, (_, b) in zip(names, equal, strict=True)]
    counts, listing = [Aggregate(tag, "count")], f"{tag} listed"
    if y is not None:
        keys.append(Named(listing, y))
        counts.append(Aggregate(listing, "count", Column(listing)))
    grouped = PerUnit(Compute(right, tuple(keys)), tuple(Named(name, Column(name)) for name in names), tuple(counts))
    pairs = tuple((a, Column(name)) for name, (a, _) in zip(names, equal, strict=True))
    return Join(left, grouped, pairs, "left")


def _there(tag: str) -> Expression:
    return Call("not", (Call("is_null", (Column(tag),)),))


def _truth(x: Expression, partners: str, same: str) -> Expression:
    unknown = Call("or", (Call("is_null", (x,)), Call("lt", (Column(f"{partners} listed"), Column(partners)))))
    none, no, yes = Call("is_null", (Column(partners),)), Literal(False), Literal(True)
    return Call("case", (_there(same), yes, none, no, unknown, Literal(None), no))
