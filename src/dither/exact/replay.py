"""Replaces the random stream by a recorded one, for tests and the auditor.

The same key gives the same draws, so the auditor can run the whole path on two neighbouring tables
with the same randomness. Only the auditor imports this file (a test reads the imports). It has no
public name. Code that can import it runs beside the data and could read the data itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.exact import entropy


class Recorded:
    """An AES-CTR stream with a given key."""

    def __init__(self, key: bytes) -> None:
        cipher = Cipher(algorithms.AES(hashlib.sha256(key).digest()), modes.CTR(bytes(16)))
        self._encryptor = cipher.encryptor()

    def fill(self, target: memoryview) -> None:
        self._encryptor.update_into(bytes(len(target)), target)


@contextmanager
def source(chosen: entropy.Source) -> Iterator[None]:
    """Makes this thread draw from `chosen` inside the block. Other threads keep their streams."""
    state = entropy.thread_state()
    before, waiting = state.source, state.waiting
    state.use(chosen)
    try:
        yield
    finally:
        here = entropy.thread_state()
        if here.source is chosen:  # a child forked inside the block has a key of its own: leave it
            here.source, here.waiting = before, waiting


@contextmanager
def stream(key: bytes) -> Iterator[None]:
    """Makes this thread draw the same values for the same key inside the block.

    >>> with stream(b"one"):
    ...     first = entropy.bits(64)
    >>> with stream(b"one"):
    ...     entropy.bits(64) == first
    True
    """
    with source(Recorded(key)):
        yield
