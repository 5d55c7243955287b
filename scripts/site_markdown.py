"""Adapts the Markdown of pages for the site, and finds what a built site would load from other hosts.

Pages are written for GitHub as well, so three things differ here: links to files outside docs/, lists without a blank line
before them, and the colours of doctests.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Files beside docs/ that are pages of the site.
BESIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "docs/decisions": "decisions/index.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""",
    re.IGNORECASE,
)


def adapt(markdown: str, page: str) -> str:
    """The Markdown of a page as this generator reads it; `page` is its path under docs/."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = re.sub(r"^```python\n(?=>>> )", "```pycon\n", part)
        else:
            parts[place] = LINK.sub(lambda found: link(found[1], found[2], page), spaced(part))
    return "".join(parts)


def spaced(text: str) -> str:
    """With a blank line before every list, and nested lists four spaces deep."""
    text = re.sub(r"^(?![-*|>]|\d+\. |#| |$)(.+)\n(?=[-*] )", r"\1\n\n", text, flags=re.M)
    return re.sub(r"^ {2}(?=[-*] )", "    ", text, flags=re.M)


def link(text: str, target: str, page: str) -> str:
    """A link to a file outside docs/ becomes a link to its page, or the name of the file; one to a missing file is refused."""
    if re.match(r"[a-z]+:|#", target):
        return f"[{text}]({target})"
    name, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), name))
    if path in BESIDE:
        found = posixpath.relpath(BESIDE[path], posixpath.dirname(page) or ".")
        return f"[{text}]({found}{'#' + anchor if anchor and path != 'README.md' else ''})"
    if path.startswith("docs/"):
        return f"[{text}]({target})"
    if not (ROOT / path).exists():
        raise LookupError(f"{page}: no file {path}")
    if path.startswith("examples/") and path.endswith(".py"):
        return f"[{text}]({posixpath.relpath(path.removesuffix('.py') + '.md', posixpath.dirname(page) or '.')})"
    shown = text.strip("`")
    return f"`{path}`" if shown in path else f"{text} (`{path}`)"


def outside(folder: Path) -> list[str]:
    """What the files of a site load from other hosts."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".html", ".css"}:
            for each in LOADS.findall(path.read_text(encoding="utf-8")):
                found.append(f"{path.relative_to(folder)}: {''.join(each)}")
    return found
