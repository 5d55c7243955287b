"""The query: a small tree of frozen nodes, the same from SQL and from the fluent API. Also the table of aggregate functions.

An expression is computed on one row. A relation is a bag of rows; each row belongs to one unit, or is public. A Query is
one private aggregation over a relation, and the post-processing of its noisy result.

The columns of a relation have unique names: `Scan("people", "p")` has "p.age", `Compute` has the names it gives.
`span` is the place of a node in the question's text, (start, end), for the caret. `words` is shown to people in place of
a subquery's column, whose name is generated. Neither counts in equality.

A new private aggregate is one entry in FUNCTIONS and one kind of release in planning/releases/.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

ROWS, VALUES, UNITS, NUMBERS, CONDITIONS = "rows", "values", "units", "numbers", "conditions"
LABELS = "labels"


@dataclass(frozen=True)
class Function:
    """An aggregate function. `words`: its names in SQL. `of`: what it aggregates: rows (where the argument, if any, is not
    NULL), distinct values, units, bounded numbers, conditions or public values (labels). `private`: allowed with noise;
    `per_unit`: allowed exactly, inside one unit. `pair`: it has two arguments."""

    words: tuple[str, ...]
    of: str
    private: bool = True
    per_unit: bool = False
    pair: bool = False

    @property
    def counts(self) -> bool:
        """Whether its result is a whole number, never NULL and never negative."""
        return self.of in (ROWS, VALUES, UNITS)


FUNCTIONS: dict[str, Function] = {
    "count": Function(("COUNT", "COUNT_IF", "COUNTIF", "REGR_COUNT"), ROWS, per_unit=True),
    "count_distinct": Function(("APPROX_COUNT_DISTINCT",), VALUES, per_unit=True),  # or COUNT(DISTINCT x)
    "count_units": Function(("COUNT_UNITS",), UNITS),
    "sum": Function(("SUM",), NUMBERS, per_unit=True),
    "avg": Function(("AVG", "MEAN", "REGR_AVGX", "REGR_AVGY"), NUMBERS, per_unit=True),
    "var_samp": Function(("VARIANCE", "VAR_SAMP"), NUMBERS),
    "var_pop": Function(("VAR_POP",), NUMBERS),
    "stddev_samp": Function(("STDDEV", "STDDEV_SAMP"), NUMBERS),
    "stddev_pop": Function(("STDDEV_POP",), NUMBERS),
    "median": Function(("MEDIAN",), NUMBERS),
    "corr": Function(("CORR",), NUMBERS, pair=True),
    "covar_pop": Function(("COVAR_POP",), NUMBERS, pair=True),
    "covar_samp": Function(("COVAR_SAMP",), NUMBERS, pair=True),
    "regr_slope": Function(("REGR_SLOPE",), NUMBERS, pair=True),
    "regr_intercept": Function(("REGR_INTERCEPT",), NUMBERS, pair=True),
    "regr_r2": Function(("REGR_R2",), NUMBERS, pair=True),
    "skewness": Function(("SKEWNESS",), NUMBERS),
    "kurtosis": Function(("KURTOSIS",), NUMBERS),
    "kurtosis_pop": Function(("KURTOSIS_POP",), NUMBERS),
    "quantile": Function(
        ("QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE_CONT", "PERCENTILE_DISC", "APPROX_QUANTILE"), NUMBERS
    ),
    "min": Function(("MIN",), NUMBERS, per_unit=True),
    "max": Function(("MAX",), NUMBERS, per_unit=True),
    "geomean": Function(("GEOMEAN", "GEOMETRIC_MEAN"), NUMBERS),
    "mode": Function(("MODE",), LABELS),
    "clipped": Function(("CLIPPED",), NUMBERS),
    "bool_or": Function(("BOOL_OR",), CONDITIONS, private=False, per_unit=True),
    "bool_and": Function(("BOOL_AND",), CONDITIONS, private=False, per_unit=True),
}


# Window functions: the fewest and the most arguments. The aggregates of one unit are window functions, too.
WINDOWS: dict[str, tuple[int, int]] = {
    "row_number": (0, 0),
    "rank": (0, 0),
    "dense_rank": (0, 0),
    "ntile": (1, 1),
    "lag": (1, 3),
    "lead": (1, 3),
    "first_value": (1, 1),
    "last_value": (1, 1),
    **dict.fromkeys(("count", "sum", "avg", "min", "max"), (0, 1)),
}


def by_word() -> dict[str, str]:
    """Maps each SQL name to its aggregate function."""
    return {word: name for name, function in FUNCTIONS.items() for word in function.words}


def private() -> tuple[str, ...]:
    """Returns the names of the private aggregates."""
    return tuple(name for name, function in FUNCTIONS.items() if function.private)


def per_unit() -> tuple[str, ...]:
    """Returns the names of the aggregates that are allowed inside one unit."""
    return tuple(name for name, function in FUNCTIONS.items() if function.per_unit)


Span = tuple[int, int] | None
Value = None | bool | int | Fraction | str | datetime.date | datetime.datetime


def fresh(prefix: str, taken: Container[str] = ()) -> str:
    """Returns an unused name for an internal column. Questions cannot write it, because # cannot begin a name.

    >>> fresh("sum"), fresh("unit", {"#unit"}), fresh("unit", {"#unit", "#unit1"})
    ('#sum', '#unit1', '#unit2')
    """
    names = (f"#{prefix}{number or ''}" for number in itertools.count())
    return next(name for name in names if name not in taken)


# --- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the relation that the expression is computed on."""

    name: str
    span: Span = field(default=None, compare=False)
    words: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Literal:
    """A constant. Decimals are exact. `kind` counts in equality: TRUE is not 1, although Python says so."""

    value: Value
    span: Span = field(default=None, compare=False)
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True)
class Call:
    """A function or operator of functions/ applied to expressions. `case` is (when, then, when, then, ..., else)."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = field(default=None, compare=False)
    words: str = field(default="", compare=False, repr=False)


Expression = Column | Literal | Call


def words_of(expression: Expression) -> str:
    """Returns the text shown in place of a subquery's value; "" for other expressions."""
    return "" if isinstance(expression, Literal) else expression.words


