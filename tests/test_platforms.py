"""Windows and macOS: dither was never run there. These tests fake what they lack, and look for what nothing guards.

What a faked platform cannot show (file locks, signals, the console) is stated in docs/deciders/checklist.md.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dither"
# Names that Windows lacks.
MISSING = {
    "os": {
        "O_CLOEXEC",
        "O_NOFOLLOW",
        "O_DIRECTORY",
        "fchmod",
        "fork",
        "getuid",
        "register_at_fork",
        "sched_getaffinity",
        "killpg",
    },
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "setitimer", "ITIMER_REAL", "pthread_sigmask"},
    "time": {"tzset"},
}
MODULES = {"fcntl", "pwd", "grp", "resource", "termios"}
# How files guard them that do not ask hasattr for the very name.
GUARDED = {
    "audit/blackbox/attack.py": 'not hasattr(signal, "setitimer")',
    "engines/duckdb/spill.py": "if fcntl is None:",
    "diagnosis.py": 'if os.name == "posix":',
    "server/wire/twin.py": 'if os.name != "posix":',
}


def unguarded(path: Path, name: str) -> list[str]:
    """Uses of names that Windows lacks in a file that does not ask whether they are there."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    tried = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    safe = {id(inner) for node in tried for inner in ast.walk(node) if isinstance(inner, ast.Import)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in safe:
            found += [f"{name}:{node.lineno}: import {each.name}" for each in node.names if each.name in MODULES]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, attribute = node.value.id, node.attr
            if attribute in MISSING.get(module, ()) and f'hasattr({module}, "{attribute}")' not in text:
                found.append(f"{name}:{node.lineno}: {module}.{attribute}")
    return [] if name in GUARDED and GUARDED[name] in text else found


def test_nothing_that_windows_lacks_is_used_without_a_guard() -> None:
    found = [each for path in sorted(SOURCE.rglob("*.py")) for each in unguarded(path, path.relative_to(SOURCE).as_posix())]
    assert found == []


def test_that_check_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import fcntl, os\nos.fchmod(1, 0)\n", encoding="utf-8")
    assert len(unguarded(tmp_path / "a.py", "a.py")) == 2
    (tmp_path / "b.py").write_text("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None\n", encoding="utf-8")
    assert unguarded(tmp_path / "b.py", "b.py") == []


WINDOWS = """
import builtins, os, signal, sys
for module, names in (("os", {os}), ("signal", {signal})):
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
real = builtins.__import__
def without(name, *rest, **more):
    if name in {modules} and "dither" in str(rest[0].get("__name__", "") if rest and rest[0] else ""):
        raise ImportError(name)
    return real(name, *rest, **more)
builtins.__import__ = without
"""

STORY = """
import dither as dt
from pathlib import Path
table = dt.Table({"id": list(range(500))}, unit="id", key="id")
catalog = dt.Catalog(tables={"t": table}, budget=dt.Budget(epsilon=1))
with dt.open(catalog, ledger=str(Path("a folder") / "x.ledger"), make=True) as survey:
    first = survey.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
with dt.open(catalog, ledger=str(Path("a folder") / "x.ledger")) as survey:
    assert survey.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.5").rows == first.rows
    print(survey.budget)
"""


@pytest.mark.slow
def test_a_question_is_answered_without_what_windows_lacks(tmp_path: Path) -> None:
    """os.name stays as it is: pathlib and sqlite3 would look for the real Windows."""
    (tmp_path / "a folder").mkdir()
    lacking = WINDOWS.format(os=sorted(MISSING["os"]), signal=sorted(MISSING["signal"]), modules=sorted(MODULES))
    loaded = "import numpy, pyarrow, duckdb, cryptography.hazmat.primitives.asymmetric.ed25519, asyncio, subprocess\n"
    done = subprocess.run(
        [sys.executable, "-c", loaded + lacking + STORY], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "total ε = 1; spent ε = 0.5; left ε = 0.5\n"


def test_folders_are_synced_where_they_can_be_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dither import process

    opened: list[object] = []
    monkeypatch.setattr(process.os, "open", lambda *given: opened.append(given) or os.dup(0))
    monkeypatch.setattr(process.os, "fsync", lambda number: None)
    process.sync_folder(tmp_path)
    assert len(opened) == 1
    monkeypatch.setattr(process.os, "name", "nt")
    process.sync_folder(tmp_path)
    monkeypatch.setattr(process.os, "name", "posix")
    assert len(opened) == 1


def test_paths_in_catalogs_may_be_written_with_either_slash() -> None:
    """No code joins paths with "/" by hand, except addresses and SQL."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if "os.path.join(" in line and '"/"' in line:
                found.append(f"{path.name}:{number}")
    assert found == []
