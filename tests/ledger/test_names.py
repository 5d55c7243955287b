"""Table names are case-insensitive in the ledger, as in questions: capitals make no new table or unit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError, CatalogError, LedgerError
from dither.ledger.ledger import Ledger
from dither.ledger.stores.sqlite import SQLite
from dither.ledger.verify.report import verify
from dither.query.sql.names import matching
from ledger.asking import IDENTITY, KEY, Clock, Fake, asked, declaration, request
from ledger.edits import canonical, ended, rechained

COUNT = "SELECT COUNT(*) AS n FROM people"
ROWS = {"person_id": [1, 1, 1, 2, 2, 2]}
LETTERS = "aAkK\u212aſsSßẞİiIıΣσςéÉeµμΜǆǅǄﬀfF_0"
PAIRS = [("people", "People"), ("straße", "STRASSE"), ("İ", "i̇"), ("ſ", "S"), ("ΣΑΣ", "σας"), ("K", "\u212a"), ("é", "É")]


def catalog(name: str, unit: str = "person_id", column: str = "person_id") -> dt.Catalog:
    rows = {column: ROWS["person_id"]}
    more: dict[str, Any] = {} if unit == "row" else {"max_rows": 3}
    return dt.Catalog({name: dt.Table(rows, unit=unit, columns={column: dt.column(kind="int")}, **more)}, dt.Budget(1))


@pytest.mark.parametrize("name", ["people", "People", "PEOPLE", "pEOPLE"])
def test_a_capital_letter_is_no_new_table(name: str, tmp_path: Any) -> None:
    ledger = tmp_path / "c.ledger"
    with dt.open(catalog("people"), ledger=ledger, make=True) as survey:
        survey.ask(COUNT, epsilon="0.5")
    with pytest.raises(LedgerError, match="The unit of people was 'one value of person_id'"):
        dt.open(catalog(name, unit="row"), ledger=ledger)
    with dt.open(catalog(name), ledger=ledger) as survey:  # the same unit under the same name is no change
        survey.ask(COUNT, epsilon="0.25")
        assert verify(survey.ledger.store).problems == ()
    with dt.open(catalog(name, "PERSON_ID", "PERSON_ID"), ledger=ledger) as survey:  # nor is its column's
        survey.ask(COUNT, epsilon="0.125")
        assert verify(survey.ledger.store).problems == ()


def test_another_name_is_another_table(tmp_path: Any) -> None:
    """The twin: names that a question would not find are separate tables."""
    with dt.open(catalog("people"), ledger=tmp_path / "c.ledger", make=True) as survey:
        survey.ask(COUNT, epsilon="0.5")
    dt.open(catalog("persons", unit="row"), ledger=tmp_path / "c.ledger").close()


def renamed(first: str, second: str, unit: str, other: str) -> tuple[str, list[str]]:
    """The refusal, and what verification finds where it was written all the same, of one table asked about under two names."""
    ledger = Ledger(SQLite.memory(IDENTITY), KEY, Clock())
    try:
        ledger.register(declaration(units={first: unit}))
        asked(ledger, 1, tables=(first,))
        ledger.register(declaration(catalog_hash="c2", units={second: unit}))
        rows = list(ledger.store.rows())
        rows[-1] = rows[-1]._replace(body=canonical(json.loads(rows[-1].body) | {"units": {second: other}}))
        fake = ended(Fake.of(ledger.store), rechained(rows, KEY))
        found = [each for each in verify(fake).problems if "changes the unit" in each]
        try:
            ledger.register(declaration(catalog_hash="c3", units={second: other}))
        except LedgerError as refusal:
            return str(refusal), found
        return "", found
    finally:
        ledger.close()


NAMES = st.text(st.sampled_from(LETTERS), min_size=1, max_size=4)


@given(NAMES, st.one_of(NAMES, st.just("")), st.sampled_from([str.upper, str.lower, str.title, str.swapcase, str.casefold]))
@example("people", "", str.upper)
@example("ß", "ẞ", str.upper)
def test_what_a_question_finds_is_one_table_for_the_ledger(first: str, second: str, change: Any) -> None:
    second = second or change(first)
    same = bool(matching(second, False, [first], str))
    assert same == bool(matching(first, False, [second], str))
    refusal, found = renamed(first, second, "one value of id", "one row")
    assert ("The unit of" in refusal) == same
    assert bool(found) == same


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_pairs_of_letters_that_are_one(first: str, second: str) -> None:
    assert matching(second, False, [first], str) == [first]
    refusal, found = renamed(first, second, "one value of id", "one row")
    assert "The unit of" in refusal
    assert found
    assert renamed(first, second, f"one value of {first}", f"one value of {second}") == ("", [])


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_names_that_are_one_cannot_have_two_units(first: str, second: str) -> None:
    with pytest.raises(ArgumentError, match="one name"):
        declaration(units={first: "one row", second: "one value of id"})
    table = dt.Table("t.csv", unit="row", columns={name: dt.column(kind="int") for name in (first, second)})
    with pytest.raises(CatalogError, match="differ only in case"):
        dt.Catalog({"t": table}, dt.Budget(1))


def test_verification_finds_a_table_declared_twice(fake: Fake) -> None:
    rows = list(fake.kept)
    units = json.loads(rows[1].body)["units"]
    rows[1] = rows[1]._replace(body=canonical(json.loads(rows[1].body) | {"units": units | {"People": "row"}}))
    assert any("declares a table twice" in each for each in verify(ended(fake, rechained(rows, KEY))).problems)


def test_a_question_names_each_table_once() -> None:
    assert request(tables=("People", "people", "visits")).tables == ("people", "visits")
