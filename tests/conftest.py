"""Settings of all tests. No test is timed, so no property test has a deadline either.

`make test` tries the same examples every time, so that it passes or fails for a reason in the change. `make test-long` sets
DITHER_SEARCH, searches for new ones, and runs the tests marked long, which are skipped otherwise. `make quick` leaves out the
tests marked slow. These get the mark here: tests in the folders SLOW, which attack, audit and kill the whole path, and tests
that need a PostgreSQL server. Elsewhere the decorator marks a test whose cases together take more than about a second.
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from engines.places import Place, SparkPlace
    from ledger.postgres_server import Server

for _number in (signal.SIGINT, signal.SIGHUP):  # a run in the background ignores them, and so would what tests start
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)

SLOW = ("attacks", "audit", "faults")

_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
os.environ.setdefault("MPLCONFIGDIR", os.path.join(_home, "matplotlib"))  # listing all fonts takes seconds
_CACHE = tempfile.TemporaryDirectory(prefix="dither-tests-")  # what was read is not remembered beyond a run
os.environ["XDG_CACHE_HOME"] = _CACHE.name

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("searching" if os.environ.get("DITHER_SEARCH") else "repeatable")


@pytest.fixture
def recorded() -> Iterator[None]:
    """Makes noise, and the choice of the rows that count, the same in every run: a test that counts cannot fail by chance.

    Tests of the noise itself draw it anew, and share an allowance (distribution/allowance.py).
    """
    from dither.exact import replay

    with replay.stream(b"tests"):
        yield


_names = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL server, for the ledger and for the engine; one per test process."""
    from ledger.postgres_server import Server

    server = Server()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """An address where no ledger is yet."""
    schema = f"test_{next(_names)}"
    yield f"{postgres.uri}#{schema}"
    postgres.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkPlace]:
    """A real Spark in this process; one per test process. Skips where it cannot run."""
    from engines import places

    if reason := places.missing_for_spark():
        pytest.skip(reason)
    made = places.SparkPlace()
    yield made
    made.close()


@pytest.fixture(scope="session", params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Every engine: a test that takes this puts tables into it, and runs on all of them."""
    from engines import places

    if request.param == "spark":
        yield request.getfixturevalue("spark")
        return
    embedded = {"duckdb": places.DuckDBPlace, "sqlite": places.SQLitePlace}.get(request.param)
    made: Place = embedded() if embedded else places.PostgresPlace(request.getfixturevalue("postgres"))
    yield made
    made.close()


class _Failures:
    """Prints a failure when it happens, not after the last test: a run may be stopped before that."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message if crash else report.longreprtext
            self._terminal.write_line(f"\n{report.nodeid} ({report.when}, {report.duration:.1f} s): {reason[:1000]}")


@pytest.hookimpl(trylast=True)  # after the reporter is there
def pytest_configure(config: pytest.Config) -> None:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(terminal))


def _is_generated_in_spark(item: pytest.Item) -> bool:
    """Whether a test draws hundreds of examples. Each takes Spark a second, so test_spark.py draws fewer."""
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    return hasattr(getattr(item, "obj", None), "hypothesis") and "spark" in [each for each in given if isinstance(each, str)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get("DITHER_SEARCH") and "long" not in config.option.markexpr.replace("not long", ""):
        gone = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=gone)
    folders = [Path(__file__).parent / name for name in SLOW]
    generated = {item for item in items if _is_generated_in_spark(item)}
    items[:] = [item for item in items if item not in generated]
    config.hook.pytest_deselected(items=list(generated))
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {}).values()
        names = [*getattr(item, "fixturenames", ()), *(value for value in given if isinstance(value, str))]
        needs_server = "postgres" in names
        if "spark" in names:
            item.add_marker("spark")
            item.add_marker("slow")
        if needs_server or any(folder in item.path.parents for folder in folders):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Takes what was imported and collected out of garbage collection: it stays for the whole run, and walking it is dear."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Gives it back, so that libraries find nothing left over when Python ends."""
    gc.unfreeze()
