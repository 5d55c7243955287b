"""How foreign code takes its noise: one small adapter for each way of drawing.

Every adapter has `run(function, data, tape)`: it calls the function so that all its draws come from the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dither.audit.adapters.diffprivlib_noise import Diffprivlib
from dither.audit.adapters.numpy_noise import NumpyPatched, NumpyRng
from dither.audit.adapters.opendp_noise import OpenDP
from dither.audit.adapters.plain import Plain
from dither.audit.adapters.tape import Draw, Tape


class Adapter(Protocol):
    """A way to hand a tape to code that knows nothing of tapes."""

    @property
    def name(self) -> str: ...

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any: ...


NAMED: dict[str, Adapter] = {
    "plain": Plain(),
    "rng": NumpyRng(),
    "numpy": NumpyPatched(),
    "opendp": OpenDP(),
    "diffprivlib": Diffprivlib(),
}

__all__ = ["NAMED", "Adapter", "Diffprivlib", "Draw", "NumpyPatched", "NumpyRng", "OpenDP", "Plain", "Tape"]
