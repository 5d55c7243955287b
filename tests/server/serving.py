"""A server for tests: a small catalog, people with tokens, and uvicorn on loopback, in a thread or in processes of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import uvicorn

from dither.server.accounts import Accounts
from dither.server.desk import Desk, people_file
from dither.server.http.app import application
from dither.server.http.heads import Connection
from dither.server.settings import ENVIRONMENT, Settings
from dither.server.store import ServiceStore
from dither.workspace import beside, make_ledger

ROWS = 400
CATALOG = """\
snapshot = "1"
[budget]
epsilon = {epsilon}
{budget}
[tables.people]
source = "people.parquet"
unit = "person"
max_rows = 1
[tables.people.columns]
ward = {{ values = ["north", "south"] }}
age = {{ between = [0, 100] }}
income = {{}}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
PEOPLE = {"cora": "curator", "carl": "curator", "ada": "analyst", "ben": "analyst", "otto": "auditor"}


def ages(above: int) -> str:
    """A question of its own for every number."""
    return f"SELECT COUNT(*) AS n FROM people WHERE age > {above % 100} AND age < {100 + above}"


@dataclass(frozen=True)
class Service:
    """A catalog with its ledger and its people."""

    settings: Settings
    tokens: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return Path(self.settings.catalog).parent

    @property
    def ledger(self) -> Path:
        return beside(self.settings.catalog)

    @contextmanager
    def accounts(self) -> Iterator[Accounts]:
        with closing(ServiceStore(people_file(self.settings))) as store:
            yield Accounts(store)

    def token(self, person: str, *scopes: str, **more: Any) -> str:
        with self.accounts() as accounts:
            return accounts.make_token(person, scopes or None, **more)[1]


def make(folder: Path, *, epsilon: str = "1", budget: str = "", **settings: Any) -> Service:
    """Makes a service in a folder."""
    table = {"person": range(ROWS), "ward": ["north", "south"] * (ROWS // 2), "age": [i % 100 for i in range(ROWS)]}
    pq.write_table(pa.table(table | {"income": [float(i) for i in range(ROWS)]}), folder / "people.parquet")
    catalog = folder / "catalog.toml"
    catalog.write_text(CATALOG.format(epsilon=epsilon, budget=budget), encoding="utf-8")
    make_ledger(beside(catalog))
    made = Settings(str(catalog), **{"port": 0, "stop": 4.0, **settings})
    with closing(ServiceStore(people_file(made))) as store:
        accounts = Accounts(store)
        for name, role in PEOPLE.items():
            accounts.add(name, role)
        tokens = {name: accounts.make_token(name)[1] for name in PEOPLE}
    return Service(made, tokens)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()  # each Set-Cookie header

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Sends requests to a server."""

    port: int
    tokens: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0
    tls: ssl.SSLContext | None = None

    def connect(self) -> http.client.HTTPConnection:
        if self.tls is not None:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=self.timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)

    def send(
        self,
        method: str,
        path: str,
        who: str | None = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """Sends a request. `who` is a name in `tokens`, `token` a token itself."""
        secret = token if token is not None else self.tokens[who] if who is not None else None
        sent = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        if data is not None:
            body, sent = json.dumps(data).encode(), sent | {"Content-Type": "application/json"}
        with closing(self.connect()) as connection:
            connection.request(method, path, body, sent | dict(headers or {}))
            response = connection.getresponse()
            found = {k.lower(): v for k, v in response.getheaders()}
            cookies = tuple(response.headers.get_all("Set-Cookie") or ())
            return Reply(response.status, found, response.read(), cookies)

    def get(self, path: str, who: str | None = None, **more: Any) -> Reply:
        return self.send("GET", path, who, **more)

    def post(self, path: str, who: str | None, data: Any, headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
        return self.send("POST", path, who, data, headers, **more)

    def ask(self, who: str | None, question: Any, epsilon: str = "0.01", key: str | None = None, **terms: Any) -> Reply:
        headers = {} if key is None else {"Idempotency-Key": key}
        token = terms.pop("token", None)
        return self.post("/v1/ask", who, {"question": question, "epsilon": epsilon, **terms}, headers, token=token)

    def spent(self) -> str:
        return str(self.get("/v1/budget", "cora").json["rules"]["sum"]["epsilon"]["spent"])

    def raw(self, sent: bytes, seconds: float = 10.0) -> bytes:
        """Sends bytes as they are, and returns all that comes back until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as wire:
            wire.sendall(sent)
            found = b""
            try:
                while part := wire.recv(65536):
                    found += part
            except (TimeoutError, ConnectionError):
                pass
            return found


@dataclass
class Running(Client):
    """A server in a thread of this process. `desk` is the one it serves from."""

    server: uvicorn.Server | None = None
    app: Any = None

    @property
    def desk(self) -> Desk:
        found: Desk = self.app.state.desk
        return found


@contextmanager
def serving(service: Service, http: Any = Connection) -> Iterator[Running]:
    """Runs a server in a thread."""
    app = application(service.settings)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="on", http=http, ws="none", h11_max_incomplete_event_size=16384,
        timeout_graceful_shutdown=2, server_header=False, proxy_headers=bool(service.settings.behind_proxy),
        forwarded_allow_ips=list(service.settings.behind_proxy),
    )  # fmt: skip
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    assert server.started, "the server did not start"
    try:
        yield Running(listening.getsockname()[1], service.tokens, server=server, app=app)
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Process(Client):
    """A server in processes of its own."""

    running: Any = None

    def end(self, number: int = signal.SIGTERM) -> int:
        os.kill(self.running.pid, number)
        return int(self.running.wait(300))  # on a busy machine it takes long


PROGRAM = "from dither.server.running import run; from dither.server.settings import Settings; run(Settings.passed())"


@contextmanager
def process(service: Service, log: Path | None = None, program: str = PROGRAM, **settings: Any) -> Iterator[Process]:
    """Runs `dither serve` in a process group of its own, and kills all of it at the end. `program`: another way to run it."""
    from dataclasses import replace

    made = replace(service.settings, port=free_port(), **settings)
    with open(log or os.devnull, "ab") as out:
        running = subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {ENVIRONMENT: made.text()},
            stderr=out,
            stdout=out,
            start_new_session=True,
        )
    context = None
    if made.tls is not None:
        context = ssl.create_default_context(cafile=made.tls[0])
        context.check_hostname = False
    client = Process(made.port, service.tokens, tls=context, running=running)
    try:
        wait_until_ready(client, running)
        yield client
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def wait_until_ready(client: Client, running: Any = None) -> None:
    for _ in range(2400):
        try:
            if client.get("/readyz").status == 200:
                return
        except OSError:
            pass
        assert running is None or running.poll() is None, "the server ended"
        time.sleep(0.05)
    raise AssertionError("the server did not get ready")


def repeats(default: int) -> int:
    """Returns how often a long run repeats what it does."""
    return int(os.environ.get("DITHER_TIMES", str(default)))


def seed() -> int:
    """Returns the number that a long run draws its dice from, so that it can be run in pieces."""
    return int(os.environ.get("DITHER_SEED", "0"))
