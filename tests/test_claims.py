"""docs/claims.md stays true: every row names a file and tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def rows(text: str) -> list[tuple[str, list[str], list[str]]]:
    """(claim, files, tests) of every row of every table."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and not set(cells[0]) <= set("-: ") and cells[2] != "test":
            found.append((cells[0], re.findall(r"`([^`]+)`", cells[1]), re.findall(r"`([^`]+)`", cells[2])))
    return found


def missing(claim: str, files: list[str], tests: list[str]) -> list[str]:
    """What a row names and the project does not have."""
    homes = (ROOT / "src" / "dither", ROOT)
    problems = [f"{claim}: no file {name}" for name in files if not any((home / name).exists() for home in homes)]
    if not tests:
        problems.append(f"{claim}: no test")
    for test in tests:
        name, _, function = test.partition("::")
        path = ROOT / "tests" / name
        if not path.exists() or (function and function not in functions(path)):
            problems.append(f"{claim}: no test {test}")
    return problems


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_claim_has_its_file_and_its_test() -> None:
    claims = rows((ROOT / "docs" / "claims.md").read_text(encoding="utf-8"))
    assert len(claims) > 40
    assert [problem for row in claims for problem in missing(*row)] == []


def test_that_check_can_fail() -> None:
    text = "| theorem | file | test |\n|---|---|---|\n| noise is free | `mechanisms/free.py` | `test_claims.py::test_nothing` |"
    assert len(missing(*rows(text)[0])) == 2
