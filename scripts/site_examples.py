"""Runs examples/*.py and renders them as pages: text, code, what it prints, and its pictures.

An example is a script whose docstring begins with a title. `# %% [markdown]` begins a cell of text, `# %%` a cell of code; a
script without cells is one. Every example runs in a process and a folder of its own. What it gave is kept in build/examples and
used again while neither the example nor the package has changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "examples"
SECONDS = 600


def scripts() -> list[Path]:
    return sorted(path for path in (ROOT / "examples").glob("*.py") if not path.name.startswith("_"))


def cells(source: str) -> list[tuple[str, str]]:
    """("text" or "code", content) of a script, without its docstring."""
    tree = ast.parse(source)
    first = tree.body[0] if tree.body else None
    lines = source.splitlines()
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
        lines = lines[first.end_lineno :]
    found: list[tuple[str, list[str]]] = [("code", [])]
    for line in lines:
        mark = re.fullmatch(r"# ?%%\s*(\[markdown\])?\s*(.*)", line)
        if mark:
            found.append(("text" if mark[1] else "code", [f"# {mark[2]}"] if mark[2] else []))
        else:
            found[-1][1].append(line)
    made = []
    for kind, content in found:
        text = "\n".join(re.sub(r"^# ?", "", line) for line in content) if kind == "text" else "\n".join(content)
        if text.strip():
            made.append((kind, text.strip("\n")))
    return made


def pages() -> dict[str, str | bytes]:
    """The page of every example, and its pictures."""
    made: dict[str, str | bytes] = {}
    for script in scripts():
        made |= page(script)
    return made


def page(script: Path) -> dict[str, str | bytes]:
    source = script.read_text(encoding="utf-8")
    title, _, about = (ast.get_docstring(ast.parse(source)) or script.stem).partition("\n")
    results, pictures = outputs(script)
    parts = [f"# {title.strip().rstrip('.')}", about.strip(), f"*Run it: `python examples/{script.name}`*"]
    for (kind, content), result in zip(cells(source), results, strict=True):
        parts.append(content if kind == "text" else f"```python\n{content}\n```")
        if result["printed"]:
            parts.append(f"```text\n{result['printed'].rstrip()}\n```")
        parts += [f"![{result['alt']}]({script.stem}/{name})" for name in result["pictures"]]
    made: dict[str, str | bytes] = {f"examples/{script.stem}.md": "\n\n".join(parts) + "\n"}
    return made | {f"examples/{script.stem}/{name}": content for name, content in pictures.items()}


def outputs(script: Path) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """What each cell printed and drew; runs the example unless that is known."""
    place = KEPT / f"{script.stem}-{digest(script)}"
    if not (place / "results.json").exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            run(script, Path(folder))
            Path(folder).rename(place)
            Path(folder).mkdir()  # for the context manager to remove
    results = json.loads((place / "results.json").read_text(encoding="utf-8"))
    names = [name for result in results for name in result["pictures"]]
    return results, {name: (place / name).read_bytes() for name in names}


def run(script: Path, folder: Path) -> None:
    """Executes the cells of an example in a process of its own; fails with what it wrote."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "scripts"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "run_cells.py"), str(script)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "agg", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stdout}\n{done.stderr}")


def digest(script: Path) -> str:
    """Of the example, its runner and the package."""
    found = hashlib.sha256()
    for path in [script, ROOT / "scripts" / "run_cells.py", *sorted((ROOT / "src" / "dither").rglob("*.py"))]:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
