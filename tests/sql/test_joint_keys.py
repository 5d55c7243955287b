"""Keys that depend on each other lose no combination that a row has, and nothing private decides which are shown."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

import dither as dt
from dither.engines.reference import Reference
from dither.errors import QueryError
from dither.planning.releases.keys import Together, dependent, public_keys
from dither.query.read import read
from dither.query.resolve import joint
from dither.query.resolve.relations import Resolved
from dither.query.work import Cell, Sums, Work
from sql.everyday import possible
from sql.test_narrowing import CATALOG, CONDITIONS, KINDS, MODES, made_up
from sql.test_public import private_rows, uncharged

PAIRS = [
    *itertools.permutations(("YEAR(born)", "MONTH(born)", "QUARTER(born)", "MONTHNAME(born)"), 2),
    *itertools.combinations(
        ("age", "age % 10", "CAST(age / 2 AS INT)", "age > 95", "CASE WHEN age < 18 THEN 'a' ELSE mode END"), 2
    ),
    *itertools.combinations(("mode", "LOWER(mode)", "mode || COALESCE(maybe, '-')", "maybe"), 2),
    ("HOUR(seen)", "MONTH(seen)"),
    ("active", "active AND age < 50"),
]
FORM = "SELECT {keys}, COUNT(*) AS n FROM people {where} GROUP BY 1, 2"


def is_within(person: Mapping[str, Any]) -> bool:
    """Whether a person's values are the declared ones, or NULL."""
    first, last = datetime.date(1900, 1, 1), datetime.date(1999, 12, 31)
    begin, end = datetime.datetime(2023, 1, 1), datetime.datetime(2025, 1, 1)
    return (
        (person["age"] is None or 17 <= person["age"] <= 90)
        and person["mode"] in (None, *MODES)
        and person["maybe"] in (None, "x", "y")
        and (person["born"] is None or first <= person["born"] <= last)
        and (person["seen"] is None or begin <= person["seen"] < end)
    )


def rows(question: Resolved, seed: int, *, within: bool) -> set[tuple[Any, ...]]:
    """Returns the keys that the rows have, by the reference engine."""
    tables = made_up(seed)
    tables["people"] = [person for person in tables["people"] if is_within(person) or not within]
    query = question.query
    work = Work(query.source, query.keys, None, question.by_unit, None, (Sums((Cell(constant=1),), 100),))
    return {group.key for group in Reference(tables, KINDS).run(work, b"")}


def together(question: Resolved) -> tuple[Together, ...] | None:
    known = public_keys(question.query.keys, question.operands().keys)
    return None if known is None else dependent(question.query.keys, known, question.joint)


def dropped(keys: tuple[str, str], where: str, seed: int) -> set[tuple[Any, ...]]:
    """Returns the combinations of rows that are not shown, and should be: those of rows within the declared values, and with a
    condition also those that are shown without it."""
    try:
        text = FORM.format(keys=", ".join(keys), where=f"WHERE {where}" if where else "")
        question, free = read(text, CATALOG), read(FORM.format(keys=", ".join(keys), where=""), CATALOG)
        found, before = together(question), together(free)
    except QueryError:
        return set()
    known = public_keys(question.query.keys, question.operands().keys)
    if found is None or before is None or known is None:
        return set()
    inside, every = rows(question, seed, within=True), rows(question, seed, within=False)
    right = inside | {key for key in every if all(each.allows(key) for each in before)}
    public = {key for key in right if all(part in values for part, values in zip(key, known, strict=True))}
    return {key for key in public if not all(each.allows(key) for each in found)}


@pytest.mark.slow
@pytest.mark.parametrize("keys", PAIRS, ids=" and ".join)
def test_no_combination_of_a_row_is_dropped(keys: tuple[str, str]) -> None:
    for seed, where in enumerate(["", *CONDITIONS]):
        assert dropped(keys, where, seed) == set(), where


def test_that_check_finds_a_dropped_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_outside", lambda *_: frozenset())  # as if no row lay outside its bounds
    assert any(dropped(keys, where, seed) for keys in PAIRS for seed, where in enumerate(CONDITIONS))


def test_pairs_of_one_column_are_joint() -> None:
    """The check above is about something."""
    found = [keys for keys in PAIRS if together(read(FORM.format(keys=", ".join(keys), where=""), CATALOG))]
    assert len(found) > len(PAIRS) // 2
    assert together(read(FORM.format(keys="age, mode", where=""), CATALOG)) == ()


OF_PEOPLE = "SELECT state, age, COUNT(*) AS n FROM people GROUP BY 1, 2"


@pytest.mark.parametrize(("question", "tables"), [(possible.BY_STATE, {"states"}), (OF_PEOPLE, set())])
def test_only_public_tables_are_read_before_the_charge(question: str, tables: set[str]) -> None:
    with dt.open(possible.catalog(possible.tables()), ledger=":memory:") as survey:
        found = uncharged(survey, question)
        assert found == tables
        assert not private_rows(survey, found)


def test_that_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver that takes every table for a public one reads people's rows before the charge."""
    monkeypatch.setattr(joint, "_read_once", lambda relation, catalog: frozenset(["people"]))
    with dt.open(possible.catalog(possible.tables()), ledger=":memory:") as survey:
        assert private_rows(survey, uncharged(survey, OF_PEOPLE)) == {"people"}
