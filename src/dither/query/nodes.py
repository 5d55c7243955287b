"""Every aggregate function: its words in SQL, what it is taken of, and where it may stand.

A private aggregate is one entry here and one kind of release in planning/releases/.

What is asked, as a small tree of frozen nodes: the same from SQL and from the fluent API.

Expressions stand on one row. Relations are bags of rows, each row belonging to one unit (or public). A Query is one
private aggregation over a relation, and what is done with the noisy result afterwards.

A relation's columns have plain unique names: `Scan("people", "p")` offers "p.age", `Compute` offers what it names.
`span` is where in the question's text a node was written: (start, end) offsets, for the caret. `words` is what people read in
place of a subquery's value, whose name nobody wrote. Neither counts in equality.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Container
from dataclasses import dataclass, field, replace
from fractions import Fraction

ROWS, VALUES, UNITS, NUMBERS, CONDITIONS = "rows", "values", "units", "numbers", "conditions"


@dataclass(frozen=True)
class Function:
    """`of`: rows (an argument, where there is one, must not be NULL), different values, units, numbers within bounds, or
    conditions. `private`: noise can be added to it; `per_unit`: it is computed exactly inside one unit."""

    words: tuple[str, ...]
    of: str
    private: bool = True
    per_unit: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is a whole number, never NULL and never below zero."""
        return self.of in (ROWS, VALUES, UNITS)


FUNCTIONS: dict[str, Function] = {
    "count": Function(("COUNT",), ROWS, per_unit=True),
    "count_distinct": Function((), VALUES, per_unit=True),  # written COUNT(DISTINCT x)
    "count_units": Function(("COUNT_UNITS",), UNITS),
    "sum": Function(("SUM",), NUMBERS, per_unit=True),
    "avg": Function(("AVG", "MEAN"), NUMBERS, per_unit=True),
    "var_samp": Function(("VARIANCE", "VAR_SAMP"), NUMBERS),
    "var_pop": Function(("VAR_POP",), NUMBERS),
    "stddev_samp": Function(("STDDEV", "STDDEV_SAMP"), NUMBERS),
    "stddev_pop": Function(("STDDEV_POP",), NUMBERS),
    "median": Function(("MEDIAN",), NUMBERS),
    "quantile": Function(("QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT"), NUMBERS),
    "min": Function(("MIN",), NUMBERS, per_unit=True),
    "max": Function(("MAX",), NUMBERS, per_unit=True),
    "clipped": Function(("CLIPPED",), NUMBERS),
    "bool_or": Function(("BOOL_OR",), CONDITIONS, private=False, per_unit=True),
    "bool_and": Function(("BOOL_AND",), CONDITIONS, private=False, per_unit=True),
}


def by_word() -> dict[str, str]:
    """What each word of SQL means."""
    return {word: name for name, function in FUNCTIONS.items() for word in function.words}


def private() -> tuple[str, ...]:
    """Those that a question may ask for."""
    return tuple(name for name, function in FUNCTIONS.items() if function.private)


def per_unit() -> tuple[str, ...]:
    """Those that may stand inside one unit."""
    return tuple(name for name, function in FUNCTIONS.items() if function.per_unit)


Span = tuple[int, int] | None
Value = None | bool | int | Fraction | str | datetime.date | datetime.datetime


def fresh(prefix: str, taken: Container[str] = ()) -> str:
    """A name for a column that nobody reads: no question can write it, and it is not taken.

    >>> fresh("sum"), fresh("unit", {"#unit"}), fresh("unit", {"#unit", "#unit1"})
    ('#sum', '#unit1', '#unit2')
    """
    names = (f"#{prefix}{number or ''}" for number in itertools.count())
    return next(name for name in names if name not in taken)


# --- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the relation the expression stands on."""

    name: str
    span: Span = field(default=None, compare=False)
    words: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Literal:
    """A constant. Decimals are exact. TRUE is not 1: the kind counts in equality, whatever Python says of the values."""

    value: Value
    span: Span = field(default=None, compare=False)
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True)
class Call:
    """A function or operator of functions.py applied to expressions. `case` is (when, then, when, then, ..., else)."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = field(default=None, compare=False)
    words: str = field(default="", compare=False, repr=False)


Expression = Column | Literal | Call


def words_of(expression: Expression) -> str:
    """What people read in place of a subquery's value; "" for anything else."""
    return "" if isinstance(expression, Literal) else expression.words


@dataclass(frozen=True)
class Named:
    """An expression with the name it gets."""

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
    """One row for each row, with just these columns. The unit travels along unseen."""

    source: Relation
    columns: tuple[Named, ...]


@dataclass(frozen=True)
class Join:
    """Rows of left and right whose `equal` pairs are all equal (NULL equals nothing). kind: "inner" or "left".

    With `scalar`: all rows of left, each once, with aggregates of its partners (NULL where it has none): a subquery that
    stands for a value. Without pairs all rows of right are partners. resolve.py makes it of a left join to one row for each
    value of what is equated, so no engine ever sees one.
    """

    left: Relation
    right: Relation
    equal: tuple[tuple[Expression, Expression], ...]
    kind: str
    scalar: Scalar | None = None
    span: Span = field(default=None, compare=False)


@dataclass(frozen=True)
class Scalar:
    """The aggregates that a subquery stands for; the one called n is offered as "alias.n"."""

    alias: str
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True)
class Semi:
    """The rows of source that have (or, negated, have not) a partner in other: IN and EXISTS.

    With `listed` (x, y) and negated: those for which x NOT IN (y of the partners) is true. Then x differs from every such y,
    and none of them is NULL, nor x; or there is no partner.

    With `mark`: all rows of source, each once, with a column of this name that says whether it has a partner, or with `listed`
    whether x is in the list (NULL where SQL says so). resolve_marks.py makes it of left joins, so no engine ever sees one.
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
    """One row for each unit and value of the keys: aggregation inside one unit, before anything private happens.

    Aggregates here are exact: count, sum, min, max, avg, count_distinct, bool_or, bool_and (none depends on row order).
    """

    source: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    span: Span = field(default=None, compare=False)


@dataclass(frozen=True)
class Union:
    """All rows of all parts, which have the same columns and the same unit (UNION ALL)."""

    parts: tuple[Relation, ...]


Relation = Scan | Filter | Compute | Join | Semi | PerUnit | Union


# --- the private aggregation ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: function over an expression (None for COUNT(*)), with a parameter for QUANTILE's p.

    `where` is the condition of its FILTER: only rows for which it is true count.
    Private ones: count, count_distinct, count_units, sum, avg, var_samp, var_pop, stddev_samp, stddev_pop,
    median, quantile, min, max, clipped.
    """

    name: str
    function: str
    argument: Expression | None = None
    parameter: Fraction | None = None
    where: Expression | None = None
    span: Span = field(default=None, compare=False)

    @property
    def value(self) -> Expression | None:
        """What is aggregated, with the FILTER as part of it: NULL in rows that do not count. None: every row counts."""
        if self.where is None:
            return self.argument
        return Call("case", (self.where, self.argument or Literal(1), Literal(None)), span=self.span)

    def lowered(self) -> Aggregate:
        """The same aggregate without FILTER, over `value`: how it is checked, planned and computed."""
        return self if self.where is None else replace(self, argument=self.value, where=None)


@dataclass(frozen=True)
class Order:
    """Sort the noisy result by an output expression."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """SELECT outputs FROM source GROUP BY keys HAVING having ORDER BY order LIMIT limit OFFSET offset.

    `outputs`, `having` and `order` are expressions over the names of keys and aggregates: post-processing, free.
    """

    source: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Named, ...]
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
