"""Spells for Spark SQL (4.x) what the SQL printer leaves to an engine. Holds with ANSI mode on and off.

Spark's FLOOR gives a 64-bit integer and raises beyond, its TRUNC is for dates, and a cast of a double cuts: so doubles are
rounded only below 2^52, where all have fractions. Sums of 64-bit integers raise (ANSI) or wrap, so a sum is a BIGINT only where
2^40 rows cannot overflow it, and a DECIMAL(38, 0) otherwise. Decimals divide to six places and round, so what is divided is a
multiple of the divisor first. A backslash escapes in text constants, and ${...} may be replaced by a setting. NaN is the
largest double and equal to itself. DOUBLE arithmetic is IEEE's; EXP, LN and POWER may differ from C's in the last bit.

Groups are chosen by the hash of sql/choice.py. If few rows of a person count, rows are first sent to the executor of their
person (`gather`): grouping by person and group, and ranking a person's groups, then need no second shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dither.engines.spark.texts import TEMPLATES, TEXTS
from dither.engines.sql.dialect import NARROW, Dialect, Printer, Sql, Stages, build, nan_to_null
from dither.engines.sql.functions import PRINTERS
from dither.engines.sql.work import ROWS

FEW_ROWS = 64  # of a person in a group: gathering all of them is cheaper than a second shuffle of their sums
SECRET = "secret"  # the name of the parameter
_HALF = 1 << 34  # where a double of less than 2^87 is divided into two integers
_FRACTIONS = "4503599627370496D"  # 2^52: doubles from here on are whole


def _ceil(stages: Stages, arguments: list[Sql]) -> Sql:
    x = stages.atom(stages.dialect.as_double(arguments[0]))
    text = f"(CASE WHEN abs({x.text}) < {_FRACTIONS} THEN CAST(ceil({x.text}) AS DOUBLE) ELSE {x.text} END)"
    return build(text, "real", x, nan=x.nan)


def _power(stages: Stages, arguments: list[Sql]) -> Sql:
    """Java's 1^inf is NaN, C's and the specification's is 1."""
    x, y = (stages.atom(nan_to_null(stages, stages.dialect.as_double(argument))) for argument in arguments)
    found = PRINTERS["power"](stages, [x, y])
    unit = f"abs({x.text}) = 1D AND abs({y.text}) = {stages.dialect.double(math.inf)}"
    return build(f"(CASE WHEN {unit} THEN 1D ELSE {found.text} END)", "real", x, y, found, nan=True)


