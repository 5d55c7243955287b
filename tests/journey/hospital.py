"""The demo's hospital in a folder of its own, and the command line run in this process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from dither import demo
from dither.cli import app

COUNT = "SELECT COUNT(*) AS n FROM patients"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"


def run(*words: str, stdin: str | None = None) -> Result:
    """One command line; a traceback of ours is never an acceptable end."""
    done = CliRunner().invoke(
        app, list(words), input=stdin, prog_name="dither", env={"DITHER_LEDGER": "", "DITHER_ANALYST": ""}
    )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def built(folder: Path, budget: str = "epsilon = 1.0") -> Path:
    """Files, catalog and ledger, as a curator leaves them before the first question."""
    demo.hospital(folder)
    catalog = folder / "catalog.toml"
    text = catalog.read_text(encoding="utf-8")
    lines = [budget if line.startswith("epsilon = ") else line for line in text.splitlines()]
    catalog.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run("init", "--catalog", str(catalog))
    assert done.exit_code == 0, done.stderr
    return folder
