"""Spark Connect is the same code path: a server of its own gives the same integers. In `make test-spark` and long runs only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dither.engines.spark.session import connect, disconnect
from engines.crowd import MEASURES, bounded, crowd
from engines.places import SparkPlace, compare, missing_for_spark

SECONDS = 300  # for a server to start
pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkPlace]:
    """A place in a Connect server, which is stopped with everything it started."""
    if reason := missing_for_spark():
        pytest.skip(reason)
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    log = tmp_path_factory.mktemp("connect") / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("spark-submit")),
                "--master",
                "local[2]",
                *options,
                "--class",
                server,
                "spark-internal",
            ],
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        )
    try:
        _wait_for(port, process)
        place = SparkPlace(f"sc://127.0.0.1:{port}")
        yield place
        place.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the Connect server did not start")


def test_units_are_bounded_as_the_reference_engine_bounds_them(remote: SparkPlace) -> None:
    measures = tuple(each for group in MEASURES.values() for each in group)
    for keys in ("truths", "nothing"):
        ours, specified = compare(remote, bounded(keys, 2, measures), {"t": crowd()})
        assert ours == specified


def test_files_are_opened_through_the_server(remote: SparkPlace) -> None:
    from dither.engines.registry import open_sources
    from engines.test_spark_sources import catalog, seen

    opened = open_sources(catalog(remote.files(pa.table({"n": [0, 1], "t": ["a", "x" * 5000]})), {"n": "int", "t": "text"}))
    assert opened.unchanged()
    assert seen(opened, "t", "t") == ["a", None]
    opened.close()


def test_a_spark_of_this_process_can_be_opened_beside_it(remote: SparkPlace) -> None:
    """pyspark sets a variable with the first Connect session, after which it starts no Spark of this process, nor one of a
    process that this one starts."""
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
    session = connect("local[2]")
    assert session.sql("SELECT 1 AS one").toArrow().to_pylist() == [{"one": 1}]
    disconnect(session, "local[2]")
