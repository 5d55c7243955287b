"""Our own path under replay: generated neighbours over generated questions, through the public door and the real DuckDB.

In the order data flows: worlds (catalogs and people made up, with survey, poisoned), questions, room (opened once, tables
exchanged), watch and frozen (one question from end to end, with recorded dice and frozen mechanisms), compare (integers
against what was priced, and everything else for equality), cases (all neighbouring pairs among a few people), shrink,
replaying. `timing` measures what run time tells.
"""

from __future__ import annotations

from dither.audit.own.replaying import replay, run_room

__all__ = ["replay", "run_room"]
