"""Reads the address of a table: postgresql://user@host/database?table=schema.table.

All other parameters are those of libpq. A password is refused: a catalog is read by many, and its text is hashed and stored. It
comes from PGPASSWORD, a service file or .pgpass. Messages show host and database only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dither.errors import CatalogError, Fix, Shell

PREFIXES = ("postgresql://", "postgres://")
_SECRETS = ("password", "sslpassword", "scram_client_key", "oauth_client_secret")
_FIX = Fix("write {it}.", it=Shell("postgresql://user@host/database?table=schema.table"))
_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
# Notices a vanished machine within two minutes instead of hours. Parameters of the address override these.
_PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


@dataclass(frozen=True)
class Address:
    """Where a table is. Two tables are in one database if their `options` are equal.

    >>> Address.of("postgresql://me@db.example:5433/hospital?table=public.visits")
    Address(name='postgresql://db.example:5433/hospital', table=('public', 'visits'))
    """

    name: str
    table: tuple[str, ...]
    options: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, source: str) -> Address:
        base, _, query = source.partition("?")
        given = [part for part in query.split("&") if part.startswith("table=")]
        rest = "&".join(part for part in query.split("&") if not part.startswith("table="))
        parts: dict[str, Any] | None
        try:
            parts = dict(conninfo_to_dict(f"{base}?{rest}" if rest else base))
        except psycopg.Error:
            parts = None
        if parts is None or "#" in source:  # do not show the address: it may hold a password
            raise CatalogError([(None, "The source is no address of a table in PostgreSQL.", _FIX)])
        if any(parts.get(secret) for secret in _SECRETS):
            fix = "leave it out of the address; put it into PGPASSWORD, a service file or .pgpass."
            raise CatalogError([(None, "The source's address holds a password.", fix)])
        if len(given) != 1 or not (table := _table(unquote(given[0].removeprefix("table=")))):
            raise CatalogError([(None, "The source's address names no table.", _FIX)])
        host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
        port = f":{parts['port']}" if parts.get("port") else ""
        database = parts.get("dbname") or parts.get("service") or parts.get("user") or ""
        kept = {key: value for key, value in parts.items() if key not in _SECRETS}
        options = {**_PATIENCE, "application_name": "dither", **kept, "client_encoding": "UTF8"}
        return cls(f"postgresql://{host}{port}/{database}", table, options)


def _table(text: str) -> tuple[str, ...]:
    """Returns the schema, if it is named, and the table. Names with dots stand in double quotes.

    >>> _table("public.visits"), _table('"my.schema"."a""b"'), _table("visits"), _table("a.b.c")
    (('public', 'visits'), ('my.schema', 'a"b'), ('visits',), ())
    """
    names, at = [], 0
    while found := _PART.match(text, at):
        names.append(found[1].replace('""', '"') if found[1] else found[2])
        at = found.end() + 1
        if found.end() == len(text):
            return tuple(names) if len(names) <= 2 else ()
        if text[found.end()] != ".":
            return ()
    return ()
