"""How far the integers of two tables lie apart, and everything that must be the same: the auditor's own comparison."""

from __future__ import annotations

from dither.audit.ourselves.compare import channels, complaints

__all__ = ["channels", "complaints"]
