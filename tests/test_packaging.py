"""What an installer reads: the marker of type hints, the version, the ranges of dependencies, and what is built."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

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
