"""Feeds what a source holds to a keyed hash, so that a replaced file is noticed. Knows no key, and keeps nothing.

    files     of up to 256 MiB: every byte. Larger ones: the size, and 256 blocks of 1 MiB, evenly spread, the ends included
    frames    their columns as Arrow writes them; of more than 256 MiB, 256 evenly spread slices

So the cost is bounded: about a quarter of a second per file. In a larger file, a change that keeps the size and lies between
the blocks is missed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

BLOCK = 1 << 20
BLOCKS = 256
Update = Callable[[bytes], None]


@dataclass(frozen=True)
class Contents:
    """The files of a table, or its frame."""

    files: tuple[str, ...] = ()
    frame: pa.Table | None = None

    def version(self) -> str:
        """Returns what changes whenever a file is written, without reading it; "" for a frame."""
        stats = [os.stat(file) for file in self.files]
        return " ".join(f"{s.st_dev}:{s.st_ino}:{s.st_size}:{s.st_mtime_ns}:{s.st_ctime_ns}" for s in stats)

    def feed(self, update: Update) -> None:
        """Feeds the contents. Raises OSError if a file cannot be read."""
        for file in self.files:
            update(f"file {os.stat(file).st_size}\n".encode())
            for block in _blocks(file):
                update(block)
        if self.frame is not None:
            _feed_frame(self.frame, update)


def _blocks(file: str) -> Iterator[bytes]:
    size = os.stat(file).st_size
    with open(file, "rb") as opened:
        if size <= BLOCKS * BLOCK:
            yield from iter(lambda: opened.read(BLOCK), b"")
            return
        for place in range(BLOCKS):
            opened.seek(place * (size - BLOCK) // (BLOCKS - 1))
            yield opened.read(BLOCK)


class _Sink:
    """A file that passes on what is written to it."""

    closed = False

    def __init__(self, update: Update) -> None:
        self._update = update

    def write(self, data: bytes) -> int:
        self._update(bytes(data))
        return len(data)

    def flush(self) -> None:
        return

    def close(self) -> None:
        return


def _feed_frame(frame: pa.Table, update: Update) -> None:
    """Feeds a frame, whatever its chunks are."""
    update(f"frame {frame.num_rows}\n".encode())
    rows = frame.num_rows
    if frame.nbytes > BLOCKS * BLOCK:
        each = max(1, rows * BLOCK // max(frame.nbytes, 1))
        starts = [place * max(rows - each, 0) // (BLOCKS - 1) for place in range(BLOCKS)]
        frame = pa.concat_tables([frame.slice(start, each) for start in starts])
    try:
        with pa.ipc.new_stream(pa.PythonFile(_Sink(update), mode="w"), frame.schema) as writer:
            writer.write_table(frame.combine_chunks())
    except pa.ArrowException as error:
        raise OSError from error
