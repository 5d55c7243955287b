"""Prints functions of text and dates for PostgreSQL: letters, patterns, and dates that are read, moved and written.

PostgreSQL raises for a day that does not exist and for a date before 4713 BC. So days are tested by arithmetic before a date is
made of them, and a date is moved only if the result is in the calendar.
"""

from __future__ import annotations

from dither.engines.sql.dialect import Printer, Sql, Stages, build
from dither.query.functions.dates import FIRST, LAST
from dither.query.functions.durations import SECONDS
from dither.query.functions.formats import MONTHS, format_pattern, has_time, pieces
from dither.query.functions.patterns import Choice, Edge, Letters, Node, Sequence, parsed

# --- letters and patterns ---------------------------------------------------------------------------------------


def _letters(*, upper: bool) -> Printer:
    """Returns the printer of LOWER or UPPER. Most texts are ASCII, for which PostgreSQL's own function is faster."""
    name = "upper" if upper else "lower"

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.atom(arguments[0])
        others = stages.dialect.letters(x.text, upper=upper)
        ascii = f"octet_length({x.text}) = length({x.text})"
        return build(f"(CASE WHEN {ascii} THEN {name}({x.text}) ELSE {others} END)", "text", x)

    return printer


def spell_pattern(node: Node) -> str:
    """Returns a pattern as PostgreSQL reads it: every letter is written out as a range of code points.

    >>> spell_pattern(parsed("a.$"))
    '[\\\\U00000061][\\\\U00000001-\\\\U00000009\\\\U0000000B-\\\\U0010FFFF]$'
    """
    if isinstance(node, Letters):
        return _spell_letters(node)
    if isinstance(node, Edge):
        if node.line:
            return "(?:$|(?=\\n))" if node.end else "(?:^|(?<=\\n))"
        return "$" if node.end else "^"
    if isinstance(node, Sequence):
        return "".join(spell_pattern(part) for part in node.parts) or "(?:)"
    if isinstance(node, Choice):
        return "(?:" + "|".join(spell_pattern(part) for part in node.parts) + ")"
    if node.most == 0:
        return "(?:)"
    return f"(?:{spell_pattern(node.part)}){{{node.least},{'' if node.most is None else node.most}}}"


def _spell_letters(node: Letters) -> str:
    """Prints one letter of ranges. PostgreSQL's texts have no zero character."""
    ranges = [(max(low, 1), high) for low, high in node.ranges if high > 0]
    listed = "".join(f"\\U{low:08X}" + (f"-\\U{high:08X}" if high > low else "") for low, high in ranges)
    return f"[{listed}]" if ranges else "(?!)"


def _regexp(stages: Stages, arguments: list[Sql]) -> Sql:
    pattern = stages.dialect.string(spell_pattern(parsed(str(arguments[1].constant))))
    return build(f"({arguments[0].text} ~ {pattern})", "bool", arguments[0])


# --- dates ------------------------------------------------------------------------------------------------------


def in_month(year: str, month: str, day: str) -> str:
    """Prints the test that there is such a day. All three are whole numbers; NULL is not TRUE."""
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    days = f"(CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END)"
    return f"({year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {days})"


def read_date(x: str) -> str:
    """Reads a text that begins with yyyy-mm-dd, all of them digits; NULL if there is no such day."""
    year, month, day = (f"substr({x}, {start}, {length})::int" for start, length in ((1, 4), (6, 2), (9, 2)))
    return f"(CASE WHEN {in_month(year, month, day)} THEN make_date({year}, {month}, {day}) END)"


def _make_date(stages: Stages, arguments: list[Sql]) -> Sql:
    year, month, day = (stages.atom(x) for x in arguments)
    made = f"make_date({year.text}::int, {month.text}::int, {day.text}::int)"
    test = in_month(year.text, month.text, day.text)
    return build(f"(CASE WHEN {test} THEN {made} END)", "date", year, month, day)


