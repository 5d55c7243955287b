"""Prints relations as SELECT statements, and the bounding that every statement shares.

Aggregation inside one unit is exact and does not depend on the order: only whole numbers are added up, never doubles.

Bounding: rows are grouped per unit and group first (b), so that later steps read few rows. `r` has the rows of b in the groups
that their unit keeps. The dialect chooses how (`keep_groups`); that depends on the Work only, never on the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.catalog.values import Key
from dither.engines.sql.dialect import (
    Dialect,
    Sql,
    Stages,
    build,
    cannot_compute,
    fix_zero,
    nan_to_null,
    unify,
    whole,
    widest,
)
from dither.engines.sql.frame import Frame, Printed, exact_total, is_column, select, summed, with_plain_names
from dither.engines.sql.windows import within_unit
from dither.query import nodes
from dither.query.nodes import Aggregate, Column, Expression, PerUnit
from dither.query.sample import limit
from dither.query.work import UNIT, Distinct, Work


def per_unit(node: PerUnit, source: Printed, dialect: Dialect) -> Printed:
    """Prints one row for each value of the keys. NULL is a value like any other."""
    frame = Frame(source, dialect)
    keys = [frame.atom(fix_zero(frame, nan_to_null(frame, frame.print(key.expression)))) for key in node.keys]
    aggregates = [_aggregate(frame, aggregate) for aggregate in node.aggregates]
    columns = [*keys, *aggregates]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    # By position: a key that is a constant, such as 7, would be read as a position.
    tail = f" GROUP BY {', '.join(str(place) for place, _ in enumerate(keys, 1))}" if keys else " HAVING count(*) > 0"
    names = [*(key.name for key in node.keys), *(aggregate.name for aggregate in node.aggregates)]
    return with_plain_names(f"SELECT {listed} FROM {dialect.named(frame.source())}{tail}", names, columns)


def _aggregate(frame: Frame, aggregate: Aggregate) -> Sql:
    if aggregate.argument is None:
        return Sql("count(*)", "int")
    if aggregate.function in frame.dialect.missing:
        raise cannot_compute(frame.dialect, aggregate.function, aggregate.span)
    value = nan_to_null(frame, frame.print(aggregate.argument))
    return AGGREGATES[aggregate.function](frame, frame.atom(value))


def _plain(name: str, kind: str | None = None) -> Callable[[Stages, Sql], Sql]:
    return lambda stages, x: build(f"{stages.dialect.exact_aggregate(name, x.kind)}({x.text})", kind or x.kind, x)


def _sum(stages: Stages, x: Sql) -> Sql:
    number = summed(stages, x)
    return build(exact_total(stages.dialect, stages.dialect.unit_sum(number.text)), "real", number)


def _average(stages: Stages, x: Sql) -> Sql:
    number = summed(stages, x)
    total = exact_total(stages.dialect, stages.dialect.unit_sum(number.text))
    return build(f"({total} / NULLIF(count({number.text}), 0))", "real", number)


AGGREGATES: dict[str, Callable[[Stages, Sql], Sql]] = {
    "count": _plain("count", "int"),
    "count_distinct": lambda stages, x: build(f"count(DISTINCT {x.text})", "int", x),
    "sum": _sum,
    "avg": _average,
    "min": _plain("min"),
    "max": _plain("max"),
    "bool_or": _plain("bool_or", "bool"),
    "bool_and": _plain("bool_and", "bool"),
}


Schema = Callable[[str], Sequence[tuple[str, str]]]  # table -> its (column, kind) pairs


def relation(node: nodes.Relation, schema: Schema, dialect: Dialect) -> Printed:
    """Prints the relation as a SELECT."""
    if isinstance(node, nodes.Scan):
        return _scan(node, schema, dialect)
    if isinstance(node, nodes.Filter):
        source = relation(node.source, schema, dialect)
        frame = Frame(source, dialect)
        condition = _condition(frame, node.condition)
        return select(frame, source.names, source.columns, f" WHERE {condition}")
    if isinstance(node, nodes.Compute):
        frame = Frame(relation(node.source, schema, dialect), dialect)
        columns = frame.print_all([column.expression for column in node.columns])
        return select(frame, [column.name for column in node.columns], columns)
    if isinstance(node, nodes.Join):
        return _join(node, schema, dialect)
    if isinstance(node, nodes.Semi):
        return _semi(node, schema, dialect)
    if isinstance(node, nodes.WithinUnit):
        source = relation(node.source, schema, dialect)
        return within_unit(node, Frame(source, dialect), source)
    if isinstance(node, nodes.PerUnit):
        return per_unit(node, relation(node.source, schema, dialect), dialect)
    return _union([relation(part, schema, dialect) for part in node.parts], dialect)


_SIGNS = {"eq": "=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _condition(frame: Frame, condition: nodes.Expression) -> str:
    """Prints a condition of WHERE, where NULL is as good as FALSE.

    A stored real column is compared with a constant as it is, so that the engine can skip parts of a file by their smallest
    and largest value. NaN is above infinity there, and must not pass.
    """
    if isinstance(condition, nodes.Call) and condition.name in ("and", "or"):
        return "(" + f" {condition.name.upper()} ".join(_condition(frame, each) for each in condition.arguments) + ")"
    if isinstance(condition, nodes.Call) and condition.name in _SIGNS and frame.dialect.nan_is_largest:
        column, constant = condition.arguments
        x = frame.print(column) if isinstance(column, nodes.Column) else None
        value = constant.value if isinstance(constant, nodes.Literal) else None
        if x is not None and x.kind == "real" and x.nan and isinstance(value, (int, Fraction)) and not isinstance(value, bool):
            compared = f"{x.text} {_SIGNS[condition.name]} {frame.dialect.as_double(frame.print(constant)).text}"
            below = f" AND {x.text} <= {frame.dialect.double(math.inf)}" if condition.name in ("gt", "ge") else ""
            return f"({compared}{below})"
    return frame.dialect.as_kind(frame.print(condition), "bool").text


def _scan(node: nodes.Scan, schema: Schema, dialect: Dialect) -> Printed:
    pairs = schema(node.table)
    printed = [(dialect.scan(column, kind), dialect.identifier(column), kind) for column, kind in pairs]
    columns = [Sql(text, kind, atom=text == name, nan=kind == "real") for text, name, kind in printed]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    names = [f"{node.alias}.{column}" for column, _ in pairs]
    return with_plain_names(f"SELECT {listed} FROM {dialect.table(node.table)}", names, columns)


Equal = tuple[tuple[nodes.Expression, nodes.Expression], ...]


def _sides(left: Printed, right: Printed, equal: Equal, dialect: Dialect) -> tuple[str, str, list[tuple[str, str]]]:
    """Returns both relations with the sides of the pairs as columns, and the pairs as columns of l and r."""
    frames = Frame(left, dialect), Frame(right, dialect)
    pairs = []
    for x, y in equal:
        # A helper column belongs to the side it comes from.
        a, b = frames[0].print(x), frames[1].print(y)
        (a, _), (_, b) = unify(frames[0], [a, replace(b, nan=False)]), unify(frames[1], [replace(a, nan=False), b])
        pairs.append((_of("l", frames[0].atom(a)), _of("r", frames[1].atom(b))))
    return frames[0].source(), frames[1].source(), pairs


def _of(side: str, x: Sql) -> str:
    """Prefixes a column with its side; a constant gets no prefix."""
    return f"{side}.{x.text}" if is_column(x.text) else x.text


def _and(pairs: list[tuple[str, str]]) -> str:
    return " AND ".join(f"{x} = {y}" for x, y in pairs) or "TRUE"


def _join(node: nodes.Join, schema: Schema, dialect: Dialect) -> Printed:
    left, right = relation(node.left, schema, dialect), relation(node.right, schema, dialect)
    one, two, pairs = _sides(left, right, node.equal, dialect)
    columns = [replace(c, text=f"l.{c.text}") for c in left.columns] + [replace(c, text=f"r.{c.text}") for c in right.columns]
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    kind = {"inner": "JOIN", "left": "LEFT JOIN", "full": "FULL JOIN"}[node.kind]
    return with_plain_names(
        f"SELECT {listed} FROM {one} AS l {kind} {two} AS r ON {_and(pairs)}", left.names + right.names, columns
    )


def _semi(node: nodes.Semi, schema: Schema, dialect: Dialect) -> Printed:
    left = relation(node.source, schema, dialect)
    pairs = node.equal if node.listed is None else (node.listed, *node.equal)
    one, two, equal = _sides(left, relation(node.other, schema, dialect), pairs, dialect)
    listed = ", ".join(f"l.{column.text} AS c{i}" for i, column in enumerate(left.columns))
    if node.listed is not None:
        text = dialect.not_in(listed, one, two, equal[0], _and(equal[1:]))
    else:
        text = dialect.semi(listed, one, two, _and(equal), negated=node.negated)
    return with_plain_names(text, left.names, left.columns)


def _union(parts: list[Printed], dialect: Dialect) -> Printed:
    """Prints all rows of all parts. Columns are matched by name and cast to the widest of their kinds."""
    names = parts[0].names
    frames = [Frame(part, dialect) for part in parts]
    matched = [[frame.print(nodes.Column(name)) for frame in frames] for name in names]
    cast = [[dialect.as_kind(x, widest(column)) for x in column] for column in matched]
    texts = [select(frame, names, [column[i] for column in cast]).text for i, frame in enumerate(frames)]
    return with_plain_names(" UNION ALL ".join(texts), names, [_any_of(column) for column in cast])


def _any_of(column: Sequence[Sql]) -> Sql:
    """Returns the first, with what is known of all: a row may come from any of them."""
    spans = [x.span for x in column if x.span is not None]
    return replace(
        column[0],
        nan=any(x.nan for x in column),
        finite=all(x.finite for x in column),
        span=max(spans) if len(spans) == len(column) else None,
    )


PURPOSES = ("groups", "values")  # the choices that the secret keys: a unit's groups, and its values


class Rows:
    """Prints SELECT unit AS u, keys AS k0, k1, ..., further columns AS x0, x1, ... FROM the source."""

    def __init__(self, work: Work, source: Printed, dialect: Dialect) -> None:
        self._frame = Frame(source, dialect)
        self._work = work
        self.keys = [f"k{i}" for i in range(len(work.keys))]
        self.heads = ["u", *self.keys] if work.by_unit else self.keys
        unit = self._unit() if work.by_unit else None
        self._heads = [f"{unit.text} AS u"] if unit else []
        self._sampled = self._sample(unit.kind) if unit else ""
        self._tests: list[str] = []
        self.kinds: list[str] = []  # of the keys
        for place, key in enumerate(work.keys):
            self._heads.append(f"{self._key(key.expression, place)} AS {self.keys[place]}")
        self._further: dict[str, str] = {}
        kinds = [unit.kind, *self.kinds] if unit else self.kinds
        self.columns = [Sql(name, kind, atom=True) for name, kind in zip(self.heads, kinds, strict=True)]

    def _unit(self) -> Sql:
        return nan_to_null(self._frame, self._frame.print(Column(UNIT)))

    def _sample(self, kind: str) -> str:
        """Prints the test that a unit is in the sample; "" if all are looked at."""
        if self._work.sample is None:
            return ""
        return self._frame.dialect.in_sample(Sql("u", kind, atom=True), limit(self._work.sample))

    def _key(self, expression: Expression, place: int) -> str:
        key, name = self._frame.print(expression), self.keys[place]
        known = None if self._work.known is None else self._work.known[place]
        if self._work.plain:
            self.kinds.append(key.kind)
            return fix_zero(self._frame, nan_to_null(self._frame, key)).text
        self.kinds.append("int" if key.kind == "real" else key.kind)
        if key.kind == "text" and known and self._work.by_unit:
            numbered = self._frame.dialect.number_texts(key.text, list(dict.fromkeys(known)))
            if numbered is not None:
                self._tests.append(f"{name} IS NOT NULL")
                return numbered
        if known is not None:
            self._tests.append(self._one_of(name, known))
        return whole(self._frame, key, rounded=False).text if key.kind == "real" else key.text

    def _one_of(self, name: str, values: Sequence[Key]) -> str:
        listed = ", ".join(self._frame.dialect.literal(value).text for value in values if value is not None)
        tests = [f"{name} IN ({listed})"] if listed else []
        tests += [f"{name} IS NULL"] if None in values else []
        return " OR ".join(tests) or "FALSE"

    def only_known(self, text: str, count: str) -> str:
        """Keeps the rows whose key is public. This drops whole groups, so it may come after grouping.

        `count` is a column that counts rows: see `test_late`.
        """
        if not self._tests:
            return text
        tests = " AND ".join(self._frame.dialect.test_late(test, count, by_unit=self._work.by_unit) for test in self._tests)
        return f"SELECT * FROM {self._frame.dialect.named(f'({text}{self._frame.dialect.fence})')} WHERE {tests}"

    @property
    def frame(self) -> Frame:
        return self._frame

    def column(self, x: Sql) -> str:
        """Returns the name of the column that holds x. Equal expressions share a column."""
        return self._further.setdefault(x.text, f"x{len(self._further)}")

    def condition(self, where: Expression | None) -> str:
        """Returns the name of a column that is true for the counted rows, "" if all rows count."""
        return "" if where is None else self.column(self._frame.print(where))

    def select(self, over: Sequence[str] = ()) -> str:
        """Prints the SELECT. `over`: the expressions computed from it; a column that they use twice is computed once."""
        listed = [*self._heads, *(f"{text} AS {name}" for text, name in self._further.items())] or ["1 AS one"]
        text = f"SELECT {', '.join(listed)} FROM {self._frame.dialect.named(self._frame.source())}"
        uses = re.findall(r"\bx[0-9]+\b", " ".join(over)) if self._frame.dialect.fence else []
        if any(uses.count(name) > 1 for text, name in self._further.items() if not is_column(text)):
            text += self._frame.dialect.fence
        if not self._work.by_unit:
            return text
        tests = " AND ".join(["u IS NOT NULL", *filter(None, [self._sampled])])
        text = f"SELECT * FROM {self._frame.dialect.named(f'({text})')} WHERE {tests}"
        return self._frame.dialect.gather(text, _most_rows(self._work)) if needs_choice(self._work) else text


def _most_rows(work: Work) -> int:
    """Returns how many rows or values of one unit count in a group at most."""
    return max((each.max_values if isinstance(each, Distinct) else each.max_rows for each in work.measures), default=1)


def group_by(heads: Sequence[str], columns: Sequence[str], source: str) -> str:
    """Prints SELECT heads, columns FROM source GROUP BY heads. Without heads: one row, or none if the source is empty."""
    tail = f" GROUP BY {', '.join(heads)}" if heads else " HAVING count(*) > 0"
    return f"SELECT {', '.join([*heads, *columns])} FROM {source}{tail}"


def needs_choice(work: Work) -> bool:
    """Whether a unit could be in more than `max_groups` groups: not if there are no more public groups."""
    if not work.by_unit or work.max_groups is None or not work.keys:
        return False
    return work.known is None or math.prod(len(set(values)) for values in work.known) > work.max_groups


def bounded_groups(work: Work, rows: Rows, columns: Sequence[str], *, repeated: bool) -> str:
    """Prints CTEs up to r, the rows of b in the groups that their unit keeps. `repeated`: a unit and group may repeat in b."""
    if not needs_choice(work) or work.max_groups is None:
        return "r AS (SELECT * FROM b)"
    return rows.frame.dialect.keep_groups(work.max_groups, rows.columns, columns, repeated=repeated)
