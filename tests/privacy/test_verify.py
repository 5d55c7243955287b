"""Pointwise verification holds for every shipped pure mechanism, and rejects broken ones."""

from __future__ import annotations

import importlib
import math
import pkgutil
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither.mechanisms
from dither.errors import ArgumentError, PriceError
from dither.exact import balls
from dither.exact.laws.base import Law
from dither.exact.laws.categorical import Categorical
from dither.exact.laws.coins import Flat
from dither.exact.laws.derived import Clamped, Finite, Moved
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.mechanisms.base import Mechanism, registry
from dither.privacy.losses import ZCDP, Loss, Pure
from dither.privacy.proof import verify


@dataclass(frozen=True)
class Planted:
    """A mechanism given by its laws, one for each exact answer, and a claim."""

    laws: dict[Any, Law]
    price: Loss

    def loss(self) -> Loss:
        return self.price

    def law(self, exact: Any) -> Law:
        return self.laws[exact]


def planted(x: Law, y: Law, epsilon: Any = 1) -> Planted:
    return Planted({0: x, 1: y}, Pure(epsilon))


PAIR = [(0, 1)]

for _module in pkgutil.iter_modules(dither.mechanisms.__path__):  # a mechanism is in the registry once it is imported
    importlib.import_module(f"dither.mechanisms.{_module.name}")


def pure(kind: type[Mechanism]) -> bool:
    return all(isinstance(example.mechanism.loss(), Pure) for example in kind.examples())


@pytest.mark.parametrize("kind", [kind for kind in registry() if pure(kind)], ids=lambda kind: kind.__name__)
def test_it_holds_for_every_shipped_pure_mechanism(kind: type[Mechanism]) -> None:
    for example in kind.examples():
        found = verify(example.mechanism, [(example.exact, other) for other in example.neighbours])
        assert found.holds, f"{example.mechanism}: {found}"
        assert found.slack == 0, f"{example.mechanism}: a tie that nobody named"


def test_the_registry_is_not_empty() -> None:
    assert {"Geometric", "Laplace"} <= {kind.__name__ for kind in registry() if pure(kind)}


@given(s=st.fractions("1/10", 1000, max_denominator=20), move=st.integers(1, 50), start=st.integers(-(10**12), 10**12))
def test_geometric_noise_has_exactly_its_ratio(s: Fraction, move: int, start: int) -> None:
    found = verify(planted(Moved(TwoSided(s), start), Moved(TwoSided(s), start + move), move / s), PAIR)
    assert found.worst == move / s
    assert found.holds
    assert found.slack == 0


def test_a_claim_below_the_exact_ratio_by_nothing_visible_to_floats_is_broken() -> None:
    x, y = TwoSided(2), Moved(TwoSided(2), 1)
    assert verify(planted(x, y, "1/2"), PAIR).holds
    assert not verify(planted(x, y, Fraction(1, 2) - Fraction(1, 10**40)), PAIR).holds


def test_a_wrong_scale_is_exposed() -> None:
    scale = Fraction(9, 10)  # 10 % less noise than epsilon = 1 needs
    found = verify(planted(TwoSided(scale), Moved(TwoSided(scale), 1)), PAIR)
    assert not found.holds
    assert found.worst == Fraction(10, 9)


def test_an_off_by_one_shift_is_exposed() -> None:
    found = verify(planted(Moved(TwoSided(1), 5), Moved(TwoSided(1), 7)), PAIR)
    assert not found.holds
    assert found.worst == 2


def conditioned(n: int, x: int) -> Law:
    """Geometric noise around x thrown again until it falls in [0, n]: the total depends on x."""
    return Categorical(tuple(Fraction(-abs(k - x)) for k in range(n + 1)))


def test_truncation_moves_tails_and_conditioning_leaks() -> None:
    n = 6
    for x in range(n):
        moved = [Clamped(Moved(TwoSided(1), answer), 0, n) for answer in (x, x + 1)]
        found = verify(planted(*moved), PAIR)
        assert found.holds
        assert (found.worst, found.slack) == (1, 0)
    broken = [verify(planted(conditioned(n, x), conditioned(n, x + 1)), PAIR) for x in range(n)]
    assert not all(found.holds for found in broken)
    assert max(found.worst for found in broken) > Fraction(6, 5)


