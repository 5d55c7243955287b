"""One relation being printed: its columns, and the helper columns that expressions over it need.

Inside, every column is called c0, c1, ... in order, whatever its name in the question: some engines take "Age" and "age" for
one name, we do not. An argument that a printer needs twice becomes a helper column of an earlier stage, so the text grows
with the question and not with two to the power of its depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dither.engines.sql.basics import Printer
from dither.engines.sql.dialect import Dialect, lacks
from dither.engines.sql.functions import printer_of
from dither.engines.sql.text import Sql
from dither.query import nodes


@dataclass(frozen=True)
class Printed:
    """A SELECT whose columns are c0, c1, ...; `names` and `columns` tell what they are."""

    text: str
    names: tuple[str, ...]
    columns: tuple[Sql, ...]


def named(text: str, names: Sequence[str], columns: Sequence[Sql]) -> Printed:
    """The columns under their plain names, as those see them who select from this relation."""
    plain = (replace(column, text=f"c{i}", atom=True, level=0, constant=None) for i, column in enumerate(columns))
    return Printed(text, tuple(names), tuple(plain))


class Frame:
    """Prints expressions over one relation and collects the helper columns they need."""

    def __init__(self, relation: Printed, dialect: Dialect) -> None:
        self.dialect = dialect
        self._relation = relation
        self._column = dict(zip(relation.names, relation.columns, strict=True))
        self._helpers: dict[str, Sql] = {}
        self._printed: dict[int, tuple[nodes.Expression, Sql]] = {}  # holds the node, so that its id stays its own
        self._stages: list[list[str]] = []

    def print(self, expression: nodes.Expression) -> Sql:
        if isinstance(expression, nodes.Column):
            return self._column[expression.name]
        if isinstance(expression, nodes.Literal):
            return self.dialect.literal(expression.value)
        # By identity: a question built in Python may use one part many times, in parts it uses many times.
        if id(expression) not in self._printed:
            arguments = [self.print(argument) for argument in expression.arguments]
            self._printed[id(expression)] = (expression, self._printer(expression)(self, arguments))
        return self._printed[id(expression)][1]

    def _printer(self, call: nodes.Call) -> Printer:
        found = printer_of(self.dialect, call.name)
        if found is None:
            raise lacks(self.dialect, call.name, call.span)
        return found

    def atom(self, x: Sql) -> Sql:
        """The value under a name: itself if it has one, else a helper column."""
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
        """What to select from: the relation with all helper columns."""
        text = self._relation.text
        for stage in self._stages:
            text = f"SELECT *, {', '.join(stage)} FROM ({text}){self.dialect.fence}"
        return f"({text})"


def select(frame: Frame, names: Sequence[str], columns: Sequence[Sql], tail: str = "") -> Printed:
    """SELECT columns FROM the frame's relation."""
    listed = ", ".join(f"{column.text} AS c{i}" for i, column in enumerate(columns))
    return named(f"SELECT {listed} FROM {frame.source()}{tail}", names, columns)
