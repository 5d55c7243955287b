"""Relations printed as SELECT statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dither.engines.sql.basics import alike, widest
from dither.engines.sql.dialect import Dialect
from dither.engines.sql.frame import Frame, Printed, named, select
from dither.engines.sql.per_unit import per_unit
from dither.engines.sql.text import Sql, made
from dither.query import nodes

Schema = Callable[[str], Sequence[tuple[str, str]]]  # table -> its (column, kind) pairs


def relation(node: nodes.Relation, schema: Schema, dialect: Dialect) -> Printed:
    """The relation as a SELECT."""
    if isinstance(node, nodes.Scan):
        return _scan(node, schema, dialect)
    if isinstance(node, nodes.Filter):
        source = relation(node.source, schema, dialect)
        frame = Frame(source, dialect)
        condition = frame.print(node.condition)
        return select(frame, source.names, source.columns, f" WHERE {condition.text}")
    if isinstance(node, nodes.Compute):
        frame = Frame(relation(node.source, schema, dialect), dialect)
        columns = [frame.print(column.expression) for column in node.columns]
        return select(frame, [column.name for column in node.columns], columns)
    if isinstance(node, nodes.Join):
        return _join(node, schema, dialect)
    if isinstance(node, nodes.Semi):
        return _semi(node, schema, dialect)
    if isinstance(node, nodes.PerUnit):
        return per_unit(node, relation(node.source, schema, dialect), dialect)
    return _union([relation(part, schema, dialect) for part in node.parts], dialect)


def _scan(node: nodes.Scan, schema: Schema, dialect: Dialect) -> Printed:
    pairs = schema(node.table)
    columns = [made(dialect.scan(column, kind), kind, nan=kind == "real") for column, kind in pairs]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    names = [f"{node.alias}.{column}" for column, _ in pairs]
    return named(f"SELECT {listed} FROM {dialect.table(node.table)}", names, columns)


Equal = tuple[tuple[nodes.Expression, nodes.Expression], ...]


def _sides(left: Printed, right: Printed, equal: Equal, dialect: Dialect) -> tuple[str, str, list[tuple[str, str]]]:
    """Both relations, each with its side of the pairs ready as columns, and the pairs as columns of l and r."""
    frames = Frame(left, dialect), Frame(right, dialect)
    pairs = []
    for x, y in equal:
        # Helper columns that settle a kind belong to the side they come from.
        a, b = frames[0].print(x), frames[1].print(y)
        (a, _), (_, b) = alike(frames[0], [a, replace(b, nan=False)]), alike(frames[1], [replace(a, nan=False), b])
        pairs.append((_of("l", frames[0].atom(a)), _of("r", frames[1].atom(b))))
    return frames[0].source(), frames[1].source(), pairs


def _of(side: str, x: Sql) -> str:
    """A column of a side, by the names that frames give; a constant is of no side."""
    return f"{side}.{x.text}" if x.text[0] in "ch" and x.text[1:].isdecimal() else x.text


def _all(pairs: list[tuple[str, str]]) -> str:
    return " AND ".join(f"{x} = {y}" for x, y in pairs) or "TRUE"


def _join(node: nodes.Join, schema: Schema, dialect: Dialect) -> Printed:
    left, right = relation(node.left, schema, dialect), relation(node.right, schema, dialect)
    one, two, pairs = _sides(left, right, node.equal, dialect)
    columns = [replace(c, text=f"l.{c.text}") for c in left.columns] + [replace(c, text=f"r.{c.text}") for c in right.columns]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    kind = "LEFT JOIN" if node.kind == "left" else "JOIN"
    return named(f"SELECT {listed} FROM {one} AS l {kind} {two} AS r ON {_all(pairs)}", left.names + right.names, columns)


def _semi(node: nodes.Semi, schema: Schema, dialect: Dialect) -> Printed:
    left = relation(node.source, schema, dialect)
    pairs = node.equal if node.listed is None else (node.listed, *node.equal)
    one, two, equal = _sides(left, relation(node.other, schema, dialect), pairs, dialect)
    listed = ", ".join(f"l.{column.text} AS c{i}" for i, column in enumerate(left.columns))
    if node.listed is not None:
        text = dialect.not_in(listed, one, two, equal[0], _all(equal[1:]))
    else:
        text = dialect.semi(listed, one, two, _all(equal), negated=node.negated)
    return named(text, left.names, left.columns)


def _union(parts: list[Printed], dialect: Dialect) -> Printed:
    """All rows of all parts; columns go together by name, in the widest of their kinds."""
    names = parts[0].names
    frames = [Frame(part, dialect) for part in parts]
    found = [[frame.print(nodes.Column(name)) for frame in frames] for name in names]
    cast = [[dialect.as_kind(x, widest(column)) for x in column] for column in found]
    texts = [select(frame, names, [column[i] for column in cast]).text for i, frame in enumerate(frames)]
    columns = [replace(column[0], nan=any(x.nan for x in column)) for column in cast]
    return named(" UNION ALL ".join(texts), names, columns)
