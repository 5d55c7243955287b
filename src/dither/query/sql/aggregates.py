"""Reads aggregates and grouping: expressions above a GROUP BY, over keys and aggregates only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from dither.exact.numbers import parse_number, show_decimal
from dither.query.nodes import FUNCTIONS, Aggregate, Call, Column, Expression, Literal, Named, by_word, grouping_mark, private
from dither.query.nodes import per_unit as functions
from dither.query.sql.expressions import expression
from dither.query.sql.forms import tuple_of
from dither.query.sql.names import Scope, candidates, matching, name_of, only, place, refuse
from dither.query.sql.sets import is_grouping
from dither.query.sql.windows import Windows
from dither.query.sql.words import ADVICE, unknown_function

if TYPE_CHECKING:
    from dither.query.sql.public import Public

_CONDITIONAL = ("COUNT_IF", "COUNTIF")

MOST_SHARES = 100  # quantiles in one list


def is_aggregate(node: exp.Expr) -> bool:
    """Returns whether a node is an aggregate, with or without FILTER and WITHIN GROUP."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    return isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.upper() in by_word()


def has_aggregate(node: exp.Expr, test: Callable[[exp.Expr], bool] = is_aggregate) -> bool:
    """Returns whether a node contains an aggregate outside its subqueries. SUM(x) OVER () is none; its x may be one."""
    if isinstance(node, (exp.Select, exp.Subquery)):
        return False
    if isinstance(node, exp.Window):
        call = node.this.this if isinstance(node.this, exp.Filter) else node.this
        return any(has_aggregate(part, test) for part in (*call.iter_expressions(), *_other_parts(node)))
    return test(node) or any(has_aggregate(part, test) for part in node.iter_expressions())


def _other_parts(node: exp.Window) -> list[exp.Expr]:
    where = [node.this.expression] if isinstance(node.this, exp.Filter) else []
    return [*where, *(part for part in node.iter_expressions() if part is not node.this)]


_RANKS = ("RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")


def _no_aggregate(node: exp.Expr, call: exp.Expr, scope: Scope) -> Exception:
    """Returns the refusal of FILTER or WITHIN GROUP behind something else than an aggregate that is answered."""
    word = str(call.this).upper() if isinstance(call, exp.Anonymous) else ""
    if word in _RANKS:
        fix = "count the rows below it: COUNT_IF(x < 3), or COUNT_IF(x < 3) / COUNT(*) for their share."
        return refuse(scope, node, f"{word} of a value is not supported.", fix)
    if word in ADVICE:
        return unknown_function(word, call, scope)
    return refuse(scope, node, "FILTER and WITHIN GROUP need an aggregate before them.", "write COUNT(*) FILTER (WHERE x).")


def read_aggregate(node: exp.Expr, scope: Scope, per_unit: bool) -> Aggregate:
    """Reads an aggregate, without a name yet: SUM(x) FILTER (WHERE y), PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x), ..."""
    scope = scope.at("inside an aggregate")
    condition: Expression | None = None
    call = node
    if isinstance(call, exp.Filter):
        only(scope, call, "this expression", "FILTER")
        condition = expression(call.expression.this, scope.at("in FILTER"))
        call = call.this
    ordered = None
    if isinstance(call, exp.WithinGroup):
        only(scope, call, "this expression", "WITHIN GROUP")
        ordered, call = call.expression, call.this
    if not is_aggregate(call) or not isinstance(call, exp.Anonymous):
        raise _no_aggregate(node, call, scope)
    only(scope, call, "this expressions", "An aggregate")
    word = call.this.upper()
    name = by_word()[word]
    allowed = functions() if per_unit else private()
    if name not in allowed:
        raise _not_allowed(word, call, per_unit, scope)
    aggregate = _read(word, name, call, ordered, scope)
    span = place(scope.text, call)
    if word in _CONDITIONAL:
        counted = aggregate.argument
        condition = counted if condition is None or counted is None else Call("and", (condition, counted), span=span)
        return Aggregate("", "count", where=condition, span=span)
    if condition is not None and aggregate.function == "count_units":
        raise refuse(scope, node, "COUNT_UNITS takes no FILTER.", "write COUNT(DISTINCT x) over the unit column.")
    return replace(aggregate, where=condition, span=span)


