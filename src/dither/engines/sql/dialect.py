"""Defines a dialect: what SQL engines spell differently, and the shapes that an engine may replace by faster ones.

The other files of this folder print a Work in plain SQL, and leave to a Dialect what engines spell differently. A new engine
fills in the first part: types, constants, the functions of text and dates, the keyed hash. The second part, the shapes, works
on any engine with window functions; an engine overrides a shape where it has a faster form.

No method sees a row. A name or a constant of the question, the catalog or the data enters a statement through `identifier`,
`table` and `literal` only.

`Sql` is a printed expression. The functions after it are shared by all printers: NaN as NULL, one kind for several arguments,
whole numbers.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from dither.errors import ArgumentError, Fix, Name, QueryError
from dither.query.functions.casts import LIMIT
from dither.query.functions.letters import mapping


@dataclass(frozen=True)
class Sql:
    """A printed expression.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `atom`: a column or a constant, so it may be written twice
    without being computed twice. `nan`: a double that may be NaN where the specification says NULL. `finite`: a double that is
    never infinite or NaN.
    `level`: the stages of helper columns that it needs. `constant`: its value, if it is a constant. `span`: for engines that
    guard arithmetic: finite values other than 0 are between 2^-span and 2^span; None: any double.
    """

    text: str
    kind: str
    atom: bool = False
    nan: bool = False
    level: int = 0
    constant: int | float | Fraction | str | None = None
    span: int | None = None
    finite: bool = False


def build(text: str, kind: str, *arguments: Sql, nan: bool = False) -> Sql:
    """Returns an expression over arguments; it needs as many stages as they do."""
    return Sql(text, kind, nan=nan, level=max((argument.level for argument in arguments), default=0))


def nearest(value: int | float | Fraction) -> float:
    """Returns the nearest double; an infinity beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_ORDER = ("null", "bool", "text", "int", "real", "date", "timestamp")


def nan_to_null(stages: Stages, x: Sql) -> Sql:
    """Returns the value with NULL for NaN, for comparisons and keys."""
    if not x.nan:
        return x
    atom = stages.atom(x)
    return build(f"(CASE WHEN {stages.dialect.is_nan(atom.text)} THEN NULL ELSE {atom.text} END)", x.kind, atom)


