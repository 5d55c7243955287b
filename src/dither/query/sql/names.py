"""Finds the column or table that a name means: an exact match first, then ignoring case.

A quoted name must match exactly. Unicode forms are not normalised: names that look alike but are encoded differently are
different names. A name that fits two columns is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from dither.catalog.values import Catalog, Table
from dither.errors import QueryError
from dither.query.nodes import Column, Expression, Relation
from dither.query.sql.gate import span_of
from dither.text import did_you_mean, folded, sql_name

# The aggregate that tells whether some row of the subquery is above (or below) the outer value.
_EXTREMES: dict[type[exp.Expr], str] = {exp.GT: "MAX", exp.GTE: "MAX", exp.LT: "MIN", exp.LTE: "MIN"}
_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_LONGEST = 60


def outer_column_fix(node: exp.Column) -> str:
    """Returns the fix for a subquery that uses a column of the outer row in an unsupported way."""
    holder = node.find_ancestor(exp.EQ, exp.NEQ, *_EXTREMES, exp.Between, exp.And, exp.Or, exp.Where, exp.Select)
    if isinstance(holder, exp.EQ):
        return "make the equality a condition of its own in the subquery's WHERE, joined to others by AND."
    compared = _compared(holder, node) if holder is not None and type(holder) in _EXTREMES and _decides(holder) else ""
    if compared:
        return f"compare outside, instead of EXISTS: {compared}."
    return "use it outside the subquery, or JOIN the two tables on the unit and use it there."


def _decides(holder: exp.Expr) -> bool:
    """Returns whether a condition is one of the AND-ed conditions of an EXISTS that is not negated."""
    above = holder.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    select = above.parent if isinstance(above, exp.Where) else None
    exists = select.parent if isinstance(select, exp.Select) else None
    return isinstance(exists, exp.Exists) and exists.find_ancestor(exp.Not) is None


def _compared(holder: exp.Expr, node: exp.Column) -> str:
    if holder.expression is node:
        mine, way = holder.this, type(holder)
    elif holder.this is node:
        mine, way = holder.expression, _SWAPPED[type(holder)]
    else:
        return ""
    text = f"(SELECT {_EXTREMES[way]}({mine.sql()}) FROM ... WHERE ...) {_SIGNS[way]} {node.sql()}"
    return text if len(mine.sql()) + len(node.sql()) <= _LONGEST else ""


T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A column that a question can name, as `column` (unless hidden) or `alias.column`. `name` is its name in the relation."""

    alias: str
    column: str
    name: str
    hidden: bool = False  # the right-hand column of a USING pair


@dataclass(frozen=True)
class Scope:
    """The names that are visible at one place of the question."""

    text: str
    fields: tuple[Field, ...] = ()
    place: str = "here"  # for refusals: "an aggregate cannot stand in WHERE"
    outer: tuple[Field, ...] = ()  # columns of the outer row; subqueries.py says where they may be used
    values: Mapping[int, Expression] = field(default_factory=dict, compare=False)  # values of subqueries, by id
    alone: frozenset[int] = field(default=frozenset(), compare=False)  # subqueries that do not refer to the row

    def at(self, place: str) -> Scope:
        return replace(self, place=place)


@dataclass(frozen=True)
class Source:
    """A relation with its columns, in order."""

    relation: Relation
    fields: tuple[Field, ...]


def refuse(scope: Scope, node: exp.Expr | None, what: str, fix: str = "", mixes: str = "") -> QueryError:
    """Returns the refusal of a part of the question, with a caret at its place. `mixes`: see QueryError."""
    return QueryError(what, text=scope.text, span=None if node is None else place(scope.text, node), fix=fix, mixes=mixes)


def place(text: str, node: exp.Expr) -> tuple[int, int] | None:
    """Returns the span of a node; that of a call includes its closing parenthesis."""
    span = span_of(node)
    if span is None or not isinstance(node, (exp.Anonymous, exp.Distinct)):
        return span
    tail = text[span[1] :]
    blank = len(tail) - len(tail.lstrip())
    closes = tail.lstrip()[:1] == ")" and isinstance(node, exp.Anonymous)
    empty = tail.startswith("()")
    return (span[0], span[1] + 2) if empty else (span[0], span[1] + blank + 1) if closes else span


def name_of(scope: Scope, node: exp.Expr | None) -> tuple[str, bool]:
    """Returns an identifier's name and whether it was quoted; refuses a string in its place ('file.csv')."""
    if not isinstance(node, exp.Identifier) or not isinstance(node.this, str) or not node.this:
        raise refuse(scope, node, "A plain name is expected here.", "write a name of the catalog.")
    span = span_of(node)
    if span is not None and scope.text[span[0] : span[0] + 1] == "'":
        raise refuse(
            scope,
            node,
            "A text in single quotes is not a name, and files are not read.",
            "name a table or column.",
        )
    if span is not None and scope.text[span[0] : span[0] + 1] in ("?", "$", ":"):
        raise refuse(scope, node, "A parameter stands for a value, not for a name.", "write the name into the question.")
    quoted = bool(node.args.get("quoted"))
    if node.this.startswith("$") and not quoted:
        raise refuse(scope, node, "$ cannot begin a name.", "write $1 or $name in a SELECT, and give its value in params.")
    if node.this.startswith("#"):
        raise refuse(scope, node, "# cannot begin a name.", "choose another name.")
    return node.this, quoted


SCHEMAS = frozenset(["main", "public", "dbo"])  # where databases put tables by default; the catalog's tables have no schema


