"""The settings of `dither serve`: one section [service] in the catalog file, and options that override it.

Everything has a default that suits a small office. Unknown names are refused, with the nearest known one.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither.catalog.file import file_text, line_of, lines
from dither.catalog.values import amount
from dither.errors import ArgumentError, CatalogError, Fix, Python, Shell
from dither.server.clock import OFF, Delay, clock_fault, clock_value, make_delay
from dither.text import did_you_mean

ENVIRONMENT = "DITHER_SERVE"  # passes the settings to worker processes
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Settings:
    """What `dither serve` runs with. Times are in seconds, sizes in bytes."""

    catalog: str
    ledger: str | None = None
    key: str | None = None
    witness: str | None = None
    people: str | None = None  # the file of accounts; by default beside the ledger's key
    host: str = "127.0.0.1"
    port: int = 8321
    tls: tuple[str, str] | None = None  # certificate and private key
    behind_proxy: tuple[str, ...] = ()  # addresses whose X-Forwarded headers are believed; they end TLS
    workers: int = 1
    threads: int = 4  # questions answered at once, per worker
    waiting: int = 200  # questions waiting, per worker; more are refused
    waiting_each: int = 8  # of them, of one person
    connections: int = 2000  # open at once, per worker
    body: int = 128 * 1024  # of a request
    question: int = 64 * 1024  # of all questions of a request
    read_time: float = 10.0  # to send a request's head, and again for its body
    wait: float = 30.0  # before a question that is still running is answered with 202
    session: float = 12 * 3600.0
    tick: float = 1.0  # the unit in which progress is told
    clock: Mapping[str, str] | str | None = None  # when answers leave; None: by default, but off if only this machine asks
    keep_alive: float = 75.0
    stop: float = 5.0
    log_questions: bool = False
    approve_above: str | None = None  # questions of a higher epsilon wait for a curator
    approve_tables: tuple[str, ...] = ()  # questions about these tables wait for a curator
    wire: int | None = None  # the port of the PostgreSQL protocol; None: it is not spoken
    wire_connections: int = 100  # of it, open at once, per worker
    wire_idle: float = 3600.0  # before a silent connection is closed
    twin: str | None = None  # a PostgreSQL without rows, for what SQL tools ask about the catalog; None: one is started
    roots: tuple[str, ...] = ()  # folders that sources may be in, besides the catalog's
    oidc_issuer: str | None = None  # login through OpenID Connect: who names people
    oidc_client: str | None = None  # the id that the provider gave this server
    oidc_secret: str | None = None  # the file of its secret; or DITHER_OIDC_SECRET in the environment
    oidc_address: str | None = None  # of this server, as browsers write it
    oidc_claim: str = "email"  # the claim that is a person's name here
    oidc_create: str | None = None  # the role of people who are named and have no account; by default they get none
    demo: bool = False

    @property
    def address(self) -> str:
        """Where the server is, as browsers write it, if no proxy is before it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def secure(self) -> bool:
        """Whether browsers reach the server over TLS."""
        return self.tls is not None or bool(self.behind_proxy)

    @property
    def exposed(self) -> bool:
        """Whether other machines reach the server."""
        return self.host not in LOOPBACK or bool(self.behind_proxy)

    @property
    def delay(self) -> Delay | None:
        """The delay of paid answers; None if they leave when they are there."""
        if self.clock == OFF or (self.clock is None and not self.exposed):
            return None
        return make_delay(self.clock if isinstance(self.clock, Mapping) else {})

    @property
    def cookie(self) -> str:
        """The name of the session cookie. The prefix __Host- makes browsers demand TLS, so loopback without it has another."""
        return "__Host-dither" if self.secure else "dither"

    @property
    def threshold(self) -> Fraction | None:
        return None if self.approve_above is None else Fraction(self.approve_above)

    def text(self) -> str:
        """Returns the settings as text, for worker processes."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Settings:
        values: dict[str, Any] = json.loads(text)
        made: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**made)

    @classmethod
    def passed(cls) -> Settings:
        """Returns the settings that the parent process passed on."""
        return cls.parse(os.environ[ENVIRONMENT])


_OPTIONS = ("catalog", "ledger", "key", "witness", "demo")  # not in the file: options of every command
NAMES = tuple(each.name for each in fields(Settings) if each.name not in _OPTIONS)
_OIDC = tuple(name for name in NAMES if name.startswith("oidc_"))
_LEAST: Mapping[str, float] = {
    "port": 0,
    "wire": 0,
    "wire_connections": 1,
    "wire_idle": 1.0,
    "workers": 1,
    "threads": 1,
    "waiting": 1,
    "waiting_each": 1,
    "connections": 8,
    "body": 1024,
    "question": 256,
    "read_time": 0.1,
    "wait": 0.0,
    "session": 60.0,
    "tick": 0.1,
    "keep_alive": 1.0,
    "stop": 0.5,
}
_MOST: Mapping[str, float] = {"port": 65535, "wire": 65535, "workers": 64, "threads": 64, "stop": 60.0}


def read_settings(catalog: Path, **options: Any) -> Settings:
    """Reads the section [service] of a catalog file. Options that are not None override it."""
    text = file_text(catalog)
    try:
        written = tomllib.loads(text, parse_float=Decimal).get("service", {})
    except ValueError:
        written = {}  # opening the catalog reports what is wrong, with its line
    problems = [(line_of(lines(text), ("service", name)), what, fix) for name, what, fix in _problems(written)]
    if problems:
        raise CatalogError(problems, name=catalog.name)
    values = {name: _value(name, value) for name, value in written.items()}
    made = replace(Settings(str(catalog)), **values)
    made = replace(made, **{name: value for name, value in options.items() if value is not None})
    check(made)
    return made


def _problems(written: Any) -> list[tuple[str, str, str]]:
    if not isinstance(written, dict):
        return [("", "service must hold named values.", "write a section [service].")]
    found = []
    for name, value in written.items():
        if name not in NAMES:
            found.append((name, f"service.{name} is not known.", f"{did_you_mean(name, NAMES)}Known are: {', '.join(NAMES)}."))
        elif (fix := _wrong(name, value)) is not None:
            found.append((name, f"service.{name} is not right.", fix))
    return found


def _wrong(name: str, value: Any) -> str | None:
    """Returns how to write a value, if it is wrong."""
    kinds: dict[str, tuple[Callable[[Any], bool], str]] = {
        "tls": (lambda v: _is_texts(v) and len(v) == 2, 'write tls = ["cert.pem", "key.pem"].'),
        **dict.fromkeys(("behind_proxy", "approve_tables", "roots"), (_is_texts, f'write {name} = ["…"].')),
        **dict.fromkeys(("host", "people", "twin", *_OIDC), (lambda v: isinstance(v, str) and bool(v), f'write {name} = "…".')),
        "log_questions": (lambda v: isinstance(v, bool), "write log_questions = true or false."),
        "clock": (lambda v: clock_fault(v) is None, clock_fault(value) or ""),
        "approve_above": (lambda v: (amount(v) or 0) > 0, 'write approve_above = "0.1".'),
    }
    if name in kinds:
        right, fix = kinds[name]
        return None if right(value) else fix
    least, most = _LEAST[name], _MOST.get(name, float("inf"))
    whole = isinstance(getattr(Settings, name), int) or name == "wire"
    right_kind = type(value) is int or (not whole and isinstance(value, Decimal))
    if right_kind and least <= value <= most:
        return None
    return f"write a {'whole ' if whole else ''}number from {least:g}{f' to {most:g}' if most < float('inf') else ''}."


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in value)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if name == "clock":
        return clock_value(value)
    if name == "approve_above":
        return str(amount(value))
    return float(value) if isinstance(getattr(Settings, name), float) else value


def check(settings: Settings) -> None:
    """Refuses settings that would serve over an open network without TLS, or lose answers whenever the server stops."""
    if settings.host not in LOOPBACK and not settings.secure:
        raise ArgumentError(
            f"{settings.host} can be reached from other machines, and tokens would travel in the clear.",
            fix=Fix(
                "add {tls}, or stay on 127.0.0.1 behind a proxy that ends TLS, named by {proxy}.",
                tls=Shell("--tls cert.pem key.pem"),
                proxy=Shell("--behind-proxy 127.0.0.1"),
            ),
        )
    if settings.oidc_issuer is not None:
        from dither.server.oidc import check_settings

        check_settings(settings)
    if settings.delay is not None and settings.delay.longest > settings.stop / 2:
        raise ArgumentError(
            f"The clock holds answers back for up to {settings.delay.longest:.1f} s: a server that stops would lose them.",
            fix=Fix("write {stop} or more in [service].", stop=Python(f"stop = {math.ceil(2 * settings.delay.longest)}")),
        )
    if settings.wire is not None and settings.host not in LOOPBACK and settings.tls is None:
        raise ArgumentError(
            f"The PostgreSQL protocol on {settings.host} can be reached from other machines without TLS.",
            fix=Fix("add {tls}, or stay on 127.0.0.1.", tls=Shell("--tls cert.pem key.pem")),
        )
    for file in settings.tls or ():
        if not Path(file).is_file():
            raise ArgumentError(f"There is no file {file}.", fix=Fix("name it: {tls}.", tls=Shell("--tls cert.pem key.pem")))
