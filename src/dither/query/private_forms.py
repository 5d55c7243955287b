"""Rewrites a refused question into questions that are answered, in the question's own words.

    keys      a group would show one person     ─▶  the same by keys that many people share; people by the size of the number
    number    an exact number about people      ─▶  that number as a question of its own; the question with a constant for it
    relation  groups of many people are joined  ─▶  those groups as a question of their own

A form is proposed only if it resolves, its keys can be shown, and what it adds up has bounds. It is made from the question and
the catalog alone. Where no form of a group for one person is found, its shape is shown with the question's own names.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from dither.catalog.values import Catalog
from dither.errors import Form, QueryError
from dither.exact.numbers import show
from dither.query.functions.base import Facts
from dither.query.resolve.relations import Resolved, resolve
from dither.query.sql.aggregates import has_aggregate, is_aggregate
from dither.query.sql.every import spell_out
from dither.query.sql.gate import Narrow, read, span_of
from dither.query.sql.select import parse

_LONGEST_QUESTION = 2000  # letters of a question for which forms are looked for: each key of it is tried
_LONGEST = 1500  # letters of a form
_MOST_GROUPS = 100  # of a key that is kept as it is
_BUCKETS = 10  # of a number per person
_MANY = 10  # rows of a person that a proposed bound of a sum allows for
_COUNT = 100  # in the place of a count that is not known yet
_ADDS = ("sum", "avg")


def with_forms(error: QueryError, text: str, catalog: Catalog) -> QueryError:
    """Returns the refusal with the questions that can be asked instead, if there are any."""
    if not error.mixes or error.span is None or len(text) > _LONGEST_QUESTION:
        return error
    try:
        tree, _ = read(text)
        spell_out(tree)
        found = _FORMS[error.mixes](tree, error.span, catalog)
    except (QueryError, RecursionError):
        return error
    return error.with_forms(tuple(each for each in found if len(each.question) <= _LONGEST))


def _resolved(tree: exp.Expr, catalog: Catalog) -> Resolved | None:
    """Returns the resolved question; None if it is refused."""
    text = tree.sql(dialect=Narrow)
    try:
        return resolve(parse(text, catalog), catalog, text)
    except QueryError:
        return None


def _runs(tree: exp.Expr, catalog: Catalog) -> bool:
    """Returns whether a question resolves, its keys are public or may be found in the data, and what it adds up has bounds."""
    made = _resolved(tree, catalog)
    if made is None:
        return False
    operands = made.operands()
    added = [each.argument for each in operands.aggregates if each.function in _ADDS and each.argument is not None]
    bounded = all(operands.arguments[x].low is not None and operands.arguments[x].high is not None for x in added)
    return bounded and (catalog.budget.delta > 0 or all(known.values is not None for known in operands.keys))


# --- a group would show one person --------------------------------------------------------------------------------


def _of_keys(tree: exp.Expr, span: tuple[int, int], catalog: Catalog) -> list[Form]:
    found = [each for each in tree.find_all(exp.Select) if _key_at(each, span) is not None]
    if not found:
        return []
    select = found[-1]  # the innermost
    forms = []
    for shared in _shared(select, catalog):
        whole = _replaced(tree, select, shared)
        if _runs(whole, catalog):
            words = "by what many people share" if shared.args.get("group") else "of all people together"
            forms.append(Form(words, _text(whole)))
            break
    key = _key_at(select, span)
    by_size = None if key is None else _by_size(select, key, catalog)
    if by_size is not None:
        forms.append(Form("how many there are of each size", _text(by_size)))
    return forms or ([_shape(select, key)] if isinstance(key, exp.Column) else [])


def _shape(select: exp.Select, key: exp.Column) -> Form:
    """Returns how many there are of each size as a shape, where the catalog has no bounds to propose."""
    item = next((each for each in select.expressions if has_aggregate(each)), _count("size"))
    name = item.alias if item.alias not in ("", key.name) else "size"
    size = exp.Anonymous(this="CLAMP", expressions=[exp.column(name), exp.column("low"), exp.column("high")])
    sized = exp.Anonymous(this="BUCKET", expressions=[size, exp.column("width")])
    made = _histogram(select, key, name, item.unalias(), sized)
    return Form("in this shape, with numbers for low, high and width", _text(made), complete=False)


def _keys(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    listed = list(group.expressions) if group is not None else []
    return listed or (list(select.expressions) if select.args.get("distinct") else [])


def _key_at(select: exp.Select, span: tuple[int, int]) -> exp.Expr | None:
    """Returns the key of a SELECT that is at a place of the text, there or in SELECT."""
    meant = ((key, _meant(key, select)) for key in _keys(select))
    return next((found for key, found in meant if _covers(key, span) or _covers(found, span)), None)


def _around(node: exp.Expr, span: tuple[int, int]) -> bool:
    """Returns whether a place of the text begins inside a node."""
    own = span_of(node)
    return own is not None and own[0] <= span[0] < own[1]


def _covers(node: exp.Expr, span: tuple[int, int]) -> bool:
    own = span_of(node)
    return own is not None and own[0] <= span[0] and span[1] <= own[1]


def _meant(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """Returns the expression of a key that is written as a position or by its name in SELECT."""
    if isinstance(key, exp.Literal) and not key.is_string and 1 <= int(key.this) <= len(select.expressions):
        return _plain(select.expressions[int(key.this) - 1])
    named = {each.alias: each.unalias() for each in select.expressions if isinstance(each, exp.Alias)}
    plain = isinstance(key, exp.Column) and not key.table
    return named.get(key.name, key) if plain else _plain(key)


def _plain(item: exp.Expr) -> exp.Expr:
    """Returns an output without its name."""
    return item.this if isinstance(item, exp.Alias) else item


def _shared(select: exp.Select, catalog: Catalog) -> Iterator[exp.Select]:
    """Returns the SELECT by those of its keys that many people share, then without HAVING, then with no key."""
    kept = {}
    for key in (_meant(key, select) for key in _keys(select)):
        public = _public_key(key, select, catalog)
        if public is not None:
            kept[key.sql(dialect=Narrow)] = public
    regrouped = _regrouped(select, kept)
    yield regrouped
    yield _without(regrouped, "having")
    yield _without(_regrouped(select, {}), "having", "order", "limit", "offset")


def _public_key(key: exp.Expr, select: exp.Select, catalog: Catalog) -> exp.Expr | None:
    """Returns a key with few public values: itself, or its year if it is a date; None if there is none."""
    year = exp.Anonymous(this="YEAR", expressions=[key.copy()])
    for each in (key, year):
        asked = _without(select, "having", "order", "limit", "offset", "distinct", "qualify")
        asked.set("expressions", [exp.alias_(each.copy(), "k"), _count()])
        asked.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
        made = _resolved(asked, catalog)
        known = None if made is None else made.operands().keys[0]
        if known is not None and known.values is not None and len(known.values) <= _MOST_GROUPS:
            return each
        if known is None or known.kind != "date":
            return None
    return None


def _regrouped(select: exp.Select, kept: dict[str, exp.Expr]) -> exp.Select:
    """Returns the SELECT by these keys: what it shows of the others, and what it orders by them, is left out."""
    made, shown = select.copy(), []
    for item in select.expressions:
        own = item.unalias().sql(dialect=Narrow)
        if own in kept:
            same = kept[own].sql(dialect=Narrow) == own
            shown.append(item.copy() if same else exp.alias_(kept[own].copy(), f"{item.alias_or_name or 'its'}_year"))
        elif has_aggregate(item):
            shown.append(item.copy())
    if not any(map(has_aggregate, shown)):
        shown.append(_count(of=None if kept else next(iter(_keys(select)), None)))
    made.set("distinct", None)
    made.set("expressions", shown)
    made.set("group", exp.Group(expressions=[each.copy() for each in kept.values()]) if kept else None)
    names = {each.alias_or_name for each in shown}
    order = select.args.get("order")
    terms = [] if order is None else [each for each in order.expressions if _stays(each.this, names)]
    made.set("order", exp.Order(expressions=[each.copy() for each in terms]) if terms and kept else None)
    return made if made.args.get("order") else _without(made, "limit", "offset")


def _stays(term: exp.Expr, names: set[str]) -> bool:
    return has_aggregate(term) or (isinstance(term, exp.Column) and term.name in names)


def _by_size(select: exp.Select, key: exp.Expr, catalog: Catalog) -> exp.Expr | None:
    """Returns how many groups of one person have which number: a histogram of the first aggregate."""
    if not isinstance(key, exp.Column):
        return None
    item = next((each for each in select.expressions if has_aggregate(each)), _count("size"))
    name = item.alias if item.alias not in ("", key.name) else "size"
    sized = _sized(item.unalias(), exp.column(name), select, catalog)
    if sized is None:
        return None
    for measured in (item.unalias(), _in_whole_numbers(item.unalias())):
        made = _histogram(select, key, name, measured, sized)
        if _runs(made, catalog):
            return made
    return None


def _histogram(select: exp.Select, key: exp.Column, name: str, measured: exp.Expr, sized: exp.Expr) -> exp.Expr:
    """Returns the number of groups by the size of what is measured in each."""
    inner = _without(select, "order", "limit", "offset", "distinct", "qualify", "with_")
    inner.set("expressions", [key.copy(), exp.alias_(measured.copy(), name)])
    inner.set("group", exp.Group(expressions=[key.copy()]))
    outer = exp.select(exp.alias_(sized.copy(), name), _count("n" if name != "n" else "groups"))
    outer = outer.from_(inner.subquery("t")).group_by("1")
    outer.set("with_", select.args.get("with_"))
    return outer


def _in_whole_numbers(aggregate: exp.Expr) -> exp.Expr:
    """Returns SUM(ROUND(x)) for SUM(x): sums per person are of whole numbers."""
    whole = aggregate.copy()
    if isinstance(whole, exp.Anonymous) and _function(whole) in _ADDS and len(whole.expressions) == 1:
        whole.set("expressions", [exp.Anonymous(this="ROUND", expressions=[whole.expressions[0].copy()])])
    return whole


def _sized(aggregate: exp.Expr, column: exp.Expr, select: exp.Select, catalog: Catalog) -> exp.Expr | None:
    """Returns the classes of an aggregate's size: up to a public bound, in buckets; None if no bound is declared."""
    known = _argument(aggregate, select, catalog)
    if known is None:
        return exp.Anonymous(this="LEAST", expressions=[column, exp.Literal.number(_BUCKETS)])
    if known.low is None or known.high is None:
        return None
    low, high = known.low, known.high
    if _function(aggregate) == "sum":
        low, high = min(low * _MANY, Fraction(0)), max(high * _MANY, Fraction(0))
    ends = [_number(low), _number(high)]
    held = exp.Anonymous(this="CLAMP", expressions=[column, *ends])
    return exp.Anonymous(this="BUCKET", expressions=[held, _number(_rounded((high - low) / _BUCKETS))])


