"""Reaching a PostgreSQL ledger: its address, its connection, and its failures in our words.

The address is postgresql://user:password@host/database#schema. Whatever stands in it, a message or a name shows only host,
database and schema: the driver's own messages may repeat parts of the address, so none of them is passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dither.errors import LedgerError, NoLedgerError
from dither.ledger import postgres_sql as said
from dither.ledger.postgres_wire import Wire

SCHEMA = "dither"
# A vanished machine is noticed within two minutes instead of hours; what the address itself says goes first.
PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
MAYBE = "perhaps the price of the question, which may have been written"


@dataclass(frozen=True)
class Address:
    """Where a ledger lives. `options` holds the password, so it is never printed.

    >>> Address.of("postgresql://me:secret@db.example:5433/survey#year_2026")
    Address(name='postgresql://db.example:5433/survey#year_2026', schema='year_2026')
    """

    name: str
    schema: str
    options: dict[str, str | int | None] = field(repr=False)

    @classmethod
    def of(cls, url: str) -> Address:
        base, _, schema = url.partition("#")
        schema = schema or SCHEMA
        try:
            found: dict[str, str | int | None] = dict(conninfo_to_dict(base))
        except psycopg.Error:
            found = {}
        named = re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) and not schema.startswith("pg_")
        if not found or not named or not base.startswith(("postgresql://", "postgres://")):
            # Not even the part after '#' is repeated: an unescaped # in a password would put half of it there.
            fix = "write postgresql://user:password@host/database#schema; in a password # is %23, @ is %40 and / is %2F; "
            fix += "a schema has small letters, digits and _."
            raise LedgerError("The ledger's address is not one of a PostgreSQL database.", fix=fix)
        host = str(found.get("host") or found.get("hostaddr") or "localhost")
        port = f":{found['port']}" if found.get("port") else ""
        database = str(found.get("dbname") or found.get("user") or "")
        options = {**PATIENCE, "application_name": "dither", **found, "client_encoding": "UTF8"}
        return cls(f"postgresql://{host}{port}/{database}#{schema}", schema, options)

    def connect(self) -> Wire:
        try:
            link = psycopg.connect(**self.options, autocommit=True)  # type: ignore[arg-type]
            try:
                link.execute(said.SESSION)
            except BaseException:
                link.close()
                raise
        except psycopg.Error:
            fix = "see that the server runs, and that psql opens the same address with the same password."
            raise LedgerError(f"The ledger {self.name} cannot be reached.", fix=fix) from None
        return Wire(link)


def refused(error: psycopg.Error) -> bool:
    """Whether the server itself answered with an error, so that it is still there and has taken back the transaction."""
    return error.diag.severity_nonlocalized == "ERROR"


def is_lost(error: psycopg.Error) -> bool:
    """Whether the server has gone: then nobody here knows what it did last."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not refused(error)


def unknown(name: str) -> LedgerError:
    """The one failure that must not be retried: the server was told to commit and did not say whether it has."""
    what = f"The connection to the ledger {name} was lost while an entry was being written. Nothing was released."
    fix = "ask again when the server is back; `dither history` shows whether the charge was written."
    return LedgerError(what, fix=fix, charged=MAYBE)


def failure(name: str, error: psycopg.Error) -> LedgerError:
    """A failure after which nothing of this transaction is in the ledger, in fixed words: by SQLSTATE, never by message."""
    state = error.sqlstate or ""
    if is_lost(error):
        return LedgerError(
            f"The connection to the ledger {name} was lost before anything was written.",
            fix="ask again when the server is back.",
        )
    if state in ("42P01", "3F000"):
        return NoLedgerError(name)
    for start, what, fix in _REASONS:
        if state.startswith(start):
            return LedgerError(f"The ledger {name} {what}", fix=fix)
    return LedgerError(
        f"The ledger {name} could not be used (SQLSTATE {state or 'none'}).",
        fix="see the database server's log; entries already there are safe.",
    )


_REASONS = (
    ("55P03", "is locked by another transaction.", "ask again; if it stays so, look for a hanging session on the server."),
    ("57014", "is locked by another transaction.", "ask again; if it stays so, look for a hanging session on the server."),
    ("25006", "is read-only.", "use the primary server and a role whose transactions may write."),
    ("53100", "cannot grow: the server's disk is full.", "make room on the server's disk."),
    ("53", "is on a server without resources left.", "free memory, disk or connections on the server."),
    (
        "42501",
        "may not be used by this role.",
        "grant the role usage of the schema, and select, insert and update on its tables.",
    ),
    ("23505", "already holds an entry of this number.", "run dither verify: something else has written to it."),
)
