"""kill −9 at every boundary between steps and at random instants: what was released is charged, nothing kept is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults.programs import program
from faults.steps import EXPECTED, in_order
from journey.paid import people, write

# (store, how often through all boundaries, random instants): how many deaths that must be at least.
SHORT = {("sqlite", 2, 40): 120, ("postgres", 1, 50): 85}
LONG = {("sqlite", 2, 70): 150, ("postgres", 3, 60): 150}
LONG_SEEDS = tuple(range(1, 8))

Mortal = Callable[..., dict[str, Any]]


@pytest.fixture
def mortal(tmp_path: Path, request: pytest.FixtureRequest) -> Mortal:
    """Runs the program that forks and kills, with a budget for every question."""
    people(50).to_parquet(tmp_path / "people.parquet")
    write(tmp_path, epsilon=10**6)

    def run(kind: str, **options: Any) -> dict[str, Any]:
        where = str(tmp_path / "survey.ledger") if kind == "sqlite" else named(request.getfixturevalue("postgres_url"))
        case = {"folder": str(tmp_path), "where": where, "key": str(tmp_path / "survey.key"), **options}
        return program("mortal.py", json.dumps(case))

    return run


def named(url: str) -> str:
    """Returns an address whose sessions differ from those of other tests."""
    base, _, schema = url.partition("#")
    return f"{base}&application_name={schema}#{schema}"


def killed(mortal: Mortal, kind: str, boundaries: int, instants: int, least: int, seed: int) -> None:
    found = mortal(kind, boundaries=boundaries, instants=instants, seed=seed, every=5)
    assert found["problems"] == []
    assert in_order(EXPECTED, found["steps"])
    assert found["killed"] == boundaries * len(found["steps"]) + instants
    assert found["killed"] >= least


@pytest.mark.parametrize(("case", "least"), SHORT.items())
def test_a_killed_process_leaves_a_ledger_that_knows_all_it_released(
    mortal: Mortal, case: tuple[str, int, int], least: int
) -> None:
    killed(mortal, *case, least, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("seed", LONG_SEEDS)
@pytest.mark.parametrize(("case", "least"), LONG.items())
def test_two_thousand_killed_processes(mortal: Mortal, case: tuple[str, int, int], least: int, seed: int) -> None:
    killed(mortal, *case, least, seed)


def test_a_ledger_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    found = program("making.py", str(tmp_path))
    assert found["problems"] == []
    assert found["killed"] >= 25


def test_a_ledger_on_a_server_too(tmp_path: Path, postgres_url: str) -> None:
    found = program("making.py", str(tmp_path), named(postgres_url))
    assert found["problems"] == []
    assert found["killed"] >= 20


def test_a_key_is_rotated_whole_or_not_at_all(tmp_path: Path) -> None:
    found = program("rotating.py", str(tmp_path), "", "right")
    assert found["problems"] == []
    assert found["killed"] >= 20


def test_a_key_of_a_ledger_on_a_server_too(tmp_path: Path, postgres_url: str) -> None:
    found = program("rotating.py", str(tmp_path), named(postgres_url), "right")
    assert found["problems"] == []
    assert found["killed"] >= 20


def test_files_that_are_renamed_first_lock_the_ledger_out(tmp_path: Path) -> None:
    """Twin of both: killed in between, it leaves a key that the ledger does not know."""
    found = program("rotating.py", str(tmp_path), "", "files first")
    assert any("is not the one" in problem for problem in found["problems"])


def test_they_are_as_many_as_promised() -> None:
    assert sum(SHORT.values()) >= 200
    assert sum(LONG.values()) * len(LONG_SEEDS) >= 2000


# --- the same examination finds what others do wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "found"),
    [
        ("charged_late", "was given and nothing was charged"),
        ("kept_late", "was given and is not kept"),
        ("given_back", "the data was read for"),
    ],
)
def test_that_check_can_fail(mortal: Mortal, way: str, found: str) -> None:
    problems = mortal("sqlite", way=way, since="answer in hand", until=found)["problems"]
    assert any(found in problem for problem in problems)
