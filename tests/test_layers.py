"""Who may import whom, read from the source and compared with the table of the design.

import-linter checks the same in `make check`; this test states the table itself, so that a package which is
missing from the table fails too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "dither"

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "text": set(),
    "process": set(),
    "exact": set(),
    "privacy": {"exact"},
    "mechanisms": {"exact", "privacy"},
    "query": {"exact"},  # numbers, and nothing else of it: see below
    "engines": {"query"},
    "ledger": {"privacy", "exact"},
    "planning": {"query", "mechanisms", "privacy", "exact"},
    "diagnosis": set(),
    "plots_answer": set(),
    "answer": {"planning", "ledger", "query", "exact", "plots_answer"},
    "books": {"diagnosis", "ledger", "engines", "query"},
    "session": {"diagnosis", "standing", "ledger", "planning", "privacy"},
    "quote": {"planning"},
    "standing": {"ledger", "planning", "query", "privacy", "exact"},
    "steps": {"engines", "planning", "query", "privacy", "exact"},
    "curator": {
        "answer",
        "books",
        "diagnosis",
        "session",
        "quote",
        "standing",
        "steps",
        "query",
        "engines",
        "planning",
        "ledger",
        "mechanisms",
        "privacy",
        "exact",
    },
    "plots": {"exact", "privacy", "mechanisms"},
    "demo": {"dither"},
    "audit": {
        *("dither", "exact", "privacy", "mechanisms", "query", "engines", "ledger", "planning"),
        *("plots_answer", "answer", "books", "curator", "plots", "steps"),
    },
    "cli": {
        *("dither", "diagnosis", "demo", "audit", "plots", "curator", "answer", "standing"),
        *("ledger", "query", "privacy", "exact"),
    },
    "__init__": {"curator", "ledger", "exact", "privacy", "mechanisms", "query"},
}


def imported(path: Path) -> set[str]:
    """The packages of ours that a file names in an import, wherever in the file it stands.

    A text that reads as the name of a module of ours counts too: what is loaded by its name, later, is imported all the same.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                raise AssertionError(f"{path}: a relative import hides where a name comes from")
            names = [base] if base != "dither" else [_from_root(alias.name) for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"dither(\.\w+)+", node.value):
            names = [node.value]
        for name in names:
            if name.startswith("dither."):
                found.add(name.split(".")[1])
            elif name == "dither":
                found.add("dither")
    return found


def _from_root(name: str) -> str:
    """`from dither import demo` names a file of ours; `from dither import Geometric` uses the public surface."""
    return f"dither.{name}" if (ROOT / name).exists() or (ROOT / f"{name}.py").exists() else "dither"


def breaches(package: str, files: list[Path]) -> list[str]:
    allowed = MAY_IMPORT[package] | {package, "errors", "text", "process"}
    return [f"{path.name} imports {name}" for path in files for name in sorted(imported(path) - allowed)]


def packages() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        found.setdefault(path.relative_to(ROOT).parts[0].removesuffix(".py"), []).append(path)
    return found


def test_every_package_is_in_the_table() -> None:
    assert set(packages()) == set(MAY_IMPORT)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_packages_import_only_what_the_table_allows(package: str) -> None:
    assert breaches(package, packages()[package]) == []


@pytest.mark.parametrize("package", ["query", "ledger"])
def test_questions_and_the_ledger_know_numbers_and_no_dice(package: str) -> None:
    """`exact.numbers` reads and writes what a person writes; the rest of `exact` draws."""
    for path in packages()[package]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dither.exact"):
                assert node.module == "dither.exact.numbers", path.name
            elif isinstance(node, ast.Import):
                assert not any(alias.name.startswith("dither.exact") for alias in node.names), path.name


def test_that_check_can_fail(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from dither.mechanisms import Geometric\n    return Geometric\n", encoding="utf-8")
    assert breaches("exact", [wrong]) == ["wrong.py imports mechanisms"]


def test_a_module_that_is_loaded_by_its_name_counts(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('HOMES = {"dither.mechanisms": ("Geometric",)}\n', encoding="utf-8")
    assert breaches("query", [wrong]) == ["wrong.py imports mechanisms"]


def test_what_the_public_names_load_never_loads_the_public_names() -> None:
    """`dither._load` holds a lock while it loads: a file that came back to `dither` for a name could wait for itself."""
    surface = packages()["__init__"]
    reached, ahead = set[str](), {name for path in surface for name in imported(path)}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= {more for path in packages()[name] for more in imported(path)} - reached
    assert "curator" in reached
    assert reached.isdisjoint({"dither", "cli", "demo", "plots", "audit"})


def test_nothing_imports_the_recorded_stream() -> None:
    """Nothing but the auditor, which runs code twice with the same draws on data it made up."""
    others = [files for package, files in packages().items() if package != "audit"]
    importers = [path.name for files in others for path in files if "replay" in _modules(path)]
    assert importers == []


def _modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} | set((node.module or "").split("."))
        elif isinstance(node, ast.Import):
            found |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"dither(\.\w+)+", node.value):
            found |= set(node.value.split("."))
    return found
