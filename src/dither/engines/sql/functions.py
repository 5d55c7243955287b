"""DuckDB's spelling of every function of the registry: a table from name to a printer over printed arguments.

The meaning is that of query/functions*.py, bit by bit. No row can make any of it raise: arithmetic is in doubles, divisors
pass NULLIF, logarithms and roots are guarded, text is read only where a fixed pattern fits. TRY() is never used: it takes
a hundred times longer on rows that fail, so its running time would tell about them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.engines.sql.basics import Printer, Stages, alike, as_kind, settled
from dither.engines.sql.text import Sql, double, literal, made, nearest
from dither.engines.sql.values import VALUES


def _doubles(arguments: Sequence[Sql]) -> list[Sql]:
    return [double(x) for x in arguments]


def _over(stages: Stages, x: Sql, y: Sql) -> Sql:
    if y.constant is not None and not isinstance(y.constant, str):
        zero = nearest(y.constant) == 0
        return literal(None) if zero else made(f"({x.text} / {y.text})", "real", x, y, nan=True)
    held = stages.atom(y)
    return made(f"({x.text} / NULLIF({held.text}, 0e0))", "real", x, held, nan=True)


# --- one printer each -------------------------------------------------------------------------------------------


def _infix(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = _doubles(arguments)
        return made(f"({x.text} {sign} {y.text})", "real", x, y, nan=True)

    return printer


def _plain(name: str, kind: str = "real") -> Printer:
    """A DuckDB function of doubles that passes on NULL, infinities and what is not a number."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = double(arguments[0])
        return made(f"{name}({x.text})", kind, x, nan=x.nan)

    return printer


def _div(stages: Stages, arguments: list[Sql]) -> Sql:
    return as_kind(_over(stages, *_doubles(arguments)), "real")


def _mod(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = (stages.atom(double(argument)) for argument in arguments)
    ratio = _over(stages, x, y)
    if ratio.kind == "null":
        return as_kind(ratio, "real")
    return made(f"({x.text} - {y.text} * trunc({ratio.text}))", "real", x, y, ratio, nan=True)


def _guarded(name: str, domain: str) -> Printer:
    """What is not a number passes the guard (DuckDB sorts it above everything) and stays what it is."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.atom(double(arguments[0]))
        return made(f"(CASE WHEN {x.text} {domain} THEN {name}({x.text}) END)", "real", x, nan=x.nan)

    return printer


def _power(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = (stages.atom(settled(stages, double(argument))) for argument in arguments)
    fraction = f"({x.text} < 0e0 AND isfinite({y.text}) AND {y.text} <> trunc({y.text}))"
    undefined = f"({x.text} = 0e0 AND {y.text} < 0e0) OR {fraction}"
    text = f"(CASE WHEN {x.text} IS NULL OR {y.text} IS NULL OR {undefined} THEN NULL ELSE power({x.text}, {y.text}) END)"
    return made(text, "real", x, y, nan=True)


def _sign(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(settled(stages, arguments[0]))
    return made(f"(CASE WHEN {x.text} > 0 THEN 1e0 WHEN {x.text} < 0 THEN -1e0 WHEN {x.text} = 0 THEN 0e0 END)", "real", x)


def _extreme(name: str) -> Printer:
    """DuckDB's own skip NULL."""

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
    x, width = _doubles(arguments)
    return made(f"(floor({x.text} / {width.text}) * {width.text})", "real", x, width, nan=True)


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
        held = [as_kind(x, "bool") for x in arguments]
        return made("(" + f" {sign} ".join(x.text for x in held) + ")", "bool", *held)

    return printer


def _not(stages: Stages, arguments: list[Sql]) -> Sql:
    x = as_kind(arguments[0], "bool")
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
    "neg": _plain("-"),
    "abs": _plain("abs"),
    "floor": _plain("floor"),
    "ceil": _plain("ceil"),
    "round": _plain("round"),
    "sqrt": _guarded("sqrt", ">= 0e0"),
    "ln": _guarded("ln", "> 0e0"),
    "exp": _plain("exp"),
    "power": _power,
    "sign": _sign,
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
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
