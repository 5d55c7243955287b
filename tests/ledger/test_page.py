"""docs/ledger.md quotes real messages, kinds and keys."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

import pytest

from dither.ledger.ledger import Ledger
from dither.ledger.receipts import Key
from dither.ledger.records import KINDS
from ledger.asking import opened_stream

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")


def said() -> list[str]:
    """Returns every text in the source, with … for each placeholder."""
    found = []
    for file in (ROOT / "src" / "dither").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def unsaid(page: str) -> list[str]:
    """The messages of the page's table that nothing says."""
    rows = page.partition("## On call")[2].splitlines()
    phrases = [phrase for row in rows if row.startswith("|") for phrase in re.findall(r"\*([^*]+)\*", row.split("|")[1])]
    assert len(phrases) > 25
    texts = [text.casefold() for text in said()]
    return [
        phrase
        for phrase in phrases
        if not any(re.search(".*".join(map(re.escape, phrase.casefold().split("…"))), text, re.DOTALL) for text in texts)
    ]


@pytest.mark.slow
def test_every_message_of_the_page_is_said() -> None:
    assert unsaid(PAGE) == []


@pytest.mark.slow
def test_that_check_can_fail() -> None:
    assert unsaid(PAGE.replace("*is a backup*", "*is a spare copy*")) == ["is a spare copy"]


def test_every_kind_is_on_the_page_and_no_other() -> None:
    assert re.findall(r"^\| `([a-z]+/\d)` \|", PAGE, re.MULTILINE) == list(KINDS)


def test_every_text_beside_the_entries_is_on_the_page(told: tuple[Ledger, object]) -> None:
    opened_stream(told[0], epsilon="0.01", catalog_hash="c2")
    told[0].set_policy(Fraction(1, 10))
    told[0].abandon()
    told[0].rotate(Key.new(), "cora")
    forms = {r"^analyst:.*": "analyst:NAME", r"^roll:\d+": "roll:NNN", r"^stream:.*": "stream:KEY"}
    keys = set(told[0].store.state()[0])
    for pattern, shown in forms.items():
        keys = {re.sub(pattern, shown, key) for key in keys}
    table = PAGE.partition("| `state` | holds |")[2].partition("\n\n")[0]
    assert {key for row in table.splitlines()[2:] for key in re.findall(r"`([^`]+)`", row.split("|")[1])} == keys
