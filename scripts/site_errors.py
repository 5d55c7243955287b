"""The index of refusals: each message with its cure, from the golden file of questions and from the source.

Questions come whole, as users see them. Of all other errors the texts are read out of the source: what is said, and
the fix that is given with it. "…" stands for what an error fills in.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "sql_to_error.txt"
SOURCE = ROOT / "src" / "dither"


def page() -> str:
    lines = [
        "# Error index",
        "",
        "Search this page for the words that you see. Errors say what is wrong, where, how to fix it, and what was charged.",
        "Errors are made from the question and the catalog, never from rows, so they tell nothing about the data.",
        "",
        *classes(),
        "## Refused questions",
        "",
        "Each costs nothing. The table is made from the file of questions and errors that the tests compare.",
        "",
    ]
    for title, rows in questions().items():
        lines += [f"### {title}", "", "| you wrote | it says | the cure |", "|---|---|---|"]
        lines += [f"| {code(question)} | {cell(what)} | {cell(fix)} |" for question, what, fix in rows]
        lines.append("")
    lines += ["## All other messages", "", '"…" stands for a name, a number or a place that the message fills in.', ""]
    for area, rows in sorted(written().items()):
        lines += [
            f"### In {area}",
            "",
            "| it says | the cure |",
            "|---|---|",
            *(f"| {cell(what)} | {cell(fix)} |" for what, fix in rows),
            "",
        ]
    return "\n".join(lines)


def cell(text: str) -> str:
    return (
        text.replace("|", "&#124;")
        .replace("*", "\\*")
        .replace("<", "&lt;")
        .replace("_", "\\_")
        .replace("`", "\\`")
        .replace("\n", " ")
    )


def code(text: str) -> str:
    for character, written in {"&": "&amp;", "<": "&lt;", "|": "&#124;", "*": "&#42;", "_": "&#95;"}.items():
        text = text.replace(character, written)
    return f"<code>{text}</code>"


def classes() -> list[str]:
    """The classes of errors, with their codes."""
    from dither import errors

    lines = ["## Kinds of errors", "", "| class | code | exit code | meaning |", "|---|---|---|---|"]
    for name, value in inspect.getmembers(errors, inspect.isclass):
        if issubclass(value, errors.DitherError):
            about = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
            lines.append(f"| `{name}` | `{value.code}` | {value.exit_code} | {cell(about)} |")
    return [*lines, ""]


def questions() -> dict[str, list[tuple[str, str, str]]]:
    """(question, what, fix) by heading of the golden file; of questions with the same cure one is shown."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    title, seen = "Questions", set()
    for block in re.split(r"\n\n+", GOLDEN.read_text(encoding="utf-8")):
        lines = block.splitlines()
        while lines and lines[0].startswith("#"):
            title = lines.pop(0).lstrip("# ").strip()
        if not lines or not lines[0].startswith("ask> "):
            continue
        text = "\n".join(lines[1:])
        fix = re.search(r"Fix: (.*?)\s+Charged:", text, re.S)
        what = lines[1] if len(lines) > 1 else ""
        if fix and (title, fix[1]) not in seen:
            seen.add((title, fix[1]))
            found.setdefault(title, []).append((lines[0].removeprefix("ask> "), what, fix[1]))
    return found


def written() -> dict[str, list[tuple[str, str]]]:
    """(what, fix) of the errors in the source, by package; those of questions are in the golden file."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        area = parts[0] if len(parts) > 1 else "dither"
        if area in {"query", "audit"} or path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            row = message(node)
            if row and row not in found.setdefault(area, []):
                found[area].append(row)
    return {area: rows for area, rows in found.items() if rows}


def message(node: ast.AST) -> tuple[str, str] | None:
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    fix = next((text(each.value) for each in node.keywords if each.arg == "fix"), "")
    what = text(node.args[0])
    if not name.endswith("Error") or not fix or not re.search(r"\w{3}", what):
        return None
    return what, fix


def text(node: ast.expr) -> str:
    """The words of an expression, with … for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text(each) if isinstance(each, ast.Constant) else "…" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text(node.left) + text(node.right)
    if isinstance(node, ast.IfExp):
        return f"{text(node.body)} / {text(node.orelse)}"
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "of":
        return re.sub(r"\{\w+\}", "…", text(node.args[0])) if node.args else "…"
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "extra" and node.args:
        return f"pip install 'dither[{text(node.args[0])}]'."
    return "…"
