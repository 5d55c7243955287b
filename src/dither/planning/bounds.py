"""Sets the bounds of one question: the most rows in one group, and the most groups, for which one unit counts.

The catalog's `max_rows` and `max_groups` are defaults. A question may name its own, up to the caps of the tables it reads: the
smallest cap counts. Its bounds are enforced like the catalog's and are part of its plan, so two bounds are two questions, and
the default written out is the same question. Where neither names a bound, or the question says "auto", auto.py chooses one.
A default is held to the caps too: of UNION ALL and of joins it is made from those of several tables, and may exceed one's cap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dither.catalog.values import Catalog, Rows
from dither.errors import ArgumentError, Fix, Name
from dither.exact.numbers import whole
from dither.query.resolve.relations import Resolved

AUTO = "auto"
Bound = int | str | None  # a number or AUTO; None: as the catalog declares, or AUTO if it declares none


def check_bound(value: int | str, name: str) -> Bound:
    """Checks the argument `max_rows` or `max_groups` of a question.

    >>> check_bound(20, "max_rows"), check_bound("auto", "max_groups")
    (20, 'auto')
    """
    if isinstance(value, str) and value != AUTO:
        raise ArgumentError(
            f"{name} must be a whole number or {AUTO}, and it is {value[:40]!r}.",
            fix=Fix(f"give {{it}} a number such as 20, or {AUTO}.", it=Name(name)),
        )
    return value if isinstance(value, str) else whole(value, name, least=1)


def bounded(query: Resolved, catalog: Catalog, max_rows: Bound, max_groups: Bound) -> Resolved:
    """Returns the question with the bounds that it names: None for those to be chosen, as where the catalog declares none.

    Refuses bounds above a cap, and bounds where rows are protected.
    """
    given = {name: bound for name, bound in (("max_rows", max_rows), ("max_groups", max_groups)) if bound is not None}
    if given and not query.by_unit:
        _refuse_by_row(query, next(iter(given)))
    for name, bound in given.items():
        if isinstance(bound, int):
            _check_cap(query, catalog, name, bound)
    named: dict[str, Any] = {name: _capped(query, catalog, name) for name in ("max_rows", "max_groups")}
    named |= {name: None if bound == AUTO else bound for name, bound in given.items()}
    if max_rows not in (None, 1):
        named["rows"] = Rows()  # a declared number of rows is about people who have one row each
    if query.one_group:
        named.pop("max_groups", None)
    return replace(query, **named)


def _capped(query: Resolved, catalog: Catalog, name: str) -> int | None:
    """Returns the catalog's default, at most the cap; None if there is no default."""
    default: int | None = getattr(query, name)
    cap = cap_of(query, catalog, name)
    return default if default is None or cap is None else min(default, cap[0])


def cap_of(query: Resolved, catalog: Catalog, name: str) -> tuple[int, str] | None:
    """Returns the smallest cap on a bound among the tables that the question reads, and that table; None if there is none."""
    caps = [(getattr(catalog.tables[table].caps, name), table) for table in query.tables]
    return min(((cap, table) for cap, table in caps if cap is not None), default=None)


def _check_cap(query: Resolved, catalog: Catalog, name: str, bound: int) -> None:
    cap = cap_of(query, catalog, name)
    if cap is not None and bound > cap[0]:
        raise ArgumentError(
            f"{name} is {bound}, and a question about {cap[1]} may say at most {cap[0]}.",
            where=f"[tables.{cap[1]}.caps] {name} = {cap[0]}",
            fix=Fix(f"give {{it}} a value of {cap[0]} or less, or let the curator raise the cap.", it=Name(name)),
        )


def _refuse_by_row(query: Resolved, name: str) -> None:
    table = query.tables[0]
    raise ArgumentError(
        f"{name} bounds the rows of one person, and in {table} every row is a person of its own.",
        where=f'[tables.{table}] unit = "row"',
        fix=Fix("leave {it} out.", it=Name(name)),
    )
