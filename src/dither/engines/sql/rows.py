"""The rows a statement starts from, and the bounding every statement shares: which groups a unit keeps.

Rows are brought together per unit and group first (b), so whatever comes later works on few rows. `r` has the rows of b in
the groups that their unit keeps. How they are chosen is the dialect's (`keep_groups`); it follows from the Work alone and never
from the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dither.engines.sql.basics import settled, whole
from dither.engines.sql.dialect import Dialect
from dither.engines.sql.frame import Frame, Printed
from dither.engines.sql.text import Sql
from dither.query.catalog import Key
from dither.query.nodes import Column, Expression
from dither.query.work import UNIT, Work

PURPOSES = ("groups", "values")  # what the secret decides: which groups of a unit stay, and which of its values


class Rows:
    """SELECT unit AS u, keys AS k0, k1, ..., further columns AS x0, x1, ... FROM the source."""

    def __init__(self, work: Work, source: Printed, dialect: Dialect) -> None:
        self._frame = Frame(source, dialect)
        self._work = work
        self.keys = [f"k{i}" for i in range(len(work.keys))]
        self.heads = ["u", *self.keys] if work.by_unit else self.keys
        self._heads = [f"{self._unit()} AS u"] if work.by_unit else []
        self._tests: list[str] = []
        self.kinds: list[str] = []  # of the keys
        for place, key in enumerate(work.keys):
            self._heads.append(f"{self._key(key.expression, place)} AS {self.keys[place]}")
        self._further: dict[str, str] = {}

    def _unit(self) -> str:
        return settled(self._frame, self._frame.print(Column(UNIT))).text

    def _key(self, expression: Expression, place: int) -> str:
        key, name = self._frame.print(expression), self.keys[place]
        known = None if self._work.known is None else self._work.known[place]
        self.kinds.append("int" if key.kind == "real" else key.kind)
        if key.kind == "text" and known and self._work.by_unit:
            numbered = self._frame.dialect.number_texts(key.text, list(dict.fromkeys(known)))
            if numbered is not None:
                self._tests.append(f"{name} IS NOT NULL")
                return numbered
        if known is not None:
            self._tests.append(self._one_of(name, known))
        return whole(self._frame, key, rounded=False).text if key.kind == "real" else key.text

    def _one_of(self, name: str, values: Sequence[Key]) -> str:
        listed = ", ".join(self._frame.dialect.literal(value).text for value in values if value is not None)
        tests = [f"{name} IN ({listed})"] if listed else []
        tests += [f"{name} IS NULL"] if None in values else []
        return " OR ".join(tests) or "FALSE"

    def only_known(self, text: str, count: str) -> str:
        """The rows whose key is public. This drops whole groups, so it may come after rows were brought together.

        `count` is a column that counts rows: see `test_late`.
        """
        if not self._tests:
            return text
        tests = " AND ".join(self._frame.dialect.test_late(test, count) for test in self._tests)
        return f"SELECT * FROM ({text}{self._frame.dialect.fence}) WHERE {tests}"

    @property
    def frame(self) -> Frame:
        return self._frame

    def column(self, x: Sql) -> str:
        """The name of the column that holds x; the same expression is computed once."""
        return self._further.setdefault(x.text, f"x{len(self._further)}")

    def condition(self, where: Expression | None) -> str:
        """The name of a column that is true for the counted rows, "" if all are."""
        return "" if where is None else self.column(self._frame.print(where))

    def select(self) -> str:
        listed = [*self._heads, *(f"{text} AS {name}" for text, name in self._further.items())] or ["1 AS one"]
        text = f"SELECT {', '.join(listed)} FROM {self._frame.source()}"
        return f"SELECT * FROM ({text}) WHERE u IS NOT NULL" if self._work.by_unit else text


def grouped(heads: Sequence[str], columns: Sequence[str], source: str) -> str:
    """SELECT heads, columns FROM source GROUP BY heads. Without heads: one row, or none if the source has none."""
    tail = f" GROUP BY {', '.join(heads)}" if heads else " HAVING count(*) > 0"
    return f"SELECT {', '.join([*heads, *columns])} FROM {source}{tail}"


def needs_choice(work: Work) -> bool:
    """Whether a unit could be in more groups than it may: not if there are no more public groups than that."""
    if not work.by_unit or work.max_groups is None or not work.keys:
        return False
    return work.known is None or math.prod(len(set(values)) for values in work.known) > work.max_groups


def bounded_groups(work: Work, keys: Sequence[str], columns: Sequence[str], dialect: Dialect, *, repeated: bool) -> str:
    """CTEs up to r, which has the rows of b whose group its unit keeps. `repeated`: b has several rows per unit and group."""
    if not needs_choice(work) or work.max_groups is None:
        return "r AS (SELECT * FROM b)"
    return dialect.keep_groups(work.max_groups, keys, columns, repeated=repeated)
