"""Makes quotes of programs, and answers of their noisy numbers: post-processing, which is free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dither.answer import Answer, Quote
from dither.answers import Answers
from dither.planning.auto import Auto
from dither.planning.outputs import Noisy, Table
from dither.planning.plan import Plan
from dither.planning.program import Batch
from dither.planning.several import Several
from dither.planning.stack import pick_levels, pick_union
from dither.planning.terms import Terms
from dither.query.union import Together
from dither.session import Paid
from dither.stacked import Stacked, StackedQuote, put_together

Tables = Callable[[Plan, Noisy], Table]


def quote_of(program: Batch | Auto, terms: Terms, refusal: str = "", again: int | None = None, counted: bool = False) -> Quote:
    """Returns the quote of one question."""
    quoted = program.quoted
    found = (quoted, terms.confidence, program.total, refusal, again, counted, program.further)
    if quoted.levels is None:
        return Quote(*found)
    return StackedQuote(*found, tuple(Quote(part, terms.confidence, part.total) for part in quoted.each_level))


def quote_union(several: Several, terms: Terms, refusal: str, again: int | None, counted: bool) -> Quote:
    """Returns the quote of a UNION, with those of its parts."""
    parts = tuple(quote_of(each, terms) for each in several.questions)
    return StackedQuote(_first(parts[0].program), terms.confidence, several.total, refusal, again, counted, (), parts)


def answer_union(table: Tables, several: Several, together: Together, terms: Terms, paid: Paid) -> Answer:
    """Returns the answer of a UNION: the rows of its parts, which state their own noise."""
    parts = answer_list(table, several, terms, paid).answers
    picked = pick_union(together, [part.table for part in parts])
    shown = (
        _first(parts[0].program),
        parts[0].released,
        put_together(parts, picked),
        terms.confidence,
        paid.receipt,
        several.total,
    )
    return Stacked(*shown, paid.stored is not None, paid.left, _chosen(parts), parts, tuple(picked))


def _first(program: Batch) -> Batch:
    """Returns the program of the first part, which stands for all, without what the parts say themselves."""
    return replace(program, levels=None, cuts=replace(program.cuts, parts=(), chosen=()))


def _chosen(parts: Sequence[Answer]) -> str:
    """Returns the bounds that were chosen, by the number of the part."""
    each = [(number, part.chosen) for number, part in enumerate(parts, start=1) if part.chosen]
    return "; ".join(f"part {number}: {chosen}" for number, chosen in each)


def answer_list(table: Tables, several: Several, terms: Terms, paid: Paid) -> Answers:
    """Returns the answers of a list. Each states its own share of the price."""
    each = zip(several.questions, several.answers(paid.noisy), strict=True)
    replayed = paid.stored is not None
    answers = tuple(answer_of(table, one, terms, replace(paid, noisy=noisy, standing=None)) for one, noisy in each)
    return Answers(answers, paid.receipt, several.total, replayed, paid.left)


def answer_of(table: Tables, program: Batch | Auto, terms: Terms, paid: Paid) -> Answer:
    """Returns the answer of one question: its table, or those of its grouping sets put together."""
    batch, released, chosen = program.answer(paid.noisy)
    replayed = paid.stored is not None
    if batch.levels is None:
        rows = table(batch.plans[0], released[0])  # post-processing: free
        shown = (batch, tuple(released), rows, terms.confidence, paid.receipt, program.total)
        return Answer(*shown, replayed, paid.left, chosen)
    own, parts = released[: batch.own], []
    for part, noisy in zip(batch.each_level, own, strict=True):
        shown = (part, (noisy,), table(part.plans[0], noisy), terms.confidence, paid.receipt, part.total)
        parts.append(Answer(*shown, replayed))
    picked = pick_levels(batch.levels, batch.plans[: batch.own], own, [part.table for part in parts])
    shown = (batch, tuple(released), put_together(parts, picked), terms.confidence, paid.receipt, program.total)
    return Stacked(*shown, replayed, paid.left, chosen, tuple(parts), tuple(picked))
