"""What may be asked: SQL text, a fluent question or a query built by hand; all become the same resolved query."""

from __future__ import annotations

from dither.errors import ArgumentError, Fix, Python
from dither.query.catalog import Catalog
from dither.query.fluent import Asking
from dither.query.nodes import Query
from dither.query.resolve import Resolved, resolve
from dither.query.show import show_query
from dither.query.sql import parse

Question = str | Query | Asking


def resolved(question: Question, catalog: Catalog) -> Resolved:
    """From text to nodes; names, types, legality, and who the unit is."""
    if isinstance(question, str):
        return resolve(parse(question, catalog), catalog, question)
    if isinstance(question, Asking):
        return resolve(question.query, catalog, question.text)
    if isinstance(question, Query):
        return resolve(question, catalog)
    raise ArgumentError(
        f"A question is SQL text or a fluent question, and this is a {type(question).__name__}.",
        fix=Fix("write {call}.", call=Python('ask("SELECT COUNT(*) FROM people", epsilon="0.1")')),
    )


def text(question: Question) -> str:
    """What a place in the question counts in."""
    return question if isinstance(question, str) else question.text if isinstance(question, Asking) else ""


def told(question: Question) -> str:
    """What was asked, as it was asked."""
    return show_query(question) if isinstance(question, Query) else text(question)
