"""Keeps the plans of recent questions.

A plan depends on the question, the catalog and the terms only: on no row, no analyst and nothing that the ledger holds. So the
same text at the same terms is planned once, and what it costs, whether the budget allows it and what stored answers give is
asked of the ledger each time. The question that was not used for the longest time is forgotten first.
"""

from __future__ import annotations

import datetime
import operator
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dither.catalog.values import Catalog
from dither.planning.auto import Auto
from dither.planning.free.search import Search
from dither.planning.program import Batch
from dither.planning.terms import Terms
from dither.query.read import Question, WithParams
from dither.query.resolve.relations import Resolved

MOST = 512  # plans
LARGEST = 4_000_000  # characters of the texts of all plans together; a small question has 25,000, and takes 70 kB of memory
_EXACT = (str, int, bool, float, Decimal, datetime.date, datetime.datetime, type(None))


@dataclass(frozen=True)
class Planned:
    """A planned question. `text`: as the ledger shows it; `within`: in which a refusal marks its place."""

    program: Batch | Auto
    text: str
    within: str
    query: Resolved
    terms: Terms
    known: tuple[object, ...]  # what it was planned with
    listed: bool = False  # a list of public keys, which is never charged

    def search(self, catalog: Catalog) -> Search:
        """Returns the search for stored answers that give this one. Refuses bounds that the question may not name."""
        found: Search | None = self.__dict__.get("_search")
        if found is None:
            found = Search.of(self.query, catalog, self.terms)
            object.__setattr__(self, "_search", found)
        return found


def key_of(question: Question, terms: Terms) -> Hashable | None:
    """Returns what a plan is found again by; None for questions that are planned each time."""
    if terms.margin is not None:
        return None
    if isinstance(question, str):
        return question, terms
    if isinstance(question, WithParams):
        values = [_exactly(value) for value in question.params.values()]
        return None if None in values else (question.text, terms, tuple(question.params), tuple(values))
    return None


def _exactly(value: Any) -> str | None:
    """Returns a text that only this value of this type has: 1, 1.0 and True are equal, and not the same."""
    if type(value) in (list, tuple):
        parts = [_exactly(each) for each in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    return f"{type(value).__name__} {value!r}" if type(value) in _EXACT else None


class RecentPlans:
    """The plans of recent questions, as many as fit. Threads may share it."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, tuple[Planned, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, question: Question, terms: Terms, known: tuple[object, ...]) -> Planned | None:
        """Returns the plan of a question, if it was made with the very objects `known`."""
        key = key_of(question, terms)
        if key is None:
            return None
        with self._lock:
            found = self._plans.get(key)
            if found is None or not all(map(operator.is_, found[0].known, known)):
                return None
            self._plans.move_to_end(key)
            return found[0]

    def keep(self, question: Question, planned: Planned) -> Planned:
        """Keeps a plan, and forgets those that were not used for the longest time if there are too many."""
        key = key_of(question, planned.terms)
        if key is None:
            return planned
        size = len(planned.text) + len(planned.program.identity)
        with self._lock:
            self._remove(key)
            if size <= LARGEST:
                self._plans[key], self._size = (planned, size), self._size + size
            while self._size > LARGEST or len(self._plans) > MOST:
                self._remove(next(iter(self._plans)))
        return planned

    def _remove(self, key: Hashable) -> None:
        _, size = self._plans.pop(key, (None, 0))
        self._size -= size

    def clear(self) -> None:
        with self._lock:
            self._plans.clear()
            self._size = 0
