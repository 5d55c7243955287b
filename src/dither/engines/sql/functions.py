"""Casts, and the functions of text and dates: those that no two engines spell alike are templates of the dialect.

Every function of the registry in SQL: a table from name to a printer over printed arguments. A dialect may replace some.

The meaning is that of query/functions*.py, bit by bit. No row can make any of it raise: arithmetic is in doubles, divisors
pass NULLIF, logarithms and roots are guarded, text is read only where a fixed pattern fits. TRY() is never used: it takes
a hundred times longer on rows that fail, so its running time would tell about them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.engines.sql.dialect import Dialect, Printer, Sql, Stages, alike, made, nearest, settled, whole
from dither.query.functions.casts import DATE_TEXT, REAL_TEXT, WHOLE_TEXT
from dither.query.functions.text import MOST_CHARACTERS

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


def _doubles(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    return [stages.dialect.as_double(x) for x in arguments]


def _over(stages: Stages, x: Sql, y: Sql) -> Sql:
    if y.constant is not None and not isinstance(y.constant, str):
        zero = nearest(y.constant) == 0
        return stages.dialect.literal(None) if zero else made(f"({x.text} / {y.text})", "real", x, y, nan=True)
    held = stages.atom(y)
    return made(f"({x.text} / NULLIF({held.text}, {stages.dialect.number('0')}))", "real", x, held, nan=True)


# --- one printer each -------------------------------------------------------------------------------------------


def _infix(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = _doubles(stages, arguments)
        return made(f"({x.text} {sign} {y.text})", "real", x, y, nan=True)

    return printer


def plain(name: str) -> Printer:
    """A function of doubles that passes on NULL, infinities and what is not a number."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.dialect.as_double(arguments[0])
        return made(f"{name}({x.text})", "real", x, nan=x.nan)

    return printer


def _floor(stages: Stages, arguments: list[Sql]) -> Sql:
    x = _once(stages, stages.dialect.as_double(arguments[0]))
    return made(stages.dialect.floor(x.text), "real", x, nan=x.nan)


def _round(stages: Stages, arguments: list[Sql]) -> Sql:
    x = _once(stages, stages.dialect.as_double(arguments[0]))
    return made(stages.dialect.round(x.text), "real", x, nan=x.nan)


def _once(stages: Stages, x: Sql) -> Sql:
    """What a dialect may write more than once gets a name, so that the text does not grow with the depth of a question."""
    return stages.atom(x) if stages.dialect.repeats else x


def _div(stages: Stages, arguments: list[Sql]) -> Sql:
    return stages.dialect.as_kind(_over(stages, *_doubles(stages, arguments)), "real")


