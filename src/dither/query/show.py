"""Shows nodes as text for people: one line for an expression, an indented tree for a relation.

EXPLAIN and the golden files use it; it is never parsed and never passed to an engine.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from dither.exact.numbers import show
from dither.query.nodes import (
    Across,
    Aggregate,
    Call,
    Column,
    Compute,
    Expression,
    Filter,
    Join,
    Literal,
    Lookup,
    Named,
    Order,
    Outer,
    PerUnit,
    Query,
    Relation,
    Rows,
    Scan,
    Semi,
    Sort,
    Union,
    Value,
    Window,
    WithinUnit,
    grouping_mark,
)

SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "mod": "%",
    "whole_quotient": "//",
    "concat": "||",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "AND",
    "or": "OR",
}
_ARITHMETIC = ("add", "sub", "mul", "div", "mod", "whole_quotient", "concat")
_TYPES = {"to_int": "INTEGER", "to_real": "DOUBLE", "to_text": "VARCHAR", "to_date": "DATE", "to_bool": "BOOLEAN"}
_WORDS = {"neg": "-", "in_list": "IN", "is_null": "IS NULL", "weekday": "ISODOW", "smallest": "LEAST", "largest": "GREATEST"}
_WORDS |= {"add_days": "+ INTERVAL", "add_months": "+ INTERVAL", "add_seconds": "+ INTERVAL", "position": "STRPOS"}
_UNITS = {"add_days": "DAY", "add_months": "MONTH", "add_seconds": "SECOND"}
_TESTS = ("is_null", "in_list", "like")


def show_function(name: str) -> str:
    """Shows a function or operator as SQL writes it.

    >>> show_function("add"), show_function("sqrt"), show_function("to_int")
    ('+', 'SQRT', 'CAST AS INTEGER')
    """
    if name in _TYPES:
        return f"CAST AS {_TYPES[name]}"
    if name == "row":
        return "(x, y)"
    return SIGNS.get(name) or _WORDS.get(name) or name.upper()


def show_expression(node: Expression, names: bool = False) -> str:
    """Shows an expression as SQL. Subqueries appear as their `words`, or with `names` as their columns' names.

    >>> show_expression(Call("ge", (Call("mul", (Column("p.age"), Literal(2))), Literal(18))))
    '(p.age * 2) >= 18'
    >>> show_expression(Call("and", (Call("not", (Call("is_null", (Column("x"),)),)), Call("eq", (Column("y"), Literal("a"))))))
    "x IS NOT NULL AND y = 'a'"
    """
    if isinstance(node, Literal):
        return show_value(node.value)
    if node.words and not names:
        return node.words
    return node.name if isinstance(node, Column) else _call(node, names)


def _call(node: Call, names: bool) -> str:
    """Shows a call. Each argument is shown once: twice at every level would take 2^depth steps."""
    if node.name == "not":
        return _negation(node.arguments[0], names)
    parts, inner = _show_arguments(node, names)
    if node.name in SIGNS:
        text = f" {SIGNS[node.name]} ".join(inner)
        return f"({text})" if node.name in _ARITHMETIC else text
    if node.name == "neg":
        return f"-{inner[0]}"
    if node.name in _TESTS:
        return _test(node.name, parts, inner, "")
    if node.name == "case":
        return _case(parts)
    if node.name in _UNITS:
        return _moved(node, parts, inner)
    if node.name == "row":
        return f"({', '.join(parts)})"
    if node.name in _TYPES:
        return f"CAST({parts[0]} AS {_TYPES[node.name]})"
    return f"{show_function(node.name)}({', '.join(parts)})"


def _moved(node: Call, parts: list[str], inner: list[str]) -> str:
    """Shows a date that is moved: d + INTERVAL 1 MONTH."""
    number = node.arguments[1].value if isinstance(node.arguments[1], Literal) else None
    if isinstance(number, int) and number < 0:
        return f"({inner[0]} - INTERVAL {-number} {_UNITS[node.name]})"
    amount = parts[1] if isinstance(number, int) else f"({parts[1]})"
    return f"({inner[0]} + INTERVAL {amount} {_UNITS[node.name]})"


def _show_arguments(node: Call, names: bool) -> tuple[list[str], list[str]]:
    """Shows the arguments, alone and as operands of the call."""
    parts = [show_expression(part, names) for part in node.arguments]
    return parts, [_operand(part, text, node.name, names) for part, text in zip(node.arguments, parts, strict=True)]


def _test(name: str, parts: list[str], inner: list[str], no: str) -> str:
    if name == "is_null":
        return f"{inner[0]} IS {no}NULL"
    return f"{inner[0]} {no}IN ({', '.join(parts[1:])})" if name == "in_list" else f"{inner[0]} {no}LIKE {inner[1]}"


def _operand(node: Expression, text: str, holder: str, names: bool) -> str:
    """Shows an operand, in parentheses if it is a condition; AND inside AND needs none."""
    if not isinstance(node, Call) or (node.words and not names) or (node.name == holder and holder in ("and", "or")):
        return text
    weak = node.name in (*SIGNS, "not", "is_null", "in_list", "like") and node.name not in _ARITHMETIC
    plain = holder in ("and", "or") and node.name not in ("and", "or")
    return f"({text})" if (weak and not plain) or (node.name == "neg" and holder == "neg") else text


def _negation(inner: Expression, names: bool) -> str:
    """Shows a negation: NOT x, x IS NOT NULL, x NOT IN (...), x NOT LIKE y."""
    if isinstance(inner, Call) and inner.name in _TESTS and not (inner.words and not names):
        return _test(inner.name, *_show_arguments(inner, names), "NOT ")
    return f"NOT {_operand(inner, show_expression(inner, names), 'not', names)}"


def _case(parts: list[str]) -> str:
    when = [f" WHEN {when} THEN {then}" for when, then in zip(parts[:-1:2], parts[1::2], strict=True)]
    return f"CASE{''.join(when)}{'' if parts[-1] == 'NULL' else f' ELSE {parts[-1]}'} END"


def show_value(value: Value) -> str:
    """Shows a constant as SQL, on one line."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + "".join(each if each.isprintable() else repr(each)[1:-1] for each in value.replace("'", "''")) + "'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    text = show(value)
    return f"{text}.0" if isinstance(value, Fraction) and text.lstrip("-").isdigit() else text


