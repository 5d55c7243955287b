"""Finds keys whose values depend on each other, so that only combinations are shown that a row can have.

    MONTH(born), MONTHNAME(born)      made of one column: evaluated together on its declared values
    s.region, s.abbrev                columns of one public table: the combinations of its rows
    s.abbrev WHERE s.region = 'East'  the same, for one key
    p.state, s.region                 the join equates p.state with s.abbrev, so this is the same, too

Keys are expressions over leaves (narrowing.py). Leaves of one public table stand in one row of it, if the question reads that
table once. What is not known to be impossible is kept, and so is everything where the combinations are too many to be listed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter

from dither.catalog.values import Catalog, Key
from dither.query.functions.base import Cell, Facts
from dither.query.functions.casts import as_key
from dither.query.functions.domains import facts
from dither.query.functions.registry import columns, evaluator, typed
from dither.query.functions.representatives import clip_values, combinations, uses
from dither.query.nodes import Call, Column, Expression, Join, Named, Relation, Scan, sources
from dither.query.resolve.narrowing import Narrow, made_of, narrow, shared, substituted, traced
from dither.query.resolve.shapes import Shape

Values = frozenset[tuple[Key, ...]]
_EXACT = ("int", "text", "bool", "date")  # equal values of one of these kinds are the same key


@dataclass(frozen=True)
class Rows:
    """The rows of a public table that decide: its columns, by the leaves that stand for them. `made`: the keys over leaves;
    `conditions`: what each row meets, also over leaves; `missing`: an outer join may have no row, and then all are NULL."""

    table: str
    leaves: tuple[str, ...]
    columns: tuple[str, ...]
    made: tuple[Expression, ...]
    conditions: tuple[Expression, ...]
    missing: bool


@dataclass(frozen=True)
class Joint:
    """Keys that depend on each other, and the combinations of their values that a row can have: those in `values`, or of
    public `rows` that are still to be read."""

    keys: tuple[Expression, ...]
    values: Values = frozenset()
    rows: Rows | None = None

    def read(self, rows: Sequence[tuple[Cell, ...]]) -> Joint:
        """Returns what the rows of the public table decide. Each has the values of `rows.columns`."""
        if self.rows is None:
            return self
        leaves, found = self.rows.leaves, set[tuple[Key, ...]]()
        holds, keys = [evaluator(each) for each in self.rows.conditions], [evaluator(each) for each in self.rows.made]
        for row in [*rows, *([(None,) * len(leaves)] if self.rows.missing else [])]:
            values = dict(zip(leaves, row, strict=True))
            if all(each(values) is True for each in holds):
                found |= _key([each(values) for each in keys])
        return replace(self, values=frozenset(found), rows=None)


def joints(keys: Sequence[Named], source: Shape, catalog: Catalog) -> tuple[Joint, ...]:
    """Returns the keys of a question that depend on each other."""
    source = traced(source, {name for key in keys for name in columns(key.expression)})
    tables = _read_once(source.relation, catalog)
    places = {leaf: origin for leaf, origin in source.origins.items() if leaf in source.leaves and origin[0] in tables}
    same = _equal(source, places)
    by_table: dict[str, list[tuple[Expression, Expression]]] = {}
    others: list[tuple[Expression, Expression]] = []
    for key in keys:
        own = made_of(key.expression, source.columns)
        if own is None or not columns(own):
            continue
        public = substituted(own, same)
        read = None if public is None else {places[leaf][0] if leaf in places else None for leaf in columns(public)}
        if public is not None and read is not None and len(read) == 1 and (table := next(iter(read))) is not None:
            by_table.setdefault(table, []).append((key.expression, public))
        else:
            others.append((key.expression, own))
    found = [_public(table, pairs, source, same, places) for table, pairs in by_table.items()]
    found += [_declared(pairs, source) for pairs in _connected(others)]
    return tuple(each for each in found if each is not None)


# --- public tables ------------------------------------------------------------------------------------------------


def _read_once(relation: Relation, catalog: Catalog) -> frozenset[str]:
    """Returns the public tables that stand once in a relation: two of their columns in one row are from one row of theirs."""
    scans = [node.table for node in _walk(relation) if isinstance(node, Scan)]
    return frozenset(name for name in scans if scans.count(name) == 1 and catalog.tables[name].public)


def _walk(node: Relation) -> Iterator[Relation]:
    yield node
    for each in sources(node):
        yield from _walk(each)


def _equal(source: Shape, places: Mapping[str, tuple[str, str]]) -> dict[str, Expression | None]:
    """Returns for each leaf the leaf of a public table that equals it in every row, or itself."""
    same: dict[str, Expression | None] = {leaf: Column(leaf) for leaf in source.leaves}
    for pair in source.equal:
        for one, two in (pair, pair[::-1]):
            kinds = {source.leaves[one].kind, source.leaves[two].kind} if {one, two} <= set(source.leaves) else set()
            if len(kinds) == 1 and kinds <= set(_EXACT) and one not in places and two in places:
                same[one] = Column(two)
    return same


def _public(
    table: str,
    pairs: list[tuple[Expression, Expression]],
    source: Shape,
    same: Mapping[str, Expression | None],
    places: Mapping[str, tuple[str, str]],
) -> Joint | None:
    """Returns keys that are made of one public table, if more than each key alone is to be known."""
    own = {leaf for leaf, (name, _) in places.items() if name == table}
    known = (substituted(part, same) for each in source.conditions for part in _parts(each))
    conditions = tuple(part for part in known if part is not None and columns(part) and columns(part) <= own)
    keys, made = zip(*pairs, strict=True)
    if len(keys) == 1 and all(columns(part) <= columns(made[0]) for part in conditions):
        return None
    leaves = tuple(sorted(frozenset[str]().union(*(columns(each) for each in (*made, *conditions)))))
    if any(source.leaves[leaf].kind not in _EXACT for leaf in leaves):
        return None
    typed_keys = tuple(typed(each, source.leaves) for each in made)
    missing = _may_be_missing(source.relation, table)
    return Joint(keys, rows=Rows(table, leaves, tuple(places[leaf][1] for leaf in leaves), typed_keys, conditions, missing))


def _parts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Call) and condition.name == "and":
        for each in condition.arguments:
            yield from _parts(each)
    else:
        yield condition


def _may_be_missing(relation: Relation, table: str) -> bool:
    """Whether the table stands below an outer join, which may have no row of it."""
    outer = (node for node in _walk(relation) if isinstance(node, Join) and node.kind != "inner")
    return any(isinstance(each, Scan) and each.table == table for node in outer for each in _walk(node))


# --- declared values ----------------------------------------------------------------------------------------------


def _connected(keys: list[tuple[Expression, Expression]]) -> list[list[tuple[Expression, Expression]]]:
    """Returns the keys that share leaves, directly or through others, two or more together."""
    parts: list[tuple[set[str], list[tuple[Expression, Expression]]]] = []
    for key in keys:
        names, members = set(columns(key[1])), [key]
        for part in [part for part in parts if part[0] & names]:
            parts.remove(part)
            names, members = names | part[0], [*part[1], *members]
        parts.append((names, members))
    return [members for _, members in parts if len(members) > 1]


def _declared(pairs: list[tuple[Expression, Expression]], source: Shape) -> Joint | None:
    """Returns keys that are made of the same leaves, with the combinations that declared values and conditions leave:
    as for one key (narrowing.py), f(D and W) and those of f(D) that rows outside D may have."""
    keys, made = zip(*pairs, strict=True)
    scope = {leaf: source.leaves[leaf] for each in made for leaf in columns(each)}
    narrowed = {leaf: narrow(leaf, known, source.conditions) for leaf, known in scope.items()}
    every = _image(made, scope)
    if all(each.unchanged for each in narrowed.values()):
        return None if every is None else Joint(keys, every)
    empty = any(each.inside.values == () and not each.inside.nullable for each in narrowed.values())
    inside: Values | None = frozenset() if empty else _image(made, {leaf: each.inside for leaf, each in narrowed.items()})
    if every is None or inside is None:
        return None if every is None else Joint(keys, every)
    return Joint(keys, inside | _outside(made, narrowed, every - inside))


def _outside(made: Sequence[Expression], narrowed: Mapping[str, Narrow], every: Values) -> Values:
    """Returns the combinations that rows outside the bounds may have."""
    anywhere = {leaf: each.anywhere for leaf, each in narrowed.items()}
    found = frozenset[tuple[Key, ...]]()
    for leaf, each in narrowed.items():
        for piece in each.outside:
            scope = {**anywhere, leaf: piece}
            listed = [tuple({key[place] for key in every}) for place in range(len(made))]
            may = [shared(facts(key, scope), values) for key, values in zip(made, listed, strict=True)]
            found |= {key for key in every if all(part in values for part, values in zip(key, may, strict=True))}
    return found


def _image(made: Sequence[Expression], scope: Mapping[str, Facts]) -> Values | None:
    """Returns the combinations of values of expressions; None if they are too many, or if bounds do not decide them."""
    return _listed(tuple(made), tuple(sorted(scope.items(), key=itemgetter(0))))


@lru_cache(maxsize=256)
def _listed(made: tuple[Expression, ...], known: tuple[tuple[str, Facts], ...]) -> Values | None:
    scope = dict(known)
    whole = Call("row", tuple(made))
    if any(use.units and use.cuts and scope[leaf].clipped for leaf, use in uses(whole).items()):
        return None  # a comparison sees rows outside the bounds as they are
    chosen = combinations(whole, scope)
    if chosen is None:
        return None
    compute = [evaluator(clip_values(typed(each, scope), scope)) for each in made]
    rows = (dict(zip(chosen, row, strict=True)) for row in itertools.product(*chosen.values()))
    return frozenset().union(*(_key([each(row) for each in compute]) for row in rows))


def _key(values: Sequence[Cell]) -> Values:
    """Returns values as keys; none if one of them cannot be a key."""
    keys = tuple(map(as_key, values))
    possible = all(key is not None or value is None for key, value in zip(keys, values, strict=True))
    return frozenset([keys]) if possible else frozenset()
