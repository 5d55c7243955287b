"""`dither serve --demo`: a made-up hospital with a curator, an analyst and an auditor, on loopback only."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from dither.demo import hospital
from dither.server.accounts import Accounts
from dither.server.desk import people_file
from dither.server.running import is_free
from dither.server.settings import Settings
from dither.server.store import ServiceStore
from dither.server.wire.twin import can_start
from dither.workspace import beside, make_ledger

WIRE = 5433
QUESTION = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
PEOPLE = {"cora": "curator", "ada": "analyst", "otto": "auditor"}


def _wire_port() -> int:
    """Returns the port for SQL tools: the usual one, or another one if somebody listens there."""
    if is_free(Settings.host, WIRE):
        return WIRE
    with socket.socket() as found:
        found.bind((Settings.host, 0))
        return int(found.getsockname()[1])


def prepare(
    folder: Path, port: int | None = None, wire: int | None = None, host: str | None = None
) -> tuple[Settings, list[str]]:
    """Makes the hospital, its ledger and its people. Returns the settings, and the lines to print."""
    hospital(folder)
    catalog = folder / "catalog.toml"
    make_ledger(beside(catalog))
    spoken = wire if wire is not None else _wire_port() if can_start() else None
    settings = Settings(str(catalog), host=host or Settings.host, port=port or Settings.port, wire=spoken, demo=True)
    store = ServiceStore(people_file(settings))
    try:
        accounts = Accounts(store)
        address = settings.address
        for name, role in PEOPLE.items():
            accounts.add(name, role)
        accounts.set_password("cora", password := "-".join(secrets.token_hex(2) for _ in range(4)))
        _, token = accounts.make_token("ada", label="demo")
        lines = [
            "A made-up hospital, for this machine only. Ctrl-C ends the server, and the hospital is gone. A link works once.",
            f"  analyst    {address}/login#{accounts.make_code('ada')}",
            f"  curator    {address}/login   name cora, password {password}",
            f"  auditor    {address}/login#{accounts.make_code('otto')}",
            f'  Python     dt.connect("{address}", token="{token}", known="{(folder / "known").as_posix()}")',
            f"  shell      export DITHER_SERVER={address} DITHER_TOKEN={token} DITHER_KNOWN={folder / 'known'}",
            f'             dither ask "{QUESTION}" --epsilon 0.1',
            f"  HTTP       curl -s {address}/v1/budget -H 'Authorization: Bearer {token}'",
        ]
        if spoken is not None:
            told = f"host={settings.host} port={spoken} user=ada dbname=survey"
            told += " options='-c dither.epsilon=0.1 -c dither.margins=on'"
            lines.append(f'  SQL tools  PGPASSWORD={token} psql "{told}" -c "{QUESTION}"')
            if wire is None and spoken != WIRE:
                lines.append(f"             Port {WIRE} is taken, so SQL tools ask at {spoken}.")
        return settings, lines
    finally:
        store.close()
