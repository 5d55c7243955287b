"""Code that draws with numpy: a generator that is handed over, or numpy.random itself while the code runs.

`NumpyRng` calls `f(data, rng)` with a stand-in for numpy.random.Generator. `NumpyPatched` calls `f(data)` and stands in for
numpy.random's functions, default_rng and RandomState meanwhile. Laplace and normal draws are known by their law, uniform
ones can be steered, all others are repeated only. Code that took a function or a generator out of numpy.random before (at
import) is not reached: its draws are unseen, which shows as two equal runs with different outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.audit.adapters.tape import GAUSSIAN, LAPLACE, Tape, patched

_REAL, _REAL_BITS, _REAL_OLD = np.random.Generator, np.random.PCG64, np.random.RandomState
_REPEATED = (
    *("integers", "choice", "bytes", "shuffle", "permutation", "permuted", "beta", "binomial", "chisquare", "dirichlet"),
    *("exponential", "standard_exponential", "gamma", "standard_gamma", "geometric", "gumbel", "hypergeometric", "logistic"),
    *("lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial", "poisson", "power", "rayleigh"),
    *("standard_cauchy", "standard_t", "triangular", "vonmises", "wald", "weibull", "zipf", "pareto", "noncentral_chisquare"),
)
_OLD = (*(set(_REPEATED) - {"integers", "permuted"}), "randint")


class _Draws:
    """The named laws, for both the new and the old way of drawing."""

    tape: Tape

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._additive(LAPLACE, loc, scale, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._additive(GAUSSIAN, loc, scale, size)

    def _additive(self, kind: str, loc: Any, scale: Any, size: Any) -> Any:
        # A written 0 is how noise is asked for that is added elsewhere: it is no release to be frozen.
        nowhere = type(loc) in (int, float) and loc == 0
        given = self.tape.additive(kind, scale, None if nowhere else loc, size)
        return given if np.ndim(given) else float(given)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self.tape.additive(GAUSSIAN, 1.0, None, size)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self.tape.uniform(size=size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self.tape.uniform(float(low), float(high), size)


class Rng(_Draws, np.random.Generator):
    """Passes for a numpy Generator."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(_REAL_BITS(0))
        self.tape = tape

    def __new__(cls, tape: Tape) -> Rng:
        made: Rng = _REAL.__new__(cls, _REAL_BITS(0))  # type: ignore[call-arg]  # numpy's own takes the source of bits
        return made


class OldRng(_Draws, np.random.RandomState):
    """Passes for a numpy RandomState."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(0)
        self.tape = tape

    def __new__(cls, tape: Tape) -> OldRng:
        made: OldRng = _REAL_OLD.__new__(cls, 0)  # type: ignore[call-arg]
        return made

    def random_sample(self, size: Any = None) -> Any:
        return self.tape.uniform(size=size)

    def rand(self, *shape: int) -> Any:
        return self.tape.uniform(size=shape or None)

    def randn(self, *shape: int) -> Any:
        return self.tape.additive(GAUSSIAN, 1.0, None, shape or None)

    def seed(self, *_: Any) -> None:
        """A seed changes nothing: the tape decides."""


def _repeated(name: str, old: bool) -> Callable[..., Any]:
    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        def make(seed: int) -> Any:
            source: Any = _REAL_OLD(seed % 2**32) if old else _REAL(_REAL_BITS(seed))
            return getattr(source, name)(*args, **kwargs)

        return self.tape.raw(make, name)

    return draw


for _name in _REPEATED:
    setattr(Rng, _name, _repeated(_name, old=False))
for _name in _OLD:
    setattr(OldRng, _name, _repeated(_name, old=True))


@dataclass(frozen=True)
class NumpyRng:
    """Calls `f(data, rng)`."""

    name: str = "numpy generator"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        return function(data, Rng(tape))


@dataclass(frozen=True)
class NumpyPatched:
    """Calls `f(data)`, which draws from numpy.random by itself."""

    name: str = "numpy.random"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        with numpy_random(tape):
            return function(data)


def numpy_random(tape: Tape) -> Any:
    """Inside the block numpy.random draws from the tape."""
    old = OldRng(tape)
    names = {*_OLD, "laplace", "normal", "standard_normal", "random", "uniform", "random_sample", "rand", "randn", "seed"}
    changes = [(np.random, name, getattr(old, name)) for name in sorted(names) if hasattr(np.random, name)]
    changes += [(np.random, "default_rng", lambda *_: Rng(tape)), (np.random, "RandomState", lambda *_: OldRng(tape))]
    return patched([(owner, name, value) for owner, name, value in changes])
