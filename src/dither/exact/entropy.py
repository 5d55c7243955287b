"""The only source of randomness: AES-256 in counter mode, keyed by the operating system.

Why AES-CTR: no known attack tells its output from fair coin flips, and in hardware it is faster than
any of numpy's statistical generators. Each thread has its own stream, so there is no shared state and
no lock. A forked child drops the inherited stream and its buffer before its first draw. Each stream
takes a new key from the operating system after `_KEY_LIFE` bytes.
Each word is used once: taking the next word is one atomic step for signal handlers and threads.

There is no seed. For tests, `replay.py` replaces the stream by a recorded one. Only the auditor imports
it (checked by a test).
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_BLOCK = 1 << 13
_KEY_LIFE = 1 << 36
_ZEROS = memoryview(bytes(1 << 18))


class Source(Protocol):
    """Fills a buffer with independent fair bits."""

    def fill(self, target: memoryview) -> None: ...


class Keyed:
    """An AES-CTR stream that takes a new key from the operating system after `_KEY_LIFE` bytes."""

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
            self._left -= len(part)
            self._encryptor.update_into(_ZEROS[: len(part)], part)


class _State(threading.local):
    """The state of one thread: its source, its process, and the words not used yet."""

    def __init__(self) -> None:
        self.use(Keyed())

    def use(self, source: Source) -> None:
        self.source = source
        self.process = os.getpid()
        self.waiting: Iterator[tuple[Any, ...]] = iter(())

    def refill(self) -> None:
        block = bytearray(_BLOCK)
        self.source.fill(memoryview(block))
        self.waiting = struct.iter_unpack("<Q", bytes(block))


_state = _State()


def _restart() -> None:
    """Starts a stream with a new key. Called in every forked child."""
    _state.use(Keyed())


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_restart)


def thread_state() -> _State:
    """Returns this thread's state. Compares the process, because a fork outside Python runs no handler."""
    if _state.process != os.getpid():
        _restart()
    return _state


def word() -> int:
    """Returns 64 fair bits."""
    state = thread_state()
    while True:
        for (value,) in state.waiting:
            return int(value)
        state.refill()


def bits(count: int) -> int:
    """Returns a whole number of `count` fair bits."""
    if count <= 64:
        return word() >> (64 - count)
    result = word() >> (-count % 64)
    for _ in range((count - 1) // 64):
        result = (result << 64) | word()
    return result


def words8(count: int) -> NDArray[np.uint8]:
    """Returns `count` independent bytes."""
    block = np.empty(count, dtype=np.uint8)
    _fill(block)
    return block


def words16(count: int) -> NDArray[np.uint16]:
    """Returns `count` independent 16-bit words."""
    block = np.empty(count, dtype=np.uint16)
    _fill(block)
    return block


def words32(count: int) -> NDArray[np.uint32]:
    """Returns `count` independent 32-bit words."""
    block = np.empty(count, dtype=np.uint32)
    _fill(block)
    return block


def words64(count: int) -> NDArray[np.uint64]:
    """Returns `count` independent 64-bit words."""
    block = np.empty(count, dtype=np.uint64)
    _fill(block)
    return block


def low_bits(size: int, count: int) -> NDArray[np.int64]:
    """Returns `size` independent whole numbers of `count` fair bits each, 1 <= count <= 63."""
    if count <= 16:
        return (words16(size) >> np.uint16(16 - count)).astype(np.int64)
    if count <= 32:
        return (words32(size) >> np.uint32(32 - count)).astype(np.int64)
    return (words64(size) >> np.uint64(64 - count)).view(np.int64)


def _fill(block: NDArray[Any]) -> None:
    if block.size:
        thread_state().source.fill(block.view(np.uint8).data)
