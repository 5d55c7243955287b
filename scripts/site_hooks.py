"""Builds the site with mkdocs (make docs): adds generated pages, adapts Markdown, and refuses what readers could not use.

mkdocs calls the functions named on_…. site_markdown.py adapts pages, site_generate.py and site_examples.py make pages. After
the build, a page that loads anything from another host fails it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "src")]

import site_examples  # noqa: E402
import site_generate  # noqa: E402
from site_markdown import BESIDE, adapt, outside  # noqa: E402


def on_config(config: Any) -> Any:
    """Lists tutorial pages, examples and generated pages in the navigation."""
    lists = {
        "Tutorial": [f"tutorial/{path.name}" for path in tutorial()],
        "Examples": [f"examples/{path.stem}.md" for path in site_examples.scripts()],
        "What is proved": [f"explanation/claims/{page}.md" for page in site_generate.claims()],
        "Decisions": ["decisions/index.md", *(f"decisions/{path.name}" for path in decisions())],
    }
    config.nav = filled(config.nav, lists)
    return config


def filled(nav: Any, lists: dict[str, list[str]]) -> Any:
    """The navigation with the empty lists filled, and without those that stay empty."""
    if isinstance(nav, dict):
        return {name: lists.get(name, []) if entry == [] else filled(entry, lists) for name, entry in nav.items()}
    if isinstance(nav, list):
        entries = [filled(each, lists) for each in nav]
        return [each for each in entries if not (isinstance(each, dict) and list(each.values()) == [[]])]
    return nav


def tutorial() -> list[Path]:
    return sorted((ROOT / "docs" / "tutorial").glob("*.md"), key=lambda path: (path.stem != "index", path.name))


def decisions() -> list[Path]:
    return sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made from the code."""
    pages: dict[str, str | bytes] = dict(site_generate.pages())
    for source, page in BESIDE.items():
        if page.startswith("project/"):
            text = (ROOT / source).read_text(encoding="utf-8")
            pages[page] = re.sub(r"\]\((?:docs/(?!decisions\))|(?!https?:|#|mailto:))", moved, text)
    titles = [(path.name, path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")) for path in decisions()]
    pages["decisions/index.md"] = "# Decisions\n\nWhy it is built this way.\n\n" + "".join(
        f"- [{title}]({name})\n" for name, title in titles
    )
    pages |= site_examples.pages()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def moved(found: re.Match[str]) -> str:
    """The beginning of a link in a file beside docs/, seen from docs/project/."""
    return "](../" if found[0].endswith("docs/") else "](../../"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    try:
        return adapt(markdown, page.file.src_uri)
    except LookupError as missing:
        raise PluginError(str(missing)) from None


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Names what screen readers announce, and makes nested lists of the navigation no landmarks of their own."""
    output = output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
    output = output.replace("<th></th>", "<td></td>")  # the corner of a table is no header
    nested = r'(<nav class="md-nav" data-md-level="[1-9]") aria-labelledby="[^"]*" aria-expanded="[^"]*"'
    return re.sub(nested, r'\1 role="presentation"', output)


def on_post_build(config: Any) -> None:
    """Removes maps of scripts and other languages' search; refuses a site that loads anything from another host."""
    folder = Path(config.site_dir)
    shutil.rmtree(folder / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in folder.rglob("*.map"):
        path.unlink()
    wrong = outside(folder)
    if wrong:
        raise PluginError("the site would load from other hosts:\n" + "\n".join(wrong))
