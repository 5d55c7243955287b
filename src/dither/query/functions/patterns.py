"""Regular expressions that every text is matched against in linear time: the subset of RE2 that is answered.

    a . [a-z] [^0-9] \\d \\w \\s \\. (ab|cd) (?:ab) a* a+ a? a{2,5} ^ $ (?i) (?s) (?m) (?i:ab) (?-i)

Letters are code points; \\d, \\w and \\s are ASCII, and . is any but a line feed, as in RE2. A lazy quantifier (a*?) finds the
same texts. Flags hold to the end of their group: (?i) takes small and capital letters for the same (letters.py), with (?s) a .
is a line feed too, with (?m) ^ and $ are the beginning and the end of a line. Everything else is refused: back references and
look-around have no linear matcher, names of classes differ between engines.

Matching follows all ways through the pattern at once (Thompson, 1968): steps at most the size of the pattern times the
length of the text, whatever the text. Python's own `re` tries the ways one after the other, and some texts would take it
years: how long a question runs would then show a row.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from dither.query.functions.letters import mapping

MOST_STATES = 1000
MOST_REPEATS = 100
_LAST = 0x10FFFF
_SPECIAL = set("\\^$.[]|()?*+{}")
_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12}
_ANY = ((0, _LAST),)
_FLAGS = "ismU"  # U swaps lazy and greedy quantifiers, which find the same texts
_OPTIONS = {"i": "i", "c": "-i", "s": "s", "m": "-s", "n": "-s", "p": "-s"}  # of REGEXP_MATCHES, in DuckDB
_TURKISH = (0x130, 0x131)  # İ and ı are the other case of i in some languages only

Ranges = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """A pattern that is not answered; its text says why."""


@dataclass(frozen=True)
class Letters:
    """One letter of these ranges of code points."""

    ranges: Ranges

    def has(self, point: int) -> bool:
        return any(low <= point <= high for low, high in self.ranges)


@dataclass(frozen=True)
class Edge:
    """The beginning or the end of the text, or of a line, without a letter."""

    end: bool
    line: bool = False


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    part: Node
    least: int
    most: int | None


Node = Letters | Edge | Sequence | Choice | Repeat


def _others(ranges: Ranges) -> Ranges:
    """Returns all code points but these."""
    found, at = [], 0
    for low, high in sorted(ranges):
        if at < low:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return (*found, (at, _LAST)) if at <= _LAST else tuple(found)


_FEW = 100  # letters that are looked up one by one


@functools.cache
def _cases() -> dict[int, frozenset[int]]:
    """Returns the small and capital letters that are one letter, for each that has others."""
    found: dict[int, frozenset[int]] = {}
    for one, two in [*mapping(upper=False).items(), *mapping(upper=True).items()]:
        if one not in _TURKISH and two not in _TURKISH:
            same = found.get(one, frozenset((one,))) | found.get(two, frozenset((two,)))
            found |= dict.fromkeys(same, same)
    return found


def _folded(ranges: Ranges) -> Ranges:
    """Returns the ranges with the other cases of their letters."""
    inside, cases = Letters(ranges).has, _cases()
    if sum(last - first + 1 for first, last in ranges) <= _FEW:
        every = {point for first, last in ranges for point in range(first, last + 1)}
        others = {point for one in every for point in cases.get(one, ())}
    else:
        others = {point for one, same in cases.items() if inside(one) for point in same}
    return (*ranges, *((point, point) for point in sorted(others) if not inside(point)))


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.flags: frozenset[str] = frozenset()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def choice(self, depth: int = 0) -> Node:
        if depth > 50:
            raise PatternError("its groups are nested too deeply")
        parts = [self.sequence(depth)]
        while self.peek() == "|":
            self.take()
            parts.append(self.sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(self.single(depth)))
        return Sequence(tuple(parts))

    def single(self, depth: int) -> Node:
        letter = self.take()
        if letter == "(":
            return self.group(depth)
        if letter == "[":
            return self.listed()
        if letter == "\\":
            return Letters(self.escaped())
        if letter in "^$":
            return Edge(letter == "$", "m" in self.flags)
        if letter == ".":
            return Letters(_ANY if "s" in self.flags else _others(((10, 10),)))
        if letter in _SPECIAL:
            raise PatternError(f"{letter} has nothing to repeat or close; write \\{letter} for the letter itself")
        return Letters(self.cased(((ord(letter), ord(letter)),)))

    def cased(self, ranges: Ranges) -> Ranges:
        return _folded(ranges) if "i" in self.flags else ranges

    def group(self, depth: int) -> Node:
        outside = self.flags
        if self.peek() == "?":
            self.take()
            if self.read_flags() == ")":
                if self.peek() in tuple("*+?{"):
                    raise PatternError(f"{self.peek()} has nothing to repeat")
                return Sequence(())  # (?i) holds up to the end of the group around it
        inner = self.choice(depth + 1)
        if self.take() != ")":
            raise PatternError("a ( is not closed")
        self.flags = outside
        return inner

    def read_flags(self) -> str:
        """Reads i-s of (?i-s) or (?i-s:...) into the flags; returns what ends them."""
        start, off = self.at, False
        while (letter := self.take()) and letter in f"{_FLAGS}-":
            if letter == "-" and (off or self.peek() not in tuple(_FLAGS)):
                break
            off = off or letter == "-"
            self.flags = self.flags - {letter} if off else self.flags | {letter}
        if letter == ":" or (letter == ")" and self.at > start + 1):
            return letter
        raise PatternError("of the groups that begin with (? only (?:...) and the flags i, s and m are known, as in (?i)")

    def escaped(self) -> Ranges:
        letter = self.take()
        if letter in _CONTROLS:
            return ((_CONTROLS[letter], _CONTROLS[letter]),)
        if letter.lower() in _CLASSES and letter:
            ranges = self.cased(_CLASSES[letter.lower()])
            return ranges if letter.islower() else _others(ranges)
        if not letter or not letter.isascii() or letter.isalnum() or letter == "_":
            raise PatternError(f"\\{letter} is not known")
        return ((ord(letter), ord(letter)),)

    def listed(self) -> Node:
        """Reads [a-z0-9_] from behind its bracket."""
        negated = self.peek() == "^"
        if negated:
            self.take()
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            low = self.member()
            if len(low) == 1 and low[0][0] == low[0][1] and self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.take()
                high = self.member()
                if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                    raise PatternError("a range in [...] runs from the smaller to the larger letter")
                low = ((low[0][0], high[0][0]),)
            ranges += self.cased(low)
        self.take()
        if not ranges:
            raise PatternError("[] is empty")
        return Letters(_others(tuple(ranges)) if negated else tuple(ranges))

    def member(self) -> Ranges:
        letter = self.take()
        if letter == "\\":
            return self.escaped()
        if letter in ("", "[", "^"):
            raise PatternError("a [ is not closed" if not letter else f"write \\{letter} for the letter itself in [...]")
        return ((ord(letter), ord(letter)),)

    def repeated(self, node: Node) -> Node:
        """Reads the quantifier behind a part."""
        letter = self.peek()
        if letter not in ("*", "+", "?", "{") or not letter:
            return node
        if isinstance(node, Edge):
            raise PatternError(f"{letter} has nothing to repeat")
        self.take()
        least, most = self.counts() if letter == "{" else {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]
        if self.peek() == "?":
            self.take()  # lazy: finds the same texts
        if self.peek() in ("*", "+", "?", "{") and self.peek():
            raise PatternError("two quantifiers follow each other; put the inner part in (?:...)")
        return Repeat(node, least, most)

    def counts(self) -> tuple[int, int | None]:
        end = self.text.find("}", self.at)
        least, comma, most = self.text[self.at : max(end, self.at)].partition(",")
        if end < 0 or not _digits(least) or (most and not _digits(most)):
            raise PatternError("{ is followed by numbers, as in {2,5}; write \\{ for the letter itself")
        self.at = end + 1
        counts = int(least), int(most) if most else None if comma else int(least)
        if counts[0] > MOST_REPEATS or (counts[1] or 0) > MOST_REPEATS or (counts[1] is not None and counts[1] < counts[0]):
            raise PatternError(f"a repetition has at most {MOST_REPEATS} times, the smaller number first")
        return counts


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


# --- matching -----------------------------------------------------------------------------------------------------


@dataclass
class Automaton:
    """States by number: a step over a letter, or ways to other states without one. The last state is the goal."""

    steps: list[tuple[Letters, int] | None]
    ways: list[list[tuple[int, Edge | None]]]

    def add(self) -> int:
        if len(self.steps) >= MOST_STATES:
            raise PatternError("it is too long with its repetitions written out")
        self.steps.append(None)
        self.ways.append([])
        return len(self.steps) - 1

    def build(self, node: Node, goal: int) -> int:
        """Adds states that lead through the node to the goal; returns the first."""
        if isinstance(node, Letters):
            state = self.add()
            self.steps[state] = (node, goal)
            return state
        if isinstance(node, Edge):
            state = self.add()
            self.ways[state].append((goal, node))
            return state
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                goal = self.build(part, goal)
            return goal
        if isinstance(node, Choice):
            state = self.add()
            self.ways[state] += [(self.build(part, goal), None) for part in node.parts]
            return state
        return self.repeat(node, goal)

    def repeat(self, node: Repeat, goal: int) -> int:
        if node.most is None:
            loop = self.add()
            self.ways[loop] += [(self.build(node.part, loop), None), (goal, None)]
            goal = loop
        for _ in range(0 if node.most is None else node.most - node.least):
            state = self.add()
            self.ways[state] += [(self.build(node.part, goal), None), (goal, None)]
            goal = state
        for _ in range(node.least):
            goal = self.build(node.part, goal)
        return goal


def parsed(pattern: str) -> Node:
    """Returns the tree of a pattern. Refuses other patterns."""
    reader = _Reader(pattern)
    tree = reader.choice()
    if reader.peek():
        raise PatternError("a ) has no opening one; write \\) for the letter itself")
    return tree


@functools.lru_cache(maxsize=512)
def compiled(pattern: str) -> tuple[Automaton, int]:
    """Returns the automaton of a pattern and its first state; state 0 is the goal. Refuses other patterns."""
    tree = parsed(pattern)
    automaton = Automaton([], [])
    return automaton, automaton.build(tree, automaton.add())


def matches(text: str, pattern: str) -> bool:
    """Returns whether some part of the text fits the pattern.

    >>> matches("dither", "t.e"), matches("dither", "^t"), matches("a" * 50, "^(a+)+b$")
    (True, False, False)
    """
    automaton, first = compiled(pattern)
    states: set[int] = set()
    for at in range(len(text) + 1):
        edges = {Edge(False)} if at == 0 else set()
        edges |= {Edge(True)} if at == len(text) else set()
        edges |= {Edge(False, True)} if at == 0 or text[at - 1] == "\n" else set()
        edges |= {Edge(True, True)} if at == len(text) or text[at] == "\n" else set()
        states = closure(automaton, {*states, first}, edges)
        if 0 in states:
            return True
        if at < len(text):
            states = set(following(automaton, states, ord(text[at])))
    return False


def closure(automaton: Automaton, states: set[int], edges: set[Edge]) -> set[int]:
    """Returns the states that are reached without a letter, over the edges that this place is."""
    found, todo = set(states), list(states)
    while todo:
        for state, edge in automaton.ways[todo.pop()]:
            if (edge is None or edge in edges) and state not in found:
                found.add(state)
                todo.append(state)
    return found


def following(automaton: Automaton, states: set[int], point: int) -> Iterator[int]:
    """Yields the states after a letter."""
    for state in states:
        step = automaton.steps[state]
        if step is not None and step[0].has(point):
            yield step[1]


def fault(pattern: str) -> str | None:
    """Returns why a pattern is not answered; None if it is."""
    try:
        compiled(pattern)
    except PatternError as error:
        return str(error)
    return None


# --- flags --------------------------------------------------------------------------------------------------------


def with_options(pattern: str, options: str) -> str | None:
    """Returns the pattern with the options of REGEXP_MATCHES as flags; None if there is no such option.

    >>> with_options("k.", "is"), with_options("a.b", "l"), with_options("k", "ic"), with_options("k", "x")
    ('(?is)k.', 'a\\\\.b', 'k', None)
    """
    if any(option not in _OPTIONS and option != "l" for option in options):
        return None
    chosen = dict.fromkeys("is", False) | {_OPTIONS[each][-1]: len(_OPTIONS[each]) == 1 for each in options if each != "l"}
    flags = "".join(flag for flag, on in chosen.items() if on)
    text = "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in pattern) if "l" in options else pattern
    return f"(?{flags}){text}" if flags else text


def without_flags(pattern: str) -> str:
    """Returns the pattern as every version of RE2 reads it: letters of any case are written out.

    >>> without_flags("a+b"), without_flags("(?i)s$")
    ('a+b', '[\\\\x{73}\\\\x{53}\\\\x{17f}]$')
    """
    return pattern if "(?" not in pattern.replace("(?:", "") else _spelled(parsed(pattern))


def _spelled(node: Node) -> str:
    if isinstance(node, Letters):
        ranges = node.ranges or _ANY
        listed = "".join(f"\\x{{{low:x}}}" + (f"-\\x{{{high:x}}}" if high > low else "") for low, high in ranges)
        return f"[{listed}]" if node.ranges else f"[^{listed}]"
    if isinstance(node, Edge):
        sign = "$" if node.end else "^"
        return f"(?m:{sign})" if node.line else sign
    if isinstance(node, Sequence):
        return "".join(_spelled(part) for part in node.parts)
    if isinstance(node, Choice):
        return "(?:" + "|".join(_spelled(part) for part in node.parts) + ")"
    return f"(?:{_spelled(node.part)}){{{node.least},{'' if node.most is None else node.most}}}"
