"""The results of SELECTs around several tables: windows over ROLLUP, SELECT SUM(n) FROM (SELECT ... UNION ALL SELECT ...).

The rows of all parts are one noisy table, and everything around it is post-processing. Each value knows the parts that it is
made from (`Source`), so its margin comes from the noise of all of them. A question that is a part twice has the same noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.answer import Answer, Quote
from dither.exact.numbers import Number
from dither.planning.consistent import Consistent
from dither.planning.outer import compute_all
from dither.planning.outputs import Table, outputs, passed_names
from dither.planning.plan import Field, fields_around
from dither.planning.rows import Group, Row, Rows
from dither.planning.stack import renumbered, traced
from dither.planning.symbols import Margins, Release, leaves
from dither.query.functions.base import Facts
from dither.query.nodes import Outer
from dither.stacked import Stacked, StackedQuote, put_together


@dataclass(frozen=True, repr=False)
class AroundQuote(StackedQuote):
    """The price of what SELECTs around several tables compute."""

    @property
    def schema(self) -> tuple[Field, ...]:
        return _schema(self, super().schema)

    def explain(self) -> str:
        """Shows the plan of each part, and what is computed from them."""
        names = ", ".join(field.name for field in self.schema)
        return f"{super().explain()}\n\n{'then':<14} {names}: computed from these numbers, free"

    def margins(self) -> dict[str, float | None]:
        """Returns the margin to expect of each noisy output; None for what is computed."""
        inner = StackedQuote(**_fields(self))
        own, same = inner.margins(), passed_names(self.stack.above, [field.name for field in inner.schema])
        return {field.name: own.get(same.get(field.name, "")) for field in self.schema if field.noisy}


@dataclass(frozen=True, repr=False)
class Around(Stacked):
    """A noisy table that SELECTs around several tables compute."""

    def margins(self, confidence: Number | None = None) -> dict[str, list[float | None]]:
        """Returns a margin per row for each noisy column; 0 where a value is public."""
        every = self._every(self.at_confidence(confidence))
        wide: dict[str, list[float | None]] = {}
        for column, field in enumerate(self.schema):
            if field.noisy:
                public = [sources[column] is None for sources in self.table.sources]
                wide[field.name] = [0.0 if plain else each for plain, each in zip(public, every[column], strict=True)]
        return wide

    def _every(self, confidence: Fraction) -> list[list[float | None]]:
        """Returns the margins of all columns. Of a consistent table, only counts that are passed on have some."""
        every = releases(self)
        if not self.is_consistent:
            return Margins(every, confidence).all(self.table.sources, self.rows, len(self.columns))
        each = [Consistent(one.plan, one.noisy, confidence) for one in every]
        return [
            [
                each[source.release].of(source, row[column]) if isinstance(source, Group) else None
                for row, sources in zip(self.rows, self.table.sources, strict=True)
                for source in (sources[column],)
            ]
            for column in range(len(self.columns))
        ]

    def consistent(self) -> Stacked:
        """Returns what the SELECTs compute from consistent counts of each part."""
        return around(_inside(self).consistent(), self.stack.above)

    def ranks(self, confidence: Number | None = None) -> dict[str, float]:
        """Returns how many rows' worth the rank of each quantile column may be off."""
        own = _inside(self).ranks(confidence)
        return {name: own[inner] for name, inner in self._passed().items() if inner in own}

    @property
    def schema(self) -> tuple[Field, ...]:
        return _schema(self, super().schema)

    def may_be_empty(self) -> dict[str, list[bool]]:
        """Returns for each noisy column whether a group that a value is made from may be too small."""
        doubtful = [[each.unsure(one.plan, one.noisy, self.confidence) for each in one.columns] for one in releases(self)]
        found = {}
        for column, field in enumerate(self.schema):
            if field.noisy:
                read = [() if (own := sources[column]) is None else leaves(own) for sources in self.table.sources]
                found[field.name] = [any(leaf.place in doubtful[leaf.release][leaf.output] for leaf in each) for each in read]
        return found

    def explain(self) -> str:
        """Shows the plans behind the answer."""
        return f"{super().explain()}\n\n{'then':<14} {', '.join(self.columns)}: computed from these numbers, free"

    def _passed(self) -> dict[str, str]:
        return passed_names(self.stack.above, self.parts[0].columns)

    def _totals(self) -> list[list[bool]]:
        return [[False] * len(self.columns) for _ in self.rows]

    def _quantile(self, column: str) -> str:
        inner = self._passed().get(column)
        return "" if inner is None else _inside(self)._quantile(inner)


