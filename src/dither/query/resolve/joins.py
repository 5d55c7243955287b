"""Rules for joins, IN, EXISTS and UNION ALL, and their refusals (law 1: every relation is unit-local).

A joined row must belong to one unit. So two private sides may be joined only if both units are equated, or along the
declared reference that gives the child its unit. The equality of the units is then added to the join, so it is enforced.
A FULL JOIN of two private sides equates their units, so a row has the unit of the side that is there: COALESCE of both.
A private and a public side may be joined freely if units are bounded afterwards. If every row is its own unit, no join
may multiply rows, so the equated columns of the public side must be unique.

IN and EXISTS as a value of each row become left joins to one row for each value of the equated columns:

    x IN (y of the partners)  =  TRUE if some y equals x, else FALSE if there is no partner, else NULL if x or some y is
                                 NULL, else FALSE

Two joins give this: one counts the partners of the row and those whose y is not NULL, the other finds a partner with
y = x. The right side is grouped by all equated columns, in the kind in which they are compared, so each row has at most
one partner. Private partners are also grouped by their unit, which is equated with the row's: unit-local.
"""

from __future__ import annotations

from dataclasses import replace

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.query.functions.base import Facts, family
from dither.query.functions.domains import facts
from dither.query.functions.fitting import fit
from dither.query.functions.registry import typed
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
from dither.query.resolve.shapes import BY_ROW, BY_UNIT, PUBLIC, Known, Shape, check_names, check_once, size
from dither.query.work import UNIT

Pair = tuple[Expression, Expression]
Once = tuple[bool, bool]  # whether each row of the right has at most one partner on the left; of the left, on the right
MOST_JOINS = 3  # each may square the rows of one person, and the running time is visible


def check_pairs(pairs: tuple[Pair, ...], left: Shape, right: Shape, span: Span) -> tuple[Pair, ...]:
    """Types the pairs; refuses kinds that cannot be compared."""
    checked = []
    pairs = tuple((fit(a, left.scope), fit(b, right.scope)) for a, b in pairs)
    size((pair[0] for pair in pairs), left, span)
    size((pair[1] for pair in pairs), right, span)
    for a, b in pairs:
        kinds = [facts(a, left.scope).kind, facts(b, right.scope).kind]
        if family(kinds) is None and known(a, left).sure and known(b, right).sure:
            raise QueryError(
                f"This compares {kinds[0]} with {kinds[1]}, and these cannot be compared.",
                span=a.span or b.span or span,
                fix="cast one of the two.",
            )
        checked.append((typed(a, left.scope), typed(b, right.scope)))
    return tuple(checked)


def check_join(left: Shape, right: Shape, pairs: tuple[Pair, ...], kind: str, catalog: Catalog, span: Span) -> None:
    """Refuses a join whose rows would not each belong to one unit."""
    if kind == "full":
        _check_full(left, right, pairs, span)
    if kind == "left" and left.protects == PUBLIC and right.private:
        raise QueryError(
            "This outer join keeps public rows that belong to nobody.",
            span=span,
            fix="put the table with the unit on the side that is kept, or use an inner join.",
        )
    if left.private and right.private:
        check_units(left, right, pairs, catalog, span)
    elif BY_ROW in (left.protects, right.protects):
        public, index = (right, 1) if left.private else (left, 0)
        if not at_most_one(pairs, index, left, right):
            names = ", ".join(public.tables)
            keyed = any(known(pair[index], public).unique for pair in pairs)
            why = "is compared as another kind than its key's" if keyed else "is not joined on a unique key"
            way = f"cast what is compared with the key of {names} to the kind of that key."
            raise QueryError(
                f"Every row is protected on its own, and this join could multiply rows: {names} {why}.",
                span=span,
                fix=way if keyed else _one_row(names),
            )


def _one_row(names: str) -> str:
    return (
        f"join on the declared `key` of {names}, or declare one in the catalog. Where values repeat, keep one row of each: "
        f"JOIN (SELECT x, MIN(y) AS y FROM {names} GROUP BY x) AS one."
    )


