"""Login through OpenID Connect, against a real provider on loopback: who is let in, and what is not believed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dither.errors import ArgumentError, CatalogError
from dither.server import oidc
from dither.server.oidc import CALLBACK
from dither.server.settings import read_settings
from server.provider import CLIENT, SECRET, Provider, provider
from server.serving import COUNT, Reply, Running, Service, make, serving

ADDRESS = "http://127.0.0.1:8321"  # as browsers would write it; the tests follow the paths


@pytest.fixture(scope="module")
def idp() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def running(idp: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "secret").write_text(f"{SECRET}\n")
    with serving(configured(make(folder), idp, oidc_secret=str(folder / "secret"))) as server:
        yield server


@pytest.fixture(autouse=True)
def honest(idp: Provider) -> None:
    idp.lie = idp.about = lambda made: None
    idp.claims = {"sub": "u1", "email": "ada", "email_verified": True}


def configured(service: Service, idp: Provider, **more: Any) -> Service:
    made = {"oidc_issuer": idp.issuer, "oidc_client": CLIENT, "oidc_address": ADDRESS, **more}
    return replace(service, settings=replace(service.settings, **made))


def begun(running: Running) -> tuple[str, str]:
    """Returns where the browser is sent, and its cookie."""
    reply = running.get("/login/oidc")
    assert reply.status == 303, reply.body
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()
    return reply.headers["location"], cookie.partition(";")[0]


def finished(running: Running, idp: Provider, cookie: str | None = None, **changes: str | None) -> Reply:
    """Logs in from beginning to end. `changes`: of the query that the browser comes back with."""
    where, own = begun(running)
    back, query = idp.authorize(where)
    assert back == ADDRESS + CALLBACK
    query = {name: value for name, value in (query | changes).items() if value is not None}
    return running.get(f"{CALLBACK}?{urlencode(query)}", headers={"Cookie": own if cookie is None else cookie})


def is_refused(running: Running, reply: Reply, words: str) -> bool:
    assert not [each for each in reply.cookies if each.startswith("dither=")], "a session was given"
    assert reply.status in (400, 401, 403, 503), reply.status
    return words in reply.body.decode()


# --- who is let in ----------------------------------------------------------------------------------------------


def test_a_person_logs_in_and_asks_under_their_name(running: Running, idp: Provider) -> None:
    reply = finished(running, idp)
    assert reply.status == 200, reply.body
    secret = session_of(reply)
    me = running.get("/v1/me", headers={"Cookie": secret}).json
    assert (me["name"], me["role"]) == ("ada", "analyst")
    own = {"Cookie": secret, "Origin": f"http://127.0.0.1:{running.port}"}
    assert running.post("/v1/ask", None, {"question": COUNT, "epsilon": "0.01"}, own).status == 200


def session_of(reply: Reply) -> str:
    (found,) = [each.partition(";")[0] for each in reply.cookies if each.startswith("dither=")]
    return found


def test_the_button_is_there_only_if_it_works(running: Running, shared: Running) -> None:
    assert b"/login/oidc" in running.get("/login").body
    assert b"/login/oidc" not in shared.get("/login").body
    assert shared.get("/login/oidc").status == 404
    assert shared.get(CALLBACK).status == 404


def test_the_provider_is_asked_for_itself_once_and_for_keys_when_they_change(running: Running, idp: Provider) -> None:
    assert finished(running, idp).status == 200
    before = len(idp.fetched)
    assert finished(running, idp).status == 200
    assert len(idp.fetched) == before


def test_the_secret_is_in_no_setting_log_or_page(running: Running, idp: Provider, capfd: pytest.CaptureFixture[str]) -> None:
    idp.lie = lambda made: made["claims"].update(nonce="another")
    reply = finished(running, idp)
    assert SECRET not in running.desk.settings.text() + reply.body.decode() + "".join(capfd.readouterr())


# --- people -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"email": "mallory"}, "no account"),
        ({"email": "ADA"}, "no account"),
        ({"email_verified": False}, "not verified"),
        ({"email_verified": "true"}, "not verified"),
        ({"email": None}, "does not tell"),
        ({"email": ["ada"]}, "does not tell"),
        ({"email": ""}, "does not tell"),
    ],
)
def test_whoever_is_not_a_person_here_stays_outside(
    running: Running, idp: Provider, claims: dict[str, Any], words: str
) -> None:
    idp.claims = idp.claims | claims
    assert is_refused(running, finished(running, idp), words)
    assert not running.desk.accounts.has("mallory")


def test_a_removed_person_does_not_come_back(running: Running, idp: Provider) -> None:
    idp.claims = idp.claims | {"email": "ben"}
    assert finished(running, idp).status == 200
    running.desk.accounts.remove("ben")
    assert is_refused(running, finished(running, idp), "no account")


def test_accounts_are_made_only_if_the_settings_say_so(idp: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DITHER_OIDC_SECRET", SECRET)
    service = configured(make(tmp_path), idp, oidc_create="analyst", oidc_claim="preferred_username")
    idp.claims = {"sub": "u9", "preferred_username": "zoe"}
    with serving(service) as running:
        assert finished(running, idp).status == 200
        assert finished(running, idp).status == 200
        (zoe,) = [each for each in running.desk.accounts.people() if each["name"] == "zoe"]
        assert zoe["role"] == "analyst"
        running.desk.accounts.remove("zoe")
        assert is_refused(running, finished(running, idp), "no account")  # not made a second time


# --- attacks: each is one change to a login that works -----------------------------------------------------------

OTHER = rsa.generate_private_key(65537, 2048)
LIES: dict[str, tuple[Any, str]] = {
    "wrong nonce": (lambda made: made["claims"].update(nonce="another"), "another login"),
    "no nonce": (lambda made: made["claims"].update(nonce=None), "another login"),
    "wrong audience": (lambda made: made["claims"].update(aud="another-client"), "InvalidAudienceError"),
    "no audience": (lambda made: made["claims"].update(aud=None), "MissingRequiredClaimError"),
    "for several clients": (lambda made: made["claims"].update(aud=[CLIENT, "another"]), "another client"),
    "for another client": (lambda made: made["claims"].update(azp="another"), "another client"),
    "wrong issuer": (lambda made: made["claims"].update(iss="https://evil.example"), "InvalidIssuerError"),
    "expired": (lambda made: made["claims"].update(exp=made["claims"]["iat"] - 3600), "expired"),
    "never expires": (lambda made: made["claims"].update(exp=None), "MissingRequiredClaimError"),
    "not yet": (lambda made: made["claims"].update(nbf=made["claims"]["iat"] + 3600), "ImmatureSignatureError"),
    "no subject": (lambda made: made["claims"].update(sub=None), "MissingRequiredClaimError"),
    "alg none": (lambda made: made.update(head={"alg": "none"}, sign=lambda text: ""), "not signed with an algorithm"),
    "alg None with a signature": (lambda made: made["head"].update(alg="NONE"), "not signed with an algorithm"),
    "unsigned": (lambda made: made.update(sign=lambda text: ""), "InvalidSignatureError"),
    "another text is signed": (
        lambda made: made.update(sign=lambda text, old=made["sign"]: old(text + "x")),
        "InvalidSignature",
    ),
    "unknown key": (lambda made: made["head"].update(kid="k2"), "does not list"),
    "critical head": (lambda made: made["head"].update(crit=["b64"], b64=False), "not right"),
}


@pytest.mark.parametrize("way", LIES)
def test_an_id_token_that_is_not_right_lets_nobody_in(running: Running, idp: Provider, way: str) -> None:
    """Twin of each: the same login without the lie works."""
    lie, words = LIES[way]
    idp.lie = lie
    reply = finished(running, idp)
    assert is_refused(running, reply, words), reply.body
    idp.lie = lambda made: None
    assert finished(running, idp).status == 200


def test_that_check_can_fail(running: Running, idp: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin of all: a server that believes an ID token as it is lets the same liars in."""

    def believed(self: Any, token: str, nonce: str) -> Any:
        return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))

    monkeypatch.setattr(oidc.Provider, "_claims", believed)
    for way in ("alg none", "wrong nonce", "wrong audience", "wrong issuer", "expired", "unsigned"):
        idp.lie = LIES[way][0]
        assert finished(running, idp).status == 200


