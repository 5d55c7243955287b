"""Executes the README and every page under docs/ as printed: files, shell commands with their output, Python.

The pages of CORE run in `make test`, all others in `make test-long` (journey/pages.py says how noise is allowed for).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from journey.pages import ROOT, blocks, left, python, same, steps, text_of, walk

TOUR = "docs/command-line.md"
CORE = {  # with their lines of Python, at least
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
    "docs/index.md": 5,
    "docs/start/your-csv.md": 0,
}
# Checked elsewhere: tests/catalog/test_reference_page.py, test_architecture.py, test_tutorial.py.
ELSEWHERE = ("docs/catalog.md", "docs/architecture.md", "docs/tutorial/")
GENERATED = re.compile(r"/(reference/(api/.*|functions|errors|commands)|explanation/claims/.*|examples/.*|project/.*)\.md$")


def pages() -> list[str]:
    """The README and all pages, as paths of the repository."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return ["README.md", *found]


def runs(page: str) -> bool:
    """Whether a page has anything to run."""
    return any(
        language == "console" or (language == "python" and ">>> " in content) for language, content in blocks(text_of(page))
    )


OTHERS = [page for page in pages() if page not in CORE and not page.startswith(ELSEWHERE) and runs(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [*CORE, *(pytest.param(page, marks=pytest.mark.long) for page in OTHERS)])
def test_the_page_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\n".join(walk(text_of(page), tmp_path)) == ""
    monkeypatch.chdir(tmp_path / "tour")  # the Python of a page goes on with the shell's ledger
    done = python(page)
    assert done.attempted >= CORE.get(page, 0)
    assert done.failed == 0
    unkept = left(tmp_path / "tour", text_of(".gitignore"))
    assert not [name for name in unkept if ".ledger" in name or name.endswith(".key")]
    if page in CORE:
        assert unkept == [".gitignore"]
    if page == TOUR:
        assert "catalog.ledger.key" in left(tmp_path / "tour", "")  # the twin: nothing else hides it


def test_that_check_can_fail(tmp_path: Path) -> None:
    wrong = "```console\n$ dither explain --epsilon 0\n$ dither --version\ndither version\n```\n"
    assert len(walk(wrong, tmp_path)) == 2


def test_noise_is_allowed_for_and_nothing_else() -> None:
    assert same("n\n994 ± 10", "n\n1003 ± 10")
    assert not same("n\n994 ± 10", "n\n9941 ± 10")
    assert not same("n\n994 ± 10", "n\n994 ± 100")
    assert not same("n\n994 ± 10", "m\n994 ± 10")


def unexecuted(text: str) -> list[str]:
    """The blocks of Python and shells that nothing runs, and that do not say why."""
    ran = {"python": ">>> ", "console": "$ "}
    return [content for language, content in blocks(text) if language in ran and not content.startswith(ran[language])]


@pytest.mark.parametrize("page", pages())
def test_every_block_of_code_is_executed_or_says_why_not(page: str) -> None:
    assert unexecuted(text_of(page)) == []


@pytest.mark.parametrize("page", pages())
def test_no_page_installs_or_serves_when_it_is_run(page: str) -> None:
    commands = [step.command for language, content in blocks(text_of(page)) if language == "console" for step in steps(content)]
    assert [command for command in commands if command.startswith(("pip ", "dither serve", "make ", "apt-get"))] == []


def test_that_an_unexecuted_block_is_seen() -> None:
    assert unexecuted("```python\nprint(1)\n```\n") == ["print(1)\n"]
    assert unexecuted("<!-- not run: it needs a cluster -->\n```python\nprint(1)\n```\n") == []


def test_the_tour_shows_every_part_of_the_story() -> None:
    told = [step for language, content in blocks(text_of(TOUR)) if language == "console" for step in steps(content)]
    for word in ("init", "check", "quote", "ask", "budget", "verify", "explain"):
        assert any(f"dither {word}" in step.command for step in told), word
    assert {step.code for step in told} == {0, 3}


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as Markdown viewers make them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages())
def test_every_section_a_page_points_to_is_there(page: str) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        place = (ROOT / page).parent / target if target else ROOT / page
        if GENERATED.search(place.as_posix()):  # the strict build of the site checks these
            continue
        assert anchor in headings(place.read_text(encoding="utf-8")), f"{target}#{anchor}"
