"""A small OpenID Connect provider for tests: a real HTTP server with real RSA keys. It signs by hand, so that it can lie.

`lie` changes what the next login gets: claims, the head of its ID token, its signature, or what the provider says of itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

CLIENT, SECRET = "dither-test", "s3cret/with:signs"
Lie = Callable[[dict[str, Any]], None]


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(data: Any) -> str:
    return b64(json.dumps(data).encode())


def whole(number: int) -> str:
    return b64(number.to_bytes((number.bit_length() + 7) // 8, "big"))


@dataclass
class Provider:
    """What it knows: its keys, who logs in, and the codes it has given."""

    port: int = 0
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "u1", "email": "ada", "email_verified": True})
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    kid: str = "k1"
    lie: Lie = lambda made: None
    about: Lie = lambda made: None
    fetched: list[str] = field(default_factory=list)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def described(self) -> dict[str, Any]:
        made = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }
        self.about(made)
        return made

    def jwks(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        return {"keys": [{"kty": "RSA", "use": "sig", "kid": self.kid, "n": whole(numbers.n), "e": whole(numbers.e)}]}

    def authorize(self, address: str) -> tuple[str, dict[str, str]]:
        """Does what the provider's login page does. Returns the address that the browser is sent back to, and its query."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return asked["redirect_uri"], {"code": code, "state": asked["state"], "iss": self.issuer}

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Returns what a code is exchanged for; None if code, client or verifier are wrong."""
        asked = self.codes.pop(form.get("code", ""), None)
        given = base64.b64decode(authorization.removeprefix("Basic ") or b"").decode()
        right = given == "dither-test:s3cret%2Fwith%3Asigns"
        verifier = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not right or asked is None or verifier != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"], **self.claims}
        made = {"head": {"alg": "RS256", "kid": self.kid}, "claims": claims, "sign": self.sign}
        self.lie(made)
        text = f"{part(made['head'])}.{part({k: v for k, v in made['claims'].items() if v is not None})}"
        return {"access_token": "none", "token_type": "Bearer", "id_token": f"{text}.{made['sign'](text)}"}

    def sign(self, text: str) -> str:
        return b64(self.key.sign(text.encode(), padding.PKCS1v15(), SHA256()))

    def as_hmac(self, text: str) -> str:
        """Signs with the public key as if it were a shared secret: a reader that believes the head would take it."""
        from cryptography.hazmat.primitives import serialization as form

        public = self.key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        return b64(hmac.new(public, text.encode(), "sha256").digest())


@contextmanager
def provider() -> Iterator[Provider]:
    """Runs a provider on loopback."""
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.fetched.append(self.path)
            pages = {"/realm/.well-known/openid-configuration": made.described, "/realm/keys": made.jwks}
            page = pages.get(self.path)
            self._send(None if page is None else page())

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._send(made.token({k: v[0] for k, v in form.items()}, self.headers.get("Authorization", "")), 400)

        def _send(self, data: Any, otherwise: int = 404) -> None:
            body = json.dumps(data if data is not None else {"error": "invalid_grant"}).encode()
            self.send_response(200 if data is not None else otherwise)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
