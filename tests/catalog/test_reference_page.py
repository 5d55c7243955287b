"""docs/catalog.md names every key that the reader of catalog files knows, and no other; what it shows is read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dither.catalog.declare import read_column
from dither.catalog.file import parse
from dither.catalog.rules import KINDS, NEIGHBOURS
from dither.errors import CatalogError

PAGE = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text(encoding="utf-8")
BUDGET = "[budget]\nepsilon = 1\n"
TABLE = '[tables.t]\nsource = "t.csv"\nmax_rows = 1\n'

# Where each list of keys stands on the page, and a catalog with an unknown key at that place: the refusal lists the known ones.
PROBES = {
    "## Top-level settings": f'zzz = 1\n{BUDGET}{TABLE}unit = "id"\n',
    "## Set the budget": f'{BUDGET}zzz = 1\n{TABLE}unit = "id"\n',
    "## Choose what the guarantee compares": f'{BUDGET}[privacy]\nzzz = 1\n{TABLE}unit = "id"\n',
    "## Declare a table": f'{BUDGET}{TABLE}unit = "id"\nzzz = 1\n',
    "### Say who is protected": f'{BUDGET}{TABLE}unit = {{ column = "id", zzz = 1 }}\n',
    "### Limit what a question may ask for": f'{BUDGET}{TABLE}unit = "id"\ncaps = {{ zzz = 1 }}\n',
    "### Read text as it comes": f'{BUDGET}{TABLE}unit = "id"\n[tables.t.read]\nzzz = 1\n',
    "### State how many people there are": f'{BUDGET}{TABLE}unit = "id"\nrows = {{ zzz = 1 }}\n',
    "## Declare columns": f'{BUDGET}{TABLE}unit = "id"\n[tables.t.columns]\nx = {{ zzz = 1 }}\n',
}


def known(probe: str) -> set[str]:
    """Returns the keys that the reader knows at the place of an unknown key."""
    with pytest.raises(CatalogError) as refused:
        parse(probe)
    fixes = [fix for _, _, fix in refused.value.problems]
    assert len(fixes) == 1
    return set(fixes[0].split("Known are: ")[1].removesuffix(".").split(", "))


def rows(page: str, place: str) -> list[tuple[str, str]]:
    """Returns (key, example) of the first table after a place."""
    lines = iter(page[page.index("\n" + place) :].split("\n|---")[1].split("\n")[1:])
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split(" | ")
        found.append((cells[0].strip(), cells[-1].strip(" `")))
    return found


def missing(page: str) -> list[str]:
    """Returns keys of the reader that the page lacks, and keys of the page that the reader does not know."""
    wrong = []
    for place, probe in PROBES.items():
        told = {key.strip("`") for key, _ in rows(page, place) if re.fullmatch(r"`\w+`", key)}
        wrong += [f"{place}: {key}" for key in sorted(told ^ known(probe))]
    return wrong


def test_every_key_is_on_the_page_and_no_other() -> None:
    assert missing(PAGE) == []


def test_that_check_can_fail() -> None:
    without = "\n".join(line for line in PAGE.split("\n") if not line.startswith("| `per_query`"))
    assert missing(without) == ["## Set the budget: per_query"]
    assert missing(PAGE.replace("| `longest`", "| `longer`")) == ["## Declare columns: longer", "## Declare columns: longest"]


@pytest.mark.parametrize("place", PROBES)
def test_every_key_has_an_example_that_shows_it(place: str) -> None:
    for key, example in rows(PAGE, place):
        shown = tomllib.loads(example)
        assert re.sub(r"\W", "", key) in names(shown) or key in ("a column", '`"row"`'), key


@pytest.mark.parametrize(
    ("key", "example"), [pytest.param(key, shown, id=key) for key, shown in rows(PAGE, "## Declare columns")]
)
def test_examples_of_columns_are_read(key: str, example: str) -> None:
    bounds = {"between": [0, 1]} if key == "`step`" else {}
    facts, found = read_column(("column",), {**bounds, **tomllib.loads(example)})
    assert facts is not None
    assert found == []


def test_the_catalogs_on_the_page_are_read_and_show_every_key_between_them() -> None:
    files = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
    for file in files:
        parse(file)
    shown = {name for file in files for name in names(tomllib.loads(file))}
    assert {key for probe in PROBES.values() for key in known(probe)} <= shown


def test_words_that_a_key_may_have_are_on_the_page() -> None:
    for word in (*KINDS, *NEIGHBOURS, "row", "group"):
        assert f'`"{word}"`' in PAGE, word


def names(value: Any) -> set[str]:
    """Returns all keys of a document, at any depth."""
    return {found for key, inner in value.items() for found in {key} | names(inner)} if isinstance(value, dict) else set()
