"""Prints every function of the registry in SQL: a table from name to a printer over printed arguments.

Functions of text and dates that engines spell differently are templates of the dialect, which may also replace printers. The
results are those of query/functions, bit by bit. No row can make a function raise: arithmetic is in doubles, divisors pass
NULLIF, logarithms and roots are guarded, and text is read only where a fixed pattern matches. TRY() is never used: it takes a
hundred times longer on rows that fail, so its running time would reveal them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dither.engines.sql.dates import DATES
from dither.engines.sql.dialect import Dialect, Printer, Sql, Stages, build, nan_to_null, nearest, unify, whole
from dither.engines.sql.texts import TEXTS
from dither.query.functions.casts import DATE_LETTERS, DATE_TEXT, REAL_TEXT, WHOLE_TEXT
from dither.query.functions.registry import FUNCTIONS
from dither.query.functions.rounding import LARGEST

# --- casts ------------------------------------------------------------------------------------------------------


def _read(stages: Stages, x: Sql, pattern: str, kind: str) -> Sql:
    """Reads text that matches the pattern; other text is NULL."""
    fits, read = stages.dialect.fits(x.text, pattern), stages.dialect.read(x.text, kind)
    return build(f"(CASE WHEN {fits} THEN {read} END)", kind, x)


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
    text = stages.atom(x)
    fits, first = stages.dialect.fits(text.text, DATE_TEXT), stages.dialect.string("0001")  # the calendar has no year 0
    read = stages.dialect.read(f"substr({text.text}, 1, {DATE_LETTERS})", "date")
    return build(f"(CASE WHEN {text.text} >= {first} AND {fits} THEN {read} END)", "date", text)


def _to_bool(stages: Stages, arguments: list[Sql]) -> Sql:
    x = nan_to_null(stages, arguments[0])
    if x.kind == "text":
        text = stages.dialect.letters(x.text, upper=False)
        return build(f"(CASE {text} WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END)", "bool", x)
    return x if x.kind == "bool" else build(f"({x.text} <> 0)", "bool", x)


# --- text and dates ---------------------------------------------------------------------------------------------


def _template(name: str, kind: str) -> Printer:
    """Returns a printer that fills in the dialect's template."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        return build(stages.dialect.templates[name].format(*(x.text for x in arguments)), kind, *arguments)

    return printer


def _days_between(stages: Stages, arguments: list[Sql]) -> Sql:
    return _template("days_between", "int")(stages, [stages.dialect.as_kind(x, "date") for x in arguments])


_TEMPLATES = {
    **dict.fromkeys(("trim", "ltrim", "rtrim", "substr", "right", "split_part", "strftime", "dayname", "monthname"), "text"),
    **dict.fromkeys(("length", "year", "month", "day", "quarter", "weekday", "hour", "minute", "second"), "int"),
    **dict.fromkeys(("dayofweek", "dayofyear", "week", "isoyear", "date_diff", "position"), "int"),
    **dict.fromkeys(("like", "starts_with", "ends_with", "contains"), "bool"),
    **dict.fromkeys(("date_trunc", "last_day"), "date"),
}
TEMPLATED = frozenset((*_TEMPLATES, *DATES, "days_between", "regexp_matches"))


VALUES: dict[str, Printer] = {
    "to_int": _to_int,
    "to_real": _to_real,
    "to_text": _to_text,
    "to_date": _to_date,
    "to_bool": _to_bool,
    **TEXTS,
    "days_between": _days_between,
    **DATES,
    **{name: _template(name, kind) for name, kind in _TEMPLATES.items()},
}


