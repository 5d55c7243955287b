"""Answers several questions at one price: a list of questions, or the results that a UNION puts together.

    ε ─▶ a share for each question ─▶ a plan for each ─▶ one charge, one release, one stored answer

The price is the total. It is divided evenly, or in proportion to public weights; the share of a UNION in a list is divided
evenly over its parts. Even shares are best where all questions weigh
the same: the sum of w_i / epsilon_i^2 under a fixed sum of epsilon_i is smallest at shares in proportion to w_i^(1/3).

The charge is the composition of the parts: epsilons, deltas and rhos add up, whatever the parts are. Equal questions are one
part: they are asked once, and their weights add up. The identity is the set of the parts' identities, so the order of a list
does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from dither.errors import ArgumentError, DitherError, Fix, Name, Python, QueryError
from dither.exact.numbers import Number, positive
from dither.planning.auto import Auto
from dither.planning.bundles import Bundled, bundled
from dither.planning.outputs import Draw, Noisy
from dither.planning.plan import Plan
from dither.planning.price import Price
from dither.planning.program import Batch, Run, distinct_works
from dither.planning.records import decode_noisy, encode_identities, encode_noisy
from dither.planning.terms import Terms
from dither.privacy.filters import Caps, Charge
from dither.query.nodes import Query
from dither.query.read import Question, show_question, text_of
from dither.query.resolve.relations import Resolved
from dither.query.union import Results
from dither.query.work import Work

MOST = 1000  # questions in one list
Plans = Callable[[Resolved, Terms, str], Batch | Auto]


@dataclass(frozen=True)
class Several:
    """Programs that are charged, run and stored as one. `questions`: one for each question, in the order asked."""

    questions: tuple[Batch | Auto, ...]
    bundled: Bundled | None = None  # how they are measured together, if they are
    works: tuple[Work, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "works", distinct_works(self.plans))

    @cached_property
    def parts(self) -> tuple[Batch | Auto, ...]:
        """One program for each different question, in the order of their identities."""
        first = {each.identity: each for each in reversed(self.questions)}
        return tuple(first[text] for text in sorted(first))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Every plan that may run."""
        return tuple(plan for part in self.parts for plan in part.plans)

    @cached_property
    def total(self) -> Price:
        """The price of everything, as (epsilon, delta)."""
        return Price(self.charge.epsilon, self.charge.delta)

    @cached_property
    def identity(self) -> str:
        """The identities of the parts. A list of one question is that question."""
        texts = [part.identity for part in self.parts]
        return texts[0] if len(texts) == 1 else encode_identities(texts)

    @cached_property
    def charge(self) -> Charge:
        """The sum of the parts' charges, stated both ways."""
        each = [part.charge for part in self.parts]
        rhos = [one.rho for one in each if one.rho is not None]
        nothing = Fraction(0)
        return Charge(
            sum((one.epsilon for one in each), nothing),
            sum((one.delta for one in each), nothing),
            sum(rhos, nothing) if len(rhos) == len(each) else None,
            sum((one.slack for one in each), nothing),
        )

    @cached_property
    def mechanisms(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(record for part in self.parts for record in part.mechanisms)

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(table for part in self.questions for table in part.tables))

    @property
    def unit(self) -> str:
        return " and ".join(dict.fromkeys(unit for part in self.questions for unit in part.unit.split(" and ")))

    def release(self, run: Run, draw: Draw) -> tuple[Noisy, ...]:
        return tuple(noisy for part in self.parts for noisy in part.release(run, draw))

    def write(self, released: Sequence[Noisy]) -> str:
        stored = [decode_noisy(part.write(own)) for part, own in zip(self.parts, self._each(released), strict=True)]
        return encode_noisy([noisy for one in stored for noisy in one])

    def read(self, stored: str) -> tuple[Noisy, ...]:
        each = self._each(decode_noisy(stored))
        return tuple(noisy for part, own in zip(self.parts, each, strict=True) for noisy in part.read(encode_noisy(own)))

    def _each(self, released: Sequence[Noisy]) -> list[Sequence[Noisy]]:
        """Returns the releases of each part."""
        found, start = [], 0
        for part in self.parts:
            found.append(released[start : start + part.size])
            start += part.size
        return found

    def answers(self, released: Sequence[Noisy]) -> list[Sequence[Noisy]]:
        """Returns the releases of each question, in the order asked. Equal questions share one release."""
        own = {part.identity: (part, each) for part, each in zip(self.parts, self._each(released), strict=True)}
        found = []
        for question in self.questions:
            part, each = own[question.identity]
            found.append(each if part is question else question.read(part.write(each)))
        return found

    @property
    def shown(self) -> tuple[Batch | Auto, ...]:
        """The program that says what each answer is: with the noise of its numbers once they are put together."""
        return self.questions if self.bundled is None else self.bundled.shown

    def put_together(self, released: Sequence[Noisy]) -> list[Sequence[Noisy]]:
        """Returns the numbers of each question, as `shown` reads them: those of bundles by least squares."""
        found = self.answers(released)
        for bundle in () if self.bundled is None else self.bundled.bundles:
            run = [self.questions[place] for place in bundle.places]
            shown = [self.shown[place] for place in bundle.places]
            own = [found[place] for place in bundle.places]
            fitted = bundle.fit([each.plans[0] for each in run], [each[0] for each in own], [each.plans[0] for each in shown])
            for program, first, noisy, rest in zip(run, shown, fitted, own, strict=True):
                numbers = (noisy, *rest[1:])
                for place, other in enumerate(self.questions):
                    if other.identity == program.identity:
                        found[place] = numbers if self.shown[place] is first else self.shown[place].read(first.write(numbers))
        return found

    def price_of(self, places: Sequence[int]) -> Price:
        """Returns the share of the price of some questions. Equal questions are paid for once."""
        each = {self.questions[place].identity: self._price(place) for place in places}
        nothing = Fraction(0)
        epsilon = sum((one.epsilon for one in each.values()), nothing)
        return Price(epsilon, sum((one.delta for one in each.values()), nothing))

    def _price(self, place: int) -> Price:
        program = self.questions[place]
        if self.bundled is None or place not in self.bundled.prices:
            return program.total
        return self.bundled.prices[place]

    def further(self, place: int) -> tuple[tuple[str, str], ...]:
        """Returns what a quote says about how a question is measured with others."""
        return () if self.bundled is None else self.bundled.words(place)