def _not_allowed(word: str, call: exp.Anonymous, per_unit: bool, scope: Scope) -> Exception:
    if per_unit:
        other = ", ".join(sorted(FUNCTIONS[name].words[0] for name in functions() if name != "count_distinct"))
        what = f"{word} cannot be used inside a subquery that aggregates per person."
        return refuse(scope, call, what, f"use one of {other}.", mixes="number")
    test = call.expressions[0].sql() if len(call.expressions) == 1 else "x"
    test = test if len(test) <= _LONGEST else "x"
    condition = f"NOT ({test})" if word == "BOOL_AND" else test
    what = f"{word} would show whether one person's row {'does not meet' if word == 'BOOL_AND' else 'meets'} the condition."
    return refuse(scope, call, what, f"count such rows: COUNT(*) FILTER (WHERE {condition}).")


def _read(word: str, name: str, call: exp.Anonymous, ordered: exp.Expr | None, scope: Scope) -> Aggregate:
    arguments = list(call.expressions)
    if name == "quantile" or ordered is not None:
        return _quantile(word, call, arguments, ordered, scope)
    if name == "count_units":
        if arguments:
            raise refuse(scope, call, "COUNT_UNITS takes no argument.", "write COUNT_UNITS().")
        return Aggregate("", name)
    if word in _PAIRS or FUNCTIONS[name].pair:
        return _pair(word, name, call, arguments, scope)
    if len(arguments) != 1:
        raise refuse(scope, call, f"{word} takes one argument.", f"write {word}(x).")
    inner = arguments[0]
    if isinstance(inner, (exp.Star, exp.Distinct)) and word in _CONDITIONAL:
        raise refuse(scope, inner, f"{word} counts the rows for which a condition is true.", f"write {word}(x > 1).")
    if isinstance(inner, exp.Star):
        only(scope, inner, "", "*")
        if word != "COUNT":
            raise refuse(scope, inner, f"{word}(*) has no meaning.", f"write {word}(x) for a column x.")
        return Aggregate("", "count")
    if isinstance(inner, exp.Distinct):
        only(scope, inner, "expressions", "DISTINCT")
        if word != "COUNT" or len(inner.expressions) != 1:
            fix = "write COUNT(DISTINCT x), or COUNT(DISTINCT (x, y)) for the different pairs."
            if word != "COUNT":
                fix = f"write {word}(x), or COUNT(DISTINCT x); for each value, SELECT x, COUNT(*) AS n ... GROUP BY x."
            raise refuse(scope, call, "DISTINCT is supported only in COUNT(DISTINCT x) over one expression.", fix)
        return Aggregate("", "count_distinct", _distinct(inner.expressions[0], scope))
    return Aggregate("", name, expression(inner, scope))


def _distinct(node: exp.Expr, scope: Scope) -> Expression:
    """Reads what is counted by COUNT(DISTINCT ...): an expression, or several in parentheses."""
    if not isinstance(node, exp.Tuple):
        return expression(node, scope)
    parts = tuple(expression(part, scope) for part in node.expressions)
    return tuple_of(parts, place(scope.text, node))


_LONGEST = 60  # the most characters of a condition in a fix
_PAIRS = ("REGR_COUNT", "REGR_AVGX", "REGR_AVGY")  # of the rows in which neither argument is NULL


def _pair(word: str, name: str, call: exp.Expr, arguments: list[exp.Expr], scope: Scope) -> Aggregate:
    """Reads an aggregate of two columns. As in SQL, the first is y and the second is x."""
    if len(arguments) != 2:
        raise refuse(scope, call, f"{word} takes two arguments.", f"write {word}(y, x).")
    y, x = (expression(each, scope) for each in arguments)
    if word not in _PAIRS:
        return Aggregate("", name, y, second=x)
    read, other = (y, x) if word == "REGR_AVGY" else (x, y)
    known = Call("not", (Call("is_null", (other,), span=other.span),), span=other.span)
    return Aggregate("", name, Call("case", (known, read, Literal(None)), span=read.span))


