"""`dither login` and `dither logout`: a token in a file for its owner only, which `dt.connect` finds."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import dither as dt
from dither.cli import app
from dither.client.logins import Login, Logins
from server.serving import COUNT, Running

PASSWORD = "correct horse battery"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder of its own, and no token in the environment."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DITHER_TOKEN", raising=False)
    return tmp_path / "dither"


def run(*words: str, says: str = "") -> Result:
    return CliRunner().invoke(app, words, input=says)


def url(running: Running) -> str:
    return f"http://127.0.0.1:{running.port}"


def test_a_password_becomes_a_token_that_connect_finds(running: Running, home: Path) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    with pytest.raises(dt.ArgumentError, match="needs your token"):
        dt.connect(url(running))
    done = run("login", url(running), says=f"ada\n{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    file = home / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = json.loads(file.read_text())["servers"][url(running)]["token"]
    assert token not in done.output
    assert dt.connect(url(running)).ask(COUNT, epsilon="0.1").receipt.body["analyst"] == "ada"
    (made,) = [each for each in running.desk.accounts.tokens("ada") if each["label"] == "dither login"]
    assert made["expires"] is not None
    assert run("logout", url(running)).exit_code == 0
    assert running.get("/v1/me", token=token).status == 401
    with pytest.raises(dt.ArgumentError, match="needs your token"):
        dt.connect(url(running))


def test_a_given_token_is_checked_stored_and_not_revoked(running: Running, home: Path) -> None:
    token = running.tokens["ben"]
    assert run("login", url(running), "--token", says=f"{token}\n").exit_code == 0
    assert Logins().find(url(running)) == Login("ben", token)
    assert run("logout", url(running)).exit_code == 0
    assert running.get("/v1/me", token=token).status == 200  # somebody else may use it


@pytest.mark.parametrize("says", ["ada\nwrong\n", "nobody\nwrong\n", "ada\n", ""])
def test_a_wrong_login_stores_nothing(running: Running, home: Path, says: str) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    done = run("login", url(running), says=says)
    assert done.exit_code != 0
    assert not (home / "tokens.json").exists()
    assert not [each for each in running.desk.accounts.tokens("ada") if each["label"]]


def test_a_wrong_token_stores_nothing(running: Running, home: Path) -> None:
    assert run("login", url(running), "--token", says="dth_none\n").exit_code != 0
    assert not (home / "tokens.json").exists()


def test_guessing_is_limited_as_for_the_console(running: Running) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    wrong = {"name": "ada", "password": "x"}
    found = {running.post("/v1/tokens", None, wrong).status for _ in range(12)}
    assert found == {401, 429}
    assert running.post("/v1/tokens", None, wrong | {"password": PASSWORD}).status == 429
    assert running.post("/v1/login", None, wrong | {"password": PASSWORD}).status == 429


def test_another_site_gets_no_token(running: Running) -> None:
    running.desk.accounts.set_password("ada", PASSWORD)
    right = {"name": "ada", "password": PASSWORD}
    assert running.post("/v1/tokens", None, right, {"Origin": "https://evil.example"}).status == 403
    assert running.post("/v1/tokens", None, right | {"days": 1000}).status == 422
    assert running.post("/v1/tokens", None, right | {"scopes": ["curate"]}).status == 422
    reply = running.post("/v1/tokens", None, right)
    assert reply.status == 200
    assert running.get("/v1/me", token=reply.json["token"]).json["scopes"] == ["ask", "replay"]


def test_a_file_that_others_may_read_is_refused(home: Path) -> None:
    logins = Logins()
    logins.keep("https://a.example", Login("ada", "dth_a"))
    logins.keep("https://b.example", Login("ben", "dth_b"))
    assert "dth_" not in repr(logins.find("https://a.example"))
    logins.path.chmod(0o644)
    with pytest.raises(dt.DitherError, match="open to other users"):
        logins.find("https://a.example")
    logins.path.chmod(0o600)
    logins.forget("https://a.example")
    assert logins.servers() == ["https://b.example"]
    logins.path.write_text("[]")
    with pytest.raises(dt.DitherError, match="cannot be read"):
        logins.servers()


def test_a_token_goes_to_its_own_server_only(running: Running, home: Path) -> None:
    Logins().keep("https://other.example", Login("ada", running.tokens["ada"]))
    with pytest.raises(dt.ArgumentError, match="needs your token"):
        dt.connect(url(running))


def test_logout_without_a_login_says_so(home: Path) -> None:
    assert "Nobody is logged in" in run("logout", "https://a.example").output
