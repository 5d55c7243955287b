"""The small adapter for any callable `f(data, noise)`: it asks `noise` for every draw.

    def noisy_sum(data, noise):
        return noise.laplace(10, at=sum(min(max(x, 0), 10) for x in data))      # or: total + noise.laplace(10)

In production the same function gets a `noise` of its owner's that draws real randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dither.audit.adapters.tape import GAUSSIAN, GEOMETRIC, LAPLACE, Tape


@dataclass(frozen=True)
class Noise:
    """What the audited function sees. With `at`, a call gives location + noise: a mechanism's whole release."""

    tape: Tape

    def laplace(self, scale: Any, at: Any = None, size: Any = None) -> Any:
        return self.tape.additive(LAPLACE, scale, at, size)

    def geometric(self, epsilon: Any = None, at: Any = None, size: Any = None, *, scale: Any = None) -> Any:
        """Two-sided: Pr[k] proportional to exp(-epsilon |k|), or exp(-|k| / scale)."""
        if (epsilon is None) == (scale is None):
            raise ValueError("geometric noise needs either epsilon or scale")
        return self.tape.additive(GEOMETRIC, 1 / epsilon if scale is None else scale, at, size)

    def gaussian(self, sigma: Any, at: Any = None, size: Any = None) -> Any:
        return self.tape.additive(GAUSSIAN, sigma, at, size)

    def uniform(self, size: Any = None) -> Any:
        return self.tape.uniform(size=size)

    def choice(self, scores: Sequence[Any], epsilon: Any, sensitivity: Any = 1) -> int:
        """The exponential mechanism: a candidate's place; chances proportional to exp(epsilon score / 2 sensitivity)."""
        return self.tape.choice([float(epsilon) * float(score) / (2 * float(sensitivity)) for score in scores])


@dataclass(frozen=True)
class Plain:
    """Calls `f(data, noise)`."""

    name: str = "plain"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        return function(data, Noise(tape))
