"""Finds the earlier cells that make up the aggregates of a question.

A cell adds up a whole number per row: 1, or a value on its grid, or what NULL counts for. As a function of the row it is a
weighted sum of a few parts,

    1        of every row
    N(x)     1 where x is not NULL; the same as 1 if x never is
    q(grid)  the value on the grid where x is not NULL, and its square

Counts with FILTERs are cells that each row is in one of, so the last is what the others leave of 1.

An aggregate is a weighted sum of cells of the question's own plan. It is made up of earlier cells if a weighted sum of them
is the same function: COUNT(*) = (A + B + C)/R of a joint release (releases/sums.py). Equal grids mean equal clipping. Where
bounds can cut a unit, both must also be cut alike: by the number of the same rows, to the same `max_rows`.

All in exact rationals, so the earlier numbers estimate exactly what was asked, and differ by noise alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.planning.free.stored import same_text
from dither.query.nodes import Call, Expression, Literal
from dither.query.work import Cell, Sums

Function = Mapping[str, Fraction]  # of a row: the weight of each part, by its text
_ONE = "1"
_ZERO = Fraction(0)


@dataclass(frozen=True)
class Reader:
    """Reads cells as functions of a row. `nullable`: whether an expression may be NULL; `can_cut`: bounds can cut a unit."""

    nullable: Callable[[Expression], bool]
    can_cut: bool

    def functions(self, sums: Sums) -> list[Function]:
        """Returns the function of each cell. Functions under different cuts have no part in common."""
        each = [self._cell(cell) for cell in sums.cells]
        if _is_partition(sums):  # every row is in one cell, so the last one has the rest
            whole = Fraction(sums.cells[-1].linear)
            each[-1] = _sum([({_ONE: Fraction(1)}, whole), *((part, Fraction(-1)) for part in each[:-1])])
        where = None if sums.where is None else same_text(sums.where)
        if self.can_cut:
            return [_marked(function, f"{sums.max_rows} of {where}:") for function in each]
        if where is None:
            return each
        x = self._not_null(sums)
        if x is None:
            return [_marked(function, f"where {where}:") for function in each]
        present = self._present(x)
        return [_sum([(present if part == _ONE else {part: Fraction(1)}, w) for part, w in f.items()]) for f in each]

    def _cell(self, cell: Cell) -> Function:
        if cell.argument is None:
            return _sum([({_ONE: Fraction(1)}, Fraction(cell.constant))])
        marked = _marks_present(cell)
        if marked is not None:
            return _sum([(self._present(marked), Fraction(cell.linear))])
        grid, present = same_text(cell.argument), self._present(cell.argument.expression)
        null = Fraction(cell.null)
        return _sum(
            [
                (present, cell.constant - null),
                ({_ONE: Fraction(1)}, null),
                ({f"q{grid}": Fraction(1)}, Fraction(cell.linear)),
                ({f"s{grid}": Fraction(1)}, Fraction(cell.square)),
            ]
        )

    def _present(self, x: Expression) -> Function:
        """Returns N(x)."""
        return {f"n{same_text(x)}" if self.nullable(x) else _ONE: Fraction(1)}

    @staticmethod
    def _not_null(sums: Sums) -> Expression | None:
        """Returns x if rows count where x is not NULL, and all cells are about x: the condition changes constants alone."""
        x = _never_null(sums.where)
        about = {cell.argument.expression for cell in sums.cells if cell.argument is not None}
        return x if about <= {x} else None


def _marks_present(cell: Cell) -> Expression | None:
    """Returns x if the cell counts the rows where x is not NULL, as CASE WHEN x IS NOT NULL THEN 1 ELSE 0 END."""
    cases = _cases(cell)
    if len(cases) != 3 or cases[1:] != (Literal(1), Literal(0)):
        return None
    return _never_null(cases[0])


def _never_null(condition: Expression | None) -> Expression | None:
    """Returns x of the condition that x is not NULL."""
    inner = condition.arguments[0] if isinstance(condition, Call) and condition.name == "not" else None
    return inner.arguments[0] if isinstance(inner, Call) and inner.name == "is_null" else None


def _cases(cell: Cell) -> tuple[Expression, ...]:
    """Returns the arguments of a CASE that is 0 or 1 and never NULL, of which the cell adds up a multiple; else none."""
    grid = cell.argument
    plain = (
        grid is not None
        and (grid.low, grid.step, grid.steps) == (Fraction(0), Fraction(1), 1)
        and not (cell.constant or cell.square or cell.null)
    )
    if grid is None or not plain or not isinstance(grid.expression, Call) or grid.expression.name != "case":
        return ()
    results = (*grid.expression.arguments[1::2], grid.expression.arguments[-1])
    return grid.expression.arguments if set(results) <= {Literal(0), Literal(1)} else ()


def _is_partition(sums: Sums) -> bool:
    """Whether the cells are the parts of all rows (releases/parts.py): each counts where its condition is the first that is
    true, and the last where none is."""
    each = [_cases(cell) for cell in sums.cells]
    if len(each) < 2 or not all(each) or len({cell.linear for cell in sums.cells}) > 1:
        return False
    conditions = each[-1][:-1:2]
    before = [part for condition in conditions for part in (condition, Literal(0))]
    parts = [(*before[: 2 * place], condition, Literal(1), Literal(0)) for place, condition in enumerate(conditions)]
    return each == [*parts, (*before, Literal(1))]


def _marked(function: Function, mark: str) -> Function:
    return {mark + part: weight for part, weight in function.items()}


def _sum(parts: Sequence[tuple[Function, Fraction]]) -> Function:
    total: dict[str, Fraction] = {}
    for function, times in parts:
        for part, weight in function.items():
            total[part] = total.get(part, _ZERO) + weight * times
    return {part: weight for part, weight in total.items() if weight}


def weighted(functions: Sequence[Function], weights: Sequence[Fraction]) -> Function:
    """Returns a weighted sum of functions."""
    return _sum(list(zip(functions, weights, strict=True)))


def solve(wanted: Function, functions: Sequence[Function]) -> tuple[Fraction, ...] | None:
    """Returns weights with which the functions add up to the wanted one, exactly; None if there are none.

    >>> a, b = {"q": Fraction(1)}, {"1": Fraction(120), "q": Fraction(-1)}
    >>> solve({"1": Fraction(1)}, [a, b])
    (Fraction(1, 120), Fraction(1, 120))
    >>> solve({"n": Fraction(1)}, [a, b]) is None
    True
    """
    parts = sorted({part for function in (wanted, *functions) for part in function})
    rows = [[f.get(part, _ZERO) for f in functions] + [wanted.get(part, _ZERO)] for part in parts]
    pivots: list[int] = []
    for column in range(len(functions)):
        done = len(pivots)
        chosen = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if chosen is None:
            continue
        rows[done], rows[chosen] = rows[chosen], rows[done]
        first = [value / rows[done][column] for value in rows[done]]
        rows = [row if i == done else _less(row, first, row[column]) for i, row in enumerate(rows)]
        rows[done] = first
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    weights = [_ZERO] * len(functions)
    for row, column in zip(rows, pivots, strict=False):
        weights[column] = row[-1]
    return tuple(weights)


def _less(row: Sequence[Fraction], other: Sequence[Fraction], times: Fraction) -> list[Fraction]:
    return [value - times * by for value, by in zip(row, other, strict=True)]
