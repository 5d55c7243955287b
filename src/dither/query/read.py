"""Reads a question in any of its forms: SQL text, a fluent question or a query built by hand."""

from __future__ import annotations

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, Python
from dither.query.fluent import FluentQuestion
from dither.query.nodes import Query
from dither.query.resolve.relations import Resolved, resolve
from dither.query.show import show_query
from dither.query.sql.select import parse
from dither.query.sql.union import parse_union
from dither.query.union import Together

Question = str | Query | FluentQuestion


def read(question: Question, catalog: Catalog) -> Resolved:
    """The resolved query: names, types, legality, and who the unit is."""
    if isinstance(question, str):
        return resolve(parse(question, catalog), catalog, question)
    if isinstance(question, FluentQuestion):
        return resolve(question.query, catalog, question.text)
    if isinstance(question, Query):
        return resolve(question, catalog)
    raise ArgumentError(
        f"A question is SQL text or a fluent question, and this is a {type(question).__name__}.",
        fix=Fix("write {call}.", call=Python('ask("SELECT COUNT(*) FROM people", epsilon="0.1")')),
    )


def read_union(question: Question, catalog: Catalog) -> tuple[list[Resolved], Together] | None:
    """The resolved parts of a question that puts private results together, and how; None for other questions."""
    results = parse_union(question, catalog) if isinstance(question, str) else None
    if results is None:
        return None
    return [resolve(part, catalog, str(question)) for part in results.parts], results.together


def text_of(question: Question) -> str:
    """The text that the spans of a question's nodes count in; empty for a query built by hand."""
    return question if isinstance(question, str) else question.text if isinstance(question, FluentQuestion) else ""


def show_question(question: Question) -> str:
    """The question as it was asked, for the ledger and for people."""
    return show_query(question) if isinstance(question, Query) else text_of(question)
