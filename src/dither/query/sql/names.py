"""What to write instead, where a subquery names a column of the outer row in a way that is not supported.

Which column a written name means: exactly as written first, then without regard to case, never by guessing.

A quoted name must match exactly. Unicode forms are not normalised: names that look alike and are spelled differently
are different names. A name that fits two columns is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from dither.catalog.values import Catalog, Table
from dither.errors import QueryError
from dither.query.nodes import Column, Expression, Relation
from dither.query.sql.gate import written
from dither.text import did_you_mean, folded

# What it takes that some row of the subquery is above (or below) the outer value; seen from the subquery's side.
_SOME: dict[type[exp.Expr], str] = {exp.GT: "MAX", exp.GTE: "MAX", exp.LT: "MIN", exp.LTE: "MIN"}
_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_LONGEST = 60


def instead(node: exp.Column) -> str:
    """A fix for this column of the outer row."""
    holder = node.find_ancestor(exp.EQ, exp.NEQ, *_SOME, exp.Between, exp.And, exp.Or, exp.Where, exp.Select)
    if isinstance(holder, exp.EQ):
        return "make the equality a condition of its own in the subquery's WHERE, joined to others by AND."
    compared = _compared(holder, node) if holder is not None and type(holder) in _SOME and _decides(holder) else ""
    if compared:
        return f"compare outside, instead of EXISTS: {compared}."
    return "use it outside the subquery, or JOIN the two tables on the unit and use it there."


def _decides(holder: exp.Expr) -> bool:
    """Whether the condition stands beside AND in the WHERE of an EXISTS that is not negated."""
    above = holder.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    select = above.parent if isinstance(above, exp.Where) else None
    found = select.parent if isinstance(select, exp.Select) else None
    return isinstance(found, exp.Exists) and found.find_ancestor(exp.Not) is None


def _compared(holder: exp.Expr, node: exp.Column) -> str:
    if holder.expression is node:
        mine, way = holder.this, type(holder)
    elif holder.this is node:
        mine, way = holder.expression, _TURNED[type(holder)]
    else:
        return ""
    text = f"(SELECT {_SOME[way]}({mine.sql()}) FROM ... WHERE ...) {_SIGNS[way]} {node.sql()}"
    return text if len(mine.sql()) + len(node.sql()) <= _LONGEST else ""


T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A column that can be named: by itself (unless hidden) or as alias.column. `name` is its name in the relation."""

    alias: str
    column: str
    name: str
    hidden: bool = False  # the right-hand twin of a USING column


@dataclass(frozen=True)
class Scope:
    """What names mean at one place of the question."""

    text: str
    fields: tuple[Field, ...] = ()
    place: str = "here"  # for "an aggregate cannot stand in WHERE"
    outer: tuple[Field, ...] = ()  # of the row that a subquery is read for: named only where sql_conditions.py says so
    values: Mapping[int, Expression] = field(default_factory=dict, compare=False)  # what subqueries stand for, by id
    alone: frozenset[int] = field(default=frozenset(), compare=False)  # those of them that have nothing to do with the row

    def at(self, place: str) -> Scope:
        return replace(self, place=place)


@dataclass(frozen=True)
class Source:
    """A relation with the columns it offers, in order."""

    relation: Relation
    fields: tuple[Field, ...]


def refuse(scope: Scope, node: exp.Expr | None, what: str, fix: str = "") -> QueryError:
    """The refusal of a part of the question, with a caret where it stands."""
    return QueryError(what, text=scope.text, span=None if node is None else place(scope.text, node), fix=fix)


def place(text: str, node: exp.Expr) -> tuple[int, int] | None:
    """Where the node stands; a call reaches to its closing parenthesis if that follows at once."""
    span = written(node)
    if span is None or not isinstance(node, (exp.Anonymous, exp.Distinct)):
        return span
    tail = text[span[1] :]
    blank = len(tail) - len(tail.lstrip())
    closes = tail.lstrip()[:1] == ")" and isinstance(node, exp.Anonymous)
    empty = tail.startswith("()")
    return (span[0], span[1] + 2) if empty else (span[0], span[1] + blank + 1) if closes else span


def spelled(scope: Scope, node: exp.Expr | None) -> tuple[str, bool]:
    """An identifier's letters and whether it was quoted; a string in its place ('file.csv') is refused."""
    if not isinstance(node, exp.Identifier) or not isinstance(node.this, str) or not node.this:
        raise refuse(scope, node, "A plain name is expected here.", "write a name of the catalog.")
    span = written(node)
    if span is not None and scope.text[span[0] : span[0] + 1] == "'":
        raise refuse(
            scope,
            node,
            "A text in single quotes is not a name, and files are not read.",
            "name a table or column.",
        )
    quoted = bool(node.args.get("quoted"))
    if node.this.startswith("$") and not quoted:
        raise refuse(scope, node, "Parameters are not supported.", "write the value itself into the question.")
    if node.this.startswith("#"):
        raise refuse(scope, node, "# cannot begin a name.", "choose another name.")
    return node.this, quoted


