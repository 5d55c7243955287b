"""Walks: every family of samplers follows its law, and samplers that are slightly wrong are found."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from dither.audit.exact.samplers import Sampler, samplers
from dither.audit.exact.walk import WalkResult, walk
from dither.audit.verdict import NOT_FOUND, PROVED, VIOLATES, WALKED
from dither.exact import entropy
from dither.exact.laws.coins import Coin, Flat
from dither.exact.laws.derived import Finite
from dither.exact.laws.geometric import TwoSided
from dither.exact.samplers.digits import Digits
from dither.exact.samplers.table import UNSURE, Table

LONG = {"Flat(6), one draw", "TwoSided(41), one draw", "TwoSided(10^12), middle digit", "PermuteAndFlip.release((3, 0, 1, 1))"}
SAMPLERS = [pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name in LONG else []) for one in samplers()]


@lru_cache
def walked(sampler: Sampler) -> WalkResult:
    return sampler.walk()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sampler_follows_its_law(sampler: Sampler) -> None:
    found = walked(sampler)
    assert found.holds, str(found)
    assert sum(found.answered.values()) + found.undecided == 1
    assert found.distance < Fraction(1, 10_000)
    assert found.verdict().outcome == WALKED
    assert "if words between tried ones behave alike" in str(found)


def test_tables_are_tried_word_by_word() -> None:
    found = walked(next(one for one in samplers() if one.name == "TwoSided(1), arrays"))
    assert found.tried > Fraction(99, 100)
    assert found.distance < Fraction(1, 2**56)
    assert found.verdict().evidence["distance without any assumption"] == pytest.approx(float(1 - found.tried))


def test_only_a_walk_that_tried_every_word_is_called_proved() -> None:
    whole = WalkResult("a", {0: Fraction(1)}, Fraction(0), Fraction(1), Fraction(0), None, 1, 0.1)
    assert whole.verdict().outcome == PROVED
    assert "by trying every word" in str(whole)
    most = WalkResult("a", {0: Fraction(1)}, Fraction(0), Fraction(65535, 65536), Fraction(0), None, 1, 0.1)
    assert most.verdict().outcome == WALKED
    assert "99.9984 %" in str(most.verdict())
    none = WalkResult("a", {}, Fraction(1), Fraction(0), Fraction(1), None, 1, 0.1)
    assert none.verdict().outcome == NOT_FOUND
    assert "nothing concluded" in str(none.verdict())


def copied() -> Table:
    table = Digits(Fraction(1), True).top
    return Table(table.thresholds, table.values, table.exact)


def walk_table(table: Table) -> WalkResult:
    def draw(size: int) -> np.ndarray:
        return table.many(size)

    return walk("a table of TwoSided(1)", lambda: int(table.many(1)[0]), TwoSided(Fraction(1)), batch=draw)


def test_one_entry_of_a_table_that_is_off_by_one_is_seen() -> None:
    table = copied()
    prefixes = table.arrays()[0]
    place = int(np.flatnonzero(prefixes == UNSURE)[5]) + 1
    prefixes[place] -= 1  # the first word of a cell answers with the cell below
    found = walk_table(table)
    assert not found.holds
    assert found.too_much is not None
    assert found.too_much[0] == prefixes[place]
    assert found.too_much[1] - found.too_much[2] < Fraction(1, 2**15)
    assert found.verdict().outcome == VIOLATES


@pytest.mark.parametrize("by", [-3, 3])
def test_a_threshold_that_is_off_by_three_in_two_to_the_64_is_seen(by: int) -> None:
    table = copied()
    j = len(table.thresholds) // 2
    table.thresholds[j] += by
    assert not walk("one threshold off", table.one, TwoSided(Fraction(1))).holds


def test_a_law_of_almost_the_same_scale_is_not_followed() -> None:
    law = TwoSided(1 + Fraction(1, 10**15))
    assert not walk("TwoSided(1)", TwoSided(Fraction(1)).draw, law).holds


def test_a_value_that_the_law_cannot_give_is_seen() -> None:
    found = walk("a die of seven", Flat(7).draw, Flat(6), most=30_000)
    assert found.too_much is not None
    assert found.verdict().epsilon > 0


def test_a_sampler_that_uses_a_word_twice_is_seen() -> None:
    """Two fair coins with one bit: each alone is right."""

    def twice() -> int:
        word = entropy.bits(1)
        return 2 * word + word

    quarter = tuple(Coin(Fraction(1, 4))._unit for _ in range(4))
    assert not walk("two coins", twice, Finite(quarter)).holds
    right = walk("two coins", lambda: 2 * entropy.bits(1) + entropy.bits(1), Finite(quarter))
    assert right.holds
    assert right.distance < Fraction(1, 2**59)


def test_what_is_left_open_is_stated() -> None:
    found = walk("cut short", TwoSided(Fraction(1)).draw, TwoSided(Fraction(1)), most=100)
    assert found.holds
    assert found.undecided > Fraction(1, 1000)
    assert found.verdict().outcome == NOT_FOUND


def test_the_entropy_door_is_back_in_its_place_afterwards() -> None:
    before = entropy.thread_state().source
    walk("a coin", Coin(Fraction(1, 3)).draw, Coin(Fraction(1, 3)))
    assert entropy.thread_state().source is before
    assert len({entropy.word() for _ in range(5)}) == 5
