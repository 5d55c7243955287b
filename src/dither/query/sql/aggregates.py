"""Reads aggregates and grouping: expressions above a GROUP BY, over keys and aggregates only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from dither.query.nodes import Aggregate, Call, Column, Expression, Literal, Named, by_word, private
from dither.query.nodes import per_unit as functions
from dither.query.sql.expressions import expression
from dither.query.sql.forms import tuple_of
from dither.query.sql.names import Scope, candidates, matching, name_of, only, place, refuse

_CONDITIONAL = ("COUNT_IF", "COUNTIF")


def is_aggregate(node: exp.Expr) -> bool:
    """Returns whether a node is an aggregate, with or without FILTER and WITHIN GROUP."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return True
    return isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.upper() in by_word()


def has_aggregate(node: exp.Expr) -> bool:
    """Returns whether a node contains an aggregate outside its subqueries."""
    if isinstance(node, (exp.Select, exp.Subquery)):
        return False
    return is_aggregate(node) or any(has_aggregate(part) for part in node.iter_expressions())


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
        raise refuse(scope, node, "FILTER and WITHIN GROUP need an aggregate before them.", "write COUNT(*) FILTER (WHERE x).")
    only(scope, call, "this expressions", "An aggregate")
    word = call.this.upper()
    name = by_word()[word]
    allowed = functions() if per_unit else private()
    if name not in allowed:
        why = "cannot be used inside a subquery that aggregates per person" if per_unit else "is only for subqueries per person"
        other = ", ".join(sorted(word for word, meaning in by_word().items() if meaning in allowed))
        raise refuse(scope, call, f"{word} {why}.", f"use one of {other}.")
    aggregate = _read(word, name, call, ordered, scope)
    span = place(scope.text, call)
    if word in _CONDITIONAL:
        counted = aggregate.argument
        condition = counted if condition is None or counted is None else Call("and", (condition, counted), span=span)
        return Aggregate("", "count", where=condition, span=span)
    if condition is not None and aggregate.function == "count_units":
        raise refuse(scope, node, "COUNT_UNITS takes no FILTER.", "write COUNT(DISTINCT x) over the unit column.")
    return replace(aggregate, where=condition, span=span)


def _read(word: str, name: str, call: exp.Anonymous, ordered: exp.Expr | None, scope: Scope) -> Aggregate:
    arguments = list(call.expressions)
    if name == "quantile" or ordered is not None:
        return _quantile(word, call, arguments, ordered, scope)
    if name == "count_units":
        if arguments:
            raise refuse(scope, call, "COUNT_UNITS takes no argument.", "write COUNT_UNITS().")
        return Aggregate("", name)
    if len(arguments) != 1:
        raise refuse(scope, call, f"{word} takes one argument.", f"write {word}(x).")
    inner = arguments[0]
    if isinstance(inner, (exp.Star, exp.Distinct)) and word in _CONDITIONAL:
        raise refuse(scope, inner, f"{word} counts the rows for which a condition is true.", f"write {word}(x > 1).")
    if isinstance(inner, exp.Star):
        only(scope, inner, "", "*")
        if name != "count":
            raise refuse(scope, inner, f"{word}(*) has no meaning.", f"write {word}(x) for a column x.")
        return Aggregate("", "count")
    if isinstance(inner, exp.Distinct):
        only(scope, inner, "expressions", "DISTINCT")
        if name != "count" or len(inner.expressions) != 1:
            fix = "write COUNT(DISTINCT x), or COUNT(DISTINCT (x, y)) for the different pairs."
            raise refuse(scope, call, "DISTINCT is supported only in COUNT(DISTINCT x) over one expression.", fix)
        return Aggregate("", "count_distinct", _distinct(inner.expressions[0], scope))
    return Aggregate("", name, expression(inner, scope))


def _distinct(node: exp.Expr, scope: Scope) -> Expression:
    """Reads what is counted by COUNT(DISTINCT ...): an expression, or several in parentheses."""
    if not isinstance(node, exp.Tuple):
        return expression(node, scope)
    parts = tuple(expression(part, scope) for part in node.expressions)
    return tuple_of(parts, place(scope.text, node))