@dataclass(frozen=True)
class Named:
    """An expression and its name."""

    name: str
    expression: Expression


# --- relations --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scan:
    """The rows of a catalog table; its column c is named "alias.c"."""

    table: str
    alias: str
    span: Span = field(default=None, compare=False)


@dataclass(frozen=True)
class Filter:
    """The rows for which the condition is true (NULL counts as false)."""

    source: Relation
    condition: Expression


@dataclass(frozen=True)
class Compute:
    """One row for each row of the source, with these columns; the unit is kept implicitly."""

    source: Relation
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Join:
    """Rows of left and right whose `equal` pairs are all equal (NULL equals nothing). kind: "inner", "left" or "full".

    With `scalar` (a scalar subquery): every row of left once, with aggregates of its partners, or NULL if it has none.
    Without pairs all rows of right are partners. resolve/relations.py rewrites it as a left join to one row for each value of
    the equated columns, so no engine sees it.
    """

    left: Relation
    right: Relation
    equal: tuple[tuple[Expression, Expression], ...]
    kind: str
    scalar: Scalar | None = None
    span: Span = field(default=None, compare=False)


@dataclass(frozen=True)
class Scalar:
    """The aggregates of a scalar subquery; the one named n is the column "alias.n"."""

    alias: str
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Semi:
    """The rows of source that have a partner in other, or none if `negated`: IN and EXISTS.

    With `listed` (x, y) and `negated`: the rows for which x NOT IN (y of the partners) is true: there is no partner, or x
    differs from every y and neither x nor any y is NULL.

    With `mark`: every row of source once, with a column of this name: whether it has a partner, or with `listed` whether x
    is in the list (NULL as in SQL). resolve/joins.py rewrites it as left joins, so no engine sees it.
    """

    source: Relation
    other: Relation
    equal: tuple[tuple[Expression, Expression], ...]
    negated: bool
    listed: tuple[Expression, Expression] | None = None
    mark: str | None = None
    span: Span = field(default=None, compare=False)


