"""The made-up survey of the tutorial: always the same, as dirty as it says, and never written over a file."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

import dither as dt
from dither.datasets import PEOPLE, REGIONS, SURVEY_FILES, health_survey
from journey.hospital import run


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_survey_is_the_same_each_time(tmp_path: Path) -> None:
    first, second = health_survey(tmp_path / "a"), health_survey(tmp_path / "b")
    assert [(first / name).read_bytes() for name in SURVEY_FILES] == [(second / name).read_bytes() for name in SURVEY_FILES]


def test_it_is_skewed_and_dirty(tmp_path: Path) -> None:
    place = health_survey(tmp_path)
    people, visits = rows(place / "people.csv"), rows(place / "visits.csv")
    assert [row["person_id"] for row in people] == [str(i) for i in range(1, PEOPLE + 1)]
    assert {row["region"] for row in people} == {*REGIONS, "", "abroad", "North"}
    assert {"", "999"} < {row["age"] for row in people}
    incomes = sorted(float(row["income"]) for row in people if row["income"] not in ("", "n/a"))
    assert incomes[-1] > 20 * incomes[len(incomes) * 9 // 10]
    often = Counter(row["person_id"] for row in visits if row["person_id"])
    heavy = sum(count for _, count in often.most_common(60)) / sum(often.values())
    assert 0.1 < heavy < 0.3
    assert any(int(person) > PEOPLE for person in often)


def test_no_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(dt.ArgumentError, match="is there already"):
        health_survey(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]


def test_the_command_writes_it(tmp_path: Path) -> None:
    assert run("demo", "--survey", str(tmp_path / "new" / "folder")).exit_code == 0
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == set(SURVEY_FILES)
    assert run("demo", "--survey", str(tmp_path / "new" / "folder")).exit_code != 0
    assert run("demo", "--survey", str(tmp_path / "a"), "--folder", str(tmp_path / "b")).exit_code == 2
    assert not (tmp_path / "a").exists()
