"""Finds the earlier groups that make up each group of a question.

An earlier answer serves if it is about the same rows, except for conditions that pick whole earlier groups, with the same
unit and the same bounds; and if the question's keys and those conditions follow from the earlier keys:

    earlier GROUP BY region, sex     asked GROUP BY region; WHERE sex = 'F'; CASE WHEN region = 'north' THEN …; nothing: a total
    earlier GROUP BY BUCKET(age, 5)  asked GROUP BY BUCKET(age, 20)

What follows: an expression over earlier keys is computed from their values. An expression over columns of earlier keys is
computed on values that represent these columns (representatives.py), beside the earlier keys: it follows if it has one value
wherever they have theirs. Rows outside the declared facts may break that; like all rows with other values of a key, they are
not included, and answers say so.

What is added up is what was bounded then: a unit in several earlier groups counts in each of them, in at most `max_groups`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dither.catalog.values import Key
from dither.planning.free.stored import Rows, StoredPart, same_text
from dither.query.functions.base import Cell as Value
from dither.query.functions.base import Facts
from dither.query.functions.casts import as_key
from dither.query.functions.domains import facts
from dither.query.functions.registry import columns, evaluator, known, typed
from dither.query.functions.representatives import combinations as representatives
from dither.query.nodes import Call, Column, Expression, Literal

Slots = tuple[tuple[int, ...], ...]  # for each group of the question, the places of earlier groups
Follows = Callable[[tuple[Key, ...]], object]
_UNKNOWN = object()  # no declared value of the columns gives this key


@dataclass(frozen=True)
class Asked:
    """The groups of a question, in normal form. `scope` has the facts of its columns under their names there.

    `can_cut`: units have several rows, so bounds can leave something out. `max_groups`: None if it names none.
    `per_unit`: columns with one value for each unit, so that a unit is in one group by them.
    """

    rows: Rows
    unit: str | None
    keys: tuple[Expression, ...]
    groups: tuple[tuple[Key, ...], ...]
    scope: Mapping[str, Facts] = field(hash=False)
    can_cut: bool
    max_groups: int | None
    per_unit: frozenset[str]


def serving(asked: Asked, part: StoredPart) -> Slots | None:
    """Returns the earlier groups that make up each group of the question; None if they do not follow from them, or if no
    combination of its keys is possible."""
    if (asked.rows.base, asked.unit) != (part.rows.base, part.unit) or not bounded_alike(asked, part):
        return None
    if not set(part.rows.conditions) <= set(asked.rows.conditions) or not _holds_all(asked, part):
        return None
    picking = [each for text, each in asked.rows.conditions.items() if text not in part.rows.conditions]
    computed = [_follows(each, part, asked.scope) for each in asked.keys]
    computed += [_follows(each, part, asked.scope, condition=True) for each in picking]
    following = [each for each in computed if each is not None]
    if len(following) < len(computed):
        return None
    keys, conditions = following[: len(asked.keys)], following[len(asked.keys) :]
    if any(_picks_missing(each, part, asked.scope) for each in picking):
        return None
    found: dict[tuple[object, ...], list[int]] = {group: [] for group in asked.groups}
    for place, group in enumerate(part.groups):
        made = tuple(each(group) for each in keys)
        if made in found and all(each(group) is True for each in conditions):
            found[made].append(place)
    return tuple(map(tuple, found.values())) if found and all(found.values()) else None


def _picks_missing(condition: Expression, part: StoredPart, scope: Mapping[str, Facts]) -> bool:
    """Whether a condition may be true for rows that have no earlier group, because a key of theirs is NULL."""
    used = columns(condition)
    for key, known_values in zip(part.finest, part.declared, strict=True):
        own = columns(key)
        if None in known_values or not used & own or not known(key, scope).nullable:
            continue
        if not used <= own or evaluator(typed(condition, scope))(dict.fromkeys(own)) is True:
            return True
    return False


def _holds_all(asked: Asked, part: StoredPart) -> bool:
    """Whether every row that is asked about has an earlier group, rows with NULL or other values than declared aside: a key
    such as CASE WHEN region = 'north' THEN 'n' END leaves out rows whose columns are as declared."""
    for key, known_values in zip(part.finest, part.declared, strict=True):
        read = columns(key)
        if None in known_values or not read <= set(asked.scope):
            continue
        filled = {name: replace(asked.scope[name], nullable=False, values=_filled(asked.scope[name])) for name in read}
        if facts(key, filled).nullable and _may_be_null(key, asked, filled):
            return False
    return True


def _filled(known_facts: Facts) -> tuple[Key, ...] | None:
    values = known_facts.values
    return None if values is None else tuple(value for value in values if value is not None)


def _may_be_null(key: Expression, asked: Asked, scope: Mapping[str, Facts]) -> bool:
    """Whether a key can be NULL in rows that are asked about, by the conditions on its own columns."""
    conditions = [each for each in asked.rows.conditions.values() if columns(each) <= set(scope)]
    chosen = representatives(Call("and", (key, Literal(True), *conditions)), scope)
    if chosen is None:
        return True
    compute, *holds = (evaluator(typed(each, scope)) for each in (key, *conditions))
    rows = (dict(zip(chosen, row, strict=True)) for row in itertools.product(*chosen.values()))
    return any(as_key(compute(row)) is None and all(each(row) is True for each in holds) for row in rows)


def bounded_alike(asked: Asked, part: StoredPart) -> bool:
    """Whether units were bounded to as many groups as the question says; or in one group, whatever was said."""
    if not asked.can_cut or part.max_groups is None or asked.max_groups is None or in_one_group(asked, part):
        return True
    return part.max_groups == min(asked.max_groups, part.all_groups)


def in_one_group(asked: Asked, part: StoredPart) -> bool:
    """Whether each unit is in one of the groups that were bounded, whatever the bounds."""
    return not asked.can_cut or all(columns(key) <= asked.per_unit for key in part.finest)


def _follows(wanted: Expression, part: StoredPart, scope: Mapping[str, Facts], *, condition: bool = False) -> Follows | None:
    """Returns how an expression is computed from the earlier keys; None if it does not follow from them. Of a condition it
    only matters whether it is true."""
    if not all(columns(key) <= set(scope) for key in part.keys):
        return None
    names = {same_text(key): f"#{place}" for place, key in enumerate(part.keys)}
    over = _over_keys(wanted, names)
    if over is None:
        return _by_columns(wanted, part, scope, condition=condition)
    facts = {f"#{place}": known(key, scope) for place, key in enumerate(part.keys)}
    compute = evaluator(typed(over, facts))
    return lambda group: as_key(compute({name: _as_written(each, group[i]) for i, (name, each) in enumerate(facts.items())}))


def _as_written(facts: Facts, key: Key) -> Value:
    """Returns the value of which this is the key: a key that is a number is a whole number, and its expression may be real."""
    return float(key) if facts.kind == "real" and isinstance(key, int) else key


def _over_keys(wanted: Expression, names: Mapping[str, str]) -> Expression | None:
    """Returns an expression over the keys, as columns of these names; None if it reads anything else."""
    if isinstance(wanted, (Column, Call)) and (text := same_text(wanted)) in names:
        return Column(names[text])
    if not isinstance(wanted, Call):
        return None if isinstance(wanted, Column) else wanted
    parts = [_over_keys(each, names) for each in wanted.arguments]
    found = tuple(each for each in parts if each is not None)
    return Call(wanted.name, found) if len(found) == len(parts) else None


def _by_columns(wanted: Expression, part: StoredPart, scope: Mapping[str, Facts], *, condition: bool) -> Follows | None:
    """Computes an expression beside the keys that share its columns, on values that represent these columns. Values are not
    clipped: engines do not clip keys, and a row whose key is not declared is in no group."""
    read = columns(wanted)
    places = [place for place, key in enumerate(part.keys) if columns(key) & read]
    beside, declared = [part.keys[place] for place in places], [set(part.known[place]) for place in places]
    every = read.union(*map(columns, beside))
    if not beside or not read or not every <= set(scope):
        return None
    found: dict[tuple[object, ...], object] = {}
    for known_facts in (scope, _opened(scope, every, beside)):
        chosen = representatives(Call("and", (wanted, *beside)), known_facts)
        if chosen is None:
            return None
        compute = [evaluator(typed(each, known_facts)) for each in (wanted, *beside)]
        for row in itertools.product(*chosen.values()):
            values = dict(zip(chosen, row, strict=True))
            value, *made = (as_key(each(values)) for each in compute)
            value = value is True if condition else value
            if not all(each in own for each, own in zip(made, declared, strict=True)):
                continue  # in no group
            if found.setdefault(tuple(made), value) != value or type(found[tuple(made)]) is not type(value):
                return None
    return lambda group: found.get(tuple(group[place] for place in places), _UNKNOWN)


def _opened(scope: Mapping[str, Facts], read: Iterable[str], keys: Sequence[Expression]) -> Mapping[str, Facts]:
    """Returns the facts without the declared values of columns whose other values may be in an earlier group: those that no
    key is, such as the column of CASE WHEN region = 'north' THEN 'n' ELSE 'other' END."""
    plain = {key.name for key in keys if isinstance(key, Column)}
    listed = [name for name in read if scope[name].values is not None and not scope[name].clipped and name not in plain]
    return {**scope, **{name: replace(scope[name], values=None) for name in listed if scope[name].kind != "bool"}}
