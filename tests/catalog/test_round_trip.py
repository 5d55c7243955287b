"""Catalogs built in Python and catalogs written in TOML are the same values, with the same digest."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.catalog import declare as dt
from dither.catalog.file import parse
from dither.catalog.reading import Cells, Read
from dither.catalog.text import catalog_hash, catalog_text
from dither.catalog.values import Budget, Catalog, ColumnFacts, Rows, Table, TableCaps, Unit
from dither.errors import CatalogError

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
NUMBERS = st.fractions(-(10**6), 10**6, max_denominator=1000)
POSITIVE = st.fractions(Fraction(1, 1000), 100, max_denominator=1000)
DATES = st.dates(date(1000, 1, 1), date(3000, 1, 1))
TIMES = st.datetimes(datetime(1000, 1, 1), datetime(3000, 1, 1))


FORMATS = st.sampled_from(["%d.%m.%Y", "%m/%d/%y %H:%M", ["%Y-%m-%d", "%d %b %Y"], '"%Y"\n'])
CELLS = {
    "na": st.lists(TEXTS, max_size=2),
    "trim": st.booleans(),
    "decimal": st.sampled_from([",", "٫"]),
    "thousands": st.sampled_from(["'", "\u00a0"]),
}
READ = {
    "encoding": st.sampled_from(["cp1252", "utf-16", "utf-8"]),
    "delimiter": st.sampled_from([";", "\t", "|"]),
    "quote": st.sampled_from(["'", ""]),
    "skip": st.integers(0, 5),
    "header": st.integers(1, 3),
    "names": st.lists(st.from_regex(r"[a-z]{2}", fullmatch=True), min_size=1, max_size=3, unique=True),
    "format": FORMATS,
    **CELLS,
}


@st.composite
def columns(draw: st.DrawFn) -> ColumnFacts:
    shape = draw(st.sampled_from(["plain", "between", "whole", "dates", "times", "values", "marks", "format"]))
    null = draw(st.booleans())
    if shape == "marks":
        return dt.column(null=null, **draw(st.fixed_dictionaries({}, optional=CELLS)))
    if shape == "format":
        kind = draw(st.sampled_from([None, "date", "timestamp"]))
        return dt.column(kind=kind, format=draw(FORMATS), trim=draw(st.none() | st.booleans()), null=null)
    if shape == "times":
        first, last = sorted(draw(st.lists(TIMES, min_size=2, max_size=2, unique=True)))
        return dt.between(first, last, null=null)
    if shape == "plain":
        return dt.column(kind=draw(st.sampled_from([None, "int", "real", "text", "bool", "date", "timestamp"])), null=null)
    if shape == "between":
        low, step, steps = draw(NUMBERS), draw(POSITIVE), draw(st.integers(1, 1000))
        return dt.between(low, low + step * steps, step=draw(st.sampled_from([None, step])), null=null)
    if shape == "whole":
        low = draw(st.integers(-(2**60), 2**60))
        return dt.between(low, low + draw(st.integers(1, 2**60)), kind="int", null=null)
    if shape == "dates":
        low, high = sorted(draw(st.lists(DATES, min_size=2, max_size=2, unique=True)))
        return dt.between(low, high, null=null)
    kind = draw(st.sampled_from([TEXTS, st.integers(-(2**62), 2**62), st.booleans(), DATES]))
    public = draw(st.lists(kind, min_size=1, max_size=4, unique=True))
    return dt.values(*public, *([None] if null and draw(st.booleans()) else []), null=null)


@st.composite
def tables(draw: st.DrawFn, parent: str | None) -> Table:
    held = draw(st.dictionaries(TEXTS, columns(), max_size=3))
    seen: set[str] = set()
    held = {name: facts for name, facts in held.items() if not (name.lower() in seen or seen.add(name.lower()))}
    shape = draw(st.sampled_from(["unit", "row", "public"]))
    key = draw(st.one_of(st.none(), TEXTS))
    read = draw(st.none() | st.fixed_dictionaries({}, optional=READ))
    if shape != "unit":
        return Table(draw(TEXTS), by_row=shape == "row", public=shape == "public", key=key, columns=held, read=read)
    max_rows = draw(st.integers(1, 50))
    unit = Unit(draw(TEXTS), (parent, draw(TEXTS)) if parent else None)
    rows = Rows(at_least=draw(st.integers(1, 10**9))) if max_rows == 1 and draw(st.booleans()) else Rows()
    max_groups = draw(st.one_of(st.none(), st.integers(1, 9)))
    bounds = {"max_rows": max_rows, "max_groups": max_groups}
    caps = draw(st.sampled_from([None, TableCaps(50), TableCaps(50, 9), TableCaps(None, 10)]))
    return Table(draw(TEXTS), unit=unit, **bounds, rows=rows, key=key, columns=held, caps=caps, read=read)


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    made: dict[str, Table] = {}
    for name in draw(st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), min_size=1, max_size=3, unique=True)):
        owners = [other for other, table in made.items() if table.unit is not None]
        made[name] = draw(tables(draw(st.sampled_from([None, *owners]))))
    epsilon = draw(POSITIVE)
    delta = draw(st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3)]))
    cap = st.sampled_from([None, epsilon, epsilon / 3])
    analysts = draw(st.none() | st.lists(st.sampled_from(["ana", "ben", 'o"k', "Ana"]), min_size=1, unique=True))
    budget = Budget(epsilon, delta, draw(cap), draw(cap), analysts)
    return Catalog(made, budget, snapshot=draw(st.one_of(st.just(""), TEXTS)))


@given(catalogs())
def test_a_catalog_reads_back_from_its_text(catalog: Catalog) -> None:
    again = parse(catalog_text(catalog))
    assert again == catalog
    assert catalog_hash(again) == catalog_hash(catalog)
    assert [table.source for table in again.tables.values()] == [table.source for table in catalog.tables.values()]


@pytest.mark.slow
@given(catalogs(), catalogs())
def test_equal_catalogs_and_only_they_have_equal_digests(one: Catalog, other: Catalog) -> None:
    assert (one == other) == (catalog_hash(one) == catalog_hash(other))


def small() -> Catalog:
    held = {"age": dt.between(0, 120), "region": dt.values("north", "south")}
    return Catalog({"people": Table("p.parquet", unit="id", max_rows=2, columns=held)}, Budget(1, "1e-6"))


def test_the_digest_is_the_same_in_every_release_of_dither() -> None:
    assert catalog_hash(small()) == "7de510a4fa1096cba58fd20785b6967353b84d917d91db15553b34067769fb93"


def test_every_declared_fact_enters_the_digest() -> None:
    catalog = small()
    people = catalog.tables["people"]

    def with_table(**changes: object) -> Catalog:
        return replace(catalog, tables={"people": replace(people, **changes)})

    def with_age(facts: ColumnFacts) -> Catalog:
        return with_table(columns={**people.columns, "age": facts})

    others = [
        replace(catalog, budget=Budget(2, "1e-6")),
        replace(catalog, budget=Budget(1)),
        replace(catalog, budget=Budget(1, "1e-6", 1)),
        replace(catalog, budget=Budget(1, "1e-6", per_query=1)),
        replace(catalog, budget=Budget(1, "1e-6", least_epsilon="0.01")),
        replace(catalog, budget=Budget(1, "1e-6", per_analyst=1, per_query=1)),
        replace(catalog, budget=Budget(1, "1e-6", analysts=["ana"])),
        replace(catalog, budget=Budget(1, "1e-6", analysts=["ana", "ben"])),
        replace(catalog, snapshot="x"),
        with_table(unit=Unit("ID")),
        with_table(max_rows=3),
        with_table(max_groups=3),
        with_table(key="id"),
        with_table(unit=None, by_row=True, max_rows=1),
        with_table(read=Read(encoding="cp1252")),
        with_table(read=Read(delimiter=";")),
        with_table(read=Read(quote="'")),
        with_table(read=Read(skip=1)),
        with_table(read=Read(header=2)),
        with_table(read=Read(names=("id", "age"))),
        with_table(read=Read(cells=Cells(trim=True))),
        with_table(read=Read(cells=Cells(na=("-",)))),
        with_age(dt.between(0, 120, decimal=",", kind="int")),
        with_age(dt.between(0, 120, thousands=",", kind="int")),
        with_age(dt.between(0, 120, na=["-"])),
        with_age(dt.between(0, 120, na=["-", "."])),
        with_age(dt.between(0, 120, trim=True)),
        with_age(dt.between(0, 120, trim=False)),
        with_age(dt.column(format="%d.%m.%Y")),
        with_age(dt.column(format="%d.%m.%y")),
        with_age(dt.between(0, 121)),
        with_age(dt.between(0, 120, step=1)),
        with_age(dt.between(0, 120, kind="int")),
        with_age(dt.between(0, 120, null=False)),
        with_age(dt.values(0, 120)),
        with_age(dt.values("0", "120")),
        with_age(dt.values(True)),
        with_age(dt.values(1)),
        with_age(dt.values("True")),
        with_age(dt.values(True, None)),
    ]
    assert len({catalog_hash(each) for each in [catalog, *others]}) == len(others) + 1


def test_order_and_place_do_not_enter_the_digest() -> None:
    catalog = small()
    people = catalog.tables["people"]
    turned = replace(people, source="elsewhere.csv", columns=dict(reversed(people.columns.items())))
    assert catalog_hash(replace(catalog, tables={"people": turned})) == catalog_hash(catalog)
    one, other = (replace(catalog, budget=Budget(1, analysts=names)) for names in (["ana", "ben"], ("ben", "ana")))
    assert catalog_hash(one) == catalog_hash(other)


def test_a_frame_cannot_be_written_into_a_file() -> None:
    with pytest.raises(CatalogError, match="has no path"):
        catalog_text(Catalog({"t": Table({"a": [1]}, unit="row")}, Budget(1)))
