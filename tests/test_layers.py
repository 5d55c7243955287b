"""Who may import whom: every import of the source, compared with the table in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dither"
TO_ALL = {"errors", "text", "process"}


def table() -> dict[str, set[str]]:
    """The table: package or folder -> what it may import."""
    rows = {}
    for line in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| `") and len(cells) == 2:
            for package in re.findall(r"`([\w/]+)`", cells[0]):
                rows[package] = set(re.findall(r"`([\w/]+)`", cells[1]))
    return rows


MAY_IMPORT = table()


def imported(path: Path) -> set[str]:
    """The modules of ours that a file names in an import, anywhere in the file, as paths: `exact/numbers`.

    A text that reads as the name of a module counts too: it may be loaded by that name later.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"{path}: a relative import hides where a name comes from")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"dither(\.\w+)+", node.value):
            found.add(node.value)
    return {_module(name) for name in found if name.split(".")[0] == "dither"}


def _module(name: str) -> str:
    """`exact/numbers` for dither.exact.numbers.show; `dither` for a public name."""
    parts = name.split(".")[1:]
    while parts and not (SOURCE.joinpath(*parts).is_dir() or SOURCE.joinpath(*parts).with_suffix(".py").exists()):
        parts.pop()
    return "/".join(parts) or "dither"


def row_of(file: str) -> str:
    """The most specific row for a file."""
    name = "dither" if file == "__init__.py" else file.removesuffix(".py")
    rows = [row for row in MAY_IMPORT if name == row or name.startswith(f"{row}/")]
    assert rows, f"{file} has no row in docs/architecture.md"
    return max(rows, key=len)


def breaches(row: str, files: list[Path]) -> Iterator[str]:
    allowed = MAY_IMPORT[row] | {row} | TO_ALL
    for path in files:
        for name in sorted(imported(path)):
            if not any(name == each or name.startswith(f"{each}/") for each in allowed):
                yield f"{path.name} imports {name}"


def files() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        found.setdefault(row_of(path.relative_to(SOURCE).as_posix()), []).append(path)
    return found


def test_every_package_has_one_row_and_every_row_a_package() -> None:
    assert set(files()) == set(MAY_IMPORT)


@pytest.mark.parametrize("row", sorted(MAY_IMPORT))
def test_packages_import_only_what_the_table_allows(row: str) -> None:
    assert list(breaches(row, files()[row])) == []


@pytest.mark.parametrize("row", sorted(MAY_IMPORT))
def test_the_table_allows_no_more_than_is_used(row: str) -> None:
    used = {name for path in files()[row] for name in imported(path)}
    assert [each for each in MAY_IMPORT[row] if not any(f"{name}/".startswith(f"{each}/") for name in used)] == []


def test_that_check_can_fail(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from dither.mechanisms import Geometric\n    return Geometric\n", encoding="utf-8")
    assert list(breaches("exact", [wrong])) == ["wrong.py imports mechanisms"]


def test_one_allowed_module_does_not_open_its_package(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from dither.exact import entropy, numbers\n", encoding="utf-8")
    assert list(breaches("query", [wrong])) == ["wrong.py imports exact/entropy"]


def test_a_module_that_is_loaded_by_its_name_counts(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('HOMES = {"dither.mechanisms": ("Geometric",)}\n', encoding="utf-8")
    assert list(breaches("query", [wrong])) == ["wrong.py imports mechanisms"]


def test_the_table_has_no_cycle() -> None:
    packages = {row: {each.split("/")[0] for each in allowed} for row, allowed in MAY_IMPORT.items() if "/" not in row}
    while packages:
        free = [row for row, allowed in packages.items() if not allowed & packages.keys() - {row}]
        assert free, packages
        for row in free:
            del packages[row]


def test_what_the_public_names_load_never_loads_the_public_names() -> None:
    """`dither._load` holds a lock while it loads: a file that came back to `dither` for a name could wait for itself."""
    reached, ahead = set[str](), {name.split("/")[0] for name in MAY_IMPORT["dither"]}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= {each.split("/")[0] for each in MAY_IMPORT[name]} - reached
    assert "curator" in reached
    assert reached.isdisjoint({"dither", "cli", "demo", "audit"})


def test_nothing_but_the_auditor_imports_the_recorded_stream() -> None:
    """The auditor runs code twice with the same draws, on data it made up."""
    others = [path for path in SOURCE.rglob("*.py") if "audit" not in path.parts and path.name != "replay.py"]
    assert [path.name for path in others if "exact/replay" in imported(path)] == []
