"""Plans questions in all their forms from the public catalog, as the curator plans them beside the data.

A plan depends on the question, the catalog, its caps and the terms, so both make the same one; tests/server/test_client.py
compares them. `public` is called where public tables decide a part of the question: they are on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dither.catalog.values import Catalog
from dither.errors import QueryError
from dither.exact.numbers import Number
from dither.planning.auto import Auto
from dither.planning.listing import plan_list
from dither.planning.lookups import lookups
from dither.planning.program import Batch
from dither.planning.several import Asked, Several, check_list, plan_questions, plan_several
from dither.planning.terms import Terms, plan_answer
from dither.privacy.filters import Caps
from dither.query.nodes import Query
from dither.query.read import Question, list_with_params, read, read_union, text_of, with_params
from dither.query.resolve.relations import Resolved
from dither.query.sql.parameters import Params
from dither.query.union import Results

Questions = list[Question] | list[str] | tuple[Question, ...]


def needs_public(query: Resolved) -> bool:
    """Returns whether public tables decide a part of the question: a subquery above its groups, or which groups there are."""
    if not query.query.above and not query.joint:
        return False
    return any(lookups(query)) or any(each.rows is not None for each in query.joint)


@dataclass(frozen=True)
class Planner:
    """Plans the questions about one catalog. Reads no private row."""

    catalog: Catalog
    caps: Caps
    public: Callable[[Resolved, Question], Resolved]
    reader: Callable[[Question, Catalog], Resolved] = read
    plan: Callable[[Resolved, Catalog, Caps, Terms, str], Batch | Auto] = plan_answer

    def read(self, question: Question) -> Resolved:
        """The resolved query, with what public tables decide."""
        query = self.reader(question, self.catalog)  # query: names, types, legality, who the unit is
        return self.public(query, question) if needs_public(query) else query

    def free_list(self, question: Question | Questions, params: Params | None) -> Batch | None:
        """Returns the plan of a list of public keys, which needs no price; None for other questions."""
        if isinstance(question, (list, tuple)) or read_union(filled := with_params(question, params), self.catalog) is not None:
            return None
        query = self.read(filled)
        return plan_list(query, self.catalog) if query.lists else None

    def one(self, question: Question, terms: Terms) -> tuple[Batch | Auto, Resolved]:
        """Returns the plan of one question, and the question as it was read."""
        query = self.read(question)
        if query.lists:
            return plan_list(query, self.catalog), query
        return self._plan(query, terms, text_of(question)), query

    def _plan(self, query: Resolved, terms: Terms, within: str) -> Batch | Auto:
        if query.lists:  # one of several questions
            raise QueryError(
                "A list of public values is free, and part of no other question.", text=within, fix="ask it alone."
            )
        return self.plan(query, self.catalog, self.caps, terms, within)  # planning

    def union(self, question: Question, terms: Terms) -> tuple[Several, Results] | None:
        """Returns the plans of results that UNION puts together, and how; None for other questions."""
        union = read_union(question, self.catalog)
        if union is None:
            return None
        queries, results = union
        found = tuple(self._with_public(each, question) for each in queries)
        return plan_several([Asked(found, text_of(question))], terms, None, self._plan, "Part", self.caps), results

    def several(
        self, questions: Sequence[Question], terms: Terms, weights: Sequence[Number] | None
    ) -> tuple[Several, list[Query | Results], str]:
        """Returns the plans of a list of questions, how the answer of each is put together, and the list as text."""
        return plan_questions(questions, terms, weights, self._read_any, self._plan, self.caps)

    def _read_any(self, question: Question) -> tuple[list[Resolved], Query | Results]:
        """Returns the private questions of a question, and how its answer is put together."""
        union = read_union(question, self.catalog)
        if union is not None:
            return [self._with_public(each, question) for each in union[0]], union[1]
        query = self.read(question)
        return [query], query.query

    def _with_public(self, query: Resolved, question: Question) -> Resolved:
        return self.public(query, question) if needs_public(query) else query


def filled_list(questions: Sequence[Question], params: Params | None) -> list[Question]:
    """Returns the questions of a list with the values of their parameters."""
    check_list(questions)
    return list_with_params(questions, params)
