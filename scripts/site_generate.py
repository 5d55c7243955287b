"""Makes the reference pages that follow from the code: functions, refusals, commands, the API, and the claims.

`pages` returns them as {path under docs/: Markdown}. Nothing here is written into the repository.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import site_errors

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "docs" / "claims.md"

# The pages of the API: title, what they are for, and the public names in order of use. tests/test_site.py finds missing ones.
API: dict[str, tuple[str, str, str]] = {
    "open": ("Open and ask", "Open a catalog, ask, read answers.", "open Curator connect Remote Receipt"),
    "declare": ("Declare data", "Catalogs in Python.", "Catalog Table Rows Budget between values column"),
    "write": (
        "Write questions in Python",
        "The aggregates of `survey.table(...).agg(...)`.",
        "count count_distinct count_units sum_ mean median quantile min_ max_ variance stddev clipped",
    ),
    "errors": (
        "Errors",
        "What a user can cause. [Each refusal with its cure](../errors.md).",
        "DitherError QueryError CatalogError BudgetError LedgerError EngineError ArgumentError PriceError "
        "AccessError ApprovalError BusyError ClosedError ConflictError RequestError RemoteError",
    ),
    "mechanisms": (
        "Mechanisms",
        "Noise and its price in one object.",
        "Geometric Laplace Gaussian TruncatedGeometric Threshold RandomizedResponse Exponential PermuteAndFlip NoisyMax "
        "SparseVector Structured spaces Channel Compose Adaptive Oblivious L1 L2 PerCoordinate",
    ),
    "losses": (
        "Losses and accounting",
        "What releases give away together.",
        "Pure Approx ZCDP Curve total parallel postprocess PureFilter ApproxFilter ZCDPFilter Odometer AddRemove Replace Group "
        "verify profile parts events guarantees leakage sensitivity",
    ),
    "many": (
        "Many questions and streams",
        "Workloads, running sums and traced programs.",
        "Workload tradeoff RunningSum trace records StatisticalQueries",
    ),
    "other": (
        "Local, metric and graph privacy",
        "Without a trusted curator; by distance; for edges and nodes.",
        "LocalSurvey LocalClient Aggregator HeavyHitters shuffled_epsilon shuffled_delta PlanarLaplace MetricExponential "
        "MetricGrid LocalMap PerDistance Graph",
    ),
}
# Behind these names is a module, whose public parts are shown.
MODULES = {"spaces", "parts", "events", "guarantees", "leakage", "sensitivity"}
# What `open`, `ask` and `quote` return; not public names, but every reader meets them.
RETURNED = {"open": ("dither.answer.Answer", "dither.answer.Quote", "dither.standing.Standing")}


def pages() -> dict[str, str]:
    found = {
        "reference/functions.md": functions(),
        "reference/errors.md": site_errors.page(),
        "reference/commands.md": commands(),
    }
    found |= {f"reference/api/{name}.md": api(name) for name in API}
    return found | {f"explanation/claims/{name}.md": text for name, text in claims().items()}


# --- functions --------------------------------------------------------------------------------------------------


def functions() -> str:
    """Every function, from the registries of aggregates, functions and words."""
    from dither.query import nodes
    from dither.query.functions.registry import FUNCTIONS
    from dither.query.sql.words import ADVICE
    from dither.query.sql.words import FUNCTIONS as WORDS

    lines = [
        "# SQL functions",
        "",
        "Made from the registries that dither reads. With examples: [all functions](../queries.md#all-functions).",
        "",
        "## Aggregates",
        "",
        "| write | over | with noise | inside one person |",
        "|---|---|---|---|",
    ]
    for entry in nodes.FUNCTIONS.values():
        words = ", ".join(f"`{word}`" for word in entry.words)
        lines.append(
            f"| {words} | {'two columns of ' if entry.pair else ''}{entry.of} | {yes(entry.private)} | {yes(entry.per_unit)} |"
        )
    lines += ["", "Window functions, inside one person: " + ", ".join(f"`{name.upper()}`" for name in nodes.WINDOWS) + ".", ""]
    lines += ["## Functions of a row", "", "| function | words | arguments | meaning | NULL in |", "|---|---|---|---|---|"]
    for name, function in sorted(FUNCTIONS.items()):
        words = ", ".join(f"`{word}`" for word, meant in WORDS.items() if meant == name) or "an operator or a form of SQL"
        accepts = ", ".join(function.accepts) + ("" if function.most == len(function.accepts) else ", …")
        lines.append(
            f"| `{name}` | {words} | {accepts} | {cell(function.meaning)} | {'NULL' if function.strict else 'see the page'} |"
        )
    lines += ["", "## Words that are not answered", "", "| word | why | instead |", "|---|---|---|"]
    for word, (why, instead) in sorted(ADVICE.items()):
        told = instead.replace("{now}", "write the day as a constant: DATE '2026-01-31'.")
        lines.append(f"| `{word}` | {cell(why.replace('{name}', word))} | {cell(told)} |")
    return "\n".join(lines) + "\n"


def yes(value: bool) -> str:
    return "yes" if value else "no"


def cell(text: str) -> str:
    """Text inside a table."""
    return text.replace("|", "&#124;").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")


# --- commands ---------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command, from the application that also prints the help and completes in shells."""
    import typer

    from dither.cli import app

    root: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "From the same source as `dither --help` and completion. [A tour](../command-line.md) shows them at work,",
        "and has the [exit codes](../command-line.md#output-and-exit-codes).",
        "",
    ]
    context = root.make_context("dither", [], resilient_parsing=True)
    for name in root.list_commands(context):
        lines += command(f"dither {name}", root.commands[name])
    return "\n".join(lines)


