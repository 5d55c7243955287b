"""Prints functions of text and dates for Spark SQL.

Patterns never reach Java's backtracking matcher as they are: LIKE becomes a pattern without a choice to come back to, and a
regular expression a walk through a table (automaton.py). Dates are written and read part by part, because Spark's own formats
raise, or read more than the specification does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dither.engines.spark.automaton import TooLargeError, table
from dither.engines.sql.dialect import Printer, Sql, Stages, build
from dither.errors import QueryError
from dither.query.functions.durations import SECONDS
from dither.query.functions.formats import DAYS, MONTHS, format_pattern, has_time, pieces

# --- patterns ---------------------------------------------------------------------------------------------------


def like_pattern(pattern: str) -> str:
    """Returns LIKE as a pattern of Java that takes each part between two % where it is found first, and never looks back.

    >>> print(like_pattern("a%b_%c"))
    (?s)\\Aa(?>.*?b.).*c\\z
    """
    first, *others = ("".join("." if letter == "_" else _quoted(letter) for letter in part) for part in pattern.split("%"))
    if not others:
        return f"(?s)\\A{first}\\z"
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return f"(?s)\\A{first}{middle}.*{others[-1]}\\z"


def _quoted(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}" if re.match(r"[^0-9A-Za-z]", letter) else letter


def _like(stages: Stages, arguments: list[Sql]) -> Sql:
    pattern, string = str(arguments[1].constant), stages.dialect.string
    x, parts = arguments[0], pattern.split("%")
    if "_" in pattern or len(parts) > 3 or (len(parts) == 3 and (parts[0] or parts[2])) or (len(parts) == 2 and all(parts)):
        return build(f"({x.text} RLIKE {string(like_pattern(pattern))})", "bool", x)
    # Plain parts can be pushed down to files.
    if len(parts) == 1:
        return build(f"({x.text} = {string(pattern)})", "bool", x)
    name = "contains" if len(parts) == 3 else "startswith" if parts[0] or not parts[1] else "endswith"
    return build(f"{name}({x.text}, {string(''.join(parts))})", "bool", x)


def _regexp(stages: Stages, arguments: list[Sql]) -> Sql:
    """Folds the letters of a text over the table of its pattern. Each arm of `kind` is one run of letters."""
    try:
        found = table(str(arguments[1].constant))
    except TooLargeError:
        raise QueryError(
            "Spark cannot match this regular expression letter by letter: it needs too large a table.",
            fix="write a shorter pattern, with fewer repetitions in it.",
        ) from None
    x, string = stages.atom(arguments[0]), stages.dialect.string
    runs = list(zip(found.bounds[1:], found.classes, strict=False))
    arms = " ".join(f"WHEN c < {string(chr(end))} THEN {kind}" for end, kind in runs if not 0xD800 <= end <= 0xDFFF)
    kind = f"CASE {arms} ELSE {found.classes[-1]} END" if arms else str(found.classes[0])
    cells, final = ", ".join(map(str, found.next)), ", ".join(map(str, found.final)) or "-1"
    walk = f"aggregate(split({x.text}, ''), 0, (s, c) -> element_at(array({cells}), s * {found.width} + {kind} + 1))"
    walk = f"(CASE WHEN {x.text} = '' THEN 0 ELSE {walk} END)"
    return build(f"(CASE WHEN {x.text} IS NOT NULL THEN {walk} IN ({final}) END)", "bool", x)


# --- dates ------------------------------------------------------------------------------------------------------


def _padded(text: str, digits: int) -> str:
    return f"lpad(CAST({text} AS STRING), {digits}, '0')"


def _named(names: tuple[str, ...], place: str) -> str:
    """Prints the name in a place, counted from 1. Spark's optimiser fails on a constant array in a place that may be NULL."""
    arms = " ".join(f"WHEN {number} THEN '{name}'" for number, name in enumerate(names, 1))
    return f"(CASE {place} {arms} END)"


def _short(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:3] for name in names)


_WRITERS: dict[str, Callable[[str], str]] = {
    "Y": lambda x: _padded(f"year({x})", 4),
    "y": lambda x: _padded(f"(year({x}) % 100)", 2),
    "m": lambda x: _padded(f"month({x})", 2),
    "-m": lambda x: f"CAST(month({x}) AS STRING)",
    "B": lambda x: _named(MONTHS, f"month({x})"),
    "b": lambda x: _named(_short(MONTHS), f"month({x})"),
    "d": lambda x: _padded(f"day({x})", 2),
    "-d": lambda x: f"CAST(day({x}) AS STRING)",
    "j": lambda x: _padded(f"dayofyear({x})", 3),
    "A": lambda x: _named(DAYS, f"weekday({x}) + 1"),
    "a": lambda x: _named(_short(DAYS), f"weekday({x}) + 1"),
    "u": lambda x: f"CAST(weekday({x}) + 1 AS STRING)",
    "w": lambda x: f"CAST((weekday({x}) + 1) % 7 AS STRING)",
    "G": lambda x: _padded(f"extract(YEAROFWEEK FROM {x})", 4),
    "V": lambda x: _padded(f"weekofyear({x})", 2),
    "H": lambda x: _padded(f"hour({x})", 2),
    "I": lambda x: _padded(f"((hour({x}) + 11) % 12 + 1)", 2),
    "p": lambda x: f"(CASE WHEN hour({x}) < 12 THEN 'AM' ELSE 'PM' END)",
    "M": lambda x: _padded(f"minute({x})", 2),
    "S": lambda x: _padded(f"second({x})", 2),
}