@dataclass(frozen=True)
class PerUnit:
    """One row for each unit and value of the keys: exact aggregation inside one unit.

    Aggregates: count, sum, min, max, avg, count_distinct, bool_or, bool_and. None depends on the order of rows.
    """

    source: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    span: Span = field(default=None, compare=False)
    alone: str = field(default="", compare=False, repr=False)  # the subquery in SQL, for refusals; "" if it is long
    within: str = field(default="", compare=False, repr=False)  # of IN: the condition for one person, with {unit} for the unit


@dataclass(frozen=True)
class Sort:
    """A key of ORDER BY inside a window. NULLs come last, or first if `nulls_first`."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Rows:
    """The rows of a window's partition that an aggregate sees, counted from the row itself: -1 is the row before it, None the
    first or the last row. With `peers`, rows that ORDER BY does not tell apart are seen together (RANGE), and the ends are None
    or 0."""

    start: int | None = None
    end: int | None = None
    peers: bool = False


@dataclass(frozen=True)
class Window:
    """A window function: a value for each row, computed from the rows with the same `partition`.

    LAG and LEAD have three arguments: the value, how many rows away, and the value if there is no such row. `rows`: what
    aggregates, FIRST_VALUE and LAST_VALUE see (None: the whole partition). `ties`: further columns that order rows which are
    equal in `order`; resolve/windows.py adds them, so that no value depends on how rows are stored.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    partition: tuple[Expression, ...] = ()
    order: tuple[Sort, ...] = ()
    rows: Rows | None = None
    ties: tuple[Expression, ...] = ()
    span: Span = field(default=None, compare=False)
    clip: Clip | None = field(default=None, compare=False, repr=False)  # as of Aggregate


@dataclass(frozen=True)
class WithinUnit:
    """The rows of source, each with the values of these window functions. Every partition is within one unit."""

    source: Relation
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Union:
    """All rows of all parts (UNION ALL); the parts have the same columns and the same unit."""

    parts: tuple[Relation, ...]


Relation = Scan | Filter | Compute | Join | Semi | PerUnit | WithinUnit | Union


def sources(node: Relation) -> tuple[Relation, ...]:
    """Returns the relations that a relation is made from."""
    if isinstance(node, Scan):
        return ()
    if isinstance(node, Join):
        return node.left, node.right
    if isinstance(node, Union):
        return node.parts
    return (node.source, node.other) if isinstance(node, Semi) else (node.source,)


# --- the private aggregation ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clip:
    """What values of `x` are clipped to before they are added up, and the step they are rounded to, if they have one."""

    x: Expression
    low: Fraction
    high: Fraction
    step: Fraction | None


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: a function of FUNCTIONS over an expression (None for COUNT(*)).

    `parameter` is the p of QUANTILE. `where` is the condition of FILTER: only rows for which it is true count. `second` is the
    second argument of CORR and its kind: only rows count in which neither is NULL. `among`: the shares of a list of quantiles
    that this one belongs to. `clip`: what the values of a resolved sum inside one unit are clipped to, if they can be outside.
    """

    name: str
    function: str
    argument: Expression | None = None
    parameter: Fraction | None = None
    where: Expression | None = None
    span: Span = field(default=None, compare=False)
    second: Expression | None = None
    among: tuple[Fraction, ...] = ()
    clip: Clip | None = field(default=None, compare=False, repr=False)

    @property
    def value(self) -> Expression | None:
        """The argument with FILTER built in: NULL in rows that do not count. None: every row counts."""
        if self.where is None:
            return self.argument
        return Call("case", (self.where, self.argument or Literal(1), Literal(None)), span=self.span)

    @property
    def values(self) -> tuple[Expression, ...]:
        """Everything that it reads of a row."""
        return tuple(each for each in (self.value, self.second) if each is not None)

    def lowered(self) -> Aggregate:
        """Returns the same aggregate over `value`, without FILTER: the form that is checked, planned and computed."""
        return self if self.where is None else replace(self, argument=self.value, where=None)


@dataclass(frozen=True)
class Order:
    """Sorts the noisy result by an output expression. NULLs come last, or first if `nulls_first`."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


def grouping_mark(number: int) -> str:
    """Returns the name of the column that holds what one of a query's GROUPING(key, ...) says."""
    return f"#grouping{number}"


