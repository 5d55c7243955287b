"""`dither check --data` says how rows fit the catalog, in exact numbers; to the curator's screen, and nowhere else."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import dither as dt
from dither import workspace
from dither.catalog.report import MOSTLY, ColumnReport, TableReport, to_json
from dither.catalog.values import Catalog
from dither.cli import app
from dither.engines.duckdb.report import report_data

SECRET = "Wolkenkuckucksheim"  # a cell that should be a number
CATALOG = """\
[budget]
epsilon = 9
[tables.sales]
source = "sales.csv"
unit = "customer"
max_rows = 5
max_groups = 2
key = "invoice"
[tables.sales.columns]
at = { kind = "timestamp" }
country = { values = ["UK", "France", "Spain"] }
total = { between = [0, 500] }
note = { longest = 10 }
score = { kind = "int" }
"""


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(app, words, env=environment)


def rows(count: int = 1000, broken: float = 1.0) -> list[dict[str, Any]]:
    """Invoices; `broken` is the share of them with a time that is not as declared."""
    drawn = random.Random(7)
    made = []
    for number in range(count):
        at = f"{drawn.randint(1, 12)}/{drawn.randint(13, 28)}/2010 8:{drawn.randint(10, 59)}"
        made.append(
            {
                "invoice": number,
                "customer": "" if number % 20 == 0 else (number % 3 == 0 and 7) or drawn.randint(10, 99),
                "at": at if number < broken * count else "2010-12-01 08:26:00",
                "country": drawn.choice(["UK", "France", "Spain", "Malta"]),
                "total": drawn.randint(-100, 600),
                "score": SECRET if number % 50 == 3 else number,
                "note": "n" * (50 if number % 100 == 0 else 3),
            }
        )
    return made


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(rows()).to_csv(tmp_path / "sales.csv", index=False)
    (tmp_path / "catalog.toml").write_text(CATALOG, encoding="utf-8")
    assert run("init").exit_code == 0
    return tmp_path


def reported(catalog: str | Catalog = "catalog.toml") -> dict[str, TableReport]:
    declared = workspace.read_declared(catalog)[0]
    reports, error = report_data(declared)
    assert error is None
    return {report.table: report for report in reports}


def test_shares_are_those_of_the_rows(shop: Path) -> None:
    frame = pd.DataFrame(rows())
    report = reported()["sales"]
    columns = {each.column: each for each in report.columns}
    owned = frame[frame.customer != ""]
    assert report.rows == 1000
    assert report.without_unit == 1000 - len(owned) == 50
    assert (columns["at"].missing, columns["at"].unread) == (0, 1000)
    assert columns["country"].unlisted == (~frame.country.isin(["UK", "France", "Spain"])).sum()
    assert columns["total"].outside == ((frame.total < 0) | (frame.total > 500)).sum()
    assert columns["note"].long == 10
    assert (columns["score"].missing, columns["score"].unread, columns["score"].unread_example) == (0, 20, SECRET)
    assert report.repeated == ()
    each = owned.groupby("customer").size()
    listed = owned[owned.country != "Malta"].groupby("customer").country.nunique()
    assert report.people is not None
    assert (report.people.people, report.people.most) == (len(each), each.max())
    assert (report.people.above, report.people.beyond) == ((each > 5).sum(), (each - 5).clip(lower=0).sum())
    assert report.people.groups == (("country", (listed > 2).sum()),)


def test_it_says_what_to_write(shop: Path) -> None:
    done = run("check", "--data")
    assert done.exit_code == 1
    assert "100 % of sales.at did not read as timestamp; for '1/13/2010 8:" in done.stdout
    assert 'write format = "%m/%d/%Y %H:%M"' in done.stdout
    assert "sales: 1,000 rows" in done.stdout
    assert "max_rows = 5:" in done.stdout


@pytest.mark.parametrize(("broken", "code"), [(1.0, 1), (MOSTLY, 1), (MOSTLY - 0.01, 0), (0.0, 0)])
def test_it_fails_from_98_percent(shop: Path, broken: float, code: int) -> None:
    pd.DataFrame(rows(broken=broken)).to_csv(shop / "sales.csv", index=False)
    done = run("check", "--data")
    assert done.exit_code == code
    assert ("sales.at did not read" in done.stdout) == (broken > 0)


def test_a_catalog_that_fits_has_no_problem(shop: Path) -> None:
    pd.DataFrame({"id": [1, 2], "x": [3, 4]}).to_csv(shop / "sales.csv", index=False)
    (shop / "catalog.toml").write_text(
        '[budget]\nepsilon = 9\n[tables.t]\nsource = "sales.csv"\nunit = "id"\nmax_rows = 1\n'
        "[tables.t.columns]\nx = { between = [0, 9] }\n",
        encoding="utf-8",
    )
    done = run("check", "--data")
    assert (done.exit_code, "no problems found" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("cells", "facts", "remedy"),
    [
        (["24.10.1947", "01.02.2003"], dt.column(kind="date"), 'format = "%d.%m.%Y"'),
        (["12/31/2010 8:26", "1/2/2011 9:00"], dt.column(kind="timestamp"), 'format = "%m/%d/%Y %H:%M"'),
        (["31/12/2010", "13/1/2010"], dt.column(kind="date"), 'format = "%d/%m/%Y"'),
        (["1/2/2010", "3/4/2010"], dt.column(kind="date"), 'format = "%m/%d/%Y" or format = "%d/%m/%Y"'),
        (["1,5", "1.234,25"], dt.between(0, 9999), 'decimal = ","'),
        ([" Male", " Female"], dt.values("Male", "Female"), "trim = true"),
        (["k. A.", "k. A."], dt.between(0, 9), 'na = ["k. A."]'),
        (["ja", "nein"], dt.column(kind="bool"), 'kind = "text"'),
    ],
)
def test_the_remedy_is_for_these_cells(cells: list[str], facts: Any, remedy: str) -> None:
    catalog = Catalog({"t": dt.Table({"x": cells}, unit="row", columns={"x": facts})}, dt.Budget(1))
    (warning,) = reported(catalog)["t"].warnings()
    assert f"write {remedy}" in warning or remedy in warning
    if "format" not in remedy:
        assert "'" in warning  # an example


@pytest.mark.parametrize(
    ("cells", "facts"),
    [
        (["24.10.1947", "01.02.2003"], dt.column(kind="date", format="%d.%m.%Y")),
        (["12/31/2010 8:26", "1/2/2011 9:00"], dt.column(kind="timestamp", format="%m/%d/%Y %H:%M")),
        (["1,5", "1.234,25"], dt.between(0, 9999, decimal=",", thousands=".")),
        ([" Male", " Female"], dt.values("Male", "Female", trim=True)),
        (["k. A.", "k. A.", "7"], dt.between(0, 9, na=["k. A."])),
    ],
)
def test_the_remedy_helps(cells: list[str], facts: Any) -> None:
    catalog = Catalog({"t": dt.Table({"x": cells}, unit="row", columns={"x": facts})}, dt.Budget(1))
    report = reported(catalog)["t"]
    assert list(report.warnings()) == []
    assert (report.columns[0].unread, report.columns[0].missing) == (0, cells.count("k. A."))


def test_empty_cells_are_not_those_that_do_not_read() -> None:
    frame = pd.DataFrame({"x": ["1", None, "", " ", "one"], "y": [1.0, math.nan, None, math.inf, 2.0]})
    columns = {"x": dt.column(kind="int"), "y": dt.between(0, 9)}
    (x, y) = reported(Catalog({"t": dt.Table(frame, unit="row", columns=columns)}, dt.Budget(1)))["t"].columns
    assert (x.missing, x.unread) == (3, 1)
    assert (y.missing, y.unread, y.outside) == (2, 0, 1)


def test_people_are_found_along_references() -> None:
    orders = {"order_id": np.arange(10), "person": [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]}
    lines = {"order_id": [0, 0, 1, 5, 9, 77, 77], "qty": [1, 1, 1, 1, 1, 1, 1]}  # nobody's order is 77
    unit = {"column": "order_id", "references": "orders.order_id"}
    tables = {
        "orders": dt.Table(orders, unit="person", max_rows=2),
        "lines": dt.Table(lines, unit=unit, max_rows=2, columns={"qty": dt.between(0, 9)}),
    }
    found = reported(Catalog(tables, dt.Budget(1)))
    assert found["orders"].people is not None
    assert found["lines"].people is not None
    assert (found["orders"].people.people, found["orders"].people.above, found["orders"].people.beyond) == (3, 2, 4)
    assert (found["lines"].people.people, found["lines"].people.above, found["lines"].without_unit) == (3, 1, 2)


def test_rows_of_people_who_are_in_no_list_are_counted_and_said() -> None:
    people = {"person": [0, 1, 2]}
    visits = {"person": [0, 1, 7, 7, 8, None]}
    unit = {"column": "person", "references": "people.person"}
    tables = {"people": dt.Table(people, unit="person", max_rows=1), "visits": dt.Table(visits, unit=unit, max_rows=2)}
    found = reported(Catalog(tables, dt.Budget(1)))["visits"]
    assert (found.unmatched, found.without_unit, found.as_data()["unmatched"]) == (3, 1, 3)
    assert "50 % of the rows of visits are of people who are not in people; they count" in " ".join(found.warnings())


def test_rows_of_listed_people_are_not_said() -> None:
    """The twin: nobody is missing, or the reference looks the person up, so that such rows belong to nobody."""
    unit = {"column": "person", "references": "people.person"}
    tables = {"people": dt.Table({"person": [0, 1]}, unit="person"), "visits": dt.Table({"person": [0, 0]}, unit=unit)}
    found = reported(Catalog(tables, dt.Budget(1)))["visits"]
    assert (found.unmatched, list(found.warnings())) == (0, [])


def test_repeated_keys_are_counted_and_refused() -> None:
    table = dt.Table({"id": [1, 1, 2, 3, 3, 3]}, unit="row", key="id")
    (report,), error = report_data(Catalog({"t": table}, dt.Budget(1)))
    assert report.repeated == (("id", 2),)
    assert report.serious
    assert error is not None


def test_a_line_that_is_no_row_is_named_without_sending_the_curator_around(shop: Path) -> None:
    with (shop / "sales.csv").open("a", encoding="utf-8") as file:
        file.write("1,2\n")
    done = run("check", "--data")
    assert done.exit_code == 1
    assert "line 1002 of" in " ".join(done.stdout.split())
    assert "run `dither check --data`" not in " ".join(done.stdout.split())
    asked = run("ask", "SELECT COUNT(*) AS n FROM sales", "-e", "1")
    assert "run `dither check --data`" in " ".join(asked.stderr.split())  # everybody else is sent there


# --- for the curator only ---------------------------------------------------------------------------------------


def everything(folder: Path) -> bytes:
    """All that was written beside the data."""
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file() and file.name != "sales.csv")


def test_an_analyst_is_refused(shop: Path) -> None:
    for words, environment in ((("--analyst", "ana"), {}), ((), {"DITHER_ANALYST": "ana"})):
        done = run("check", "--data", *words, **environment)
        assert done.exit_code == 2
        assert "for the curator" in done.stderr
        assert "rows" not in done.stdout
        assert run("check", *words, **environment).exit_code == 0  # the catalog itself is public


def test_nothing_of_it_is_written_down(shop: Path) -> None:
    before = everything(shop)
    done = run("check", "--data")
    assert SECRET in done.stdout  # the twin: the screen shows a cell
    assert everything(shop) == before


def test_no_other_command_says_anything_of_it(shop: Path) -> None:
    said = []
    for words in (("check",), ("quote", "SELECT COUNT(at) AS n FROM sales", "-e", "1"), ("budget",), ("history",), ("verify",)):
        done = run(*words)
        said.append(done.stdout + done.stderr)
    with dt.open("catalog.toml") as survey:
        answer = survey.ask("SELECT COUNT(at) AS n FROM sales", epsilon=1)
        said += [str(answer), survey.diagnosis, answer.receipt.to_json(), repr(survey)]
    said.append(everything(shop).decode("utf-8", "replace"))
    for text in said:
        assert SECRET not in text
        assert "did not read" not in text


def test_json_has_the_numbers_and_no_cell(shop: Path) -> None:
    done = run("check", "--data", "--format", "json")
    found = json.loads(done.stdout)
    (table,) = found["tables"]
    assert (table["rows"], table["columns"][2]["unread"], found["refused"]) == (1000, 1000, None)
    assert SECRET not in done.stdout
    assert "8:" not in done.stdout
    quoted = ColumnReport("x", "date", 9, 0, 9, unread_example="secret")
    assert "secret" in "".join(quoted.warnings("t"))  # the twin
    assert "secret" not in to_json([TableReport("t", 9, (quoted,))])