def test_the_public_key_is_no_shared_secret(running: Running, idp: Provider) -> None:
    idp.lie = lambda made: (made["head"].update(alg="HS256"), made.update(sign=idp.as_hmac))
    assert is_refused(running, finished(running, idp), "not signed with an algorithm")


def test_another_key_of_the_same_name_is_refused(running: Running, idp: Provider) -> None:
    thief = Provider(port=idp.port, key=OTHER)
    idp.lie = lambda made: made.update(sign=thief.sign)
    assert is_refused(running, finished(running, idp), "InvalidSignatureError")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "another"}, "another browser"),
        ({"state": None}, "another browser"),
        ({"code": "another"}, "did not accept"),
        ({"code": None}, "provider refused"),
        ({"error": "access_denied"}, "provider refused"),
        ({"iss": "https://evil.example"}, "another provider"),
    ],
)
def test_a_query_that_is_not_right_lets_nobody_in(
    running: Running, idp: Provider, changes: dict[str, str | None], words: str
) -> None:
    reply = finished(running, idp, **changes)
    assert is_refused(running, reply, words), reply.body


def test_a_login_begun_elsewhere_is_not_finished_here(running: Running, idp: Provider) -> None:
    """An attacker's own code, in a victim's browser: the victim would ask under the attacker's name."""
    where, _ = begun(running)
    _, victim = begun(running)
    _, query = idp.authorize(where)
    for cookie in (victim, "", "dither-oidc="):
        assert is_refused(running, running.get(f"{CALLBACK}?{urlencode(query)}", headers={"Cookie": cookie}), "another browser")


