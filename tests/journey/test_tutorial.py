"""Executes the tutorial as printed, page after page in one folder: files, shell commands with their output, Python.

Each page goes on with the catalog and the ledger of those before. Noise decides what answers say about what was left out, so
such sentences are made alike, as numbers are. `make test` runs the first pages, `make test-long` all of them.
"""

from __future__ import annotations

import doctest
import itertools
import re
from pathlib import Path

import pytest

from journey import pages
from journey.test_pages import headings

ROOT = pages.ROOT
FOLDER = ROOT / "docs" / "tutorial"
PAGES = sorted(FOLDER.glob("[0-9]-*.md"))
FIRST = 3  # pages in make test
_LEFT_OUT = re.compile(r"^(noise hides|no sign|about \d|at least \d|nearly all|\d+.* % to).*$", re.M)


def alike(text: str) -> str:
    return pages.alike(_LEFT_OUT.sub("LEFT OUT", text))


def walk(text: str, place: Path, environment: dict[str, str]) -> list[str]:
    """Runs the files and commands of a page; returns the differences from what it prints."""
    return pages.follow(text, place, environment, lambda shown, got: alike(shown) == alike(got))


def follow(chosen: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Follows pages in order; returns how many lines of Python were run."""
    place, environment, attempted = tmp_path / "tour", pages.shell(tmp_path), 0
    place.mkdir()
    monkeypatch.chdir(place)
    for page in chosen:
        assert "\n".join(walk(page.read_text(encoding="utf-8"), place, environment)) == "", page.name
        done = doctest.testfile(str(page), module_relative=False)
        assert done.failed == 0, page.name
        attempted += done.attempted
    return attempted


@pytest.mark.slow
def test_the_first_pages_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(PAGES[:FIRST], tmp_path, monkeypatch) >= 5


@pytest.mark.slow
@pytest.mark.long
def test_the_whole_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    assert follow(PAGES, tmp_path, monkeypatch) >= 35


def test_that_check_can_fail(tmp_path: Path) -> None:
    wrong = "```console\n$ echo 12 people\n13 persons\n$ false\n$ echo 12\n13\n```\n"
    assert len(walk(wrong, tmp_path, pages.shell(tmp_path))) == 2


def test_every_page_is_listed_links_to_the_next_and_begins_with_the_wrong_way() -> None:
    listed = re.findall(r"\]\((\d-[\w-]+\.md)\)", (FOLDER / "index.md").read_text(encoding="utf-8"))
    assert listed == [page.name for page in PAGES]
    for page, after in itertools.pairwise(PAGES):
        text = page.read_text(encoding="utf-8")
        assert text.rstrip().splitlines()[-1].endswith(f"({after.name})")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.index("## The wrong way") < text.index("## The right way"), page.name


@pytest.mark.parametrize("page", [*PAGES, FOLDER / "index.md"], ids=lambda page: page.stem)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        place = page.parent / target
        assert place.exists(), target
        assert not anchor or anchor in headings(place.read_text(encoding="utf-8")), f"{target}#{anchor}"
