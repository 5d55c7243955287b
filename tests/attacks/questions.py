"""The auditor's generator of questions, and its catalog of poisoned tables."""

from __future__ import annotations

from dither.audit.ourselves.poisoned import poisoned
from dither.audit.ourselves.questions import Maker

__all__ = ["Maker", "poisoned"]