def in_schema(node: exp.Table | exp.Column, scope: Scope) -> bool:
    """Returns whether a name has a schema (main.people, main.people.age); refuses all but the usual ones."""
    schema = node.args.get("db")
    if schema is not None and node.args.get("catalog") is None and folded(name_of(scope, schema)[0]) in SCHEMAS:
        return True
    if schema is None and node.args.get("catalog") is None:
        return False
    name = ".".join(name_of(scope, part)[0] for part in (node.args.get("table"), node.this) if part is not None)
    raise refuse(scope, node, "The tables of a catalog have no database and no schema.", f"write {name}.")


def matching(name: str, quoted: bool, choices: Iterable[T], spell: Callable[[T], str]) -> list[T]:
    """Returns the choices with exactly this name; if there are none and it is not quoted, those that differ only in case."""
    every = list(choices)
    exact = [choice for choice in every if spell(choice) == name]
    return exact if exact or quoted else [choice for choice in every if folded(spell(choice)) == folded(name)]


def similar(name: str, choices: Iterable[str], nothing: str = "declare its columns in the catalog.") -> str:
    """Returns "did you mean age?", or a list of the names, or `nothing` if there are none."""
    every = sorted(set(choices))
    near = did_you_mean(name, every, show=sql_name).rstrip()
    return near or (f"use one of {', '.join(map(sql_name, every[:12]))}." if every else nothing)


def candidates(node: exp.Column, scope: Scope) -> list[Field]:
    """Returns the fields that a column's name may mean here; the caller handles none and several."""
    in_schema(node, scope)
    fields: Iterable[Field] = scope.fields
    if node.args.get("table") is not None:
        alias, quoted = name_of(scope, node.args["table"])
        aliases = {field.alias for field in matching(alias, quoted, fields, lambda field: field.alias)}
        fields = [field for field in fields if field.alias in aliases]
    else:
        fields = [field for field in fields if not field.hidden]
    name, quoted = name_of(scope, node.this)
    return matching(name, quoted, fields, lambda field: field.column)


def column(node: exp.Column, scope: Scope) -> Column:
    """Returns the column that a name means; refuses unknown and ambiguous names."""
    if isinstance(node.this, exp.Star):
        raise refuse(scope, node, "* cannot stand here.", "name the columns.")
    fields = candidates(node, scope)
    name = name_of(scope, node.this)[0]
    if len(fields) == 1:
        return Column(fields[0].name, span=place(scope.text, node))
    if fields:
        options = " or ".join(f"{field.alias}.{field.column}" for field in fields[:4])
        raise refuse(scope, node, f"{name} could mean more than one column.", f"write {options}.")
    if candidates(node, replace(scope, fields=scope.outer)):
        raise refuse(
            scope,
            node,
            f"{name} belongs to the outer question, and a subquery may only equate it with a column of its own.",
            outer_column_fix(node),
        )
    alias = node.args.get("table")
    known = sorted({field.alias for field in (*scope.fields, *scope.outer)})
    if alias is not None and not matching(*name_of(scope, alias), known, str):
        raise refuse(scope, alias, f"There is no table {name_of(scope, alias)[0]} {scope.place}.", similar(alias.this, known))
    raise refuse(
        scope,
        node,
        f"There is no usable column {name} {scope.place}; columns that the catalog does not declare cannot be used.",
        _column_fix(node, scope),
    )


def _column_fix(node: exp.Column, scope: Scope) -> str:
    """Returns the fix for an unknown column: a similar name, or single quotes for a text in double quotes."""
    name, quoted = name_of(scope, node.this)
    near = similar(name, (field.column for field in scope.fields))
    if not quoted or node.args.get("table") is not None:
        return near
    escaped = name.replace("'", "''")
    return f"if a text is meant, write it in single quotes: '{escaped[:40]}'; if a column, {near}"


def table(node: exp.Expr, scope: Scope, catalog: Catalog) -> tuple[str, Table]:
    """Returns the catalog's table of this name; refuses unknown and ambiguous names."""
    name, quoted = name_of(scope, node)
    names = matching(name, quoted, catalog.tables, lambda spelling: spelling)
    if len(names) == 1:
        return names[0], catalog.tables[names[0]]
    if names:
        raise refuse(scope, node, f"{name} could mean {' or '.join(names)}.", "write it in double quotes exactly as declared.")
    raise refuse(
        scope, node, f"There is no table {name} in the catalog.", similar(name, catalog.tables, "declare it in the catalog.")
    )


def columns_of(declared: Table) -> tuple[str, ...]:
    """Returns the columns of a table that a question may name: the declared ones, the unit and the key."""
    extra = [declared.unit.column] if declared.unit else []
    extra += [declared.key] if declared.key else []
    return tuple(dict.fromkeys([*declared.columns, *extra]))


def _set_arguments(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value is not None and value is not False and value != []]


def only(scope: Scope, node: exp.Expr, allowed: str, what: str) -> None:
    """Refuses a node that has other arguments than those named in `allowed` (separated by spaces)."""
    for key in _set_arguments(node):
        if key not in allowed.split():
            clause = key.strip("_").upper().replace("_", " ")
            inside = node.args[key]
            marked = inside if isinstance(inside, exp.Expr) and span_of(inside) else node
            text = f" {' '.join(scope.text.upper().split())} "
            clause = clause if f" {clause} " in text else clause.removesuffix("S")
            written = f" {clause} " in text
            said = f"{what} with {clause} is not part of the SQL that dither answers."
            raise refuse(scope, marked, said if written else f"{what} cannot be written like this.", "leave it out.")
