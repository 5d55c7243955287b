"""Reads a question in any of its forms: SQL text, a fluent question or a query built by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, Name, Python, QueryError
from dither.query.fluent import FluentQuestion
from dither.query.nodes import Query
from dither.query.private_forms import with_forms
from dither.query.resolve.relations import Resolved, resolve
from dither.query.show import show_query
from dither.query.sql.gate import written_out
from dither.query.sql.parameters import Params, read_params
from dither.query.sql.select import parse
from dither.query.sql.union import parse_union
from dither.query.union import Together


@dataclass(frozen=True)
class WithParams:
    """SQL text with the values of its parameters, by name; `?` and `$1` are named by numbers."""

    text: str
    params: Mapping[str, Any]


Question = str | Query | FluentQuestion | WithParams


def with_params(question: Question, params: Params | None) -> Question:
    """Returns the question with values for its parameters."""
    if params is None:
        return question
    if not isinstance(question, str):
        raise ArgumentError(
            "Only SQL text has parameters.",
            fix=Fix("leave {params} out, and write the values into the question.", params=Name("params")),
        )
    return WithParams(question, read_params(params))


def read(question: Question, catalog: Catalog) -> Resolved:
    """The resolved query: names, types, legality, and who the unit is."""
    if isinstance(question, str):
        return _read_text(question, catalog, None)
    if isinstance(question, WithParams):
        return _read_text(question.text, catalog, question.params)
    if isinstance(question, FluentQuestion):
        return resolve(question.query, catalog, question.text)
    if isinstance(question, Query):
        return resolve(question, catalog)
    raise ArgumentError(
        f"A question is SQL text or a fluent question, and this is a {type(question).__name__}.",
        fix=Fix("write {call}.", call=Python('ask("SELECT COUNT(*) FROM people", epsilon="0.1")')),
    )


def _read_text(text: str, catalog: Catalog, params: Mapping[str, Any] | None) -> Resolved:
    """Reads SQL text. A refusal proposes questions that are answered, unless values of parameters would be part of them."""
    try:
        return resolve(parse(text, catalog, params), catalog, text)
    except QueryError as error:
        raise (error if params else with_forms(error, text, catalog)) from None


def read_union(question: Question, catalog: Catalog) -> tuple[list[Resolved], Together] | None:
    """The resolved parts of a question that puts private results together, and how; None for other questions."""
    params = question.params if isinstance(question, WithParams) else None
    results = parse_union(text_of(question), catalog, params) if isinstance(question, (str, WithParams)) else None
    if results is None:
        return None
    return [resolve(part, catalog, text_of(question)) for part in results.parts], results.together


def text_of(question: Question) -> str:
    """The text that the spans of a question's nodes count in; empty for a query built by hand."""
    if isinstance(question, str):
        return question
    return question.text if isinstance(question, (WithParams, FluentQuestion)) else ""


def show_question(question: Question) -> str:
    """The question as it was asked, with the values of its parameters written out, for the ledger and for people."""
    if isinstance(question, WithParams):
        return written_out(question.text, question.params)
    return show_query(question) if isinstance(question, Query) else text_of(question)
