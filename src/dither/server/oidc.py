"""Login through an OpenID Connect provider: the authorization code flow with PKCE.

    begin       a state, a nonce and a verifier for one login, kept here; the browser gets the state in a cookie and a redirect
    finish      the state must be the cookie's, and works once; the code is exchanged; the ID token is checked

An ID token is believed if a key of the provider signed it with an asymmetric algorithm, it is for this client, from the
configured issuer, not expired, and has the nonce of this login. One claim of it, such as the e-mail address, is the name of a
person. Whoever has no account gets none, unless `oidc_create` says so.

Law: the client's secret is read from its file or the environment when it is used, and is in no setting, log or error.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dither.errors import AccessError, ArgumentError, DitherError, extra
from dither.server.accounts import ROLES, Accounts, hashed
from dither.server.settings import LOOPBACK, Settings
from dither.server.store import ServiceStore

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")  # all asymmetric
SECRET = "DITHER_OIDC_SECRET"  # the environment variable
CALLBACK = "/login/oidc/callback"
LEEWAY = 60  # seconds that clocks may differ
LOGIN_SECONDS = 600.0
KEPT_SECONDS = 3600.0  # what the provider says of itself, and its keys
LARGEST = 1 << 20
_TIMEOUT = 10.0


def _refused(why: str, status: int = 401) -> AccessError:
    return AccessError(f"The login failed: {why}.", status=status, fix="log in again; if it fails again, tell the curator.")


@dataclass
class Provider:
    """The provider of one server's settings. `clock`: seconds since 1970."""

    settings: Settings
    store: ServiceStore
    accounts: Accounts
    clock: Callable[[], float] = time.time
    _found: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def redirect(self) -> str:
        return f"{self.settings.oidc_address}{CALLBACK}"

    # --- the two steps ------------------------------------------------------------------------------------------

    def begin(self) -> tuple[str, str]:
        """Returns the address to send the browser to, and the state for its cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        now = self.clock()
        with self.store.transaction() as inside:
            inside.execute("DELETE FROM oidc WHERE expires <= ?", (now,))
            inside.execute("INSERT INTO oidc VALUES (?, ?, ?, ?)", (hashed(state), nonce, verifier, now + LOGIN_SECONDS))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.settings.oidc_client,
            "redirect_uri": self.redirect,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        start = str(self._about()["authorization_endpoint"])
        return f"{start}{'&' if urlsplit(start).query else '?'}{urlencode(asked)}", state

    def finish(self, query: Mapping[str, str], cookie: str, address: str) -> str:
        """Returns a new session for whom the provider has named. Every check is made before anything is believed."""
        state = query.get("state", "")
        if not state or not cookie or not hmac.compare_digest(state.encode(), cookie.encode("utf-8", "replace")):
            raise _refused("it was begun in another browser")
        with self.store.transaction() as inside:  # a state works once, whatever comes of it
            row = inside.execute("SELECT nonce, verifier, expires FROM oidc WHERE hash = ?", (hashed(state),)).fetchone()
            inside.execute("DELETE FROM oidc WHERE hash = ?", (hashed(state),))
        if row is None or row[2] <= self.clock():
            raise _refused("it took too long, or was finished before")
        issuer = query.get("iss")  # RFC 9207: who sent the browser back
        if issuer is not None and issuer != self.settings.oidc_issuer:
            raise _refused("another provider answered")
        if "error" in query or not query.get("code"):
            raise _refused("the provider refused it")
        claims = self._claims(self._exchange(query["code"], row[1]), row[0])
        return self._session(claims, address)

    # --- the provider -------------------------------------------------------------------------------------------

    def _about(self) -> Mapping[str, Any]:
        """Returns what the provider says of itself. Refuses another issuer than the configured one."""
        issuer = self.settings.oidc_issuer or ""
        found = self._kept("about", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise _unreachable("it names another issuer than the one in the settings")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            check_address(str(found.get(name, "")), "an address that the provider names")
        return found

    def _kept(self, name: str, url: str, oldest: float = KEPT_SECONDS) -> Mapping[str, Any]:
        with self._lock:
            at, found = self._found.get(name, (float("-inf"), {}))
        if self.clock() - at < oldest:
            return found
        found = fetch(url)
        with self._lock:
            self._found[name] = self.clock(), found
        return found

    def _exchange(self, code: str, verifier: str) -> str:
        """Returns the ID token for a code."""
        body = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect, "code_verifier": verifier}
        secret, headers, client = self._secret(), {}, self.settings.oidc_client or ""
        if secret:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            body["client_id"] = client
        token = fetch(str(self._about()["token_endpoint"]), urlencode(body).encode(), headers).get("id_token")
        if not isinstance(token, str):
            raise _refused("the provider sent no ID token")
        return token

    def _secret(self) -> str:
        """Returns the client's secret: from its file, or from the environment; empty for a client without one."""
        if self.settings.oidc_secret is None:
            return os.environ.get(SECRET, "")
        try:
            return Path(self.settings.oidc_secret).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise _unreachable("the file of the client's secret cannot be read") from None

    # --- the ID token -------------------------------------------------------------------------------------------

    def _claims(self, token: str, nonce: str) -> Mapping[str, Any]:
        """Returns what an ID token says, after all checks."""
        import jwt

        client = self.settings.oidc_client or ""
        try:
            head = jwt.get_unverified_header(token)
            algorithm = head.get("alg")
            if algorithm not in ALGORITHMS:
                raise _refused("its ID token is not signed with an algorithm that is allowed")
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(head.get("kid"), algorithm),
                algorithms=[algorithm],
                audience=client,
                issuer=self.settings.oidc_issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"], "verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            raise _refused(f"its ID token is not right ({type(error).__name__})") from None
        if not isinstance(claims["exp"], (int, float)) or claims["exp"] + LEEWAY <= self.clock():
            raise _refused("its ID token has expired")
        given = claims.get("nonce")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), nonce.encode()):
            raise _refused("its ID token is of another login")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else client) != client:
            raise _refused("its ID token is for another client")
        return claims

    def _key(self, ident: Any, algorithm: str) -> Any:
        """Returns the provider's key of this id. Asks for its keys again if there is none, at most once a minute."""
        import jwt

        where = str(self._about()["jwks_uri"])
        for oldest in (KEPT_SECONDS, 60.0):
            listed = self._kept("keys", where, oldest).get("keys")
            fitting = [
                each
                for each in (listed if isinstance(listed, list) else ())
                if isinstance(each, dict) and each.get("use", "sig") == "sig" and each.get("alg", algorithm) == algorithm
            ]
            named = [each for each in fitting if each.get("kid") == ident] if ident is not None else fitting
            if len(named) == 1:
                return jwt.PyJWK(named[0], algorithm)
        raise _refused("its ID token is signed with a key that the provider does not list")

    # --- the person ---------------------------------------------------------------------------------------------

    def _session(self, claims: Mapping[str, Any], address: str) -> str:
        claim = self.settings.oidc_claim
        name = claims.get(claim)
        if not isinstance(name, str) or not name:
            raise _refused(f"the provider does not tell your {claim}", 403)
        if claim == "email" and claims.get("email_verified") is not True:
            raise _refused("the provider has not verified your e-mail address", 403)
        if self.settings.oidc_create and not self.accounts.has(name):
            self.accounts.add(name, self.settings.oidc_create)
        return self.accounts.log_in_proved(name, self.settings.session)


