"""The steps of a question, each a named value: what the auditor wraps, and tests replace.

    read ─▶ plan ─▶ prepare ─▶ reserve ─▶ run ─▶ release ─▶ commit ─▶ table

`Curator` is given them. Reserving and committing are the ledger's, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dither.engines.base import Engine, prepare
from dither.exact import entropy
from dither.planning.finish import DRAW, Draw, Noisy, Table, table
from dither.planning.plan import Plan
from dither.planning.program import Batch, Program, Run, release
from dither.planning.terms import Terms, plan_answer
from dither.privacy.filters import Caps
from dither.query.catalog import Catalog
from dither.query.read import Question, read
from dither.query.resolve import Resolved
from dither.query.work import Group, Work


def run(engine: Engine, work: Work) -> Sequence[Group]:
    """The engine's exact integers, with a fresh secret. What it raises may quote the data: the session keeps that back."""
    if not work.measures and not work.count_units:
        return []  # everything asked is public
    return engine.run(work, entropy.bits(256).to_bytes(32, "big"))


@dataclass(frozen=True)
class Steps:
    """The path from a question to its table. `draw` is where the noise of a release comes from."""

    read: Callable[[Question, Catalog], Resolved] = read
    plan: Callable[[Resolved, Catalog, Caps, Terms, str], Batch] = plan_answer
    prepare: Callable[[Engine, Sequence[Work]], None] = prepare
    run: Callable[[Engine, Work], Sequence[Group]] = run
    release: Callable[[Program, Run, Draw], Sequence[Noisy]] = release
    draw: Draw = DRAW
    table: Callable[[Plan, Noisy], Table] = table


STEPS = Steps()