def _strptime(stages: Stages, arguments: list[Sql]) -> Sql:
    """Reads the parts of a text by its format's groups. Each is digits of at most four places, or the name of a month."""
    text, format = stages.atom(arguments[0]), str(arguments[1].constant)
    pattern = stages.dialect.string(f"^(?:{format_pattern(format)})$")
    parts = stages.atom(build(f"regexp_match({text.text}, {pattern})", "text", text))
    directives = [directive for directive, _ in pieces(format) if directive]
    found = {part: f"({parts.text})[{place}]" for place, part in enumerate(directives, 1)}
    number = {part: f"{one}::int" for part, one in found.items() if part not in "bB"}
    short = number.get("y", "")
    year = number.get("Y", f"({short} + (CASE WHEN {short} >= 69 THEN 1900 ELSE 2000 END))")
    named = next((found[part] for part in "bB" if part in found), "")
    names = "".join(month[:3].lower() for month in MONTHS)
    month = f"((strpos('{names}', lower(substr({named}, 1, 3))) + 2) / 3)" if named else number.get("m", "1")
    day, clock = number.get("d", "1"), [number.get(part, "0") for part in "HMS"]
    test, made = in_month(year, month, day), f"make_date({year}, {month}, {day})"
    kind = "timestamp" if has_time(format) else "date"
    if kind == "timestamp":
        test += "".join(f" AND {part} <= {most}" for part, most in zip(clock, (23, 59, 59), strict=True))
        made = f"make_timestamp({year}, {month}, {day}, {clock[0]}, {clock[1]}, {clock[2]}::float8)"
    return build(f"(CASE WHEN {parts.text} IS NULL THEN NULL WHEN {test} THEN {made} END)", kind, parts)


_WRITTEN = {
    "Y": "YYYY",
    "y": "YY",
    "m": "MM",
    "-m": "FMMM",
    "B": "FMMonth",
    "b": "Mon",
    "d": "DD",
    "-d": "FMDD",
    "j": "DDD",
    "A": "FMDay",
    "a": "Dy",
    "u": "ID",
    "G": "IYYY",
    "V": "IW",
    "H": "HH24",
    "I": "HH12",
    "p": "AM",
    "M": "MI",
    "S": "SS",
}


