"""A plan in words: what one person can change, which noise hides it, what each number's margin will be, what it costs."""

from __future__ import annotations

from fractions import Fraction

from dither.exact.numbers import percent, show
from dither.planning.outputs import outputs
from dither.planning.plan import Plan
from dither.planning.releases.keys import names

_WIDTH = 14


def explain(plan: Plan, confidence: Fraction, rows: int | None = None) -> str:
    """The plan as text. `rows`: how many rows a group is assumed to have, for the margins of means."""
    lines = [("price", f"{plan_price(plan)}{least(plan)}, charged before any row is read"), ("each person", _unit(plan))]
    lines.append(("groups", _groups(plan)))
    who = "person" if plan.work.by_unit else "row"
    noises = (noise.explain(who) for noise in plan.noises)
    lines += [("noise" if i == 0 else "", text) for i, text in enumerate(noises)]
    lines += [(f"  {output.name}", output.explain(plan, rows, confidence)) for output in outputs(plan)]
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
    kind = plan.bounding.neighbours.words
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