def _function(aggregate: exp.Expr) -> str:
    return aggregate.name.lower() if isinstance(aggregate, exp.Anonymous) else ""


def _argument(aggregate: exp.Expr, select: exp.Select, catalog: Catalog) -> Facts | None:
    """Returns the facts of what an aggregate adds up or averages; None if it counts, or is several."""
    asked = _without(select, "group", "having", "order", "limit", "offset", "distinct", "qualify")
    asked.set("expressions", [exp.alias_(aggregate.copy(), "n")])
    made = _resolved(asked, catalog)
    if not isinstance(aggregate, exp.Anonymous) or _function(aggregate).startswith("count"):
        return None
    if made is None:
        return Facts("real")
    operands = made.operands()
    return next((operands.arguments[each.argument] for each in operands.aggregates if each.argument is not None), None)


# --- an exact number about people -----------------------------------------------------------------------------------


def _of_number(tree: exp.Expr, span: tuple[int, int], catalog: Catalog) -> list[Form]:
    values = (each for each in tree.find_all(exp.Subquery) if not isinstance(each.parent, (exp.From, exp.Join)))
    found = [each for each in values if isinstance(each.this, exp.Select) and _around(each, span)]
    if not found or len(found[-1].this.expressions) != 1:
        return []
    inner = found[-1].this
    value = inner.expressions[0].unalias()
    calls = [each for each in value.find_all(exp.Anonymous) if is_aggregate(each)]
    first = _alone(inner, calls, catalog)
    if not calls or not _runs(first, catalog):
        return []
    constants = [_constant(call, first, catalog) for call in calls]
    for call, constant in zip(calls, constants, strict=True):
        value = _replaced(value, next(each for each in value.walk() if each == call), constant)
    then = _replaced(tree, found[-1], exp.Paren(this=value) if isinstance(value, exp.Binary) else value)
    shown = " and ".join(map(_text, constants))
    second = [Form(f"then, with the answer in the place of {shown}", _text(then))] if _runs(then, catalog) else []
    return [Form("first", _text(first)), *second]