class SparkDialect(Dialect):
    """The SQL of Spark. `tables`: the view that has each table of the catalog."""

    name = "Spark"
    types: Mapping[str, str] = {
        "int": "BIGINT",
        "real": "DOUBLE",
        "text": "STRING",
        "bool": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP_NTZ",
        "null": "DOUBLE",
    }
    wide = "DECIMAL(38, 0)"
    widest = 1 << 126  # below 10^38
    templates: Mapping[str, str] = TEMPLATES
    printers: Mapping[str, Printer] = {**TEXTS, "ceil": _ceil, "power": _power}
    repeats = True
    nan_is_largest = True

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._tables = tables

    # --- names and constants ------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def view(self, name: str) -> str:
        """Returns the name of a table's view."""
        return self._tables.get(name, name)

    def table(self, name: str) -> str:
        return self.identifier(self.view(name))

    def string(self, value: str) -> str:
        """Prints a text constant. Backslashes, quotes, dollars and controls are escaped, whatever the session's settings.

        >>> print(SparkDialect({}).string("it's ${x}"))
        'it\\'s \\u0024{x}'
        """
        escaped = (f"\\u{ord(c):04x}" if c < " " or c in "$\x7f" else f"\\{c}" if c in "\\'" else c for c in value)
        return "'" + "".join(escaped) + "'"

    def integer(self, value: int) -> str:
        if value == -(1 << 63):
            return f"({value + 1}L - 1L)"
        return f"({value}L)" if value < 0 else f"{value}L"

    def double(self, number: float) -> str:
        """Prints a double.

        >>> SparkDialect({}).double(0.1), SparkDialect({}).double(-1e300)
        ('0.1D', '(-1e+300D)')
        """
        if math.isnan(number):
            return "double('NaN')"
        if math.isinf(number):
            return "double('Infinity')" if number > 0 else "double('-Infinity')"
        text = f"{abs(number)!r}D"
        return f"(-{text})" if math.copysign(1.0, number) < 0 else text

    def literal(self, value: object) -> Sql:
        return Sql("CAST(NULL AS DOUBLE)", "null", atom=True) if value is None else super().literal(value)

    def cast(self, x: str, stored: str, kind: str) -> str:
        if stored == "null":
            return f"CAST(NULL AS {self.type(kind)})"
        return super().cast(x, stored, kind)

    # --- doubles: `repeats`, so arguments are names or short -----------------------------------------------------

    def floor(self, x: str) -> str:
        return f"(CASE WHEN abs({x}) < {_FRACTIONS} THEN CAST(floor({x}) AS DOUBLE) ELSE {x} END)"

    def trunc(self, x: str) -> str:
        return f"(CASE WHEN abs({x}) < {_FRACTIONS} THEN CAST(CAST({x} AS BIGINT) AS DOUBLE) ELSE {x} END)"

    def round(self, x: str) -> str:
        """Rounds halves away from zero. Below 2^52 the fraction is exact."""
        cut = f"CAST(CAST({x} AS BIGINT) AS DOUBLE)"
        away = f"(CASE WHEN abs({x} - {cut}) >= 0.5D THEN sign({x}) ELSE 0D END)"
        return f"(CASE WHEN abs({x}) < {_FRACTIONS} THEN {cut} + {away} ELSE {x} END)"

    def round_even(self, x: str) -> str:
        return f"rint({x})"

    # --- integers -----------------------------------------------------------------------------------------------

    def share_type(self, most: int) -> str:
        """Returns a type in which 2^40 shares can be added up: Spark adds up BIGINTs in 64 bits."""
        return self.type("int") if most * ROWS < NARROW else self.wide

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        if not wide:
            return f"(({x}) div ({y}))"
        divisor = self.widen(y)
        return f"CAST((({x}) - ({x}) % {divisor}) / {divisor} AS {self.wide})"

    # --- shapes -------------------------------------------------------------------------------------------------

    def named(self, subselect: str) -> str:
        """Names a subselect. Spark takes (SELECT ...) WHERE (c4) for a subselect called WHERE with a column c4, and would leave
        no row out."""
        return f"{subselect} AS q"

    def test_late(self, test: str, count: str, *, by_unit: bool) -> str:
        """Adds a condition on the count, so that Spark tests each group's key and not every row's. A count is never negative,
        but Spark does not know that. Rows of units are tested early: those with other keys need not be shuffled."""
        return f"({test})" if by_unit else f"({test} OR {count} < 0)"

    def clip(self, x: str, low: str, high: str, above: str) -> str:
        inside = f"(CASE WHEN {x} >= {low} THEN {x} ELSE {low} END)"
        return f"(CASE WHEN {x} <= {high} THEN {inside} WHEN {above} THEN {high} END)"

    def round_steps(self, x: str, type: str) -> str:
        """A cast cuts, which rounds down what is not negative. A cast of a double to a decimal takes its shortest digits, which
        may be more than the double: so two integers of less than 2^53 are put together. There are less than 2^86 steps."""
        if type == self.type("int"):
            return f"CAST({x} + 0.5D AS {type})"
        high = f"CAST(d / {_HALF}D AS BIGINT)"
        low = f"CAST(d - {high} * {_HALF}D AS BIGINT)"
        return _let("d", f"{x} + 0.5D", f"CAST({self.widen(high)} * {_HALF} + {low} AS {type})")

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        """$ would let a line end pass; \\z does not."""
        return f"({x} RLIKE {self.string(f'{chr(92)}A(?:{pattern}){chr(92)}z')})"

    def read(self, x: str, kind: str) -> str:
        return f"try_cast({x} AS {self.type(kind)})"

    # --- the choice ---------------------------------------------------------------------------------------------

    def gather(self, rows: str, most: int) -> str:
        """The number of executors and partitions is Spark's to decide; the hint names the person only."""
        return f"SELECT /*+ REPARTITION(u) */ * FROM ({rows}) AS q" if most <= FEW_ROWS else rows

    def keyed_hash(self, purpose: str, columns: Sequence[Sql]) -> str:
        """Prints the hash of sql/choice.py, as hexadecimal digits."""
        return f"sha2(concat(:{SECRET}, {', '.join(map(_spelled, columns))}), 256)"


def bits_of(x: str) -> str:
    """Prints the 64 bits of a double as hexadecimal digits. Spark has no function for that, so they are computed: x = m 2^e
    with 1 <= m < 2, where e is first taken from a logarithm, off by one at most. Multiplying by powers of two is exact, and
    Java promises exact powers of two. A lambda over an array of one names what is used twice.
    """
    exponent = "CASE WHEN power(2D, f) > a THEN f - 1 WHEN power(2D, f + 1) <= a THEN f + 1 ELSE f END"
    normal = f"(e + 1023) * {1 << 52}L + CAST((a / power(2D, e) - 1D) * {_FRACTIONS} AS BIGINT)"
    by_exponent = _let("e", _let("f", "CAST(floor(log2(a)) AS BIGINT)", exponent), normal)
    tiny = f"CAST(a * {2.0**537!r}D * {2.0**537!r}D AS BIGINT)"  # below the smallest normal double
    arms = f"WHEN a = double('Infinity') THEN {0x7FF << 52}L WHEN a < {2.0**-1022!r}D THEN {tiny} ELSE {by_exponent}"
    positive = _let("a", f"abs({x})", f"CASE {arms} END")
    return f"lpad(lower(hex({positive} + CASE WHEN {x} < 0D THEN -9223372036854775807L - 1L ELSE 0L END)), 16, '0')"


def _let(name: str, value: str, inside: str) -> str:
    return f"element_at(transform(array({value}), {name} -> {inside}), 1)"


_SPELLED = {
    "int": "CAST({0} AS STRING)",
    "text": "{0}",
    "bool": "CAST({0} AS STRING)",
    "date": "CAST({0} AS STRING)",
    "timestamp": "date_format({0}, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")",
}


def _spelled(column: Sql) -> str:
    if column.kind in ("real", "null"):
        return f"(CASE WHEN {column.text} IS NULL THEN 'n' ELSE concat('v16:', {bits_of(column.text)}) END)"
    text = _SPELLED[column.kind].format(column.text)
    return f"(CASE WHEN {column.text} IS NULL THEN 'n' ELSE concat('v', length({text}), ':', {text}) END)"
