"""Fences the doctests of docstrings, which mkdocstrings would take for prose. Named in mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Fences(griffe.Extension):
    """Rewrites the docstring of every object that is shown."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """With a fence around every run of lines that begins with >>>.

    >>> fenced("Adds.\\n>>> 1 + 1\\n2")
    'Adds.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """
    return re.sub(r"^>>> (?:.+\n?)+", lambda found: f"\n```pycon\n{found[0].rstrip()}\n```\n", text, flags=re.M)
