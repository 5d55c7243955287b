"""A printed expression with what is known of it.

What all printers of functions share: settling what is not a number, one kind for several arguments, whole numbers.

What differs between SQL engines: a table of spellings, and the shapes that an engine may replace by faster ones.

The other files here say what a Work means in plain SQL. Whatever engines spell differently they ask of a Dialect. A new
engine fills in the first part: types, constants, the functions of text and dates, the keyed hash. The second part, the
shapes, works as it stands on any engine with window functions; an engine overrides one where it has a faster form.

No method sees a row. A name or a constant of the question, the catalog or the data enters a statement through
`identifier`, `table` and `literal`, and nowhere else.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from dither.errors import ArgumentError, QueryError
from dither.query.functions.casts import LIMIT


@dataclass(frozen=True)
class Sql:
    """A printed expression.

    `kind` is one of catalog.KINDS, or "null" for a bare NULL. `atom`: a column or a constant, so it may be written twice
    without computing anything twice. `nan`: a double that may be "not a number" where the meaning says NULL.
    `level`: how many stages of helper columns must exist before it can be computed. `constant`: its value, if it has one.
    """

    text: str
    kind: str
    atom: bool = False
    nan: bool = False
    level: int = 0
    constant: int | float | Fraction | str | None = None


def made(text: str, kind: str, *arguments: Sql, nan: bool = False) -> Sql:
    """An expression over arguments: it needs as many stages as they do."""
    return Sql(text, kind, nan=nan, level=max((argument.level for argument in arguments), default=0))


def nearest(value: int | float | Fraction) -> float:
    """The nearest double; an infinity beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_ORDER = ("null", "bool", "text", "int", "real", "date", "timestamp")


def settled(stages: Stages, x: Sql) -> Sql:
    """The value with NULL where it is not a number, as everything that looks at a value needs it."""
    if not x.nan:
        return x
    held = stages.atom(x)
    return made(f"(CASE WHEN {stages.dialect.is_nan(held.text)} THEN NULL ELSE {held.text} END)", x.kind, held)


def alike(stages: Stages, arguments: Sequence[Sql]) -> list[Sql]:
    """Arguments of one family in their widest kind, ready to be compared: doubles if one is, else as they are."""
    kind = widest(arguments)
    return [settled(stages, stages.dialect.as_kind(x, kind)) for x in arguments]


def widest(arguments: Sequence[Sql]) -> str:
    """The kind that holds all of these."""
    return max((x.kind for x in arguments), key=_ORDER.index)


def whole(stages: Stages, x: Sql, *, rounded: bool) -> Sql:
    """A double as a 64-bit integer: NULL beyond 2^62 (an infinity, and what is not a number, is beyond)."""
    dialect, held = stages.dialect, stages.atom(x)
    inside = f"{held.text} BETWEEN {dialect.double(-float(LIMIT))} AND {dialect.double(float(LIMIT))}"
    value = dialect.round(held.text) if rounded else dialect.trunc(held.text)
    return made(f"(CASE WHEN {inside} THEN {dialect.cast(value, 'real', 'int')} END)", "int", held)


def one_zero(stages: Stages, x: Sql) -> Sql:
    """Zero has one sign, so that equal values are one value."""
    return made(f"({x.text} + {stages.dialect.number('0')})", "real", x) if x.kind == "real" else x


NARROW = 1 << 62  # within a 64-bit integer, with room


class Stages(Protocol):
    """Where helper columns are put, so that no expression is written (and computed) twice."""

    @property
    def dialect(self) -> Dialect:
        """How the engine spells it."""
        ...

    def atom(self, x: Sql) -> Sql:
        """The same value under a name."""
        ...


Printer = Callable[[Stages, list[Sql]], Sql]  # a function over printed arguments