def _quantile(word: str, call: exp.Expr, arguments: list[exp.Expr], ordered: exp.Expr | None, scope: Scope) -> Aggregate:
    usage = "write QUANTILE(x, 0.9) or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."
    descending, ranked = False, word.startswith("PERCENTILE")
    if ordered is None:
        if len(arguments) != 2 or ranked:
            raise refuse(scope, call, f"{word} is not written like this.", usage)
        value, share = arguments
    else:
        keys = ordered.expressions if isinstance(ordered, exp.Order) else []
        if not ranked or len(arguments) != 1 or len(keys) != 1:
            raise refuse(scope, call, f"{word} is not written like this.", usage)
        only(scope, keys[0], "this desc", "ORDER BY")
        (share,), value, descending = arguments, keys[0].this, bool(keys[0].args.get("desc"))
    if isinstance(share, exp.Array):
        raise refuse(
            scope, share, "A list of shares can only be an output of SELECT.", "write one share here: QUANTILE(x, 0.5)."
        )
    p = expression(share, scope)
    if not isinstance(p, Literal) or isinstance(p.value, bool) or not isinstance(p.value, (int, Fraction)):
        raise refuse(scope, share, "The share of a quantile must be a constant number.", usage)
    if not 0 < p.value < 1:
        other = "MIN(x) and MAX(x) are the 1 % and the 99 % quantile" if p.value in (0, 1) else ""
        what = f"The share of a quantile lies above 0 and below 1{'; ' if other else ''}{other}."
        raise refuse(scope, share, what, usage)
    listed = [parse_number(each) for each in call.meta.get("among", ())]
    if len(listed) > MOST_SHARES:
        raise refuse(scope, share, f"A list of quantiles has at most {MOST_SHARES} shares.", "ask for fewer.")
    shares = [Fraction(p.value), *(each for each in listed if each is not None)]
    turned = [1 - each if descending else each for each in shares]
    among = tuple(sorted(set(turned))) if len(set(turned)) > 1 else ()
    return Aggregate("", "quantile", expression(value, scope), turned[0], among=among)


def spread_lists(items: Sequence[tuple[exp.Expr, str, exp.Expr]], scope: Scope) -> list[tuple[exp.Expr, str, exp.Expr]]:
    """Replaces an output QUANTILE(x, [0.25, 0.5]) AS q by one output for each share: q_25 and q_50."""
    found: list[tuple[exp.Expr, str, exp.Expr]] = []
    for item, name, value in items:
        shares = _listed(value)
        if shares is None:
            found.append((item, name, value))
            continue
        if not shares.expressions:
            raise refuse(scope, value, "This list of shares is empty.", "write QUANTILE(x, [0.25, 0.5, 0.75]).")
        for number, share in enumerate(shares.expressions):
            one = value.copy()
            copied = _listed(one)
            if copied is not None and copied.parent is not None:
                copied.parent.meta["among"] = [each.name for each in shares.expressions]
                copied.replace(copied.expressions[number])
            found.append((item, f"{name or _plain_name(value)}_{_percent(share.name)}", one))
    return found


def _listed(node: exp.Expr) -> exp.Array | None:
    """Returns the list of shares of a quantile, if it has one."""
    call = node.this if isinstance(node, exp.Filter) else node
    call = call.this if isinstance(call, exp.WithinGroup) else call
    if not isinstance(call, exp.Anonymous) or by_word().get(str(call.this).upper()) != "quantile":
        return None
    return next((part for part in call.expressions if isinstance(part, exp.Array)), None)


def _plain_name(value: exp.Expr) -> str:
    column = value.find(exp.Column)
    return f"quantile_{column.name}" if column is not None else "quantile"


def _percent(share: str) -> str:
    """Returns a share in percent, as a part of a name.

    >>> _percent("0.25"), _percent("0.999"), _percent("x")
    ('25', '99_9', 'x')
    """
    number = parse_number(share)
    return share if number is None else show_decimal(100 * number).replace(".", "_")


