"""The table of mutants fits the code, and the script tells a fault that a test finds from one that it does not."""

from __future__ import annotations

import pytest

from mutants import BROKEN, KILLED, STALE, SURVIVED, stale, try_all
from mutants_table import MUTANTS, Mutant

CRUMB = next(mutant for mutant in MUTANTS if mutant.name == "charge-rounded-down")
FAST = ("norm-off-by-one", CRUMB.name)
HARMLESS = CRUMB._replace(name="harmless", new=f"{CRUMB.old}  # as it was")
NO_IMPORT = CRUMB._replace(name="no import", new="import dither.nothing\n    return 1")
UNREADABLE = CRUMB._replace(name="unreadable", old="import math\n", new="import math_of_nobody as math\n")
GONE = CRUMB._replace(name="gone", old="no text of that file")
NO_TEST = CRUMB._replace(name="no test", test="tests/privacy/test_either.py::test_of_nobody")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_no_mutant_is_stale(mutant: Mutant) -> None:
    assert stale(mutant) == ""


def test_that_check_can_fail() -> None:
    assert stale(GONE) == "its text occurs 0 times in privacy/filters.py"
    assert stale(CRUMB._replace(old="return")).startswith("its text occurs ")
    assert stale(CRUMB._replace(file="privacy/nothing.py")) == "privacy/nothing.py is gone"
    assert stale(NO_TEST) == "tests/privacy/test_either.py has no test test_of_nobody"


def test_each_mutant_has_a_name_and_a_change_of_its_own() -> None:
    assert len(MUTANTS) >= 20
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)


@pytest.mark.slow
def test_only_an_assertion_that_fails_is_a_kill() -> None:
    """Two of the fastest, and what must not pass for a kill: a test that passes, a failing import, a stale text."""
    fast = [mutant for mutant in MUTANTS if mutant.name in FAST]
    found = try_all([*fast, HARMLESS, NO_IMPORT, UNREADABLE, GONE], jobs=2)
    assert [one.status for one in found] == [KILLED, KILLED, SURVIVED, BROKEN, BROKEN, STALE]
    assert "dither.nothing" in found[3].why


@pytest.mark.long
def test_every_mutant_is_killed() -> None:
    assert [one.mutant.name for one in try_all(MUTANTS, jobs=2) if one.status != KILLED] == []
