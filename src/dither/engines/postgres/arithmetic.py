"""Prints arithmetic in doubles that PostgreSQL cannot fail on: it raises where a result is too large, or so small that it is 0.

Each operation is guarded by tests that cannot fail themselves. So the results are those of IEEE doubles bit by bit, but for the
sign of a zero: an infinity where a result is too large, 0 where it is too small.

    constants       both known: computed here
    one constant    the result grows with |x|, so the first |x| that overflows and the last that vanishes are found by halving
    columns         tested after scaling by powers of two, which is exact

`Sql.span` says between which powers of two a value lies. Whole numbers are at most 2^63, so their sums and products need no
guard. NaN compares as larger than infinity; every CASE sends it, and NULL, to an arm that passes them on. CASEs are nested,
because nothing promises that AND tests its left side first. PostgreSQL computes constant parts when it plans, so parts of one
argument alone never overflow either.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from functools import partial

from dither.engines.sql.dialect import Printer, Sql, Stages, build, nan_to_null, nearest
from dither.query.functions.rounding import LARGEST

INF = math.inf
SAFE = 900  # spans up to here: neither a result nor a scaled part of it leaves the doubles
_LARGEST = 1.7976931348623157e308


def double(number: float) -> str:
    """Prints a double.

    >>> double(0.5), double(-math.inf)
    ("'0.5'::float8", "'-Infinity'::float8")
    """
    text = "NaN" if math.isnan(number) else repr(number).replace("inf", "Infinity")
    return f"'{text}'::float8"


def _constant(number: float) -> Sql:
    return Sql(double(number), "real", atom=True, nan=math.isnan(number), constant=number, span=span_of(number))


def span_of(number: float) -> int | None:
    """Returns the span of one double.

    >>> span_of(0.1), span_of(1024.0), span_of(0.0)
    (4, 12, 0)
    """
    if number == 0 or not math.isfinite(number):
        return 0
    return abs(math.frexp(number)[1]) + 1


# --- thresholds -------------------------------------------------------------------------------------------------


def _at(place: int) -> float:
    """Returns the double at a place in their order; that of 0 is 0."""
    found: float = struct.unpack(">d", struct.pack(">q", abs(place)))[0]
    return found if place >= 0 else -found


_INFINITY = struct.unpack(">q", struct.pack(">d", INF))[0]  # its place


def _last(holds: Callable[[float], bool], low: int) -> int:
    """Returns the last place for which a test holds that holds up to some place; `low` - 1 if it holds for none."""
    low, high = low - 1, _INFINITY + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(_at(middle)) else (low, middle)
    return low


def last(holds: Callable[[float], bool]) -> float:
    """Returns the largest double for which a test holds that holds from 0 up to some double.

    >>> last(lambda x: x * x < 2)
    1.414213562373095
    """
    return _at(_last(holds, 0))


def first(holds: Callable[[float], bool]) -> float:
    """Returns the smallest double from which on a test holds.

    >>> first(lambda x: x > -1.5)
    -1.4999999999999998
    """
    return _at(_last(lambda x: not holds(x), -_INFINITY) + 1)


def _grows(f: Callable[[float], float], x: Sql, plain: str, sign: float) -> str:
    """Prints an odd function of x whose size f grows with |x|. `plain`: the function as PostgreSQL computes it."""
    size, zero = f"abs({x.text})", last(lambda a: f(a) == 0)
    finite = last(lambda a: f(a) < INF)
    if zero > 0:
        plain = f"(CASE WHEN {size} <= {double(zero)} THEN {double(0.0)} ELSE {plain} END)"
    if finite >= _LARGEST:
        return plain
    ends = f"(CASE WHEN {x.text} > {double(0.0)} THEN {double(sign * INF)} ELSE {double(-sign * INF)} END)"
    return f"(CASE WHEN {size} <= {double(finite)} THEN {plain} WHEN {size} <= {double(INF)} THEN {ends} ELSE {x.text} END)"


# --- operations -------------------------------------------------------------------------------------------------

_EXACT: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def arithmetic(stages: Stages, sign: str, x: Sql, y: Sql) -> Sql:
    """Prints x + y, x - y, x * y or x / y of doubles. A divisor is not 0, or NULL."""
    a, b = _number(x), _number(y)
    if a is not None and b is not None:
        return _constant(_EXACT[sign](a, b))
    span = _spans(sign, x.span, y.span)
    if span is not None and span <= SAFE:
        return Sql(f"({x.text} {sign} {y.text})", "real", nan=True, level=max(x.level, y.level), span=span)
    x, y = stages.atom(x), stages.atom(y)
    text = {"+": _sum, "-": _sum, "*": _product, "/": _quotient}[sign](sign, x, y)
    return build(text, "real", x, y, nan=True)


def _number(x: Sql) -> float | None:
    return None if x.constant is None or isinstance(x.constant, str) else nearest(x.constant)


def _spans(sign: str, x: int | None, y: int | None) -> int | None:
    """Returns the span of a result. A difference is at least the last bit of the smaller operand."""
    if x is None or y is None:
        return None
    return max(x, y) + 54 if sign in "+-" else x + y + 1


def _sum(sign: str, x: Sql, y: Sql) -> str:
    """Adds halves first where one is near the largest double: their sum is at least 2^1023 if the whole sum is too large."""
    plain, inf = f"({x.text} {sign} {y.text})", double(INF)
    if any(_number(each) is not None and abs(_number(each) or 0.0) < 2.0**969 for each in (x, y)):
        return plain  # less than half of the last bit of the largest double
    small = " AND ".join(f"abs({each.text}) < {double(2.0**1022)}" for each in (x, y))
    known = " OR ".join(f"abs({each.text}) >= {inf}" for each in (x, y))  # NaN, too

    def half(z: Sql) -> str:
        return f"(CASE WHEN abs({z.text}) < 1 THEN {double(0.0)} ELSE {z.text} * {double(0.5)} END)"

    both, edge = f"({half(x)} {sign} {half(y)})", double(2.0**1023)
    ends = f"WHEN {both} >= {edge} THEN {inf} WHEN {both} <= -{edge} THEN -{inf}"
    return f"(CASE WHEN {small} THEN {plain} WHEN {known} THEN {plain} {ends} ELSE {plain} END)"


def _signed(x: Sql, y: Sql) -> str:
    return f"(CASE WHEN ({x.text} > 0) = ({y.text} > 0) THEN {double(INF)} ELSE {double(-INF)} END)"


def _middle(*values: Sql) -> str:
    """Prints the test that no result of these values can be too large or too small."""
    return " AND ".join(f"abs({x.text}) BETWEEN {double(2.0**-500)} AND {double(2.0**500)}" for x in values)


def _product(sign: str, x: Sql, y: Sql) -> str:
    for column, other in ((x, y), (y, x)):
        factor = _number(other)
        if factor is not None:
            plain = f"({column.text} * {other.text})"
            if factor == 0 or math.isinf(factor) or math.isnan(factor):
                return plain
            return _grows(partial(operator.mul, abs(factor)), column, plain, math.copysign(1.0, factor))
    a, b, plain = f"abs({x.text})", f"abs({y.text})", f"({x.text} * {y.text})"
    known = f"{x.text} = 0 OR {y.text} = 0 OR {a} >= {double(INF)} OR {b} >= {double(INF)}"
    over = f"({a} * {double(2.0**-512)}) * ({b} * {double(2.0**-512)}) >= 1"
    large = f"(CASE WHEN {over} THEN {_signed(x, y)} ELSE {plain} END)"
    return (
        f"(CASE WHEN {_middle(x, y)} THEN {plain} WHEN {known} THEN {plain} WHEN {a} >= 1 AND {b} >= 1 THEN {large} "
        f"WHEN {a} < 1 AND {b} < 1 THEN {_small_product(a, b, plain)} ELSE {plain} END)"
    )


def _small_product(a: str, b: str, plain: str) -> str:
    """Prints a product below 1. It is 0 if it is at most 2^-1075, and P is the product times 2^1075.

    P is rounded, so where it is 1 the product may lie on either side. Then the error of P decides, which Dekker's splitting of
    both factors gives exactly.
    """
    left, right = f"(least({a}, {b}) * {double(2.0**1000)})", f"(greatest({a}, {b}) * {double(2.0**75)})"
    split = double(134217729.0)  # 2^27 + 1

    def halves(z: str) -> tuple[str, str]:
        high = f"({z} * {split} - ({z} * {split} - {z}))"
        return high, f"({z} - {high})"

    (ah, al), (bh, bl) = halves(left), halves(right)
    error = f"((({ah} * {bh} - 1) + {ah} * {bl}) + {al} * {bh}) + {al} * {bl}"
    vanished = (
        f"(CASE WHEN {left} * {right} < 1 THEN {double(0.0)} WHEN {left} * {right} > 1 THEN {plain} "
        f"WHEN {error} > 0 THEN {plain} ELSE {double(0.0)} END)"
    )
    return f"(CASE WHEN least({a}, {b}) < {double(2.0**-500)} THEN {vanished} ELSE {plain} END)"


def _quotient(sign: str, x: Sql, y: Sql) -> str:
    divisor = _number(y)
    plain = f"({x.text} / {y.text})"
    if divisor is not None:
        if math.isinf(divisor) or math.isnan(divisor):
            return plain
        size = abs(divisor)
        return _grows(lambda a: a / size, x, plain, math.copysign(1.0, divisor))
    a, b = f"abs({x.text})", f"abs({y.text})"

    def scaled(p: int, q: int) -> str:
        return f"({a} * {double(2.0**p)}) / ({b} * {double(2.0**q)})"

    def unless(test: str, result: str) -> str:
        return f"(CASE WHEN {test} THEN {result} ELSE {plain} END)"

    # A quotient of doubles that is not a power of two is more than half of its last bit away from one, so these are exact.
    vanishes = unless(f"{scaled(500, -575)} <= 1", double(0.0))  # a / b <= 2^-1075
    tiny = unless(f"{scaled(-600, 537)} >= {double(2.0**-113)}", _signed(x, y))  # a / b >= 2^1024
    small = unless(f"{scaled(-512, 0)} >= {double(2.0**512)}", _signed(x, y))
    both = unless(f"{scaled(537, 1000)} >= {double(2.0**561)}", _signed(x, y))
    return (
        f"(CASE WHEN {y.text} = 0 THEN NULL WHEN {_middle(x, y)} THEN {plain} "
        f"WHEN {x.text} = 0 OR {a} >= {double(INF)} OR {b} >= {double(INF)} THEN {plain} "
        f"WHEN {b} >= 1 THEN (CASE WHEN {a} < {double(2.0**-51)} THEN {vanishes} ELSE {plain} END) "
        f"WHEN {a} >= 1 THEN (CASE WHEN {b} < {double(2.0**-500)} THEN {tiny} ELSE {small} END) "
        f"WHEN {b} < {double(2.0**-1000)} THEN {both} ELSE {plain} END)"
    )


# --- functions --------------------------------------------------------------------------------------------------


def _infix(sign: str) -> Printer:
    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x, y = map(stages.dialect.as_double, arguments)
        return arithmetic(stages, sign, x, y)

    return printer


def _over(stages: Stages, x: Sql, y: Sql) -> Sql:
    """Prints x / y, NULL for y = 0."""
    divisor = _number(y)
    if divisor is not None:
        null = stages.dialect.as_kind(stages.dialect.literal(None), "real")
        return null if divisor == 0 else arithmetic(stages, "/", x, y)
    y = stages.atom(y)
    guarded = build(f"NULLIF({y.text}, {double(0.0)})", "real", y)
    narrow = Sql(guarded.text, "real", level=guarded.level, span=y.span)
    return arithmetic(stages, "/", x, y if _spans("/", x.span, y.span) is None else narrow)


def _div(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = map(stages.dialect.as_double, arguments)
    return _over(stages, x, y)


def _mod(stages: Stages, arguments: list[Sql]) -> Sql:
    x, y = (stages.atom(stages.dialect.as_double(argument)) for argument in arguments)
    ratio = _over(stages, x, y)
    cut = build(f"trunc({ratio.text})", "real", ratio, nan=True)
    return arithmetic(stages, "-", x, arithmetic(stages, "*", y, cut))


def _bucket(stages: Stages, arguments: list[Sql]) -> Sql:
    x, width = map(stages.dialect.as_double, arguments)
    ratio = _over(stages, x, width)
    return arithmetic(stages, "*", build(f"floor({ratio.text})", "real", ratio, nan=True), width)


def round_away(x: str) -> str:
    """Prints the nearest whole number, halves away from zero. PostgreSQL's own round takes the even one."""
    away = f"(CASE WHEN {x} > 0 THEN {double(1.0)} ELSE {double(-1.0)} END)"
    return f"(CASE WHEN abs({x} - trunc({x})) >= {double(0.5)} THEN trunc({x}) + {away} ELSE trunc({x}) END)"


