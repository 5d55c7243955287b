"""The auditor: proves what can be proved, replays what can be replayed, attacks the rest.

`command` is the entry. `foreign` audits a user's function: `loading` imports it, `signature` and `inputs` choose its data, and
`testing` and `plugin` serve the tests of other projects. `synthetic` audits a catalog, `ourselves` audits dither; `exact`,
`replay` and `blackbox` are the methods, `verdict` and `report` hold the results.

Only `cli` may import it. Only it may use the recorded random stream (docs/architecture.md has the table of imports).
Rule: a verdict never says more than was shown: "proved"; "walked" with its assumption (samplers); "violates" with inputs
and event; "no violation found" with a lower bound and its confidence, or why nothing was concluded.
"""

from __future__ import annotations

from dither.audit.verdict import NOT_FOUND, PROVED, VIOLATES, WALKED, Event, Target, Verdict

__all__ = ["NOT_FOUND", "PROVED", "VIOLATES", "WALKED", "Event", "Target", "Verdict"]