def test_a_state_works_once(running: Running, idp: Provider) -> None:
    where, cookie = begun(running)
    _, query = idp.authorize(where)
    address = f"{CALLBACK}?{urlencode(query)}"
    assert running.get(address, headers={"Cookie": cookie}).status == 200
    assert is_refused(running, running.get(address, headers={"Cookie": cookie}), "finished before")


def test_a_doubled_parameter_is_refused(running: Running, idp: Provider) -> None:
    where, cookie = begun(running)
    _, query = idp.authorize(where)
    address = f"{CALLBACK}?{urlencode(query)}&{urlencode(query)}"
    assert is_refused(running, running.get(address, headers={"Cookie": cookie}), "not right")


def test_a_stolen_code_needs_the_verifier(running: Running, idp: Provider) -> None:
    """PKCE: a code that was begun by another login is not accepted, whoever brings it."""
    victim, _ = begun(running)
    _, stolen = idp.authorize(victim)
    assert is_refused(running, finished(running, idp, code=stolen["code"]), "did not accept")


@pytest.mark.parametrize(
    ("about", "words"),
    [
        (lambda made: made.update(issuer="https://evil.example"), "another issuer"),
        (lambda made: made.update(token_endpoint="http://evil.example/token"), "no https"),
        (lambda made: made.update(jwks_uri="file:///etc/passwd"), "no https"),
        (lambda made: made.pop("jwks_uri"), "no https"),
    ],
)
def test_a_provider_that_names_others_is_not_used(
    idp: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, about: Any, words: str
) -> None:
    """Mix-up: what a provider says of itself must be of the issuer in the settings."""
    monkeypatch.setenv("DITHER_OIDC_SECRET", SECRET)
    idp.about = about
    with serving(configured(make(tmp_path), idp)) as running:
        reply = running.get("/login/oidc")
        assert reply.status in (422, 503)
        assert words in reply.body.decode()


# --- settings ---------------------------------------------------------------------------------------------------


def written(folder: Path, lines: str) -> Path:
    service = make(folder)
    catalog = Path(service.settings.catalog)
    catalog.write_text(catalog.read_text() + f"[service]\n{lines}\n")
    return catalog


def test_settings_are_read_from_the_catalog_and_checked(tmp_path: Path) -> None:
    right = 'oidc_issuer = "https://id.example"\noidc_client = "x"\noidc_address = "https://survey.example"\n'
    for number, (lines, words) in enumerate(
        [
            (right, ""),
            ('oidc_issuer = "https://id.example"', "needs oidc_client"),
            (right.replace("https://id", "http://id"), "no https"),
            (right + 'oidc_create = "king"', "role of new people"),
            (right + "oidc_claim = 5", "not right"),
            (right + 'oidc_password = "x"', "not known"),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        if not words:
            assert read_settings(written(folder, lines)).oidc_client == "x"
            continue
        with pytest.raises((ArgumentError, CatalogError), match=words):
            read_settings(written(folder, lines))
