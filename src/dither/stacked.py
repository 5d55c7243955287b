"""The results of questions whose answer is several tables put together: UNION, ROLLUP, CUBE and GROUPING SETS.

Each part is an answer of its own, with its own noise and margins. What is done with them together is post-processing: columns
are named as in the first part, UNION without ALL drops equal rows, ORDER BY, OFFSET and LIMIT are about all rows. around.py
has the SELECTs around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as stored
from functools import cached_property

from dither.answer import COUNTS, Answer, Quote, left_out_lines
from dither.exact.numbers import Number, show_rounded
from dither.planning.divided import gain
from dither.planning.left_out import LeftOut
from dither.planning.outputs import Table, Value
from dither.planning.plan import Field
from dither.planning.program import Batch
from dither.planning.stack import PLAIN, Stack
from dither.query.nodes import Literal

Picked = Sequence[tuple[int, int]]  # a part, and a row of it
Pick = Callable[[Sequence[Answer]], Picked]


@dataclass(frozen=True, repr=False)
class StackedQuote(Quote):
    """The price of an answer that is put together, and the margins to expect in each part."""

    parts: tuple[Quote, ...] = ()
    stack: Stack = PLAIN

    def explain(self) -> str:
        """Shows the whole price and the plan of each part."""
        lines = [f"{'in all':<14} {self.price} for {len(self.parts)} parts, charged before any row is read"]
        lines += [f"{name:<14} {text}" for name, text in (*self.further, *_fitted(self.program), *left_out_lines(self.program))]
        for number, part in enumerate(self.parts, start=1):
            keys = ", ".join(key.name for key in part.plan.query.keys)
            lines += ["", f"part {number}" if self.program.levels is None else f"by ({keys})", part.explain()]
        return "\n".join(lines)

    @property
    def schema(self) -> tuple[Field, ...]:
        return schema([part.schema for part in self.parts], [_unknown(part) for part in self.parts])

    def margins(self) -> dict[str, float | None]:
        """Returns the largest margin to expect of each noisy output."""
        found: dict[str, float | None] = {}
        for part in self.parts:
            own = part.margins()
            for name, field in zip((each.name for each in self.schema), part.schema, strict=True):
                if field.name in own:
                    margin, before = own[field.name], found.get(name, 0.0)
                    found[name] = None if margin is None or before is None else max(margin, before)
        return found


@dataclass(frozen=True, repr=False)
class Stacked(Answer):
    """A noisy table that was put together from the tables of its parts."""

    parts: tuple[Answer, ...] = ()
    picked: tuple[tuple[int, int], ...] = ()
    stack: Stack = PLAIN
    pick: Pick = stored(default=lambda parts: (), compare=False)  # which rows of the parts are shown

    def consistent(self) -> Stacked:
        """Returns the answer with the counts of each part made consistent: each grouping set, each SELECT of a UNION."""
        parts = tuple(part.consistent() for part in self.parts)
        picked = tuple(self.pick(parts))
        return replace(self, parts=parts, picked=picked, table=put_together(parts, picked), is_consistent=True)

    def margins(self, confidence: Number | None = None) -> dict[str, list[float | None]]:
        """Returns a margin per row for each column that is noisy in some part; 0 where it is not."""
        each = [[part.margins(confidence).get(name) for name in part.columns] for part in self.parts]
        found: dict[str, list[float | None]] = {}
        for column, name in enumerate(self.columns):
            if any(own[column] is not None for own in each):
                found[name] = [0.0 if (own := each[part][column]) is None else own[row] for part, row in self.picked]
        return found

    def ranks(self, confidence: Number | None = None) -> dict[str, float]:
        """Returns how many rows' worth the rank of each quantile column may be off, in the part where that is most."""
        found: dict[str, float] = {}
        for part in self.parts:
            own = part.ranks(confidence)
            for name, theirs in zip(self.columns, part.columns, strict=True):
                if theirs in own:
                    found[name] = max(found.get(name, 0.0), own[theirs])
        return found

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What the bounds left out, of all parts."""
        whole = () if self.program.levels is None else self.program.left_out(self.released, self.confidence)
        return tuple(dict.fromkeys((*whole, *(each for part in self.parts for each in part.left_out))))

    @property
    def schema(self) -> tuple[Field, ...]:
        return schema([part.schema for part in self.parts], [_unknown(part) for part in self.parts])

    def explain(self) -> str:
        """Shows the plans behind the answer."""
        texts = (f"part {number}\n{part.explain()}" for number, part in enumerate(self.parts, start=1))
        return "\n\n".join(texts)

    def _far_off(self) -> tuple[list[str], list[tuple[str, int]]]:
        """Returns the same of all parts, each once."""
        each = [super()._far_off(), *(part._far_off() for part in self.parts)]
        reasons, bounds = (dict.fromkeys(itertools.chain.from_iterable(some)) for some in zip(*each, strict=True))
        return list(reasons), list(bounds)

    def cells(self) -> list[list[str]]:
        """Shows every cell, with its margin. A key that a row is a total over is shown as (all), unlike a key that is NULL."""
        marks = zip(super().cells(), self._totals(), strict=True)
        return [["(all)" if total else text for text, total in zip(*row, strict=True)] for row in marks]

    def _totals(self) -> list[list[bool]]:
        """Returns for each cell whether it is a key that its row is a total over."""
        each = []
        for part in self.parts:
            none = [False] * len(self.columns) if self.program.levels is None else _unknown(part)
            each.append(part._totals() if isinstance(part, Stacked) else [none] * len(part))
        return [each[part][row] for part, row in self.picked]

    def may_be_empty(self) -> dict[str, list[bool]]:
        each = [part.may_be_empty() for part in self.parts]
        found = {}
        for column, name in enumerate(self.columns):
            names = [part.columns[column] for part in self.parts]
            if any(theirs in own for theirs, own in zip(names, each, strict=True)):
                found[name] = [names[part] in each[part] and each[part][names[part]][row] for part, row in self.picked]
        return found

    def _not_included(self) -> list[str]:
        texts = dict.fromkeys(text for part in self.parts for text in part._not_included())
        counts = [text.removeprefix(COUNTS) for text in texts if text.startswith(COUNTS)]
        once = [f"{COUNTS}{' or '.join(counts)}"] if counts else []
        first = next((i for i, text in enumerate(texts) if text.startswith(COUNTS)), 0)
        others = [text for text in texts if not text.startswith(COUNTS)]
        return [*others[:first], *once, *others[first:]]

    def _counted(self) -> list[str]:
        return list(dict.fromkeys(text for part in self.parts for text in part._counted()))

    def _hidden(self) -> list[str]:
        return list(dict.fromkeys(text for part in self.parts for text in part._hidden()))

    def _quantile(self, column: str) -> str:
        place = self.columns.index(column)
        return next((text for part in self.parts if (text := part._quantile(part.columns[place]))), "")


def put_together(parts: Sequence[Answer], picked: Picked) -> Table:
    """Returns the rows that were picked, under the names of the first part."""
    rows: tuple[tuple[Value, ...], ...] = tuple(parts[part].rows[row] for part, row in picked)
    return Table(parts[0].columns, rows, tuple(row for _, row in picked))


def schema(parts: Sequence[Sequence[Field]], unknown: Sequence[Sequence[bool]]) -> tuple[Field, ...]:
    """Returns the columns of all parts together. `unknown`: a column that is NULL in a part has the kind of the others."""
    found = []
    for place, first in enumerate(parts[0]):
        fields = [part[place] for part in parts]
        kinds = [field.kind for field, null in zip(fields, (part[place] for part in unknown), strict=True) if not null]
        kind = "real" if "real" in kinds and set(kinds) <= {"int", "real"} else next(iter(kinds), first.kind)
        noisy, nullable, long = (any(getattr(field, name) for field in fields) for name in ("noisy", "nullable", "long"))
        found.append(replace(first, kind=kind, noisy=noisy, nullable=nullable, long=kind == "int" and long))
    return tuple(found)


def _unknown(part: Quote | Answer) -> list[bool]:
    """Returns whether each column of a part is a bare NULL."""
    above = part.stack.above if isinstance(part, (Stacked, StackedQuote)) else part.plan.query.above
    if isinstance(part, (Stacked, StackedQuote)) and not above:
        each = [_unknown(one) for one in part.parts]
        return [all(column) for column in zip(*each, strict=True)]
    outputs = above[-1].outputs if above else part.plan.query.outputs
    return [isinstance(output.expression, Literal) and output.expression.value is None for output in outputs]


def _fitted(program: Batch) -> list[tuple[str, str]]:
    """Returns what a quote says about tables that are put together."""
    if program.levels is None or not program.levels.fitted:
        return []
    less = gain(program.plans[: program.own])
    return [("together", f"tables are put together by least squares: {show_rounded(less)} times the error of an even split")]
