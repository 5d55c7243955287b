"""Adapters: one for each way in which code under audit draws its noise.

Every adapter has `run(function, data, tape)`, which calls the function so that all its draws come from the tape.

Plain         calls f(data, noise), which asks `noise` for every draw:

    def noisy_sum(data, noise):
        return noise.laplace(10, at=sum(min(max(x, 0), 10) for x in data))      # or: total + noise.laplace(10)

              In production the same function gets a `noise` that draws real randomness.
NumpyRng      calls f(data, rng) with a stand-in for numpy.random.Generator.
NumpyPatched  calls f(data) and replaces numpy.random's functions, default_rng and RandomState meanwhile. Code that took a
              function or a generator out of numpy.random at import is not reached. Its draws are unseen: two runs with the
              same tape give different outputs.
OpenDP        releases OpenDP measurements from the tape. OpenDP draws inside its compiled library, but a measurement knows how
              it was built, so a chain runs step by step: the transformation as it is, the Laplace, geometric or Gaussian
              release from the tape at the exact answer, and the postprocessing as it is. A query to an adaptive composition
              (`dp.Context`) is checked by OpenDP, and then released in the same way. Other measurements are unseen.
Diffprivlib   releases diffprivlib mechanisms from the tape: `randomise(value)` is a release at that location. Laplace,
              geometric and Gaussian mechanisms have a known law; truncated and folded ones add a fixed cut; the rest is unseen.

With numpy, Laplace and normal draws have a known law, uniform draws can be set, and all other draws are only repeated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dither.audit.replay.tape import GAUSSIAN, GEOMETRIC, LAPLACE, Draw, Tape, patched


@dataclass(frozen=True)
class Noise:
    """The noise of `Plain`. With `at`, a call returns location + noise: the whole release of a mechanism."""

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
        """Returns the place of a candidate, with probability proportional to exp(epsilon score / 2 sensitivity)."""
        return self.tape.choice([float(epsilon) * float(score) / (2 * float(sensitivity)) for score in scores])


@dataclass(frozen=True)
class Plain:
    """Calls `f(data, noise)`."""

    name: str = "plain"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        return function(data, Noise(tape))


_REAL, _REAL_BITS, _REAL_OLD = np.random.Generator, np.random.PCG64, np.random.RandomState
_REPEATED = (
    *("integers", "choice", "bytes", "shuffle", "permutation", "permuted", "beta", "binomial", "chisquare", "dirichlet"),
    *("exponential", "standard_exponential", "gamma", "standard_gamma", "geometric", "gumbel", "hypergeometric", "logistic"),
    *("lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial", "poisson", "power", "rayleigh"),
    *("standard_cauchy", "standard_t", "triangular", "vonmises", "wald", "weibull", "zipf", "pareto", "noncentral_chisquare"),
)
_OLD = (*(set(_REPEATED) - {"integers", "permuted"}), "randint")


class _Draws:
    """The laws by name, for numpy's Generator and RandomState."""

    tape: Tape

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._additive(LAPLACE, loc, scale, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._additive(GAUSSIAN, loc, scale, size)

    def _additive(self, kind: str, loc: Any, scale: Any, size: Any) -> Any:
        # A literal 0 means noise that is added elsewhere: it is no release to be frozen.
        unplaced = type(loc) in (int, float) and loc == 0
        drawn = self.tape.additive(kind, scale, None if unplaced else loc, size)
        return drawn if np.ndim(drawn) else float(drawn)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self.tape.additive(GAUSSIAN, 1.0, None, size)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self.tape.uniform(size=size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self.tape.uniform(float(low), float(high), size)


class Rng(_Draws, np.random.Generator):
    """A numpy Generator that draws from a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(_REAL_BITS(0))
        self.tape = tape

    def __new__(cls, tape: Tape) -> Rng:
        rng: Rng = _REAL.__new__(cls, _REAL_BITS(0))  # type: ignore[call-arg]  # numpy's own takes a bit generator
        return rng


class OldRng(_Draws, np.random.RandomState):
    """A numpy RandomState that draws from a tape."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(0)
        self.tape = tape

    def __new__(cls, tape: Tape) -> OldRng:
        rng: OldRng = _REAL_OLD.__new__(cls, 0)  # type: ignore[call-arg]
        return rng

    def random_sample(self, size: Any = None) -> Any:
        return self.tape.uniform(size=size)

    def rand(self, *shape: int) -> Any:
        return self.tape.uniform(size=shape or None)

    def randn(self, *shape: int) -> Any:
        return self.tape.additive(GAUSSIAN, 1.0, None, shape or None)

    def seed(self, *_: Any) -> None:
        """Does nothing: the tape decides."""


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
    """Calls `f(data)`, which draws from numpy.random itself."""

    name: str = "numpy.random"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        with numpy_random(tape):
            return function(data)


def numpy_random(tape: Tape) -> Any:
    """Makes numpy.random draw from the tape inside a `with` block."""
    old = OldRng(tape)
    names = {*_OLD, "laplace", "normal", "standard_normal", "random", "uniform", "random_sample", "rand", "randn", "seed"}
    changes = [(np.random, name, getattr(old, name)) for name in sorted(names) if hasattr(np.random, name)]
    changes += [(np.random, "default_rng", lambda *_: Rng(tape)), (np.random, "RandomState", lambda *_: OldRng(tape))]
    return patched([(owner, name, value) for owner, name, value in changes])


_LAWS = {"make_laplace": LAPLACE, "make_geometric": GEOMETRIC, "make_gaussian": GAUSSIAN}
_ADAPTIVE = ("make_adaptive_composition", "make_sequential_composition")  # one thing, renamed in OpenDP 0.14
_RELABELLED = ("make_approximate", "make_fix_delta", "make_pureDP_to_zCDP", "make_zCDP_to_approxDP")  # the same output


@dataclass(frozen=True)
class OpenDP:
    """Calls `f(data)`, which builds and calls measurements of OpenDP."""

    name: str = "OpenDP"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        core = importlib.import_module("opendp.core")
        steps = _Steps(tape, core.measurement_invoke, core.queryable_eval)
        with patched([(core, "measurement_invoke", steps.release), (core, "queryable_eval", steps.query)]):
            return function(data)


@dataclass(frozen=True)
class _Steps:
    """Runs measurements of OpenDP step by step, as far as they say how they were built."""

    tape: Tape
    invoke: Callable[[Any, Any], Any]
    evaluate: Callable[[Any, Any], Any]
    opened: list[tuple[Any, Any]] = field(default_factory=list)  # adaptive compositions, each with its data

    def release(self, this: Any, arg: Any) -> Any:
        """Releases one measurement."""
        built = getattr(this, "__opendp_dict__", {})
        maker, parts = built.get("__function__"), built.get("__kwargs__", {})
        if maker == "make_chain_mt":
            return self.release(parts["measurement1"], parts["transformation0"](arg))
        if maker == "make_chain_pm":
            return parts["postprocess1"](self.release(parts["measurement0"], arg))
        if maker in ("make_composition", "make_basic_composition"):
            return [self.release(part, arg) for part in parts["measurements"]]
        if maker in _RELABELLED:
            return self.release(parts["measurement"], arg)
        if maker in _ADAPTIVE:
            queryable = self.invoke(this, arg)
            self.opened.append((queryable.value, arg))
            return queryable
        if maker in _LAWS and _is_numbers(arg):
            return _additive(_LAWS[maker], parts["scale"], arg, self.tape, maker)
        self.tape.unseen(str(maker))
        return self.invoke(this, arg)

    def query(self, queryable: Any, query: Any) -> Any:
        """Answers a query to an adaptive composition. OpenDP answers it first, which refuses one beyond the budget."""
        answer = self.evaluate(queryable, query)
        for value, arg in self.opened:
            if value is queryable:
                return self.release(query, arg)
        self.tape.unseen("a query to an interactive mechanism")
        return answer


def _is_numbers(arg: Any) -> bool:
    values = arg if isinstance(arg, list) else [arg]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _additive(law: str, scale: float, arg: Any, tape: Tape, name: str) -> Any:
    whole = all(isinstance(value, int) for value in (arg if isinstance(arg, list) else [arg]))
    kind = GEOMETRIC if law == LAPLACE and whole else law
    if isinstance(arg, list):
        values = [tape.additive(kind, scale, value, name=name) for value in arg]
        return [round(value) for value in values] if whole else values
    released = tape.additive(kind, scale, arg, name=name)
    return round(released) if whole else released


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
                changes.append((owner, "randomise", _replacement(owner, tape)))
        with patched(changes):
            return function(data)


def _replacement(owner: type, tape: Tape) -> Callable[..., Any]:
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


class Adapter(Protocol):
    """Hands a tape to code that knows nothing of tapes."""

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
