"""SCRAM-SHA-256, the server's side: a client proves that it has a token, and nothing that is sent can be used again.

    salted = PBKDF2(token, salt, 4096)      client = HMAC(salted, "Client Key")      stored = SHA-256(client)
    proof  = client XOR HMAC(stored, messages)                                      server = HMAC(salted, "Server Key")

The server stores `stored` and `server`; neither lets anybody log in. 4096 rounds are enough: a token has 256 random bits.
All tokens of a person have one salt, which depends on a secret of the service and the name alone. So a name that does not
exist has a salt too, and the same work is done for it. Over TLS the proof can be bound to the certificate (channel binding),
so that nobody in the middle can pass it on. Reference: RFC 5802, RFC 7677, RFC 5929.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 4096
PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"


class ScramError(Exception):
    """A message of the exchange is not as it should be."""


@dataclass(frozen=True)
class Verifier:
    """What is stored of a token: it checks a proof, and cannot make one."""

    stored: bytes
    server: bytes


def salt_of(secret: bytes, name: str) -> bytes:
    """Returns the salt of a name, whether anybody has it or not."""
    return hmac.digest(secret, b"salt " + name.encode("utf-8", "replace"), "sha256")[:16]


def verifier(token: str, salt: bytes) -> Verifier:
    """Returns what to store of a token."""
    salted = hashlib.pbkdf2_hmac("sha256", token.encode(), salt, ROUNDS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))


class Exchange:
    """One login. `binding`: the hash of the certificate, if the connection is encrypted."""

    def __init__(self, mechanism: str, salt: bytes, binding: bytes | None = None) -> None:
        if mechanism not in (PLAIN, BOUND) or (mechanism == BOUND and binding is None):
            raise ScramError("this mechanism was not offered")
        self._bound = mechanism == BOUND
        self._salt = salt
        self._binding = binding
        self._header = self._bare = self._reply = self._nonce = b""

    def first(self, told: bytes) -> bytes:
        """Returns the reply to the client's first message. libpq leaves the name in it empty: that of the startup counts."""
        parts = told.split(b",", 2)
        if len(parts) != 3 or (parts[1] and not parts[1].startswith(b"a=")):
            raise ScramError("the first message has no header")
        flag, _, self._bare = parts
        expected = b"p=tls-server-end-point" if self._bound else b"n"
        unsure = flag == b"y" and not self._bound and self._binding is None  # y: "you seem not to offer binding"
        if flag != expected and not unsure:
            raise ScramError("the client does not bind as it should")
        self._header = b",".join((*parts[:2], b""))
        own = _attributes(self._bare).get(b"r", b"")
        if not 8 <= len(own) <= 200 or not own.isascii():
            raise ScramError("the first message has no nonce")
        self._nonce = own + base64.b64encode(secrets.token_bytes(18))
        self._reply = b"r=%b,s=%b,i=%d" % (self._nonce, base64.b64encode(self._salt), ROUNDS)
        return self._reply

    def final(self, told: bytes, known: Sequence[Verifier]) -> tuple[int, bytes] | None:
        """Returns which verifier the proof fits, and the server's own proof; None if it fits none."""
        start, _, proof = told.rpartition(b",p=")
        attributes = _attributes(start)
        header = self._header + (self._binding or b"" if self._bound else b"")
        fits = attributes.get(b"r") == self._nonce and attributes.get(b"c") == base64.b64encode(header)
        given = _decoded(proof)
        signed = b",".join((self._bare, self._reply, start))
        found = None
        for place, each in enumerate(known):
            mask = hmac.digest(each.stored, signed, "sha256")
            client = bytes(one ^ other for one, other in zip(given, mask, strict=False))
            if hmac.compare_digest(hashlib.sha256(client).digest(), each.stored) and len(given) == len(mask):
                found = place
        if found is None or not fits:
            return None
        return found, b"v=" + base64.b64encode(hmac.digest(known[found].server, signed, "sha256"))


def _attributes(told: bytes) -> dict[bytes, bytes]:
    """Returns the attributes of a message; the first of each name."""
    found: dict[bytes, bytes] = {}
    for part in told.split(b","):
        name, sign, value = part.partition(b"=")
        if sign:
            found.setdefault(name, value)
    return found


def _decoded(proof: bytes) -> bytes:
    try:
        return base64.b64decode(proof, validate=True)
    except (binascii.Error, ValueError):
        return b""