def _mod(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = (stages.atom(argument) for argument in _doubles(stages, arguments))
    ratio = _once(stages, _over(stages, x, y))
    if ratio.kind == "null":
        return stages.dialect.as_kind(ratio, "real")
    return made(f"({x.text} - {y.text} * {stages.dialect.trunc(ratio.text)})", "real", x, y, ratio, nan=True)


def _guarded(name: str, domain: str) -> Printer:
    """What is not a number passes the guard (it is above everything) and stays what it is."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.atom(stages.dialect.as_double(arguments[0]))
        inside = f"{x.text} {domain} {stages.dialect.number('0')}"
        return made(f"(CASE WHEN {inside} THEN {name}({x.text}) END)", "real", x, nan=x.nan)

    return printer


def _power(stages: Stages, arguments: list[Sql]) -> Sql:
    dialect, zero = stages.dialect, stages.dialect.number("0")
    x, y = (stages.atom(settled(stages, argument)) for argument in _doubles(stages, arguments))
    fraction = f"({x.text} < {zero} AND {dialect.is_finite(y.text)} AND {y.text} <> {dialect.trunc(y.text)})"
    undefined = f"({x.text} = {zero} AND {y.text} < {zero}) OR {fraction}"
    text = f"(CASE WHEN {x.text} IS NULL OR {y.text} IS NULL OR {undefined} THEN NULL ELSE power({x.text}, {y.text}) END)"
    return made(text, "real", x, y, nan=True)


def _sign(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(settled(stages, arguments[0]))
    above, below, zero = (stages.dialect.number(digits) for digits in ("1", "-1", "0"))
    arms = f"WHEN {x.text} > 0 THEN {above} WHEN {x.text} < 0 THEN {below} WHEN {x.text} = 0 THEN {zero}"
    return made(f"(CASE {arms} END)", "real", x)


def extreme(name: str) -> Printer:
    """The engines' own skip NULL."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        held = [stages.atom(x) for x in alike(stages, arguments)]
        missing = " OR ".join(f"{x.text} IS NULL" for x in held)
        listed = ", ".join(x.text for x in held)
        return made(f"(CASE WHEN {missing} THEN NULL ELSE {name}({listed}) END)", held[0].kind, *held)

    return printer


def _clamp(stages: Stages, arguments: list[Sql]) -> Sql:
    x, low, high = (stages.atom(argument) for argument in alike(stages, arguments))
    top = f"WHEN {x.text} > {high.text} THEN {high.text}"
    text = f"(CASE WHEN {x.text} IS NULL THEN NULL WHEN {x.text} < {low.text} THEN {low.text} {top} ELSE {x.text} END)"
    return made(text, x.kind, x, low, high)


def _bucket(stages: Stages, arguments: list[Sql]) -> Sql:
    x, width = _doubles(stages, arguments)
    x = _once(stages, x)
    return made(f"({stages.dialect.floor(f'{x.text} / {width.text}')} * {width.text})", "real", x, width, nan=True)


def _compare(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = alike(stages, arguments)
        return made(f"({x.text} {sign} {y.text})", "bool", x, y)

    return printer


def _is_null(stages: Stages, arguments: list[Sql]) -> Sql:
    x = settled(stages, arguments[0])
    return made(f"({x.text} IS NULL)", "bool", x)


def _in_list(stages: Stages, arguments: list[Sql]) -> Sql:
    x, *choices = alike(stages, arguments)
    listed = ", ".join(choice.text for choice in choices)
    return made(f"({x.text} IN ({listed}))", "bool", x, *choices)


def _joined(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        held = [stages.dialect.as_kind(x, "bool") for x in arguments]
        return made("(" + f" {sign} ".join(x.text for x in held) + ")", "bool", *held)

    return printer


def _not(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.dialect.as_kind(arguments[0], "bool")
    return made(f"(NOT {x.text})", "bool", x)


def _case(stages: Stages, arguments: list[Sql]) -> Sql:
    whens = arguments[:-1:2]
    thens = alike(stages, [*arguments[1:-1:2], arguments[-1]])
    arms = " ".join(f"WHEN {when.text} THEN {then.text}" for when, then in zip(whens, thens[:-1], strict=True))
    return made(f"(CASE {arms} ELSE {thens[-1].text} END)", thens[0].kind, *whens, *thens)


def _coalesce(stages: Stages, arguments: list[Sql]) -> Sql:
    held = alike(stages, arguments)
    return made("COALESCE(" + ", ".join(x.text for x in held) + ")", held[0].kind, *held)


def _nullif(stages: Stages, arguments: list[Sql]) -> Sql:
    result = stages.atom(settled(stages, arguments[0]))
    x, y = alike(stages, [result, arguments[1]])
    return made(f"(CASE WHEN {x.text} = {y.text} THEN NULL ELSE {result.text} END)", result.kind, result, x, y)


PRINTERS: dict[str, Printer] = {
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _div,
    "mod": _mod,
    "neg": plain("-"),
    "abs": plain("abs"),
    "floor": _floor,
    "ceil": plain("ceil"),
    "round": _round,
    "sqrt": _guarded("sqrt", ">="),
    "ln": _guarded("ln", ">"),
    "exp": plain("exp"),
    "power": _power,
    "sign": _sign,
    "least": extreme("least"),
    "greatest": extreme("greatest"),
    "clamp": _clamp,
    "bucket": _bucket,
    "eq": _compare("="),
    "ne": _compare("<>"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "gt": _compare(">"),
    "ge": _compare(">="),
    "is_null": _is_null,
    "in_list": _in_list,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": _not,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    **VALUES,
}


def printer_of(dialect: Dialect, name: str) -> Printer | None:
    """The dialect's own printer or ours; None for a function that the engine cannot compute."""
    if name in dialect.printers:
        return dialect.printers[name]
    if name in dialect.missing or (name in TEMPLATED and name not in dialect.templates):
        return None
    return PRINTERS[name]
