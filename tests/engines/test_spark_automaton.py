"""Regular expressions as tables of states: the same texts match as by the specification, in one step for each letter."""

from __future__ import annotations

import itertools
import re

import pytest

from dither.engines.spark import automaton
from dither.engines.spark.automaton import TooLargeError, table
from dither.engines.spark.texts import like_pattern
from dither.query.functions.patterns import matches
from dither.query.functions.text import like
from engines.test_functions_agree import CONSTANTS

PATTERNS = [pattern for (pattern,) in CONSTANTS["regexp_matches"]]
PATTERNS += ["(?m)^b", "(?m)a$", "(?s)a.b", "(?i)k", "^a$|b", "(a|ab)(c|bcd)*$", "a{2,3}b?", "(?m)^$", "$", "^", "\\n", "[^a]"]
TEXTS = ["".join(letters) for n in range(5) for letters in itertools.product("ab\nK", repeat=n)]
TEXTS += ["é😀", "ü", "ſ", "K", "K", "12 3.c", "a-z", "ab\ncd", "abcbcd"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_table_matches_as_the_specification_does(pattern: str) -> None:
    found = table(pattern)
    assert [found.matches(text) for text in TEXTS] == [matches(text, pattern) for text in TEXTS]


def test_that_a_table_without_line_ends_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "_edges", lambda before, *, last, feed: set())
    wrong = automaton.table.__wrapped__("^b")
    assert [wrong.matches(text) for text in TEXTS] != [matches(text, "^b") for text in TEXTS]


def test_a_pattern_with_too_many_states_is_refused() -> None:
    with pytest.raises(TooLargeError):
        table("(a|b)*a(a|b){20}c")


LIKES = ["", "%", "a%", "%b", "%a%", "a_%b", "%a%b%", "_", "__", "%_b", "a%%b", "a\\%", ".*", "[a]", "%a\nb"]


@pytest.mark.parametrize("pattern", LIKES)
def test_like_matches_as_the_specification_does(pattern: str) -> None:
    """Python has Java's atomic groups since 3.11; \\z is its \\Z, and \\x{..} is written out."""
    java = like_pattern(pattern).replace("\\z", "\\Z")
    python = re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: re.escape(chr(int(found.group(1), 16))), java)
    for text in [*TEXTS, "a\\", "a\\b", ".*", "[a]"]:
        assert bool(re.search(python, text)) == like(text, pattern), text
