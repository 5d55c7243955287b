"""Line numbers of TOML keys, compared with texts whose lines are known."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dither.catalog.file import line_of, lines
from dither.catalog.text import key, quoted

HARD = '''# a comment with [brackets] and = signs
"quoted.key" = "a # no comment \\" [x]"
'literal key' = 'a \\'

text = """
[not.a.header]
k = "v" \\"""
"""
raw = \'\'\'
x = 1\'\'\'
[a . "b c".d]      # spaces
list = [ 1, # one
  [2, 3],
  { x = 1, y.z = { w = "}" } },
]
when = 2000-01-01T00:00:00Z
[[many]]
n = 1
[[many]]
m = -inf
'''


def test_hard_texts() -> None:
    tomllib.loads(HARD)
    found = lines(HARD)
    expected = {
        ("quoted.key",): 2,
        ("literal key",): 3,
        ("text",): 5,
        ("raw",): 9,
        ("a", "b c", "d"): 11,
        ("a", "b c", "d", "list"): 12,
        ("a", "b c", "d", "list", "1"): 13,
        ("a", "b c", "d", "list", "2", "y", "z", "w"): 14,
        ("a", "b c", "d", "when"): 16,
        ("many",): 17,
        ("many", "n"): 18,
        ("many", "m"): 20,
    }
    assert {path: found.get(path) for path in expected} == expected


def test_a_path_that_is_not_written_stands_where_its_closest_part_does() -> None:
    found = lines("[a]\nb = 1\n")
    assert line_of(found, ("a", "b", "c")) == 2
    assert line_of(found, ("a", "x")) == 1
    assert line_of(found, ("z",)) is None


VALUES = st.one_of(st.integers(), st.booleans(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), VALUES, max_size=8), st.data())
def test_every_pair_is_found_on_its_line(pairs: dict[str, Any], data: st.DataObject) -> None:
    text, expected = "", {}
    for name, value in pairs.items():
        text += "\n" * data.draw(st.integers(0, 2)) + ("# note = [1]\n" if data.draw(st.booleans()) else "")
        expected[(name,)] = text.count("\n") + 1
        shown = quoted(value) if isinstance(value, str) else str(value).lower()
        text += f"{key(name)} = {data.draw(st.sampled_from(['%s', '[%s, 1]', '{ inner = %s }'])).replace('%s', shown)}\n"
    tomllib.loads(text)
    found = lines(text)
    assert {path: line for path, line in found.items() if len(path) == 1} == expected


def test_that_check_can_fail() -> None:
    assert lines("\na = 1")[("a",)] != 1
