"""Runs the blocks of other libraries on docs/howto/migrate.md, each in an environment of its own.

    python benchmarks/migrate.py [--environments FOLDER] [names ...]

An environment is made once, in the folder, with the version that the page names. What cannot be installed or
run here is reported as not run. Prints what each block printed, its time, and the version that was installed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "migrate.md"
BLOCK = re.compile(r"runs it with (\S+?)((?:==|<)\S+)((?: and \S+)*) -->\n```python\n(.*?)^```$", re.M | re.S)


def blocks() -> list[tuple[str, str, str]]:
    """(package, all requirements, code) of every block of another library."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [(name, f"{name}{version}{beside}".replace(" and Java", ""), code) for name, version, beside, code in found]


def environment(package: str, needed: str, folder: Path) -> Path:
    """The Python of the library's environment, which is made if it is not there."""
    place = folder / re.sub(r"\[.*", "", package)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needed.split(" and ")]
        subprocess.run(install, check=True)
    return python


def installed(python: Path, package: str) -> str:
    """The version of the library in its environment."""
    program = f"from importlib.metadata import version; print(version({package.partition('[')[0]!r}))"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def write_people(folder: Path) -> None:
    rows = (f"{i},{20 + i % 60},{('north', 'south', 'east')[i % 3]}\n" for i in range(3000))
    (folder / "people.csv").write_text("id,age,region\n" + "".join(rows), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--environments", type=Path, default=Path("build/peers"))
    parser.add_argument("--seconds", type=int, default=300, help="the most that a block may take")
    options = parser.parse_args()
    failed = 0
    for package, needed, code in blocks():
        if options.names and not any(name in package for name in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_people(Path(folder))
            began = time.monotonic()
            try:
                python = environment(package, needed, options.environments.resolve())
                version = installed(python, package)
                here = os.environ | {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
                done = subprocess.run(
                    [python, "-c", code],
                    cwd=folder,
                    env=here,
                    capture_output=True,
                    text=True,
                    timeout=options.seconds,
                    check=True,
                )
            except (subprocess.SubprocessError, OSError) as error:
                failed += 1
                print(f"== {needed}: not run: {error}\n{(getattr(error, 'stderr', '') or '')[-800:]}")
                continue
            print(f"== {package} {version}: {time.monotonic() - began:.1f} s\n{done.stdout}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
