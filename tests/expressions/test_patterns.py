"""Patterns find the same texts as RE2 in DuckDB, in linear time, and everything outside the subset is refused."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.query.functions.patterns import MOST_STATES, compiled, fault, matches, with_options, without_flags

LETTERS = "abABkK\u212aſ.éÉ\n 7-"


def patterns() -> st.SearchStrategy[str]:
    single = st.sampled_from(
        [
            "a",
            "b",
            ".",
            "é",
            "\\d",
            "\\W",
            "\\s",
            "[ab]",
            "[^a]",
            "[a-c7]",
            "[^\\d\\s]",
            "\\.",
            "[-a]",
            "\\n",
            "^",
            "$",
            "(?i)",
            "(?s)",
            "k",
            "[^K]",
            "\\w",
        ]
    )

    def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda x, y: x + y, inner, inner),
            st.builds(lambda x, y: f"({x}|{y})", inner, inner),
            st.builds(lambda f, x: f"(?{f}:{x})", st.sampled_from(["i", "-i", "s", "m", "m-i", "U"]), inner),
            st.builds(lambda x, q: f"(?:{x}){q}", inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"])),
        )

    body = st.recursive(single, deeper, max_leaves=6)
    flags = st.sampled_from(["", "", "(?i)", "(?s)", "(?m)", "(?im-s)", "(?U)", "a|(?i)"])
    return st.builds(lambda f, a, x, z: f"{f}{a}{x}{z}", flags, st.sampled_from(["", "^"]), body, st.sampled_from(["", "$"]))


TEXTS = st.text(st.sampled_from(LETTERS), max_size=8)


@pytest.fixture(scope="module")
def connection() -> object:
    with duckdb.connect() as found:
        yield found


@pytest.mark.slow
def test_patterns_mean_what_they_mean_in_re2(connection: duckdb.DuckDBPyConnection) -> None:
    @settings(max_examples=300, deadline=None)
    @given(patterns(), st.lists(TEXTS, min_size=1, max_size=12))
    def check(pattern: str, texts: list[str]) -> None:
        assert fault(pattern) is None
        asked = "SELECT regexp_matches(x, $p) FROM (SELECT unnest($x) AS x, generate_subscripts($x, 1) AS i) ORDER BY i"
        found = connection.execute(asked, {"p": pattern, "x": texts}).fetchall()
        right = [row[0] for row in found]
        assert right == [matches(text, pattern) for text in texts], (pattern, texts)
        found = connection.execute(asked, {"p": without_flags(pattern), "x": texts}).fetchall()
        assert right == [row[0] for row in found], (pattern, texts)

    check()


@pytest.mark.parametrize(
    "pattern", ["(?i)[a-zß-ÿ]", "(?i)\\w", "(?i)\\W", "(?i)[^k]", "(?i)[Α-Ωσ-ω]", "(?is).", "(?i)i", "(?i)ı"]
)
def test_letters_of_any_case_are_those_of_re2(pattern: str, connection: duckdb.DuckDBPyConnection) -> None:
    """On every letter of the first planes, in our matcher and written out for the engine."""
    letters = [chr(point) for point in range(1, 0x20000) if not 0xD800 <= point < 0xE000]
    asked = "SELECT x FROM (SELECT unnest($x) AS x) WHERE regexp_matches(x, $p) ORDER BY x"
    right = [row[0] for row in connection.execute(asked, {"p": pattern, "x": letters}).fetchall()]
    assert [row[0] for row in connection.execute(asked, {"p": without_flags(pattern), "x": letters}).fetchall()] == right
    few = letters[:0x2200]
    assert [letter for letter in few if matches(letter, pattern)] == [letter for letter in right if ord(letter) <= 0x2200]


@pytest.mark.parametrize("options", ["", "i", "c", "ic", "ci", "s", "m", "n", "p", "sm", "ms", "is", "l", "il"])
def test_options_mean_what_they_mean_in_duckdb(options: str, connection: duckdb.DuckDBPyConnection) -> None:
    texts = ["a.b", "A.B", "axb", "a\nb", "AXB", "b\na.b", "A\nB"]
    for pattern in ("a.b", "^a", "a.b$"):
        filled = with_options(pattern, options)
        assert filled is not None
        asked = "SELECT regexp_matches($x, $p, '" + options + "')"
        right = [connection.execute(asked, {"x": text, "p": pattern}).fetchall()[0][0] for text in texts]
        assert [matches(text, filled) for text in texts] == right


@pytest.mark.parametrize("options", ["x", "g", "I", "i ", "ix"])
def test_other_options_are_refused(options: str) -> None:
    assert with_options("a", options) is None


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(a",
            "a)",
            "[a",
            "[]",
            "a**",
            "*a",
            "^*",
            "(?)a",
            "(?x)a",
            "(?i-)a",
            "(?--i)a",
            "(?i",
            "(?i)*a",
            "(?^i)a",
            "(?=a)",
            "(?P<n>a)",
            "\\1",
            "\\b",
            "\\pL",
            "[[:alpha:]]",
            "a{",
            "a{x}",
        ),
        *("a{101}", "a{3,2}", "[z-a]", "x{100}{100}", "(?:x{100}){100}", "\\", "[^", "a{2", "(" * 60 + ")" * 60),
    ],
)
def test_what_has_no_linear_matcher_or_another_meaning_is_refused(pattern: str) -> None:
    assert fault(pattern)


def test_no_text_takes_more_than_its_length_times_the_pattern() -> None:
    """Python's own `re` would need 2^5000 steps here."""
    assert not matches("a" * 5000, "^(?:a+)+b$")
    assert len(compiled("(?:a{50}){19}")[0].steps) <= MOST_STATES


def test_that_the_comparison_can_fail() -> None:
    assert matches("b\n", "b$") is False  # Python's re would say yes
    assert matches("é", "\\w") is False
