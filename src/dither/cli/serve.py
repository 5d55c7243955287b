"""`serve` and `people`: the server, and who may use it."""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dither.cli.app import (
    CATALOG,
    Catalog,
    Key,
    Ledger,
    Witness,
    app,
    existing_catalog,
    existing_ledger,
    forget_signal,
    key_file,
)
from dither.cli.screen import escape, note, show_table
from dither.errors import ArgumentError, DitherError, Fix, Shell, extra
from dither.exact.numbers import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dither.server.accounts import Accounts
    from dither.server.clock import Delay
    from dither.server.effect import Effect
    from dither.server.settings import Settings

people = typer.Typer(no_args_is_help=True, help="Add and remove people who may use the server, and their tokens.")
app.add_typer(people, name="people")


def _require_packages() -> None:
    """Refuses if the packages of the server are not installed."""
    try:
        import argon2
        import jinja2
        import msgspec
        import prometheus_client
        import starlette
        import uvicorn
    except ImportError as missing:
        raise DitherError(f"The server needs {missing.name}, which is not installed.", fix=extra("serve")) from None
    del argon2, jinja2, msgspec, prometheus_client, starlette, uvicorn


@app.command("serve")
def _serve(
    catalog: Annotated[Path, typer.Argument(help="Catalog file.")] = CATALOG,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a made-up hospital on this machine.")] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on. Default: 8321.")] = None,
    tls: Annotated[tuple[Path, Path] | None, typer.Option(help="Certificate and private key.", metavar="CERT KEY")] = None,
    behind_proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy that ends TLS, whose headers are believed. Repeatable.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Processes. Default: 1.")] = None,
    wire: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for SQL tools: the PostgreSQL protocol. Default: not spoken.")
    ] = None,
    twin: Annotated[
        str | None, typer.Option(help="Empty PostgreSQL for what SQL tools ask about the catalog. Default: one is started.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Open everything, say whether it is right, and end.")] = False,
    ledger: Ledger = None,
    key: Key = None,
    witness: Witness = None,
) -> None:
    """Answer analysts over HTTP, and with --wire SQL tools, so that they never hold the data.

    Settings are in the section `service` of the catalog file; see docs/serve.md.
    """
    _require_packages()
    from dither.server import running
    from dither.server.settings import read_settings

    options: dict[str, Any] = {"host": host, "port": port, "workers": workers, "wire": wire, "twin": twin}
    options["tls"] = None if tls is None else tuple(map(str, tls))
    options["behind_proxy"] = tuple(behind_proxy) if behind_proxy else None
    if demo:
        others: dict[str, Any] = {"--tls": tls, "--behind-proxy": behind_proxy, "--workers": workers, "--twin": twin}
        others |= {"--check": check or None, "--ledger": ledger, "--key": key, "--witness": witness}
        if wrong := [option for option, value in others.items() if value is not None]:
            fix = Fix("leave {it} out.", it=Shell(" ".join(wrong)))
            raise ArgumentError("The demo has its own catalog and settings: one worker on this machine, without TLS.", fix=fix)
        _demo(host, port or None, wire)
        return
    where = existing_ledger(existing_catalog(catalog), ledger)
    file = key_file(where, key)
    named = {"ledger": ledger, "key": None if file is None else str(file), "witness": None if witness is None else str(witness)}
    settings = read_settings(catalog, **options, **named)
    if check:
        _check(settings)
        return
    _check(settings, quiet=True)
    running.check_ports(settings)
    running.run(settings, lambda: _say_where(str(catalog), settings))
    forget_signal()


def _say_where(catalog: str, settings: Settings) -> None:
    """Prints where the server can be asked."""
    note(f"Serving {escape(catalog)} at {settings.address} with {settings.workers} worker(s).")
    if settings.wire is not None:
        named = f"host={settings.host} port={settings.wire} user=NAME dbname=survey"
        options = "-c dither.epsilon=0.1 -c dither.margins=on"
        note(f"""SQL tools: psql "{named} options='{options}'", with a token as the password.""")


