"""A newcomer's first hour: the demo, a wrong input, a picture. What the pages print: test_pages.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dither as dt
from dither import plots
from journey.test_pages import GENERATED  # pages that the strict build of the site makes and checks

ROOT = Path(__file__).parents[2]


def test_the_readme_opens_with_the_sentence_and_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# dither\n\ndither answers questions about people's data")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert f"make {command}" in text
        assert re.search(rf"^{command}:", makefile, re.M)


def test_every_file_the_docs_point_to_is_there() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            place = page.parent / target
            assert GENERATED.search(place.as_posix()) or place.exists(), f"{page.name} points to {target}"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dither.cli", *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_the_demo_tells_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DITHER_LEDGER", str(tmp_path / "real.ledger"))  # which a story must leave alone
    done = run("demo", "--folder", str(tmp_path / "hospital"))
    assert (done.returncode, done.stderr) == (0, "")
    story = (
        "$ dither check",
        "no problems found",
        "$ dither quote",
        "$ dither ask",
        "±",
        "given again: charged nothing",
        "(exit code 1)",  # no bounds
        "$ dither budget",
        "The budget does not allow this question",
        "(exit code 3)",
        "$ dither history",
        "nothing wrong",
        "edited.ledger: ",
        "(exit code 1)",
        "an older copy was put in this ledger's place",
        "(exit code 1)",
        "holds at every output",
    )
    place = 0
    for part in story:
        place = done.stdout.find(part, place)
        assert place >= 0, f"{part!r} is missing, or out of order"
        place += len(part)
    assert (tmp_path / "hospital" / "catalog.ledger").exists()
    assert not (tmp_path / "real.ledger").exists()
    assert run("demo", "--folder", str(tmp_path)).returncode == 2  # never over something that is there


def test_an_unknown_command_is_refused_without_a_traceback() -> None:
    done = run("dance")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_one_picture_shows_density_distribution_inverse_and_draws(tmp_path: Path) -> None:
    noise = dt.Laplace(epsilon=1, sensitivity=10, grid="1/4")
    picture = plots.noise_picture(noise, (10, 20), tmp_path / "laplace.png", draws=200)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_public_name_is_there_and_documented() -> None:
    for name in dt.__all__:
        assert getattr(dt, name).__doc__, name


def test_every_error_says_what_how_to_fix_it_and_what_was_charged() -> None:
    with pytest.raises(dt.DitherError) as caught:
        dt.Laplace(epsilon=float("nan"), sensitivity=1, grid=1)
    assert "epsilon" in caught.value.what
    assert caught.value.fix
    assert "Charged: nothing." in str(caught.value)
