"""Plans ROLLUP, CUBE and GROUPING SETS: one plan for each grouping set, at a share of the price.

    one Work, by all keys, bounded once ─▶ exact groups ─▶ added up for each set ─▶ noise of each set

A unit is bounded at the finest level: at most `max_groups` groups by all keys, `max_rows` rows' worth in each. A coarser group
is the sum of exact finest groups, so it moves by more (sensitivity.py). Each set gets noise of its own, for what its groups
move by, at a share of the price (divided.py). The tables are then put together by least squares (fitted.py).

That needs public keys, and numbers that add up. A count of people or of distinct values, and a quantile, do not: a person who
is in two groups is one person in their total. And a total cannot be added up from groups that were not shown. Such questions
are planned as one question for each set, each bounded by its own keys.

A set is an ordinary query: in its outputs, HAVING and ORDER BY the keys that it lacks are NULL, and GROUPING is a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dither.catalog.values import Catalog, Key
from dither.planning.divided import Level, alone, divided
from dither.planning.plan import Plan, measured, plan, schema
from dither.planning.price import Price
from dither.planning.releases.base import Release
from dither.planning.releases.count import Units
from dither.planning.releases.keys import MOST_GROUPS
from dither.planning.sensitivity import Bounding
from dither.privacy.neighbours import BY_NAME
from dither.query.nodes import Call, Column, Expression, Literal, Named, Outer, Query, grouping_mark
from dither.query.resolve.relations import Resolved
from dither.query.work import Group, Sums


@dataclass(frozen=True)
class Levels:
    """How many plans of a program are grouping sets, how many of their rows are shown together, and the SELECTs around them."""

    count: int
    limit: int | None = None
    offset: int = 0
    together: bool = True  # bounded once, by all keys
    above: tuple[Outer, ...] = ()
    fitted: bool = False  # put together by least squares


def finest(question: Resolved) -> Resolved:
    """Returns the question by all keys."""
    return _by(question, tuple(range(len(question.query.keys)))) if question.query.sets else question


def plan_levels(question: Resolved, catalog: Catalog, price: Price, gaussian: bool | None = None) -> tuple[Plan, ...]:
    """Plans a question: one plan, or one for each grouping set."""
    sets = question.query.sets
    if not sets:
        return (plan(question, catalog, price, gaussian),)
    share = Price(price.epsilon / len(sets), price.delta / len(sets))
    if not together(question, catalog):
        return tuple(plan(_by(question, each), catalog, share, gaussian) for each in sets)
    fine = plan(finest(question), catalog, share, gaussian)
    if not fits(question):
        return tuple(_level(question, fine, each, alone(fine, each, share, gaussian)) for each in sets)
    levels = divided(fine, sets, price, gaussian)
    return tuple(_level(question, fine, each, level) for each, level in zip(sets, levels, strict=True))


def fits(question: Resolved) -> bool:
    """Whether the tables of grouping sets are put together by least squares (fitted.py)."""
    return len(set(question.query.sets)) > 1


def levels_of(question: Resolved, catalog: Catalog) -> Levels | None:
    """Returns how the grouping sets of a question are shown; None if it has none."""
    query = question.query
    if not query.sets:
        return None
    once = together(question, catalog)
    return Levels(len(query.sets), query.limit, query.offset, once, query.above, once and fits(question))


def together(question: Resolved, catalog: Catalog) -> bool:
    """Whether all grouping sets can be added up from the groups by all keys. It does not depend on the price."""
    values = [facts.values for facts in question.operands().keys]
    if any(each is None for each in values) or math.prod(len(each or ()) for each in values) > MOST_GROUPS:
        return False
    bounding = Bounding(question.max_rows or 1, question.max_groups or 1, None, BY_NAME[catalog.neighbours])
    return all(_adds_up(release, question) for release in measured(finest(question), bounding)[0].releases)


def _adds_up(release: Release, question: Resolved) -> bool:
    """Whether the release of a total is the sum of those of its groups, with noise for what `Bounding` says.

    People add up only where each is in one group, whatever the bounds.
    """
    people = isinstance(release, Units) and not question.one_group
    return isinstance(release.measure, Sums) and type(release).pure is Release.pure and not people


def _level(question: Resolved, fine: Plan, kept: tuple[int, ...], level: Level) -> Plan:
    """Returns the plan of one grouping set: the work of the finest one, with noise for the groups of this set."""
    known = fine.work.known or ()
    own = _by(question, kept)
    keys = own.operands().keys
    return replace(
        fine,
        query=own.query,
        bounding=level.bounding,
        noises=level.noises,
        price=level.price,
        loss=level.loss,
        level=kept,
        schema=schema(
            own.query, keys, tuple(known[place] for place in kept), fine.readings, level.noises, {}
        ),  # sums need no kinds
    )


def rolled(groups: Sequence[Group], kept: tuple[int, ...]) -> list[Group]:
    """Returns the groups of one grouping set: sums of the exact finest ones."""
    found: dict[tuple[Key, ...], list[tuple[int, ...]]] = {}
    for group in groups:
        key = tuple(group.key[place] for place in kept)
        own = [each for each in group.measures if isinstance(each, tuple)]  # all of them are sums: `_adds_up`
        before = found.get(key)
        found[key] = own if before is None else [_added(*pair) for pair in zip(before, own, strict=True)]
    return [Group(key, None, tuple(measures)) for key, measures in found.items()]


def bounded_groups(plan: Plan) -> int | None:
    """Returns the number of groups that each unit is bounded in, if it is public."""
    if plan.level is None or plan.work.known is None:
        return plan.bounding.groups
    return math.prod(map(len, plan.work.known))


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


# --- a grouping set as a query -----------------------------------------------------------------------------------


def _by(question: Resolved, kept: tuple[int, ...]) -> Resolved:
    """Returns the question by some of its keys. Rows are limited later, in all sets together."""
    query = question.query
    values: dict[str, Expression] = {}
    for number, places in enumerate(query.groupings):
        bits = "".join("0" if place in kept else "1" for place in places)
        values[grouping_mark(number)] = Literal(int(bits, 2))
    for place, key in enumerate(query.keys):
        if place not in kept:
            values[key.name] = Literal(None)
    return replace(question, query=_filled(query, tuple(query.keys[place] for place in kept), values))


def _filled(query: Query, keys: tuple[Named, ...], values: dict[str, Expression]) -> Query:
    return replace(
        query,
        keys=keys,
        outputs=tuple(Named(each.name, _with(each.expression, values)) for each in query.outputs),
        having=None if query.having is None else _with(query.having, values),
        order=tuple(replace(each, expression=_with(each.expression, values)) for each in query.order),
        limit=None,
        offset=0,
        sets=(),
        groupings=(),
        above=(),
    )


def _with(expression: Expression, values: dict[str, Expression]) -> Expression:
    if isinstance(expression, Column):
        return values.get(expression.name, expression)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_with(each, values) for each in expression.arguments))
    return expression