def _demo(host: str | None, port: int | None, wire: int | None) -> None:
    from dither.server import demo, running
    from dither.server.settings import LOOPBACK

    if host is not None and host not in LOOPBACK:
        raise ArgumentError("The demo is for this machine only.", fix=Fix("leave {host} out.", host=Shell("--host")))
    with tempfile.TemporaryDirectory(prefix="dither-demo-") as folder:
        settings, lines = demo.prepare(Path(folder), port, wire, host)
        running.check_ports(settings)
        running.run(settings, lambda: _say(lines))
    forget_signal()


def _say(lines: list[str]) -> None:
    for line in lines:
        typer.echo(line)
    sys.stdout.flush()


def _check(settings: Settings, quiet: bool = False) -> None:
    """Opens what the server opens, and closes it again. Refuses with the reason if something is not right."""
    from dither.server.desk import open_desk
    from dither.server.effect import effects

    desk = open_desk(settings)
    try:
        found = desk.accounts.people()
        standing, catalog = str(desk.survey.budget), desk.survey.catalog
    finally:
        desk.close()
    if not any(each["active"] for each in found):
        note("Nobody can log in yet: dither people add NAME --role analyst", style="yellow")
    if not quiet:
        typer.echo(f"catalog   {escape(settings.catalog)}: opens")
        typer.echo(f"ledger    opens with its key; {standing}")
        typer.echo(f"people    {sum(each['active'] for each in found)}")
        typer.echo(f"address   {settings.host}:{settings.port}, {'TLS' if settings.secure else 'no TLS, this machine only'}")
        if settings.wire is not None:
            typer.echo(f"wire      {settings.host}:{settings.wire}, {'TLS' if settings.tls else 'no TLS, this machine only'}")
        _check_clock(settings.delay, [] if settings.delay is None else effects(catalog))
    elif settings.exposed and settings.delay is None:
        note("The clock is off, so the time of an answer tells how many rows took part.", style="yellow")


def _check_clock(delay: Delay | None, found: list[Effect]) -> None:
    """Prints what the clock hides and costs, and what one person adds to a time, measured on made-up rows."""
    if delay is None:
        typer.echo("clock     off: the time of an answer tells how many rows took part")
    else:
        told = f"ε = {show(delay.epsilon)} and δ = {show(delay.delta)} for each paid question"
        typer.echo(f"clock     {told}, if one person adds at most {delay.effect / 10:g} ms")
        typer.echo(
            f"          costs {delay.seconds:.2f} s on average, {delay.longest:.2f} s at most; one paid question at a time"
        )
    for each in found:
        typer.echo(f"          {escape(each.words(delay))}")


# --- people -----------------------------------------------------------------------------------------------------


@contextmanager
def _accounts(catalog: Path, ledger: str | None, key: Path | None) -> Iterator[Accounts]:
    _require_packages()
    from dither.server.accounts import Accounts
    from dither.server.desk import people_file
    from dither.server.settings import read_settings
    from dither.server.store import ServiceStore

    where = existing_ledger(existing_catalog(catalog), ledger)
    file = key_file(where, key)
    settings = read_settings(catalog, ledger=ledger, key=None if file is None else str(file))
    store = ServiceStore(people_file(settings))
    try:
        yield Accounts(store)
    finally:
        store.close()


Name = Annotated[str, typer.Argument(help="The person's name, as the ledger will show it.", show_default=False)]
Scope = Annotated[
    list[str] | None, typer.Option("--scope", help="ask, replay, audit or curate. Repeatable. Default: the role's.")
]
Days = Annotated[float | None, typer.Option(min=0.0, help="Days until the token expires. Default: it does not.")]
Project = Annotated[str | None, typer.Option(help="Project whose quota the token's questions count in.")]