def _check_full(left: Shape, right: Shape, pairs: tuple[Pair, ...], span: Span) -> None:
    """Refuses a FULL JOIN of which a row would belong to nobody, or whose two units cannot be one column."""
    if PUBLIC in (left.protects, right.protects):
        private, names = (left, right.tables) if left.private else (right, left.tables)
        raise QueryError(
            f"This FULL JOIN keeps rows of {', '.join(names)} that belong to nobody.",
            span=span,
            fix=f"use LEFT JOIN from {private.tables[0]}, or an inner join.",
        )
    if BY_ROW in (left.protects, right.protects) or left.root != right.root:
        return  # refused like any other join
    pair = unit_pair(pairs, left, right)
    if pair is None:
        unit = left.root[1] if left.root else "the unit"
        raise QueryError(
            "A FULL JOIN of two tables about people equates their units.",
            span=span,
            fix=f"equate the unit of both sides ({unit}), or use LEFT JOIN from the table whose rows you keep.",
        )
    if known(pair[0], left).facts.kind != known(pair[1], right).facts.kind:
        raise QueryError(
            "The units of both sides are of different kinds, so a FULL JOIN cannot make one column of them.",
            span=span,
            fix="let the curator declare the same `kind` for both, or use LEFT JOIN.",
        )


def check_joins(count: int, span: Span) -> int:
    """Returns the number of joins that may multiply one unit's rows; refuses more than MOST_JOINS."""
    if count > MOST_JOINS:
        raise QueryError(
            f"More than {MOST_JOINS} joins multiply the rows of one person, so this question could take very long.",
            span=span,
            fix="aggregate per person in subqueries first, or join on declared keys, which multiplies nothing.",
        )
    return count


def at_most_one(pairs: tuple[Pair, ...], index: int, left: Shape, right: Shape) -> bool:
    """Returns whether every row has at most one partner on the side `index`: one or several columns there are unique."""
    own = [pair[index] for pair in pairs if _in_own_kind(pair, index, left, right)]
    side = (left, right)[index]
    several = bool(side.together) and all(Column(name) in own for name in side.together)
    return several or any(known(expression, side).unique for expression in own)


def _in_own_kind(pair: Pair, index: int, left: Shape, right: Shape) -> bool:
    """Returns whether the side `index` is compared in its own kind.

    Whole numbers against decimal ones are compared as doubles, where 2^62 and 2^62 + 1 are the same number.
    """
    kinds = known(pair[0], left).facts.kind, known(pair[1], right).facts.kind
    return family([*kinds]) == kinds[index]


def check_scalar(once: bool, span: Span) -> None:
    """Refuses a scalar subquery that may have several values for a row, because kinds differ."""
    if not once:
        raise QueryError(
            "This subquery is compared with the outer question as another kind than its own, so it may have several values.",
            span=span,
            fix="cast what the subquery's column is compared with to the kind of that column.",
        )


def check_semi(
    source: Shape, other: Shape, pairs: tuple[Pair, ...], catalog: Catalog, span: Span, listed: Pair | None, negated: bool
) -> None:
    """Refuses IN or EXISTS over rows of other people. `listed`: the pair of an IN whose value depends on the whole list."""
    if not other.private:
        return
    if not source.private:
        raise QueryError(
            "Public rows would be chosen by looking at private ones, so they would no longer be public.",
            span=span,
            fix="use IN and EXISTS the other way round: private rows chosen by public ones.",
        )
    if not pairs and BY_ROW not in (source.protects, other.protects) and source.root == other.root:
        equal = equality(source, other, catalog)
        if listed is None:
            what = "EXISTS must equate a column of its subquery with a column of the outer question."
            raise QueryError(what, span=span, fix=f"add a condition to its WHERE: {equal}.")
        word = "NOT IN" if negated else "Here IN"
        raise QueryError(
            f"{word} looks at the whole list: a NULL in one person's row would decide about everybody.",
            span=span,
            fix=_list_fix(listed, equal, _along_edge(listed, source, other, catalog), negated),
        )
    check_units(source, other, pairs, catalog, span)


def _list_fix(listed: Pair, equal: str, edge: bool, negated: bool) -> str:
    x, y = listed
    if edge and isinstance(x, Column) and isinstance(y, Column):
        return f"write {'NOT ' if negated else ''}EXISTS (SELECT 1 FROM ... WHERE {y.name} = {x.name})."
    return f"list what belongs to the same person: add WHERE {equal} to the subquery; values of others cannot be looked up."


