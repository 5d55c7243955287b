"""A draft proposes references between tables from the names and kinds of columns, in comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.catalog.check import check
from dither.catalog.draft import draft, references
from dither.catalog.file import parse, read
from dither.engines.duckdb.sources import schema
from dither.errors import CatalogError

CLINIC = {
    "visits": {"visit_id": "int", "person_id": "int", "cost": "real", "region_code": "text"},
    "people": {"person_id": "int", "age": "int"},
    "lines": {"line": "int", "drug_id": "int"},
    "drugs": {"drug_id": "int", "visit_id": "int", "dose": "real"},
    "regions": {"region_code": "text", "name": "text"},
}


def test_children_point_to_the_list_of_people_and_to_one_another() -> None:
    for order in (list(CLINIC), list(reversed(CLINIC))):
        assert references({name: CLINIC[name] for name in order}, "person_id") == {
            "visits": [("person_id", ("people", "person_id"))],
            "drugs": [("visit_id", ("visits", "visit_id"))],
            "lines": [("drug_id", ("drugs", "drug_id"))],
        }


def test_the_table_that_is_pointed_to_looks_like_a_list_of_people() -> None:
    columns = {"patient": "int", "ward": "text"}
    assert references({"stays": columns, "patients": columns}, "patient") == {"stays": [("patient", ("patients", "patient"))]}
    first = {"a": {"x": "int", "who": "int"}, "b": {"who": "int", "x": "int"}}
    assert references(first, "who") == {"a": [("who", ("b", "who"))]}
    assert references({"a": columns, "b": columns}, "patient") == {
        "b": [("patient", ("a", "patient"))]
    }  # the first that was named


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ({"id": "int"}, {"id": "text"}),  # another kind
        ({"id": "int", "age": "int"}, {"age": "int"}),  # no key by its name
        ({"id": "int", "day_no": "date"}, {"day_no": "date"}),  # of a kind that tells nothing apart
        ({"id": "int", "room_id": "int"}, {"Room_id": "int"}),  # another name
    ],
)
def test_what_is_not_alike_is_not_proposed(parent: dict[str, str], child: dict[str, str]) -> None:
    assert references({"parent": parent, "child": child}, "id") == {}


def test_where_there_is_a_choice_it_is_the_curators() -> None:
    shared = {"room_id": "int", "bed_id": "int"}
    found = references({"people": {"id": "int", **shared}, "repairs": shared}, "id")
    assert found == {"repairs": [("room_id", ("people", "room_id")), ("bed_id", ("people", "bed_id"))]}


# --- in the file ------------------------------------------------------------------------------------------------


def clinic(folder: Path) -> list[str]:
    tables: dict[str, dict[str, list[Any]]] = {
        "visits": {"visit_id": [1, 2, 3], "person_id": [1, 1, 2], "cost": [1.5, 2.5, 3.5]},
        "people": {"person_id": [1, 2], "age": [30, 40]},
        "drugs": {"drug_id": [1, 2], "visit_id": [1, 3], "dose": [0.5, 1.5]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return [str(folder / f"{name}.parquet") for name in tables]


def taken_out(text: str) -> str:
    """Uncomments a proposal and removes the line that it replaces, as a curator does."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("# unit = {") and lines[-1].startswith("unit = "):
            lines.pop()
        shown = line.startswith(("# unit = {", "# max_rows", "# max_groups"))
        lines.append(line.removeprefix("# ") if shown else line)
    return "\n".join(lines) + "\n"


def test_a_proposal_only_has_to_be_taken_out_of_its_comment(tmp_path: Path) -> None:
    text = draft(clinic(tmp_path), "person_id", schema)
    (tmp_path / "catalog.toml").write_text(taken_out(text), encoding="utf-8")
    assert check(tmp_path / "catalog.toml", schema) == []
    tables = read(tmp_path / "catalog.toml").tables
    assert {name: table.unit and table.unit.references for name, table in tables.items()} == {
        "visits": ("people", "person_id"),
        "people": None,
        "drugs": ("visits", "visit_id"),
    }
    question = "SELECT COUNT(*) AS n FROM drugs d JOIN visits v ON d.visit_id = v.visit_id"
    with dt.open(tmp_path / "catalog.toml", ledger=":memory:") as survey:
        assert survey.quote(question, epsilon="0.1").epsilon > 0


def test_until_then_nothing_is_declared(tmp_path: Path) -> None:
    sources = clinic(tmp_path)
    two = parse(draft(sources[:2], "person_id", schema)).tables
    assert [table.unit and table.unit.references for table in two.values()] == [None, None]
    with pytest.raises(CatalogError, match="drugs declares neither a unit"):
        parse(draft(sources, "person_id", schema))


def test_a_table_alone_and_rows_alone_point_nowhere(tmp_path: Path) -> None:
    sources = clinic(tmp_path)
    for text in (draft(sources[:1], "person_id", schema), draft(sources, "row", schema)):
        assert "# unit = {" not in text


def test_a_proposal_that_is_wrong_is_found_when_the_catalog_is_opened(tmp_path: Path) -> None:
    clinic(tmp_path)
    head = "[budget]\nepsilon = 1\n"
    wrong = (
        '[tables.visits]\nsource = "visits.parquet"\nunit = "person_id"\nmax_rows = 1\n'
        '[tables.people]\nsource = "people.parquet"\nmax_rows = 1\n'
        'unit = { column = "person_id", references = "visits.person_id" }\n'
    )
    (tmp_path / "catalog.toml").write_text(head + wrong, encoding="utf-8")
    with pytest.raises(dt.DitherError):
        dt.open(tmp_path / "catalog.toml", ledger=":memory:")


# --- where a CSV is one end -------------------------------------------------------------------------------------


def in_csv(folder: Path, name: str) -> list[str]:
    """Returns the clinic with one table as CSV, where all columns are text."""
    sources = clinic(folder)
    table = pq.read_table(folder / f"{name}.parquet")
    pacsv.write_csv(table, folder / f"{name}.csv")
    return [str(folder / f"{name}.csv") if source.endswith(f"{name}.parquet") else source for source in sources]


@pytest.mark.parametrize("name", ["visits", "people", "drugs"])
def test_the_number_in_a_csv_is_proposed_with_its_kind(tmp_path: Path, name: str) -> None:
    text = draft(in_csv(tmp_path, name), "person_id", schema)
    lines = [line.removeprefix("# ") if line.startswith("# person_id =") else line for line in taken_out(text).splitlines()]
    (tmp_path / "catalog.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert check(tmp_path / "catalog.toml", schema) == []
    tables = read(tmp_path / "catalog.toml").tables
    assert tables["visits"].unit.references == ("people", "person_id")  # type: ignore[union-attr]
    assert tables["drugs"].unit.references == ("visits", "visit_id")  # type: ignore[union-attr]
    with dt.open(tmp_path / "catalog.toml", ledger=":memory:") as survey:
        assert survey.ask("SELECT COUNT(*) AS n FROM drugs", epsilon="0.9").columns == ("n",)


def test_ends_of_two_kinds_are_refused_with_the_line_to_write(tmp_path: Path) -> None:
    text = taken_out(draft(in_csv(tmp_path, "visits")[:2], "person_id", schema))
    (tmp_path / "catalog.toml").write_text(text, encoding="utf-8")
    ((_, what, fix),) = check(tmp_path / "catalog.toml", schema)
    assert what == "visits.person_id is text and people.person_id is int, so no row would find its person."
    assert fix == 'write person_id = { kind = "int" } under [tables.visits.columns].'