def command(name: str, entry: Any, depth: int = 2) -> list[str]:
    lines = [f"{'#' * depth} {name}", "", cell(entry.help or ""), ""]
    if hasattr(entry, "commands"):
        for inner, below in entry.commands.items():
            lines += command(f"{name} {inner}", below, depth + 1)
        return lines
    shown = [each for each in entry.params if not getattr(each, "hidden", False) and each.name != "help"]
    if shown:
        lines += ["| option | what | default |", "|---|---|---|"]
    for each in shown:
        written = (
            ", ".join(f"`{word}`" for word in [*each.opts, *each.secondary_opts])
            if each.param_type_name == "option"
            else f"`{each.name.upper()}`"
        )
        default = (
            "required"
            if each.required
            else ""
            if each.default in (None, "", False) or callable(each.default)
            else f"`{each.default}`"
        )
        lines.append(f"| {written} | {cell(getattr(each, 'help', None) or '')} | {default} |")
    return [*lines, ""]


# --- the API ----------------------------------------------------------------------------------------------------


def api(name: str) -> str:
    title, about, names = API[name]
    lines = [f"# {title}", "", about, ""]
    for each in names.split():
        path = f"{home(each)}.{each}"
        if each in MODULES:
            lines += [f"## {each}", "", f"::: {module_of(each)}", "    options:", "      show_root_heading: false", ""]
        else:
            lines += [f"::: {path}", "    options:", "      heading_level: 2", ""]
    for path in RETURNED.get(name, ()):
        lines += [f"::: {path}", "    options:", "      heading_level: 2", ""]
    return "\n".join(lines)


def home(name: str) -> str:
    """The module in which a public name is defined."""
    import dither

    value = getattr(dither, name)
    return str(getattr(value, "__module__", "dither"))


def module_of(name: str) -> str:
    import dither

    return str(getattr(dither, name).__name__)


# --- claims -----------------------------------------------------------------------------------------------------


@cache
def claims() -> dict[str, str]:
    """A page for each section of the claims: what is claimed, where, and the test that shows it."""
    found = {}
    for part in CLAIMS.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        rows = [[each.strip() for each in line.strip("|").split(" | ")] for line in body.splitlines() if line.startswith("| ")]
        rows = [row for row in rows if len(row) == 3 and row[0] != "claim"]
        lines = [
            f"# {title}",
            "",
            f"{len(rows)} claims, each with the file that relies on it and the tests that would fail if it were wrong.",
            "",
        ]
        for what, files, tests in rows:
            lines += claim(what, files, tests)
        found[re.sub(r"\W+", "-", title.lower()).strip("-")] = "\n".join(lines)
    return found


def claim(what: str, files: str, tests: str) -> list[str]:
    names = re.findall(r"`([^`]+)`", tests)
    lines = [f"**{what[0].upper()}{what[1:]}** ({files})", "", *(f"- `{name}`" for name in names), ""]
    example = next((source for name in names for source in [short(name)] if source), "")
    if example:
        lines += [
            '??? example "The first short test"',
            "",
            "    ```python",
            *(f"    {line}" for line in example.splitlines()),
            "    ```",
            "",
        ]
    return lines


def short(test: str) -> str:
    """The source of a test of at most fourteen lines, or nothing."""
    path, _, function = test.partition("::")
    place = ROOT / "tests" / path
    if not function or not place.exists():
        return ""
    first, last = defined(place).get(function, (0, 99))
    return "\n".join(place.read_text(encoding="utf-8").splitlines()[first - 1 : last]) if last - first < 14 else ""


@cache
def defined(path: Path) -> dict[str, tuple[int, int]]:
    """The first and the last line of every function of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: (node.lineno, node.end_lineno or 0) for node in tree.body if isinstance(node, ast.FunctionDef)}
