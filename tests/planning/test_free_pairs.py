"""Every pair of an earlier question and a new one: the free answer is DuckDB's, or there is none."""

from __future__ import annotations

from typing import Any

import pytest

import dither as dt
from dither.curator import Curator
from planning.free_survey import survey, truth

EARLIER = [
    "region",
    "region, sex",
    "age",
    "FLOOR(age / 10)",
    "FLOOR(age / 15) * 15",
    "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END",
    "age >= 18",
    "age % 4",
    "born",
    "DATE_TRUNC('month', born)",
    "MONTH(born)",
    "YEAR(born), region = 'north'",
    "CASE WHEN region = 'north' THEN 'n' ELSE NULL END",
    "COALESCE(age, -1)",
    "age IS NULL, sex",
    "UPPER(region)",
]
KEYS = [
    "",
    "sex",
    "region = 'north'",
    "UPPER(region)",
    "FLOOR(age / 20)",
    "FLOOR(age / 30) * 30",
    "age < 18",
    "age < 20",
    "age % 2",
    "YEAR(born)",
    "QUARTER(born)",
    "DATE_TRUNC('year', born)",
    "COALESCE(region, 'none')",
    "CASE WHEN age IS NULL THEN 'unknown' ELSE 'known' END",
]
CONDITIONS = [
    "",
    "sex = 'F'",
    "region IN ('north', 'east')",
    "NOT (region = 'north')",
    "age >= 18",
    "age BETWEEN 30 AND 59",
    "age < 18 OR age >= 65",
    "age IS NOT NULL",
    "age IS NULL",
    "age % 4 = 1",
    "born >= '2021-01-01'",
    "MONTH(born) = 3",
    "region = 'north' AND age > 20",
    "LENGTH(region) > 4",
    "region = 'north'",
    "age > 500",
]


def question(keys: str, condition: str = "") -> str:
    named = [f"{key} AS k{place}" for place, key in enumerate(_split(keys))]
    where = f" WHERE {condition}" if condition else ""
    by = f" GROUP BY {', '.join(f'k{place}' for place in range(len(named)))}" if named else ""
    return f"SELECT {', '.join([*named, 'COUNT(*) AS n'])} FROM people{where}{by}"


def _split(keys: str) -> list[str]:
    found, depth = [""], 0
    for letter in keys:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [key.strip() for key in found if key.strip()]


def free(curator: Curator, text: str) -> dict[tuple[Any, ...], int] | None:
    try:
        return {row[:-1]: row[-1] for row in curator.ask(text, free=True)}  # type: ignore[misc]
    except dt.QueryError as error:
        if "No earlier answer" in str(error) or "No declared value" in str(error):
            return None
        raise


def right(text: str, found: dict[tuple[Any, ...], int]) -> bool:
    """Whether the counts are DuckDB's; groups that no row has count 0, and NULL is a group only where it is declared."""
    expected = {row[:-1]: row[-1] for row in truth(text)}
    wanted = {key: n for key, n in expected.items() if key in found or None not in key}
    return {key: n for key, n in found.items() if n} == {key: n for key, n in wanted.items() if n}


@pytest.mark.slow
@pytest.mark.parametrize("earlier", EARLIER)
def test_a_free_answer_is_duckdbs_or_refused(earlier: str) -> None:
    given = 0
    with survey() as curator:
        curator.ask(question(earlier), epsilon=500)
        for text in dict.fromkeys([*(question(each) for each in KEYS), *(question("", each) for each in CONDITIONS)]):
            found = free(curator, text)
            given += found is not None
            if found is not None:
                # A total leaves out rows that are in no group; so does its truth here.
                assert right(text, found) or _covers(earlier, text, found), text
    assert given >= 1


def _covers(earlier: str, text: str, found: dict[tuple[Any, ...], int]) -> bool:
    """Whether the answer is DuckDB's over the rows where no column of the earlier keys is NULL: NULL is not declared."""
    rows = " AND ".join(f"{name} IS NOT NULL" for name in ("age", "born", "region", "sex") if name in earlier)
    return right(text.replace(" FROM people", f" FROM (SELECT * FROM people WHERE {rows})"), found)


def test_that_check_can_fail() -> None:
    assert not right(question("sex"), {("F",): 1, ("M",): 2})
