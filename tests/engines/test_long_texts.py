"""Text functions agree on generated patterns, and take time in proportion to a cell, not to its square."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DIALECT
from dither.engines.sql.frame import Frame
from dither.engines.sql.relations import relation
from dither.query.functions.registry import FUNCTIONS, evaluate
from dither.query.nodes import Call, Column, Expression, Literal, Scan
from engines.places import Place, fit
from engines.tables import arrow, in_duckdb
from engines.test_functions_agree import possible, values_of

LETTERS = st.sampled_from(["a", "b", "A", "é", "😀", "\0", "\n", "\\", "%", "_", "'", "."])
PATTERNS = st.lists(st.sampled_from(["%", "_", "a", "b", "A", "é", "😀", "\0", "\n", "\\", "%a", "_b%", "'"]), max_size=8)


@pytest.mark.slow
@given(pattern=PATTERNS.map("".join), texts=st.lists(st.lists(LETTERS, max_size=9).map("".join), min_size=1, max_size=30))
def test_patterns_mean_the_same_in_all_engines(place: Place, pattern: str, texts: list[str]) -> None:
    like = Call("like", (Column("p.t"), Literal(pattern)))
    assume(possible(place, like))
    table: list[dict[str, Any]] = fit(place, [{"p.t": text} for text in texts])
    assert values_of(place, like, table) == [evaluate(like, row) for row in table]


CELLS = {"one letter": "a" * 2048, "two letters": "ab" * 1024, "wide": "é" * 2048}
PATTERN = {"like": ["%" + "a_" * 100 + "c%", "%a_%a_%a_%a_%c", "%a%a%a%b%c", "%_a" * 30 + "c"], "contains": ["a" * 1000 + "c"]}


def calls() -> list[Expression]:
    found: list[Expression] = []
    for name, function in FUNCTIONS.items():
        if "text" not in function.accepted(0) or name in ("case", "date_trunc"):
            continue
        constants = {"substr": [(2, 9000)], "starts_with": [("a" * 99,)], "in_list": [("a",)]}.get(name, [])
        constants += [(pattern,) for pattern in PATTERN.get(name, [])]
        others = constants or [(Literal("a"),) * (function.least - 1)]
        for rest in others:
            parts = (part if isinstance(part, Literal) else Literal(part) for part in rest)
            found.append(Call(name, (Column("t.t"), *parts)))
    return found


@pytest.mark.long  # it looks at the clock
@pytest.mark.parametrize("cell", CELLS)
def test_no_function_is_slow_on_a_long_cell(cell: str) -> None:
    """A hundred times the cell may take a hundred times as long, and some; by its square it would be ten thousand times."""
    for call in calls():
        taken = []
        for size in (1, 100):
            engine = in_duckdb({"t": arrow([{"t": CELLS[cell] * size}], {"t": "text"})}, threads=1)
            scanned = relation(Scan("t", "t"), lambda name, engine=engine: list(engine.schema(name).items()), DIALECT)
            frame = Frame(scanned, DIALECT)
            text = f"SELECT count({frame.print(call).text}) FROM {frame.source()}"
            times = []
            for _ in range(5):
                start = time.perf_counter()
                engine._connection.execute(text).fetchall()
                times.append(time.perf_counter() - start)
            taken.append(min(times))
        assert taken[1] < 1000 * taken[0] + 0.05, (call, taken)
