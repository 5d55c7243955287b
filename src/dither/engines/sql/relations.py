"""Relations printed as SELECT statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dither.engines.sql.basics import alike, as_kind, widest
from dither.engines.sql.frame import Frame, Printed, named, select
from dither.engines.sql.per_unit import per_unit
from dither.engines.sql.text import Sql, identifier, made
from dither.query import nodes

Schema = Callable[[str], Sequence[tuple[str, str]]]  # table -> its (column, kind) pairs


def relation(node: nodes.Relation, schema: Schema) -> Printed:
    """The relation as a SELECT."""
    if isinstance(node, nodes.Scan):
        return _scan(node, schema)
    if isinstance(node, nodes.Filter):
        source = relation(node.source, schema)
        frame = Frame(source)
        condition = frame.print(node.condition)
        return select(frame, source.names, source.columns, f" WHERE {condition.text}")
    if isinstance(node, nodes.Compute):
        frame = Frame(relation(node.source, schema))
        columns = [frame.print(column.expression) for column in node.columns]
        return select(frame, [column.name for column in node.columns], columns)
    if isinstance(node, nodes.Join):
        return _join(node, schema)
    if isinstance(node, nodes.Semi):
        return _semi(node, schema)
    if isinstance(node, nodes.PerUnit):
        return per_unit(node, relation(node.source, schema))
    return _union([relation(part, schema) for part in node.parts])


def _scan(node: nodes.Scan, schema: Schema) -> Printed:
    pairs = schema(node.table)
    columns = [_scanned(column, kind) for column, kind in pairs]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    names = [f"{node.alias}.{column}" for column, _ in pairs]
    return named(f"SELECT {listed} FROM {identifier(node.table)}", names, columns)


def _scanned(column: str, kind: str) -> Sql:
    """A stored column. Days outside the calendar of datetime, infinite ones among them, are NULL."""
    name = identifier(column)
    if kind in ("date", "timestamp"):
        first, last = f"CAST('0001-01-01' AS {kind})", f"CAST('9999-12-31 23:59:59.999999' AS {kind})"
        return made(f"(CASE WHEN {name} BETWEEN {first} AND {last} THEN {name} END)", kind)
    return made(name, kind, nan=kind == "real")


Equal = tuple[tuple[nodes.Expression, nodes.Expression], ...]


def _sides(left: Printed, right: Printed, equal: Equal) -> tuple[str, str, list[tuple[str, str]]]:
    """Both relations, each with its side of the pairs ready as columns, and the pairs as columns of l and r."""
    frames = Frame(left), Frame(right)
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


def _join(node: nodes.Join, schema: Schema) -> Printed:
    left, right = relation(node.left, schema), relation(node.right, schema)
    one, two, pairs = _sides(left, right, node.equal)
    columns = [replace(c, text=f"l.{c.text}") for c in left.columns] + [replace(c, text=f"r.{c.text}") for c in right.columns]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    kind = "LEFT JOIN" if node.kind == "left" else "JOIN"
    return named(f"SELECT {listed} FROM {one} AS l {kind} {two} AS r ON {_all(pairs)}", left.names + right.names, columns)


def _semi(node: nodes.Semi, schema: Schema) -> Printed:
    left = relation(node.source, schema)
    pairs = node.equal if node.listed is None else (node.listed, *node.equal)
    one, two, equal = _sides(left, relation(node.other, schema), pairs)
    listed = ", ".join(f"l.{column.text} AS c{i}" for i, column in enumerate(left.columns))
    if node.listed is not None:
        (x, y), condition = equal[0], _all(equal[1:])
        tail = f"WHERE {x} NOT IN (SELECT {y} FROM {two} AS r WHERE {condition})"
        return named(f"SELECT {listed} FROM {one} AS l {tail}", left.names, left.columns)
    condition = _all(equal)
    kind = "ANTI" if node.negated else "SEMI"
    return named(f"SELECT {listed} FROM {one} AS l {kind} JOIN {two} AS r ON {condition}", left.names, left.columns)


def _union(parts: list[Printed]) -> Printed:
    """All rows of all parts; columns go together by name, in the widest of their kinds."""
    names = parts[0].names
    frames = [Frame(part) for part in parts]
    found = [[frame.print(nodes.Column(name)) for frame in frames] for name in names]
    cast = [[as_kind(x, widest(column)) for x in column] for column in found]
    texts = [select(frame, names, [column[i] for column in cast]).text for i, frame in enumerate(frames)]
    columns = [replace(column[0], nan=any(x.nan for x in column)) for column in cast]
    return named(" UNION ALL ".join(texts), names, columns)
