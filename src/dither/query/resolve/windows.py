"""Resolves window functions within one unit: LAG, ROW_NUMBER, running sums over the rows of one person.

A partition must be within one unit, and the unit is always among its columns, so the value of a window is a function of the
rows of one unit (law 1). What one unit can change is bounded later, as for any other column.

Two rows of a unit that ORDER BY does not tell apart may be stored in any order, and no answer may depend on that. So rows are
numbered first, by ORDER BY and then by every column that the question reads; rows that are equal in all of them are
interchangeable. Functions of a row's place (ROW_NUMBER, LAG, sums over ROWS) use that number. Others (RANK, sums over RANGE)
depend on what ORDER BY tells apart, and on nothing else.

    ROW_NUMBER() OVER (PARTITION BY person ORDER BY day)     place = row_number, ties broken by the columns read
    LAG(x)       OVER (PARTITION BY person ORDER BY day)     lag(x) by place
    SUM(x)       OVER (PARTITION BY person ORDER BY day)     sum(x) by day, peers together

Sums add whole numbers, or numbers on a grid, as those of PerUnit do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dither.errors import QueryError
from dither.query.functions.base import Facts, either, family
from dither.query.functions.casts import as_key
from dither.query.functions.domains import every_value, facts
from dither.query.functions.fitting import fit
from dither.query.functions.registry import literal, typed
from dither.query.nodes import (
    WINDOWS,
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Literal,
    Named,
    Relation,
    Rows,
    Sort,
    Span,
    Window,
    WithinUnit,
    fresh,
)
from dither.query.resolve.aggregates import show_kind
from dither.query.resolve.per_unit import lowered, unit_fix
from dither.query.resolve.shapes import BY_ROW, BY_UNIT, Dependence, Known, Shape, check_names, check_once, size
from dither.query.show import show_expression
from dither.query.work import UNIT

AGGREGATES = ("count", "sum", "avg", "min", "max")
_VALUES = ("lag", "lead", "first_value", "last_value")
_SEEING = (*AGGREGATES, "first_value", "last_value")
_ORDERED = ("rank", "dense_rank", "ntile", *_VALUES)
_PLACES = ("row_number", "rank", "dense_rank", "ntile")
_MEANING = {
    True: "This ranks only within each person's own rows; ranks across people are not answered.",
    False: "This looks only at each person's own rows; a window across people is not answered.",
}
MOST_ROWS = 2**31  # the ends of a frame


def within_unit(node: WithinUnit, source: Shape) -> Shape:
    """Returns the shape with the values of the windows as further columns."""
    check_names([each.name for each in node.windows if "." not in each.name])  # the SQL reader's names have an alias
    check_once([*source.columns, *(each.name for each in node.windows)])
    node = replace(node, windows=tuple(_fitted(each, source) for each in node.windows))
    for each in node.windows:
        _check(each, source)
    built = _Built(source.relation, source, {})
    windows: list[Window] = []
    values: list[Named] = []
    columns = dict(source.columns)
    for each in node.windows:
        parts, value, result = _parts(each, built)
        windows += parts
        values.append(Named(each.name, value))
        columns[each.name] = Known(result, depends=_depends(each, source))
    relation = WithinUnit(built.relation, tuple(windows)) if windows else built.relation
    kept = [Named(name, Column(name)) for name in source.columns]
    unit = [Named(UNIT, Column(UNIT))] if source.protects == BY_UNIT else []
    return replace(source, relation=Compute(relation, (*kept, *values, *unit)), columns=columns)


def _fitted(window: Window, source: Shape) -> Window:
    """Fits the expressions of a window to the kinds of the columns."""
    arguments = tuple(fit(part, source.scope) for part in window.arguments)
    partition = tuple(fit(part, source.scope) for part in window.partition)
    order = tuple(replace(key, expression=fit(key.expression, source.scope)) for key in window.order)
    return replace(window, arguments=arguments, partition=partition, order=order)


# --- what may be asked ------------------------------------------------------------------------------------------


def _check(window: Window, source: Shape) -> None:
    word = window.function.upper()
    least, most = WINDOWS.get(window.function, (0, -1))
    if not least <= len(window.arguments) <= most or window.ties:
        raise QueryError(f"{word} is not written like this.", span=window.span, fix=f"use one of {', '.join(WINDOWS)}.")
    parts = [*window.arguments, *window.partition, *(key.expression for key in window.order)]
    size(parts, source, window.span)
    for part in parts:
        facts(part, source.scope)
    _check_unit(window, source)
    _check_order(window, word)
    _check_rows(window.rows, window.span)


def _check_unit(window: Window, source: Shape) -> None:
    """Refuses a partition that may have rows of two units."""
    if source.protects == BY_ROW:
        raise QueryError(
            "A window looks at several rows, and each row is protected on its own.",
            span=window.span,
            fix='ask without it, or declare a unit column instead of unit = "row".',
        )
    if source.protects == BY_UNIT and not any(source.within_unit(part) for part in window.partition):
        others = "".join(f", {show_expression(part)}" for part in window.partition)
        order = ", ".join(f"{show_expression(key.expression)}{' DESC' * key.descending}" for key in window.order)
        fix = unit_fix(source, f"OVER (PARTITION BY {{unit}}{others}{f' ORDER BY {order}' if order else ''})")
        raise QueryError(
            "This window looks across the rows of many people.",
            span=window.span,
            fix=f"{fix} {_MEANING[window.function in _PLACES]}",
        )


def _check_order(window: Window, word: str) -> None:
    if window.function in _ORDERED and not window.order:
        fix = "say in which order: OVER (PARTITION BY ... ORDER BY ...)."
        raise QueryError(f"{word} depends on the order of rows.", span=window.span, fix=fix)
    peers = window.rows is not None and window.rows.peers
    if window.function == "first_value" and peers and window.rows is not None and window.rows.start is not None:
        fix = "leave RANGE out, or write ROWS."
        raise QueryError("Which of several rows comes first is not defined here.", span=window.span, fix=fix)
    if window.function == "last_value" and peers:
        raise QueryError(
            "LAST_VALUE sees the rows up to this one only, as SQL defines it, so it is seldom what is meant.",
            span=window.span,
            fix="write FIRST_VALUE with the other order (DESC), or ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.",
        )


def _check_rows(rows: Rows | None, span: Span) -> None:
    ends = [] if rows is None else [end for end in (rows.start, rows.end) if end is not None]
    if any(not -MOST_ROWS < end < MOST_ROWS for end in ends) or (rows is not None and rows.peers and any(ends)):
        fix = "write ROWS BETWEEN 6 PRECEDING AND CURRENT ROW."
        raise QueryError("The rows of a window are counted from the row itself.", span=span, fix=fix)


# --- what the engine computes -----------------------------------------------------------------------------------


@dataclass
class _Built:
    """The rows with their places so far, by partition and order."""

    relation: Relation
    source: Shape
    places: dict[tuple[frozenset[Expression], tuple[Sort, ...]], str]

    def place(self, partition: tuple[Expression, ...], order: tuple[Sort, ...]) -> str:
        """Returns the column that numbers the rows of each partition. Earlier numbers order rows that are otherwise equal."""
        key = frozenset(partition), order
        if key not in self.places:
            name = fresh("place", self.places.values())
            known = [*partition, *(key.expression for key in order)]
            every = (Column(each) for each in [*self.source.columns, *self.places.values()])
            ties = tuple(each for each in every if each not in known and not self.source.is_unit(each))
            window = Window(name, "row_number", (), partition, order, ties=ties)
            self.relation = WithinUnit(self.relation, (window,))
            self.places[key] = name
        return self.places[key]


Parts = tuple[list[Window], Expression, Facts]


def _parts(window: Window, built: _Built) -> Parts:
    """Returns the windows that the engine computes, the value made from them, and its facts."""
    scope = built.source.scope
    unit = (Column(UNIT),) if built.source.protects == BY_UNIT else ()
    others = (typed(part, scope) for part in window.partition if not built.source.is_unit(part))
    partition = (*unit, *dict.fromkeys(others))
    order = tuple(replace(key, expression=typed(key.expression, scope)) for key in window.order)
    if window.function == "row_number":
        whole = Facts("int", Fraction(1), None, nullable=False, whole=True, step=Fraction(1))
        return [], Column(built.place(partition, order)), whole
    rows = window.rows if window.function in _SEEING else None
    if window.function in ("ntile", *_VALUES) or (rows is not None and not rows.peers):
        order = (Sort(Column(built.place(partition, order))),)
        rows = None if rows is None else replace(rows, peers=False)  # FIRST_VALUE: the first row is the same
    elif rows is None and window.function in AGGREGATES:
        order = ()  # the whole partition
    own = replace(window, partition=partition, order=order, rows=rows)
    return _aggregated(own, built.source) if window.function in AGGREGATES else _one(own, built.source)


def _aggregated(window: Window, source: Shape) -> Parts:
    argument = window.arguments[0] if window.arguments else None
    parts, value, result = lowered(Aggregate(window.name, window.function, argument, span=window.span), source)
    windows = []
    for part in parts:
        inner = () if part.argument is None else (part.argument,)
        windows.append(replace(window, name=part.name, function=part.function, arguments=inner, clip=part.clip))
    return windows, value, result


def _one(window: Window, source: Shape) -> Parts:
    arguments, scope = window.arguments, source.scope
    result = Facts("int", Fraction(1), None, nullable=False, whole=True, step=Fraction(1))
    if window.function == "ntile":
        result = _ntile(window, result)
    elif window.function in ("lag", "lead"):
        arguments, result = _shifted(window, source)
    elif window.function in _VALUES:
        result = replace(facts(arguments[0], scope), nullable=True)
        result = _missing(result) if window.rows is not None and not _sees_itself(window.rows) else result
    inner = tuple(typed(argument, scope) for argument in arguments)
    return [replace(window, arguments=inner)], Column(window.name), result


def _ntile(window: Window, result: Facts) -> Facts:
    parts = window.arguments[0]
    number = parts.value if isinstance(parts, Literal) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < MOST_ROWS:
        raise QueryError("NTILE takes a whole number of parts.", span=window.span, fix="write NTILE(4).")
    result = replace(result, high=Fraction(number))
    return replace(result, values=every_value(result))


def _shifted(window: Window, source: Shape) -> tuple[tuple[Expression, ...], Facts]:
    """Returns the three arguments of LAG and LEAD, in one kind, and the facts of the result."""
    word = window.function.upper()
    value, *further = window.arguments
    offset = further[0] if further else Literal(1)
    default = further[1] if len(further) > 1 else Literal(None)
    number = offset.value if isinstance(offset, Literal) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_ROWS:
        raise QueryError(f"{word} takes a whole number of rows.", span=window.span, fix=f"write {word}(x) or {word}(x, 2).")
    if not isinstance(default, Literal):
        fix = f"write COALESCE({word}(x) OVER (...), y)."
        raise QueryError(f"The last argument of {word} is a constant.", span=window.span, fix=fix)
    known, other = facts(value, source.scope), facts(default, source.scope)
    kind = family([known.kind, other.kind])
    if kind is None:
        what = f"{word} gives {show_kind(known.kind)}, and {show_kind(other.kind)} where there is no such row."
        raise QueryError(what, span=window.span, fix="write a constant of the same kind.")
    if other.kind == "null":
        return (value, offset, default), _missing(known) if number else known
    if kind == "real" and known.kind == "int":
        value = Call("to_real", (value,))
    filled: Expression = Call("to_real", (default,)) if kind == "real" and other.kind == "int" else default
    found = replace(either([known, other], True), clipped=known.clipped)
    if known.values is not None and kind == known.kind:
        found = replace(found, values=tuple(dict.fromkeys((*known.values, as_key(literal(default.value))))))
    return (value, offset, filled), found


def _missing(known: Facts) -> Facts:
    """Returns the facts where there may be no such row: NULL is then a value of its own, as a key shows it in SQL."""
    values = known.values if known.values is None or None in known.values else (*known.values, None)
    return replace(known, nullable=True, values=values, absent=True)


def _sees_itself(rows: Rows) -> bool:
    return (rows.start is None or rows.start <= 0) and (rows.end is None or rows.end >= 0)


def _depends(window: Window, source: Shape) -> Dependence:
    """Returns how a window depends on the unit: as its value does; a count or a number of rows does not."""
    if window.function in ("count", "row_number", "rank", "dense_rank", "ntile"):
        return Dependence.NONE
    return max((source.depends(argument) for argument in window.arguments), default=Dependence.NONE)
