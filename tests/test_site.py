"""The documentation site: generated pages are complete, and the built site is whole, offline, accessible, and fits a phone.

The first tests need nothing. The others build the site and open it in a browser; they run in `make test-long` and `make docs`,
and are skipped without the extra `docs` or without Chromium. DITHER_SITE names a site that is built already.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dither
import site_errors
import site_examples
import site_generate
import site_markdown
from dither.query import nodes
from dither.query.functions.registry import FUNCTIONS
from site_docs import navigation

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = (
    "index",
    "howto/epsilon",
    "explanation/guarantee",
    "reference/functions",
    "reference/api/open",
    "queries",
    "deciders/comparison",
)


# --- generated pages --------------------------------------------------------------------------------------------


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    shown = [name for _, _, names in site_generate.API.values() for name in names.split()]
    assert sorted(shown) == sorted(dither.__all__)


def test_every_function_and_aggregate_is_on_its_page() -> None:
    page = site_generate.functions()
    assert [name for name in FUNCTIONS if f"| `{name}` |" not in page] == []
    assert [word for entry in nodes.FUNCTIONS.values() for word in entry.words if f"`{word}`" not in page] == []


def test_every_command_and_option_is_on_its_page() -> None:
    page = site_generate.commands()
    for name in ("ask", "serve", "verify", "people add", "local simulate"):
        assert re.search(rf"^##+ dither {name}$", page, re.M), name
    for option in ("--epsilon", "--max-groups", "--receipt", "--tls"):
        assert f"`{option}`" in page, option


def test_the_error_index_has_every_class_and_every_heading() -> None:
    page = site_errors.page()
    for name in ("QueryError", "BudgetError", "ClosedError", "EngineError"):
        assert f"| `{name}` |" in page
    assert sum(len(rows) for rows in site_errors.questions().values()) > 100
    assert sum(len(rows) for rows in site_errors.written().values()) > 100
    assert "Only a SELECT is answered" in page


def test_every_section_of_the_claims_has_a_page_with_all_its_claims() -> None:
    pages = site_generate.claims()
    text = site_generate.CLAIMS.read_text(encoding="utf-8")
    assert len(pages) == text.count("\n## ")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| claim |")]
    assert sum(len(re.findall(r"^\*\*", page, re.M)) for page in pages.values()) == len(rows)


def test_every_page_is_in_the_navigation() -> None:
    listed = navigation()
    found = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    automatic = {page for page in found if page.startswith(("tutorial/", "decisions/", "examples/"))}
    assert found - automatic - listed == set()
    assert listed - found - set(site_generate.pages()) - set(site_markdown.BESIDE.values()) == set()


# --- adapting Markdown ------------------------------------------------------------------------------------------


def test_links_leave_docs_as_pages_or_as_names_of_files() -> None:
    adapt = site_markdown.adapt
    assert adapt("[more](../CHANGELOG.md#new)", "a.md") == "[more](project/changelog.md#new)"
    assert adapt("[start](../../README.md)", "howto/a.md") == "[start](../index.md)"
    assert adapt("[curator.py](../src/dither/curator.py)", "a.md") == "`src/dither/curator.py`"
    assert adapt("```\n[x](../none.py)\n```", "a.md") == "```\n[x](../none.py)\n```"
    with pytest.raises(LookupError):
        adapt("[gone](../src/dither/gone.py)", "a.md")


def test_lists_and_doctests_are_read_as_on_github() -> None:
    assert site_markdown.adapt("Two:\n- a\n  - b\n", "a.md") == "Two:\n\n- a\n    - b\n"
    assert site_markdown.adapt("```python\n>>> 1\n1\n```", "a.md").startswith("```pycon\n")


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/f.css">',
        "a{b:url(http://x.example/i)}",
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(tmp_path: Path, loaded: str) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://example.org">a link loads nothing</a><script src="x.js"></script>', encoding="utf-8"
    )
    assert site_markdown.outside(tmp_path) == []
    (tmp_path / "b.html").write_text(loaded, encoding="utf-8")
    assert len(site_markdown.outside(tmp_path)) == 1


def test_an_example_is_cut_into_cells() -> None:
    source = '"""Title.\n\nAbout.\n"""\nimport math\n# %% [markdown]\n# Some *text*.\n# %%\nprint(math.pi)\n'
    assert site_examples.cells(source) == [("code", "import math"), ("text", "Some *text*."), ("code", "print(math.pi)")]


@pytest.mark.slow
def test_an_example_that_fails_fails_the_build(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text('"""Good."""\nprint(2)\n', encoding="utf-8")
    bad.write_text('"""Bad."""\nraise ValueError("no")\n', encoding="utf-8")
    site_examples.run(good, tmp_path)
    assert '"printed": "2\\n"' in (tmp_path / "results.json").read_text(encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"bad\.py failed"):
        site_examples.run(bad, tmp_path)


# --- the built site ---------------------------------------------------------------------------------------------


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # Not --quiet: it would also hide warnings from strict.
    words = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder), *options]
    clean = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(words, cwd=ROOT, env=clean, capture_output=True, text=True, check=False, timeout=900)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; building is strict."""
    if os.environ.get("DITHER_SITE"):
        return Path(os.environ["DITHER_SITE"]).resolve()
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("needs the extra docs: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright", exc_type=ImportError
    )
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, address: str, site: Path) -> Iterator[Any]:
    """Opens a page; fails if any page of the test asks another host or writes an error."""
    faults: list[str] = []
    contexts = []

    def open_page(path: str, base: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        allowed = (address, "data:", "blob:", "about:", site.as_uri())
        page.on("request", lambda request: None if request.url.startswith(allowed) else faults.append(request.url))
        page.goto((base or address) + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def axe(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{page.url}: {each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"][:3]]


GOOD = "# Page\n\n[a](other.md) [b](other.md#section)\n\n::: dither.mechanisms.geometric.Geometric\n"


def build_small(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Builds a site of two pages with the settings of ours."""
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(text, encoding="utf-8")
    (folder / "docs" / "other.md").write_text("# Other\n\n## Section\n", encoding="utf-8")
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("console", "__pycache__"))
    own = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": str(folder / "docs"), "nav": ["index.md", "other.md"]}
    none: dict[str, Any] = {"hooks": [], "extra_css": [], "extra_javascript": []}
    (folder / "mkdocs.yml").write_text(json.dumps(own | none), encoding="utf-8")
    return build(folder / "site", "--config-file", str(folder / "mkdocs.yml"))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("other.md)", "none.md)", "none.md"),
        ("#section", "#none", "none"),
        ("Geometric", "None", "dither.mechanisms.geometric.None"),
    ],
)
def test_the_build_is_strict(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    """A dead link, a missing section and a missing name each fail it."""
    pytest.importorskip("mkdocstrings", reason="needs the extra docs: pip install -e '.[docs]'")
    done = build_small(tmp_path, GOOD.replace(right, wrong))
    assert done.returncode != 0
    assert said in done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_a_site_without_mistakes_is_built(tmp_path: Path) -> None:
    """The twin."""
    pytest.importorskip("mkdocstrings", reason="needs the extra docs: pip install -e '.[docs]'")
    done = build_small(tmp_path, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    assert site_markdown.outside(site) == []
    assert len(list(site.rglob("*.html"))) > 60


@pytest.mark.long
@pytest.mark.slow
def test_a_reader_finds_the_way(visit: Any) -> None:
    page = visit("index.html", viewport={"width": 1280, "height": 900})
    for tab in ("How-to", "Explanation", "Reference", "For deciders", "Start"):
        page.click(f".md-tabs >> text={tab}")
        page.wait_for_load_state()
        assert page.locator("h1").count() == 1, tab
    page.click(".md-tabs >> text=How-to")
    page.click("article >> text=Choose ε and δ")
    page.wait_for_load_state()
    assert "Choose ε and δ" in page.inner_text("h1")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("from_file", [False, True])
def test_search_works_without_a_network(visit: Any, site: Path, from_file: bool) -> None:
    page = visit("index.html", base=f"{site.as_uri()}/" if from_file else "", viewport={"width": 1280, "height": 900})
    page.click(".md-search__input")
    page.keyboard.type("witness")
    page.wait_for_selector(".md-search-result__item a", timeout=20_000)
    assert "itness" in page.inner_text(".md-search-result__list")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(visit: Any, scheme: str) -> None:
    found = []
    for path in PAGES:
        page = visit(f"{path}.html", color_scheme=scheme, viewport={"width": 1280, "height": 900})
        assert page.get_attribute("body", "data-md-color-scheme") == ("slate" if scheme == "dark" else "default")
        found += axe(page)
    assert found == []


@pytest.mark.long
@pytest.mark.slow
def test_pages_fit_a_phone(visit: Any) -> None:
    for path in PAGES:
        page = visit(f"{path}.html", viewport={"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        assert axe(page) == []
