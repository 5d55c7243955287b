"""The boundaries between the steps of an ask, each with a name: `watch` has a function called at every one of them.

What is watched is the real path on the real stores. Nothing is replaced; each step is only announced, before it is done and
after it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dither.curator import Curator
from dither.ledger import receipts
from dither.ledger.ledger import Ledger
from dither.ledger.reservations import Reservation
from dither.ledger.stores import sqlite
from dither.ledger.stores.postgres_wire import Statement, Wire
from dither.ledger.stores.sqlite import SQLite
from dither.planning.outputs import Draw

Step = Callable[[str], None]

# Where an ask must be stoppable, in this order, on every store.
EXPECTED = (
    "after read",
    "after plan",
    "after prepare",
    "before reserve",
    "before BEGIN",
    "after BEGIN",
    "before COMMIT",
    "after COMMIT",
    "after reserve",
    "before touch",
    "after touch",
    "before run",
    "before the engine's query",
    "after the engine's query",
    "after run",
    "after keys",
    "after noise",
    "after release",
    "before commit",
    "before BEGIN",
    "after BEGIN",
    "before COMMIT",
    "after COMMIT",
    "after commit",
    "after table",
    "answer in hand",
    "answer shown",
)


def in_order(wanted: tuple[str, ...], found: list[str]) -> bool:
    """Whether all of `wanted` are in `found`, in their order; others may stand between them."""
    rest = iter(found)
    return all(name in rest for name in wanted)


def announced(real: Callable[..., Any], step: Step, shown: str) -> Callable[..., Any]:
    """The same, with a word before it and one after it."""

    def watched(*args: Any, **options: Any) -> Any:
        step(f"before {shown}")
        found = real(*args, **options)
        step(f"after {shown}")
        return found

    return watched


def around(owner: Any, name: str, step: Step, shown: str = "") -> None:
    setattr(owner, name, announced(getattr(owner, name), step, shown or name))


def watch(survey: Curator, step: Step) -> None:
    """Announce every step of the asks of this process from here on."""
    names = ("read", "plan", "prepare", "run", "release", "table")
    now = survey.steps
    draw = Draw(announced(now.draw.keys, step, "keys"), announced(now.draw.noise, step, "noise"))
    survey.steps = replace(now, **{name: announced(getattr(now, name), step, name) for name in names}, draw=draw)
    around(survey.engine, "_fetch", step, "the engine's query")
    around(Reservation, "touch", step)
    for ledger_step in ("reserve", "commit", "cancel"):
        around(Ledger, ledger_step, step)
    store = survey.ledger.store
    if isinstance(store, SQLite):
        store._connection = Spoken(store._connected(), step)  # type: ignore[assignment]
    else:
        watch_postgres(step)


def watch_making(step: Step) -> None:
    """Announce every step in which a new ledger and its key are made."""
    around(receipts, "publish", step, "the key's name")
    around(sqlite, "publish", step, "the ledger's name")
    connect = sqlite._connect
    sqlite._connect = lambda where: Spoken(connect(where), step)  # type: ignore[assignment,return-value]
    watch_postgres(step)


def watch_postgres(step: Step) -> None:
    real = Wire.run

    def run(wire: Wire, *statements: Statement) -> Any:
        words = [each.sql.split()[0].decode() for each in statements]
        return _said(next((word for word in ("BEGIN", "COMMIT") if word in words), words[0]), step, real, wire, *statements)

    Wire.run = run  # type: ignore[method-assign]


class Spoken:
    """A connection to SQLite that announces its statements."""

    def __init__(self, real: Any, step: Step) -> None:
        self._real = real
        self._step = step

    def execute(self, sql: str, *values: Any) -> Any:
        return _said(sql.split()[0], self._step, self._real.execute, sql, *values)

    def executescript(self, script: str) -> Any:
        return _said("COMMIT", self._step, self._real.executescript, script)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _said(word: str, step: Step, real: Callable[..., Any], *args: Any) -> Any:
    step(f"before {word}")
    found = real(*args)
    if word in ("BEGIN", "COMMIT"):  # after any other statement is before the next one
        step(f"after {word}")
    return found
