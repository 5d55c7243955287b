"""On which line of a TOML text each key stands: what the standard reader does not tell.

    lines(text)[("tables", "people", "columns", "age", "between")]

The text must already have been read by tomllib, so it is known to be well formed and this file only keeps count.
"""

from __future__ import annotations

import re
import tomllib

from dither.query.faults import Path

_BLANK = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\r\n#]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")"{0,2}|\'\'\'.*?\'\'\'(?!\')\'{0,2}|"(?:[^"\\]|\\.)*"|\'[^\']*\'',
    re.DOTALL,
)


def lines(text: str) -> dict[Path, int]:
    """The line of every key, table header and list item; items are counted from "0".

    >>> lines('[a]\\nb = { c = 1,\\n d = [2] }')[("a", "b", "d")]
    3
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


def line_of(found: dict[Path, int], path: Path) -> int | None:
    """The line of the path, or of the closest thing around it that is written down."""
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return None


class _Scanner:
    """Walks over the text once; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self._line = 1
        self._counted = 0

    def document(self) -> None:
        prefix: Path = ()
        self._skip(_BETWEEN)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                depth = 2 if self.text.startswith("[[", self.at) else 1
                self.at += depth
                prefix = self._key(())
                self.at += depth
            else:
                self._pair(prefix)
            self._skip(_BETWEEN)

    def _pair(self, prefix: Path) -> None:
        path = self._key(prefix)
        self.at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _key(self, prefix: Path) -> Path:
        """One dotted key; every part of it is noted, and the scanner stands behind it."""
        path = prefix
        while True:
            self._skip(_BLANK)
            word = (_STRING if self.text[self.at] in "\"'" else _BARE).match(self.text, self.at)
            if word is None:  # cannot happen in a well-formed text; an end is better than a loop
                self.at = len(self.text)
                return path
            path = (*path, tomllib.loads(f"k={word[0]}")["k"] if word[0][0] in "\"'" else word[0])
            self.found.setdefault(path, self._line_here())
            self.at = word.end()
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return path
            self.at += 1

    def _value(self, path: Path) -> None:
        start = self.text[self.at]
        if start == "{":
            self._inside("}", path)
        elif start == "[":
            self._inside("]", path)
        else:
            self._skip(_STRING if start in "\"'" else _SCALAR)

    def _inside(self, end: str, path: Path) -> None:
        """The pairs of an inline table, or the items of a list."""
        self.at += 1
        self._skip(_BETWEEN)
        item = 0
        while self.at < len(self.text) and self.text[self.at] != end:
            if end == "}":
                self._pair(path)
            else:
                self.found.setdefault((*path, str(item)), self._line_here())
                self._value((*path, str(item)))
                item += 1
            self._skip(_BETWEEN)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(_BETWEEN)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else len(self.text)

    def _line_here(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line
