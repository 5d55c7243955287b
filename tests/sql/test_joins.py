"""Joins that must not multiply rows, and joins that may multiply them within a limit."""

from __future__ import annotations

import pytest

from dither.catalog.values import Budget, Catalog, ColumnFacts, Table
from dither.errors import QueryError
from dither.query.resolve.relations import resolve
from dither.query.sql.select import parse
from sql.survey import CATALOG

KINDS = {"i": "int", "r": "real", "d": "date", "t": "timestamp", "s": "text"}
COLUMNS = {name: ColumnFacts(kind) for name, kind in KINDS.items()}


def refusal(question: str, catalog: Catalog) -> str:
    try:
        resolve(parse(question, catalog), catalog, question)
    except QueryError as error:
        return error.what
    return ""


def keyed(kind: str) -> Catalog:
    public = Table("pub.csv", public=True, key="k", columns={"k": ColumnFacts(kind), "v": ColumnFacts("int")})
    return Catalog({"p": Table("p.csv", by_row=True, columns=COLUMNS), "pub": public}, Budget(1))


@pytest.mark.parametrize(
    ("kind", "other", "unique"),
    [
        ("int", "p.i", True),
        ("int", "p.i * 1.0", False),  # in doubles 2^62 equals 2^62 + 1, so one row would match many keys
        ("int", "p.i + 0", False),
        ("int", "p.r", False),
        ("int", "CAST(p.r AS INTEGER)", True),
        ("real", "p.i", True),
        ("real", "p.r", True),
        ("text", "p.s", True),
        ("date", "p.d", True),
        ("date", "p.t", False),
    ],
)
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN"])
def test_a_unique_key_is_unique_only_when_compared_in_its_own_kind(kind: str, other: str, unique: bool, how: str) -> None:
    found = refusal(f"SELECT COUNT(*) FROM p {how} pub ON {other} = pub.k", keyed(kind))
    assert found == "" if unique else "multiply rows" in found


def test_a_public_row_side_is_held_to_the_same() -> None:
    assert "multiply rows" in refusal("SELECT COUNT(*) FROM pub JOIN p ON pub.k = p.i * 1.0", keyed("int"))
    assert refusal("SELECT COUNT(*) FROM pub JOIN p ON pub.k = p.i", keyed("int")) == ""
    grouped = "SELECT COUNT(*) FROM p JOIN (SELECT k, COUNT(*) AS n FROM pub GROUP BY k) q ON p.i * 1.0 = q.k"
    assert "multiply rows" in refusal(grouped, keyed("int"))


def test_a_join_does_not_multiply_rows_that_are_protected_one_by_one() -> None:
    assert "multiply rows" in refusal("SELECT COUNT(*) FROM p JOIN pub ON p.i = pub.v", keyed("int"))
    assert "multiply rows" in refusal("SELECT COUNT(*) FROM pub JOIN p ON p.i = pub.v", keyed("int"))


@pytest.mark.parametrize("joined", ["visits b ON b.ward = a.ward", "people b ON b.region = a.region"])
def test_rows_of_different_people_are_not_joined(joined: str) -> None:
    assert "rows of different people" in refusal(f"SELECT COUNT(*) FROM visits a JOIN {joined}", CATALOG)
    assert refusal(f"SELECT COUNT(*) FROM visits a JOIN {joined} AND b.person_id = a.person_id", CATALOG) == ""


def chain(joins: int) -> str:
    more = " ".join(f"JOIN visits v{i} ON v0.person_id = v{i}.person_id" for i in range(1, joins + 1))
    return f"SELECT COUNT(*) FROM visits v0 {more}"


def test_one_persons_rows_are_multiplied_a_few_times_only() -> None:
    assert refusal(chain(3), CATALOG) == ""
    assert "very long" in refusal(chain(4), CATALOG)
    inside = f"({chain(3).replace('COUNT(*)', 'v0.person_id')}) x"
    assert "very long" in refusal(f"SELECT COUNT(*) FROM {inside} JOIN visits w ON w.person_id = x.person_id", CATALOG)
    listed = f"visits w WHERE EXISTS (SELECT 1 FROM {inside} WHERE x.person_id = w.person_id)"
    assert refusal(f"SELECT COUNT(*) FROM {listed}", CATALOG) == ""
    part = f"WITH s AS ({chain(2).replace('COUNT(*)', 'v0.person_id')})"
    both = f"{part} SELECT COUNT(*) FROM (SELECT * FROM s UNION ALL SELECT * FROM s) y"
    assert "very long" in refusal(both, CATALOG)


def test_joins_on_keys_multiply_nothing_and_are_not_counted() -> None:
    """Each visit has one person, each prescription one visit; aggregates per person have one row each."""
    hops = "prescriptions r JOIN visits v ON r.visit_id = v.visit_id JOIN people p ON v.person_id = p.person_id"
    again = " ".join(f"JOIN people q{i} ON q{i}.person_id = p.person_id" for i in range(5))
    assert refusal(f"SELECT COUNT(*) FROM {hops} {again}", CATALOG) == ""
    down = "people p JOIN visits v ON v.person_id = p.person_id JOIN prescriptions r ON r.visit_id = v.visit_id"
    assert refusal(f"SELECT COUNT(*) FROM {down} {again}", CATALOG) == ""
    sums = " ".join(
        f"JOIN (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) s{i} ON s{i}.person_id = v.person_id"
        for i in range(5)
    )
    assert refusal(f"SELECT COUNT(*) FROM visits v {sums}", CATALOG) == ""
    # A person's row that was repeated for each visit is no longer there once.
    repeated = " ".join(f"JOIN visits v{i} ON v{i}.person_id = p.person_id" for i in range(5))
    assert "very long" in refusal(f"SELECT COUNT(*) FROM people p {repeated}", CATALOG)
