"""OpenDP, if it is installed: its measurements release from the tape while the audited code runs.

OpenDP draws inside its compiled library, where no dice can be set. A measurement knows how it was built, so a chain is run
step by step: the transformation as it is, the Laplace, geometric or Gaussian release from the tape, and what comes after as
it is. The exact answer at the last transformation is the location. Other measurements are noted as unseen.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dither.audit.adapters.tape import GAUSSIAN, GEOMETRIC, LAPLACE, Tape, patched

_LAWS = {"make_laplace": LAPLACE, "make_geometric": GEOMETRIC, "make_gaussian": GAUSSIAN}


@dataclass(frozen=True)
class OpenDP:
    """Calls `f(data)`, which builds and calls measurements of OpenDP."""

    name: str = "OpenDP"

    def run(self, function: Callable[..., Any], data: Any, tape: Tape) -> Any:
        core = importlib.import_module("opendp.core")
        real = core.measurement_invoke

        def invoke(this: Any, arg: Any) -> Any:
            return _release(this, arg, tape, real)

        with patched([(core, "measurement_invoke", invoke)]):
            return function(data)


def _release(this: Any, arg: Any, tape: Tape, real: Callable[[Any, Any], Any]) -> Any:
    """The release of one measurement, taken apart as far as its history says how."""
    built = getattr(this, "__opendp_dict__", {})
    how, parts = built.get("__function__"), built.get("__kwargs__", {})
    if how == "make_chain_mt":
        return _release(parts["measurement1"], parts["transformation0"](arg), tape, real)
    if how == "make_chain_pm":
        return parts["postprocess1"](_release(parts["measurement0"], arg, tape, real))
    if how in ("make_composition", "make_basic_composition"):
        return [_release(part, arg, tape, real) for part in parts["measurements"]]
    if how in _LAWS and _is_numbers(arg):
        return _additive(_LAWS[how], parts["scale"], arg, tape, how)
    tape.unseen(str(how))
    return real(this, arg)


def _is_numbers(arg: Any) -> bool:
    values = arg if isinstance(arg, list) else [arg]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _additive(law: str, scale: float, arg: Any, tape: Tape, name: str) -> Any:
    whole = all(isinstance(value, int) for value in (arg if isinstance(arg, list) else [arg]))
    kind = GEOMETRIC if law == LAPLACE and whole else law
    if isinstance(arg, list):
        given = [tape.additive(kind, scale, value, name=name) for value in arg]
        return [round(value) for value in given] if whole else given
    released = tape.additive(kind, scale, arg, name=name)
    return round(released) if whole else released
