"""Defines the keyed hash that chooses a unit's groups and values: SHA-256 of a text that every engine spells alike.

    key of the secret, then for each column   n                        NULL
                                              v<length>:<spelling>     else; the length in code points

    int          decimal digits                                     -17
    real         its 64 bits as 16 hexadecimal digits               4004000000000000
    text         itself
    bool         true, false
    date         year-month-day                                     2024-02-29
    timestamp    with the time, to microseconds                     2024-02-29T13:00:00.000000

Different columns have different texts, because each says its length. The columns are the unit, the group's keys and, where
values are chosen, the value. So groups and values never share a text. Digests are compared as bytes or as hexadecimal digits,
which sort alike. An engine may use a faster hash of its own (DuckDB does): privacy needs only that a choice depends on the
unit's own rows and the secret.
"""

from __future__ import annotations

import datetime
import hashlib
import struct
from typing import Any


def key_of(secret: bytes) -> str:
    """Returns the first part of every text: 128 secret bits.

    >>> key_of(b"secret")
    '8f64bfc250ac98ecf5a0f6a52cde7ec5'
    """
    return hashlib.blake2b(secret, digest_size=16).hexdigest()


def spell(value: Any) -> str:
    """Returns the spelling of a value that is not NULL. -0.0 and NaN do not come here: they are 0.0 and NULL.

    >>> spell(True), spell(-17), spell(2.5), spell(datetime.datetime(2024, 2, 29, 13))
    ('true', '-17', '4004000000000000', '2024-02-29T13:00:00.000000')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def canonical(secret: bytes, *columns: Any) -> str:
    """Returns the text that is hashed.

    >>> canonical(b"secret", 7, None, "a")[32:]
    'v1:7nv1:a'
    """
    spelled = ("n" if value is None else f"v{len(text := spell(value))}:{text}" for value in columns)
    return key_of(secret) + "".join(spelled)


def shared_hash(secret: bytes, *columns: Any) -> bytes:
    """Returns the hash by which groups and values are chosen: the smallest stay."""
    return hashlib.sha256(canonical(secret, *columns).encode("utf-8", "surrogatepass")).digest()


def keyed_choice(secret: bytes, unit: Any, candidates: list[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """Returns the candidates with the smallest hash. Depends on the unit, its candidates and the secret only.

    >>> kept = keyed_choice(b"secret", 7, [("a",), ("b",), ("c",)], 2)
    >>> kept == keyed_choice(b"secret", 7, [("c",), ("b",), ("a",)], 2), len(kept)
    (True, 2)
    """
    return sorted(candidates, key=lambda columns: shared_hash(secret, unit, *columns))[:most]