@dataclass(frozen=True)
class Asked:
    """One of several questions: the private questions that its answer is put together from, and its text."""

    queries: Sequence[Resolved]
    text: str


def plan_questions(
    questions: Sequence[Question],
    terms: Terms,
    weights: Sequence[Number] | None,
    read: Callable[[Question], tuple[Sequence[Resolved], Query | Results]],
    plan: Plans,
    caps: Caps,
) -> tuple[Several, list[Query | Results], str]:
    """Returns the plans of a list of questions, how the answer of each is put together, and the list as text."""
    asked: list[Asked] = []
    shapes: list[Query | Results] = []
    for place, question in enumerate(questions, start=1):
        with refusing("Question", place, len(questions)):
            queries, shape = read(question)
        asked.append(Asked(queries, text_of(question)))
        shapes.append(shape)
    several = plan_several(asked, terms, weights, plan, caps=caps)
    return several, shapes, ";\n".join(show_question(each) for each in questions)


def plan_several(
    asked: Sequence[Asked],
    terms: Terms,
    weights: Sequence[Number] | None,
    plan: Plans,
    name: str = "Question",
    caps: Caps | None = None,
) -> Several:
    """Plans questions at one price. A question of several parts divides its share evenly over them. `name`: what a refusal
    calls each question, or each part of the only one. `caps`: of the budget; with them, questions of equal weight are measured
    together where that is better (bundles.py).

    With a margin there is nothing to divide: each question gets the smallest price that gives it the margin.
    """
    if terms.sample is not None:
        raise ArgumentError(
            "A sample is drawn for one question at a time.",
            fix=Fix("ask each question alone, or ask without {sample}.", sample=Name("sample")),
        )
    shared = zip(_weights(weights, len(asked), terms), asked, strict=True)
    wanted = [weight / len(each.queries) for weight, each in shared for _ in each.queries]
    queries = [query for each in asked for query in each.queries]

    def planned(own: Sequence[Terms]) -> list[Batch | Auto]:
        return list(_planned_each(asked, own, plan, name))

    if terms.margin is not None:
        return Several(tuple(planned([terms] * len(queries))))
    even = Fraction(1, len(queries))
    made = planned([_at(terms, even)] * len(queries))
    together: dict[str, Fraction] = {}
    for each, weight in zip(made, wanted, strict=True):
        before = together.get(each.identity, Fraction(0))
        together[each.identity] = max(weight, before) if weights is None else before + weight
    shares = [together[each.identity] / sum(together.values()) for each in made]
    if any(share != even for share in shares):
        made = planned([_at(terms, share) for share in shares])
    plain = Several(tuple(made))
    if caps is None or len(set(wanted)) > 1:
        return plain
    parts = [len(each.queries) > 1 for each in asked for _ in each.queries]
    found = bundled(queries, made, [_at(terms, share).price(caps) for share in shares], parts)
    return plain if found is None else Several(found.questions, found)


