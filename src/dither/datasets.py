"""Made-up data for the tutorial and the examples: a regional health survey with visits.

    people.csv     one row for each person: region, age, income, smoker
    visits.csv     one row for each visit to a doctor: whose, when, why, at which cost
    regions.csv    public: the regions and their number of inhabitants

Nobody in it exists: a fixed generator invents everybody, so exact numbers may be printed beside private ones. The files have
what real ones have: incomes with a long tail, a few people with very many visits, empty cells, `n/a`, ages of 999, one region
in two spellings and one that nobody declared, visits of people who are in no list.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dither.errors import ArgumentError

PEOPLE = 12_000
REGIONS = {"north": 4_100, "south": 3_300, "east": 2_500, "west": 1_400, "isles": 700}  # and their inhabitants, in thousands
REASONS = ("checkup", "injury", "chronic", "vaccine", "other")
SURVEY_FILES = ("people.csv", "visits.csv", "regions.csv")
_FIRST_DAY = datetime.date(2025, 1, 1)
_SEED = 25

Row = Sequence[object]


def health_survey(folder: str | Path) -> Path:
    """Writes the three files of the survey into a folder, and returns it. Refuses to replace a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     sorted(file.name for file in health_survey(place).iterdir())
    ['people.csv', 'regions.csv', 'visits.csv']
    """
    place = Path(folder)
    for name in SURVEY_FILES:
        if (place / name).exists():
            raise ArgumentError(f"{place / name} is there already.", fix="name another folder.")
    try:
        place.mkdir(parents=True, exist_ok=True)
        dice = np.random.default_rng(_SEED)  # for inventing people, never for noise
        frail = _write_people(place / "people.csv", dice)
        _write_visits(place / "visits.csv", dice, frail)
        _write(place / "regions.csv", ("name", "inhabitants"), ((name, 1000 * size) for name, size in REGIONS.items()))
    except OSError:
        raise ArgumentError(f"{place} cannot be written.", fix="name a folder where you may write.") from None
    return place


def _write_people(path: Path, dice: np.random.Generator) -> NDArray[np.float64]:
    """Writes the people. Returns how often each of them is ill, on average."""
    sizes = np.array(list(REGIONS.values()), dtype=float)
    region = dice.choice(list(REGIONS), size=PEOPLE, p=sizes / sizes.sum()).astype(object)
    age = np.clip(dice.normal(43, 23, PEOPLE).round().astype(int), 0, 104)
    dear = np.where(region == "north", 0.2, 0.0) + np.where(region == "isles", -0.3, 0.0)
    income = (dice.lognormal(10.2 + dear, 0.75) // 100 * 100).astype(int)  # most around 27,000, a few in millions
    income[dice.choice(PEOPLE, 12, replace=False)] *= 40
    income[age < 16] = 0
    smoker = np.where(dice.random(PEOPLE) < 0.21 + 0.06 * (region == "east"), "yes", "no")
    smoker[age < 14] = "no"
    frail: NDArray[np.float64] = dice.gamma(0.9, 1.0, PEOPLE) * (0.6 + age / 40)
    frail[dice.choice(PEOPLE, 60, replace=False)] = dice.uniform(30, 120, 60)  # dialysis, wounds: a visit every few days
    cells = (_dirty(region, dice, {"": 0.02, "abroad": 0.01, "North": 0.004}), _dirty(age, dice, {"": 0.01, 999: 0.003}))
    money = _dirty(income, dice, {"n/a": 0.06, "": 0.01})
    smokes = _dirty(smoker, dice, {"": 0.04})
    _write(
        path, ("person_id", "region", "age", "income", "smoker"), zip(range(1, PEOPLE + 1), *cells, money, smokes, strict=True)
    )
    return frail


def _write_visits(path: Path, dice: np.random.Generator, frail: NDArray[np.float64]) -> None:
    """Writes the visits of a year, in the order of their days."""
    person = np.repeat(np.arange(1, PEOPLE + 1), dice.poisson(frail))
    lost = dice.integers(PEOPLE + 1, PEOPLE + 400, 250)  # patients who are in no list of people
    person = np.concatenate([person, lost])
    season = 1 + 0.5 * np.cos(np.arange(365) * 2 * np.pi / 365)
    day = np.sort(dice.choice(365, size=len(person), p=season / season.sum()))
    dice.shuffle(person)
    reason = dice.choice(REASONS, size=len(person), p=[0.3, 0.12, 0.33, 0.1, 0.15])
    usual = np.array([45.0, 180.0, 90.0, 30.0, 70.0])[[REASONS.index(each) for each in reason]]
    cost = (usual * dice.lognormal(0, 0.6, len(person))).round(2)
    owner = _dirty(person, dice, {"": 0.002})
    days = [(_FIRST_DAY + datetime.timedelta(int(each))).strftime("%d.%m.%Y") for each in day]
    rows = zip(
        range(1, len(person) + 1), owner, days, _dirty(reason, dice, {"": 0.01}), _dirty(cost, dice, {"n/a": 0.01}), strict=True
    )
    _write(path, ("visit_id", "person_id", "day", "reason", "cost"), rows)


def _dirty(values: Iterable[object], dice: np.random.Generator, wrong: dict[object, float]) -> list[object]:
    """Returns the values, a share of them replaced by each of the wrong ones."""
    cells = list(values)
    for value, share in wrong.items():
        for place in np.flatnonzero(dice.random(len(cells)) < share):
            cells[place] = value
    return cells


def _write(path: Path, names: Sequence[str], rows: Iterable[Row]) -> None:
    with path.open("x", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(names)
        lines.writerows(rows)
