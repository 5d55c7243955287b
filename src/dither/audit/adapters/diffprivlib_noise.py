"""diffprivlib, if it is installed: its mechanisms release from the tape while the audited code runs.

Each mechanism's `randomise(value)` is a release at a location. Laplace, geometric and Gaussian mechanisms are known by
their law; truncated and folded ones are these laws and a fixed cut; the rest is noted as unseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dither.audit.adapters.tape import GAUSSIAN, GEOMETRIC, LAPLACE, Tape, patched


@dataclass(frozen=True)
class Diffprivlib:
    """Calls `f(data)`, which uses diffprivlib."""

    name: str = "diffprivlib"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        mechanisms = importlib.import_module("diffprivlib.mechanisms")
        changes = []
        for name in mechanisms.__all__ if hasattr(mechanisms, "__all__") else dir(mechanisms):
            owner = getattr(mechanisms, name)
            if isinstance(owner, type) and "randomise" in vars(owner):
                changes.append((owner, "randomise", _standing_in(owner, tape)))
        with patched(changes):
            return function(data)


def _standing_in(owner: type, tape: Tape) -> Callable[..., Any]:
    make, real = _KNOWN.get(owner.__name__), vars(owner)["randomise"]

    def randomise(self: Any, *args: Any, **kwargs: Any) -> Any:
        if make is None:
            tape.unseen(owner.__name__)
            return real(self, *args, **kwargs)
        return make(self, args[0] if args else kwargs["value"], tape)

    return randomise


def _laplace(self: Any, value: Any, tape: Tape) -> float:
    self._check_all(value)
    scale = self.sensitivity / (self.epsilon - _log1m(self.delta))
    return float(tape.additive(LAPLACE, scale, float(value), name=type(self).__name__))


def _log1m(delta: float) -> float:
    return float(importlib.import_module("math").log1p(-delta))


def _geometric(self: Any, value: Any, tape: Tape) -> int:
    self._check_all(value)
    scale = self.sensitivity / self.epsilon
    return int(tape.additive(GEOMETRIC, scale, int(value), name=type(self).__name__))


def _gaussian(self: Any, value: Any, tape: Tape) -> float:
    self._check_all(value)
    return float(tape.additive(GAUSSIAN, float(self._scale), float(value), name=type(self).__name__))


def _cut(inner: Callable[..., Any], way: str) -> Callable[..., Any]:
    return lambda self, value, tape: getattr(self, way)(inner(self, value, tape))


_KNOWN: dict[str, Callable[..., Any]] = {
    "Laplace": _laplace,
    "LaplaceTruncated": _cut(_laplace, "_truncate"),
    "LaplaceFolded": _cut(_laplace, "_fold"),
    "Geometric": _geometric,
    "GeometricTruncated": _cut(_geometric, "_truncate"),
    "GeometricFolded": _cut(_geometric, "_fold"),
    "Gaussian": _gaussian,
    "GaussianAnalytic": _gaussian,
}
