"""The price of a program holds: every data set, every neighbour and every output of small programs, with exact laws."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import dither as dt
from dither.tracing.bounded import Bounded
from dither.tracing.influence import Influence
from tracing.programs import ONE, Scripted, neighbours, noisy_elements, partial_sums, worst_excess

TIGHT = 1e-12


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return Scripted(monkeypatch)


def price(program: Any, n: int, low: int = 0, high: int = 1) -> Fraction:
    return dt.trace(program, dt.records([low] * n, low, high)).loss().epsilon(0)


# --- the two programs of the lectures ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_noise_on_each_partial_sum_costs_n_prices(n: int) -> None:
    assert price(partial_sums, n) == n


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_noise_on_each_element_costs_one_price(n: int) -> None:
    assert price(noisy_elements, n) == 1


def test_both_prices_are_reached_and_never_exceeded(scripted: Scripted) -> None:
    for program in (partial_sums, noisy_elements):
        assert abs(worst_excess(scripted, program, n=2, outputs=2)) < TIGHT


# --- other small programs ---------------------------------------------------------------------------------------


def cumulative(x: Any) -> Any:
    return x.cumsum().release(ONE)


def twice_in_one_vector(x: Any) -> Any:
    return x[[0, 0, 1]].release(ONE)


def extremes(x: Any) -> Any:
    return x.min().concat(x.max()).release(ONE)


def clipped_and_scaled(x: Any) -> Any:
    return (3 * x.clip(0, 1) - x).sum().release(ONE)


def smaller_of_sums(x: Any) -> Any:
    return (x[0] + x[1]).minimum(2 * x[1]).release(ONE)


def product(x: Any) -> Any:
    return (x[0] * x[1]).concat(abs(x[0] - 1)).release(ONE)


def table(x: Any) -> Any:
    return x.apply(lambda v: [0, 3, 1][int(v)], step=1).sum().release(ONE)


def halves(x: Any) -> Any:
    return ((x + 1) / 2).floor(1).sum().release(ONE)


def weighted(x: Any) -> Any:
    return (x[0] + 3 * x[1]).release(ONE)


def chooses_by_noise(x: Any) -> Any:
    first = x[0].release(ONE)
    return (x.sum() if first > 0 else 2 * x.sum()).release(ONE)


def follows_noise(x: Any) -> Any:
    """The factor is noisy, with declared bounds: the price counts with the bounds."""
    first = x[0].release(ONE).clip(-1, 2, step=1)
    return (first * x[1]).release(ONE)


PROGRAMS = [
    (cumulative, 2, 2, (0, 1)),
    (twice_in_one_vector, 2, 3, (0, 1)),
    (extremes, 2, 2, (0, 2)),
    (clipped_and_scaled, 2, 1, (0, 2)),
    (smaller_of_sums, 2, 1, (0, 2)),
    (product, 2, 2, (0, 2)),
    (table, 2, 1, (0, 2)),
    (halves, 2, 1, (0, 1)),
    (weighted, 2, 1, (0, 1)),
    (chooses_by_noise, 2, 2, (0, 1)),
    (follows_noise, 2, 2, (0, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case[0].__name__)
def test_the_price_covers_every_output_of_every_neighbour(case: Any, scripted: Scripted) -> None:
    program, n, outputs, bounds = case
    assert worst_excess(scripted, program, n, outputs, bounds) < TIGHT


# --- twins: with one rule broken, the same check finds an output ------------------------------------------------


def _forgets_the_other(self: Influence, other: Influence) -> Influence:
    return self


def _one_number_of_the_vector(self: Bounded) -> Any:
    return self.influence.take(np.array([0])).load()


def _ignores_the_factor(self: Influence, by: Any) -> Influence:
    return self


def _smaller_move(self: Influence, other: Influence) -> Influence:
    return self if self.is_none or other.is_none else self.plus(other).scaled(np.zeros(self.outputs, dtype=np.int64))


def _no_sums_before(self: Influence) -> Influence:
    return self


def _half_a_move(self: Influence, p: int, q: int) -> Influence:
    return replace(self, move=self.move * p // q).scaled(np.ones(self.outputs, dtype=np.int64))


BROKEN = [
    (Influence, "plus", _forgets_the_other, (weighted, 2, 1, (0, 1))),
    (Bounded, "load", _one_number_of_the_vector, PROGRAMS[1]),
    (Influence, "scaled", _ignores_the_factor, (weighted, 2, 1, (0, 1))),
    (Influence, "either", _smaller_move, PROGRAMS[4]),
    (Influence, "cumulated", _no_sums_before, PROGRAMS[0]),
    (Influence, "rescaled", _half_a_move, PROGRAMS[7]),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case[1]}-{case[3][0].__name__}")
def test_that_a_broken_rule_is_found(case: Any, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    home, name, wrong, (program, n, outputs, bounds) = case
    monkeypatch.setattr(home, name, wrong)
    assert worst_excess(scripted, program, n, outputs, bounds) > 0.4


# --- limits -----------------------------------------------------------------------------------------------------


def spends_while_low(x: Any) -> None:
    for _ in range(3):
        try:
            if x[0].release(ONE) > 0:
                return
        except dt.BudgetError:
            return


def _worst_with(limit: int | None, scripted: Scripted) -> float:
    """The largest log ratio of the program's transcripts between neighbours, with a limit or without."""
    worst = 0.0
    for script in itertools.product((-1, 2), repeat=3):
        chances = []
        for data in ([0], [1]):
            scripted.script, scripted.chance = list(script), arb(1)
            dt.trace(spends_while_low, dt.records(data, 0, 1), limit=None if limit is None else dt.PureFilter(limit))
            chances.append(scripted.chance)
        worst = max(worst, abs(float((chances[0] / chances[1]).log())))
    return worst