def _quantile(word: str, call: exp.Expr, arguments: list[exp.Expr], ordered: exp.Expr | None, scope: Scope) -> Aggregate:
    usage = "write QUANTILE(x, 0.9) or PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)."
    descending = False
    if ordered is None:
        if len(arguments) != 2 or word == "PERCENTILE_CONT":
            raise refuse(scope, call, f"{word} is not written like this.", usage)
        value, share = arguments
    else:
        keys = ordered.expressions if isinstance(ordered, exp.Order) else []
        if word != "PERCENTILE_CONT" or len(arguments) != 1 or len(keys) != 1:
            raise refuse(scope, call, f"{word} is not written like this.", usage)
        only(scope, keys[0], "this desc", "ORDER BY")
        (share,), value, descending = arguments, keys[0].this, bool(keys[0].args.get("desc"))
    p = expression(share, scope)
    if not isinstance(p, Literal) or isinstance(p.value, bool) or not isinstance(p.value, (int, Fraction)):
        raise refuse(scope, share, "The share of a quantile must be a constant number.", usage)
    if not 0 < p.value < 1:
        other = "MIN(x) and MAX(x) are the 1 % and the 99 % quantile" if p.value in (0, 1) else ""
        what = f"The share of a quantile lies above 0 and below 1{'; ' if other else ''}{other}."
        raise refuse(scope, share, what, usage)
    portion = Fraction(p.value)
    return Aggregate("", "quantile", expression(value, scope), 1 - portion if descending else portion)


@dataclass
class Grouping:
    """Collects and names the keys and aggregates of one SELECT."""

    scope: Scope
    per_unit: bool
    keys: list[Named] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    outputs: list[Named] = field(default_factory=list)

    def add_key(self, name: str, value: Expression) -> None:
        if not any(key.expression == value for key in self.keys):
            self.keys.append(Named(self._unique_name(name), value))

    def add(self, node: exp.Expr, name: str = "") -> Column:
        """Adds an aggregate unless it is there already, and returns its column."""
        aggregate = read_aggregate(node, self.scope, self.per_unit)
        for old in self.aggregates:
            if old == replace(aggregate, name=old.name):
                return Column(old.name, span=aggregate.span)
        self.aggregates.append(replace(aggregate, name=self._unique_name(name or default_name(aggregate))))
        return Column(self.aggregates[-1].name, span=aggregate.span)

    def above(self, node: exp.Expr, place: str, aliases: bool, name: str = "") -> Expression:
        """Reads an expression over keys and aggregates; with `aliases` also over outputs of SELECT."""
        here = self.scope.at(place)

        def look(part: exp.Expr) -> Expression | None:
            if is_aggregate(part):
                return self.add(part, name if part is node else "")
            if isinstance(part, exp.Subquery) or id(part) in here.values:
                return self._value(part, here)
            if isinstance(part, exp.Column) and aliases:
                named = self._alias(part, here)
                if named is not None:
                    return named
            if isinstance(part, (exp.Literal, exp.Boolean, exp.Null)) or has_aggregate(part):
                return None
            return self._key(part, here, aliases)

        return expression(node, here, look)

    def _value(self, part: exp.Expr, here: Scope) -> Expression:
        """Returns the key that equals a scalar subquery; refuses other subqueries above a GROUP BY."""
        value = here.values.get(id(part))
        for key in self.keys:
            if key.expression == value:
                return Column(key.name, span=place(here.text, part))
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
            fix = "read public tables directly and write the number here; ask about people in a separate question."
        raise refuse(here, part, what, fix)

    def _key(self, part: exp.Expr, here: Scope, aliases: bool) -> Expression | None:
        if isinstance(part, exp.Column) or not list(part.find_all(exp.Column, exp.Select)):
            return self._grouped_column(part, here) if isinstance(part, exp.Column) else None
        if aliases and any(not candidates(name, here) for name in _own_columns(part)):
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

    def _unique_name(self, base: str) -> str:
        taken = {key.name for key in self.keys} | {aggregate.name for aggregate in self.aggregates}
        number, name = 1, base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name


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