def _alone(inner: exp.Select, calls: list[exp.Anonymous], catalog: Catalog) -> exp.Select:
    """Returns the aggregates of a subquery as a question of their own, without conditions on the rows around it."""
    alone = _without(inner, "group", "having", "order", "limit", "offset", "distinct", "where")
    names = [f"{call.name.lower()}_{place + 1}" if place else call.name.lower() for place, call in enumerate(calls)]
    alone.set("expressions", [exp.alias_(call.copy(), name) for name, call in zip(names, calls, strict=True)])
    where = inner.args.get("where")
    for part in [] if where is None else where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        narrower = alone.where(part.copy(), copy=True)
        alone = narrower if _resolved(narrower, catalog) is not None else alone
    return alone


def _constant(call: exp.Anonymous, asked: exp.Select, catalog: Catalog) -> exp.Expr:
    """Returns a public constant of about the size of an aggregate: the middle of its bounds."""
    known = _argument(call, asked, catalog)
    if known is None or known.low is None or known.high is None:
        return exp.Literal.number(_COUNT)
    if known.kind in ("date", "timestamp"):
        return exp.cast(exp.Literal.string(str(datetime.date(2000, 1, 1))), "DATE")
    if _function(call).startswith("stddev"):
        return _number(_rounded((known.high - known.low) / 4))
    middle = (known.low + known.high) / 2
    return _number(_rounded(middle * _COUNT if _function(call) == "sum" else middle))