def equality(left: Shape, right: Shape, catalog: Catalog) -> str:
    """Returns the condition that equates the units of both sides, in the question's names: "v.person_id = p.person_id"."""
    for a, b in ((a, b) for a in left.columns for b in right.columns):
        pair = Column(a), Column(b)
        if _same_unit(pair, left, right) or _along_edge(pair, left, right, catalog):
            if a.split(".")[0] != b.split(".")[0]:
                return f"{b} = {a}"
            return f"b.{b.split('.', 1)[-1]} = a.{a.split('.', 1)[-1]} (a being the outer table's name, b the inner one's)"
    return f"the unit ({left.root[1] if left.root else 'its column'}) of both sides equal"


def check_units(left: Shape, right: Shape, pairs: tuple[Pair, ...], catalog: Catalog, span: Span) -> None:
    """Refuses two private sides unless they equate the same unit, or follow the reference that gives one its unit."""
    names = f"{' and '.join(dict.fromkeys((left.tables[0], right.tables[0])))}"
    if BY_ROW in (left.protects, right.protects):
        raise QueryError(
            f"{names} cannot be joined: in one of them every row is protected on its own.",
            span=span,
            fix='declare a unit column instead of unit = "row", so that it is known whose rows belong together.',
        )
    if left.root != right.root:
        raise QueryError(
            f"{names} do not protect the same units, as far as the catalog says.",
            span=span,
            fix=_reference(left, right, catalog),
        )
    if not any(_of_one_person(pair, left, right, catalog) for pair in pairs):
        column = left.root[1] if left.root else "the unit"
        raise QueryError(
            "This would combine rows of different people.",
            span=span,
            fix=f"equate the unit of both sides ({column}), or join along the reference that the catalog declares.",
        )


def _of_one_person(pair: Pair, left: Shape, right: Shape, catalog: Catalog) -> bool:
    """Returns whether rows that a pair equates belong to one unit, as far as the catalog says."""
    return _same_unit(pair, left, right) or _along_edge(pair, left, right, catalog) or _same_rows(pair, left, right)


def _same_rows(pair: Pair, left: Shape, right: Shape) -> bool:
    """Returns whether both sides of a pair are one column of one table that belongs to one unit: the id of its rows.

    The unit is equated, too (`_equated` in relations.py), so that a join stays within one unit whatever the ids are."""
    one, two = known(pair[0], left), known(pair[1], right)
    return one.of_one_unit and two.of_one_unit and one.origin is not None and one.origin == two.origin


def _reference(left: Shape, right: Shape, catalog: Catalog) -> str:
    """Returns the fix that declares that the units of one side are those of the other."""
    if left.root is None or right.root is None:
        return "declare where their units come from, with `references` in the catalog."
    turned = catalog.tables[right.root[0]].max_rows == 1 and catalog.tables[left.root[0]].max_rows != 1
    parent, child = (right.root, left.root) if turned else (left.root, right.root)
    unit = f'unit = {{ column = "{child[1]}", references = "{".".join(parent)}" }}'
    return f"declare where the unit comes from; for {child[0]}: {unit}."


def unit_pair(pairs: tuple[Pair, ...], left: Shape, right: Shape) -> Pair | None:
    """Returns the pair that equates the two units, if there is one."""
    return next((pair for pair in pairs if _same_unit(pair, left, right)), None)


def _same_unit(pair: Pair, left: Shape, right: Shape) -> bool:
    return known(pair[0], left).unit and known(pair[1], right).unit


def _along_edge(pair: Pair, left: Shape, right: Shape, catalog: Catalog) -> bool:
    a, b = known(pair[0], left).origin, known(pair[1], right).origin
    return a is not None and b is not None and (_edge(a, b, catalog) or _edge(b, a, catalog))


