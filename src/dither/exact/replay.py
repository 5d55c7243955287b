"""A recorded stream in place of the entropy door, for tests and the auditor.

With the same key the same draws come out, which is what "run the whole path on two neighbouring
tables with the same randomness" needs. Only the auditor imports this file (a test reads the
imports), and it has no public name: whoever can import it can run Python beside the data anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.exact import entropy


class Recorded:
    """AES-CTR under a stated key."""

    def __init__(self, key: bytes) -> None:
        cipher = Cipher(algorithms.AES(hashlib.sha256(key).digest()), modes.CTR(bytes(16)))
        self._encryptor = cipher.encryptor()

    def fill(self, target: memoryview) -> None:
        self._encryptor.update_into(bytes(len(target)), target)


@contextmanager
def source(chosen: entropy.Source) -> Iterator[None]:
    """Let this thread draw from `chosen` inside the block; other threads and what follows are not touched."""
    state = entropy.here()
    before, waiting = state.source, state.waiting
    state.use(chosen)
    try:
        yield
    finally:
        here = entropy.here()
        if here.source is chosen:  # a child forked inside the block has a key of its own: leave it
            here.source, here.waiting = before, waiting


@contextmanager
def stream(key: bytes) -> Iterator[None]:
    """The same draws for the same key.

    >>> with stream(b"one"):
    ...     first = entropy.bits(64)
    >>> with stream(b"one"):
    ...     entropy.bits(64) == first
    True
    """
    with source(Recorded(key)):
        yield