@people.command("add")
def _add(
    name: Name,
    role: Annotated[str, typer.Option(help="curator, analyst or auditor.")] = "analyst",
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Add a person, and print their token. It is shown once and stored nowhere."""
    with _accounts(catalog, ledger, key) as accounts:
        name = accounts.add(name, role)
        _, secret = accounts.make_token(name)
    typer.echo(secret)
    note(f"The token of {escape(name)}, a{'n' if role[0] == 'a' else ''} {role}. It is not stored: keep it now.")
    note(f"It is for Python, the shell and SQL tools. For the browser: dither people login {escape(name)}", "dim")


@people.command("list")
def _list(catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None) -> None:
    """List people, their roles and how many tokens they have."""
    with _accounts(catalog, ledger, key) as accounts:
        found = accounts.people()
    rows = [
        [
            each["name"],
            each["role"],
            "yes" if each["active"] else "removed",
            "yes" if each["password"] else "",
            str(each["tokens"]),
        ]
        for each in found
    ]
    show_table(("name", "role", "active", "password", "tokens"), rows, (False, False, False, False, True))


@people.command("remove")
def _remove(name: Name, catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None) -> None:
    """End a person's access. What they asked stays in the ledger."""
    with _accounts(catalog, ledger, key) as accounts:
        accounts.remove(name)
    note(f"{escape(name)} has no access any more.")


@people.command("password")
def _password(name: Name, catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None) -> None:
    """Set a person's password for the console. Reads it from the terminal, or the first line of stdin."""
    if sys.stdin.isatty():
        given = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        given = sys.stdin.readline().rstrip("\n")
    with _accounts(catalog, ledger, key) as accounts:
        accounts.set_password(name, given)
    note(f"{escape(name)} can log in with this password.")


@people.command("token")
def _token(
    name: Name,
    scope: Scope = None,
    days: Days = None,
    project: Project = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Make another token for a person, and print it once. --scope replay is for a dashboard: it can never spend."""
    with _accounts(catalog, ledger, key) as accounts:
        ident, secret = accounts.make_token(name, scope, days=days, project=project, label=label)
    typer.echo(secret)
    note(f"Token {ident} of {escape(name)}. It is not stored: keep it now. To end it: dither people revoke {ident}")


@people.command("tokens")
def _tokens(
    name: Annotated[str | None, typer.Argument(help="Only those of this person.", show_default=False)] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """List tokens. The secrets themselves are not stored."""
    with _accounts(catalog, ledger, key) as accounts:
        found = accounts.tokens(name)
    rows = [
        [
            one["id"],
            one["person"],
            " ".join(one["scopes"]),
            one["project"] or "",
            one["label"],
            "revoked" if one["revoked"] else "",
        ]
        for one in found
    ]
    show_table(("id", "person", "scopes", "project", "label", ""), rows, (False,) * 6)


@people.command("revoke")
def _revoke(
    ident: Annotated[str, typer.Argument(help="The token's id, from dither people tokens.", show_default=False)],
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """End a token, at once and for ever."""
    with _accounts(catalog, ledger, key) as accounts:
        accounts.revoke(ident)
    note(f"Token {escape(ident)} is revoked.")


@people.command("project")
def _project(
    name: Annotated[str | None, typer.Argument(help="The project. Without it, all are listed.", show_default=False)] = None,
    quota: Annotated[str | None, typer.Option(help="Epsilon that its questions may cost together, such as 0.5.")] = None,
    member: Annotated[list[str] | None, typer.Option(help="A person to add. Repeatable.")] = None,
    catalog: Catalog = CATALOG,
    ledger: Ledger = None,
    key: Key = None,
) -> None:
    """Make a project, change its quota, add members; or list projects."""
    from dither.exact.numbers import positive

    with _accounts(catalog, ledger, key) as accounts:
        if name is not None:
            accounts.set_project(name, None if quota is None else positive(quota, "quota"), member or ())
        found = accounts.projects()
    rows = [[one["name"], one["quota"] or "", one["spent"], ", ".join(one["members"])] for one in found]
    show_table(("project", "quota", "spent", "members"), rows, (False, True, True, False))


def _address(catalog: Path) -> str:
    """Returns the address of the server as browsers write it, as far as the settings tell."""
    from dither.server.settings import read_settings

    settings = read_settings(catalog)
    if settings.oidc_address or settings.behind_proxy:
        return settings.oidc_address or "https://ADDRESS"
    return settings.address


@people.command("login")
def _link(name: Name, catalog: Catalog = CATALOG, ledger: Ledger = None, key: Key = None) -> None:
    """Print a code with which a person can log in to the console once, within ten minutes."""
    with _accounts(catalog, ledger, key) as accounts:
        typer.echo(accounts.make_code(name))
    note(f"Open {_address(catalog)}/login#CODE in a browser, with this code in place of CODE, within ten minutes.")