def around(inner: Stacked, above: tuple[Outer, ...]) -> Stacked:
    """Computes the SELECTs around an answer that is put together."""
    if not above:
        return inner
    finished = compute_all(above, inner.columns, table_of(inner))
    names = tuple(each.name for each in above[-1].outputs)
    shown = tuple(tuple(row.values[name] for name in names) for row in finished.rows)
    table = Table(names, shown, (), tuple(tuple(row.sources.get(name) for name in names) for row in finished.rows))
    return Around(**{**_fields(inner), "table": table, "stack": replace(inner.stack, above=above)})


def around_quote(inner: StackedQuote) -> StackedQuote:
    """Returns the quote of the SELECTs around an answer that is put together."""
    return AroundQuote(**_fields(inner)) if inner.stack.above else inner


def table_of(answer: Answer) -> Rows:
    """Returns the rows of an answer, with the sources of their values in all its releases."""
    if not isinstance(answer, Stacked):
        return traced(answer.plan, answer.table)
    if isinstance(answer, Around):
        each = zip(answer.rows, answer.table.sources, strict=True)
        made = [
            Row(
                dict(zip(answer.columns, values, strict=True)),
                {name: one for name, one in zip(answer.columns, sources, strict=True) if one is not None},
            )
            for values, sources in each
        ]
        return replace(_flags(answer), rows=tuple(made))
    tables = [table_of(part) for part in answer.parts]
    first, rows = 0, []
    for part, table in zip(answer.parts, tables, strict=True):
        rows.append(renumbered(table.rows, answer.columns, first))
        first += len(list(_leaves(part)))
    names = [part.columns for part in answer.parts]
    return answer.stack.put(tables, names, [rows[part][row] for part, row in answer.picked])


def releases(answer: Answer) -> list[Release]:
    """Returns the noisy results that an answer is made from, in order."""
    found: list[Release] = []
    programs: dict[tuple[str, int], int] = {}
    for leaf, key in _leaves(answer):
        program = programs.setdefault(key, len(programs))
        same = (each for each in found if each.program == program and _equal(each, leaf))
        noise = next((each.noise for each in same), len(found))
        found.append(Release(leaf.plan, leaf.noisy, outputs(leaf.plan), noise, program))
    return found


def _equal(release: Release, leaf: Answer) -> bool:
    """Whether a release has the same noisy numbers in the same order."""
    if release.noisy.keys != leaf.noisy.keys or release.plan.noises != leaf.plan.noises:
        return False
    return all(np.array_equal(*pair) for pair in zip(release.noisy.cells, leaf.noisy.cells, strict=True))


def _leaves(answer: Answer, key: tuple[str, int] | None = None) -> Iterator[tuple[Answer, tuple[str, int]]]:
    """Returns the answers that have one release, each with what its noise is known by: the program and the place in it."""
    if not isinstance(answer, Stacked):
        yield answer, key or (answer.program.identity, 0)
        return
    levels = answer.program.levels is not None
    for number, part in enumerate(answer.parts):
        yield from _leaves(part, (answer.program.identity, number) if levels else None)


def _flags(node: Quote | Answer) -> Rows:
    """Returns a table without rows: which columns are noisy, and what noise decides."""
    if not isinstance(node, (StackedQuote, Stacked)):
        return traced(node.plan)
    names = [[field.name for field in part.schema] for part in node.parts]
    table = node.stack.put([_flags(part) for part in node.parts], names)
    return compute_all(node.stack.above, names[0], table) if isinstance(node, (AroundQuote, Around)) else table


def _schema(node: AroundQuote | Around, inner: tuple[Field, ...]) -> tuple[Field, ...]:
    """Returns the columns of the last SELECT around a table with these columns."""
    facts = [Facts(field.kind, nullable=field.nullable, whole=field.kind == "int") for field in inner]
    names = [[field.name for field in part.schema] for part in node.parts]
    return fields_around(node.stack.above, facts, inner, node.stack.put([_flags(part) for part in node.parts], names))


def _inside(answer: Around) -> Stacked:
    """Returns what the SELECTs are around."""
    table, stack = put_together(answer.parts, answer.picked), replace(answer.stack, above=())
    return Stacked(**{**_fields(answer), "table": table, "stack": stack})


def _fields(node: Quote | Answer) -> dict[str, Any]:
    return {field.name: getattr(node, field.name) for field in fields(node)}
