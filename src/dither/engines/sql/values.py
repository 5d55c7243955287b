"""Casts, and the functions of text and dates: those that no two engines spell alike are templates of the dialect."""

from __future__ import annotations

from dither.engines.sql.basics import Printer, Stages, settled, whole
from dither.engines.sql.text import Sql, made
from dither.query.functions_casts import DATE_TEXT, REAL_TEXT, WHOLE_TEXT
from dither.query.functions_text import MOST_CHARACTERS

# --- casts ------------------------------------------------------------------------------------------------------


def _read(stages: Stages, x: Sql, pattern: str, kind: str) -> Sql:
    """Text of a fixed form, read; anything else is NULL. The pattern is ours, so it needs no check."""
    fits, read = stages.dialect.fits(x.text, pattern), stages.dialect.read(x.text, kind)
    return made(f"(CASE WHEN {fits} THEN {read} END)", kind, x)


def _to_int(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    if x.kind == "text":
        return _read(stages, stages.atom(x), WHOLE_TEXT, "int")
    return whole(stages, x, rounded=True) if x.kind == "real" else stages.dialect.as_kind(x, "int")


def _to_real(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    if x.kind == "text":
        return _read(stages, stages.atom(x), REAL_TEXT, "real")
    return stages.dialect.as_kind(x, "real")


def _to_text(stages: Stages, arguments: list[Sql]) -> Sql:
    return stages.dialect.as_kind(arguments[0], "text")


def _to_date(stages: Stages, arguments: list[Sql]) -> Sql:
    x = arguments[0]
    if x.kind != "text":
        return stages.dialect.as_kind(x, "date")
    held = stages.atom(x)
    read, first = _read(stages, held, DATE_TEXT, "date"), stages.dialect.string("0001")  # the calendar has no year 0
    return made(f"(CASE WHEN {held.text} >= {first} THEN {read.text} END)", "date", read)


def _to_bool(stages: Stages, arguments: list[Sql]) -> Sql:
    x = settled(stages, arguments[0])
    if x.kind == "text":
        text = stages.dialect.letters(x.text, upper=False)
        return made(f"(CASE {text} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)", "bool", x)
    return x if x.kind == "bool" else made(f"({x.text} <> 0)", "bool", x)


# --- text and dates ---------------------------------------------------------------------------------------------


def _letters(*, upper: bool) -> Printer:
    return lambda stages, arguments: made(stages.dialect.letters(arguments[0].text, upper=upper), "text", arguments[0])


def _template(name: str, kind: str) -> Printer:
    """A function that is spelled as the dialect's template has it."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        return made(stages.dialect.templates[name].format(*(x.text for x in arguments)), kind, *arguments)

    return printer


def _concat(stages: Stages, arguments: list[Sql]) -> Sql:
    """Pair by pair: the lengths are added up before anything is put together, so no long text ever exists."""
    first, *others = (stages.atom(stages.dialect.as_kind(x, "text")) for x in arguments)
    held = made(f"(CASE WHEN length({first.text}) <= {MOST_CHARACTERS} THEN {first.text} END)", "text", first)
    for place, other in enumerate(others):
        left = stages.atom(held) if place else first
        fits = f"length({left.text}) + length({other.text}) <= {MOST_CHARACTERS}"
        held = made(f"(CASE WHEN {fits} THEN {left.text} || {other.text} END)", "text", left, other)
    return held


def _days_between(stages: Stages, arguments: list[Sql]) -> Sql:
    return _template("days_between", "int")(stages, [stages.dialect.as_kind(x, "date") for x in arguments])


_TEMPLATES = {
    **dict.fromkeys(("trim", "substr"), "text"),
    **dict.fromkeys(("length", "year", "month", "day", "quarter", "weekday", "hour"), "int"),
    **dict.fromkeys(("like", "starts_with", "contains"), "bool"),
    "date_trunc": "date",
}
TEMPLATED = frozenset((*_TEMPLATES, "days_between"))


VALUES: dict[str, Printer] = {
    "to_int": _to_int,
    "to_real": _to_real,
    "to_text": _to_text,
    "to_date": _to_date,
    "to_bool": _to_bool,
    "lower": _letters(upper=False),
    "upper": _letters(upper=True),
    "concat": _concat,
    "days_between": _days_between,
    **{name: _template(name, kind) for name, kind in _TEMPLATES.items()},
}
