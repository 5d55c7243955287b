"""The client of a local survey in plain Python: one file, no other module of dither, no package to install.

Read it, or ship it. It reads the survey's JSON, checks for itself that its chances keep the price, and draws reports with the
operating system's randomness in whole numbers only. The collecting side cannot tell its reports from those of
`dither.local.client`.

    report = report_of(survey_json, "yes")
"""

from __future__ import annotations

import hashlib
import json
import secrets
from fractions import Fraction
from functools import cache
from typing import Any

WHOLE = 1 << 32
POOL = 1 << 16
_MASK = (1 << 64) - 1


def report_of(survey: str, value: Any) -> bytes:
    """Draws a report about one value. Store it: a second one spends epsilon again."""
    given = json.loads(survey)
    if given["version"] != 1:
        raise ValueError("this client reads surveys of version 1")
    head = bytes([1]) + hashlib.sha256(json.dumps(given, sort_keys=True, ensure_ascii=True).encode()).digest()[:4]
    epsilon, kind = Fraction(given["epsilon"]), given["kind"]
    if kind == "number":
        low, high = (Fraction(end) for end in given["bounds"])
        share = min(max((Fraction(value) - low) / (high - low), Fraction(0)), Fraction(1))
        bit = int(_flip(int(share * WHOLE)))
        return head + _respond(bit, 2, epsilon).to_bytes(1, "little")
    values = given["values"]
    size = values if isinstance(values, int) else len(values)
    place = _place(values, value)
    return head + {"response": _response, "unary": _unary, "subset": _subset, "hadamard": _hadamard, "hashing": _hashing}[kind](
        place, size, epsilon
    )


def _place(values: Any, value: Any) -> int:
    if isinstance(values, int):
        return min(max(int(value), 0), values - 1)
    return values.index(value) if value in values else 0


@cache
def exp_below(epsilon: Fraction) -> Fraction:
    """Returns a rational just below e^epsilon: the first terms of its series, all of them positive."""
    total = term = Fraction(1)
    for n in range(1, 200):
        term = term * epsilon / n
        total += term
    return Fraction(int(total * (1 << 96)), 1 << 96)


def _flip(chance: int) -> bool:
    return secrets.randbits(32) < chance


def _checked(epsilon: Fraction, ratio: Fraction) -> None:
    """Refuses chances that would cost more than epsilon."""
    if max(ratio, 1 / ratio) > exp_below(epsilon):
        raise ValueError("these chances cost more than epsilon")


def _respond(value: int, size: int, epsilon: Fraction) -> int:
    e = exp_below(epsilon)
    keep = int(WHOLE * e / (e + size - 1))
    _checked(epsilon, Fraction(keep * (size - 1), WHOLE - keep))
    if _flip(keep):
        return value
    return (value + 1 + secrets.randbelow(size - 1)) % size


def _response(value: int, size: int, epsilon: Fraction) -> bytes:
    width = 1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4
    return _respond(value, size, epsilon).to_bytes(width, "little")


def _unary(value: int, size: int, epsilon: Fraction) -> bytes:
    other = -int(-(WHOLE / (exp_below(epsilon) + 1)) // 1)
    _checked(epsilon, Fraction(WHOLE - other, other))
    return _bits([_flip(WHOLE // 2 if k == value else other) for k in range(size)])


def _subset(value: int, size: int, epsilon: Fraction) -> bytes:
    e = exp_below(epsilon)
    chosen = min(max(round(size / (e + 1)), 1), size - 1)
    keep = int(WHOLE * e * chosen / (e * chosen + size - chosen))
    _checked(epsilon, Fraction(keep * (size - chosen), (WHOLE - keep) * chosen))
    with_it = _flip(keep)
    others = [k for k in range(size) if k != value]
    picked = {others.pop(secrets.randbelow(len(others))) for _ in range(chosen - with_it)}
    return _bits([k in picked or (k == value and with_it) for k in range(size)])


def _hadamard(value: int, size: int, epsilon: Fraction) -> bytes:
    e = exp_below(epsilon)
    keep = int(WHOLE * e / (e + 1))
    _checked(epsilon, Fraction(keep, WHOLE - keep))
    place = secrets.randbits((size - 1).bit_length())
    sign = (place & value).bit_count() % 2 ^ (not _flip(keep))
    return (2 * place + sign).to_bytes(4, "little")


def _hashing(value: int, size: int, epsilon: Fraction) -> bytes:
    buckets = max(min(round(exp_below(min(epsilon, Fraction(5)))) + 1, 256), 2)
    function = secrets.randbits(16)
    a, b = _mixed(function + 1), _mixed(function + 1 + POOL)
    bucket = (((a * value + b) & _MASK) >> 32) * buckets >> 32
    return function.to_bytes(2, "little") + _respond(bucket, buckets, epsilon).to_bytes(1, "little")


def _mixed(n: int) -> int:
    x = n * 0x9E3779B97F4A7C15 & _MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def _bits(bits: list[bool]) -> bytes:
    padded = bits + [False] * (-len(bits) % 8)
    return bytes(sum(bit << (7 - k) for k, bit in enumerate(padded[first : first + 8])) for first in range(0, len(padded), 8))
