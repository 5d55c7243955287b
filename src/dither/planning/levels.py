"""Plans ROLLUP, CUBE and GROUPING SETS: one plan for each grouping set, at a share of the price.

    one Work, by all keys, bounded once ─▶ exact groups ─▶ added up for each set ─▶ noise of each set

A unit is bounded at the finest level: at most `max_groups` groups by all keys, `max_rows` rows' worth in each. A coarser group
is the sum of exact finest groups, so it moves by more (sensitivity.py). Each set gets noise of its own, for what its groups
move by. The tables are then put together by least squares (fitted.py), and the shares of the price are those that are best
after that. Every grouping set counts the same: the objective is the sum over sets of the variance of a cell. With geometric
noise a set may get almost nothing, if its table is as good when added up from a finer one. With Gaussian noise all tables are
one vector, whose price is that of the whole: k tables have the noise of sqrt(k) prices, not of k.

That needs public keys, and numbers that add up. A count of people or of distinct values, and a quantile, do not: a person who
is in two groups is one person in their total. And a total cannot be added up from groups that were not shown. Such questions
are planned as one question for each set, each bounded by its own keys.

A set is an ordinary query: in its outputs, HAVING and ORDER BY the keys that it lacks are NULL, and GROUPING is a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dither.catalog.values import Catalog, Key
from dither.errors import ArgumentError, QueryError
from dither.mechanisms.calibration import Share, rho_together
from dither.planning.plan import Plan, measured, plan, schema
from dither.planning.price import Price, choose, shares
from dither.planning.releases.base import Noise, Release
from dither.planning.releases.count import Units
from dither.planning.releases.keys import MOST_GROUPS
from dither.planning.sensitivity import Bounding
from dither.privacy.losses import Approx, Loss, Pure
from dither.privacy.neighbours import BY_NAME
from dither.query.nodes import Call, Column, Expression, Literal, Named, Outer, Query, grouping_mark
from dither.query.resolve.relations import Resolved
from dither.query.work import Group, Sums
from dither.workloads.combined import COARSE, best_shares, variance, versions
from dither.workloads.residuals import in_shares


@dataclass(frozen=True)
class Levels:
    """How many plans of a program are grouping sets, how many of their rows are shown together, and the SELECTs around them."""

    count: int
    limit: int | None = None
    offset: int = 0
    together: bool = True  # bounded once, by all keys
    above: tuple[Outer, ...] = ()
    fitted: bool = False  # put together by least squares


@dataclass(frozen=True)
class Level:
    """The noise of one grouping set, and its price."""

    bounding: Bounding
    noises: tuple[Noise, ...]
    price: Price
    loss: Loss


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
        return tuple(_level(question, fine, each, _alone(fine, each, share, gaussian)) for each in sets)
    choices = _divided(fine, sets, price, gaussian)
    return tuple(_level(question, fine, each, choice) for each, choice in zip(sets, choices, strict=True))


def fits(question: Resolved) -> bool:
    """Whether the tables of grouping sets are put together by least squares (fitted.py)."""
    return len(set(question.query.sets)) > 1


def _alone(fine: Plan, kept: tuple[int, ...], price: Price, gaussian: bool | None) -> Level:
    """Returns the noise of one grouping set at its own price."""
    bounding = _bounding(fine, kept)
    choice = choose([noise.of for noise in fine.noises], bounding, price, False, gaussian)
    return Level(bounding, choice.noises, price if choice.uses_delta else Price(price.epsilon), choice.loss)


def _divided(fine: Plan, sets: Sequence[tuple[int, ...]], price: Price, gaussian: bool | None) -> list[Level]:
    """Returns the noise of each grouping set, with the shares that are best once the tables are fitted."""
    pure = [] if gaussian else _pure(fine, sets, price)
    if gaussian is False or not price.delta:
        return pure
    try:
        smooth = _gaussian(fine, sets, price)
    except (ArgumentError, QueryError):  # no Gaussian within range at this (epsilon, delta)
        if gaussian:
            raise
        return pure
    return min((each for each in (pure, smooth) if each), key=lambda each: _error(fine, sets, each))


def _pure(fine: Plan, sets: Sequence[tuple[int, ...]], price: Price) -> list[Level]:
    costs = [2.0 * _bounding(fine, each).total(1, 1, False) ** 2 for each in sets]
    parts = in_shares(best_shares(_shape(fine), sets, costs, _weights(fine, sets), False), COARSE)
    return [_alone(fine, each, Price(price.epsilon * part), False) for each, part in zip(sets, parts, strict=True)]


def _gaussian(fine: Plan, sets: Sequence[tuple[int, ...]], price: Price) -> list[Level]:
    """Returns Gaussian noise for all tables as one vector. Its price stands in the first plan: it is not a sum."""
    boundings = [_bounding(fine, each) for each in sets]
    costs = [0.5 * each.squares(1, 1, False) for each in boundings]
    parts = in_shares(best_shares(_shape(fine), sets, costs, _weights(fine, sets), True), COARSE)
    releases = [noise.of for noise in fine.noises]
    slices = shares(Fraction(1), [each.weight for each in releases], squared=True)
    pairs = [(one, two, bounding) for one, bounding in zip(parts, boundings, strict=True) for two in slices]
    norms = [release.l2(bounding) for bounding in boundings for release in releases]
    every = zip(pairs, norms, strict=True)
    rho = rho_together(
        price.epsilon, price.delta, tuple(Share(a * b, norm.squares(None), norm.moving(None)) for (a, b, _), norm in every)
    )
    found = []
    for place, (part, bounding) in enumerate(zip(parts, boundings, strict=True)):
        noises = [release.gaussian(part * own * rho, bounding) for release, own in zip(releases, slices, strict=True)]
        loss: Loss = Approx(price.epsilon, price.delta) if place == 0 else Pure(0)
        found.append(Level(bounding, tuple(noises), price if place == 0 else Price(Fraction(0)), loss))
    return found


def _error(fine: Plan, sets: Sequence[tuple[int, ...]], levels: Sequence[Level]) -> float:
    """Returns the sum over grouping sets and releases of the variance of fitted cells, in units of what one row moves."""
    found = 0.0
    for place, noise in enumerate(fine.noises):
        parts = versions(_shape(fine), sets, [each.noises[place].variance for each in levels])
        found += noise.of.weight / noise.of.row**2 * sum(variance(_shape(fine), parts, each) for each in sets)
    return found


def _shape(fine: Plan) -> tuple[int, ...]:
    return tuple(len(values) for values in fine.work.known or ())


def _weights(fine: Plan, sets: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Returns weights by which every grouping set counts the same, whatever the number of its cells."""
    shape = _shape(fine)
    return {each: 1 / math.prod(shape[axis] for axis in each) for each in sets}


def _bounding(fine: Plan, kept: tuple[int, ...]) -> Bounding:
    """Returns how far one unit moves the groups of one grouping set."""
    known = fine.work.known or ()
    merged = math.prod(len(values) for place, values in enumerate(known) if place not in kept)
    return fine.bounding.coarser(math.prod(len(known[place]) for place in kept), merged)


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
