"""No stored value makes a question fail, and nobody's presence decides whether anything is answered."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from attacks.zoo import STORES, Specimen, specimens

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(x) AS n FROM t WHERE pid = 7 AND flag",
    "SELECT COUNT(*) AS n FROM t WHERE flag AND x IS NOT NULL",
    "SELECT COUNT(pid) AS n FROM t WHERE x IS NULL OR flag",
]
ABOUT = {
    "text": [
        "SELECT COUNT(DISTINCT x) AS n FROM t WHERE pid > 3",
        "SELECT COUNT(*) AS n FROM t WHERE x LIKE '%a_%' OR x || x = 'aa'",
        "SELECT COUNT(*) AS n FROM t WHERE x = 'a' AND flag",
    ],
    "real": ["SELECT COUNT(*) AS n FROM t WHERE x > 0.5 AND NOT flag", "SELECT SUM(CLAMP(x, 0, 5)) AS s FROM t"],
    "int": [
        "SELECT COUNT(DISTINCT x) AS n FROM t WHERE pid > 3",
        "SELECT COUNT(*) AS n FROM t WHERE x = 1 AND pid < 9",
        "SELECT SUM(CLAMP(x, 0, 5)) AS s FROM t",
    ],
    "bool": ["SELECT COUNT(*) AS n FROM t WHERE x"],
    "date": [
        "SELECT COUNT(*) AS n FROM t WHERE x > DATE '2020-01-01'",
        "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('month', x) = x",
    ],
    "timestamp": [
        "SELECT COUNT(*) AS n FROM t WHERE x > TIMESTAMP '2020-01-01 00:00:00'",
        "SELECT COUNT(*) AS n FROM t WHERE DATE_TRUNC('week', x) = x OR HOUR(x) > 3",
    ],
}
ANSWERED = "answered"
NO_KIND = "t.x is of a type that questions cannot use."  # said of the schema, whatever the rows are


def statuses(source: Any, *, unit: str = "pid") -> list[str]:
    """What whoever sees only whether things succeed, and the texts of errors, sees of a source."""
    columns = {"pid": dt.column(kind="int"), "flag": dt.column(kind="bool"), "x": dt.column()}
    catalog = dt.Catalog({"t": dt.Table(source, unit=unit, max_rows=1, columns=columns)}, dt.Budget(epsilon=1000))
    try:
        survey = dt.open(catalog, ledger=":memory:")
    except dt.DitherError as error:
        return [str(error)]
    try:
        kind = str(survey.catalog.tables["t"].columns["x"].kind)
        return [_status(survey, question) for question in (*QUESTIONS, *ABOUT[kind])]
    finally:
        survey.close()


def _status(survey: Any, question: str) -> str:
    try:
        survey.ask(question, epsilon=1)
    except dt.DitherError as error:
        return str(error)
    return ANSWERED


def both(specimen: Specimen, store: str, folder: Path) -> tuple[list[str], list[str]] | None:
    """The statuses without and with the odd value; None if the writer itself does not take the value or its type."""
    found = []
    for present in (False, True):
        place = folder / str(present)
        place.mkdir(parents=True)
        try:
            source = STORES[store](specimen.rows(present=present), place)
        except Exception:  # a writer's own refusal, of whatever kind
            return None
        found.append(statuses(source))
    return found[0], found[1]


def sampled(part: int) -> list[tuple[Specimen, str]]:
    """One of so many pairs, the same ones in every run, and every way to store is among them."""
    pairs = [(specimen, store) for specimen in specimens() for store in STORES]
    return [pair for pair in pairs if int(hashlib.sha256(f"{pair[0].name} {pair[1]}".encode()).hexdigest(), 16) % part == 0]


def check(pairs: list[tuple[Specimen, str]], folder: Path) -> int:
    compared = 0
    for number, (specimen, store) in enumerate(pairs):
        found = both(specimen, store, folder / str(number))
        if found is None:
            continue
        without, within = found
        assert without == within, (specimen.name, store)
        assert set(within) == {ANSWERED} or within[0].startswith(NO_KIND), (specimen.name, store, within)
        compared += 1
    return compared


def test_neighbours_in_the_zoo_have_equal_status(tmp_path: Path) -> None:
    assert check(sampled(40), tmp_path) > 80


@pytest.mark.long
@pytest.mark.parametrize("store", STORES)
def test_neighbours_in_the_whole_zoo_have_equal_status(store: str, tmp_path: Path) -> None:
    assert check([(specimen, store) for specimen in specimens()], tmp_path) > 40
