"""Reads a question in any of its forms: SQL text, a fluent question or a query built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, Name, Python, QueryError
from dither.query.fluent import FluentQuestion
from dither.query.nodes import Query
from dither.query.private_forms import with_forms
from dither.query.resolve.relations import Resolved, resolve
from dither.query.resolve.union import resolve_results
from dither.query.show import show_query
from dither.query.sql.gate import parameters, read_expression, written_out
from dither.query.sql.gate import read as read_tree
from dither.query.sql.parameters import Params, read_params
from dither.query.sql.select import parse, parse_union
from dither.query.sql.select import question as build
from dither.query.sql.subqueries import new_context
from dither.query.union import Results


@dataclass(frozen=True)
class WithParams:
    """SQL text with the values of its parameters, by name; `?` and `$1` are named by numbers."""

    text: str
    params: Mapping[str, Any]


Question = str | Query | FluentQuestion | WithParams
_FOR_LISTS = Fix(
    "give {dict} for :age in all questions, or {list}: one entry for each question.",
    dict=Python('params={"age": 18}', shell="--param age=18"),
    list=Python("params=[[18], None]", shell="--param 1=18 for the first ? of each"),
)


def with_params(question: Question, params: Params | None) -> Question:
    """Returns the question with values for its parameters."""
    if params is None:
        return question
    if not isinstance(question, str):
        raise ArgumentError(
            "Only SQL text has parameters.",
            fix=Fix(
                "leave {params} out, and give the values where the condition is: {where}.",
                params=Name("params"),
                where=Python('.where("age >= ?", params=[18])'),
            ),
        )
    return WithParams(question, read_params(params))


def list_with_params(questions: Sequence[Question], params: Any) -> list[Question]:
    """Returns the questions of a list with their values. A dict has the values of all questions, by name: each question takes
    those that it names. A list has one entry for each question: its values, or None."""
    if isinstance(params, Sequence) and not isinstance(params, (str, bytes)):
        each = [one is None or (isinstance(one, (Mapping, Sequence)) and not isinstance(one, (str, bytes))) for one in params]
        if not all(each) or len(each) != len(questions):
            raise ArgumentError("A list of questions takes a list of values for each of them.", fix=_FOR_LISTS)
        return [with_params(question, own) for question, own in zip(questions, params, strict=True)]
    shared = {} if params is None else read_params(params)
    named = [_names(place, question, shared) for place, question in enumerate(questions, start=1)]
    spare = [name for name in shared if not any(name in names for names in named)]
    if spare:
        raise ArgumentError(f"No question has a parameter {spare[0]}.", fix=_FOR_LISTS)
    return [
        WithParams(question, {name: shared[name] for name in names}) if isinstance(question, str) and names else question
        for question, names in zip(questions, named, strict=True)
    ]


def _names(number: int, question: Question, shared: Mapping[str, Any]) -> set[str]:
    """Returns the names of a question's parameters; refuses one without a value."""
    found = parameters(question) if isinstance(question, str) else []
    for place in found:
        if place.name not in shared and isinstance(question, str):
            span = (place.start, place.end + 1)
            what = f"Question {number}: {question[slice(*span)]} has no value."
            raise QueryError(what, text=question, span=span, fix=_FOR_LISTS)
    return {place.name for place in found}


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


def read_by(question: Question, by: str, catalog: Catalog) -> Resolved:
    """The resolved query of a question with one more key, `by`: a column or an expression of its rows."""
    if isinstance(question, FluentQuestion):
        return read(question.group_by(by), catalog)
    if not isinstance(question, (str, WithParams)):
        return read(question, catalog)
    text = text_of(question)
    tree, _ = read_tree(text, question.params if isinstance(question, WithParams) else None)
    key = read_expression(by)
    for node in key.walk():
        node.meta.pop("start", None)  # it is no part of the question's text
    if isinstance(tree, exp.Select):
        keys = tree.args.get("group") or exp.Group(expressions=[])
        keys.append("expressions", key.copy())
        tree.append("expressions", key)
        tree.set("group", keys)
    return resolve(build(tree, new_context(text, catalog)), catalog, text)


def _read_text(text: str, catalog: Catalog, params: Mapping[str, Any] | None) -> Resolved:
    """Reads SQL text. A refusal proposes questions that are answered, unless values of parameters would be part of them."""
    try:
        return resolve(parse(text, catalog, params), catalog, text)
    except QueryError as error:
        raise (error if params else with_forms(error, text, catalog)) from None


def read_union(question: Question, catalog: Catalog) -> tuple[list[Resolved], Results] | None:
    """The resolved questions that a question puts together, and how; None for other questions."""
    params = question.params if isinstance(question, WithParams) else None
    results = parse_union(text_of(question), catalog, params) if isinstance(question, (str, WithParams)) else None
    if results is None:
        return None
    return resolve_results(results, catalog, text_of(question))


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
