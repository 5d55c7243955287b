"""Defines who is in a secret sample of units: by a coin for each unit that nobody else can predict.

    digest = SHA-256(key, the length of the unit's text in bytes, ":", the unit's text)
    a unit is in the sample if its digest, 64 hexadecimal digits, is below floor(q 2^256)

Units are sampled, never rows: the coin depends on the unit and the key only. So all rows of a person are in or out together,
in all tables and all statements of a question, and when an engine repeats its work. An operator before the aggregate is
unit-local (law 1), so to keep the rows of some units after it is to keep their rows in every table before it.

The choice of groups is private whatever the hash is: it need not even be secret. A sample is not: its lower price holds only
if nobody can tell who is in it. So its hash is a cryptographic one, with a key of its own that is derived from the secret of
the release and used once. Assumed: SHA-256's compression function is pseudo-random when its chaining value is keyed. The key
fills the first block of 64 bytes, and no message is the beginning of another one because lengths come first: then the cascade
is a pseudo-random function (Bellare, Canetti and Krawczyk, FOCS 1996), and coins of different units are independent to anybody
who cannot break it. The guarantee is computational there, as that of the random stream is.
With ideal coins a unit is in the sample with probability q' <= q, q - q' < 2^-256, and the price of q is at least that of q'.
"""

from __future__ import annotations

import datetime
import hashlib
from fractions import Fraction
from typing import Any

KEY = "sample"  # the name of the statements' parameter that holds the key
_BITS = 256
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def sample_key(secret: bytes) -> str:
    """Returns the key of a release's sample, 64 hexadecimal digits. The keys that choose groups and values are others."""
    return hashlib.blake2b(KEY.encode(), key=hashlib.blake2b(secret).digest(), digest_size=32).hexdigest()


def limit(q: Fraction) -> str:
    """Returns the digest that all units of the sample are below.

    >>> limit(Fraction(1, 2))[:4], limit(Fraction(1, 10))[:4]
    ('8000', '1999')
    """
    return f"{q.numerator * (1 << _BITS) // q.denominator:064x}"


def unit_text(unit: Any) -> str:
    """Returns the text of a unit, the same in every engine and a different one for each unit of a column.

    >>> [unit_text(each) for each in (7, "7", True, datetime.date(1970, 1, 3))]
    ['7', '7', '1', '2']
    """
    if isinstance(unit, datetime.datetime):
        return str((unit - _EPOCH) // _MICROSECOND)
    if isinstance(unit, datetime.date):
        return str(unit.toordinal() - _EPOCH.toordinal())
    return str(int(unit)) if isinstance(unit, bool) else str(unit)


def is_sampled(key: str, unit: Any, q: Fraction) -> bool:
    """Whether the unit is in the sample."""
    text = unit_text(unit).encode("utf-8", "surrogatepass")
    return hashlib.sha256(key.encode() + f"{len(text)}:".encode() + text).hexdigest() < limit(q)