def _planned_each(asked: Sequence[Asked], own: Sequence[Terms], plan: Plans, name: str) -> Iterator[Batch | Auto]:
    """Plans each private question at its own terms. A refusal says which one it is about."""
    terms = iter(own)
    for number, each in enumerate(asked, start=1):
        for part, query in enumerate(each.queries, start=1):
            place, count = (number, len(asked)) if name == "Question" else (part, len(each.queries))
            with refusing(name, place, count):
                made = plan(query, next(terms), each.text)
            yield made


def _at(terms: Terms, share: Fraction) -> Terms:
    """Returns the terms at a share of the price."""
    epsilon = None if terms.epsilon is None else terms.epsilon * share
    return replace(terms, epsilon=epsilon, delta=None if terms.delta is None else terms.delta * share)


def _weights(weights: Sequence[Number] | None, count: int, terms: Terms) -> list[Fraction]:
    if weights is None:
        return [Fraction(1)] * count
    if terms.margin is not None:
        raise ArgumentError(
            "Weights divide a price, and a margin has no price to divide.",
            fix=Fix("leave {weights} out, or ask with {epsilon}.", weights=Python("weights"), epsilon="0.1"),
        )
    if not isinstance(weights, (list, tuple)) or len(weights) != count:
        raise ArgumentError(
            f"There are {count} questions, and each has one weight.",
            fix=Fix("write {weights}.", weights=Python(f"weights=[{', '.join(['1'] * min(count, 5))}]")),
        )
    return [positive(weight, "weight") for weight in weights]


def check_list(questions: Sequence[object]) -> None:
    """Refuses a list without questions, or with too many."""
    if not questions:
        raise ArgumentError("The list has no questions.", fix="ask at least one.")
    if len(questions) > MOST:
        raise ArgumentError(f"The list has {len(questions)} questions, and at most {MOST} are asked at once.", fix="ask fewer.")


@contextmanager
def refusing(name: str, number: int, count: int) -> Iterator[None]:
    """Says in a refusal which question of a list it is about."""
    try:
        yield
    except QueryError as error:
        if count == 1:
            raise
        raise QueryError(f"{name} {number}: {error.what}", text=error.text, span=error.span, fix=error.fix) from None
    except DitherError as error:
        if count == 1 or type(error) not in (ArgumentError, DitherError):
            raise
        raise type(error)(f"{name} {number}: {error.what}", where=error.where, fix=error.fix) from None
