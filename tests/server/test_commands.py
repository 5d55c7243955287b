"""`dither serve`, `people`, `approvals` and `close` in a shell; the settings; TLS."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import dither
from dither.errors import CatalogError
from dither.server.accounts import Accounts
from dither.server.desk import people_file
from dither.server.settings import Settings, read_settings
from dither.server.store import ServiceStore
from journey.hospital import run
from server.serving import BY_WARD, COUNT, Client, Service, free_port, make, process, wait_until_ready
from server.wire.talking import psql


def good(service: Service, *words: str, stdin: str | None = None) -> str:
    done = run(*words, "--catalog", service.settings.catalog, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_people_are_added_listed_and_removed(service: Service) -> None:
    token = good(service, "people", "add", "zoe", "--role", "analyst").strip()
    assert re.fullmatch(r"dth_[A-Za-z0-9_-]{43}", token)
    assert "zoe" in good(service, "people", "list")
    with service.accounts() as accounts:
        assert accounts.by_token(token) is not None
        ident = next(each["id"] for each in accounts.tokens("zoe"))
    assert ident in good(service, "people", "tokens", "zoe")
    assert token not in good(service, "people", "tokens")
    good(service, "people", "revoke", ident)
    narrow = good(service, "people", "token", "zoe", "--scope", "replay", "--days", "1", "--label", "wall").strip()
    good(service, "people", "password", "zoe", stdin="correct horse battery\n")
    code = good(service, "people", "login", "zoe").strip()
    assert "hearts" in good(service, "people", "project", "hearts", "--quota", "0.5", "--member", "zoe")
    with service.accounts() as accounts:
        assert accounts.by_token(token) is None
        who = accounts.by_token(narrow)
        assert who is not None
        assert who.scopes == {"replay"}
        assert accounts.log_in("zoe", "correct horse battery", "a", 60)
        assert accounts.log_in_by_code(code, "a", 60)
    good(service, "people", "remove", "zoe")
    with service.accounts() as accounts:
        assert accounts.by_token(narrow) is None


@pytest.mark.parametrize(
    "words",
    [
        ("people", "add", "ada"),
        ("people", "add", "zoe", "--role", "king"),
        ("people", "token", "ada", "--scope", "audit"),
        ("people", "remove", "nobody"),
        ("people", "revoke", "x"),
        ("people", "project", "a/b"),
        ("approvals", "--approve", "3"),
        ("approvals", "--approve", "3", "--by", "cora"),
    ],
)
def test_wrong_commands_are_refused_with_a_fix(service: Service, words: tuple[str, ...]) -> None:
    done = run(*words, "--catalog", service.settings.catalog)
    assert done.exit_code in (2, 4)
    assert "Charged: nothing." in done.stderr


def test_a_catalog_is_closed_reopened_and_its_requests_decided(service: Service) -> None:
    from dataclasses import replace

    from dither import curator
    from dither.errors import ApprovalError, ClosedError
    from dither.server.desk import open_desk

    open_desk(replace(service.settings, approve_above="0.1")).close()
    with curator.open(service.settings.catalog, analyst="ada") as survey:
        with pytest.raises(ApprovalError) as error:
            survey.ask(COUNT, "0.2")
        number = str(error.value.request)
        assert "waiting" in good(service, "approvals")
        good(service, "approvals", "--approve", number, "--by", "cora")
        assert json.loads(good(service, "approvals", "-f", "json"))["state"] == "approved"
        survey.ask(COUNT, "0.2")
        good(service, "close", "--by", "cora", "--words", "the audit begins")
        with pytest.raises(ClosedError, match="curator closed it"):
            survey.ask(COUNT, "0.05")
        good(service, "reopen")
        survey.ask(COUNT, "0.05")
    assert "nothing wrong" in good(service, "verify")
    assert "requested" in good(service, "history", "--entries")


def test_serve_check_opens_everything_and_ends(service: Service) -> None:
    done = run("serve", service.settings.catalog, "--check")
    assert done.exit_code == 0
    assert "opens" in done.stdout
    assert run("serve", str(service.folder / "none.toml"), "--check").exit_code == 2
    assert run("serve", service.settings.catalog, "--check", "--host", "0.0.0.0").exit_code == 2


def test_settings_are_one_section_of_the_catalog(service: Service) -> None:
    catalog = Path(service.settings.catalog)
    before = catalog.read_text()
    catalog.write_text(before + '[service]\nport = 9000\nworkers = 2\napprove_above = "1/10"\nwait = 2.5\nroots = ["/data"]\n')
    found = read_settings(catalog, workers=3)
    assert (found.port, found.workers, found.approve_above, found.wait, found.roots) == (9000, 3, "1/10", 2.5, ("/data",))
    assert Settings.parse(found.text()) == found


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("prot = 1", "port"),
        ("port = 70000", "number"),
        ("port = 'x'", "number"),
        ("workers = 0", "number"),
        ("workers = true", "number"),
        ("tls = ['a']", "cert.pem"),
        ("approve_above = -1", "approve_above"),
        ("log_questions = 1", "true or false"),
        ("ledger = 'x'", "not known"),
    ],
)
def test_wrong_settings_are_refused_with_their_line(service: Service, line: str, says: str) -> None:
    catalog = Path(service.settings.catalog)
    text = catalog.read_text() + f"[service]\n{line}\n"
    catalog.write_text(text)
    with pytest.raises(CatalogError, match=says) as error:
        read_settings(catalog)
    assert f"line {len(text.splitlines())}" in str(error.value)


def test_the_settings_enter_no_digest(service: Service) -> None:
    from dither.catalog import file
    from dither.catalog.text import catalog_hash

    catalog = Path(service.settings.catalog)
    before = catalog_hash(file.read(catalog))
    catalog.write_text(catalog.read_text() + "[service]\nport = 9000\n")
    assert catalog_hash(file.read(catalog)) == before


def test_dither_works_without_the_packages_of_the_server() -> None:
    blocked = ("starlette", "uvicorn", "msgspec", "jinja2", "argon2", "prometheus_client")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked})); import dither, dither.cli; from dither.cli import app; "
    code += "sys.argv = ['dither', 'serve', '--demo']; dither.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'dither[serve]'" in done.stderr
    assert "Traceback" not in done.stderr


def certificate(folder: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return str(folder / "cert.pem"), str(folder / "key.pem")


@pytest.mark.slow
def test_it_serves_over_tls(tmp_path: Path) -> None:
    service = make(tmp_path)
    with process(service, tls=certificate(tmp_path)) as running:
        assert running.ask("ada", COUNT, "0.1").status == 200
        assert running.get("/v1/me", "ada").headers["strict-transport-security"]


@pytest.mark.slow
def test_the_demo_answers_with_the_token_it_prints(tmp_path: Path) -> None:
    from dither.server import demo

    settings, lines = demo.prepare(tmp_path)
    token = next(found[0] for line in lines if (found := re.findall(r"dth_[A-Za-z0-9_-]{43}", line)))
    with process(Service(settings, {"ada": token})) as running:
        reply = running.ask("ada", "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward", "0.1")
        assert reply.status == 200
        assert len(reply.json["rows"]) == 4
        (line,) = [line.split(maxsplit=2)[2] for line in lines if "psql" in line]
        path = f"{Path(psql()).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True, env=os.environ | {"PATH": path})
        assert "(4 rows)" in done.stdout


def serve(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dither.cli", "serve", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, "1"), (signal.SIGINT, "1"), (signal.SIGTERM, "2")])
def test_a_server_that_is_told_to_stop_did_not_fail(service: Service, number: int, workers: str) -> None:
    port = free_port()
    started = serve(service.settings.catalog, "--port", str(port), "--workers", workers)
    try:
        wait_until_ready(Client(port), started)
        started.send_signal(number)
        out, told = started.communicate(timeout=60)
    finally:
        started.kill()
    assert (started.returncode, out) == (0, "")
    said = [line for line in told.splitlines() if not line.startswith("{")]  # besides the log
    assert said == [f"Serving {service.settings.catalog} at http://127.0.0.1:{port} with {workers} worker(s)."]


@pytest.mark.slow
def test_the_demo_speaks_when_it_can_be_asked_and_its_lines_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    port = free_port()
    for _ in range(2):  # the second hospital has another key at the same address
        demo = serve("--demo", "--port", str(port), "--wire", str(free_port()))
        try:
            assert demo.stdout is not None
            lines = [demo.stdout.readline() for _ in range(7)]
            assert Client(port).get("/readyz").status == 200
            (line,) = [line.split(maxsplit=1)[1] for line in lines if "dt.connect" in line]
            assert eval(line, {"dt": dither}).ask(BY_WARD.replace("people", "patients"), epsilon="0.1").rows
            second = serve("--demo", "--port", str(port), "--wire", str(free_port()))
            out, told = second.communicate(timeout=60)
            assert (second.returncode, out) == (2, "")
            assert f"Port {port} of 127.0.0.1 cannot be listened on: another program listens there." in told
            assert f"--port {port + 1}" in told
            demo.terminate()
            assert demo.wait(30) == 0
        finally:
            demo.kill()
            demo.communicate()


@pytest.mark.parametrize("options", [["--tls", "a", "b"], ["--workers", "2"], ["--check"], ["--ledger", "x"]])
def test_the_demo_refuses_what_it_would_ignore(options: list[str]) -> None:
    done = run("serve", "--demo", *options)
    assert done.exit_code == 2
    assert "The demo has its own catalog" in done.output
    assert options[0] in done.output


def test_links_of_the_demo_are_where_it_listens(tmp_path: Path) -> None:
    from dither.server import demo

    settings, lines = demo.prepare(tmp_path, port=8901, host="::1")
    assert settings.host == "::1"
    assert "  analyst    http://[::1]:8901/login#dthl_" in lines[1]


def test_the_demo_says_if_the_port_of_sql_tools_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dither.server import demo

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(demo, "WIRE", port)
        settings, lines = demo.prepare(tmp_path)
    if settings.wire is not None:
        assert settings.wire != port
        assert lines[-1].strip() == f"Port {port} is taken, so SQL tools ask at {settings.wire}."


def test_accounts_are_beside_the_key(service: Service) -> None:
    assert people_file(service.settings).name == "catalog.ledger.people"
    store = ServiceStore(people_file(service.settings))
    assert {each["name"] for each in Accounts(store).people()} == {"cora", "carl", "ada", "ben", "otto"}
    store.close()
