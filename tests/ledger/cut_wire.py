"""A wire to the PostgreSQL server that can be cut after any message, in either direction.

The protocol's messages are told apart by their length, so that a test can go through every boundary there is: after the
n-th message of the client has reached the server, or after the n-th message of the server has reached the client.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path


class Wire:
    """Listens on a local port and passes messages on. `cut(asked=n)` lets n more from the client through, `cut(told=n)` n
    more from the server; then the client's connection is gone, while the server may finish what it was asked."""

    def __init__(self, folder: str) -> None:
        self._server = str(Path(folder) / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._left: dict[str, int | None] = {"asked": None, "told": None}
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def whole(self) -> bool:
        """Whether the cut that was ordered did not happen: there were not so many messages. It is called off then."""
        ordered, self._left = self._left, {"asked": None, "told": None}
        return ordered != self._left

    def cut(self, **left: int) -> None:
        self._left = {"asked": left.get("asked"), "told": left.get("told")}

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        serving = []
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                serving.append(threading.Thread(target=self._serve, args=(client,)))
                serving[-1].start()
        for thread in serving:
            thread.join()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.connect(self._server)
            back = threading.Thread(target=self._pass, args=("told", server, client, client))
            back.start()
            self._pass("asked", client, server, client)
            back.join()

    def _pass(self, way: str, source: socket.socket, target: socket.socket, client: socket.socket) -> None:
        first = way == "asked"  # the client's first message has no type
        with suppress(OSError):
            while message := _message(source, untyped=first):
                first = False
                left = self._left[way]
                if left == 0:
                    self._left = {"asked": None, "told": None}
                    client.shutdown(socket.SHUT_RDWR)
                    break
                target.sendall(message)
                self._left[way] = None if left is None else left - 1
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)  # the other direction then ends by itself


def _message(source: socket.socket, *, untyped: bool) -> bytes:
    head = _exactly(source, 4 if untyped else 5)
    if not head:
        return b""
    (length,) = struct.unpack("!I", head[-4:])
    return head + _exactly(source, length - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            return b""
        found += part
    return found
