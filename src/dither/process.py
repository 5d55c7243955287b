"""Detects forks: a fork copies the memory, and two copies would spend, settle or answer twice."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from dither.errors import DitherError


@dataclass(frozen=True)
class Origin:
    """The process in which an object was made.

    >>> Origin().here
    True
    """

    process: int = field(default_factory=os.getpid)

    @property
    def here(self) -> bool:
        """Whether this is that process, and not a fork of it."""
        return os.getpid() == self.process

    def check(self, what: str, fix: str, error: type[DitherError] = DitherError) -> None:
        """Refuses to continue in a fork."""
        if not self.here:
            raise error(what, fix=fix)
