"""Reads what other libraries state about a mechanism, as a loss that is priced and certified here.

`from_dp_accounting` reads an event tree of dp_accounting by the names of its classes and fields, so that library need not be
installed. `from_opacus` reads noise multiplier, sample rate and number of steps, or an accountant's history of them.

| event | read as |
|---|---|
| Gaussian | continuous Gaussian noise; the L2 norm of what one unit moves is at most 1/noise_multiplier of sigma |
| Laplace, DiscreteLaplace | noise on one number |
| PoissonSampled of one of these | the same on a Poisson sample, add/remove neighbours |
| RandomizedResponse | k-ary response, for one replaced value; not beside events about an added or removed unit |
| ZCDp | zCDP; it and everything beside it is then priced through zCDP |
| Composed, SelfComposed, NoOp | sums; what depends on earlier answers may be asked, but not how much noise there is |

Everything else is refused, as is noise of size 0. A float means the decimal that it prints as.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError, Fix, PriceError, Python
from dither.exact.balls import above, ball
from dither.exact.numbers import Number, between, items, not_negative, positive, whole
from dither.privacy.losses import ZCDP, Curve, Loss, total
from dither.privacy.parts import DiscreteLaplace, Gaussian, KaryResponse, Laplace, Part, Subsampled, SubsampledGaussian

__all__ = ["from_dp_accounting", "from_opacus"]

_MOST_DEPTH = 64
_FIX = Fix(
    "state its loss yourself, such as {pure} or {rho}, and add it.", pure=Python("dt.Pure(0.1)"), rho=Python("dt.ZCDP(0.1)")
)


def from_opacus(noise_multiplier: Any, sample_rate: Number | None = None, steps: int = 1) -> Curve:
    """Returns the loss of DP-SGD: `steps` steps of Gaussian noise on Poisson samples, add/remove neighbours.

    Pass an accountant's `history` alone, a list of (noise_multiplier, sample_rate, steps), if they changed during training.

    >>> round(float(from_opacus(1, 0.01, 1000).epsilon("1e-6")), 5)
    2.12452
    """
    if sample_rate is not None:
        count = whole(steps, "steps", least=0)
        sigma, q = positive(_number(noise_multiplier), "noise_multiplier"), between(sample_rate, "sample_rate", 0, 1)
        return Curve.of(SubsampledGaussian(q, sigma), count) if q else Curve(())
    curve = Curve(())
    for entry in items(noise_multiplier, "history", fix="pass accountant.history, or noise_multiplier, sample_rate and steps."):
        if not isinstance(entry, tuple | list) or len(entry) != 3:
            what = "history must hold (noise_multiplier, sample_rate, steps), and one entry does not."
            raise ArgumentError(what, fix="pass accountant.history.")
        curve = Curve((*curve.parts, *from_opacus(*entry).parts))
    return curve


def _number(value: Any) -> Any:
    """Returns a number as it is; reads numpy's own floats and integers as Python's."""
    return value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value


def from_dp_accounting(event: Any) -> Loss:
    """Returns the loss of an event tree of dp_accounting.

    >>> class GaussianDpEvent:
    ...     noise_multiplier = 2.0
    >>> from_dp_accounting(GaussianDpEvent()) == Curve.of(Gaussian("1/4"))
    True
    """
    kinds: set[str] = set()
    loss = _read(event, kinds, _MOST_DEPTH)
    if len(kinds) > 1:
        raise PriceError(
            "The events mix randomized response, which is about a replaced value, with others, which are about an added or "
            "removed unit: their losses do not add.",
            fix="price the two apart, each under its own neighbours.",
        )
    return loss


def _read(event: Any, kinds: set[str], depth: int) -> Loss:
    if depth == 0:
        raise PriceError(f"The events are nested more than {_MOST_DEPTH} deep.", fix="flatten the tree.")
    name = type(event).__name__
    if name == "NoOpDpEvent":
        return Curve(())
    if name == "ComposedDpEvent":
        events = items(_field(event, "events"), "events", fix="pass a list of events.")
        return total([Curve(()), *(_read(each, kinds, depth - 1) for each in events)])
    if name == "SelfComposedDpEvent":
        count = whole(_field(event, "count"), "count", least=0)
        return _read(_field(event, "event"), kinds, depth - 1).repeat(count)
    if name == "ZCDpEvent":
        kinds.add("unit")
        # xi + rho a <= (xi + rho) a for every order a >= 1.
        return ZCDP(not_negative(_field(event, "rho"), "rho") + not_negative(_field(event, "xi"), "xi"))
    if name == "RandomizedResponseDpEvent":
        kinds.add("value")
        return _response(event)
    kinds.add("unit")
    part = _sampled(event, Fraction(1), depth)
    return Curve.of(part) if part is not None else Curve(())


def _field(event: Any, name: str) -> Any:
    if not hasattr(event, name):
        raise ArgumentError(f"{type(event).__name__} has no field {name}.", fix="pass an event of dp_accounting.")
    return _number(getattr(event, name))


def _sampled(event: Any, q: Fraction, depth: int) -> Part | None:
    """Returns the part of one mechanism on a sample of share q, or None if nobody is in it."""
    name = type(event).__name__
    if name == "PoissonSampledDpEvent" and depth:
        share = between(_field(event, "sampling_probability"), "sampling_probability", 0, 1)
        return _sampled(_field(event, "event"), q * share, depth - 1)
    if name == "NoOpDpEvent":
        return None
    if name == "GaussianDpEvent":
        sigma = positive(_field(event, "noise_multiplier"), "noise_multiplier")
        part: Part = Gaussian(1 / sigma**2) if q == 1 else SubsampledGaussian(q or 1, sigma)
    elif name == "LaplaceDpEvent":
        part = Laplace(1 / positive(_field(event, "noise_multiplier"), "noise_multiplier"))
    elif name == "DiscreteLaplaceDpEvent":
        steps = whole(_field(event, "sensitivity"), "sensitivity", least=1)
        part = DiscreteLaplace(positive(_field(event, "noise_parameter"), "noise_parameter") * steps, steps)
    else:
        raise PriceError(f"{name} has no price here.", fix=_FIX)
    if q == 0:
        return None
    return part if q == 1 or isinstance(part, SubsampledGaussian) else Subsampled(part, q)


def _response(event: Any) -> Curve:
    """Returns k-ary response that reports the truth, but with probability p any of the k values, all alike."""
    p = between(_field(event, "noise_parameter"), "noise_parameter", 0, 1, open_low=True)
    k = whole(_field(event, "num_buckets"), "num_buckets", least=1)
    if k == 1 or p == 1:
        return Curve(())
    return Curve.of(KaryResponse(above(lambda: ball(1 + k * (1 - p) / p).log()), k))
