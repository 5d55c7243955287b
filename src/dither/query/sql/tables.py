"""Reads tables, CTEs and subqueries in FROM, with their aliases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.query.nodes import Column, Compute, Expression, Named, Scan, fresh
from dither.query.sql.expressions import ADVICE
from dither.query.sql.names import Field, Scope, Source, columns_of, in_schema, matching, name_of, only, place, refuse, table
from dither.text import folded

Pair = tuple[Expression, Expression]
MOST_TABLES = 64  # CTEs are expanded wherever they are named, so a short text could name very many tables
MOST_READ = 2500  # each CTE is also read where it is defined: twice as often for each WITH inside a WITH


@dataclass(frozen=True)
class Context:
    """The context of a part of the question: the text, the catalog, the visible CTEs."""

    text: str
    catalog: Catalog
    subquery: Callable[[exp.Expr, Context, str], Source]  # reads a SELECT in FROM, WHERE or WITH
    inner: Callable[[exp.Select, Sequence[exp.Expr], Scope, Context], Inner]  # reads one that may name the outer row
    ctes: Mapping[str, tuple[exp.Expr, Context]] = field(default_factory=dict)
    scans: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)  # like `scans`, but never reset
    noisy: tuple[str, ...] = ()  # CTEs that cannot be read here, because their rows are noisy

    @property
    def scope(self) -> Scope:
        return Scope(self.text)

    def with_cte(self, cte: exp.Expr, name: str) -> Context:
        """Adds a CTE; reads it once, to refuse its mistakes."""
        self.subquery(cte.this, replace(self, scans=[]), name)
        return replace(self, ctes={**self.ctes, name: (cte, self)})

    def alias(self) -> str:
        """Returns the alias of the last subquery: each names a table, so no two get the same number."""
        return fresh(f"subquery {len(self.scans)}")


@dataclass(frozen=True)
class Inner:
    """The rows of a subquery, the scope of its SELECT, and the (outer, inner) expressions that must be equal."""

    source: Source
    scope: Scope
    pairs: tuple[Pair, ...]


def with_ctes(node: exp.Expr, context: Context) -> Context:
    """Adds the WITH clause of a node to the context; reads each CTE once, to refuse its mistakes."""
    clause = node.args.get("with_")
    if clause is None:
        return context
    only(context.scope, clause, "expressions", "WITH")
    for cte in clause.expressions:
        context = context.with_cte(cte, cte_name(cte, context))
    return context


def cte_name(cte: exp.Expr, context: Context) -> str:
    """Returns the name of a CTE; refuses one that is taken."""
    only(context.scope, cte, "this alias", "WITH")
    only(context.scope, cte.args["alias"], "this columns", "WITH")
    name = name_of(context.scope, cte.args["alias"].this)[0]
    if any(folded(old) == folded(name) for old in [*context.ctes, *context.noisy, *context.catalog.tables]):
        raise refuse(context.scope, cte.args["alias"], f"{name} already names a table.", "choose another name for the CTE.")
    return name


def check_below(node: exp.Select, context: Context) -> None:
    """Refuses clauses of a SELECT below the private aggregate that compare rows of different people."""
    for clause, word in (("limit", "LIMIT"), ("offset", "OFFSET"), ("order", "ORDER BY")):
        if node.args.get(clause) is not None:
            raise refuse(
                context.scope,
                node.args[clause],
                f"{word} inside a subquery picks rows by comparing people, so one person could change which others count.",
                f"leave {word} out of the subquery; it may stand at the end of the whole question.",
            )
    only(context.scope, node, "expressions from_ joins where group having qualify windows with_ distinct", "A subquery")


def named_table(node: exp.Expr, context: Context) -> Source:
    """Reads a table of the catalog, a CTE or a subquery, with its alias."""
    scope = context.scope
    if node.args.get("pivots"):
        what = "PIVOT in FROM turns a noisy result, and this is people's rows."
        raise refuse(
            scope, node.args["pivots"][0], what, "begin with PIVOT: PIVOT people ON sex USING COUNT(*) GROUP BY region."
        )
    if isinstance(node, exp.Subquery):
        only(scope, node, "this alias with_", "A subquery in FROM")
        alias = _alias(node, context) or f"subquery_{len(context.scans) + 1}"
        return _rename_columns(context.subquery(node.this, with_ctes(node, context), alias), node, context)
    if not isinstance(node, exp.Table):
        raise refuse(scope, node, "Only tables of the catalog and subqueries can stand in FROM.", "name a table.")
    schema = in_schema(node, scope)
    only(scope, node, "this alias db", "A table")
    if isinstance(node.this, exp.Anonymous):
        what, fix = ADVICE.get(str(node.this.this).upper(), ("Functions cannot stand in FROM.", "name a table of the catalog."))
        raise refuse(scope, node.this, what.format(name=str(node.this.this).upper()), fix)
    name, quoted = name_of(scope, node.this)
    context.scans.append(name)
    context.read.append(name)
    if len(context.scans) > MOST_TABLES or len(context.read) > MOST_READ:
        raise refuse(scope, node, f"The question names more than {MOST_TABLES} tables.", "ask more simply.")
    known = [] if schema else matching(name, quoted, context.ctes, lambda each: each)
    if known:
        cte, inner = context.ctes[known[0]]
        inner = replace(inner, scans=context.scans)  # its tables count where it is named, not where it is defined
        return _rename_columns(context.subquery(cte.this, inner, _alias(node, context) or known[0]), cte, context)
    if matching(name, quoted, context.noisy, str):
        what = f"{name} is a noisy result, and rows of people cannot be joined with it or compared with it."
        raise refuse(scope, node, what, f"ask SELECT ... FROM {name} alone; or group {name} by the unit column.")
    full_name, declared = table(node.this, scope, context.catalog)
    alias = _alias(node, context) or full_name
    if node.args.get("alias") is not None and node.args["alias"].args.get("columns"):
        raise refuse(scope, node, "A table's columns cannot be renamed here.", "rename them with AS in SELECT.")
    fields = tuple(Field(alias, each, f"{alias}.{each}") for each in columns_of(declared))
    return Source(Scan(full_name, alias, span=place(context.text, node)), fields)


def _alias(node: exp.Expr, context: Context) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    only(context.scope, alias, "this columns", "An alias")
    name = name_of(context.scope, alias.this)[0]
    if "." in name:
        raise refuse(context.scope, alias, "An alias has no dot in it.", "choose another name.")
    return name


def _rename_columns(source: Source, node: exp.Expr, context: Context) -> Source:
    """Renames the columns as in `alias (a, b, ...)`, if names are given."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    if not names:
        return source
    if len(names) != len(source.fields):
        raise refuse(context.scope, alias, f"{len(names)} names for {len(source.fields)} columns.", "name each column.")
    new_names = [name_of(context.scope, each)[0] for each in names]
    if len({folded(each) for each in new_names}) < len(new_names):
        raise refuse(context.scope, alias, "Two of these names are the same.", "choose different names.")
    fields = tuple(Field(old.alias, new, f"{old.alias}.{new}") for old, new in zip(source.fields, new_names, strict=True))
    renaming = zip(fields, source.fields, strict=True)
    return Source(Compute(source.relation, tuple(Named(new.name, Column(old.name)) for new, old in renaming)), fields)