class Dialect:
    """Plain SQL. What raises NotImplementedError every engine must spell itself."""

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
    templates: Mapping[str, str] = {}  # functions of text and dates (values.py) over printed arguments {0}, {1}, ...
    printers: Mapping[str, Printer] = {}  # functions of functions.py that this engine spells in another way
    aggregates: Mapping[str, str] = {}  # exact aggregates that have another name here, as bool_or
    missing: frozenset[str] = frozenset()  # functions and aggregates of functions.py and per_unit.py that cannot be computed
    repeats = False  # whether floor, trunc and round write their argument more than once, so that it needs a name first
    double_sums = False  # whether sums of whole numbers in doubles are faster than in integers
    few_values = -1  # up to so many steps whole numbers are clipped by `clip_few`
    fence = ""  # behind a subselect: keeps a planner from writing its columns out at every use

    # --- names and constants ------------------------------------------------------------------------------------

    def identifier(self, name: str) -> str:
        """A name, quoted.

        >>> print(Dialect().identifier('a"; DROP TABLE people; --'))
        "a""; DROP TABLE people; --"
        """
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        """A table of the catalog as FROM names it."""
        return self.identifier(name)

    def literal(self, value: object) -> Sql:
        """A constant. Decimals, and integers beyond 64 bits, become the nearest double.

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
            return Sql(self.double(number), "real", atom=True, nan=math.isnan(number), constant=value)
        if isinstance(value, str):
            return Sql(self.string(value), "text", atom=True, constant=value)
        if isinstance(value, datetime.datetime):
            return Sql(f"CAST('{value.isoformat(sep=' ')}' AS {self.type('timestamp')})", "timestamp", atom=True)
        if isinstance(value, datetime.date):
            return Sql(f"CAST('{value.isoformat()}' AS {self.type('date')})", "date", atom=True)
        raise TypeError("a constant of this type cannot be printed")

    def string(self, value: str) -> str:
        """A text constant."""
        return "'" + value.replace("'", "''") + "'"

    def integer(self, value: int) -> str:
        """A 64-bit integer constant."""
        return f"({value})" if value < 0 else str(value)

    def double(self, number: float) -> str:
        """A double that reads back as itself, bit by bit; not a number and the infinities, too."""
        raise NotImplementedError

    def number(self, digits: str) -> str:
        """A double of the printer's own, such as 0.5, in its shortest form."""
        return self.double(float(digits))

    # --- kinds --------------------------------------------------------------------------------------------------

    def type(self, kind: str) -> str:
        """The type that holds a kind; refuses a question about a kind that has none."""
        if kind not in self.types:
            raise QueryError(f"{self.name} has no type for a {kind}.", fix="ask about columns of other kinds.")
        return self.types[kind]

    def scan(self, column: str, kind: str) -> str:
        """A stored column as questions see it. Days outside the calendar of datetime, infinite ones among them, are NULL."""
        name = self.identifier(column)
        if kind not in ("date", "timestamp"):
            return name
        type = self.type(kind).lower()
        first, last = f"CAST('0001-01-01' AS {type})", f"CAST('9999-12-31 23:59:59.999999' AS {type})"
        return f"(CASE WHEN {name} BETWEEN {first} AND {last} THEN {name} END)"

    def cast(self, x: str, stored: str, kind: str) -> str:
        """A value of one kind in another that holds it."""
        return f"CAST({x} AS {self.type(kind)})"

    def as_kind(self, x: Sql, kind: str) -> Sql:
        """The value in a kind that holds it."""
        if x.kind == kind:
            return x
        return self.as_double(x) if kind == "real" else made(self.cast(x.text, x.kind, kind), kind, x)

    def as_double(self, x: Sql) -> Sql:
        """The number as a double."""
        if x.constant is not None and not isinstance(x.constant, str):
            number = nearest(x.constant)
            return Sql(self.double(number), "real", atom=True, nan=math.isnan(number), constant=x.constant)
        return x if x.kind == "real" else made(self.cast(x.text, x.kind, "real"), "real", x)

    def read_keys(self, kinds: Sequence[str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """What turns a group's key, as the driver hands it over, into values of these kinds."""
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
        """The nearest whole number, halves away from zero."""
        return f"round({x})"

    def divide(self, x: str, y: str) -> str:
        """x / y where x is finite and y a constant above 0; what is too small is 0."""
        return f"({x} / {y})"

    # --- integers -----------------------------------------------------------------------------------------------

    def integer_type(self, most: int) -> str:
        """A type for whole numbers up to `most`."""
        if most >= NARROW and not self.wide:
            raise too_wide(self)
        return self.type("int") if most < NARROW else self.wide

    def share_type(self, most: int) -> str:
        """A type for one unit's share of a sum; millions of them are held at once."""
        return self.integer_type(most)

    def widen(self, x: str) -> str:
        """An integer in the wide type."""
        return f"CAST({x} AS {self.integer_type(NARROW)})"

    def quotient(self, x: str, y: str, *, wide: bool) -> str:
        """x divided by y, both integers, cut towards zero. x is a product. `wide`: x may not fit into 64 bits."""
        raise NotImplementedError

    # --- aggregates ---------------------------------------------------------------------------------------------

    def aggregate(self, function: str, argument: str, where: str) -> str:
        """An aggregate over the rows for which a column is true; all of them without one."""
        return f"{function}({argument})" + (f" FILTER (WHERE {where})" if where else "")

    def narrow_sum(self, value: str, where: str = "") -> str:
        """A sum of 64-bit integers that is known to fit into 64 bits."""
        return self.aggregate("sum", value, where)

    def wide_sum(self, value: str, where: str = "") -> str:
        """A sum of integers that may need the wide type."""
        return self.aggregate("sum", self.widen(value), where)

    # --- texts --------------------------------------------------------------------------------------------------

    def fits(self, x: str, pattern: str) -> str:
        """Whether a text matches a regular expression of ours from its first to its last character."""
        raise NotImplementedError

    def read(self, x: str, kind: str) -> str:
        """A text that fits our pattern, read as another kind; NULL where it cannot be, as the 30th of February."""
        raise NotImplementedError

    def letters(self, x: str, *, upper: bool) -> str:
        """A text with its ASCII letters in one case."""
        capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        before, after = (capital.lower(), capital) if upper else (capital, capital.lower())
        return f"translate({x}, '{before}', '{after}')"

    # --- shapes: an engine overrides these where it has a faster form -------------------------------------------

    def clip(self, x: str, low: str, high: str, above: str) -> str:
        """x within its bounds. What is neither inside nor below nor `above` is NULL: NULL, and what is not a number.

        Comparing two comparisons is how DuckDB tests both bounds fastest: a value cannot fail both.
        """
        inside = f"({x} >= {low}) = ({x} <= {high})"
        return f"(CASE WHEN {inside} THEN {x} WHEN {x} < {low} THEN {low} WHEN {above} THEN {high} END)"

    def clip_few(self, x: str, low: int, high: int) -> str:
        """A whole number within its bounds, `low` where it is NULL: see `few_values`."""
        raise NotImplementedError

    def number_texts(self, x: str, values: Sequence[object]) -> str | None:
        """A text as its place in a list of public ones, NULL where it is none of them. None: texts stay texts."""
        return None

    def test_late(self, test: str, count: str) -> str:
        """A test of a group's key, so that it is made once a group and not once a row. `count` counts the group's rows."""
        return f"({test})"

    def cte(self, name: str, text: str, *, again: bool = True) -> str:
        """A named subquery. `again`: it is read more than once."""
        return f"{name} AS ({text})"

    def semi(self, listed: str, one: str, two: str, equal: str, *, negated: bool) -> str:
        """Rows of l with a partner in r, or with none."""
        no = "NOT " if negated else ""
        return f"SELECT {listed} FROM {one} AS l WHERE {no}EXISTS (SELECT 1 FROM {two} AS r WHERE {equal})"

    def not_in(self, listed: str, one: str, two: str, pair: tuple[str, str], equal: str) -> str:
        """Rows of l whose x is known to differ from every y of r among its partners."""
        x, y = pair
        same, unknown, some = (
            f"EXISTS (SELECT 1 FROM {two} AS r WHERE {test})"
            for test in (f"{x} = {y} AND {equal}", f"{y} IS NULL AND {equal}", equal)
        )
        return f"SELECT {listed} FROM {one} AS l WHERE NOT {same} AND NOT {unknown} AND ({x} IS NOT NULL OR NOT {some})"

    def keyed_hash(self, purpose: str, columns: Sequence[str]) -> str:
        """A hash of the columns under the secret, for one of rows.PURPOSES. The secret is a parameter, never in the text.

        NULL must count as a value of its own. Ties are broken by the columns themselves, so 64 bits will do.
        """
        raise NotImplementedError

    def keep_groups(self, most: int, keys: Sequence[str], columns: Sequence[str], *, repeated: bool) -> str:
        """CTEs up to r: the rows of b in the `most` groups of their unit with the smallest hashes. The choice sees the unit's
        own keys and the secret, nothing else. `repeated`: b has several rows for one unit and group."""
        order = ", ".join([self.keyed_hash("groups", ["u", *keys]), *keys])
        place = f"{'dense_rank' if repeated else 'row_number'}() OVER (PARTITION BY u ORDER BY {order})"
        listed = ", ".join(["u", *keys, *columns])
        return self.cte("r", f"SELECT {listed} FROM (SELECT b.*, {place} AS place FROM b) WHERE place <= {most}", again=False)

    def weigh_bins(self, heads: Sequence[str], keys: Sequence[str], most: int, scale: int, *, wide: bool) -> tuple[str, str]:
        """Further CTEs, and the keys, bin and weight of each row of r: n rows of k in a bin weigh n * scale, or their share of
        most * scale where k is more than `most`."""
        n = self.widen("n") if wide else "n"
        counted = f"sum(CASE WHEN bin IS NULL THEN 0 ELSE n END) OVER (PARTITION BY {', '.join(heads)})"
        less = self.quotient(f"{n} * {most * scale}", "k", wide=wide)
        weight = f"CASE WHEN k <= {most} THEN {n} * {scale} ELSE {less} END AS weight"
        inner = f"SELECT r.*, CAST({counted} AS {self.type('int')}) AS k FROM r"
        return "", f"SELECT {', '.join([*keys, 'bin', weight])} FROM ({inner})"

    def keep_values(self, heads: Sequence[str], keys: Sequence[str], most: int) -> tuple[str, str]:
        """Further CTEs, and the keys and v of the rows of r whose v is among the `most` with the smallest hashes of their unit
        and group. NULL is no value: it takes no place and stays, for its group exists."""
        order = ", ".join([self.keyed_hash("values", [*heads, "v"]), "v"])
        place = f"row_number() OVER (PARTITION BY {', '.join([*heads, 'v IS NULL'])} ORDER BY {order}) AS place"
        return "", f"SELECT {', '.join([*keys, 'v'])} FROM (SELECT r.*, {place} FROM r) WHERE place <= {most}"


def too_wide(dialect: Dialect) -> ArgumentError:
    """Why a question is refused whose integers could outgrow the engine's."""
    return ArgumentError(
        f"the sums of this question could need more than {dialect.widest.bit_length() - 1} bits.",
        fix="declare a larger step, or narrower bounds, for the column that is added up.",
    )


def lacks(dialect: Dialect, name: str, span: tuple[int, int] | None = None) -> QueryError:
    """Why a question is refused that needs a function the engine cannot compute as we mean it."""
    return QueryError(f"{dialect.name} cannot compute {name.upper()}.", span=span, fix="ask without it.")
