"""DuckDB's spelling of casts, text and dates."""

from __future__ import annotations

from dither.engines.sql.basics import Printer, Stages, as_kind, settled, whole
from dither.engines.sql.text import TYPES, Sql, literal, made
from dither.query.functions_casts import DATE_TEXT, REAL_TEXT, WHOLE_TEXT
from dither.query.functions_text import MOST_CHARACTERS

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


# --- casts ------------------------------------------------------------------------------------------------------


def _read(x: Sql, pattern: str, kind: str) -> Sql:
    """Text of a fixed form, read; anything else is NULL. The pattern is ours, so it needs no check."""
    fits = f"regexp_full_match({x.text}, {literal(pattern).text})"
    return made(f"(CASE WHEN {fits} THEN TRY_CAST({x.text} AS {TYPES[kind]}) END)", kind, x)


def _to_int(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    if x.kind == "text":
        return _read(stages.atom(x), WHOLE_TEXT, "int")
    return whole(stages, x, rounded=True) if x.kind == "real" else as_kind(x, "int")


def _to_real(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    return _read(stages.atom(x), REAL_TEXT, "real") if x.kind == "text" else as_kind(x, "real")


def _to_text(stages: Stages, arguments: list[Sql]) -> Sql:
    return as_kind(arguments[0], "text")


def _to_date(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    if x.kind != "text":
        return as_kind(x, "date")
    held = stages.atom(x)
    read = _read(held, DATE_TEXT, "date")
    return made(f"(CASE WHEN {held.text} >= '0001' THEN {read.text} END)", "date", read)  # the calendar has no year 0


def _to_bool(stages: Stages, arguments: list[Sql]) -> Sql:
    x = settled(stages, arguments[0])
    if x.kind == "text":
        return made(f"(CASE {_letters(x, False)} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)", "bool", x)
    return x if x.kind == "bool" else made(f"({x.text} <> 0)", "bool", x)


# --- text and dates ---------------------------------------------------------------------------------------------


def _letters(x: Sql, upper: bool) -> str:
    before, after = (_UPPER.lower(), _UPPER) if upper else (_UPPER, _UPPER.lower())
    return f"translate({x.text}, '{before}', '{after}')"


def _text(template: str, kind: str) -> Printer:
    """A template over the printed arguments {0}, {1}, ..."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        return made(template.format(*(x.text for x in arguments)), kind, *arguments)

    return printer


def _concat(stages: Stages, arguments: list[Sql]) -> Sql:
    """Pair by pair: the lengths are added up before anything is put together, so no long text ever exists."""
    first, *others = (stages.atom(as_kind(x, "text")) for x in arguments)
    held = made(f"(CASE WHEN length({first.text}) <= {MOST_CHARACTERS} THEN {first.text} END)", "text", first)
    for place, other in enumerate(others):
        left = stages.atom(held) if place else first
        fits = f"length({left.text}) + length({other.text}) <= {MOST_CHARACTERS}"
        held = made(f"(CASE WHEN {fits} THEN {left.text} || {other.text} END)", "text", left, other)
    return held


def _date_trunc(stages: Stages, arguments: list[Sql]) -> Sql:
    unit, x = arguments
    return made(f"CAST(date_trunc({unit.text}, {x.text}) AS DATE)", "date", x)


def _days_between(stages: Stages, arguments: list[Sql]) -> Sql:
    first, second = (as_kind(x, "date") for x in arguments)
    return made(f"({second.text} - {first.text})", "int", first, second)


VALUES: dict[str, Printer] = {
    "to_int": _to_int,
    "to_real": _to_real,
    "to_text": _to_text,
    "to_date": _to_date,
    "to_bool": _to_bool,
    "lower": lambda stages, a: made(_letters(a[0], False), "text", a[0]),
    "upper": lambda stages, a: made(_letters(a[0], True), "text", a[0]),
    "trim": _text("trim({0}, ' ')", "text"),
    "length": _text("length({0})", "int"),
    "substr": _text("substring({0}, {1}, {2})", "text"),
    "concat": _concat,
    "like": _text("({0} LIKE {1})", "bool"),
    "starts_with": _text("starts_with({0}, {1})", "bool"),
    "contains": _text("contains({0}, {1})", "bool"),
    "year": _text("year({0})", "int"),
    "month": _text("month({0})", "int"),
    "day": _text("day({0})", "int"),
    "quarter": _text("quarter({0})", "int"),
    "weekday": _text("isodow({0})", "int"),
    "hour": _text("hour({0})", "int"),
    "date_trunc": _date_trunc,
    "days_between": _days_between,
}