def test_an_output_of_one_side_only_has_no_bound() -> None:
    for x, y in [(OneSided(1), Moved(OneSided(1), 1)), (Flat(5), Flat(6)), (Cut(1, 4), Moved(Cut(1, 4), 1))]:
        for left, right in ((x, y), (y, x)):
            found = verify(planted(left, right, 10**6), PAIR)
            assert found.worst == math.inf
            assert not found.holds
    assert verify(planted(Flat(5), Flat(6), 5), PAIR).output == 5


def test_tails_of_different_slope_or_bend_have_no_bound() -> None:
    for x, y in [(TwoSided(1), TwoSided(2)), (Gaussian(4), Moved(Gaussian(4), 1)), (Gaussian(4), Gaussian(5))]:
        found = verify(planted(x, y, 10**6), PAIR)
        assert (found.worst, found.holds, found.output) == (math.inf, False, None)


def test_the_extreme_of_unequal_bends_lies_inside() -> None:
    """Two clamped Gaussians of different variance: the log ratio is a parabola with its top between the ends."""
    x, y = Clamped(Moved(Gaussian(50), 20), 0, 40), Clamped(Moved(Gaussian(60), 23), 0, 40)
    with balls.working(200):
        slow = max(balls.upper(abs(x.pmf(k).log() - y.pmf(k).log())) for k in range(41))
    found = verify(planted(x, y, 5), PAIR)
    assert abs(found.worst - slow) < Fraction(1, 2**90)


@given(
    weights=st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=8),
    claimed=st.fractions(0, 20, max_denominator=5),
)
def test_it_agrees_with_looking_at_every_output(weights: list[tuple[int, int]], claimed: Fraction) -> None:
    x, y = (Categorical(tuple(Fraction(w[side], 3) for w in weights)) for side in (0, 1))
    with balls.working(256):
        slow = [abs(x.pmf(k).log() - y.pmf(k).log()) for k in range(len(weights))]
        largest = max(balls.upper(ratio) for ratio in slow)
    found = verify(planted(x, y, claimed), PAIR)
    assert abs(found.worst - largest) < Fraction(1, 2**90)
    if found.holds:
        assert not any(ratio > balls.ball(claimed) for ratio in slow)
    else:
        assert any(not ratio <= balls.ball(claimed) for ratio in slow)


def test_permuted_weights_are_compared_exactly() -> None:
    """Randomized response: the normaliser is the same real, so a ratio of exactly epsilon is seen to be equal."""
    x, y = Categorical((Fraction(1, 3), Fraction(0))), Categorical((Fraction(0), Fraction(1, 3)))
    found = verify(planted(x, y, "1/3"), PAIR)
    assert (found.worst, found.holds, found.slack) == (Fraction(1, 3), True, 0)


def test_a_tie_of_unnamed_reals_is_accepted_with_its_slack() -> None:
    x = Finite((lambda: 1 / (1 + balls.exp(1)), lambda: 1 - 1 / (1 + balls.exp(1))))
    y = Finite((lambda: 1 - 1 / (1 + balls.exp(1)), lambda: 1 / (1 + balls.exp(1))))
    found = verify(planted(x, y), PAIR)
    assert found.holds
    assert 0 < found.slack < Fraction(1, 2**4000)
    assert not verify(planted(x, y, 1 - Fraction(1, 2**4000)), PAIR).holds


def test_the_worst_pair_and_output_are_named() -> None:
    laws: dict[Any, Law] = {n: Moved(TwoSided(1), n) for n in range(4)}
    found = verify(Planted(laws, Pure(1)), [(0, 1), (0, 3), (1, 2)])
    assert found.pair == (0, 3)
    assert found.worst == 3
    assert found.output is not None
    assert "broken" in str(found)
    with balls.working(64):
        assert abs(laws[0].pmf(found.output).log() - laws[3].pmf(found.output).log()).contains(3)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ArgumentError, match="pairs"):
        verify(planted(TwoSided(1), TwoSided(1)), [])
    with pytest.raises(PriceError):
        verify(Planted({0: TwoSided(1)}, ZCDP(1)), [(0, 0)])
    assert verify(Planted({0: TwoSided(1)}, ZCDP(1)), [(0, 0)], claimed=0).worst == 0