def show_aggregate(node: Aggregate) -> str:
    """Shows an aggregate: n = avg(p.age), m = quantile(p.age; 9/10), k = count(*) where p.active."""
    inner = "*" if node.argument is None else ", ".join(_node(each) for each in (node.argument, node.second) if each)
    extra = "" if node.parameter is None else f"; {show(node.parameter)}"
    where = "" if node.where is None else f" where {_node(node.where)}"
    return f"{node.name} = {node.function}({inner}{extra}){where}"


def show_query(query: Query) -> str:
    """Shows a query as an indented tree, the SELECTs around it first."""
    lines = [line for outer in reversed(query.above) for line in _outer(outer)]
    lines += ["output " + _named(query.outputs), *_ending(query)]
    lines.append("private " + ", ".join(show_aggregate(each) for each in query.aggregates) if query.aggregates else "list")
    if query.keys:
        lines.append("by " + _named(query.keys))
    if query.sets:
        names = [[query.keys[place].name for place in each] for each in query.sets]
        lines.append("sets " + ", ".join(f"({', '.join(each)})" for each in names))
    for number, places in enumerate(query.groupings):
        lines.append(f"{grouping_mark(number)} = grouping({', '.join(query.keys[place].name for place in places)})")
    return "\n".join([*lines, *_lines(query.source)])


def _ending(query: Query | Outer) -> list[str]:
    lines = ["having " + _node(query.having)] if query.having is not None else []
    lines += ["order " + _order(query.order)] if query.order else []
    lines += [f"limit {query.limit}"] if query.limit is not None else []
    return lines + ([f"offset {query.offset}"] if query.offset else [])


def _order(order: tuple[Order, ...]) -> str:
    return ", ".join(map(_sort, order))


def _outer(outer: Outer) -> list[str]:
    """Shows a SELECT around the question."""
    lines = [f"{'distinct ' * outer.distinct}around {_named(outer.outputs)}", *_ending(outer)]
    lines += [f"qualify {_node(outer.qualify)}"] if outer.qualify is not None else []
    lines += [f"window {show_across(each)}" for each in reversed(outer.windows)]
    if outer.folds is not None:
        lines.append(f"by [{_named(outer.keys)}] {', '.join(map(show_across, outer.folds))}".rstrip())
    lines += [f"where {_node(outer.where)}"] if outer.where is not None else []
    return lines + [line for each in reversed(outer.lookups) for line in _lookup(each)]


def _lookup(node: Lookup) -> list[str]:
    """Shows a subquery over public tables: look up #public 1 = value regions.area on region = r.name."""
    selects = ", ".join(show_aggregate(each) for each in node.aggregates)
    item = "" if node.item is None else f" {_node(node.item)}" + (f" of {selects}" if selects else "")
    listed = "" if node.listed is None else f" {_node(node.listed)}"
    on = f" on {_pairs(node.equal)}" if node.equal else ""
    first = f" first by {_order(node.order)}" if node.order else ""
    return [f"look up {node.name} = {node.kind}{listed}{item}{on}{first}", *_under(node.rows)]