def test_a_limit_holds_for_every_transcript(scripted: Scripted) -> None:
    assert abs(_worst_with(2, scripted) - 2) < TIGHT


def test_that_without_a_limit_a_transcript_costs_more(scripted: Scripted) -> None:
    assert abs(_worst_with(None, scripted) - 3) < TIGHT


# --- Gaussian noise ---------------------------------------------------------------------------------------------

SHARP = dt.Gaussian(rho="1/2", sensitivity=1)


def gaussian_sums(x: Any) -> Any:
    return [x.cumsum().release(SHARP), (2 * x[1]).release(SHARP)]


def _divergence(scripted: Scripted, order: int = 2) -> float:
    """The largest Renyi divergence between neighbours: of independent releases, the sum over their numbers."""
    worst = 0.0
    for one, other in neighbours(0, 1, 2):
        laws = []
        for data in (one, other):
            scripted.run(gaussian_sums, data, [0] * 3, (0, 1))
            laws.append([law for law, _ in scripted.centres])
        total = 0.0
        for p, q in zip(*laws, strict=True):
            pairs = [(float(p.pmf(k)), float(q.pmf(k))) for k in range(-15, 18)]
            total += np.log(sum(a**order * b ** (1 - order) for a, b in pairs)) / (order - 1)
        worst = max(worst, total)
    return worst


def test_gaussian_noise_adds_up_in_squares_for_each_record(scripted: Scripted) -> None:
    rho = float(dt.trace(gaussian_sums, dt.records([0, 0], 0, 1)).loss().zcdp().rho)
    assert rho == 2.5  # record 1 moves one sum by 1 and the other by 2: (1 + 4) / 2
    assert 2 * rho - 1e-9 < _divergence(scripted) < 2 * rho + 1e-9


def test_that_the_sum_of_moves_would_be_too_little(scripted: Scripted) -> None:
    assert _divergence(scripted) > 2 * (1 + 2) / 2  # ρ by moves instead of squares


# --- choosing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [dt.NoisyMax, dt.Exponential, dt.PermuteAndFlip])
def test_a_choice_is_priced_for_scores_that_move_further(kind: Any) -> None:
    mechanism = kind(epsilon=1, sensitivity=1)

    def program(x: Any) -> Any:
        return (4 * x[0]).concat(4 - 4 * x[0], x[0] + x[1]).release(mechanism)

    trace = dt.trace(program, dt.records([0, 0], 0, 1))
    assert trace.loss().epsilon(0) == 4

    def scores(x: tuple[int, int]) -> list[int]:
        return [4 * x[0], 4 - 4 * x[0], x[0] + x[1]]

    worst = 0.0
    for one, other in neighbours(0, 1, 2):
        p, q = (mechanism.law(scores(data)) for data in (one, other))  # type: ignore[arg-type]
        worst = max(worst, *(float((p.pmf(k) / q.pmf(k)).log()) for k in range(3)))
    assert 1.4 < worst <= 4  # one price would be too little


def test_sparse_vector_compares_without_showing(scripted: Scripted) -> None:
    mechanism = dt.SparseVector(epsilon=1, sensitivity=1, threshold=1)
    trace = dt.trace(lambda x: x.cumsum().release(mechanism), dt.records([0, 1, 1], 0, 1))
    assert trace.loss().epsilon(0) == 1
    assert trace.result.shape == (3,)
    worst = 0.0
    for one, other in neighbours(0, 1, 2):
        p, q = (mechanism.law(np.cumsum(data)) for data in (one, other))
        first, last = p.span()
        assert first is not None
        assert last is not None
        pairs = [(p.pmf(k), q.pmf(k)) for k in range(first, last + 1)]
        worst = max(worst, *(float((a / b).log()) for a, b in pairs if a > 0))
    assert 0.3 < worst <= 1


def test_a_promise_that_scores_move_together_is_refused() -> None:
    mechanism = dt.Exponential(epsilon=1, sensitivity=1, monotone=True)
    with pytest.raises(dt.ArgumentError, match="monotone"):
        dt.trace(lambda x: x.release(mechanism), dt.records([0, 1], 0, 1))
