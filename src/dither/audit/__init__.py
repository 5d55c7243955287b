"""The auditor: prove what can be proved, replay what can be replayed, attack the rest.

May import: everything of ours but `cli` and `demo`; only `cli` may import it. It alone may reach the recorded stream.
Law kept: a verdict is "proved", "walked" with what that assumes (samplers), "violates" with the inputs and the event, or
"no violation found" with a lower bound and its confidence or why nothing was concluded; never more than was shown.
"""

from __future__ import annotations

from dither.audit.verdict import NOT_FOUND, PROVED, VIOLATES, WALKED, Event, Target, Verdict

__all__ = ["NOT_FOUND", "PROVED", "VIOLATES", "WALKED", "Event", "Target", "Verdict"]