def _unreachable(why: str) -> DitherError:
    return AccessError(f"The login provider cannot be used: {why}.", status=503, fix="log in by password, or tell the curator.")


def check_address(url: str, what: str) -> None:
    """Refuses an address without TLS, except on this machine."""
    parts = urlsplit(url)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
        raise ArgumentError(f"{what} is no https address.", fix="write https://…; plain http is for this machine only.")


def check_settings(settings: Settings) -> None:
    """Refuses settings of a login that could not work, or would not be safe."""
    if settings.oidc_issuer is None:
        return
    try:
        import jwt
    except ImportError:
        raise DitherError("Login through OpenID Connect needs PyJWT, which is not installed.", fix=extra("oidc")) from None
    del jwt
    if not settings.oidc_client or not settings.oidc_address:
        raise ArgumentError(
            "oidc_issuer needs oidc_client and oidc_address.",
            fix='write oidc_address = "https://survey.example", as browsers do.',
        )
    if settings.oidc_create is not None and settings.oidc_create not in ROLES:
        raise ArgumentError("oidc_create is the role of new people.", fix=f"take one of: {', '.join(ROLES)}, or leave it out.")
    check_address(settings.oidc_issuer, "oidc_issuer")
    check_address(settings.oidc_address, "oidc_address")


def fetch(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """Returns a JSON object from the provider. Follows no redirection; refuses what is too large, slow or something else."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "http":
        connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    else:
        connection = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=ssl.create_default_context())
    sent = {"Accept": "application/json", **(headers or {})}
    sent |= {} if body is None else {"Content-Type": "application/x-www-form-urlencoded"}
    try:
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        connection.request("GET" if body is None else "POST", path, body, sent)
        response = connection.getresponse()
        text = response.read(LARGEST + 1)
    except (OSError, http.client.HTTPException):
        raise _unreachable("it does not answer") from None
    finally:
        connection.close()
    if response.status != 200:
        if body is not None and response.status in (400, 401):
            raise _refused("the provider did not accept its code")
        raise _unreachable("it answers with an error")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if len(text) > LARGEST or not isinstance(found, dict):
        raise _unreachable("it sends something else than JSON")
    return found