def joined_columns(
    left: Shape, right: Shape, pairs: tuple[Pair, ...], kind: str, once: Once, catalog: Catalog
) -> dict[str, Known]:
    """Returns the columns of a join. Unique columns stay unique if each row has at most one partner.

    A value of the right is one per unit if it was on its side and no row of the unit lacks a partner that another has: NULL
    beside a value makes two. So in a left join all rows of the unit must have the same left sides of the pairs. The value is
    also one per unit if the left sides are, and they have at most one partner: a public row looked up by a unit's country.
    """
    if kind == "full":
        return _either_side(left, right, pairs, catalog)
    ours, theirs = (all(side.per_unit(pair[index]) for pair in pairs) for index, side in ((0, left), (1, right)))
    columns = {}
    for name, each in left.columns.items():
        looked_up = once[0] and theirs and kind == "inner"
        columns[name] = replace(each, unique=each.unique and once[1], per_unit=each.per_unit or looked_up)
    for name, each in right.columns.items():
        own = each.per_unit and (kind == "inner" or ours)
        known = replace(each, unique=each.unique and once[0], per_unit=own or (once[1] and ours))
        columns[name] = _missing(known, catalog) if kind == "left" else known
    return columns


def _either_side(left: Shape, right: Shape, pairs: tuple[Pair, ...], catalog: Catalog) -> dict[str, Known]:
    """Returns the columns of a FULL JOIN. If only the units are equated, a side is there in all rows of a unit or in none."""
    alone = len(pairs) == 1
    every = {**left.columns, **right.columns}
    return {name: _missing(replace(each, per_unit=each.per_unit and alone), catalog) for name, each in every.items()}


def _missing(known: Known, catalog: Catalog) -> Known:
    """Returns a column of the side that may be missing. NULL is then a value of a public table's column, as it is in SQL."""
    missing, values = known.missing(), known.facts.values
    column = None if known.origin is None else catalog.tables[known.origin[0]].columns.get(known.origin[1])
    if column is None or column.found is None or values is None or None in values:
        return missing
    return replace(missing, facts=replace(missing.facts, values=(*values, None)))


def joined_bounds(left: Shape, right: Shape, node: Join, once: Once) -> tuple[int | None, int | None]:
    """Returns max_rows and max_groups of a join, if they are declared.

    If each row of a side has at most one partner, a unit has no more rows than on that side. Otherwise, and for the groups of
    columns from both sides, it is the larger. A subquery for a value adds a column, and neither rows nor groups.
    """
    private = [side for side in (left, right) if side.private and (side is left or node.scalar is None)]
    limiting = ((left, once[1] and node.kind != "full"), (right, once[0] and node.kind == "inner"))
    limits = [side.max_rows for side, limits in limiting if limits and side.private]
    rows = min((bound for bound in limits if bound is not None), default=None)
    return rows if limits else _largest([side.max_rows for side in private]), _largest([side.max_groups for side in private])


def _largest(bounds: list[int | None]) -> int | None:
    """Returns the largest bound, or None if one is not declared."""
    return None if None in bounds else max([bound for bound in bounds if bound is not None], default=1)


def _edge(child: tuple[str, str], parent: tuple[str, str], catalog: Catalog) -> bool:
    unit = catalog.tables[child[0]].unit
    return unit is not None and unit.column == child[1] and unit.references == parent


def known(expression: Expression, shape: Shape) -> Known:
    """Returns what is known about an expression over the shape's columns."""
    if isinstance(expression, Column) and expression.name in shape.columns:
        return shape.columns[expression.name]
    return Known(facts(expression, shape.scope))


def check_union(parts: list[Shape], span: Span) -> None:
    """Refuses parts with different units or columns, and rows that could count twice."""
    if len({part.protects for part in parts}) > 1 or len({part.root for part in parts}) > 1:
        raise QueryError(
            "The parts of this UNION ALL do not protect the same units, as far as the catalog says.",
            span=span,
            fix="declare the references of their unit columns in the catalog, or ask about each part alone.",
        )
    if parts[0].protects == BY_ROW:
        raise QueryError(
            "Every row is protected on its own, and UNION ALL could count a row twice.",
            span=span,
            fix='declare a unit column instead of unit = "row", or ask about each part alone.',
        )
    first = parts[0]
    if any(set(part.columns) != set(first.columns) for part in parts):
        raise QueryError("The parts of UNION ALL have different columns.", span=span, fix="name them alike.")
    for other in parts[1:]:
        for name, column in first.columns.items():
            kinds = [column.facts.kind, other.columns[name].facts.kind]
            if family(kinds) is None:
                raise QueryError(
                    f"The column {name.split('.', 1)[-1]} is {kinds[0]} in one part of UNION ALL and {kinds[1]} in another.",
                    span=span,
                    fix="cast one of the two.",
                )