@dataclass(frozen=True)
class Frame:
    """ROWS BETWEEN start AND end, counted from the current row (-2: 2 PRECEDING). None: UNBOUNDED.

    `kind`: "rows"; "groups", which counts rows that ORDER BY does not tell apart as one; or "range", which is about values: 0
    is the value of the current row, and `first` and `last` are the values where a frame with a distance begins and ends.
    """

    start: int | None
    end: int | None
    kind: str = "rows"
    first: Expression | None = None
    last: Expression | None = None


@dataclass(frozen=True)
class Across:
    """An aggregate or a window function. Without `frame` and with `order`, the frame ends with the peers of the current row;
    without both it is the whole partition. An aggregate of a group has neither partition nor order. `skips_nulls`: rows where
    the argument is NULL are passed over (IGNORE NULLS)."""

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    frame: Frame | None = None
    skips_nulls: bool = False
    span: Span = field(default=None, compare=False)

    @property
    def structure(self) -> tuple[Expression, ...]:
        """The expressions that decide which rows it reads, and in which order."""
        return (*(() if self.where is None else (self.where,)), *self.partition, *(each.expression for each in self.order))


@dataclass(frozen=True)
class Found:
    """What public tables hold for a Lookup: its items, by the values that they are equated with, and its value without rows."""

    items: Mapping[tuple[Any, ...], frozenset[Any]]
    empty: Any = None


@dataclass(frozen=True)
class Lookup:
    """A subquery over public tables, as a column of a noisy table. Its kind: "value", "in" (IN) or "exists" (EXISTS).

    `equal`: expressions over the noisy row and over `rows` that must be equal. `item`: what it selects, over `rows`, or over
    `aggregates` if it has them. `listed`: the left side of IN. `order`: ORDER BY ... LIMIT 1. resolve/lookups.py sets `kinds`:
    those of the right sides of `equal`, and that of `item`. planning/lookups.py reads `found` before anything is charged.
    """

    name: str
    kind: str
    rows: Relation
    equal: tuple[tuple[Expression, Expression], ...] = ()
    item: Expression | None = None
    aggregates: tuple[Aggregate, ...] = ()
    listed: Expression | None = None
    order: tuple[Order, ...] = ()
    span: Span = field(default=None, compare=False)
    kinds: tuple[str, ...] = ()
    found: Found | None = field(default=None, compare=False, repr=False)

    @property
    def outside(self) -> tuple[Expression, ...]:
        """What it reads of the noisy row."""
        return (*(left for left, _ in self.equal), *(() if self.listed is None else (self.listed,)))


@dataclass(frozen=True)
class Outer:
    """SELECT [DISTINCT] outputs FROM noisy WHERE where GROUP BY keys HAVING having QUALIFY qualify ORDER BY order LIMIT limit.

    `folds` is None without GROUP BY and aggregates. Each window may read the windows before it. `fields` are the columns it
    reads, by the names in `where`, `keys` and arguments; `lookups` are further columns, made from these and public tables.
    """

    fields: tuple[str, ...]
    outputs: tuple[Named, ...]
    where: Expression | None = None
    keys: tuple[Named, ...] = ()
    folds: tuple[Across, ...] | None = None
    having: Expression | None = None
    windows: tuple[Across, ...] = ()
    qualify: Expression | None = None
    distinct: bool = False
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    lookups: tuple[Lookup, ...] = ()


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM source GROUP BY keys HAVING having ORDER BY order LIMIT limit OFFSET offset.

    `outputs`, `having` and `order` are expressions over the keys and aggregates: post-processing, which is free. `sets`: the
    places of the keys in each grouping set, if there are several; `keys` then are those of all sets. `groupings`: the places of
    the keys in each GROUPING(key, ...): one bit for each, 1 in sets without that key; the last key is the lowest bit. `above`:
    the SELECTs around it, the innermost first: post-processing, too. Without aggregates it lists public
    keys (resolve/listing.py), and `instead` is the private form in SQL, for refusals.
    """

    source: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Named, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
    groupings: tuple[tuple[int, ...], ...] = ()
    above: tuple[Outer, ...] = ()
    instead: str = field(default="", compare=False)
    unlisted: tuple[str, ...] = field(default=(), compare=False, repr=False)  # notes on constants