# --- groups of many people that are joined ----------------------------------------------------------------------------


def _of_relation(tree: exp.Expr, span: tuple[int, int], catalog: Catalog) -> list[Form]:
    found = [each for each in tree.find_all(exp.Select) if each is not tree and _covers(each, span)]
    if not found or not _runs(found[-1], catalog):
        return []
    return [Form("the subquery alone, and then with its numbers", _text(found[-1]))]


# --- trees --------------------------------------------------------------------------------------------------------


def _without(select: exp.Select, *clauses: str) -> exp.Select:
    made = select.copy()
    for clause in clauses:
        made.set(clause, None)
    return made


def _replaced(tree: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    """Returns the tree with a new node in the place of an old one."""
    if tree is old:
        return new.copy()
    whole = tree.copy()
    places = zip(tree.walk(), list(whole.walk()), strict=True)
    next(after for before, after in places if before is old).replace(new.copy())
    return whole


def _count(name: str = "n", of: exp.Expr | None = None) -> exp.Expr:
    """Returns COUNT(*), or COUNT(DISTINCT x) of a column."""
    counted = exp.Distinct(expressions=[of.copy()]) if isinstance(of, exp.Column) else exp.Star()
    return exp.alias_(exp.Anonymous(this="COUNT", expressions=[counted]), name)


def _number(value: Fraction) -> exp.Expr:
    return exp.Literal.number(show(value))


def _rounded(value: Fraction) -> Fraction:
    """Returns a number with two digits.

    >>> _rounded(Fraction(104999)), _rounded(Fraction(-1, 3))
    (Fraction(100000, 1), Fraction(-33, 100))
    """
    if not value:
        return value
    size = Fraction(1)
    while abs(value) >= 100 * size:
        size *= 10
    while abs(value) < 10 * size:
        size /= 10
    return round(value / size) * size


def _text(tree: exp.Expr) -> str:
    return tree.sql(dialect=Narrow)


_FORMS = {"keys": _of_keys, "number": _of_number, "relation": _of_relation}
