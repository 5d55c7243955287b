"""Patterns find the same texts as RE2 in DuckDB, in linear time, and everything outside the subset is refused."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.query.functions.patterns import MOST_STATES, compiled, fault, matches

LETTERS = "ab.é\n 7-"


def patterns() -> st.SearchStrategy[str]:
    single = st.sampled_from(
        ["a", "b", ".", "é", "\\d", "\\W", "\\s", "[ab]", "[^a]", "[a-c7]", "[^\\d\\s]", "\\.", "[-a]", "\\n"]
    )

    def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda x, y: x + y, inner, inner),
            st.builds(lambda x, y: f"({x}|{y})", inner, inner),
            st.builds(lambda x, q: f"(?:{x}){q}", inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"])),
        )

    body = st.recursive(single, deeper, max_leaves=6)
    return st.builds(lambda a, x, z: f"{a}{x}{z}", st.sampled_from(["", "^"]), body, st.sampled_from(["", "$"]))


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
        assert [row[0] for row in found] == [matches(text, pattern) for text in texts], (pattern, texts)

    check()


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
            "(?i)a",
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
