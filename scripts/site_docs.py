"""Reads the navigation of mkdocs.yml without mkdocs."""

from __future__ import annotations

import re
from pathlib import Path

CONFIGURATION = Path(__file__).parents[1] / "mkdocs.yml"


def navigation() -> set[str]:
    """The pages that the navigation names, as paths under docs/."""
    return set(re.findall(r"(\S+\.md)$", CONFIGURATION.read_text(encoding="utf-8").partition("\nnav:")[2], re.M))
