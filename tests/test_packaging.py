"""What an installer reads: the marker of type hints and the versions of what dither needs."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_type_checkers_may_use_the_annotations() -> None:
    assert files("dither").joinpath("py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
