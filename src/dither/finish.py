"""Makes quotes of programs, and answers of their noisy numbers: post-processing, which is free."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict

from dither.answer import Answer, Quote
from dither.answers import Answers
from dither.around import around, around_quote
from dither.exact.numbers import Number
from dither.planning.auto import Auto
from dither.planning.bounds import Bound
from dither.planning.divided import portions
from dither.planning.fitted import fit, fitted_plans
from dither.planning.levels import Levels
from dither.planning.outputs import Noisy, Table
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.planning.several import Several
from dither.planning.stack import Stack, pick_levels, pick_union
from dither.planning.terms import Terms
from dither.query.nodes import Query
from dither.query.sql.parameters import Params
from dither.query.union import Results, Together, leaves
from dither.session import Paid
from dither.stacked import Picked, Stacked, StackedQuote, put_together

Tables = Callable[[Plan, Noisy], Table]


class Options(TypedDict, total=False):
    """The named arguments of `quote`, for type checkers."""

    margin: Number | None
    of: Number | Answer | None
    params: Params | None
    confidence: Number
    assume_rows: int | None
    max_rows: Bound
    max_groups: Bound
    left_out: bool | None
    weights: Sequence[Number] | None
    sample: Number | None
    analyst: str | None


class AskOptions(Options, total=False):
    """The named arguments of `ask`, for type checkers."""

    fresh: bool
    free: bool
    stored: bool


def quote_of(program: Batch | Auto, terms: Terms, refusal: str = "", again: int | None = None, counted: bool = False) -> Quote:
    """Returns the quote of one question."""
    quoted = program.quoted
    found = (quoted, terms.confidence, program.total, refusal, again, counted, program.further)
    if quoted.levels is None:
        return Quote(*found)
    parts = tuple(
        Quote(part, terms.confidence, total, portion=portion)
        for (part, total), portion in zip(_levels(quoted), _portions(quoted), strict=True)
    )
    return around_quote(StackedQuote(*found, parts, Stack.of_levels(quoted.levels)))


def quote_union(several: Several, results: Results, terms: Terms, refusal: str, again: int | None, counted: bool) -> Quote:
    """Returns the quote of a UNION, with those of its parts."""
    (found,) = quote_each(several, (results,), terms)
    return replace(found, total=several.total, refusal=refusal, again=again, counted=counted)


def quote_each(several: Several, shapes: Sequence[Query | Results], terms: Terms) -> tuple[Quote, ...]:
    """Returns the quotes of a list of questions; `shapes`: how each is put together."""
    places = itertools.count()
    return tuple(_quoted(shape, several, places, terms) for shape in shapes)


def _quoted(node: Query | Results, several: Several, places: Iterator[int], terms: Terms) -> Quote:
    """Returns the quote of a question; `places` has the place of the next private question."""
    if isinstance(node, Query):
        place = next(places)
        quoted = quote_of(several.shown[place], terms)
        return replace(quoted, total=several.price_of([place]), further=(*several.further(place), *quoted.further))
    own = list(itertools.islice(places, len(list(leaves(node)))))
    every = iter(own)
    parts = tuple(_quoted(part, several, every, terms) for part in node.parts)
    found = (_first(parts[0].program), terms.confidence, several.price_of(own), "", None, False, ())
    return around_quote(StackedQuote(*found, parts, Stack.of_union(node.together, node.above)))


def answer_union(table: Tables, several: Several, results: Results, terms: Terms, paid: Paid) -> Answer:
    """Returns the answer of a UNION: the rows of its parts, which state their own noise, and what is around them."""
    each = _answer_each(table, several, terms, paid)
    return replace(_put(results, each, terms, paid, several.total), left=paid.left)


def _put(node: Query | Results, answers: Iterator[Answer], terms: Terms, paid: Paid, total: Price) -> Answer:
    """Puts the next answers together as a question says."""
    if isinstance(node, Query):
        return next(answers)
    parts = tuple(_put(part, answers, terms, paid, total) for part in node.parts)
    pick = partial(_pick_union, node.together)
    picked = pick(parts)
    shown = (_first(parts[0].program), parts[0].released, put_together(parts, picked), terms.confidence, paid.receipt, total)
    stack = Stack.of_union(node.together, ())
    made = Stacked(*shown, paid.stored is not None, str, _chosen(parts), parts, tuple(picked), stack, pick)
    return around(made, node.above)


def _pick_union(together: Together, parts: Sequence[Answer]) -> Picked:
    return pick_union(together, [part.table for part in parts])


def _pick_levels(batch: Batch, levels: Levels, parts: Sequence[Answer]) -> Picked:
    own, tables = [part.noisy for part in parts], [part.table for part in parts]
    return pick_levels(levels, batch.plans[: batch.own], own, tables, all(part.is_consistent for part in parts))


def _first(program: Batch) -> Batch:
    """Returns the program of the first part, which stands for all, without what the parts say themselves."""
    return replace(program, levels=None, cuts=replace(program.cuts, parts=(), chosen=()))


def _chosen(parts: Sequence[Answer]) -> str:
    """Returns the bounds that were chosen, by the number of the part."""
    each = [(number, part.chosen) for number, part in enumerate(parts, start=1) if part.chosen]
    return "; ".join(f"part {number}: {chosen}" for number, chosen in each)


def answer_list(table: Tables, several: Several, shapes: Sequence[Query | Results], terms: Terms, paid: Paid) -> Answers:
    """Returns the answers of a list. Each states its own share of the price. `shapes`: how each is put together."""
    each, places = _answer_each(table, several, terms, paid), itertools.count()
    answers = []
    for shape in shapes:
        own = several.price_of([next(places) for _ in leaves(shape)])
        answers.append(_put(shape, each, terms, paid, own))
    return Answers(tuple(answers), paid.receipt, several.total, paid.stored is not None, paid.left)


def _answer_each(table: Tables, several: Several, terms: Terms, paid: Paid) -> Iterator[Answer]:
    """Returns the answer of each private question, in the order asked."""
    for place, (program, noisy) in enumerate(zip(several.shown, several.put_together(paid.noisy), strict=True)):
        answer = answer_of(table, program, terms, replace(paid, noisy=noisy, standing=None))
        yield replace(answer, total=several.price_of([place]))


def answer_of(table: Tables, program: Batch | Auto, terms: Terms, paid: Paid) -> Answer:
    """Returns the answer of one question: its table, or those of its grouping sets put together."""
    batch, released, chosen = program.answer(paid.noisy)
    replayed = paid.stored is not None
    if batch.levels is None:
        rows = table(batch.plans[0], released[0])  # post-processing: free
        shown = (batch, tuple(released), rows, terms.confidence, paid.receipt, program.total)
        return Answer(*shown, replayed, paid.left, chosen)
    own, parts = tuple(released[: batch.own]), []
    fitted = fit(batch.plans[: batch.own], own) if batch.levels.fitted else own
    for (part, total), noisy in zip(_levels(batch), fitted, strict=True):
        shown = (part, (noisy,), table(part.plans[0], noisy), terms.confidence, paid.receipt, total)
        parts.append(Answer(*shown, replayed))
    pick = partial(_pick_levels, batch, batch.levels)
    picked = pick(parts)
    shown = (batch, tuple(released), put_together(parts, picked), terms.confidence, paid.receipt, program.total)
    stack = Stack.of_levels(batch.levels)
    made = Stacked(*shown, replayed, paid.left, chosen, tuple(parts), tuple(picked), replace(stack, above=()), pick)
    return around(made, stack.above)


def _levels(batch: Batch) -> list[tuple[Batch, Price]]:
    """Returns the plan of each grouping set, with the noise of its fitted numbers, and what is charged for it."""
    own = batch.each_level
    if batch.levels is None or not batch.levels.fitted:
        return [(part, part.total) for part in own]
    plans = fitted_plans(batch.plans[: batch.own])
    return [(replace(part, plans=(plan,)), part.total) for part, plan in zip(own, plans, strict=True)]


def _portions(batch: Batch) -> list[str]:
    """Returns what part of the price each grouping set gets, if they share one price; otherwise empty texts."""
    if batch.levels is None or not batch.levels.fitted:
        return [""] * batch.own
    each = portions(batch.plans[: batch.own])
    return [
        f"{part:.0%} of the whole".replace("%", " %") if part >= 0.01 else "less than 1 % of the whole"
        for part in map(float, each)
    ]
