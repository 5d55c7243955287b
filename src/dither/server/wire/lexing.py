"""Cuts SQL as tools write it into words: enough to tell statements apart, never to answer one.

What a question means is decided by dither's own reader; what anything else means, by the twin. So a mistake here can send a
statement the wrong way, and that is all it can do. Comments, strings and blanks end where PostgreSQL ends them: at a carriage
return too, and an E'…' goes on in the next line. Otherwise a statement could hide in them from the routing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_WORDS = re.compile(
    r"""(?P<space>[ \t\n\r\f\v]+|--[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<string>[eE]'(?:[^'\\]|\\.|''|'(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*')*(?:'|$)
               | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|$))
    | (?P<dollar>\$(?P<tag>[A-Za-z_\x80-\U0010ffff][\w]*)?\$)
    | (?P<parameter>\$\d+)
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")*(?:"|$))
    | (?P<number>\d[\w.]*|\.\d[\w.]*)
    | (?P<name>[A-Za-z_\x80-\U0010ffff][\w$]*)
    | (?P<sign>::|<>|!=|<=|>=|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"/\*|\*/")
HEADS = 8  # words that tell what a statement is


@dataclass(frozen=True)
class Word:
    """A word of a statement: its kind, its text (names without quotes), where it begins and ends, and how deep in brackets."""

    kind: str  # name, quoted, string, number, parameter, sign
    text: str
    start: int
    end: int
    depth: int

    @property
    def upper(self) -> str:
        """The text of a keyword; empty for what cannot be one."""
        return self.text.upper() if self.kind in ("name", "sign", "number") else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")


def words(text: str) -> list[Word]:
    """Returns the words of a text. Comments are left out.

    >>> [each.text for each in words('SELECT "a b", $1 /* /* x */ */ FROM t -- end')]
    ['SELECT', 'a b', ',', '$1', 'FROM', 't']
    """
    found: list[Word] = []
    at = depth = 0
    while at < len(text) and (match := _WORDS.match(text, at)):
        kind, end = str(match.lastgroup), match.end()
        if kind == "tag":
            kind = "dollar"
        if kind == "comment":
            end = _end_of_comment(text, at)
        elif kind == "dollar":
            close = text.find(match.group(), end)
            end = len(text) if close < 0 else close + len(match.group())
            found.append(Word("string", text[at:end], at, end, depth))
        elif kind != "space":
            shown = _unquoted(match.group()) if kind == "quoted" else match.group()
            depth -= shown == ")" and kind == "sign" and depth > 0
            found.append(Word(kind, shown, at, end, depth))
            depth += shown == "(" and kind == "sign"
        at = end
    return found


def _end_of_comment(text: str, at: int) -> int:
    """Returns where a comment ends. Comments may stand in comments."""
    depth = 0
    for match in _COMMENTS.finditer(text, at):
        depth += 1 if match.group() == "/*" else -1
        if not depth:
            return match.end()
    return len(text)


def _unquoted(text: str) -> str:
    inner = text[text.index('"') + 1 :]
    return inner.removesuffix('"').replace('""', '"')


@dataclass(frozen=True)
class Statement:
    """One statement of a text: its words, and the text between them. `start`: where it begins in the whole text; `largest`: the
    largest number of a parameter, if only the first words are kept."""

    text: str
    words: tuple[Word, ...]
    start: int = 0
    largest: int | None = None

    @property
    def heads(self) -> tuple[str, ...]:
        """The first words, as keywords."""
        return tuple(each.upper for each in self.words[:HEADS])

    def compact(self) -> Statement:
        """Returns the statement with its first words only, to be remembered: the words of 64 kB of text take 12 MB."""
        return Statement(self.text, self.words[:HEADS], self.start, self.parameters())

    def after(self, place: int) -> Statement:
        """Returns the rest of the statement, from a word on, as a statement of its own."""
        if place >= len(self.words):
            return Statement("", (), self.start + len(self.text))
        return self.part(place, len(self.words))

    def part(self, first: int, end: int) -> Statement:
        """Returns some of its words as a statement of its own."""
        some = self.words[first:end]
        if not some:
            return Statement("", (), self.start)
        cut, depth = some[0].start, some[0].depth
        moved = tuple(Word(w.kind, w.text, w.start - cut, w.end - cut, max(w.depth - depth, 0)) for w in some)
        return Statement(self.text[cut : some[-1].end], moved, self.start + cut)

    def parameters(self) -> int:
        """Returns the largest number of a parameter."""
        if self.largest is not None:
            return self.largest
        numbers = [int(each.text[1:]) for each in self.words if each.kind == "parameter" and len(each.text) < 7]
        return max(numbers, default=0)


def statements(text: str) -> list[Statement]:
    """Returns the statements of a text, which semicolons separate. Empty ones are left out.

    >>> [each.text for each in statements("SELECT ';' ; ; -- no\\nSHOW x;")]
    ["SELECT ';'", 'SHOW x']
    """
    whole = words(text)
    ends = [place for place, each in enumerate(whole) if each.kind == "sign" and each.text == ";"]
    everything = Statement(text, tuple(whole))
    found: list[Statement] = []
    first = 0
    for end in [*ends, len(whole)]:
        if first < end:
            found.append(everything.part(first, end))
        first = end + 1
    return found


def find(some: Sequence[Word], keyword: str, depth: int = 0) -> int | None:
    """Returns the place of the first such keyword at a depth of brackets."""
    return next((place for place, each in enumerate(some) if each.depth == depth and each.upper == keyword), None)