def _doubles(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    return [stages.dialect.as_double(x) for x in arguments]


def _over(stages: Stages, x: Sql, y: Sql) -> Sql:
    """Divides. A finite divisor that is not 0 makes no NaN of what is none."""
    nan = x.nan or not y.finite
    if y.constant is not None and not isinstance(y.constant, str):
        zero = nearest(y.constant) == 0
        return stages.dialect.literal(None) if zero else build(f"({x.text} / {y.text})", "real", x, y, nan=nan)
    divisor = stages.atom(y)
    return build(f"({x.text} / NULLIF({divisor.text}, {stages.dialect.number('0')}))", "real", x, divisor, nan=nan)


# --- one printer each -------------------------------------------------------------------------------------------


def _infix(sign: str) -> Printer:
    """Returns a printer of +, - or *. NaN comes of two infinities, or of 0 times an infinity."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = _doubles(stages, arguments)
        finite = (x.finite and y.finite) if sign == "*" else (x.finite or y.finite)
        return build(f"({x.text} {sign} {y.text})", "real", x, y, nan=x.nan or y.nan or not finite)

    return printer


def plain(name: str) -> Printer:
    """Returns a printer for a function of doubles that passes on NULL, infinities and NaN."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.dialect.as_double(arguments[0])
        return build(f"{name}({x.text})", "real", x, nan=x.nan)

    return printer


def _negative(stages: Stages, arguments: list[Sql]) -> Sql:
    """Prints -x; the one whole number whose negative is no 64-bit number becomes NULL."""
    if arguments[0].kind != "int":
        return plain("-")(stages, arguments)
    x = stages.atom(arguments[0])
    return build(f"(CASE WHEN {x.text} >= {stages.dialect.integer(-LARGEST)} THEN -{x.text} END)", "int", x)


def _floor(stages: Stages, arguments: list[Sql]) -> Sql:
    x = _once(stages, stages.dialect.as_double(arguments[0]))
    return build(stages.dialect.floor(x.text), "real", x, nan=x.nan)


def _digits(name: str) -> Printer:
    """Returns a printer of ROUND or TRUNC, to whole numbers or to so many digits."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, dialect = _once(stages, stages.dialect.as_double(arguments[0])), stages.dialect
        rounding = dialect.round if name == "round" else dialect.trunc
        digits = int(str(arguments[1].constant)) if len(arguments) > 1 else 0
        if not digits:
            return build(rounding(x.text), "real", x, nan=x.nan)
        x = stages.atom(x)
        power, (to, back) = dialect.double(10.0 ** abs(digits)), ("*", "/") if digits > 0 else ("/", "*")
        moved = stages.atom(build(f"({x.text} {to} {power})", "real", x, nan=x.nan))
        finite = f"{dialect.is_finite(moved.text)}"
        text = f"(CASE WHEN {finite} THEN {rounding(moved.text)} {back} {power} ELSE {x.text} END)"
        return build(text, "real", x, moved, nan=x.nan)

    return printer


def _whole_quotient(stages: Stages, arguments: list[Sql]) -> Sql:
    """Divides whole numbers; the one quotient that is no 64-bit number is NULL."""
    x, y = (stages.atom(stages.dialect.as_kind(argument, "int")) for argument in arguments)
    inside = f"{y.text} <> 0 AND ({y.text} <> -1 OR {x.text} >= {stages.dialect.integer(-LARGEST)})"
    quotient = stages.dialect.quotient(x.text, y.text, wide=False)
    return build(f"(CASE WHEN {inside} THEN {quotient} END)", "int", x, y)


def _width_bucket(stages: Stages, arguments: list[Sql]) -> Sql:
    dialect, x = stages.dialect, stages.atom(nan_to_null(stages, stages.dialect.as_double(arguments[0])))
    low, high = (nearest(_number(argument)) for argument in arguments[1:3])
    count = int(_number(arguments[3]))
    first, last, times = (dialect.double(number) for number in (low, high, float(count)))
    place = dialect.floor(f"(({x.text} - {first}) / {dialect.double(high - low)} * {times})")
    inside = f"least({dialect.cast(place, 'real', 'int')}, {count - 1}) + 1"
    arms = f"WHEN {x.text} < {first} THEN 0 WHEN {x.text} >= {last} THEN {count + 1} WHEN {x.text} >= {first} THEN {inside}"
    return build(f"(CASE {arms} END)", "int", x)


def _number(x: Sql) -> int | float | Fraction:
    """Returns the number of a constant."""
    if x.constant is None or isinstance(x.constant, str):
        raise TypeError("this argument is a constant number")
    return x.constant


def skipping(sign: str) -> Printer:
    """Returns a printer for LEAST or GREATEST of the values that are not NULL."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        first, *others = (stages.atom(x) for x in unify(stages, arguments))
        found = first
        for other in others:
            better = f"{other.text} {sign} {found.text} OR {found.text} IS NULL"
            text = f"(CASE WHEN {better} THEN {other.text} ELSE {found.text} END)"
            found = stages.atom(build(text, found.kind, found, other))
        return found

    return printer


def _once(stages: Stages, x: Sql) -> Sql:
    """Names an argument that the dialect writes more than once, so that the text does not grow with the question's depth."""
    return stages.atom(x) if stages.dialect.repeats else x


def _div(stages: Stages, arguments: list[Sql]) -> Sql:
    return stages.dialect.as_kind(_over(stages, *_doubles(stages, arguments)), "real")


def _mod(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = (stages.atom(argument) for argument in _doubles(stages, arguments))
    ratio = _once(stages, _over(stages, x, y))
    if ratio.kind == "null":
        return stages.dialect.as_kind(ratio, "real")
    return build(f"({x.text} - {y.text} * {stages.dialect.trunc(ratio.text)})", "real", x, y, ratio, nan=True)


def _guarded(name: str, domain: str) -> Printer:
    """Returns a printer that gives NULL outside the domain. NaN is above all numbers, so it passes and stays NaN."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.atom(stages.dialect.as_double(arguments[0]))
        inside = f"{x.text} {domain} {stages.dialect.number('0')}"
        return build(f"(CASE WHEN {inside} THEN {name}({x.text}) END)", "real", x, nan=x.nan)

    return printer


def _power(stages: Stages, arguments: list[Sql]) -> Sql:
    dialect, zero = stages.dialect, stages.dialect.number("0")
    x, y = (stages.atom(nan_to_null(stages, argument)) for argument in _doubles(stages, arguments))
    fraction = f"({x.text} < {zero} AND {dialect.is_finite(y.text)} AND {y.text} <> {dialect.trunc(y.text)})"
    undefined = f"({x.text} = {zero} AND {y.text} < {zero}) OR {fraction}"
    text = f"(CASE WHEN {x.text} IS NULL OR {y.text} IS NULL OR {undefined} THEN NULL ELSE power({x.text}, {y.text}) END)"
    return build(text, "real", x, y, nan=True)


def _sign(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(nan_to_null(stages, arguments[0]))
    above, below, zero = (stages.dialect.number(digits) for digits in ("1", "-1", "0"))
    arms = f"WHEN {x.text} > 0 THEN {above} WHEN {x.text} < 0 THEN {below} WHEN {x.text} = 0 THEN {zero}"
    return build(f"(CASE {arms} END)", "real", x)


def extreme(name: str) -> Printer:
    """Returns a printer for LEAST or GREATEST that gives NULL if an argument is NULL; the engines' own skip NULL."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        values = [stages.atom(x) for x in unify(stages, arguments)]
        missing = " OR ".join(f"{x.text} IS NULL" for x in values)
        listed = ", ".join(x.text for x in values)
        return build(f"(CASE WHEN {missing} THEN NULL ELSE {name}({listed}) END)", values[0].kind, *values)

    return printer


def _clamp(stages: Stages, arguments: list[Sql]) -> Sql:
    x, low, high = (stages.atom(argument) for argument in unify(stages, arguments))
    top = f"WHEN {x.text} > {high.text} THEN {high.text}"
    text = f"(CASE WHEN {x.text} IS NULL THEN NULL WHEN {x.text} < {low.text} THEN {low.text} {top} ELSE {x.text} END)"
    return build(text, x.kind, x, low, high)


def _bucket(stages: Stages, arguments: list[Sql]) -> Sql:
    x, width = _doubles(stages, arguments)
    x = _once(stages, x)
    return build(f"({stages.dialect.floor(f'{x.text} / {width.text}')} * {width.text})", "real", x, width, nan=True)


def _compare(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = unify(stages, arguments)
        return build(f"({x.text} {sign} {y.text})", "bool", x, y)

    return printer


def _is_null(stages: Stages, arguments: list[Sql]) -> Sql:
    x = nan_to_null(stages, arguments[0])
    return build(f"({x.text} IS NULL)", "bool", x)


def _in_list(stages: Stages, arguments: list[Sql]) -> Sql:
    x, *choices = unify(stages, arguments)
    listed = ", ".join(choice.text for choice in choices)
    return build(f"({x.text} IN ({listed}))", "bool", x, *choices)


def _joined(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        conditions = [stages.dialect.as_kind(x, "bool") for x in arguments]
        return build("(" + f" {sign} ".join(x.text for x in conditions) + ")", "bool", *conditions)

    return printer


def _not(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.dialect.as_kind(arguments[0], "bool")
    return build(f"(NOT {x.text})", "bool", x)


def _case(stages: Stages, arguments: list[Sql]) -> Sql:
    whens = arguments[:-1:2]
    thens = unify(stages, [*arguments[1:-1:2], arguments[-1]])
    arms = " ".join(f"WHEN {when.text} THEN {then.text}" for when, then in zip(whens, thens[:-1], strict=True))
    return build(f"(CASE {arms} ELSE {thens[-1].text} END)", thens[0].kind, *whens, *thens)


def _coalesce(stages: Stages, arguments: list[Sql]) -> Sql:
    values = unify(stages, arguments)
    return build("COALESCE(" + ", ".join(x.text for x in values) + ")", values[0].kind, *values)


def _nullif(stages: Stages, arguments: list[Sql]) -> Sql:
    result = stages.atom(nan_to_null(stages, arguments[0]))
    x, y = unify(stages, [result, arguments[1]])
    return build(f"(CASE WHEN {x.text} = {y.text} THEN NULL ELSE {result.text} END)", result.kind, result, x, y)


PRINTERS: dict[str, Printer] = {
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _div,
    "mod": _mod,
    "neg": _negative,
    "abs": plain("abs"),
    "floor": _floor,
    "ceil": plain("ceil"),
    "round": _digits("round"),
    "trunc": _digits("trunc"),
    "whole_quotient": _whole_quotient,
    "width_bucket": _width_bucket,
    "smallest": skipping("<"),
    "largest": skipping(">"),
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
    """Returns the dialect's printer or the default one; None for a function that the engine cannot compute."""
    if name in dialect.missing or (name in TEMPLATED and name not in dialect.printers and name not in dialect.templates):
        return None
    printer = dialect.printers.get(name) or PRINTERS[name]
    return _with_kinds(name, printer) if name in TEMPLATED or name in TEXTS else printer


def _with_kinds(name: str, printer: Printer) -> Printer:
    """Returns a printer that casts a bare NULL: engines cannot tell which function of it is meant, and fail."""

    def with_kinds(stages: Stages, arguments: list[Sql]) -> Sql:
        accepted = FUNCTIONS[name].accepted
        cast = [stages.dialect.as_kind(x, accepted(i)[0]) if x.kind == "null" else x for i, x in enumerate(arguments)]
        return printer(stages, cast)

    return with_kinds
