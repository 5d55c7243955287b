"""Estimates how much the bounds of a question leave out, at a small share of its price.

    rows     rows beyond max_rows and max_groups (rows.py)
    bins     the same where the bounds are chosen, from the count of people that chose them (bins.py)
    values   values beyond the bounds of a column that is added up (values.py)

Each is an ordinary question over one row per person (contributions.py): planned, charged and drawn together with the answer. It
depends on the question and the catalog only. None is asked where nothing can be cut: where rows are people, where a person has
one row, where all groups count, where values cannot be outside their bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.planning.contributions import Classes
from dither.planning.left_out.base import Cuts, Kept, LeftOut, Part, sentences
from dither.planning.left_out.bins import bins
from dither.planning.left_out.rows import counts_people, cutting, ends_below, rows
from dither.planning.left_out.values import freed, values
from dither.planning.outputs import Noisy
from dither.planning.plan import Plan, plan
from dither.planning.price import Price
from dither.query.nodes import Column
from dither.query.resolve.relations import Resolved
from dither.query.show import show_expression
from dither.query.work import Work

SHARE = Fraction(1, 20)  # of the price, for all parts together
_ENOUGH = Fraction(8)  # an epsilon whose noise is less than one person

__all__ = [
    "SHARE",
    "Cuts",
    "LeftOut",
    "Part",
    "beside",
    "clipped",
    "counts_people",
    "cuts",
    "cuts_of_chosen",
    "ends_below",
    "left_out_of",
    "plans",
    "reserved",
    "sentences",
]


def cuts(question: Resolved, work: Work, *, estimate: bool) -> Cuts:
    """Returns what can be left out. `work`: of the question's own plan. `estimate`: with the questions that estimate it."""
    asked = (*rows(question, work), *values(question, work)) if estimate and work.measures else ()
    return Cuts(asked, bool(cutting(question, work)), _open_keys(question, work))


def clipped(question: Resolved, work: Work) -> tuple[Part, ...]:
    """Returns the questions about values outside their bounds. They are the same whatever max_rows and max_groups are."""
    return tuple(values(question, work)) if work.measures else ()


def cuts_of_chosen(question: Resolved, work: Work, classes: Classes, last: int | None, beside: Sequence[Part]) -> Cuts:
    """Returns what chosen bounds can leave out. `classes`: of the count of people that chose them; `last`: the number of
    public groups; `beside`: the questions about values, asked whatever was chosen."""
    return Cuts((*bins(question, work, classes, last), *beside), bool(cutting(question, work)), _open_keys(question, work))


def _open_keys(question: Resolved, work: Work) -> tuple[str, ...]:
    """Returns the keys with public values that rows may not have: those values are declared and follow from nothing else, or
    NULL is none of them. A key that is no output has no name that people know, and is shown as it is written."""
    if work.known is None:
        return ()
    named = {each.expression.name for each in question.query.outputs if isinstance(each.expression, Column)}
    names = (key.name if key.name in named else show_expression(key.expression) for key in work.keys)
    free = (
        (name, freed(key.expression, question), known) for name, key, known in zip(names, work.keys, work.known, strict=True)
    )
    return tuple(name for name, facts, known in free if facts.values is None or (facts.nullable and None not in known))


def reserved(epsilon: Fraction) -> Fraction:
    """Returns the part of a price for what is left out.

    >>> reserved(Fraction(1)), reserved(Fraction(10**6))
    (Fraction(1, 20), Fraction(8, 1))
    """
    return min(epsilon * SHARE, _ENOUGH)


def beside(epsilon: Fraction) -> Fraction:
    """Returns the part that was reserved beside this part of a price.

    >>> beside(Fraction(19, 20)), beside(10**6 - Fraction(8))
    (Fraction(1, 20), Fraction(8, 1))
    """
    return min(epsilon * SHARE / (1 - SHARE), _ENOUGH)


def plans(asked: Sequence[Part], catalog: Catalog, epsilon: Fraction) -> tuple[Plan, ...]:
    """Plans the questions at this epsilon, divided evenly. Their noise is geometric, and needs no delta.

    None are planned at a price so low that their noise is out of range: it would hide everything.
    """
    try:
        made = [plan(part.question, catalog, Price(epsilon / len(asked))) for part in asked]
    except QueryError:
        return ()
    return tuple(replace(each, work=replace(each.work, pairs=part.pairs)) for part, each in zip(asked, made, strict=True))


def left_out_of(
    asked: Sequence[Part], made: Sequence[Plan], released: Sequence[Noisy], confidence: Fraction
) -> tuple[LeftOut, ...]:
    """Reads what was left out. The first plan and release are those of the answer."""
    found: list[LeftOut] = []
    kept = Kept()
    for part, own in zip(asked, zip(made[1:], released[1:], strict=True), strict=True):
        here = part.read((made[0], released[0]), own, confidence, kept)
        for each in here:
            kept = kept if each.clipped else kept.after(each)
        found += here
    return tuple(found)
