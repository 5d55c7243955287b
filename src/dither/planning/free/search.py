"""Searches stored answers for what they give one question, each answer once.

What is found depends on the question, the catalog and the terms, and on no analyst: who may get an answer is asked each time.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from dither.catalog.values import Catalog
from dither.planning.free.derive import Source, Wanted, sources, wanted
from dither.planning.free.stored import parts_of
from dither.planning.terms import Terms
from dither.query.resolve.relations import Resolved
from dither.text import folded


@dataclass
class Search:
    """What stored answers give one question, as far as the ledger was read: up to the entry `last`.

    `want`: what is asked, or why no earlier answer can give it. `answers`: the stored answers that serve, by their entries.
    """

    want: Wanted | str
    tables: frozenset[str]
    last: int = 0
    answers: dict[int, Any] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, query: Resolved, catalog: Catalog, terms: Terms) -> Search:
        """Begins a search. Refuses bounds that the question may not name."""
        return cls(wanted(query, catalog, terms), frozenset(map(folded, query.tables)))

    def add(self, entry: int, tables: tuple[str, ...], plan: str, answer: Any) -> None:
        """Looks at one more stored answer, about these tables, and keeps it if it serves."""
        if isinstance(self.want, str) or not self.tables <= set(tables):
            return
        found = list(sources(self.want, parts_of(entry, plan)))
        self.sources += found
        if found:
            self.answers[entry] = answer