@dataclass
class Grouping:
    """Collects and names the keys and aggregates of one SELECT."""

    scope: Scope
    per_unit: bool
    keys: list[Named] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    outputs: list[Named] = field(default_factory=list)
    windows: Windows | None = None  # None: window functions are refused
    public: Public | None = None  # None: subqueries over public tables are refused
    within: dict[int, Expression] = field(default_factory=dict)  # columns of windows within one unit, by the id of their node
    sets: list[tuple[int, ...]] = field(default_factory=list)  # the places of the keys in each grouping set
    groupings: list[tuple[int, ...]] = field(default_factory=list)  # the places of the keys in each GROUPING

    def is_aggregate(self, node: exp.Expr) -> bool:
        return is_aggregate(node)

    def add_key(self, name: str, value: Expression) -> int:
        """Adds a key unless it is there already, and returns its place."""
        for number, key in enumerate(self.keys):
            if key.expression == value:
                return number
        self.keys.append(Named(self._unique_name(name), value))
        return len(self.keys) - 1

    def add(self, node: exp.Expr, name: str = "") -> Column:
        """Adds an aggregate unless it is there already, and returns its column."""
        aggregate = read_aggregate(node, self.scope, self.per_unit)
        for old in self.aggregates:
            if old == replace(aggregate, name=old.name):
                return Column(old.name, span=aggregate.span)
        self.aggregates.append(replace(aggregate, name=self._unique_name(name or default_name(aggregate))))
        return Column(self.aggregates[-1].name, span=aggregate.span)

    def above(self, node: exp.Expr, place: str, aliases: bool, name: str = "") -> Expression:
        """Reads an expression over keys and aggregates. A name that is no column may be an output of SELECT that was read
        before; with `aliases` such outputs come first."""
        here = self.scope.at(place)

        def look(part: exp.Expr) -> Expression | None:
            if id(part) in self.within:
                return self.within[id(part)]
            if isinstance(part, exp.Window):
                return self._window(part, here, aliases)
            if self.is_aggregate(part):
                return self.add(part, name if part is node else "")
            if is_grouping(part):
                return self._grouping(part, here)
            if isinstance(part, exp.Subquery) or id(part) in here.values or self.is_public(part):
                return self._value(part, here, aliases)
            if isinstance(part, exp.Column) and (aliases or not candidates(part, here)):
                named = self._alias(part, here)
                if named is not None:
                    return named
            if isinstance(part, (exp.Literal, exp.Boolean, exp.Null)) or self._is_above(part) or _has_grouping(part):
                return None
            return self._key(part, here, aliases)

        return expression(node, here, look)

    def _is_above(self, part: exp.Expr) -> bool:
        """Returns whether a node is computed from noisy numbers or public tables, so that it cannot be a key."""
        if part.find(exp.Window) is not None or has_aggregate(part, self.is_aggregate):
            return True
        return self.public is not None and self.public.stands_in(part, self.scope)

    def _window(self, node: exp.Window, here: Scope, aliases: bool) -> Expression:
        """Reads a window function over the groups. Its parts may name outputs of SELECT that were read before."""
        if self.windows is None:
            what = "A window function looks across the rows of many people."
            raise refuse(here, node.this, what, "leave it out of the subquery; over the groups of the question it is free.")
        if here.place not in ("in SELECT", "in QUALIFY", "in ORDER BY"):
            what = f"A window function cannot stand {here.place}."
            raise refuse(here, node.this, what, "filter on it with QUALIFY, or in a SELECT around this one.")

        return self.windows.add(node, lambda part: self.above(part, here.place, aliases))

    def _grouping(self, part: exp.Expr, here: Scope) -> Expression:
        """Reads GROUPING(key, ...): which keys a row is a total over."""
        only(here, part, "this expressions", "GROUPING")
        if self.per_unit:
            raise refuse(here, part, "GROUPING is about totals, and a subquery per person has none.", "leave it out.")
        places = []
        for inner in part.expressions:
            matches = self._places(inner, here)
            if not matches:
                raise refuse(here, inner, "GROUPING takes keys of GROUP BY.", "name a key, as in GROUPING(region).")
            places += matches
        if not places and not self.sets:
            raise refuse(here, part, "GROUPING takes keys of GROUP BY.", "name a key, as in GROUPING(region).")
        if not self.sets:
            return Literal(0, span=place(here.text, part))
        chosen = tuple(places or range(len(self.keys)))
        if chosen not in self.groupings:
            self.groupings.append(chosen)
        return Column(grouping_mark(self.groupings.index(chosen)), span=place(here.text, part))

    def _places(self, inner: exp.Expr, here: Scope) -> list[int]:
        """Returns the place of the key that is written, by its name or as an expression."""
        if isinstance(inner, exp.Column) and inner.args.get("table") is None and not isinstance(inner.this, exp.Star):
            named = matching(*name_of(here, inner.this), list(enumerate(self.keys)), lambda pair: pair[1].name)
            if len(named) == 1:
                return [named[0][0]]
        value = expression(inner, here)
        return [number for number, key in enumerate(self.keys) if key.expression == value]

    def is_public(self, part: exp.Expr) -> bool:
        """Returns whether a node is a subquery over public tables that may stand here."""
        return self.public is not None and self.public.reads(part)

    def over(self, value: Expression, part: exp.Expr, here: Scope) -> Expression:
        """Returns an expression over rows, with which a subquery is equated, in the keys that it is made of."""
        for key in self.keys:
            if key.expression == value:
                return Column(key.name, span=value.span)
        if isinstance(value, Call):
            return replace(value, arguments=tuple(self.over(each, part, here) for each in value.arguments))
        if not isinstance(value, Column):
            return value
        name = value.name.rsplit(".", 1)[-1]
        what = f"This subquery is equated with {name}, which is neither grouped by nor inside an aggregate."
        raise refuse(here, part, what, f"add {name} to GROUP BY, or put the subquery inside an aggregate: MAX((SELECT ...)).")

    def _value(self, part: exp.Expr, here: Scope, aliases: bool = False) -> Expression:
        """Returns the key that equals a scalar subquery, or the column of one that reads public tables; refuses others."""
        value = here.values.get(id(part))
        for key in self.keys:
            if key.expression == value:
                return Column(key.name, span=place(here.text, part))
        if value is None and self.public is not None and self.public.reads(part):
            read = partial(self.above, place=here.place, aliases=aliases)
            return self.public.add(part, here, read, partial(self.over, part=part, here=here))
        if here.place == "in SELECT" and id(part) in here.alone:
            what = "This subquery does not refer to the rows that are aggregated here, so it is a separate question."
            fix = "ask it separately, at its own price, and combine the answers; if the number is public, write it here."
        elif here.place == "in SELECT":
            what = "This subquery is neither grouped by nor inside an aggregate, so it has no single value per group."
            example = "AVG((SELECT ...))" if isinstance(part, exp.Subquery) else "COUNT(*) FILTER (WHERE ...)"
            fix = f"put it inside an aggregate such as {example}, or add it to GROUP BY."
        elif self.per_unit:
            what = f"A subquery cannot stand {here.place} of a subquery that aggregates per person."
            fix = "put it into WHERE of the question around it: FROM (SELECT ... GROUP BY ...) t WHERE t.n > (SELECT ...)."
        else:
            what = f"A subquery cannot stand {here.place}: only noisy results are available there."
            fix = (
                "only public tables can be read here; ask about people in a separate question, and write the noisy number here."
            )
        raise refuse(here, part, what, fix)

    def _key(self, part: exp.Expr, here: Scope, aliases: bool) -> Expression | None:
        if isinstance(part, exp.Column) or not list(part.find_all(exp.Column, exp.Select)):
            return self._grouped_column(part, here) if isinstance(part, exp.Column) else None
        if self.outputs and any(not candidates(name, here) for name in _own_columns(part)):
            return None  # it names an output of SELECT, so it is not an expression over rows
        value = expression(part, here)
        for key in self.keys:
            if key.expression == value:
                return Column(key.name, span=place(here.text, part))
        return None

    def _grouped_column(self, part: exp.Column, here: Scope) -> Expression:
        value = expression(part, here)
        for key in self.keys:
            if key.expression == value:
                return Column(key.name, span=place(here.text, part))
        name = name_of(here, part.this)[0]
        raise refuse(
            here,
            part,
            f"{name} is neither grouped by nor inside an aggregate, so it has no single value per group.",
            f"add {name} to GROUP BY, or aggregate it.",
        )

    def _alias(self, part: exp.Column, here: Scope) -> Expression | None:
        if part.args.get("table") is not None:
            return None
        name, quoted = name_of(here, part.this)
        outputs = matching(name, quoted, self.outputs, lambda output: output.name)
        if len(outputs) > 1:
            raise refuse(here, part, f"{name} could mean more than one output.", "rename outputs with AS.")
        return outputs[0].expression if outputs else None

    def natural_name(self, value: Expression, number: int) -> str:
        """Returns the name of an output without an alias."""
        return value.name if isinstance(value, Column) and not value.name.startswith("#") else f"column_{number}"

    def _unique_name(self, base: str) -> str:
        taken = {key.name for key in self.keys} | {aggregate.name for aggregate in self.aggregates}
        number, name = 1, base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name


def _has_grouping(node: exp.Expr) -> bool:
    return any(is_grouping(part) for part in node.find_all(exp.Anonymous))


def _own_columns(node: exp.Expr) -> list[exp.Column]:
    """Returns the columns in a node, without those of its subqueries."""
    if isinstance(node, (exp.Select, exp.Subquery)):
        return []
    if isinstance(node, exp.Column):
        return [node]
    return [column for part in node.iter_expressions() for column in _own_columns(part)]


def default_name(aggregate: Aggregate) -> str:
    """Returns the name of an aggregate if the question gives none: count, avg_age, sum."""
    inner = aggregate.argument if aggregate.where is None else None
    return f"{aggregate.function}_{inner.name.rsplit('.', 1)[-1]}" if isinstance(inner, Column) else aggregate.function
