"""Asks several questions at the same time on neighbouring tables: what is charged and written must not depend on rows.

Four threads ask the same question and one asks another, all at once. Noise is real here, so only what has none is compared: how
each question ended, what was charged, and the ledger without its answers. The same question in flight is charged once.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dither as dt
from dither.audit.ourselves.catalogs import CatalogSetup
from dither.audit.ourselves.observe import CHANCE, FIRST, open_curator
from dither.audit.ourselves.spelled import params_of
from dither.audit.ourselves.survey import Person
from dither.curator import STEPS, Steps
from dither.engines.duckdb.backend import DuckDBBackend

SAME = 4
HIDDEN = (*CHANCE, "payload", "digest")


@dataclass(frozen=True)
class Flight:
    """How the questions ended, what they cost together, and what the ledger holds without answers."""

    endings: Counter[str]
    charge: str
    entries: Counter[str]


def fly(
    setup: CatalogSetup, people: Sequence[Person], questions: tuple[str, str], price: tuple[Any, Any], steps: Steps = STEPS
) -> Flight:
    """Asks the first question several times and the second once, at the same time."""
    rows: dict[str, list[Any]] = {name: list(setup.rows_without_unit.get(name, [])) for name in setup.schemas}
    for person in people:
        for name, mine in person.items():
            rows[name] = [*rows[name], *mine]
    tables = {name: setup.arrow(name, rows[name]) for name in setup.schemas}
    curator = open_curator(setup.catalog(tables), steps, DuckDBBackend(threads=1))
    try:
        endings = _at_once(curator, [questions[0]] * SAME + [questions[1]], price)
        bodies = [json.loads(row.body) for row in curator.ledger.store.rows(1) if row.kind not in FIRST]
        shown = [
            json.dumps({name: part for name, part in body.items() if name not in HIDDEN}, sort_keys=True) for body in bodies
        ]
        spent = curator.budget.spent
        return Flight(Counter(endings), f"{spent.epsilon}, {spent.delta}", Counter(shown))
    finally:
        curator.close()


def _at_once(curator: dt.Curator, questions: list[str], price: tuple[Any, Any]) -> list[str]:
    endings, start = [""] * len(questions), threading.Barrier(len(questions))

    def ask(place: int) -> None:
        start.wait()
        try:
            curator.ask(questions[place], *price, params=params_of(questions[place]))
            endings[place] = f"{questions[place]}: answered"
        except dt.DitherError as error:
            endings[place] = f"{questions[place]}: {type(error).__name__}: {error}"

    threads: list[threading.Thread] = [threading.Thread(target=ask, args=(place,)) for place in range(len(questions))]
    _each(threads, threading.Thread.start)
    _each(threads, threading.Thread.join)
    return endings


def _each(threads: list[threading.Thread], do: Callable[[threading.Thread], None]) -> None:
    for thread in threads:
        do(thread)


def differences(one: Flight, two: Flight) -> list[str]:
    """Returns what differs between two neighbouring tables, and a question that was charged more than once."""
    named = {
        "how questions in flight end": (one.endings, two.endings),
        "what questions in flight cost": (one.charge, two.charge),
    }
    named["what questions in flight leave in the ledger"] = (one.entries, two.entries)
    words = [name for name, (left, right) in named.items() if left != right]
    twice = any(many > 1 for text, many in one.entries.items() if '"reserved/1"' in text)
    return [*words, *(["the same question is charged more than once"] if twice else [])]
