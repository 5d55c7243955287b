"""The auditor's comparison of two tables: how far integers moved, and what must be equal."""

from __future__ import annotations

from dither.audit.ourselves.compare import channels, complaints

__all__ = ["channels", "complaints"]
