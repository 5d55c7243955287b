"""Plans a list of public keys: no noise, no price, and no private row.

The keys of a list about private tables are declared (resolve/listing.py), so nothing is computed. Those of public tables are
read by the engine, from public tables alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan, schema
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.planning.releases.keys import MOST_GROUPS, combinations, key_order, public_keys
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import Pure
from dither.privacy.neighbours import BY_NAME
from dither.query.resolve.relations import Resolved
from dither.query.work import Cell, Group, Sums, Work

FREE = Price(Fraction(0))
_COUNT = Sums((Cell(constant=1),), 1)


def plan_list(question: Resolved, catalog: Catalog) -> Batch:
    """Returns the plan of a list. It has work for the engine only if all its tables are public."""
    query, facts = question.query, question.operands().keys
    known = None if question.public else public_keys(query.keys, facts)
    groups = None if known is None else len(combinations(known))
    public = question.public and all(catalog.tables[name].public for name in question.tables)
    if not public and known is None:
        raise TypeError("the keys of a list are public")
    work = Work(query.source, query.keys, known, False, None, (_COUNT,) if public else ())
    bounding = Bounding(1, 1, groups, BY_NAME[catalog.neighbours])
    columns = schema(query, facts, known, (), (), {})
    made = Plan(query, work, bounding, (), (), None, FREE, Pure(0), question.unit, (), schema=columns)
    return Batch((made,), question.tables, "list")


def read_list(plan: Plan, run: Callable[[Work], Sequence[Group]]) -> Noisy:
    """Returns the listed keys, in order. `run` is called for public tables only."""
    if plan.work.known is not None:
        return Noisy(tuple(combinations(plan.work.known)), ())
    keys = sorted((group.key for group in run(plan.work)), key=key_order)
    if len(keys) > MOST_GROUPS:
        raise QueryError(f"The list has more than {MOST_GROUPS} rows.", fix="list fewer columns, or add a condition.")
    return Noisy(tuple(keys), ())
