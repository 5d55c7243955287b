"""Whether a call of a function makes sense: how many arguments, of which kinds, which of them constant. Refuses if not."""

from __future__ import annotations

from dither.errors import QueryError
from dither.query.facts import Facts
from dither.query.function import Function, family
from dither.query.nodes import Call, Expression, Literal
from dither.query.show import show_function

MOST_DEPTH = 150  # deeper expressions would be refused by Python's own limit, with a worse message

WORDS = {
    "int": "a whole number",
    "real": "a number",
    "text": "text",
    "bool": "true or false",
    "date": "a date",
    "timestamp": "a timestamp",
}


def check(call: Call, function: Function, arguments: list[Facts]) -> None:
    """Refuses a call that has no meaning, with the span of the part that is wrong."""
    _check_count(call, function)
    for place, (written, known) in enumerate(zip(call.arguments, arguments, strict=True)):
        _check_argument(call, function, place, written, known.kind)
    _check_family(call, function, [argument.kind for argument in arguments])
    values = [argument.value if isinstance(argument, Literal) else None for argument in call.arguments]
    reason = function.refuse(values) if function.refuse is not None else None
    if reason is not None:
        raise QueryError(f"{_written(call)} cannot be computed: {reason}.", span=call.span, fix="change the constant.")


def _written(call: Call) -> str:
    return show_function(call.name)


def choices(name: str, count: int) -> list[int]:
    """The arguments of which one is handed on as it is."""
    if name == "case":
        return [*range(1, count - 1, 2), count - 1]
    return list(range(count)) if name == "coalesce" else []


def shallow(expression: Expression) -> None:
    """Refuses an expression that is nested too deeply to be worked on."""
    level: list[Expression] = [expression]
    for _ in range(MOST_DEPTH):
        level = [argument for part in level if isinstance(part, Call) for argument in part.arguments]
        if not level:
            return
    raise QueryError(
        f"This expression is nested more than {MOST_DEPTH} levels deep.",
        span=expression.span,
        fix="compute parts of it in a WITH clause first, or use IN for long lists.",
    )


def _check_count(call: Call, function: Function) -> None:
    count = len(call.arguments)
    too_many = function.most is not None and count > function.most
    if count < function.least or too_many or (call.name == "case" and count % 2 == 0):
        fix = f"write it with {'' if function.most else 'at least '}{_arguments(function.least)}."
        raise QueryError(f"{_written(call)} does not take {_arguments(count)}.", span=call.span, fix=fix)


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _check_argument(call: Call, function: Function, place: int, written: Expression, kind: str) -> None:
    span = written.span or call.span
    when = call.name == "case" and place % 2 == 0 and place < len(call.arguments) - 1
    accepted = ("bool",) if when else function.accepted(place)
    if kind != "null" and kind not in accepted:
        raise QueryError(f"{_written(call)} cannot be applied to {WORDS[kind]}.", span=span, fix=_fix(accepted, kind))
    if function.constant(place) and not isinstance(written, Literal):
        raise QueryError(f"{_written(call)} needs a constant here.", span=span, fix="write a number or a text in its place.")


def _check_family(call: Call, function: Function, kinds: list[str]) -> None:
    handed_on = {kinds[place] for place in choices(call.name, len(kinds))}
    together = handed_on if call.name == "case" else set(kinds) if function.alike else set()
    if family(sorted(together)) is None or {"date", "timestamp"} <= handed_on:
        listed = " and ".join(WORDS[kind] for kind in sorted(together - {"null"}))
        raise QueryError(f"{_written(call)} mixes {listed}.", span=call.span, fix=_cast(together))


def _cast(kinds: set[str]) -> str:
    if "date" in kinds or "timestamp" in kinds:
        return "write DATE 'yyyy-mm-dd' for a constant, or CAST(... AS DATE) around one of them."
    if "text" in kinds:
        return "write text in quotes and numbers without, or CAST one of them."
    return "CAST one of them."


def _fix(accepted: tuple[str, ...], kind: str) -> str:
    if accepted == ("bool",) and kind in ("int", "real"):
        return "write a condition, such as x <> 0."
    if "int" in accepted and kind in ("bool", "text"):
        return "write CAST(... AS INTEGER) or CAST(... AS DOUBLE) around it, or CASE WHEN ... THEN 1 ELSE 0 END."
    if kind == "text" and "date" in accepted:
        return "write CAST(... AS DATE) around it, or DATE 'yyyy-mm-dd'."
    return f"give it {' or '.join(WORDS[each] for each in accepted)}."
