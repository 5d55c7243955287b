"""Prints the path of one question: the value after each step, as docs/architecture.md shows it.

    python scripts/path.py

The question is the one of scripts/walk.py, on 1000 made-up people. Wraps each step of the curator
and records its value. The output is the same on every run: the noise comes from a recorded stream, and "…" replaces what
differs from ledger to ledger (keys, hashes, nonces, times).
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import dither as dt
from dither.engines.base import Engine
from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.work import statements
from dither.exact import replay
from dither.planning.outputs import explain
from dither.query.show import show_query
from dither.query.work import Group, Work
from walk import QUESTION, survey

PEOPLE = range(1000)
ROWS: dict[str, list[Any]] = {
    "person": list(PEOPLE),
    "r": ["north" if person % 5 < 3 else "south" for person in PEOPLE],
    "age": [20 + person * 7 % 50 for person in PEOPLE],
}
WIDTH = 118
CLAUSE = re.compile(
    r" (?=FROM|WHERE|GROUP BY|HAVING|UNION ALL|SEMI JOIN|ANTI JOIN)"
    r"|(?<=[()])\s*(?=SELECT)|(?<=, )(?=\w+ AS (?:MAT|\()|CAST\(CASE)"
)
HIDDEN = ("catalog", "digest", "hash", "ledger", "nonce", "plan", "previous", "reserved_hash", "signature", "time", "token")


def path() -> dict[str, str]:
    """Returns the printed value of each step, in order."""
    values: dict[str, Any] = {}
    with survey(ROWS) as curator:
        watch(curator, values)
        with replay.stream(b"docs/architecture.md"):
            answer = curator.ask(QUESTION, epsilon="0.5", left_out=False)
        values["committed"] = last_entry(curator)
        (plan,) = values["plan"].plans
        (statement,) = statements(plan.work, lambda table: list(curator.engine.schema(table).items()), DIALECT)
    (noisy,) = values["release"]
    return {
        "question": QUESTION,
        "query": show_query(values["read"].query),
        "plan": fold(explain(plan, answer.confidence)),
        "work": show(plan.work),
        "sql": show_sql(statement.text),
        "reserved": show_record(values["reserved"]),
        "exact": "\n".join(
            sorted(f"{key}  {cells}" for group in values["run"] for key, cells in [(*group.key, *group.measures)])
        ),
        "noisy": "\n".join(f"{key}  {tuple(cells)}" for (key,), cells in zip(noisy.keys, noisy.cells[0].tolist(), strict=True)),
        "committed": show_record(values["committed"]),
        "answer": fold(str(answer), 0),
        "receipt": show_record({**answer.receipt.body, "signature": answer.receipt.signature}),
    }


def watch(curator: dt.Curator, values: dict[str, Any]) -> None:
    """Records the value of each step, and the last entry of the ledger when the engine is called: the charge."""

    def record(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            values[name] = step(*arguments)
            return values[name]

        return call

    def run(engine: Engine, work: Work) -> Sequence[Group]:
        values["reserved"] = last_entry(curator)
        values["run"] = groups = steps.run(engine, work)
        return groups

    steps = curator.steps
    curator.steps = dataclasses.replace(
        steps,
        read=record("read", steps.read),
        plan=record("plan", steps.plan),
        run=run,
        release=record("release", steps.release),
    )


def last_entry(curator: dt.Curator) -> dict[str, Any]:
    row = curator.ledger.store.entry(curator.ledger.head().number)
    return json.loads(row.body) if row else {}


# --- values as text ---------------------------------------------------------------------------------------------


def show(value: Any, indent: str = "") -> str:
    """Returns a frozen value as Python writes it, without default fields and spans, over several lines if it is long."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        parts = [show(each, f"{indent}    ") for each in value]
        start, end = "(", ",)" if len(parts) == 1 else ")"
    elif dataclasses.is_dataclass(value):
        fields = [field for field in dataclasses.fields(value) if field.name != "span"]
        shown = [field for field in fields if getattr(value, field.name) != field.default]
        parts = [f"{field.name}={show(getattr(value, field.name), f'{indent}    ')}" for field in shown]
        start, end = f"{type(value).__name__}(", ")"
    else:
        return repr(value)
    line = f"{start}{', '.join(parts)}{end}"
    if len(indent) + len(line) < WIDTH and "\n" not in line:
        return line
    return f"{start}\n" + "".join(f"{indent}    {part},\n" for part in parts) + f"{indent}{end[-1]}"


def show_sql(text: str) -> str:
    """Returns a statement with a line for each clause, indented by how deep it is nested."""
    lines, depth, indent = [], 0, 0
    for part in CLAUSE.split(text):
        lines += textwrap.wrap(part, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4))
        depth += part.count("(") - part.count(")")
        indent = 2 * depth
    return "\n".join(lines)


def show_record(record: dict[str, Any]) -> str:
    """Returns an entry or a receipt with a line for each field."""
    lines = (f"{name:<13} {show_field(name, value)}" for name, value in record.items())
    return fold("\n".join(lines), 14)


def show_field(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return json.dumps({key: "…" if key in HIDDEN else each for key, each in value.items()}, ensure_ascii=False)
    if name in HIDDEN:
        return "…"
    if name == "mechanisms":
        return "\n              ".join(json.dumps(each, ensure_ascii=False) for each in value)
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def fold(text: str, indent: int = 17) -> str:
    """Breaks long lines, and indents what follows."""
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent=" " * indent) for line in text.splitlines())


def main() -> int:
    for name, text in path().items():
        print(f"--- {name}\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
