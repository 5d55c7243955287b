"""Shell completion: commands, options and their values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def complete(line: str, home: Path) -> list[str]:
    """Returns what a shell offers at the end of a line."""
    words = line.split(" ")
    env = {"_DITHER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "HOME": str(home)}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'dither'; from dither.cli import main; main()"]
    done = subprocess.run(program, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("dither a", ["ask", "audit"]),
        ("dither ask --eps", ["--epsilon"]),
        ("dither ask --format ", ["table", "csv", "json", "parquet", "markdown", "latex", "excel"]),
        ("dither ask -e 1 --max-", ["--max-rows", "--max-groups"]),
    ],
)
def test_a_shell_completes(line: str, offered: list[str], tmp_path: Path) -> None:
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
