"""Nobody reaches into another file's private names, and nobody exchanges parts of a module: the auditor included.

A name with an underscore belongs to the file that defines it. What others need of it is given by a public door: the steps of
a curator, an engine, a session.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[1] / "src" / "dither"
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public, whatever their spelling
FOREIGN = (
    "audit/replay/adapters.py",
    "audit/replay/tape.py",
    "cli/screen.py",
)  # other libraries' sources of noise, and Python's own streams: they have no door


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in NAMED_TUPLES


def defined(tree: ast.Module) -> set[str]:
    """The private names that a file defines, at any depth: functions, classes, variables and attributes of self."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and _called(node) == "object.__setattr__" and isinstance(node.args[1], ast.Constant):
            found.add(str(node.args[1].value))
    return found


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func)


def reached(tree: ast.Module) -> Iterator[str]:
    """Every private name of somebody else's that a file touches, by attribute, by import or by its text."""
    own = defined(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in own:
            yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"line {node.lineno}: imports {each.name}" for each in node.names if private(each.name))
        elif isinstance(node, ast.Call) and _called(node) in ("getattr", "setattr", "delattr", "patched"):
            for each in node.args[1:2]:
                if isinstance(each, ast.Constant) and private(str(each.value)) and each.value not in own:
                    yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and _called(node.value) == "vars":
            yield f"line {node.lineno}: {ast.unparse(node)}"


def exchanged(tree: ast.Module) -> Iterator[str]:
    """Every place where a part of a module, or of anything but oneself, is set by its name."""
    ours = {
        each.asname or each.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for each in node.names
        if (node.module or "" if isinstance(node, ast.ImportFrom) else each.name).startswith("dither")
    }
    for node in ast.walk(tree):
        if _by_name(node) or _assigns(node, ours):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _by_name(node: ast.AST) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.Call) and _called(node) in ("setattr", "delattr") and not _is_own(node.args[0])


def _assigns(node: ast.AST, ours: set[str]) -> TypeGuard[ast.expr]:
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, (ast.Store, ast.Del)):
        return False
    return isinstance(node.value, ast.Name) and node.value.id in ours


def files() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.py")) if not _named(path).startswith(FOREIGN)]


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_touches_anothers_private_names() -> None:
    found = [f"{_named(path)} {line}" for path in files() for line in reached(_tree(path))]
    assert found == [], "\n".join(found)


def test_no_file_exchanges_parts_of_a_module() -> None:
    found = [f"{_named(path)} {line}" for path in files() for line in exchanged(_tree(path))]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "curator._engine.run(work)",
        "from dither.planning.outputs import _shown",
        "getattr(curator, '_prepare')()",
        "vars(finish)['_shown']",
        "with patched(finish, '_shown', other): pass",
    ],
)
def test_that_a_reach_would_be_seen(text: str) -> None:
    assert list(reached(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import dither.a as a\na.release = other",
        "from dither import b\nb.release = other",
        "setattr(owner, name, value)",
        "from dither import b\ndel b.c",
    ],
)
def test_that_an_exchange_would_be_seen(text: str) -> None:
    assert list(exchanged(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    def _b(self): pass\n    def c(self, other): return other._b()",
        "class A:\n    def __init__(self): self._b = 1\ndef c(a): return a._b",
        "row._replace(number=1)",
    ],
)
def test_that_a_files_own_names_are_its_own(text: str) -> None:
    assert list(reached(ast.parse(text))) == []
