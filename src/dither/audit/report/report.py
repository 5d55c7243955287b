"""The report of an audit, and its JSON.

It holds everything needed to check it: the command and the seed to repeat it, the versions it ran with, each verdict with its
evidence, and what was not checked.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import metadata
from typing import Any

import dither
from dither.audit.verdict import PROVED, VIOLATES, WALKED, Verdict

_PACKAGES = ("numpy", "python-flint", "cryptography", "duckdb", "sqlglot", "pyarrow")
_OPTIONAL = ("opendp", "diffprivlib")


@dataclass(frozen=True)
class Report:
    """All verdicts of one audit. `extra` holds measurements that are not verdicts, such as run times."""

    target: str
    verdicts: tuple[Verdict, ...]
    command: str
    seed: int
    started: str
    seconds: float
    not_checked: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def violations(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.outcome == VIOLATES)

    def summary(self) -> str:
        """Returns the result in one sentence.

        >>> Report("counts", (), "", 1, "", 0.0).summary()
        'Nothing was checked.'
        """
        if not self.verdicts:
            return "Nothing was checked."
        if self.violations:
            return f"Violated: {len(self.violations)} of {len(self.verdicts)} checks found more than was claimed."
        parts = [f"{count} {words}" for words, count in self._counts().items() if count]
        if all(verdict.open for verdict in self.verdicts):
            return f"Nothing could be concluded in {len(self.verdicts)} checks."
        return f"No violation found in {len(self.verdicts)} checks: {', '.join(parts)}."

    def _counts(self) -> dict[str, int]:
        every = self.verdicts
        left = [verdict for verdict in every if verdict.outcome not in (PROVED, WALKED)]
        return {
            "proved": sum(verdict.outcome == PROVED for verdict in every),
            "samplers walked": sum(verdict.outcome == WALKED for verdict in every),
            "tried without finding any": sum(not verdict.open and not verdict.doubtful for verdict in left),
            "doubtful": sum(verdict.doubtful for verdict in left),
            "without a conclusion": sum(bool(verdict.open) for verdict in left),
        }

    def to_json(self) -> str:
        fields = {
            "dither audit": self.target,
            "summary": self.summary(),
            "violated": bool(self.violations),
            "command": self.command,
            "seed": self.seed,
            "started": self.started,
            "seconds": self.seconds,
            "versions": versions(),
            "verdicts": [_verdict(verdict) for verdict in self.verdicts],
            "measured": self.extra,
            "not checked": self.not_checked,
        }
        return json.dumps(plain(fields), indent=2, ensure_ascii=False, allow_nan=False)


def versions() -> dict[str, str]:
    """Returns the versions that a result may depend on."""
    result = {"dither": dither.__version__, "Python": platform.python_version(), "machine": platform.platform(terse=True)}
    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            result[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in _PACKAGES:
                result[name] = "not installed"
    return result


def _verdict(verdict: Verdict) -> dict[str, Any]:
    epsilon, delta = verdict.claimed
    return {
        "target": verdict.target,
        "method": verdict.method,
        "outcome": verdict.outcome,
        "says": str(verdict),
        "claimed": {"epsilon": epsilon, "delta": delta},
        "epsilon": verdict.epsilon,
        "confidence": verdict.confidence,
        "pair": None if verdict.pair is None else [repr(side) for side in verdict.pair],
        "event": verdict.event,
        "nothing concluded": verdict.open or None,
        "advantage": verdict.advantage,
        "seconds": verdict.seconds,
        "evidence": verdict.evidence,
    }


def plain(value: Any) -> Any:
    """Converts a value to JSON types: fractions in full, NaN and infinities as text, other objects by their repr.

    >>> plain({"a": (Fraction(1, 3), math.inf, {1})})
    {'a': ['1/3', 'inf', '{1}']}
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return str(value) if value.denominator.bit_length() < 200 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(one) for one in value]
    return repr(value)
