"""A draft proposes references by names, kinds and the data at hand, and never the wrong way round."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither import workspace
from dither.catalog.check import check
from dither.catalog.draft import draft, references
from dither.catalog.file import parse
from dither.catalog.reading import DEFAULT
from dither.engines.duckdb.sources import schema
from dither.engines.registry import read_keys


def repeated(count: int, values: int) -> list[int]:
    return (np.arange(count) * 7 % values).tolist()


TPCH = {
    "nation": {"n_nationkey": list(range(25)), "n_name": ["x"] * 25, "n_regionkey": repeated(25, 5)},
    "region": {"r_regionkey": list(range(5)), "r_name": ["x"] * 5},
    "customer": {"c_custkey": list(range(90)), "c_nationkey": repeated(90, 25)},
    "orders": {"o_orderkey": list(range(0, 800, 2)), "o_custkey": repeated(400, 90)},
    "lineitem": {"l_orderkey": [2 * n for n in repeated(999, 400)], "l_partkey": repeated(999, 60), "l_qty": repeated(999, 50)},
    "part": {"p_partkey": list(range(60)), "p_size": repeated(60, 9)},
    "partsupp": {"ps_partkey": repeated(120, 60), "ps_suppkey": repeated(120, 20)},
    "supplier": {"s_suppkey": list(range(20)), "s_nationkey": repeated(20, 25)},
}
CHINOOK = {
    "Artist": {"ArtistId": list(range(9)), "Name": ["x"] * 9},
    "Album": {"AlbumId": list(range(30)), "Title": ["x"] * 30, "ArtistId": repeated(30, 9)},
    "Track": {"TrackId": list(range(200)), "Name": ["x"] * 200, "AlbumId": repeated(200, 30)},
    "InvoiceLine": {"InvoiceLineId": list(range(300)), "InvoiceId": repeated(300, 80), "TrackId": repeated(300, 200)},
    "Invoice": {"InvoiceId": list(range(80)), "CustomerId": repeated(80, 40), "Total": [1.5] * 80},
    "Customer": {"CustomerId": list(range(40)), "SupportRepId": repeated(40, 3)},
    "Employee": {"EmployeeId": list(range(3)), "ReportsTo": [0] * 3},
}
OWN_ID = {
    "people": {"id": [f"p{n}" for n in range(30)], "age": repeated(30, 90)},
    "visits": {"id": [f"v{n}" for n in range(50)], "person_id": [f"p{n}" for n in repeated(50, 30)]},
    "drugs": {"id": [f"d{n}" for n in range(70)], "visit_id": [f"v{n}" for n in repeated(70, 50)]},
}
# (the tables, the unit, the references that are right)
KNOWN = [
    (TPCH, "c_custkey", {"orders": "o_custkey -> customer.c_custkey", "lineitem": "l_orderkey -> orders.o_orderkey"}),
    (
        CHINOOK,
        "CustomerId",
        {"Invoice": "CustomerId -> Customer.CustomerId", "InvoiceLine": "InvoiceId -> Invoice.InvoiceId"},
    ),
]


def written(tables: dict[str, dict[str, list[Any]]], folder: Path, ending: str = "parquet") -> list[str]:
    for name, columns in tables.items():
        table, file = pa.table(columns), folder / f"{name}.{ending}"
        pq.write_table(table, file) if ending == "parquet" else pacsv.write_csv(table, file)
    return [str(folder / f"{name}.{ending}") for name in tables]


def proposed(text: str) -> dict[str, str]:
    """Returns the proposed references of a draft, by table."""
    found = {}
    for part in re.split(r"\n(?=\[tables\.\w+\]\n)", text)[1:]:
        name = part.partition("]")[0].removeprefix("[tables.")
        for column, parent in re.findall(r'^# unit = \{ column = "(\w+)", references = "([\w.]+)" \}', part, re.MULTILINE):
            if parent != "TABLE.COLUMN":
                found[name] = f"{column} -> {parent}"
    return found


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(("tables", "unit", "right"), KNOWN, ids=["tpch", "chinook"])
@pytest.mark.parametrize("backwards", [False, True])
def test_references_are_found(
    tables: dict[str, Any], unit: str, right: dict[str, str], ending: str, backwards: bool, tmp_path: Path
) -> None:
    sources = written(tables, tmp_path, ending)
    assert proposed(workspace.draft(sources[::-1] if backwards else sources, unit)) == right


def test_a_reference_to_a_tables_own_id(tmp_path: Path) -> None:
    sources = written(OWN_ID, tmp_path)
    places = {name: (source, DEFAULT, schema(source)) for name, source in zip(OWN_ID, sources, strict=True)}
    with read_keys(places) as keys:
        found = references({name: kinds for name, (_, _, kinds) in places.items()}, "person_id", keys)
    assert found["drugs"] == [("visit_id", ("visits", "id"))]


def test_a_draft_with_its_references_opens_and_answers(tmp_path: Path) -> None:
    text = workspace.draft(written(TPCH, tmp_path), "c_custkey")
    lines = []
    for line in text.splitlines():
        opened = line.startswith(("# unit = { column =", "# max_rows", "# max_groups")) and "TABLE.COLUMN" not in line
        lines.append(line.removeprefix("# ") if opened else line)
    parts = re.split(r"\n(?=\[tables\.\w+\]\n)", "\n".join(lines) + "\n")
    kept = [part for part in parts if not part.startswith("[tables.") or "\nunit = " in part]
    (tmp_path / "catalog.toml").write_text("\n".join(kept), encoding="utf-8")
    assert check(tmp_path / "catalog.toml", schema) == []
    with dt.open(tmp_path / "catalog.toml", ledger=":memory:") as survey:
        assert survey.ask("SELECT COUNT(*) AS n FROM lineitem", epsilon=1).columns == ("n",)
        assert survey.catalog.tables["customer"].key == "c_custkey"


# --- the data decides -------------------------------------------------------------------------------------------

WRONG_WAY = {
    "users": {"user_id": list(range(40)), "age": repeated(40, 90)},
    "plays": {"user_id": repeated(200, 40), "song_code": repeated(200, 30)},
    "music": {"song_code": list(range(30)), "title": ["x"] * 30},
}


def test_only_a_column_without_repeated_values_is_referred_to(tmp_path: Path) -> None:
    sources = written(WRONG_WAY, tmp_path)
    assert proposed(workspace.draft(sources, "user_id")) == {"plays": "user_id -> users.user_id"}


def test_names_alone_would_point_the_wrong_way(tmp_path: Path) -> None:
    """The twin: without the data, music seems to belong to those who play it."""
    found = proposed(draft(written(WRONG_WAY, tmp_path), "user_id", schema))
    assert found["music"] == "song_code -> plays.song_code"


def test_values_of_another_column_are_no_reference(tmp_path: Path) -> None:
    odd = {**WRONG_WAY, "plays": {"user_id": [1000 + n for n in repeated(200, 40)], "song_code": repeated(200, 30)}}
    assert proposed(workspace.draft(written(odd, tmp_path), "user_id")) == {}


def test_where_nobody_is_listed_once_nothing_is_referred_to(tmp_path: Path) -> None:
    tables = {"a": {"user_id": [1, 1, 2]}, "b": {"user_id": [1, 2, 2]}}
    assert proposed(workspace.draft(written(tables, tmp_path), "user_id")) == {}


def test_data_that_cannot_be_read_is_drafted_by_names(tmp_path: Path) -> None:
    sources = written(WRONG_WAY, tmp_path, "csv")
    Path(sources[0]).write_text('user_id,age\n1,"open\n', encoding="utf-8")
    assert "plays" in proposed(workspace.draft(sources, "user_id"))


def test_people_with_one_row_get_a_key(tmp_path: Path) -> None:
    tables = parse(workspace.draft(written({"a": {"id": [1, 2]}, "b": {"id": [1, 1]}}, tmp_path), "id")).tables
    assert (tables["a"].key, tables["a"].max_rows, tables["b"].key) == ("id", 1, None)


def test_comments_are_short_and_not_repeated(tmp_path: Path) -> None:
    text = workspace.draft(written(CHINOOK, tmp_path), "CustomerId")
    columns = [line for line in text.splitlines() if re.match(r"\w+ = \{\}", line)]
    assert columns
    assert max(map(len, columns)) < 50
    assert "if it holds numbers" not in text
    assert "CSV" not in text  # nothing about kinds of files that are not there
