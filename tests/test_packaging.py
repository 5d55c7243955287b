"""What an installer reads: the marker of type hints, the version, the ranges of dependencies, and what is built."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from dither import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_type_checkers_may_use_the_annotations() -> None:
    assert files("dither").joinpath("py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_sqlglot_is_tested_at_the_newest_version_that_may_be_installed() -> None:
    """Minor versions of sqlglot may read the same text as another question (docs/decisions/0011-sqlglot-range.md)."""
    allowed = next(Requirement(text) for text in PROJECT["dependencies"] if text.startswith("sqlglot")).specifier
    tested = Version(version("sqlglot"))
    assert f"sqlglot=={tested}" in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert allowed.contains(tested)
    assert not allowed.contains(f"{tested.major}.{tested.minor + 1}.0")
    assert not allowed.contains("30.17.0")  # which reads a - b % c as (a - b) % c


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert version("dither") == __version__
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert cited is None or cited[1].strip('"') == __version__


# --- what is built ----------------------------------------------------------------------------------------------


def build(source: Path, folder: Path, kind: str) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(words, cwd=source, check=True, capture_output=True, timeout=300)
    (made,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


def sources() -> set[str]:
    found = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / "src").as_posix() for path in found}


def missing(wheel: Path, wanted: set[str]) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return wanted - set(opened.namelist())


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    assert missing(wheel, sources()) == set()
    assert missing(wheel, {"dither/not_there.py"}) == {"dither/not_there.py"}  # the check can fail


@pytest.mark.slow
def test_wheel_and_sdist_are_reproducible(wheel: Path, tmp_path: Path) -> None:
    """Built again they have the same bytes, and the sdist builds the same wheel."""
    archives = [build(ROOT, tmp_path / name, "sdist") for name in ("first", "second")]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archives[0].name.removesuffix(".tar.gz")
    assert build(unpacked, tmp_path / "wheel", "wheel").read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_the_wheel_answers_without_a_checkout(wheel: Path, tmp_path: Path) -> None:
    """Installed into an empty folder. Its dependencies come from this environment, whose own dither is not on the path."""
    place = tmp_path / "installed"
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place), str(wheel)]
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    path = os.pathsep.join([str(place), sysconfig.get_path("purelib")])
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DITHER"))}
    program = "import sys, dither; sys.exit(0 if dither.__file__.startswith(sys.argv[1]) else dither.__file__)"
    for code in (["-c", program, str(place)], ["-m", "dither.cli", "demo"]):
        done = subprocess.run(
            [sys.executable, "-S", *code],
            cwd=tmp_path,
            env=clean | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("end", ["lowest", "newest"])
def test_the_package_works_at_both_ends_of_its_ranges(end: str, tmp_path: Path) -> None:
    """Installed by name into an environment of its own, where an index can be reached."""
    words = [sys.executable, str(ROOT / "scripts" / "ranges.py"), end, "--folder", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode == 3:
        pytest.skip("the dependencies cannot be installed here")
    assert done.returncode == 0, done.stdout + done.stderr
