"""Every function of the registry in SQL: a table from name to a printer over printed arguments. A dialect may replace some.

The meaning is that of query/functions*.py, bit by bit. No row can make any of it raise: arithmetic is in doubles, divisors
pass NULLIF, logarithms and roots are guarded, text is read only where a fixed pattern fits. TRY() is never used: it takes
a hundred times longer on rows that fail, so its running time would tell about them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.engines.sql.basics import Printer, Stages, alike, settled
from dither.engines.sql.dialect import Dialect
from dither.engines.sql.text import Sql, made, nearest
from dither.engines.sql.values import TEMPLATED, VALUES


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
        own: Printer = dialect.printers[name]
        return own
    if name in dialect.missing or (name in TEMPLATED and name not in dialect.templates):
        return None
    return PRINTERS[name]
