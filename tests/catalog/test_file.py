"""The catalog file: the example of the design is read, every broken rule is reported with its line, no text crashes it."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.catalog.file import parse, read
from dither.catalog.values import Budget, Catalog, ColumnFacts, Rows, Table, Unit
from dither.errors import CatalogError, DitherError, QueryError
from dither.planning.plan import plan
from dither.planning.price import Price
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse as sql

DESIGN = """\
[budget]
epsilon = 1.0            # for everyone together, for ever
delta = 1e-6             # leave out for pure epsilon-DP
per_analyst = 0.25       # optional quota, for fairness: only the total is a guarantee, analysts may collude

[tables.people]
source = "people.parquet"          # Parquet, CSV, a DuckDB file's table, later a database or Spark
unit = "person_id"                 # who is protected; "row" if every row is its own person
max_rows = 1
[tables.people.columns]
age    = { between = [0, 120] }
income = { between = [0, 250000], step = 1 }
region = { values = ["north", "south", "east", "west"] }   # public keys: empty groups are shown

[tables.visits]
source = "visits.parquet"
unit = { column = "person_id", references = "people.person_id" }
max_rows = 20                      # per person and group
max_groups = 5                     # per person

[tables.regions]
source = "regions.csv"
public = true
"""

SMALL = '[budget]\nepsilon = 1\n[tables.people]\nsource = "p.csv"\nunit = "id"\nmax_rows = 1\n'


def problems(text: str) -> list[tuple[int | None, str]]:
    """Returns the line and text of each problem."""
    try:
        parse(text)
    except CatalogError as error:
        return [(line, what) for line, what, _ in error.problems]
    return []


def test_the_design_example_is_read_as_it_says() -> None:
    catalog = parse(DESIGN)
    people, visits, regions = (catalog.tables[name] for name in ("people", "visits", "regions"))
    assert catalog.budget.delta == Fraction(1, 10**6)
    assert catalog.budget.per_analyst == Fraction(1, 4)
    assert (people.unit, people.max_rows, people.max_groups) == (Unit("person_id"), 1, 1)
    assert (people.columns["age"].low, people.columns["age"].high) == (0, 120)
    assert people.columns["region"].values == ("north", "south", "east", "west")
    assert visits.unit == Unit("person_id", ("people", "person_id"))
    assert (visits.max_rows, visits.max_groups) == (20, 5)
    assert regions.public
    assert regions.unit is None


def test_decimals_are_read_as_written_and_not_as_doubles() -> None:
    text = SMALL.replace("epsilon = 1", "epsilon = 0.1") + "[tables.people.columns]\nx = { between = [0.1, 0.3], step = 0.1 }"
    catalog = parse(text)
    assert catalog.budget.epsilon == Fraction(1, 10) != Fraction(0.1)
    assert catalog.tables["people"].columns["x"].step == Fraction(1, 10)


def test_sources_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").write_text(DESIGN + '[tables.d]\nsource = "x.duckdb#t"\npublic = true\n', encoding="utf-8")
    catalog = read(tmp_path / "survey.toml")
    assert catalog.tables["people"].source == str(tmp_path / "people.parquet")
    assert catalog.tables["d"].source == str(tmp_path / "x.duckdb") + "#t"


def test_dates_bound_and_null_groups() -> None:
    columns = "[tables.people.columns]\nborn = { between = [1970-01-02, 2000-01-01] }\nr = { values = ['a'], null = 'group' }"
    people = parse(SMALL + columns).tables["people"]
    assert (people.columns["born"].kind, people.columns["born"].low) == ("date", 1)
    assert people.columns["r"].values == ("a", None)


def test_whole_number_values_imply_their_bounds() -> None:
    stars = parse(SMALL + "[tables.people.columns]\nstars = { values = [5, 1, 3] }").tables["people"].columns["stars"]
    assert (stars.kind, stars.low, stars.high) == ("int", 1, 5)


def test_rows_and_replace_neighbours() -> None:
    bounded = '[privacy]\nneighbours = "replace"\n' + SMALL + "rows = { public = 100 }"
    assert parse(bounded).tables["people"].rows == Rows(public=100)
    assert parse(SMALL + "rows = { at_least = 100 }").tables["people"].rows == Rows(at_least=100)
    assert parse(bounded).neighbours == "replace"


def test_a_table_without_bounds_leaves_them_to_the_questions() -> None:
    table = parse(SMALL.replace("max_rows = 1\n", "")).tables["people"]
    assert (table.max_rows, table.max_groups) == (None, None)
    assert (parse(SMALL).tables["people"].max_rows, parse(SMALL).tables["people"].max_groups) == (1, 1)


def test_a_table_of_rows_needs_no_allowance() -> None:
    table = parse('[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "row"').tables["t"]
    assert (table.by_row, table.unit, table.max_rows, table.max_groups) == (True, None, 1, 1)


COLUMN = SMALL + "[tables.people.columns]\n"
CHILD = SMALL + '[tables.visits]\nsource = "v.csv"\nmax_rows = 2\nunit = '

# what is written, the line and the words of the one problem it has, and the same with the mistake put right
BROKEN = [
    (SMALL.replace("epsilon", "epsilom"), 1, "epsilon is missing", SMALL),
    (SMALL + "max_row = 2", 7, "tables.people.max_row is not known", SMALL + "max_groups = 2"),
    (SMALL.replace("= 1\n[", "= -1\n["), 2, "epsilon must be above 0", SMALL),
    (SMALL.replace("= 1\n[", "= inf\n["), 2, "epsilon must be a finite number", SMALL),
    (SMALL.replace("= 1\n[", "= true\n["), 2, "epsilon must be a finite number", SMALL),
    (SMALL.replace("= 1\n[", "= 1\ndelta = 1\n["), 3, "delta must be", SMALL.replace("= 1\n[", "= 1\ndelta = 1e-9\n[")),
    (SMALL.replace("= 1\n[", "= 1\nper_analyst = 2\n["), 3, "per_analyst must be", SMALL),
    (
        SMALL.replace("= 1\n[", "= 1\nper_query = 2\n["),
        3,
        "per_query must be",
        SMALL.replace("= 1\n[", "= 1\nper_query = 0.1\n["),
    ),
    (SMALL.replace("= 1\n[", "= 1\nper_query = 0\n["), 3, "per_query must be", SMALL),
    (
        SMALL.replace("= 1\n[", "= 1\nleast_epsilon = 0\n["),
        3,
        "least_epsilon must be above 0 and at most epsilon",
        SMALL.replace("= 1\n[", "= 1\nleast_epsilon = 1\n["),
    ),
    (SMALL.replace("= 1\n[", "= 1\nleast_epsilon = -0.1\n["), 3, "least_epsilon must be above 0", SMALL),
    (SMALL.replace("= 1\n[", "= 1\nleast_epsilon = 1.01\n["), 3, "least_epsilon must be above 0 and at most", SMALL),
    (SMALL.replace("= 1\n[", "= 1\nleast_epsilon = nan\n["), 3, "least_epsilon must be a finite number", SMALL),
    (
        SMALL.replace("= 1\n[", "= 1\nper_query = 0.00001\n["),
        3,
        "a question costs at least 0.0001, so none could be asked",
        SMALL.replace("= 1\n[", "= 1\nper_query = 0.00001\nleast_epsilon = 0.00001\n["),
    ),
    (
        SMALL.replace("= 1\n[", "= 1\nleast_epsilon = 0.2\nper_analyst = 0.1\n["),
        4,
        "a question costs at least 0.2, so none could be asked",
        SMALL.replace("= 1\n[", "= 1\nleast_epsilon = 0.1\nper_analyst = 0.1\n["),
    ),
    (
        SMALL.replace("= 1\n[", "= 1\nanalysts = []\n["),
        3,
        "nobody could ask",
        SMALL.replace("= 1\n[", '= 1\nanalysts = ["a"]\n['),
    ),
    (SMALL.replace("= 1\n[", '= 1\nanalysts = "ana"\n['), 3, "must be a list of names", SMALL),
    (SMALL.replace("= 1\n[", "= 1\nanalysts = [3]\n["), 3, "must be a list of names", SMALL),
    (SMALL.replace("= 1\n[", '= 1\nanalysts = [" a"]\n['), 3, "is not a valid name", SMALL),
    (SMALL.replace("= 1\n[", '= 1\nanalysts = ["a", "a"]\n['), 3, "twice", SMALL),
    (SMALL.replace("max_rows = 1", "max_rows = 0"), 6, "must be a whole number above 0", SMALL),
    (
        SMALL.replace("max_rows = 1", "max_rows = 1000000000001"),
        6,
        "max_rows is too large",
        SMALL.replace("max_rows = 1", "max_rows = 1000000000000"),
    ),
    (COLUMN + "x = { between = [30, 1e300] }", 8, "beyond 2^500", COLUMN + "x = { between = [30, 1e150] }"),
    (COLUMN + "x = { between = [0, 1e-300] }", 8, "less than 2^-500 apart", COLUMN + "x = { between = [0, 1e-150] }"),
    (SMALL.replace("max_rows = 1", "max_rows = 1.5"), 6, "must be a whole number", SMALL),
    (SMALL.replace("max_rows = 1", "max_rows = true"), 6, "must be a whole number", SMALL),
    (SMALL.replace('source = "p.csv"\n', ""), 3, "has no source", SMALL),
    (SMALL.replace('unit = "id"\nmax_rows = 1', ""), 3, "declares neither a unit", SMALL),
    (SMALL.replace("max_rows = 1", 'max_rows = 1\nunit = "b"'), 7, "not TOML", SMALL),
    (SMALL.replace('"id"', '{ references = "a.b" }'), 5, "names no column", SMALL),
    (SMALL.replace('"id"', '"row"').replace("max_rows = 1", "max_rows = 3"), 6, "protects rows", SMALL),
    (SMALL + "rows = { public = 10 }", 7, "people may be added or removed", SMALL + "rows = { at_least = 10 }"),
    (
        SMALL.replace("max_rows = 1", "max_rows = 2") + "rows = { at_least = 9 }",
        7,
        "each has one row",
        SMALL + "rows = { at_least = 9 }",
    ),
    (SMALL + "rows = { at_least = 0 }", 7, "whole number above 0", SMALL + "rows = { at_least = 1 }"),
    (SMALL + "caps = { max_rows = 0 }", 7, "caps.max_rows must be a whole number above 0", SMALL + "caps = { max_rows = 1 }"),
    (SMALL + "caps = { max_groups = 1.5 }", 7, "must be a whole number", SMALL + "caps = { max_groups = 2 }"),
    (SMALL + "caps = { rows = 1 }", 7, "tables.people.caps.rows is not known", SMALL + "caps = { max_rows = 1 }"),
    (SMALL + "caps = 3", 7, "must hold named values", SMALL),
    (
        SMALL.replace("max_rows = 1", "max_rows = 9") + "caps = { max_rows = 8 }",
        7,
        "max_rows is 9, above its own cap of 8",
        SMALL.replace("max_rows = 1", "max_rows = 9") + "caps = { max_rows = 9 }",
    ),
    (SMALL.replace('"id"', '"row"') + "caps = { max_rows = 1 }", 7, "no unit column", SMALL),
    ('[privacy]\nneighbours = "replace"\n' + SMALL, 2, "must be declared public", SMALL),
    ('[privacy]\nneighbours = "swap"\n' + SMALL, 2, "neighbours is unknown", SMALL),
    ("snapshot = 3\n" + SMALL, 1, "snapshot must be text", 'snapshot = "3"\n' + SMALL),
    ("budgets = 3\n" + SMALL, 1, "budgets is not known", SMALL),
    (SMALL + '[tables.PEOPLE]\nsource = "a.csv"\npublic = true', 7, "differ only in case", SMALL),
    (SMALL + '[tables."a b"]\nsource = "a.csv"\npublic = true', 7, "not a valid table name", SMALL),
    (SMALL + '[tables.r]\nsource = "a.csv"\npublic = true\nmax_rows = 1', 10, "nobody is bounded", SMALL),
    (SMALL + "columns = 3", 7, "must be a section", SMALL),
    (CHILD + '{ column = "id", references = "peple.id" }', 10, "there is no table peple", CHILD + '"id"'),
    (CHILD + '{ column = "id", references = "people" }', 10, "must name a table and a column", CHILD + '"id"'),
    (CHILD + '{ column = "id", references = "visits.id" }', 10, "refers to itself", CHILD + '"id"'),
    (
        CHILD.replace('"id"', '"row"') + '{ column = "id", references = "people.id" }',
        10,
        "which has no unit column",
        CHILD + '{ column = "id", references = "people.id" }',
    ),
    (COLUMN + "x = 3", 8, "must be a set of facts", COLUMN + "x = {}"),
    (COLUMN + "x = { betwen = [0, 1] }", 8, "betwen is not known", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { between = [1, 0] }", 8, "not below the upper", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { between = [1, 1] }", 8, "not below the upper", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { between = [0, nan] }", 8, "two finite numbers", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { between = [0, 1e999] }", 8, "two finite numbers", COLUMN + "x = { between = [0, 1e99] }"),
    (COLUMN + "x = { between = [0] }", 8, "a lower and an upper", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { between = [0, 2000-01-01] }", 8, "two finite numbers", COLUMN + "x = { between = [0, 1] }"),
    (COLUMN + "x = { step = 1 }", 8, "a step needs bounds", COLUMN + "x = { between = [0, 1], step = 1 }"),
    (
        COLUMN + "x = { between = [0, 1], step = 0.3 }",
        8,
        "whole number of steps",
        COLUMN + "x = { between = [0, 1.2], step = 0.3 }",
    ),
    (COLUMN + "x = { between = [0, 1], step = 0 }", 8, "step must be above 0", COLUMN + "x = { between = [0, 1], step = 1 }"),
    (COLUMN + "x = { between = [0, 1], step = 1e-20 }", 8, "more than 2^52", COLUMN + "x = { between = [0, 1], step = 1e-9 }"),
    (
        COLUMN + "x = { kind = 'int', between = [0.5, 2] }",
        8,
        "must be whole",
        COLUMN + "x = { kind = 'real', between = [0.5, 2] }",
    ),
    (COLUMN + "x = { kind = 'text', between = [0, 2] }", 8, "make no sense for text", COLUMN + "x = { between = [0, 2] }"),
    (COLUMN + "x = { kind = 'number' }", 8, "no known kind", COLUMN + "x = { kind = 'real' }"),
    (COLUMN + "x = { kind = ['int'] }", 8, "no known kind", COLUMN + "x = { kind = 'int' }"),
    (COLUMN + "x = { values = [] }", 8, "no value is listed", COLUMN + "x = { values = [1] }"),
    (COLUMN + "x = { values = 'north' }", 8, "must be a list", COLUMN + "x = { values = ['north'] }"),
    (COLUMN + "x = { values = ['a', 'a'] }", 8, "listed twice", COLUMN + "x = { values = ['a', 'A'] }"),
    (COLUMN + "x = { values = ['a', 1] }", 8, "several kinds", COLUMN + "x = { values = ['a', '1'] }"),
    (COLUMN + "x = { values = [1, true] }", 8, "several kinds", COLUMN + "x = { values = [false, true] }"),
    (COLUMN + "x = { values = [0.5] }", 8, "cannot be keys", COLUMN + "x = { values = [5] }"),
    (COLUMN + "x = { values = [2000-01-01T00:00:00] }", 8, "neither text", COLUMN + "x = { values = [2000-01-01] }"),
    (COLUMN + "x = { values = [5_000_000_000_000_000_000] }", 8, "beyond 2^62", COLUMN + "x = { values = [5_000] }"),
    (COLUMN + "x = { values = ['a'], kind = 'int' }", 8, "the column is int", COLUMN + "x = { values = ['a'], kind = 'text' }"),
    (COLUMN + "x = { values = [1, 9], between = [0, 5] }", 8, "outside the bounds", COLUMN + "x = { values = [1, 9] }"),
    (COLUMN + "x = { null = 3 }", 8, "null must be", COLUMN + "x = { null = false }"),
    (COLUMN + "x = { null = 'group' }", 8, "needs public values", COLUMN + "x = { null = 'group', values = ['a'] }"),
    (COLUMN + "x = {}\nX = {}", 9, "differ only in case", COLUMN + "x = {}\ny = {}"),
]


@pytest.mark.parametrize(("text", "line", "words", "_right"), BROKEN)
def test_a_broken_rule_is_told_with_its_line(text: str, line: int, words: str, _right: str) -> None:
    found = problems(text)
    assert any(at == line and words in what for at, what in found), found


@pytest.mark.parametrize(("_text", "_line", "_words", "right"), BROKEN)
def test_the_same_put_right_is_read(_text: str, _line: int, _words: str, right: str) -> None:
    assert problems(right) == []


def test_what_a_catalog_allows_at_most_can_still_be_counted_and_added_up() -> None:
    """The twin of the refusals above: the limits are those of the noise and the grids, not tighter."""
    x = ColumnFacts("real", Fraction(0), Fraction(2) ** 500)
    one = Catalog({"t": Table("t.csv", unit="id", max_rows=1, columns={"id": ColumnFacts("int"), "x": x})}, Budget(1))
    many = Catalog({"t": Table("t.csv", unit="id", max_rows=10**12, columns={"id": ColumnFacts("int")})}, Budget(1))

    def noise(text: str, catalog: Catalog, epsilon: str) -> float:
        return plan(resolve(sql(text, catalog), catalog, text), catalog, Price(Fraction(epsilon))).noises[0].scale

    assert noise("SELECT SUM(x) AS s FROM t", one, "1") > 0
    assert noise("SELECT COUNT(*) AS n FROM t", many, "1") == 10**12
    with pytest.raises(QueryError, match="out of range"):
        noise("SELECT COUNT(*) AS n FROM t", many, "0.999")


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        DESIGN.replace("epsilon = 1.0", "epsilon = 0").replace("[0, 120]", "[120, 0]").replace('"people.person_id"', '"p.id"')
    )
    assert [line for line, _ in problems(text)] == [2, 4, 11, 17]


def test_every_problem_names_a_fix() -> None:
    for text, *_ in BROKEN:
        with pytest.raises(CatalogError) as caught:
            parse(text)
        assert all(fix for _, _, fix in caught.value.problems)
        assert "Charged: nothing" in str(caught.value)


def test_a_table_that_says_nothing_is_not_told_to_name_a_column_it_may_not_have() -> None:
    with pytest.raises(CatalogError) as caught:
        parse(SMALL + '[tables.towns]\nsource = "towns.csv"\n')
    ((_, _, fix),) = caught.value.problems
    assert fix.startswith('write unit = "id", or another column that identifies the person; unit = "row"')


def test_cycles_of_several_tables_are_refused() -> None:
    unit = 'unit = { column = "id", references = "%s.id" }\nmax_rows = 1\n'
    text = "[budget]\nepsilon = 1\n"
    text += "".join(f'[tables.{a}]\nsource = "x.csv"\n{unit % b}' for a, b in (("a", "b"), ("b", "c"), ("c", "a")))
    assert problems(text)[0][1] == "a refers to itself: a -> b -> c -> a."
    assert problems(text.replace(unit % "a", 'unit = "id"\nmax_rows = 1\n')) == []


def test_files_that_are_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000, encoding="utf-8")
    (tmp_path / "long.toml").write_text("a = " + "9" * 5000, encoding="utf-8")
    (tmp_path / "huge.toml").write_text(SMALL.replace("= 1\n[", "= 1e999999999\n["), encoding="utf-8")
    for name in ("bytes.toml", "deep.toml", "long.toml", "huge.toml", "none.toml", "."):
        with pytest.raises(CatalogError):
            read(tmp_path / name)


@given(
    cuts=st.lists(
        st.tuples(st.integers(0, len(DESIGN)), st.integers(0, 12), st.text("[]{}=\"'\n#., 01ax-", max_size=4)), max_size=4
    )
)
def test_no_text_breaks_the_reader(cuts: list[tuple[int, int, str]]) -> None:
    text = DESIGN
    for at, length, instead in cuts:
        text = text[:at] + instead + text[at + length :]
    with suppress(DitherError):
        assert isinstance(parse(text), Catalog)


def test_date_values_are_keys() -> None:
    assert parse(COLUMN + "d = { values = [2000-01-01, 2000-01-02] }").tables["people"].columns["d"].values == (
        date(2000, 1, 1),
        date(2000, 1, 2),
    )