def matching(name: str, quoted: bool, choices: Iterable[T], spell: Callable[[T], str]) -> list[T]:
    """The choices spelled exactly so; failing that, and unless quoted, those that differ only in case."""
    every = list(choices)
    exact = [choice for choice in every if spell(choice) == name]
    return exact if exact or quoted else [choice for choice in every if folded(spell(choice)) == folded(name)]


def similar(name: str, choices: Iterable[str], nothing: str = "declare its columns in the catalog.") -> str:
    """ "did you mean age?" or the names there are; `nothing` if there are none."""
    every = sorted(set(choices))
    near = did_you_mean(name, every).rstrip()
    return near or (f"use one of {', '.join(every[:12])}." if every else nothing)


def candidates(node: exp.Column, scope: Scope) -> list[Field]:
    """The fields a column's name may mean here; none and several are for the caller to judge."""
    if set(_set_arguments(node)) - {"this", "table"}:
        raise refuse(scope, node, "A column is written as column or table.column.", "leave the other names out.")
    fields: Iterable[Field] = scope.fields
    if node.args.get("table") is not None:
        alias, quoted = spelled(scope, node.args["table"])
        held = {field.alias for field in matching(alias, quoted, fields, lambda field: field.alias)}
        fields = [field for field in fields if field.alias in held]
    else:
        fields = [field for field in fields if not field.hidden]
    name, quoted = spelled(scope, node.this)
    return matching(name, quoted, fields, lambda field: field.column)


def column(node: exp.Column, scope: Scope) -> Column:
    """The column a name means, or a refusal that says what there is."""
    if isinstance(node.this, exp.Star):
        raise refuse(scope, node, "* cannot stand here.", "name the columns.")
    found = candidates(node, scope)
    name = spelled(scope, node.this)[0]
    if len(found) == 1:
        return Column(found[0].name, span=place(scope.text, node))
    if found:
        options = " or ".join(f"{field.alias}.{field.column}" for field in found[:4])
        raise refuse(scope, node, f"{name} could mean more than one column.", f"write {options}.")
    if candidates(node, replace(scope, fields=scope.outer)):
        raise refuse(
            scope,
            node,
            f"{name} belongs to the outer question, and a subquery may only equate it with a column of its own.",
            instead(node),
        )
    alias = node.args.get("table")
    known = sorted({field.alias for field in (*scope.fields, *scope.outer)})
    if alias is not None and not matching(*spelled(scope, alias), known, str):
        raise refuse(scope, alias, f"There is no table {spelled(scope, alias)[0]} {scope.place}.", similar(alias.this, known))
    raise refuse(
        scope,
        node,
        f"There is no usable column {name} {scope.place}; columns that the catalog does not declare cannot be used.",
        _meant(node, scope),
    )


def _meant(node: exp.Column, scope: Scope) -> str:
    """What to write for a column that is not there: a name that is near, or the text that double quotes made a name of."""
    name, quoted = spelled(scope, node.this)
    near = similar(name, (field.column for field in scope.fields))
    if not quoted or node.args.get("table") is not None:
        return near
    escaped = name.replace("'", "''")
    return f"if a text is meant, write it in single quotes: '{escaped[:40]}'; if a column, {near}"


def table(node: exp.Expr, scope: Scope, catalog: Catalog) -> tuple[str, Table]:
    """The catalog's table of this name."""
    name, quoted = spelled(scope, node)
    found = matching(name, quoted, catalog.tables, lambda spelling: spelling)
    if len(found) == 1:
        return found[0], catalog.tables[found[0]]
    if found:
        raise refuse(scope, node, f"{name} could mean {' or '.join(found)}.", "write it in double quotes exactly as declared.")
    raise refuse(
        scope, node, f"There is no table {name} in the catalog.", similar(name, catalog.tables, "declare it in the catalog.")
    )


def columns_of(declared: Table) -> tuple[str, ...]:
    """The columns of a table that a question may name: those declared, the unit's and the key."""
    extra = [declared.unit.column] if declared.unit else []
    extra += [declared.key] if declared.key else []
    return tuple(dict.fromkeys([*declared.columns, *extra]))


def _set_arguments(node: exp.Expr) -> list[str]:
    return [key for key, value in node.args.items() if value is not None and value is not False and value != []]


def only(scope: Scope, node: exp.Expr, allowed: str, what: str) -> None:
    """Refuse the node if it carries anything but the arguments named in `allowed` (separated by spaces)."""
    for key in _set_arguments(node):
        if key not in allowed.split():
            clause = key.strip("_").upper().replace("_", " ")
            inside = node.args[key]
            marked = inside if isinstance(inside, exp.Expr) and written(inside) else node
            raise refuse(scope, marked, f"{what} with {clause} is not part of the SQL that dither answers.", "leave it out.")