def _strftime(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(stages.dialect.as_kind(arguments[0], "timestamp"))
    written = []
    for directive, text in pieces(str(arguments[1].constant)):
        if directive == "w":
            written.append(f"extract(dow FROM {x.text})::int::text")
        elif directive:
            written.append(f"to_char({x.text}, '{_WRITTEN[directive]}')")
        else:
            written.append(stages.dialect.string(text))
    joined = " || ".join(written)
    return build(f'(CASE WHEN {x.text} IS NOT NULL THEN ({joined}) COLLATE "C" END)', "text", x)


def _name(format: str) -> Printer:
    return lambda stages, arguments: build(
        f"(to_char({arguments[0].text}::timestamp, '{format}') COLLATE \"C\")", "text", arguments[0]
    )


_YEAR_1 = "date '0001-01-01'"


def _add_days(stages: Stages, arguments: list[Sql]) -> Sql:
    x, n = (stages.atom(argument) for argument in arguments)
    place = f"({x.text}::date - {_YEAR_1})"
    moved = f"({x.text} + {n.text}::int)" if x.kind == "date" else f"({x.text} + make_interval(days => {n.text}::int))"
    inside = f"(CASE WHEN {place} + {n.text} BETWEEN 0 AND {LAST - FIRST} THEN {moved} END)"
    near = f"{n.text} BETWEEN {FIRST - LAST} AND {LAST - FIRST}"
    return build(f"(CASE WHEN {near} THEN {inside} END)", x.kind, x, n)


def _add_months(stages: Stages, arguments: list[Sql]) -> Sql:
    x, n = (stages.atom(argument) for argument in arguments)
    month = f"(extract(year FROM {x.text})::int * 12 + extract(month FROM {x.text})::int - 1 + {n.text})"
    moved = stages.dialect.cast(f"({x.text} + make_interval(months => {n.text}::int))", "timestamp", x.kind)
    return build(f"(CASE WHEN {month} BETWEEN 12 AND {9999 * 12 + 11} THEN {moved} END)", x.kind, x, n)


def _add_seconds(stages: Stages, arguments: list[Sql]) -> Sql:
    x, n = stages.atom(stages.dialect.as_kind(arguments[0], "timestamp")), int(str(arguments[1].constant))
    days, seconds = divmod(n, 86_400)
    # Whole days move the date, and fewer than 86,400 seconds the time: at most one day further.
    by_days = f"({x.text}::date - {_YEAR_1}) + {days} BETWEEN -1 AND {LAST - FIRST}"
    moved = f"({x.text} + make_interval(days => {days}, secs => {seconds}))"
    first, last = (f"timestamp '{end}'" for end in ("0001-01-01", "9999-12-31 23:59:59.999999"))
    inside = f"(CASE WHEN {moved} BETWEEN {first} AND {last} THEN {moved} END)"
    return build(f"(CASE WHEN {by_days} THEN {inside} END)", "timestamp", x)


def _date_diff(stages: Stages, arguments: list[Sql]) -> Sql:
    unit, (x, y) = str(arguments[0].constant), (stages.atom(argument) for argument in arguments[1:])
    days = f"({y.text}::date - {x.text}::date)"
    if unit in ("day", "week"):
        return build(f"({days}{' / 7' if unit == 'week' else ''})::bigint", "int", x, y)
    if unit in SECONDS:
        ends = [f"floor(extract(epoch FROM {each.text}::timestamp) / {SECONDS[unit]})" for each in (y, x)]
        return build(f"({ends[0]} - {ends[1]})::bigint", "int", x, y)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    ends = [f"(extract(year FROM {z.text})::int * 12 + extract(month FROM {z.text})::int - 1) / {months}" for z in (y, x)]
    return build(f"({ends[0]} - {ends[1]})::bigint", "int", x, y)


TEXTS: dict[str, Printer] = {
    "lower": _letters(upper=False),
    "upper": _letters(upper=True),
    "regexp_matches": _regexp,
    "make_date": _make_date,
    "strptime": _strptime,
    "strftime": _strftime,
    "dayname": _name("FMDay"),
    "monthname": _name("FMMonth"),
    "add_days": _add_days,
    "add_months": _add_months,
    "add_seconds": _add_seconds,
    "date_diff": _date_diff,
}


def _part(word: str) -> str:
    return f"extract({word} FROM {{0}})::bigint"


TEMPLATES = {
    "trim": "btrim({0}, ' ')",
    "ltrim": "ltrim({0}, ' ')",
    "rtrim": "rtrim({0}, ' ')",
    "length": "length({0})::bigint",
    "substr": "substr({0}, ({1})::int, ({2})::int)",
    "right": "right({0}, ({1})::int)",
    "split_part": "split_part({0}, {1}, ({2})::int)",
    "like": "({0} LIKE {1} ESCAPE '')",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "(right({0}, length({1})) = {1})",
    "contains": "(strpos({0}, {1}) > 0)",
    "position": "strpos({0}, {1})::bigint",
    **{name: _part(name) for name in ("year", "month", "day", "quarter", "hour", "minute", "week", "isoyear")},
    "second": "floor(extract(second FROM {0}))::bigint",
    "weekday": _part("isodow"),
    "dayofweek": _part("dow"),
    "dayofyear": _part("doy"),
    "date_trunc": "date_trunc({0}, ({1})::timestamp)::date",
    "last_day": "(date_trunc('month', ({0})::timestamp) + interval '1 month' - interval '1 day')::date",
    "days_between": "({1} - {0})::bigint",
}
