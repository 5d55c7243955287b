"""The one door through which randomness enters: AES-256 in counter mode, keyed by the operating system.

Why AES-CTR: no known attack tells its output from fair coin flips, and hardware makes it faster than
any statistical generator numpy has. Each thread has a stream of its own, so nothing is shared and
nothing locks. A forked child throws the inherited stream away before its first draw, and every stream
takes a new key from the operating system after `_KEY_LIFE` bytes. Bytes are handed out once.

There is no seed. `replay.py` can put a recorded stream in place of this one for tests; nothing in the
package imports it, and a test keeps it so.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_BLOCK = 1 << 15
_KEY_LIFE = 1 << 36
_ZEROS = bytes(1 << 18)


class Source(Protocol):
    """Anything that fills a buffer with independent fair bits."""

    def fill(self, target: memoryview) -> None: ...


class _Keyed:
    """One thread's AES-CTR stream."""

    def __init__(self) -> None:
        self._left = 0

    def _rekey(self) -> None:
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16)))
        self._encryptor = cipher.encryptor()
        self._left = _KEY_LIFE

    def fill(self, target: memoryview) -> None:
        for start in range(0, len(target), len(_ZEROS)):
            part = target[start : start + len(_ZEROS)]
            if self._left < len(part):
                self._rekey()
            self._encryptor.update_into(memoryview(_ZEROS)[: len(part)], part)
            self._left -= len(part)


class _State(threading.local):
    """What one thread holds: its source, the process it belongs to, and unused bytes for small draws."""

    def __init__(self) -> None:
        self.source: Source = _Keyed()
        self.process = os.getpid()
        self.buffer = bytearray(_BLOCK)
        self.used = _BLOCK


_state = _State()


def _forget() -> None:
    """Start afresh with a new key: called in every forked child."""
    _state.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget)


def _here() -> _State:
    if _state.process != os.getpid():
        _forget()
    return _state


def bits(count: int) -> int:
    """A whole number of `count` fair bits, for one draw."""
    state = _here()
    size = (count + 7) >> 3
    if size > _BLOCK:
        block = bytearray(size)
        state.source.fill(memoryview(block))
        return int.from_bytes(block, "little") >> (8 * size - count)
    if state.used + size > _BLOCK:
        state.source.fill(memoryview(state.buffer))
        state.used = 0
    start = state.used
    state.used = start + size
    value = int.from_bytes(state.buffer[start : start + size], "little")
    state.buffer[start : start + size] = bytes(size)
    return value >> (8 * size - count)


def words16(count: int) -> NDArray[np.uint16]:
    """`count` independent 16-bit words."""
    return _words(count, np.dtype(np.uint16))


def words64(count: int) -> NDArray[np.uint64]:
    """`count` independent 64-bit words."""
    return _words(count, np.dtype(np.uint64))


def _words(count: int, kind: np.dtype[np.generic]) -> NDArray[np.generic]:
    block = np.empty(count, dtype=kind)
    if count:
        _here().source.fill(memoryview(block).cast("B"))
    return block
