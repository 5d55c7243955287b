"""The port: TLS, limits of size, number and time, and a stop that keeps what was charged."""

from __future__ import annotations

import datetime
import ssl
import struct
import threading
import time
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dither.errors import ArgumentError
from dither.server.settings import Settings, check
from dither.server.wire.session import MOST
from server.serving import BY_WARD, COUNT, free_port, make, process
from server.wire.talking import Raw, Wire, fields, wired

pytestmark = pytest.mark.slow


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate for this machine, signed by itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return str(paths[0]), str(paths[1])


def test_over_tls_the_certificate_is_checked_and_the_login_bound_to_it(tmp_path: Path) -> None:
    pair = certificate(tmp_path)
    with wired(tmp_path, tls=pair) as wire:
        told = {"sslmode": "verify-full", "sslrootcert": pair[0], "host": "localhost"}
        with psycopg.connect(**wire.address() | told, channel_binding="require", options="-c dither.epsilon=0.1") as link:
            assert link.execute(BY_WARD).fetchall()
        with psycopg.connect(**wire.address() | told, channel_binding="disable") as link:
            assert link.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="TLS only"):
            psycopg.connect(**wire.address(), sslmode="disable")
        _asyncpg_and_pg8000(wire, pair[0])
        _nothing_before_the_encryption_counts(wire)


def _asyncpg_and_pg8000(wire: Wire, certificate: str) -> None:
    import asyncio

    import asyncpg
    import pg8000.dbapi

    context = ssl.create_default_context(cafile=certificate)
    told = wire.address() | {"host": "localhost"}
    told["database"] = told.pop("dbname")

    async def talk() -> int:
        link = await asyncpg.connect(**told, ssl=context)
        try:
            return int(await link.fetchval("SELECT 7"))
        finally:
            await link.close()

    assert asyncio.run(talk()) == 7
    link = pg8000.dbapi.connect(**told, ssl_context=context)
    cursor = link.cursor()
    cursor.execute("SELECT 7")
    assert cursor.fetchone() == [7]
    link.close()


def _nothing_before_the_encryption_counts(wire: Wire) -> None:
    """A startup message that travels with the request for TLS is not taken as if it were encrypted."""
    with Raw(wire.port) as raw:
        body = b"user\0ada\0\0"
        raw.socket.sendall(struct.pack("!ii", 8, 80877103) + struct.pack("!ii", len(body) + 8, 3 << 16) + body)
        assert raw.socket.recv(100) == b""


def test_without_tls_only_this_machine_is_served(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="PostgreSQL protocol"):
        check(Settings("c", host="0.0.0.0", behind_proxy=("10.0.0.1",), wire=5433))
    check(Settings("c", host="0.0.0.0", behind_proxy=("10.0.0.1",)))
    check(Settings("c", wire=5433))


def test_messages_connections_and_waiting_are_limited(tmp_path: Path) -> None:
    with wired(tmp_path, body=4096, wire_connections=3, read_time=1.0, wire_idle=2.0) as wire:
        with Raw(wire.port) as raw:
            raw.log_in("ada", wire.service.tokens["ada"])
            raw.socket.sendall(b"Q" + struct.pack("!i", 100_000))
            assert fields(raw.until(b"E")[-1][1])["C"] == "54000"
            assert raw.receive() == (b"", b"")
        with Raw(wire.port) as silent:  # says nothing at all
            assert silent.receive() == (b"", b"")
        with Raw(wire.port) as half:  # sends half a message
            half.log_in("ada", wire.service.tokens["ada"])
            half.socket.sendall(b"Q" + struct.pack("!i", 100) + b"SELECT")
            assert fields(half.until(b"E")[-1][1])["C"] == "57P05"
        with Raw(wire.port) as idle:
            idle.log_in("ada", wire.service.tokens["ada"])
            assert fields(idle.until(b"E")[-1][1])["C"] == "57P05"
        held = [Raw(wire.port) for _ in range(3)]
        time.sleep(0.2)
        with Raw(wire.port) as more:
            assert fields(more.until(b"E")[-1][1])["C"] == "53300"
        for each in held:
            each.socket.close()
        deadline = time.monotonic() + 20
        while wire.listening._tasks and time.monotonic() < deadline:
            time.sleep(0.02)
        with wire.connect() as link:
            assert link.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("statement", [b"SELECT 1", COUNT.encode()])
