"""Prints the functions of text that need more than a template: no text above the limit is ever built."""

from __future__ import annotations

from dither.engines.sql.dialect import Printer, Sql, Stages, build
from dither.query.functions.patterns import without_flags
from dither.query.functions.text import MOST_CHARACTERS


def letters(*, upper: bool) -> Printer:
    """Returns the printer of LOWER or UPPER."""
    return lambda stages, arguments: build(stages.dialect.letters(arguments[0].text, upper=upper), "text", arguments[0])


def concat(stages: Stages, arguments: list[Sql]) -> Sql:
    """Concatenates pair by pair, and checks the length before each step."""
    first, *others = (stages.atom(stages.dialect.as_kind(x, "text")) for x in arguments)
    joined = build(f"(CASE WHEN length({first.text}) <= {MOST_CHARACTERS} THEN {first.text} END)", "text", first)
    for place, other in enumerate(others):
        left = stages.atom(joined) if place else first
        fits = f"length({left.text}) + length({other.text}) <= {MOST_CHARACTERS}"
        joined = build(f"(CASE WHEN {fits} THEN {left.text} || {other.text} END)", "text", left, other)
    return joined


def _replace(stages: Stages, arguments: list[Sql]) -> Sql:
    """Replaces a text. Where it would grow, counts first how often: by what is left without it."""
    text, old, new = stages.atom(arguments[0]), arguments[1], arguments[2]
    replaced = f"replace({text.text}, {old.text}, {new.text})"
    width, grown = len(str(old.constant)), len(str(new.constant)) - len(str(old.constant))
    more = stages.dialect.integer(grown)  # 64 bits: some engines count letters in 32
    if grown <= 0:
        return build(replaced, "text", text)
    left = f"length(replace({text.text}, {old.text}, ''))"
    length = f"length({text.text}) + (length({text.text}) - {left}) * {more} <= {MOST_CHARACTERS}"
    if width > 1:
        times, most = stages.dialect.integer(width), MOST_CHARACTERS * width
        length = f"length({text.text}) * {times} + (length({text.text}) - {left}) * {more} <= {most}"
    return build(f"(CASE WHEN {length} THEN {replaced} END)", "text", text)


def _row(stages: Stages, arguments: list[Sql]) -> Sql:
    """Joins the texts of several values, each behind its length; NULL is a sign of its own."""
    parts = []
    for argument in arguments:
        text = stages.atom(stages.dialect.as_kind(argument, "text"))
        length = stages.dialect.cast(f"length({text.text})", "int", "text")
        part = f"(CASE WHEN {text.text} IS NULL THEN '-' ELSE {length} || ':' || {text.text} END)"
        parts.append(build(part, "text", text))
    return concat(stages, parts)


def _regexp(stages: Stages, arguments: list[Sql]) -> Sql:
    """Matches a pattern whose flags are written out, so that no table of letters but ours decides."""
    pattern = stages.dialect.string(without_flags(str(arguments[1].constant)))
    return build(stages.dialect.templates["regexp_matches"].format(arguments[0].text, pattern), "bool", arguments[0])


TEXTS: dict[str, Printer] = {
    "lower": letters(upper=False),
    "upper": letters(upper=True),
    "concat": concat,
    "replace": _replace,
    "row": _row,
    "regexp_matches": _regexp,
}
