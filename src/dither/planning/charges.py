"""What a plan costs, stated both ways, and which noise it is the price of: for ledgers and receipts.

Everything here is read off the objects that draw: a price of its own, kept beside them, could come apart from the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dither.mechanisms import L1, L2, Exponential, Gaussian, Geometric, PerCoordinate, Threshold
from dither.planning.plan import Plan
from dither.privacy.either import Charge
from dither.privacy.losses import Approx, Pure, total


def charge(plans: Sequence[Plan]) -> Charge:
    """The charge of plans that are run together. A question is one plan; a proposal of bounds has several."""
    stated = total([plan.loss for plan in plans])
    if not isinstance(stated, (Pure, Approx)):
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    return Charge.of(stated, total([plan.zcdp for plan in plans]).zcdp())


def mechanisms(plans: Sequence[Plan]) -> tuple[dict[str, Any], ...]:
    """One record for each noise that will be drawn: its name and its exact parameters, in plain values."""
    found = []
    for plan in plans:
        for noise in plan.noises:
            found.append({**record(noise.mechanism), "on": noise.of.words, "groups": noise.groups, "steps": noise.steps})
        found += [{**record(plan.threshold), "on": "keys", "groups": 1, "steps": 1}] if plan.threshold else []
    return tuple(found)


def record(mechanism: Geometric | Gaussian | Exponential | Threshold) -> dict[str, Any]:
    """The mechanism by name, with what it needs to be built again.

    >>> record(Geometric(epsilon="1/10", sensitivity=1))
    {'mechanism': 'Geometric', 'epsilon': '1/10', 'sensitivity': {'norm': 'L1', 'bound': '1'}}
    """
    name = {"mechanism": type(mechanism).__name__}
    if isinstance(mechanism, Gaussian):
        norm = _norm(mechanism.sensitivity)
        return {**name, "rho": _text(mechanism.loss().zcdp().rho), "variance": _text(mechanism.variance), "sensitivity": norm}
    if isinstance(mechanism, Threshold):
        parts = {"epsilon": _text(mechanism.epsilon), "delta": _text(mechanism.delta)}
        return {**name, **parts, "keys_per_unit": mechanism.keys_per_unit, "rule": mechanism.rule}
    moved = mechanism.sensitivity
    return {
        **name,
        "epsilon": _text(mechanism.epsilon),
        "sensitivity": _text(moved) if isinstance(moved, Fraction) else _norm(moved),
    }


def _norm(norm: L1 | L2 | PerCoordinate) -> dict[str, Any]:
    name = type(norm).__name__
    if isinstance(norm, PerCoordinate):
        return {"norm": name, "count": norm.count, "each": _text(norm.each)}
    return {"norm": name, "bound": _text(norm.value)}


def _text(value: Fraction) -> str:
    return str(Fraction(value))
