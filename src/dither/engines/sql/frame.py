"""Prints expressions over one relation, and a SELECT of them.

Columns are called c0, c1, ... in order, whatever their names in the question: some engines take "Age" and "age" for one name,
dither does not. An argument that a printer needs twice becomes a helper column of an earlier stage, and so does a long part
that several others have as an argument. So the text grows with the question, and not with two to the power of its depth. A
short text matters: DuckDB takes a millisecond to parse each thousand characters, and two to bind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dither.engines.sql.dialect import Dialect, Printer, Sql, Stages, cannot_compute, whole
from dither.engines.sql.functions import printer_of
from dither.query import nodes

LONG = 40  # characters of a part that is worth a helper column, if it is written several times


@dataclass(frozen=True)
class Printed:
    """A SELECT whose columns are c0, c1, ...; `names` and `columns` describe them in order. `computed`: not all are plain."""

    text: str
    names: tuple[str, ...]
    columns: tuple[Sql, ...]
    computed: bool = False


def with_plain_names(text: str, names: Sequence[str], columns: Sequence[Sql]) -> Printed:
    """Returns the relation with its columns as c0, c1, ..., the way an outer SELECT sees them."""
    plain = (replace(column, text=f"c{i}", atom=True, level=0, constant=None) for i, column in enumerate(columns))
    return Printed(text, tuple(names), tuple(plain), computed=not all(column.atom for column in columns))


class Frame:
    """Prints expressions over one relation and collects the helper columns they need."""

    def __init__(self, relation: Printed, dialect: Dialect) -> None:
        self.dialect = dialect
        self._relation = relation
        self._column = dict(zip(relation.names, relation.columns, strict=True))
        self._helpers: dict[str, Sql] = {}
        self._printed: dict[int, tuple[nodes.Expression, Sql]] = {}  # holds the node, so that its id is not reused
        self._stages: list[list[str]] = []
        self._shared: set[int] = set()

    def print_all(self, expressions: Sequence[nodes.Expression]) -> list[Sql]:
        """Prints expressions. A long part that is one node of several others becomes a helper column."""
        self._shared |= _shared(expressions)
        return [self.print(each) for each in expressions]

    def print(self, expression: nodes.Expression) -> Sql:
        if isinstance(expression, nodes.Column):
            return self._column[expression.name]
        if isinstance(expression, nodes.Literal):
            return self.dialect.literal(expression.value)
        # By identity: a question built in Python may use one part many times, in parts it uses many times.
        if id(expression) not in self._printed:
            arguments = [self.print(argument) for argument in expression.arguments]
            made = self._printer(expression)(self, arguments)
            if id(expression) in self._shared and len(made.text) > LONG:
                made = self.atom(made)
            self._printed[id(expression)] = (expression, made)
        found = self._printed[id(expression)][1]
        return self._helpers.get(found.text, found)  # what has a helper column by now is not computed again

    def _printer(self, call: nodes.Call) -> Printer:
        printer = printer_of(self.dialect, call.name)
        if printer is None:
            raise cannot_compute(self.dialect, call.name, call.span)
        return printer

    def atom(self, x: Sql) -> Sql:
        """Returns the value as a column or constant; adds a helper column if it is neither."""
        if x.atom:
            return x
        if x.text not in self._helpers:
            name = f"h{len(self._helpers)}"
            while len(self._stages) <= x.level:
                self._stages.append([])
            self._stages[x.level].append(f"{x.text} AS {name}")
            self._helpers[x.text] = replace(x, text=name, atom=True, level=x.level + 1)
        return self._helpers[x.text]

    def source(self) -> str:
        """Returns a subselect for FROM: the relation with all helper columns."""
        text = self._relation.text + (self.dialect.fence if self._relation.computed else "")
        for stage in self._stages:
            text = f"SELECT *, {', '.join(stage)} FROM {self.dialect.named(f'({text})')}{self.dialect.fence}"
        return f"({text})"


def select(frame: Frame, names: Sequence[str], columns: Sequence[Sql], tail: str = "") -> Printed:
    """Prints SELECT columns FROM the frame's relation."""
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    return with_plain_names(f"SELECT {listed} FROM {frame.dialect.named(frame.source())}{tail}", names, columns)


def _shared(expressions: Sequence[nodes.Expression]) -> set[int]:
    """Returns the ids of the calls that are arguments of more than one call."""
    waiting, seen, shared = list(expressions), set[int](), set[int]()
    while waiting:
        expression = waiting.pop()
        if not isinstance(expression, nodes.Call):
            continue
        if id(expression) in seen:
            shared.add(id(expression))
        else:
            seen.add(id(expression))
            waiting += expression.arguments
    return shared


def is_column(text: str) -> bool:
    """Whether a printed expression is a column of a relation, or a helper column."""
    return text[0] in "ch" and text[1:].isdecimal()


def summed(stages: Stages, x: Sql) -> Sql:
    """Returns the whole numbers that a sum within one unit adds up."""
    return x if x.kind == "int" else stages.atom(whole(stages, x, rounded=False))


def exact_total(dialect: Dialect, total: str) -> str:
    """Prints an exact sum as the nearest double, through text if it is large: from wide integers engines round twice."""
    small = f"{total} BETWEEN {-(2**52)} AND {2**52}"
    text = dialect.cast(dialect.cast(total, "int", "text"), "text", "real")
    return f"(CASE WHEN {small} THEN {dialect.cast(total, 'int', 'real')} ELSE {text} END)"
