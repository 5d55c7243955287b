"""`dither serve --demo`: a made-up hospital with a curator, an analyst and an auditor, on loopback only."""

from __future__ import annotations

import secrets
from pathlib import Path

from dither.demo import hospital
from dither.server.accounts import Accounts
from dither.server.desk import people_file
from dither.server.settings import Settings
from dither.server.store import ServiceStore
from dither.workspace import beside, make_ledger

PEOPLE = {"cora": "curator", "ada": "analyst", "otto": "auditor"}


def prepare(folder: Path, port: int | None = None) -> tuple[Settings, list[str]]:
    """Makes the hospital, its ledger and its people. Returns the settings, and the lines to print."""
    hospital(folder)
    catalog = folder / "catalog.toml"
    make_ledger(beside(catalog))
    settings = Settings(str(catalog), port=port or Settings.port, demo=True)
    store = ServiceStore(people_file(settings))
    try:
        accounts = Accounts(store)
        address = f"http://{settings.host}:{settings.port}"
        for name, role in PEOPLE.items():
            accounts.add(name, role)
        accounts.set_password("cora", password := "-".join(secrets.token_hex(2) for _ in range(4)))
        _, token = accounts.make_token("ada", label="demo")
        lines = [
            "A made-up hospital, for this machine only. It is gone when the server ends.",
            f"  browser    {address}/login#{accounts.make_code('ada')}",
            f"  curator    {address}/login   name cora, password {password}",
            f"  auditor    {address}/login#{accounts.make_code('otto')}",
            f'  Python     dt.connect("{address}", token="{token}")',
            f"  shell      curl -s {address}/v1/budget -H 'Authorization: Bearer {token}'",
        ]
        return settings, lines
    finally:
        store.close()