def unify(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    """Casts arguments to their widest kind, with NULL for NaN, so that they can be compared."""
    kind = widest(arguments)
    return [nan_to_null(stages, stages.dialect.as_kind(x, kind)) for x in arguments]


def widest(arguments: Sequence[Sql]) -> str:
    """Returns the kind that holds all of these."""
    return max((x.kind for x in arguments), key=_ORDER.index)


def whole(stages: Stages, x: Sql, *, rounded: bool) -> Sql:
    """Turns a double into a 64-bit integer: NULL beyond 2^62, for infinities and for NaN."""
    dialect, atom = stages.dialect, stages.atom(x)
    inside = f"{atom.text} BETWEEN {dialect.double(-float(LIMIT))} AND {dialect.double(float(LIMIT))}"
    value = dialect.round_even(atom.text) if rounded else dialect.trunc(atom.text)
    return build(f"(CASE WHEN {inside} THEN {dialect.cast(value, 'real', 'int')} END)", "int", atom)


def fix_zero(stages: Stages, x: Sql) -> Sql:
    """Turns -0.0 into 0.0, so that equal values are one value."""
    return build(f"({x.text} + {stages.dialect.number('0')})", "real", x) if x.kind == "real" else x


NARROW = 1 << 62  # safely within 64 bits


class Stages(Protocol):
    """Collects helper columns, so that no expression is written (and computed) twice."""

    @property
    def dialect(self) -> Dialect:
        """The engine's dialect."""
        ...

    def atom(self, x: Sql) -> Sql:
        """Returns the value as a column or constant."""
        ...


Printer = Callable[[Stages, list[Sql]], Sql]  # a function over printed arguments


class Dialect:
    """Plain SQL. Every engine must override the methods that raise NotImplementedError."""

    name = "SQL"
    types: Mapping[str, str] = {
        "int": "BIGINT",
        "real": "DOUBLE PRECISION",
        "text": "VARCHAR",
        "bool": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        "null": "DOUBLE PRECISION",
    }
    wide = ""  # a type for integers below `widest`; empty: there is none beyond 64 bits
    widest = NARROW  # no sum of a question may reach this
    templates: Mapping[str, str] = {}  # functions of text and dates over printed arguments {0}, {1}, ...
    printers: Mapping[str, Printer] = {}  # replacements for printers of functions.py
    aggregates: Mapping[str, str] = {}  # other names of exact aggregates, such as bool_or
    missing: frozenset[str] = frozenset()  # functions and aggregates that the engine cannot compute
    repeats = False  # floor, trunc and round write their argument more than once, so it needs a name first
    nan_is_largest = False  # whether NaN compares as larger than all numbers
    double_sums = False  # sums of whole numbers are faster in doubles than in integers
    counts_arguments = False  # counting values by the argument is cheaper than by its whole number of steps
    few_values = -1  # whole numbers with at most so many steps are clipped by `clip_few`
    fence = ""  # after a subselect: stops the planner from copying its columns to every use

    # --- names and constants ------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        """Quotes a name.

        >>> print(Dialect().identifier('a"; DROP TABLE people; --'))
        "a""; DROP TABLE people; --"
        """
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        """Prints a table of the catalog for FROM."""
        return self.identifier(name)

    def literal(self, value: object) -> Sql:
        """Prints a constant. Decimals, and integers beyond 64 bits, become the nearest double.

        >>> Dialect().literal("it's").text, Dialect().literal(-3).text, Dialect().literal(None).text
        ("'it''s'", '(-3)', 'NULL')
        """
        if value is None:
            return Sql("NULL", "null", atom=True)
        if isinstance(value, bool):
            return Sql("TRUE" if value else "FALSE", "bool", atom=True)
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return Sql(self.integer(value), "int", atom=True, constant=value)
        if isinstance(value, (int, Fraction, float)):
            number = nearest(value)
            return self._real(number, value)
        if isinstance(value, str):
            return Sql(self.string(value), "text", atom=True, constant=value)
        if isinstance(value, datetime.datetime):
            return Sql(f"CAST('{value.isoformat(sep=' ')}' AS {self.type('timestamp')})", "timestamp", atom=True)
        if isinstance(value, datetime.date):
            return Sql(f"CAST('{value.isoformat()}' AS {self.type('date')})", "date", atom=True)
        raise TypeError("a constant of this type cannot be printed")

    def string(self, value: str) -> str:
        """Prints a text constant."""
        return "'" + value.replace("'", "''") + "'"

    def integer(self, value: int) -> str:
        """Prints a 64-bit integer constant."""
        return f"({value})" if value < 0 else str(value)

    def double(self, number: float) -> str:
        """Prints a double that reads back bit by bit, NaN and infinities included."""
        raise NotImplementedError

    def number(self, digits: str) -> str:
        """Prints a double of the printer's own, such as 0.5, in its shortest form."""
        return self.double(float(digits))

    # --- kinds --------------------------------------------------------------------------------------------------

    def type(self, kind: str) -> str:
        """Returns the type of a kind. Refuses a question about a kind without one."""
        if kind not in self.types:
            raise QueryError(f"{self.name} has no type for a {kind}.", fix="ask about columns of other kinds.")
        return self.types[kind]

    def scan(self, column: str, kind: str) -> str:
        """Prints a stored column as questions see it. Dates outside Python's calendar, and infinite ones, are NULL."""
        name = self.identifier(column)
        if kind not in ("date", "timestamp"):
            return name
        type = self.type(kind).lower()
        first, last = f"CAST('0001-01-01' AS {type})", f"CAST('9999-12-31 23:59:59.999999' AS {type})"
        return f"(CASE WHEN {name} BETWEEN {first} AND {last} THEN {name} END)"

    def cast(self, x: str, stored: str, kind: str) -> str:
        """Casts a value of one kind to another that holds it."""
        return f"CAST({x} AS {self.type(kind)})"

    def as_kind(self, x: Sql, kind: str) -> Sql:
        """Casts the value to a kind that holds it."""
        if x.kind == kind:
            return x
        return self.as_double(x) if kind == "real" else build(self.cast(x.text, x.kind, kind), kind, x)

    def as_double(self, x: Sql) -> Sql:
        """Casts the number to a double."""
        if x.constant is not None and not isinstance(x.constant, str):
            number = nearest(x.constant)
            return self._real(number, x.constant)
        if x.kind == "real":
            return x
        return replace(build(self.cast(x.text, x.kind, "real"), "real", x), finite=x.kind == "int")

    def _real(self, number: float, value: int | float | Fraction) -> Sql:
        text, finite = self.double(number), math.isfinite(number)
        return Sql(text, "real", atom=True, nan=math.isnan(number), constant=value, finite=finite)

    def read_keys(self, kinds: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """Returns a function that turns the driver's values of a group's key into values of these kinds."""
        return tuple

    # --- doubles ------------------------------------------------------------------------------------------------

    def is_nan(self, x: str) -> str:
        return f"isnan({x})"

    def is_finite(self, x: str) -> str:
        return f"(abs({x}) < {self.double(math.inf)})"

    def floor(self, x: str) -> str:
        return f"floor({x})"

    def trunc(self, x: str) -> str:
        return f"trunc({x})"

    def round(self, x: str) -> str:
        """Rounds to the nearest whole number, halves away from zero."""
        return f"round({x})"

    def round_even(self, x: str) -> str:
        """Rounds to the nearest whole number, halves to the even one."""
        return f"round_even({x}, 0)"

    # --- integers -----------------------------------------------------------------------------------------------

    def integer_type(self, most: int) -> str:
        """Returns a type for whole numbers up to `most`. Refuses numbers that the engine cannot hold."""
        if most >= NARROW and not self.wide:
            raise too_wide(self)
        return self.type("int") if most < NARROW else self.wide

    def share_type(self, most: int) -> str:
        """Returns a type for one unit's share of a sum; millions of them are in memory at once."""
        return self.integer_type(most)

    def widen(self, x: str) -> str:
        """Casts an integer to the wide type."""
        return f"CAST({x} AS {self.integer_type(NARROW)})"

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        """Prints x divided by y, both integers, cut towards zero. x is a product. `wide`: x may not fit into 64 bits."""
        raise NotImplementedError

    # --- aggregates ---------------------------------------------------------------------------------------------

    def exact_aggregate(self, name: str, kind: str) -> str:
        """Returns the name of an exact aggregate of values of a kind."""
        return self.aggregates.get(name, name)

    def aggregate(self, function: str, argument: str, where: str) -> str:
        """Prints an aggregate over the rows for which the column `where` is true; over all rows if it is empty."""
        return f"{function}({argument})" + (f" FILTER (WHERE {where})" if where else "")

    def narrow_sum(self, value: str, where: str = "") -> str:
        """Prints a sum of 64-bit integers that is proved to fit into 64 bits."""
        return self.aggregate("sum", value, where)

    def wide_sum(self, value: str, where: str = "") -> str:
        """Prints a sum of integers that may need the wide type."""
        return self.aggregate("sum", self.widen(value), where)

    def unit_sum(self, value: str) -> str:
        """Prints a sum of whole numbers of one unit."""
        return self.wide_sum(value)

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        """Tests whether the whole text matches a regular expression of the printer's own."""
        raise NotImplementedError

    def read(self, x: str, kind: str) -> str:
        """Reads a text that matches its pattern as another kind; NULL if it has no such value, as the 30th of February."""
        raise NotImplementedError

    def letters(self, x: str, *, upper: bool) -> str:
        """Turns the letters of a text into upper or lower case, by the table of query/functions/letters.py."""
        table = mapping(upper=upper)
        before, after = ("".join(map(chr, points)) for points in (table, table.values()))
        return f"translate({x}, {self.string(before)}, {self.string(after)})"

    # --- shapes: an engine overrides these where it has a faster form -------------------------------------------

    def clip(self, x: str, low: str, high: str, above: str) -> str:
        """Clips x to its bounds. A value that is neither inside nor below nor `above` becomes NULL: NULL and NaN.

        Comparing two comparisons is DuckDB's fastest test of both bounds: a value cannot fail both.
        """
        inside = f"({x} >= {low}) = ({x} <= {high})"
        return f"(CASE WHEN {inside} THEN {x} WHEN {x} < {low} THEN {low} WHEN {above} THEN {high} END)"

    def steps_above(self, x: str, low: float, high: float, step: float) -> str:
        """Prints how many steps a double is above its lower bound, clipped, as a double. NaN is above infinity, so no arm of
        `clip` takes it and it becomes NULL."""
        text = self.clip(x, self.double(low), self.double(high), f"{x} <= {self.double(math.inf)}")
        text = f"({text} - {self.double(low)})" if low else text
        return text if step == 1 else f"({text} / {self.double(step)})"

    def round_steps(self, x: str, type: str) -> str:
        """Rounds what `steps_above` prints to the nearest whole number, halves up, in an integer type that holds it."""
        half = self.number("0.5")
        return f"CAST({self.floor(f'{x} + {half}')} AS {type})"

    def clip_few(self, x: str, low: int, high: int) -> str:
        """Clips a whole number to its bounds; NULL becomes `low`. See `few_values`."""
        raise NotImplementedError

    def number_texts(self, x: str, values: Sequence[object]) -> str | None:
        """Prints a text as its place in a list of public texts, NULL if it is not in the list. None: texts stay texts."""
        return None

    def test_late(self, test: str, count: str, *, by_unit: bool) -> str:
        """Prints a test of a group's key so that it runs once per group, not per row. `count` counts the group's rows.
        `by_unit`: there is a group for each unit and key."""
        return f"({test})"

    def named(self, subselect: str) -> str:
        """Gives a subselect in FROM a name, if the engine wants one."""
        return subselect

    def cte(self, name: str, text: str, *, again: bool = True) -> str:
        """Prints a named subquery. `again`: it is read more than once."""
        return f"{name} AS ({text})"

    def semi(self, listed: str, one: str, two: str, equal: str, *, negated: bool) -> str:
        """Prints the rows of l with a partner in r, or without one if `negated`."""
        no = "NOT " if negated else ""
        return f"SELECT {listed} FROM {one} AS l WHERE {no}EXISTS (SELECT 1 FROM {two} AS r WHERE {equal})"

    def not_in(self, listed: str, one: str, two: str, pair: tuple[str, str], equal: str) -> str:
        """Prints the rows of l for which x NOT IN (the y of their partners in r) is true."""
        x, y = pair
        same, unknown, some = (
            f"EXISTS (SELECT 1 FROM {two} AS r WHERE {test})"
            for test in (f"{x} = {y} AND {equal}", f"{y} IS NULL AND {equal}", equal)
        )
        return f"SELECT {listed} FROM {one} AS l WHERE NOT {same} AND NOT {unknown} AND ({x} IS NOT NULL OR NOT {some})"

    def gather(self, rows: str, most: int) -> str:
        """Prints the rows of a question that chooses groups, for engines that bring a unit's rows together first. `most`: how
        many of them count in a group at most."""
        return rows

    def keyed_hash(self, purpose: str, columns: Sequence[Sql]) -> str:
        """Prints a hash of the columns keyed by the secret, for one of relations.PURPOSES. The secret is a parameter, never in
        the text. choice.py defines a hash that is the same in every engine.

        NULL must be a value of its own. Ties are broken by the columns themselves, so 64 bits are enough.
        """
        raise NotImplementedError

    def in_sample(self, unit: Sql, limit: str) -> str:
        """Prints the test that a unit, which is not NULL, is in the secret sample: its digest of query/sample.py, keyed by the
        parameter `sample`, is below `limit`. An engine without SHA-256 refuses."""
        raise ArgumentError(f"{self.name} cannot sample people.", fix=Fix("ask without {sample}.", sample=Name("sample")))

    def keep_groups(self, most: int, heads: Sequence[Sql], columns: Sequence[str], *, repeated: bool) -> str:
        """Prints CTEs up to r: the rows of b in the `most` groups of their unit with the smallest hashes. The choice depends on
        the unit's own keys and the secret only. `heads`: the unit and the keys. `repeated`: b has several rows per unit and
        group."""
        keys = [head.text for head in heads[1:]]
        order = ", ".join([self.keyed_hash("groups", heads), *keys])
        place = f"{'dense_rank' if repeated else 'row_number'}() OVER (PARTITION BY u ORDER BY {order})"
        listed = ", ".join(["u", *keys, *columns])
        ranked = self.named(f"(SELECT b.*, {place} AS place FROM b)")
        return self.cte("r", f"SELECT {listed} FROM {ranked} WHERE place <= {most}", again=False)

    def weigh_bins(self, heads: Sequence[str], keys: Sequence[str], most: int, scale: int, *, wide: bool) -> tuple[str, str]:
        """Prints further CTEs, and the keys, bin and weight of each row of r: n rows of k in a bin weigh n * scale, or their
        share of most * scale if k is more than `most`."""
        n = self.widen("n") if wide else "n"
        counted = f"sum(CASE WHEN bin IS NULL THEN 0 ELSE n END) OVER (PARTITION BY {', '.join(heads)})"
        less = self.quotient(f"{n} * {most * scale}", "k", wide=wide)
        weight = f"CASE WHEN k <= {most} THEN {n} * {scale} ELSE {less} END AS weight"
        inner = f"SELECT r.*, CAST({counted} AS {self.type('int')}) AS k FROM r"
        return "", f"SELECT {', '.join([*keys, 'bin', weight])} FROM {self.named(f'({inner})')}"

    def keep_values(self, heads: Sequence[Sql], value: Sql, most: int) -> tuple[str, str]:
        """Prints further CTEs, and the keys and v of the rows of r whose v is among the `most` with the smallest hashes of
        their unit and group. NULL takes no place and stays, so that its group exists."""
        names = [head.text for head in heads]
        order = ", ".join([self.keyed_hash("values", [*heads, value]), "v"])
        place = f"row_number() OVER (PARTITION BY {', '.join([*names, 'v IS NULL'])} ORDER BY {order}) AS place"
        ranked = self.named(f"(SELECT r.*, {place} FROM r)")
        return "", f"SELECT {', '.join([*names[1:], 'v'])} FROM {ranked} WHERE place <= {most}"


def too_wide(dialect: Dialect) -> ArgumentError:
    """Returns the error for a question whose integers could overflow the engine's."""
    return ArgumentError(
        f"the sums of this question could need more than {dialect.widest.bit_length() - 1} bits.",
        fix="declare a larger step, or narrower bounds, for the column that is added up.",
    )


def cannot_compute(dialect: Dialect, name: str, span: tuple[int, int] | None = None) -> QueryError:
    """Returns the error for a function that the engine cannot compute exactly."""
    return QueryError(f"{dialect.name} cannot compute {name.upper()}.", span=span, fix="ask without it.")