def show_across(node: Across) -> str:
    """Shows an aggregate or a window function of a noisy table: w = sum(n) by [region] order [m] rows -1 to 0."""
    parts = [f"{node.name} = {node.function}({', '.join(map(_node, node.arguments)) or '*' * (node.function == 'count')})"]
    parts += [f"where {_node(node.where)}"] if node.where is not None else []
    parts += [f"by [{', '.join(map(_node, node.partition))}]"] if node.partition else []
    parts += [f"order [{_order(node.order)}]"] if node.order else []
    if node.frame is not None:
        ends = ((node.frame.start, node.frame.first), (node.frame.end, node.frame.last))
        start, end = (_node(at) if at is not None else "unbounded" if by is None else str(by) for by, at in ends)
        parts.append(f"{node.frame.kind} {start} to {end}")
    parts += ["ignore nulls"] if node.skips_nulls else []
    return " ".join(parts)


def _node(node: Expression) -> str:
    return show_expression(node, names=True)


def _named(columns: tuple[Named, ...]) -> str:
    return ", ".join(f"{each.name} = {_node(each.expression)}" for each in columns)


def _lines(node: Relation) -> list[str]:
    if isinstance(node, Scan):
        return [f"scan {node.table} as {node.alias}"]
    if isinstance(node, Filter):
        return [f"filter {_node(node.condition)}", *_under(node.source)]
    if isinstance(node, Compute):
        return [f"compute {_named(node.columns)}", *_under(node.source)]
    if isinstance(node, PerUnit):
        inner = ", ".join(show_aggregate(each) for each in node.aggregates)
        return [f"per unit by [{_named(node.keys)}] {inner}".rstrip(), *_under(node.source)]
    if isinstance(node, WithinUnit):
        return [f"within unit {', '.join(map(show_window, node.windows))}", *_under(node.source)]
    if isinstance(node, Join):
        if node.scalar is not None:
            inner = ", ".join(show_aggregate(each) for each in node.scalar.aggregates)
            return [f"{node.scalar.alias}: {inner} on {_pairs(node.equal)}", *_under(node.left), *_under(node.right)]
        return [f"{node.kind} join on {_pairs(node.equal)}", *_under(node.left), *_under(node.right)]
    if isinstance(node, Semi):
        marks = f"{node.mark} = " if node.mark is not None else ""
        head = f"{marks}{'without' if node.negated else 'with'} partner on {_pairs(node.equal)}"
        if node.listed is not None:
            x, y = map(_node, node.listed)
            word = "not in" if node.negated else "in"
            head = f"{marks}{x} {word} {y}" + (f" of partners on {_pairs(node.equal)}" if node.equal else "")
        return [head, *_under(node.source), *_under(node.other)]
    return ["union", *(line for part in _parts(node) for line in _under(part))]


def show_window(node: Window) -> str:
    """Shows a window function: r = row_number() over (partition by #unit order by v.day, then v.cost)."""
    inner = ", ".join(map(_node, node.arguments))
    inner = inner if inner or node.function != "count" else "*"
    ties = f", then {', '.join(map(_node, node.ties))}" if node.ties else ""
    order = f" order by {', '.join(map(_sort, node.order))}{ties}".replace(" order by , then", " order by")
    partition = f"partition by {', '.join(map(_node, node.partition))}" if node.partition else ""
    parts = f"{partition}{order if node.order or node.ties else ''}{_rows(node.rows)}"
    return f"{node.name} = {node.function}({inner}) over ({parts.strip()})"


def _sort(key: Sort | Order) -> str:
    return _node(key.expression) + " desc" * key.descending + " nulls first" * key.nulls_first


def _rows(rows: Rows | None) -> str:
    if rows is None:
        return ""
    ends = ["first" if rows.start is None else f"{rows.start:+d}", "last" if rows.end is None else f"{rows.end:+d}"]
    return f" {'peers' if rows.peers else 'rows'} {ends[0]} to {ends[1]}"


def _parts(node: Union) -> tuple[Relation, ...]:
    return node.parts


def _pairs(pairs: tuple[tuple[Expression, Expression], ...]) -> str:
    return " and ".join(f"{_node(left)} = {_node(right)}" for left, right in pairs)


def _under(node: Relation) -> list[str]:
    return ["  " + line for line in _lines(node)]