def with_mark(name: str, source: Shape, other: Shape, pairs: tuple[Pair, ...], listed: Pair | None, span: Span) -> Shape:
    """Adds the column `name` to the source: whether the row has a partner, or is in the list. The pairs are typed already."""
    check_names([] if "." in name else [name], span)  # names from the SQL reader have an alias: "#subquery 2.exists"
    check_once([*source.columns, name], span)
    relation, kept = source.relation, _all_columns(source)
    equal = every = tuple((a, _comparable(a, b, source, other)) for a, b in pairs)
    partners, same, one = (fresh(f"{name} {word}", source.columns) for word in ("any", "same", "one"))
    if not pairs:  # all rows have the same partners
        relation, every = Compute(relation, (*kept, Named(one, Literal(1)))), ((Column(one), Literal(1)),)
    if listed is None:
        relation = _join_counts(relation, other.relation, every, partners, None)
        value, parts = _exists(partners), 3
    else:
        x, y = listed[0], _comparable(*listed, source, other)
        relation = _join_counts(relation, other.relation, every, partners, y)
        relation = _join_counts(relation, other.relation, (*equal, (x, y)), same, None)
        value, parts = _in(x, partners, same), 15 + size([x], source, span)
    steady = all(source.per_unit(a) for a, _ in (*pairs, *([] if listed is None else [listed])))
    column = Known(Facts("bool", nullable=listed is not None, values=(False, True)), size=parts, per_unit=steady)
    relation = Compute(relation, (*kept, Named(name, value)))
    return replace(source, relation=relation, columns={**source.columns, name: column})


def _all_columns(source: Shape) -> tuple[Named, ...]:
    unit = [UNIT] if source.protects == BY_UNIT else []
    return tuple(Named(name, Column(name)) for name in [*source.columns, *unit])


def _comparable(a: Expression, b: Expression, left: Shape, right: Shape) -> Expression:
    """Casts b to the kind in which it is compared with a: integers that are the same double must be one group."""
    ours, theirs = (_kind(side, shape) for side, shape in ((a, left), (b, right)))
    kind = family([ours, theirs])
    if kind == "real" and theirs == "int":
        return Call("to_real", (b,), span=b.span)
    if theirs == "null" and kind not in (None, "null"):  # engines cannot compare a bare NULL, which has no kind
        return Call(f"to_{'date' if kind == 'timestamp' else kind}", (b,), span=b.span)
    return b


def _kind(expression: Expression, shape: Shape) -> str:
    """Returns the kind of an expression. UNIT, which `columns` does not list, is compared only with units of its kind."""
    return "unit" if expression == Column(UNIT) else facts(expression, shape.scope).kind


def _join_counts(left: Relation, right: Relation, equal: tuple[Pair, ...], tag: str, y: Expression | None) -> Relation:
    """Joins to each left row the number of right rows that equal it in all pairs, and of those whose y is not NULL."""
    names = [f"{tag} {place}" for place in range(len(equal))]
    keys = [Named(name, b) for name, (_, b) in zip(names, equal, strict=True)]
    counts, listing = [Aggregate(tag, "count")], f"{tag} listed"
    if y is not None:
        keys.append(Named(listing, y))
        counts.append(Aggregate(listing, "count", Column(listing)))
    grouped = PerUnit(Compute(right, tuple(keys)), tuple(Named(name, Column(name)) for name in names), tuple(counts))
    pairs = tuple((a, Column(name)) for name, (a, _) in zip(names, equal, strict=True))
    return Join(left, grouped, pairs, "left")


def _exists(tag: str) -> Expression:
    return Call("not", (Call("is_null", (Column(tag),)),))


def _in(x: Expression, partners: str, same: str) -> Expression:
    unknown = Call("or", (Call("is_null", (x,)), Call("lt", (Column(f"{partners} listed"), Column(partners)))))
    none, no, yes = Call("is_null", (Column(partners),)), Literal(False), Literal(True)
    return Call("case", (_exists(same), yes, none, no, unknown, Literal(None), no))
