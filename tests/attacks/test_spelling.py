"""Spelling: values, keys and names that two parts read differently (PITFALLS, SQL, its last two lines)."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

import dither as dt
from attacks.paths import ask

HOSTILE = ["'; DROP TABLE t; --", 'a"b', "a'b", "\\", "%s", "$1", "{x}", "/* x */", "é\u0301", " lead", "tail ", "𝔘", "\0"]


@pytest.mark.parametrize("word", HOSTILE)
def test_literals_and_identifiers_are_not_spliced_into_text(word: str) -> None:
    """As a value, a public key, a discovered key or a column name, the text means itself."""
    table = {"u": [1, 2, 3], "g": pa.array([word, word, "other"], pa.string())}
    quoted = word.replace("'", "''")
    if word != "\0":  # a zero can stand neither in a question nor among declared values
        columns = {"g": dt.values(word, "other")}
        assert ask(f"SELECT COUNT(*) AS n FROM t WHERE g = '{quoted}'", table, columns).only() == ((2,),)
        keyed = ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", table, columns)
        assert {group.key[0]: group.measures[0] for group in keyed.groups} == {word: (2,), "other": (1,)}
    discovered = ask("SELECT g, COUNT(*) AS n FROM t GROUP BY g", table, {"g": dt.column()}, delta="1/2")
    assert {group.key[0] for group in discovered.groups} == {word, "other"}
    if word != "\0":  # refused as a name
        name = '"' + word.replace('"', '""') + '"'
        total = ask(f"SELECT SUM({name}) AS s FROM t", {"u": [1, 2, 3], word: [1, 2, 3]}, {word: dt.between(0, 9)}, key="u")
        assert total.only() == ((6,),)


def test_case_trailing_space_and_unicode_forms_of_keys_mean_the_same_everywhere() -> None:
    """Analyser and engine agree, code point by code point: nothing is folded, trimmed or composed."""
    composed, apart = (unicodedata.normalize(form, "Zürich") for form in ("NFC", "NFD"))
    words = [
        "north",
        "North",
        "NORTH",
        "north ",
        " north",
        "north\u00a0",
        composed,
        apart,
        "ﬁn",
        "fin",
        "straße",
        "strasse",
        "",
    ]
    table = {"u": list(range(len(words))), "g": words}
    question = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    for shown in ("north", composed, "north ", ""):
        seen = ask(question, table, {"g": dt.values(shown, "nobody")})
        assert {group.key: group.measures for group in seen.groups} == {(shown,): ((1,),)}
        where = ask(f"SELECT COUNT(*) AS n FROM t WHERE g = '{shown}'", table, {"g": dt.column()})
        assert where.only() == ((1,),)
        listed = ask(f"SELECT COUNT(*) AS n FROM t WHERE g IN ('{shown}', 'nobody')", table, {"g": dt.column()})
        assert listed.only() == ((1,),)
    every = ask(question, table, {"g": dt.column()}, delta="1/2")
    assert {group.key[0] for group in every.groups} == set(words)
    distinct = ask("SELECT COUNT(DISTINCT g) AS n FROM t", table, {"g": dt.column()})
    assert distinct.only() == (len(words),)
    folded = ask("SELECT COUNT(DISTINCT LOWER(TRIM(g))) AS n FROM t", table, {"g": dt.column()})
    assert folded.only()[0] < len(words)  # the twin: asked for, they are folded


def test_units_that_differ_in_case_or_space_are_different_people() -> None:
    table = {"u": ["ann", "Ann", "ann ", "ANN"], "x": [1, 1, 1, 1]}
    assert ask("SELECT COUNT(DISTINCT u) AS n FROM t", table, {"x": dt.between(0, 9)}).only() == ((4,),)
