"""Made-up questions, and a catalog of poisoned tables to ask them about: the auditor's own."""

from __future__ import annotations

from dither.audit.ourselves.poisoned import poisoned
from dither.audit.ourselves.questions import Maker

__all__ = ["Maker", "poisoned"]
