"""Questions, terms and values as JSON, and keys of public tables back from it. Numbers travel as text, exactly."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dither.client.planner import Questions
from dither.errors import ArgumentError, Fix, Python
from dither.query.fluent import FluentQuestion
from dither.query.read import Question, text_of


def sql(question: Question) -> str:
    """Returns the SQL text of a question. One built in Python has it, too."""
    if isinstance(question, str):
        return question
    if isinstance(question, FluentQuestion):
        return str(question)
    raise ArgumentError("A server takes SQL text, or a question of table().", fix="write the question in SQL.")


def text_of_question(question: Question | Questions) -> str:
    return text_of(question) if isinstance(question, str) else ""


def number(value: Any) -> str | int:
    """Returns a number as text: a float means the decimal it prints as."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction, Decimal)):
        raise ArgumentError(f"A number is needed, and this is a {type(value).__name__}.", fix='write "0.1".')
    return value if isinstance(value, int) else str(value)


def params_of(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {str(name): _param(value) for name, value in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [params_of(each) if isinstance(each, (list, tuple, dict)) else _param(each) for each in given]
    raise ArgumentError("params has the values of a question's parameters.", fix=Fix("write {it}.", it=Python("params=[18]")))


def _param(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ArgumentError(f"A parameter cannot be a {type(value).__name__}.", fix="pass a number, a text or a date.")


def new_key() -> str:
    return uuid.uuid4().hex


def key_of(value: Any, kind: str | None) -> Any:
    if isinstance(value, str) and kind == "date":
        return datetime.date.fromisoformat(value)
    return datetime.datetime.fromisoformat(value) if isinstance(value, str) and kind == "timestamp" else value
