"""docs/json.md shows the exact output. UPDATE_GOLDEN=1 rewrites it; read the difference."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dither as dt
from dither import errors
from dither.catalog.file import parse
from dither.catalog.report import ColumnReport, People, TableReport, to_json
from dither.planning.outputs import Noisy, table
from dither.planning.proposal import Proposal
from dither.privacy.filters import Caps, Charge, Sums
from dither.standing import Standing
from journey.hospital import built, run

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
QUESTION = "SELECT ward, COUNT(*) AS n, AVG(weight) AS kg FROM patients GROUP BY ward"


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    built(tmp_path)
    with dt.open("catalog.toml") as opened:
        yield opened


def answer(survey: dt.Curator) -> dict[str, Any]:
    """Uses fixed numbers instead of noise: 128 rows in each group, with a mean of 80."""
    found = survey.ask(QUESTION, epsilon="0.1")
    (noise,), groups = found.plan.noises, len(found.noisy.keys)
    cells = (np.tile(np.array([512, 768, 0]) * noise.of.row // 10, (groups, 1)),)
    noisy = Noisy(found.noisy.keys, cells)
    return {
        **replace(found, released=(noisy, *map(_nobody, found.released[1:])), table=table(found.plan, noisy)).as_data(),
        "receipt": {},
    }


def _nobody(noisy: Noisy) -> Noisy:
    """Nobody has a value outside the bounds."""
    return Noisy(noisy.keys, tuple(0 * cells for cells in noisy.cells))


def refused(ask: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(dt.DitherError) as caught:
        ask()
    return caught.value.as_data()


def shown(survey: dt.Curator) -> dict[str, dict[str, Any]]:
    proposal = Proposal("people", "income", 0, 110_000, 7, None, 52.5, "ε = 0.1", 12_000, Fraction(1, 10))
    column = ColumnReport("day", "date", 9000, 12, 8988, formats=("%d.%m.%Y",))
    report = TableReport("visits", 9000, (column,), "person_id", 3, (), People(1000, 20, 248, 20, 45, 1110, 5, (("ward", 7),)))
    sums = Sums().plus(Charge(Fraction(1, 10), Fraction(0), Fraction(1, 200)))
    catalog = "[budget]\nepsilon = -1\n[tables.people]\nsource = 'people.csv'\n"
    return {
        "quote": {**survey.quote(QUESTION, epsilon="0.1", assume_rows=1000).as_data(), "plan": "…"},
        "answer": answer(survey),
        "proposal": proposal.as_data(),
        "data": json.loads(to_json([report])),
        "budget": Standing(Caps.of(Fraction(1), Fraction("1e-6")), sums).as_data(),
        "argument": refused(lambda: survey.ask(QUESTION)),
        "query": refused(lambda: survey.ask("SELECT SUM(income) AS s FROM patients", epsilon=1)),
        "catalog": refused(lambda: parse(catalog)),
    }


def codes() -> str:
    """The table of the error family, which its module opens with."""
    found = re.findall(r"^    (\w+Error) +(\w+) +(\d) +(.*)$", errors.__doc__ or "", re.MULTILINE)
    head = ["| code | class | exit code | |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| `{code}` | `{name}` | {number} | {what} |" for name, code, number, what in found)])


def compact(value: Any, deep: int = 0) -> str:
    """JSON with one line for each key, so that a page stays short."""
    if isinstance(value, dict) and value and deep < 2:
        inner = ",\n".join("  " * (deep + 1) + f"{json.dumps(key)}: {compact(each, deep + 1)}" for key, each in value.items())
        return "{\n" + inner + "\n" + "  " * deep + "}"
    return json.dumps(value, ensure_ascii=False)


def test_the_page_shows_what_is_written(survey: dt.Curator) -> None:
    written = PAGE.read_text(encoding="utf-8")
    page = written
    for name, data in shown(survey).items():
        block = f"<!-- {name} -->\n```json\n{compact(data)}\n```"
        page, count = re.subn(rf"<!-- {name} -->\n```json\n.*?```", lambda _, block=block: block, page, flags=re.DOTALL)
        assert count == 1
    page = re.sub(r"<!-- codes -->\n(\n?\|.*\n)*", lambda _: f"<!-- codes -->\n\n{codes()}\n", page)
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
        return
    assert page == written


def test_texts_are_the_same_data(survey: dt.Curator) -> None:
    asked, quoted = survey.ask(QUESTION, epsilon="0.1"), survey.quote(QUESTION, epsilon="0.1")
    proposal = survey.suggest("patients.income", epsilon="0.1")
    for each in (asked, quoted, proposal, survey.budget, dt.BudgetError("No.")):
        assert json.loads(each.to_json()) == each.as_data()
    assert quoted.as_data()["entry"] is not None
    assert quoted.as_data()["refused"] is None
    assert survey.quote(QUESTION, epsilon=1000).as_data()["refused"].startswith("The budget does not allow")


def test_the_shell_writes_the_same_budget(survey: dt.Curator) -> None:
    survey.ask(QUESTION, epsilon="0.1")
    found = json.loads(run("budget", "--format", "json").stdout)
    assert found | survey.budget.as_data() == found
    assert set(found) == {"rules", "admits", "entries", "head", "closed"}
