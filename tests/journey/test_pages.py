"""Executes the README and the pages under docs/ as printed: files, shell commands with their output, Python.

Noise differs from run to run, so what commands print is compared with numbers, hashes, bars and spaces made alike.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TOUR = "docs/command-line.md"
PAGES = {  # with their lines of Python, at least
    "README.md": 14,
    TOUR: 7,
    "docs/mechanisms.md": 28,
    "docs/textbook.md": 35,
    "docs/queries.md": 24,
    "docs/workloads.md": 14,
    "docs/trade-offs.md": 19,
    "docs/traced-programs.md": 22,
    "docs/running-sums.md": 30,
    "docs/audit-your-code.md": 5,
    "docs/places.md": 12,
    "docs/local.md": 10,
    "docs/graphs.md": 20,
}


class Step(NamedTuple):
    command: str
    shown: str
    code: int


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of the fenced blocks, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def steps(console: str) -> list[Step]:
    """Returns the commands of a block, each with its printed output."""
    found = []
    for part in re.split(r"^\$ ", console, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        code = re.search(r"^\[exit code (\d+)\]\n", shown, re.M)
        found.append(Step(command, shown.replace(code[0], "") if code else shown, int(code[1]) if code else 0))
    return found


def alike(text: str) -> str:
    """With all numbers the same, hashes too, and nothing left of widths and line breaks."""
    text = re.sub(r"\d+:[0-9a-f]{64}", "HEAD", text)
    text = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", text)
    return " ".join(re.sub(r"[█░]+|-{2,}", "", text).split())


def shell(folder: Path) -> dict[str, str]:
    """An environment in which `dither` is the one that is tested."""
    bin = folder / "bin"
    bin.mkdir()
    script = bin / "dither"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dither.cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    return clean | {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": source, "COLUMNS": "100"}


def walk(text: str, folder: Path) -> list[str]:
    """Runs files and commands in order; returns the differences from the page."""
    place, wrong = folder / "tour", []
    place.mkdir()
    environment = shell(folder)
    for language, content in blocks(text):
        if language == "toml":
            (place / content.split("\n")[0].removeprefix("# ")).write_text(content, encoding="utf-8")
        for step in steps(content) if language == "console" else ():
            done = subprocess.run(
                ["sh", "-c", step.command],
                cwd=place,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            if done.returncode != step.code or alike(done.stdout) != alike(step.shown):
                wrong.append(f"$ {step.command}\nexit code {done.returncode}, printed:\n{done.stdout}")
    return wrong


def left(folder: Path, ignored: str) -> list[str]:
    """Returns the files of a folder that git would add."""
    (folder / ".gitignore").write_text(ignored, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for words in (("init", "-q"), ("ls-files", "--others", "--exclude-standard")):
        done = subprocess.run(["git", *words], cwd=folder, env=clean, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n".join(walk(text_of(page), tmp_path)) == ""
    monkeypatch.chdir(tmp_path / "tour")  # the Python of a page goes on with the shell's ledger
    done = doctest.testfile(str(ROOT / page), module_relative=False)
    assert done.attempted >= PAGES[page]
    assert done.failed == 0
    assert left(tmp_path / "tour", text_of(".gitignore")) == [".gitignore"]
    if page == TOUR:
        assert "catalog.ledger.key" in left(tmp_path / "tour", "")  # the twin: nothing else hides it


def test_that_check_can_fail(tmp_path: Path) -> None:
    wrong = "```console\n$ dither explain --epsilon 0\n$ dither --version\ndither version\n```\n"
    assert len(walk(wrong, tmp_path)) == 2


def test_the_tour_shows_every_part_of_the_story() -> None:
    told = [step for language, content in blocks(text_of(TOUR)) if language == "console" for step in steps(content)]
    for word in ("init", "check", "quote", "ask", "budget", "verify", "explain"):
        assert any(f"dither {word}" in step.command for step in told), word
    assert {step.code for step in told} == {0, 3}


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as Markdown viewers make them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, "docs/catalog.md"])
def test_every_section_a_page_points_to_is_there(page: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text_of(page)):
        place = (ROOT / page).parent / target if target else ROOT / page
        assert anchor in headings(place.read_text(encoding="utf-8")), f"{target}#{anchor}"
