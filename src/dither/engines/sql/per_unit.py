"""Aggregation inside one unit, exact and free of any order: doubles are never added up, only whole numbers are."""

from __future__ import annotations

from collections.abc import Callable

from dither.engines.sql.basics import Stages, one_zero, settled, whole
from dither.engines.sql.dialect import Dialect, lacks
from dither.engines.sql.frame import Frame, Printed, named
from dither.engines.sql.text import Sql, made
from dither.query.nodes import Aggregate, PerUnit


def per_unit(node: PerUnit, source: Printed, dialect: Dialect) -> Printed:
    """One row for each value of the keys, NULL being a value like any other."""
    frame = Frame(source, dialect)
    keys = [frame.atom(one_zero(frame, settled(frame, frame.print(key.expression)))) for key in node.keys]
    aggregates = [_aggregate(frame, aggregate) for aggregate in node.aggregates]
    columns = [*keys, *aggregates]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    # By their places: a key that is a constant, such as 7, would itself be read as a place.
    tail = f" GROUP BY {', '.join(str(place) for place, _ in enumerate(keys, 1))}" if keys else " HAVING count(*) > 0"
    names = [*(key.name for key in node.keys), *(aggregate.name for aggregate in node.aggregates)]
    return named(f"SELECT {listed} FROM {frame.source()}{tail}", names, columns)


def _aggregate(frame: Frame, aggregate: Aggregate) -> Sql:
    if aggregate.argument is None:
        return Sql("count(*)", "int")
    if aggregate.function in frame.dialect.missing:
        raise lacks(frame.dialect, aggregate.function)
    value = settled(frame, frame.print(aggregate.argument))
    return AGGREGATES[aggregate.function](frame, frame.atom(value))


def _plain(name: str, kind: str | None = None) -> Callable[[Stages, Sql], Sql]:
    return lambda stages, x: made(f"{stages.dialect.aggregates.get(name, name)}({x.text})", kind or x.kind, x)


def _added(stages: Stages, x: Sql) -> tuple[Sql, str]:
    """Whole numbers and their exact sum as the nearest double. Engines round twice from wide integers, but once from text."""
    dialect, number = stages.dialect, x if x.kind == "int" else stages.atom(whole(stages, x, rounded=False))
    total = dialect.wide_sum(number.text)
    small = f"{total} BETWEEN {-(2**52)} AND {2**52}"
    text = dialect.cast(dialect.cast(total, "int", "text"), "text", "real")
    return number, f"(CASE WHEN {small} THEN {dialect.cast(total, 'int', 'real')} ELSE {text} END)"


def _sum(stages: Stages, x: Sql) -> Sql:
    number, total = _added(stages, x)
    return made(total, "real", number)


def _average(stages: Stages, x: Sql) -> Sql:
    number, total = _added(stages, x)
    return made(f"({total} / NULLIF(count({number.text}), 0))", "real", number)


AGGREGATES: dict[str, Callable[[Stages, Sql], Sql]] = {
    "count": _plain("count", "int"),
    "count_distinct": lambda stages, x: made(f"count(DISTINCT {x.text})", "int", x),
    "sum": _sum,
    "avg": _average,
    "min": _plain("min"),
    "max": _plain("max"),
    "bool_or": _plain("bool_or", "bool"),
    "bool_and": _plain("bool_and", "bool"),
}
