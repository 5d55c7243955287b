"""Every aggregate function: its words in SQL, what it is taken of, and where it may stand.

A private aggregate is one entry here and one kind of release in planning/releases/.
"""

from __future__ import annotations

from dataclasses import dataclass

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
