"""The pages for developers stay true: the printed path of a question, and every file and name they mention.

UPDATE_GOLDEN=1 writes what scripts/path.py prints now into docs/architecture.md; read the difference.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from path import path

ROOT = Path(__file__).parents[1]
HOMES = (ROOT, ROOT / "src" / "dither")
PAGE = ROOT / "docs" / "architecture.md"
PAGES = ("docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md")
BLOCK = re.compile(r"(<!-- printed: (\w+) -->\n)(?:```\n(.*?)\n```\n)?", re.S)


def printed(page: str, values: dict[str, str]) -> str:
    """Returns the page with these values in its blocks."""
    return BLOCK.sub(lambda block: f"{block[1]}```\n{values[block[2]]}\n```\n", page)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_path_of_a_question_is_as_printed() -> None:
    values, page = path(), PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(printed(page, values), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
    assert {name: value for _, name, value in BLOCK.findall(page)} == values
    assert "kind          reserved/1" in values["reserved"].splitlines()  # the last entry when the engine was called


def test_that_check_can_fail() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = {name: value for _, name, value in BLOCK.findall(page)}
    assert printed(page, shown) == page
    assert printed(page, shown | {"noisy": "another"}) != page


def missing(text: str) -> Iterator[str]:
    """Yields the files, and the names "`name` in `file.py`", that a page mentions and the project does not have."""
    for file in re.findall(r"`([\w./-]+(?:\.(?:py|md|txt|toml)|/))`", text):
        if not any((home / file).exists() for home in HOMES):
            yield file
    for name, file in re.findall(r"`([\w.]+)` in\s`([\w/]+\.py)`", text):
        found = next((home / file for home in HOMES if (home / file).exists()), None)
        if found is None or not set(name.split(".")) <= defined(found):
            yield f"{name} in {file}"


def defined(path: Path) -> set[str]:
    """Returns the functions and classes of a file, methods included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_name_on_the_page_is_there(page: str) -> None:
    assert len(re.findall(r"`[\w/]+\.py`", text_of(page))) > 10
    assert list(missing(text_of(page))) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_on_the_page_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text_of(page))
    assert links
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_that_a_missing_file_and_a_missing_name_are_seen() -> None:
    wrong = "`Curator.ask` in `curator.py`, `Curator.beg` in `curator.py`, `query/nothing.py`, `nowhere/`"
    assert list(missing(wrong)) == ["query/nothing.py", "nowhere/", "Curator.beg in curator.py"]