def test_a_connection_has_a_few_portals(wire: Wire, statement: bytes) -> None:
    with Raw(wire.port) as raw:
        raw.log_in("ada", wire.service.tokens["ada"])
        raw.send(b"Q", b"BEGIN\0")
        raw.until(b"Z")
        raw.send(b"P", b"s\0" + statement + b"\0\0\0")
        for number in range(MOST + 1):
            raw.send(b"B", b"p%d\0s\0" % number + bytes(6))
        raw.send(b"S")
        assert fields(raw.until(b"E")[-1][1])["C"] == "54000"


@pytest.mark.parametrize("values", [None, ()])
def test_a_long_text_is_refused_unread(wire: Wire, values: tuple[()] | None) -> None:
    most = wire.service.settings.question
    with wire.connect() as link:
        assert link.execute("SELECT 1" + " " * (most - 8), values, prepare=values is not None).fetchone() == (1,)
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match=f"at most {most:,} characters"):
            link.execute("SELECT 1" + " " * (most - 7), values, prepare=values is not None)
        assert link.execute("SELECT 2").fetchone() == (2,)


def test_a_margin_can_be_set_where_the_connection_began_with_a_price(wire: Wire) -> None:
    with wire.connect(epsilon="0.05") as link:
        link.execute("SET dither.margin = 50")
        assert len(link.execute("EXPLAIN " + COUNT).fetchall()) > 1
        assert link.execute("SHOW dither.epsilon").fetchone() == ("",)
        link.execute("RESET dither.margin")
        assert link.execute("SHOW dither.epsilon").fetchone() == ("0.05",)


def test_a_person_has_a_few_connections(wire: Wire) -> None:
    links = [wire.connect("ben") for _ in range(16)]
    with pytest.raises(psycopg.OperationalError, match="at most 16 connections"):
        wire.connect("ben")
    with wire.connect("ada") as other:
        assert other.execute("SELECT 1").fetchone() == (1,)
    for link in links:
        link.close()


def test_a_stopping_server_ends_idle_connections_and_answers_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, found = threading.Event(), []
    with wired(tmp_path) as wire:
        survey = wire.running.desk.survey
        own = survey.ask

        def slow(*given: object, **terms: object) -> object:
            began.set()
            time.sleep(1.0)
            return own(*given, **terms)  # type: ignore[arg-type]

        monkeypatch.setattr(survey, "ask", slow)
        idle, busy = wire.connect(), wire.connect()
        thread = threading.Thread(target=lambda: found.append(busy.execute(COUNT).fetchall()))
        thread.start()
        assert began.wait(30)
    thread.join(30)
    assert len(found) == 1
    for link in (idle, busy):
        with pytest.raises(psycopg.Error):
            link.execute("SELECT 1")
        link.close()


@pytest.mark.long
def test_several_workers_share_the_port_and_the_charge(tmp_path: Path) -> None:
    service = make(tmp_path)
    with process(service, workers=2, wire=(port := free_port())) as running:
        told = {"host": "127.0.0.1", "port": port, "user": "ada", "password": service.tokens["ada"], "autocommit": True}
        found = []
        for _ in range(10):
            with psycopg.connect(**told, options="-c dither.epsilon=0.1") as link:
                found.append(link.execute(BY_WARD).fetchall())
        assert found == found[:1] * 10
        assert running.spent() == "1/10"


def test_other_versions_of_the_protocol_are_answered_with_ours(wire: Wire) -> None:
    with Raw(wire.port) as raw:
        body = b"user\0ada\0_pq_.hm\0x\0\0"
        raw.socket.sendall(struct.pack("!ii", len(body) + 8, (3 << 16) + 2) + body)
        kind, told = raw.receive()
        assert (kind, told[:8]) == (b"v", struct.pack("!ii", 3 << 16, 1))
    for code in (2 << 16, 80877104, 99):
        with Raw(wire.port, 2.0) as raw:
            raw.socket.sendall(struct.pack("!ii", 8, code))
            assert raw.socket.recv(10) in (b"", b"N")
