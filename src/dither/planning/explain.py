"""A plan in words: what one person can change, which noise hides it, what each number's margin will be, what it costs."""

from __future__ import annotations

from fractions import Fraction

from dither.exact.numbers import show
from dither.mechanisms import Exponential, Gaussian
from dither.planning.choose import names
from dither.planning.computed import computed, foretold
from dither.planning.finish import plain
from dither.planning.grids import plain as plain_number
from dither.planning.measures import EXTREME, held, percent
from dither.planning.noises import Noise
from dither.planning.plan import Plan
from dither.planning.readings import Linear, Quantile, Ratio
from dither.planning.spreads import Reading, Spread
from dither.query.nodes import Aggregate, Expression
from dither.query.show import show_expression
from dither.query.work import Bins

_WIDTH = 14


def explain(plan: Plan, confidence: Fraction, rows: int | None = None) -> str:
    """The plan as text. `rows`: how many rows a group is assumed to have, for the margins of means."""
    lines = [("price", f"{plan_price(plan)}{least(plan)}, charged before any row is read"), ("each person", _unit(plan))]
    lines.append(("groups", _groups(plan)))
    lines += [("noise" if i == 0 else "", _noise(noise, plan)) for i, noise in enumerate(plan.noises)]
    lines += [(f"  {name}", text) for name, text in outputs(plan, confidence, rows)]
    lines.append(("margins", f"hold for each number with {percent(confidence)} confidence, clipping and bounding not included"))
    lines += [("not included", text) for text in plan.clipped]
    return "\n".join(f"{left:<{_WIDTH}} {right}".rstrip() for left, right in lines)


def plan_price(plan: Plan) -> str:
    """The loss that will be charged."""
    epsilon, delta = pair(plan)
    return f"ε = {show(epsilon)}" + (f", δ = {show(delta)}" if delta else "")


def least(plan: Plan) -> str:
    """What to say where a margin was asked for and a smaller price would give it."""
    return " (the least price of a question; less would give this margin)" if plan.rounded_up and pair(plan)[0] else ""


def pair(plan: Plan) -> tuple[Fraction, Fraction]:
    """(epsilon, delta) of the plan's loss, as stated."""
    stated = getattr(plan.loss, "pair", None)
    if stated is None:
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    found: tuple[Fraction, Fraction] = stated()
    return found


def _unit(plan: Plan) -> str:
    kind = "replaced by another" if plan.bounding.replace else "added or removed"
    if not plan.work.by_unit:
        return f"is one row, {kind}"
    return f"is one value of {plan.unit}, {kind}; counts {plan.bounding}"


def _groups(plan: Plan) -> str:
    if not plan.query.keys:
        return "one: no GROUP BY"
    if plan.threshold is None:
        return f"{plan.bounding.groups} public values of {names(plan.query.keys)}, empty ones shown"
    rule = plan.threshold
    return (
        f"found in the data: a value of {names(plan.query.keys)} is shown if enough people have it "
        f"(at ε = {show(rule.epsilon)}, δ = {show(rule.delta)}; {rule.margin('0.95')} people are shown with 95 %)"
    )


def _noise(noise: Noise, plan: Plan) -> str:
    draft, who = noise.draft, "person" if plan.work.by_unit else "row"
    words = draft.words
    bounding = plan.bounding.worth(draft.worth)
    if isinstance(draft.measure, Bins):
        mechanism = noise.mechanism
        if not isinstance(mechanism, Exponential):
            raise TypeError("quantiles are chosen by the exponential mechanism")
        return (
            f"exponential mechanism over {draft.measure.argument.steps + 1} candidates for {words}, in steps of "
            f"{plain_number(draft.measure.argument.step)}, "
            f"ε = {show(mechanism.epsilon)} in each group"
        )
    if isinstance(noise.mechanism, Gaussian):
        moved = _rounded(float(bounding.squares(draft.row, draft.cells, draft.signed)) ** 0.5)
        return (
            f"Gaussian, standard deviation {_rounded(noise.scale)}, on {words}: one {who} changes them by "
            f"at most {moved} (root of the sum of squares), ρ = {_rounded(float(noise.mechanism.rho or 0))}"
        )
    moved = show(Fraction(bounding.total(draft.row, draft.cells, draft.signed)))
    return (
        f"geometric, scale {_rounded(noise.scale)}, on {words}: one {who} changes them by at most {moved} in all, "
        f"ε = {show(noise.mechanism.epsilon)}"
    )


def outputs(plan: Plan, confidence: Fraction, rows: int | None) -> list[tuple[str, str]]:
    """For each output what it is and its predicted margin."""
    found = []
    for output in plan.query.outputs:
        name = plain(output.expression)
        if name in [key.name for key in plan.query.keys]:
            found.append((output.name, "key"))
            continue
        reading = plan.reading(name)
        asked = next((a for a in plan.query.aggregates if a.name == name), None)
        if reading is None or asked is None:
            found.append((output.name, _computed(plan, output.expression, confidence, rows)))
        else:
            found.append((output.name, f"{title(asked)} {predicted(plan, reading, confidence, rows)}"))
    return found


def _computed(plan: Plan, expression: Expression, confidence: Fraction, rows: int | None) -> str:
    made = computed(plan, expression)
    if made is None:
        return "computed from the noisy result"
    margin = foretold(plan, made, rows, confidence)
    if margin is not None:
        return f"computed from the noisy numbers, ± {_rounded(margin)}"
    return "computed from the noisy numbers; its margin depends on them and comes with the answer"


def predicted(plan: Plan, reading: Reading, confidence: Fraction, rows: int | None) -> str:
    """The margin to expect, in words."""
    if isinstance(reading, Quantile):
        return f"rank ± {_rounded(reading.rank(plan.noises, confidence))} rows"
    sign = "typically ±" if isinstance(reading, Spread) else "±"  # that of a variance depends on where the values lie
    margin = reading.predicted(plan.noises, rows, confidence)
    if margin is not None:
        given = f" at {rows} rows in the group" if rows and isinstance(reading, (Ratio, Spread)) else ""
        each = reading.each if isinstance(reading, Linear) and not rows else Fraction(0)  # the grid's part, unless included
        return f"{sign} {_rounded(margin)}{given}" + (f", and {_rounded(float(each))} for each row" if each else "")
    thousand = reading.predicted(plan.noises, 1000, confidence)
    return f"{sign} {_rounded(thousand or 0.0)} in a group of 1000 rows (less in larger ones)"


def title(asked: Aggregate) -> str:
    """The aggregate as people write it, saying so where it is only nearly that."""
    where = "" if asked.where is None else f" FILTER (WHERE {show_expression(asked.where)})"
    inside = "*" if asked.argument is None else show_expression(asked.argument)
    if asked.function == "count_units":
        return "COUNT(DISTINCT unit)"
    if asked.function == "count_distinct":
        return f"COUNT(DISTINCT {inside}){where}"
    if asked.function == "quantile":
        p = asked.parameter or Fraction(1, 2)
        nearly = f", as the {percent(held(p))} quantile," if held(p) != p else ""
        return f"QUANTILE({inside}, {float(p):g}){where}{nearly}"
    told = f"{asked.function.upper()}({inside}){where}"
    if asked.function in ("min", "max"):
        return f"{told}, as the {percent(EXTREME[asked.function])} quantile,"
    return told


def _rounded(value: float) -> str:
    """Three digits, never in powers of ten where a plain number is short."""
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        digits = 0 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    return f"{value:.3g}"
