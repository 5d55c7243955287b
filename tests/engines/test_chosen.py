"""Units over every bound: engines keep the groups, rows and values that the reference engine keeps by the same hash.

The hash is SHA-256 of a text that all engines spell alike (sql/choice.py), except in DuckDB, which has a faster one of its own:
there DuckDB's own hash is given to the reference engine.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.spark.dialect import SparkDialect
from dither.engines.sql.dialect import Dialect
from dither.query.work import Cell, Sums, Work
from engines.crowd import KEYS, MEASURES, OWN, bounded, crowd, hard_rows, kept_of, own_groups, quantised, tie
from engines.places import Place, compare, fit
from engines.tables import SECRET, by_key
from engines.works import plain

PLACES = pytest.mark.parametrize("place", ["duckdb", "postgres", "sqlite"], indirect=True)
DIALECTS: dict[str, type[Dialect]] = {"duckdb": DuckDBDialect, "postgres": PostgresDialect, "spark": SparkDialect}
COUNT = (Sums((Cell(constant=1),), 1),)


@PLACES
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("keys", KEYS)
def test_units_are_bounded_as_the_reference_engine_bounds_them(place: Place, keys: str, most: int) -> None:
    work = bounded(keys, most, tuple(each for group in MEASURES.values() for each in group))
    ours, specified = compare(place, work, {"t": crowd()})
    assert ours == specified


@pytest.mark.long
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("keys", KEYS)
def test_many_units_are_bounded_as_well(place: Place, keys: str, most: int) -> None:
    work = bounded(keys, most, tuple(each for group in MEASURES.values() for each in group))
    ours, specified = compare(place, work, {"t": crowd(40_000, 700)})
    assert ours == specified


def test_hard_values_are_rounded_and_clipped_as_the_reference_engine_does(place: Place) -> None:
    """A double of 2^53 and more must not become an integer by its shortest digits, which may be above the bound."""
    ours, specified = compare(place, quantised(), {"t": hard_rows()})
    assert ours == specified
    assert len(ours) == 2


# --- twins: what the comparison must see --------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_that_the_shortest_digits_of_a_double_are_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresDialect, "round_steps", Dialect.round_steps)
    ours, specified = compare(place, quantised(), {"t": hard_rows()})
    assert ours != specified


def test_that_a_bound_that_is_left_out_is_seen(place: Place) -> None:
    _, specified = compare(place, bounded("texts", 1, COUNT), {"t": crowd()})
    ours, _ = compare(place, bounded("texts", None, COUNT), {"t": crowd()})
    assert ours != specified


@pytest.mark.parametrize("measures", ["sums", "histograms"])
def test_that_a_share_that_is_rounded_is_seen(place: Place, measures: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S·m/k rounded to the nearest number, as a cast of a fraction does it, instead of cut."""

    def rounded(self: Dialect, x: str, y: str, *, wide: bool) -> str:
        return f"CAST(round(CAST(({x}) AS DECIMAL(38, 6)) / ({y})) AS {self.type('int')})"

    monkeypatch.setattr(DIALECTS[place.name], "quotient", rounded)
    ours, specified = compare(place, bounded("texts", 2, MEASURES[measures]), {"t": crowd()})
    assert ours != specified


def test_that_another_hash_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    work = bounded("texts", 1, MEASURES["values"])
    _, specified = compare(place, work, {"t": crowd()})
    right = DIALECTS[place.name].keyed_hash
    monkeypatch.setattr(DIALECTS[place.name], "keyed_hash", lambda self, purpose, columns: right(self, purpose, columns[::-1]))
    engine = place.engine({"t": fit(place, crowd())})
    assert by_key(engine.run(bounded("texts", 1, MEASURES["values"]), SECRET)) != specified


# --- ties ---------------------------------------------------------------------------------------------------------


def kept(place: Place, most: int) -> dict[int, list[int]]:
    work = Work(plain("t", "t"), OWN, None, True, most, COUNT)
    return kept_of(place.engine({"t": own_groups()}).run(work, SECRET))


@pytest.fixture(params=["all", "some"])
def _tied(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that are equal for all groups of a unit, or for every second one."""
    tie(DIALECTS[place.name], monkeypatch, 2 if request.param == "some" else 1)


@pytest.mark.usefixtures("_tied")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_ties_let_nobody_over_the_bound(place: Place, most: int) -> None:
    found = kept(place, most)
    assert max(map(len, found.values())) <= most
    if place.name != "duckdb":  # it keeps fewer where hashes are equal
        assert {unit: len(groups) for unit, groups in found.items()} == {
            unit: min(unit % 7, most) for unit in range(60) if unit % 7
        }


@pytest.mark.usefixtures("_tied")
def test_that_a_bound_that_lets_ties_in_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Not above the L-th hash" instead of a bound that ties cannot pass."""

    def loose(self: Dialect, most: int, heads: Any, columns: Any, *, repeated: bool) -> str:
        place = f"rank() OVER (PARTITION BY u ORDER BY {self.keyed_hash('groups', heads)})"
        listed = ", ".join([*(head.text for head in heads), *columns])
        return f"r AS (SELECT {listed} FROM (SELECT b.*, {place} AS place FROM b) AS q WHERE place <= {most})"

    monkeypatch.setattr(DIALECTS[place.name], "keep_groups", loose)
    assert max(map(len, kept(place, 2).values())) > 2


# --- the secret ---------------------------------------------------------------------------------------------------


def test_the_secret_decides_and_is_in_no_statement(place: Place) -> None:
    work = Work(plain("t", "t"), OWN, None, True, 2, COUNT)
    engine: Any = place.engine({"t": own_groups()})
    found = [kept_of(engine.run(work, secret)) for secret in (SECRET, SECRET, b"another")]
    assert found[0] == found[1] != found[2]
    assert not any(re.search(r"[0-9a-f]{16,}|\d{12,}", text) for text in engine.explain(work))
