"""Runs a page of the documentation: its files, its shell commands, its Python. Noise is allowed for, nothing else.

Text that a command or a line of Python prints is compared with numbers, hashes, bars and spaces made alike, if the page shows
noisy numbers. Of these, "994 ± 10" must be near what is printed now: the margin within a factor of two, the number within eight
margins.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NOT_RUN = "<!-- not run:"
NOISY = re.compile(r"(-?\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")


class Step(NamedTuple):
    command: str
    shown: str
    code: int


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of the fenced blocks, in order, without those that say why they are not run."""
    text = re.sub(rf"^{NOT_RUN}.*?-->\n+```\w+\n.*?^```$", "", text, flags=re.M | re.S)
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


def same(want: str, got: str) -> bool:
    """Whether two texts say the same, apart from noise."""
    pairs = zip(NOISY.findall(want), NOISY.findall(got), strict=False)
    return alike(want) == alike(got) and all(near(*each) for each in pairs)


def near(want: tuple[str, str], got: tuple[str, str]) -> bool:
    """Whether two noisy numbers with their margins can be answers to one question."""
    (first, wide), (second, narrow) = [(float(number), float(margin)) for number, margin in (want, got)]
    wide, narrow = max(wide, narrow), min(wide, narrow)
    return abs(first - second) <= 8 * wide and wide <= 2 * narrow + 1


class Checker(doctest.OutputChecker):
    """Compares what Python prints, and allows for noise where the page shows a margin."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or (" ± " in want and same(want, got))


def python(page: str) -> doctest.TestResults:
    """Runs the lines of Python of a page in the current folder."""
    test = doctest.DocTestParser().get_doctest(text_of(page), {"__name__": "__main__"}, page, str(ROOT / page), 0)
    return doctest.DocTestRunner(Checker(), verbose=False).run(test)


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
    """Runs files and commands in a new folder, in order; returns the differences from the page."""
    place = folder / "tour"
    place.mkdir()
    return follow(text, place, shell(folder), same)


def follow(text: str, place: Path, environment: dict[str, str], fits: Callable[[str, str], bool]) -> list[str]:
    """Runs files and commands in a folder; `fits` compares what a page shows with what was printed."""
    wrong = []
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
                timeout=300,
            )
            if done.returncode != step.code or not fits(step.shown, done.stdout):
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
