"""Adding up a second time: what was spent and whether each question was allowed, with arithmetic of its own.

Each part of a loss is rounded up to a whole number of 1/GRID and added. The rules are those of privacy/filters.py, restated.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from dither.ledger.verify_entries import CAPS, LOSS, EntryError, number
from dither.privacy.conversion import delta_of_zcdp

QUESTIONS = 10_000  # the most that the sum of rho may admit
GRID = 10**36 * 144403552893600  # the second factor is the least common multiple of 1, …, 32

Totals = dict[str, int]


def nothing() -> Totals:
    return dict.fromkeys((*LOSS, "unstated"), 0)


def added(totals: Totals, loss: dict[str, Any], sign: int = 1) -> Totals:
    """The totals with a loss added, or taken away again."""
    found = dict(totals)
    for part in LOSS:
        if loss[part] is not None:
            found[part] += sign * ceil(number(loss[part]) * GRID)
    found["unstated"] += sign * (loss["rho"] is None)
    return found


def caps(found: dict[str, Any], epsilon: Fraction | None = None) -> dict[str, Fraction]:
    """The caps of the first entry, if they are sound: the parts of delta, and rho_max by the certified conversion."""
    kept = {name: number(found[name]) for name in CAPS}
    delta = kept["delta_sums"] + kept["delta_keys"] + kept["delta_conversion"]
    if kept["epsilon"] <= 0 or delta >= 1:
        raise EntryError("has caps that promise nothing")
    if kept["rho_max"] and delta_of_zcdp(kept["rho_max"], kept["epsilon"]) > kept["delta_conversion"]:
        raise EntryError("has a rho_max that its delta does not pay for")
    return kept


def rule(kept: dict[str, Fraction], used: Totals) -> str | None:
    """The rule these totals keep."""
    spent = {part: Fraction(used[part], GRID) for part in LOSS}
    if spent["epsilon"] <= kept["epsilon"] and spent["delta"] <= kept["delta_sums"]:
        return "sum"
    concentrated = kept["rho_max"] > 0 and used["unstated"] == 0
    return "zcdp" if concentrated and spent["rho"] <= kept["rho_max"] and spent["slack"] <= kept["delta_keys"] else None


def within_share(kept: dict[str, Fraction], epsilon: Fraction, used: Totals) -> bool:
    """Whether these totals keep either rule when each cap is cut down as epsilon is: for one analyst, or one question."""
    return rule({name: cap * epsilon / kept["epsilon"] for name, cap in kept.items()}, used) is not None


def dear_enough(kept: dict[str, Fraction], least: Fraction, loss: dict[str, Any]) -> bool:
    """Whether a loss is none at all, or at least the least epsilon and, where rho is stated, its share of rho_max."""
    epsilon, rho = number(loss["epsilon"]), loss["rho"]
    return epsilon == 0 or (epsilon >= least and (rho is None or number(rho) * QUESTIONS >= kept["rho_max"]))
