"""Shell completion: commands, options and their values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CATALOG = """
[budget]
epsilon = 1

[tables.people]
source = "people.parquet"
unit = "person_id"
max_rows = 1

[tables.people.columns]
income = {}
age = { between = [0, 120] }
region = { values = ["north"] }

[tables.regions]
source = "regions.parquet"
public = true

[tables.regions.columns]
name = {}
"""


def complete(line: str, home: Path) -> list[str]:
    """Returns what a shell offers at the end of a line, in the folder `home`."""
    words = line.split(" ")
    env = {"_DITHER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "HOME": str(home)}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'dither'; from dither.cli import main; main()"]
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=False, timeout=60, cwd=home)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dither a", ["ask", "approvals", "audit"]),
        ("dither ask --eps", ["--epsilon"]),
        ("dither ask --format ", ["table", "csv", "json", "parquet", "markdown", "latex", "excel"]),
        ("dither ask -e 1 --max-", ["--max-rows", "--max-groups"]),
    ],
)
def test_a_shell_completes(line: str, offered: list[str], tmp_path: Path) -> None:
    assert complete(line, tmp_path) == offered


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dither suggest peo", ["people.income", "people.age", "people.region"]),
        ("dither suggest people.a", ["people.age"]),
        ("dither suggest people.income --by r", ["region"]),
        ("dither suggest --catalog other.toml peo", []),
        ("dither suggest --catalog broken.toml peo", []),
    ],
)
def test_a_shell_completes_columns_of_the_catalog(line: str, offered: list[str], tmp_path: Path) -> None:
    """The data need not be there: only the catalog file is read. What cannot be read offers nothing."""
    (tmp_path / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("[tables", encoding="utf-8")
    assert complete(line, tmp_path) == offered


@pytest.mark.slow
def test_completion_is_installed(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'dither'; from dither.cli import main; main()"]
    done = subprocess.run(
        [*program, "--install-completion", "bash"],
        env={"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert any("dither" in each.read_text(encoding="utf-8") for each in tmp_path.rglob(".bashrc"))
