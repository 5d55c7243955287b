"""Connects to Spark: in this process (local[*]), on a cluster (spark://, yarn, k8s://) or through Spark Connect (sc://).

Classic and Connect sessions are one code path: only calls that both have. Every catalog gets a session of its own, so its
settings and views are its own too.

Spark's errors quote values of the data. pyspark writes them to stderr even if they are caught, and so does Java. Both are
silent here: `quiet` turns pyspark's loggers off, and a context that dither starts logs nothing. Logs of a cluster's executors,
its event log and the log of a Connect server belong to whoever runs them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dither.errors import CatalogError, extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT = "sc://"
LEAST_JAVA = 17
_ADDRESS = re.compile(r"sc://\S+|spark://\S+|k8s://\S+|yarn|local(-cluster)?(\[[^\]]+\])?")
# Where pyspark writes errors, with what they quote.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")

# Settings on which results depend. They are set in the session, where a catalog's questions are asked.
SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",  # an integer that overflows must fail, never wrap
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.aggregatePushdown": "false",  # the smallest and largest value that a file states leave out NaN
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.debug.maxToStringFields": "100000",
}
# Settings of a context that dither starts itself.
_STARTED: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.maxResultSize": "0",  # how large a result is depends on rows
}
_LOCAL: Mapping[str, str] = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MODE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_changing = threading.Lock()  # these
_starting = threading.Lock()
_started: list[Any] = []  # the context that dither started, once for each open catalog that uses it


def is_address(text: str) -> bool:
    """Whether a text names a Spark.

    >>> is_address("sc://host:15002"), is_address("local[*]"), is_address("http://host")
    (True, True, False)
    """
    return _ADDRESS.fullmatch(text) is not None


def connect(address: str) -> SparkSession:
    """Returns a new session with our settings. Raises CatalogError."""
    if "token=" in address.lower():
        raise _refused("The address of Spark has a token in it.", "put it into SPARK_CONNECT_AUTHENTICATE_TOKEN instead.")
    if not is_address(address):
        raise _refused(
            "The address of Spark cannot be read.", 'write spark = "sc://host:15002", "spark://host:7077" or "local[*]".'
        )
    if importlib.util.find_spec("pyspark") is None:
        raise _refused("Tables of Spark need the package pyspark.", extra("spark"))
    if not address.startswith(CONNECT):
        _check_java()
    with quiet(), _only_refusals():
        session = _remote(address) if address.startswith(CONNECT) else _classic(address)
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        return session
    raise _refused(f"Spark cannot be reached at {address}.", "look whether it runs, and at its address.")


@contextmanager
def _only_refusals() -> Iterator[None]:
    """Lets our own refusals pass, and drops other errors: their text may be anything."""
    try:
        yield
    except CatalogError:
        raise
    except Exception:
        pass


def _remote(address: str) -> SparkSession:
    from pyspark.sql import SparkSession

    with _no_mode():
        return SparkSession.builder.remote(address).create()


def _classic(address: str) -> SparkSession:
    """Returns a session of this process's context, which is started if there is none."""
    from pyspark.sql import SparkSession

    with _starting, _no_mode():
        name = f"dither {uuid.uuid4().hex}"  # tells the context that is started here from one that runs already
        builder = SparkSession.builder.master(address).appName(name)
        if address.startswith("local["):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        for setting, value in {**_STARTED, **(_LOCAL if address.startswith("local[") else {})}.items():
            builder = builder.config(setting, value)
        running = builder.getOrCreate()
        ours = running.sparkContext.appName == name
        if running.sparkContext.master != address:
            raise _refused(
                "This process runs another Spark already.", "open the catalog in another process, or stop the other session."
            )
        if ours:
            running.sparkContext.setLogLevel("OFF")
        if ours or _started:
            _started.append(running.sparkContext)
        return running.newSession()


@contextmanager
def _no_mode() -> Iterator[None]:
    """Hides what makes pyspark use Connect for all of a process, and for those that it starts: variables that it sets itself
    with the first Connect session. A catalog's address says which Spark it means."""
    with _changing:
        before = {name: os.environ.pop(name) for name in _MODE if name in os.environ}
        try:
            yield
        finally:
            for name in _MODE:
                os.environ.pop(name, None)
            os.environ.update(before)


def disconnect(session: SparkSession, address: str) -> None:
    """Closes a session. A context that dither started stops with its last session."""
    with quiet(), suppress(Exception):
        if address.startswith(CONNECT):
            session.stop()
            return
        with _starting:
            context = _started.pop() if _started else None
            if context is not None and not _started:
                context.stop()


@contextmanager
def quiet() -> Iterator[None]:
    """Silences pyspark's loggers, for good: another thread may be asking. Hides its warnings about versions of others."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _check_java() -> None:
    """Refuses to start Spark without a Java that it runs on."""
    found = java_version()
    if found is None or found < LEAST_JAVA:
        what = "Spark needs Java, and none is found." if found is None else f"Spark needs Java {LEAST_JAVA}; this is {found}."
        fix = "install Java 17 or newer (Debian: openjdk-17-jre-headless), or set JAVA_HOME; Spark Connect needs none here."
        raise _refused(what, fix)


def java_version() -> int | None:
    """Returns the version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not program:
        return None
    try:
        shown = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', shown)
    return int(found.group(1)) if found else None


def _refused(what: str, fix: Any) -> CatalogError:
    return CatalogError([(None, what, fix)])
