"""Answers from what is already paid for: numbers that follow from stored answers, at no price.

    read ─▶ what stored answers give it ─▶ those that this analyst may get ─▶ share ─▶ table

It is post-processing of noisy numbers in the ledger. No engine is called, no noise is drawn and nothing is charged. A stored
answer that this analyst has not got before counts in the analyst's quota, as if its question were asked again. Where there are
quotas, the answers that the analyst has got are taken first, and others only if those do not give the value.

Margins are nominal if the analyst had seen a part of it: whoever chooses questions after seeing answers can choose those that
noise moved most, and then a margin of 95 % is wrong more often than once in twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dither.answer import Answer
from dither.errors import BudgetError, Fix, QueryError
from dither.exact.numbers import Number, show_percent
from dither.ledger.earlier import Answered
from dither.offered import Offered, entries_in_words
from dither.planning.consistent import consistent_margins
from dither.planning.free.derive import Derived, Source, derive
from dither.planning.free.search import Search
from dither.planning.listing import FREE
from dither.planning.outputs import Noisy, Table, outputs
from dither.planning.plan import Plan
from dither.planning.terms import Terms
from dither.session import Session

MOST_ANSWERS = 64  # stored answers that are checked for one question: those with the least noise


@dataclass(frozen=True)
class Offer:
    """An answer that stored answers give. `nominal`: the analyst has seen one of them; `counted`: they count in a quota."""

    derived: Derived
    made_of: tuple[Answered, ...]
    nominal: bool
    counted: bool

    def quoted(self, terms: Terms) -> Offered:
        """Returns what a quote shows of it: margins, never values."""
        margins, keys = self.derived.predicted(terms.confidence), self.derived.batch.cuts.keys
        others = (f"without rows with other values of {' or '.join(keys)}",) if keys else ()
        cut = (*self.derived.cut, *others)
        return Offered(margins, self.derived.entries, self.nominal, self.counted, self.derived.uneven, cut)


def find_offer(session: Session, search: Search, terms: Terms, analyst: str | None) -> Offer:
    """Returns the best answer that stored answers give. Refuses if they give none, or if the analyst may not get them."""
    want = search.want
    if isinstance(want, str):
        raise _nothing(want)
    with search.lock:
        new, search.last = session.earlier(want.asked.rows, want.asked.unit, search.last)
        for each in new:
            search.add(each.entry, each.question.tables, each.question.plan, each)
        answered, found = dict(search.answers), list(search.sources)
    if not found:
        raise _nothing()
    previews = {entry: session.preview_share(answered[entry], analyst) for entry in _least_noise(found)}
    allowed = {entry: each for entry, each in previews.items() if not each.refusal}
    every = [each for each in found if each.part.entry in allowed]
    seen = [each for each in every if allowed[each.part.entry].seen]
    quotas = session.declaration.per_analyst is not None
    if quotas:
        derived = derive(want, seen, terms) or derive(want, every, terms, combine=False)
    else:
        derived = derive(want, every, terms)
    if derived is None:
        raise _refusal([each.refusal for each in previews.values() if each.refusal], derive(want, found, terms) is not None)
    known = [allowed[entry].seen for entry in derived.entries]
    made_of = tuple(answered[entry] for entry in derived.entries)
    return Offer(derived, made_of, any(known), quotas and not all(known))


def _least_noise(found: Sequence[Source]) -> list[int]:
    """Returns the entries with the least noise, each once."""
    ordered = sorted(found, key=lambda each: each.noise.of.relative(each.noise) * each.most)
    return list(dict.fromkeys(each.part.entry for each in ordered))[:MOST_ANSWERS]


def _refusal(refusals: Sequence[str], given: bool) -> QueryError | BudgetError:
    """Returns the refusal. `given`: stored answers that this analyst may not get give the value."""
    return BudgetError(refusals[0]) if refusals and given else _nothing()


def _nothing(reason: str = "") -> QueryError:
    what = f"No earlier answer gives this: {reason}." if reason else "No earlier answer gives this."
    return QueryError(
        what,
        fix=Fix(
            "ask with {epsilon}. A free answer needs earlier ones about the same rows, bounds and clipping, by declared keys.",
            epsilon="0.1",
        ),
    )


def take_offer(
    session: Session,
    table: Callable[[Plan, Noisy], Table],
    offer: Offer,
    question: str,
    terms: Terms,
    analyst: str | None,
) -> FreeAnswer:
    """Returns the answer of an offer, computed from the stored numbers."""
    derived = offer.derived
    shared = session.shared(question, derived.batch.unit, offer.made_of, derived.numbers, analyst)
    rows = table(derived.plan, shared.noisy)
    shown = (derived.batch, (shared.noisy,), rows, terms.confidence, shared.receipt, FREE)
    return FreeAnswer(*shown, left=shared.left, derived=derived, nominal=offer.nominal)


@dataclass(frozen=True, repr=False)
class FreeAnswer(Answer):
    """A table computed from stored noisy numbers. `nominal`: its question was asked after a part of them was seen."""

    derived: Derived | None = None
    nominal: bool = False

    @property
    def _derived(self) -> Derived:
        if self.derived is None:
            raise TypeError("a free answer is made of stored ones")
        return self.derived

    @property
    def made_of(self) -> tuple[int, ...]:
        """The entries of the answers that it was made of."""
        return self._derived.entries

    def margins(self, confidence: Number | None = None) -> dict[str, list[float | None]]:
        """Returns a margin per row for each noisy column, from the law of the earlier noise; see `Answer.margins`."""
        level = self.at_confidence(confidence)
        wide = self._derived.margins(self.noisy, self.table, level)
        return consistent_margins(self.plan, self.noisy, self.table, wide, level) if self.is_consistent else wide

    def explain(self) -> str:
        """Shows what it was made of."""
        lines = [("price", f"free: made of the noisy numbers of {entries_in_words(self.made_of)}; no row was read")]
        lines += [("each person" if not place else "", text) for place, text in enumerate(self._derived.cut)]
        lines += [(f"  {each.name}", each.explain(self.plan, None, self.confidence)) for each in outputs(self.plan)]
        lines.append(("margins", self._stated()))
        return "\n".join(f"{left:<14} {right}".rstrip() for left, right in lines)

    def as_data(self) -> dict[str, Any]:
        return super().as_data() | {"made_of": list(self.made_of), "nominal": self.nominal}

    def _stated(self) -> str:
        confidence = f"± at {show_percent(self.confidence)} confidence"
        return f"{confidence}, nominal: it was asked after numbers that it is made of were seen" if self.nominal else confidence

    def _charged(self) -> str:
        return f"free: made of the answers of {entries_in_words(self.made_of)}, charged nothing"

    def _not_included(self) -> list[str]:
        return [*self._derived.cut, *super()._not_included()]
