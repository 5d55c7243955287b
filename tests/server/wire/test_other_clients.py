"""JDBC, ODBC and R, where they are installed: `apt-get install default-jdk-headless libpostgresql-jdbc-java odbc-postgresql
unixodbc r-cran-rpostgresql r-cran-dbplyr`. In the long run only. DITHER_JDBC names another jar of the JDBC driver."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from server.wire.talking import Wire

pytestmark = pytest.mark.long
CLIENTS = Path(__file__).parent / "clients"
JAR = Path(os.environ.get("DITHER_JDBC", "/usr/share/java/postgresql.jar"))


def run(*words: str, sent: str = "") -> str:
    found = subprocess.run(words, input=sent, capture_output=True, text=True, timeout=300, check=False)
    return found.stdout + found.stderr


def steps(text: str) -> dict[str, str]:
    """What each step printed; a step that failed fails the test."""
    assert "FAILED" not in text, text
    found = [line.removeprefix("ok ").split(": ", 1) for line in text.splitlines() if line.startswith("ok ")]
    return {name: rest.strip() for name, rest in found}


def test_jdbc_lists_tables_asks_prepares_and_fetches(wire: Wire) -> None:
    if shutil.which("java") is None or not JAR.exists():
        pytest.skip("needs Java and libpostgresql-jdbc-java")
    address = f"jdbc:postgresql://127.0.0.1:{wire.port}/survey?options=-c%20dither.epsilon=0.1"
    found = steps(run("java", "-cp", str(JAR), str(CLIENTS / "Tools.java"), address, "ada", wire.service.tokens["ada"]))
    assert len(found) == 14
    assert (found["tables"], found["columns"]) == ("[people]", "[person, ward, age, income]")
    assert found["question"] == found["fetched"] == "[north, south]"
    assert "charged" in found["warning"]
    assert (found["prepared"], found["refused"], found["remarks"]) == ("1", "42000 true", "[between 0 and 100]")
    assert found["described"] == "float8 text"


@pytest.mark.parametrize("driver", ["PostgreSQL Unicode", "PostgreSQL ANSI"])
@pytest.mark.parametrize("fetch", ["", "UseDeclareFetch=1;Fetch=1;"])
def test_odbc_lists_tables_and_asks(wire: Wire, driver: str, fetch: str) -> None:
    if shutil.which("isql") is None or driver not in run("odbcinst", "-q", "-d"):
        pytest.skip("needs unixodbc and odbc-postgresql")
    told = f"SERVER=127.0.0.1;PORT={wire.port};DATABASE=survey;UID=ada;PWD={wire.service.tokens['ada']};"
    told = f"DRIVER={{{driver}}};{told}ConnSettings=SET dither.epsilon %3D 0.1;{fetch}"
    asked = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
    found = run("isql", "-v", "-b", "-k", told, sent=f"help\nhelp people\n{asked}\nSELECT SUM(income) FROM people\n")
    assert "people" in found
    assert "income" in found
    assert "north" in found, found
    assert "south" in found
    assert "has no bounds" in found


def test_r_counts_with_dplyr(wire: Wire) -> None:
    if shutil.which("Rscript") is None or "TRUE" not in run("Rscript", "-e", "cat(requireNamespace('dbplyr'))"):
        pytest.skip("needs r-cran-rpostgresql and r-cran-dbplyr")
    found = steps(run("Rscript", str(CLIENTS / "tools.R"), str(wire.port), "ada", wire.service.tokens["ada"]))
    assert len(found) == 6
    assert "people" in found["tables"]
    assert "north" in found["question"]
    assert "north" in found["count"]
    assert (found["summarise"], found["after"], found["rows"]) == ("[1] 2 3", "[1] 1 2", '[1] "refused"')