def _strftime(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(stages.dialect.as_kind(arguments[0], "timestamp"))
    found = pieces(str(arguments[1].constant))
    written = [_WRITERS[directive](x.text) if directive else stages.dialect.string(text) for directive, text in found]
    return build(f"(CASE WHEN {x.text} IS NOT NULL THEN concat({', '.join(written)}) END)", "text", x)


def _name(names: tuple[str, ...], place: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        return build(_named(names, place.format(arguments[0].text)), "text", arguments[0])

    return printer


def _strptime(stages: Stages, arguments: list[Sql]) -> Sql:
    """Reads the parts of a text by its format's groups, and puts them together as Spark's casts read them."""
    text, format = stages.atom(arguments[0]), str(arguments[1].constant)
    pattern = f"\\A(?:{format_pattern(format)})\\z"
    directives = [directive for directive, _ in pieces(format) if directive]
    found = {
        each: f"regexp_extract({text.text}, {stages.dialect.string(pattern)}, {place})"
        for place, each in enumerate(directives, 1)
    }
    short = found.get("y", "")
    year = found.get("Y", f"concat(CASE WHEN {short} >= '69' THEN '19' ELSE '20' END, {short})")
    months = "".join(month[:3].lower() for month in MONTHS)
    named = next((found[each] for each in "bB" if each in found), "")
    number = f"CAST((locate(lower(substring({named}, 1, 3)), '{months}') + 2) div 3 AS STRING)"
    month = f"lpad({number if named else found.get('m', '1')}, 2, '0')"
    day = f"lpad({found.get('d', '1')}, 2, '0')"
    kind = "timestamp" if has_time(format) else "date"
    parts = [year, "'-'", month, "'-'", day]
    if kind == "timestamp":
        clock = [f"lpad({found.get(each, '0')}, 2, '0')" for each in "HMS"]
        parts += ["' '", clock[0], "':'", clock[1], "':'", clock[2]]
    read = stages.dialect.read(f"concat({', '.join(parts)})", kind)
    first = f"{year} <> '0000'"  # the calendar has no year 0
    fits = f"{text.text} RLIKE {stages.dialect.string(pattern)}"
    return build(f"(CASE WHEN {fits} THEN CASE WHEN {first} THEN {read} END END)", kind, text)


def _date_diff(stages: Stages, arguments: list[Sql]) -> Sql:
    unit, (x, y) = str(arguments[0].constant), (stages.atom(argument) for argument in arguments[1:])
    if unit in ("day", "week"):
        return build(f"(CAST(datediff({y.text}, {x.text}) AS BIGINT) div {7 if unit == 'week' else 1})", "int", x, y)
    if unit in SECONDS:
        ends = [_whole_units(z.text, SECONDS[unit] * 1_000_000) for z in (y, x)]
        return build(f"({ends[0]} - {ends[1]})", "int", x, y)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    ends = [f"((year({z.text}) * 12L + month({z.text}) - 1) div {months})" for z in (y, x)]
    return build(f"({ends[0]} - {ends[1]})", "int", x, y)


def _whole_units(x: str, width: int) -> str:
    """Prints how many units have begun since 1970; the session's time zone is UTC."""
    micros = f"unix_micros(CAST({x} AS TIMESTAMP))"
    return f"(({micros} - pmod({micros}, {width}L)) div {width}L)"


TEXTS: dict[str, Printer] = {
    "like": _like,
    "regexp_matches": _regexp,
    "strftime": _strftime,
    "strptime": _strptime,
    "dayname": _name(DAYS, "weekday({0}) + 1"),
    "monthname": _name(MONTHS, "month({0})"),
    "date_diff": _date_diff,
}


def _long(text: str) -> str:
    return f"CAST({text} AS BIGINT)"


TEMPLATES = {
    "trim": "trim(BOTH ' ' FROM {0})",
    "ltrim": "trim(LEADING ' ' FROM {0})",
    "rtrim": "trim(TRAILING ' ' FROM {0})",
    "length": _long("length({0})"),
    "substr": "substring({0}, CAST({1} AS INT), CAST({2} AS INT))",
    "right": "right({0}, CAST({1} AS INT))",
    "split_part": "split_part({0}, {1}, CAST({2} AS INT))",
    "starts_with": "startswith({0}, {1})",
    "ends_with": "endswith({0}, {1})",
    "contains": "contains({0}, {1})",
    "position": _long("instr({0}, {1})"),
    **{name: _long(f"{name}({{0}})") for name in ("year", "month", "day", "quarter", "hour", "minute", "second", "dayofyear")},
    "weekday": _long("weekday({0}) + 1"),
    "dayofweek": _long("(weekday({0}) + 1) % 7"),
    "week": _long("weekofyear({0})"),
    "isoyear": _long("extract(YEAROFWEEK FROM {0})"),
    "date_trunc": "(CASE WHEN {0} = 'day' THEN CAST({1} AS DATE) ELSE trunc(CAST({1} AS DATE), {0}) END)",
    "last_day": "last_day({0})",
    "days_between": _long("datediff({1}, {0})"),
    "add_days": "({0} + make_dt_interval(CAST({1} AS INT)))",
    "add_months": "({0} + make_ym_interval(0, CAST({1} AS INT)))",
    "add_seconds": "({0} + make_dt_interval(CAST({1} div 86400 AS INT), 0, 0, CAST({1} % 86400 AS DECIMAL(18, 6))))",
    "make_date": "concat(lpad(CAST({0} AS STRING), 4, '0'), '-', lpad(CAST({1} AS STRING), 2, '0'), '-', "
    "lpad(CAST({2} AS STRING), 2, '0'))",
}
