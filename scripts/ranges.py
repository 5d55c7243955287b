"""Tries both ends of the ranges of dependencies in pyproject.toml: each in an environment of its own.

    python scripts/ranges.py lowest|newest [--folder FOLDER]

Installs the package with the lowest versions that its ranges allow (or the newest), answers a question, runs some pages
of the documentation and the demo. Exit code 3: what is needed cannot be installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = (
    "index",
    "howto/epsilon",
    "howto/bounds",
    "howto/join",
    "howto/many-questions",
    "explanation/composition",
    "explanation/ledger",
)
CHECK = """
import dither as dt
t = dt.Table({"id": list(range(900)), "r": ["a", "b", "c"] * 300}, unit="id", key="id", columns={"r": dt.values("a", "b", "c")})
s = dt.open(dt.Catalog(tables={"t": t}, budget=dt.Budget(epsilon=9)), ledger=":memory:")
a = s.ask("SELECT r, COUNT(*) AS n FROM t GROUP BY r", epsilon=4)
assert all(abs(n - 300) < 30 for _, n in a.rows), a.rows
from journey.pages import python
assert not [page for page in PAGES if python(f"docs/{page}.md").failed]
"""


def lowest(requirement: str) -> str:
    """The lowest version that a requirement allows, at its newest patch."""
    name, least = re.match(r"([\w\[\].-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{name}=={least}.*"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("end", choices=["lowest", "newest"])
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = (options.folder or Path(made)) / options.end
        venv.create(place, with_pip=True)
        python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
        wanted = [lowest(each) for each in PROJECT["dependencies"]] if options.end == "lowest" else ["--upgrade"]
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *wanted,
            str(ROOT),
            "pytest",
            "hypothesis",
        ]
        if subprocess.run(install, check=False).returncode:
            return 3
        code = f"import sys; sys.path.append({str(ROOT / 'tests')!r}); PAGES = {PAGES!r}\n{CHECK}"
        subprocess.run([python, "-c", code], cwd=place, check=True)
        subprocess.run([python, "-m", "dither.cli", "demo"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        listed = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True)
        names = {re.match(r"[\w-]+", each)[0].lower() for each in PROJECT["dependencies"]}  # type: ignore[index]
        print(options.end, *(line for line in listed.stdout.splitlines() if line.partition("==")[0].lower() in names))
        return 0


if __name__ == "__main__":
    sys.exit(main())