def _digits(rounding: Callable[[str], str]) -> Printer:
    """Returns a printer of ROUND or TRUNC, to whole numbers or to so many digits."""

    def printer(stages: Stages, arguments: list[Sql]) -> Sql:
        x = stages.atom(stages.dialect.as_double(arguments[0]))
        digits = int(str(arguments[1].constant)) if len(arguments) > 1 else 0
        if not digits:
            return build(rounding(x.text), "real", x, nan=x.nan)
        power, (to, back) = _constant(10.0 ** abs(digits)), ("*", "/") if digits > 0 else ("/", "*")
        moved = stages.atom(arithmetic(stages, to, x, power))
        cut = stages.atom(build(rounding(moved.text), "real", moved, nan=moved.nan))
        found = arithmetic(stages, back, cut, power)
        finite = stages.dialect.is_finite(moved.text)
        return build(f"(CASE WHEN {finite} THEN {found.text} ELSE {x.text} END)", "real", x, moved, found, nan=x.nan)

    return printer


def _width_bucket(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(nan_to_null(stages, stages.dialect.as_double(arguments[0])))
    low, high, count = (_number(argument) or 0.0 for argument in arguments[1:4])
    first, last_one, times = double(low), double(high), double(count)
    # Between the ends, the distance is finite; only its share of the width can vanish.
    vanished = last(lambda a: a / (high - low) == 0)
    distance = f"({x.text} - {first})"
    share = f"{distance} / {double(high - low)}"
    if vanished > 0:
        share = f"(CASE WHEN {distance} <= {double(vanished)} THEN {double(0.0)} ELSE {share} END)"
    inside = f"least(floor({share} * {times})::bigint, {int(count) - 1}) + 1"
    arms = f"WHEN {x.text} < {first} THEN 0 WHEN {x.text} >= {last_one} THEN {int(count) + 1} WHEN {x.text} >= {first}"
    return build(f"(CASE {arms} THEN {inside} END)::bigint", "int", x)


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


EXP_LAST, EXP_FIRST = last(lambda x: _exponential(x) < INF), -last(lambda x: math.exp(-x) > 0)


def _exp(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(stages.dialect.as_double(arguments[0]))
    inside = f"(CASE WHEN {x.text} >= {double(EXP_FIRST)} THEN exp({x.text}) ELSE {double(0.0)} END)"
    arms = f"WHEN {x.text} <= {double(EXP_LAST)} THEN {inside} WHEN {x.text} <= {double(INF)} THEN {double(INF)}"
    return build(f"(CASE {arms} ELSE {x.text} END)", "real", x, nan=x.nan)


def _power(stages: Stages, arguments: list[Sql]) -> Sql:
    """Prints a power. Near the ends of the doubles, the power with half the exponent decides: a result within 2^-49 of the
    largest double, or of the smallest one, may be infinite, or 0, early."""
    doubles = (stages.dialect.as_double(argument) for argument in arguments)
    x, y = (stages.atom(nan_to_null(stages, each)) for each in doubles)
    plain, inf, zero = f"power({x.text}, {y.text})", double(INF), double(0.0)
    size, reach = f"abs({x.text})", f"abs({y.text})"
    fraction = f"{x.text} < 0 AND {reach} < {inf} AND {y.text} <> trunc({y.text})"
    undefined = f"{x.text} IS NULL OR {y.text} IS NULL OR ({x.text} = 0 AND {y.text} < 0) OR ({fraction})"
    simple = f"{x.text} = 0 OR {size} = 1 OR {y.text} IN (0, 1) OR {size} >= {inf} OR {reach} >= {inf}"
    odd = f"({x.text} < 0 AND {reach} < {double(2.0**53)} AND trunc({y.text} * {double(0.5)}) <> {y.text} * {double(0.5)})"
    odd = f"(CASE WHEN {reach} < 1 THEN FALSE ELSE {odd} END)"
    ends = f"(CASE WHEN {odd} THEN -{inf} ELSE {inf} END)"
    # |x|^y = 2^(y log2 |x|); the product is compared by a quotient, which cannot overflow.
    logarithm = f"ln({size})"
    grows = f"({y.text} > 0) = ({logarithm} > 0)"
    half = f"power({size}, {y.text} * {double(0.5)})"
    near = (
        f"(CASE WHEN {grows} THEN (CASE WHEN {half} >= {double(2.0**512 * (1 - 2.0**-50))} THEN {ends} ELSE {plain} END) "
        f"ELSE (CASE WHEN {half} <= {double(2.0**-537.5 * (1 + 2.0**-50))} THEN {zero} ELSE {plain} END) END)"
    )
    within = f"{reach} <= {double(700.0)} / abs({logarithm})"
    beyond = f"{reach} > {double(760.0)} / abs({logarithm})"
    far = f"(CASE WHEN {grows} THEN {ends} ELSE {zero} END)"
    risky = f"(CASE WHEN {within} THEN {plain} WHEN {beyond} THEN {far} ELSE {near} END)"
    return build(f"(CASE WHEN {undefined} THEN NULL WHEN {simple} THEN {plain} ELSE {risky} END)", "real", x, y, nan=True)


def _negative(stages: Stages, arguments: list[Sql]) -> Sql:
    """Prints -x; the one whole number whose negative is no 64-bit number becomes NULL."""
    x = stages.atom(arguments[0])
    if x.kind != "int":
        return build(f"(-{x.text})", "real", x, nan=x.nan)
    return build(f"(CASE WHEN {x.text} >= {-LARGEST} THEN -({x.text}::bigint) END)", "int", x)


ARITHMETIC: dict[str, Printer] = {
    "neg": _negative,
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _div,
    "mod": _mod,
    "bucket": _bucket,
    "round": _digits(round_away),
    "trunc": _digits(lambda x: f"trunc({x})"),
    "width_bucket": _width_bucket,
    "exp": _exp,
    "power": _power,
}


def least_step(low: float, step: float) -> float:
    """Returns the smallest double above `low` that is more than nothing in steps: 0 < (x - low) / step.

    >>> least_step(0.0, 4.0), least_step(0.0, 1.0) == math.ulp(0), least_step(1.0, 10.0) == math.nextafter(1, 2)
    (1.5e-323, True, True)
    """
    return first(lambda x: (x - low) / step > 0)
