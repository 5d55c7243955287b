"""Prints two Works as one statement, where the second reads what the first computes on the way: units and their groups.

What an answer leaves out is found from one row for each unit and group (`Pairs` in query/work.py). The answer's own statement
has these rows as `b`: the same rows, the same unit, and only known groups. So its statement counts there, too, and the second
statement reads b instead of the tables. The integers of both are those of two statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dither.engines.sql.dialect import Dialect
from dither.engines.sql.frame import Frame
from dither.engines.sql.relations import Schema, relation
from dither.engines.sql.work import Results, Row, Statement, statements, sums_of
from dither.query.nodes import Aggregate, Column, Compute, Filter, Named, PerUnit, Relation, Scan
from dither.query.work import UNIT, Sums, Work

_PAIRS = "b"  # the name in the statement of the first Work


@dataclass(frozen=True)
class Joint:
    """A statement for two: `first` has the sums of a Work, `second` all of another, which reads the first one's pairs."""

    first: Statement
    second: Statement

    @property
    def text(self) -> str:
        mine, other = (", ".join(["NULL"] * each.width) for each in (self.first, self.second))
        return (
            f"{self.first.head} SELECT 0 AS part, m.*, {other} FROM ({self.first.body}) AS m "
            f"UNION ALL SELECT 1 AS part, {mine}, o.* FROM ({self.second.body}) AS o"
        )

    def read(self, rows: Iterable[Row], found: Results, second: Results) -> None:
        """Reads the rows of both into their results."""
        end = 1 + self.first.width
        both = list(rows)
        self.first.read((row[1:end] for row in both if row[0] == 0), found)
        self.second.read((row[end:] for row in both if row[0] == 1), second)


def join(work: Work, other: Work, schema: Schema, dialect: Dialect, *, wide: bool = False) -> Joint | None:
    """Returns the statement of both. None if the pairs are not what the first one computes, which depends on the Works only."""
    pairs, sums = other.pairs, [place for place, measure in enumerate(work.measures) if isinstance(measure, Sums)]
    if pairs is None or pairs.of != work or not (sums or work.count_units) or other.by_unit:
        return None
    source, grouped = relation(work.source, schema, dialect), pairs.relation.source
    frame = Frame(source, dialect)
    if not isinstance(grouped, PerUnit) or not _same_groups(work, grouped, frame):
        return None
    first = sums_of(work, source, sums, dialect, wide=wide, counts=grouped.aggregates)
    columns = [Named(UNIT, Column(f"{_PAIRS}.u"))]
    columns += [Named(each.name, Column(f"{_PAIRS}.n{place}")) for place, each in enumerate(grouped.aggregates)]
    over = _over(other.source, pairs.relation, Compute(Scan(_PAIRS, _PAIRS), tuple(columns)))
    kinds = {"u": frame.print(Column(UNIT)).kind} | {f"n{place}": "int" for place, _ in enumerate(grouped.aggregates)}
    second = statements(replace(other, source=over), lambda table: list(kinds.items()), dialect, wide=wide)
    return Joint(first, second[0]) if len(second) == 1 and second[0].width else None


def _same_groups(work: Work, grouped: PerUnit, frame: Frame) -> bool:
    """Whether b has the rows of `grouped`. In b, fractions of a real key are NULL: then NULL must not be a known value."""
    keys, known = [key.expression for key in work.keys], work.known or [(None,)] * len(work.keys)
    same = grouped.source == work.source and {key.expression for key in grouped.keys} == {*keys, Column(UNIT)}
    whole = (None not in values or frame.print(key).kind != "real" for key, values in zip(keys, known, strict=True))
    return same and all(map(_counts, grouped.aggregates)) and all(whole)


def _counts(aggregate: Aggregate) -> bool:
    return aggregate.function == "count" and aggregate.where is None


def _over(source: Relation, part: Filter, instead: Relation) -> Relation:
    """Returns the source with a part replaced. Between the two, each relation has one source."""
    if source is part:
        return instead
    if not isinstance(source, (Filter, Compute, PerUnit)):
        raise TypeError("pairs are a part of the source")
    return replace(source, source=_over(source.source, part, instead))
