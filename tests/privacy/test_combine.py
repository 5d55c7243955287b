"""Parallel composition and post-processing: prices, and the laws behind them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError, PriceError
from dither.exact import balls
from dither.exact.laws.derived import Moved
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.truncated import TruncatedGeometric
from dither.privacy import parts
from dither.privacy.composition import parallel, postprocess
from dither.privacy.losses import ZCDP, Approx, Curve, Loss, Pure, total
from dither.privacy.neighbours import AddRemove, Group, Replace
from dither.privacy.proof import verify

epsilons = st.lists(st.fractions("1/50", 3, max_denominator=50), min_size=1, max_size=6)


@given(epsilons=epsilons, k=st.integers(1, 5))
def test_parallel_is_the_largest_and_replacing_doubles_it(epsilons: list[Fraction], k: int) -> None:
    losses = [Pure(epsilon) for epsilon in epsilons]
    largest = max(epsilons)
    assert parallel(losses) == Pure(largest)
    assert parallel(losses, Replace()) == Pure(2 * largest)
    assert parallel(losses, Group(AddRemove(), k)) == Pure(k * largest)
    assert parallel(losses, Group(Replace(), k)) == Pure(2 * k * largest)


@given(epsilons=epsilons, k=st.integers(2, 4))
def test_every_spread_of_changes_over_parts_is_covered(epsilons: list[Fraction], k: int) -> None:
    """k changes spread over the parts compose to no more than what `parallel` says, in each currency."""
    spread = [k // len(epsilons) + (i < k % len(epsilons)) for i in range(len(epsilons))]
    for make in (Pure, lambda e: Approx(e, e / 100), lambda e: ZCDP(e * e / 2)):
        losses: list[Loss] = [make(epsilon) for epsilon in epsilons]
        claimed = parallel(losses, Group(AddRemove(), k))
        exact = total([loss.group(share) for loss, share in zip(losses, spread, strict=True) if share])
        if isinstance(claimed, ZCDP):
            assert exact.zcdp().rho <= claimed.rho
        else:
            assert all(a <= b for a, b in zip(exact.pair(), claimed.pair(), strict=True))  # type: ignore[attr-defined]


def test_the_sum_of_the_two_largest_is_too_small_for_replacing() -> None:
    """A sum over [-1, 1] in the part with epsilon 1, another part with epsilon 0.1: a unit that stays moves the sum by 2."""
    found = verify(Geometric(epsilon=1, sensitivity=1), [(-1, 1)])
    assert found.worst == parallel([Pure(1), Pure("0.1")], Replace()).epsilon() == 2
    assert found.worst > Fraction(11, 10)


def test_unlike_losses_meet_in_the_kind_that_all_have() -> None:
    assert parallel([Pure(1), Approx("1/2", "1e-6")]) == Approx(1, "1e-6")
    assert parallel([Pure(1), ZCDP("1/8")]) == ZCDP("1/2")
    curve = Curve.of(parts.Gaussian(Fraction(1, 4)))
    assert parallel([curve, curve]) == curve
    assert parallel([curve, Pure(1)]) == ZCDP("1/2")
    assert parallel([curve], Replace()) == ZCDP("1/2")
    assert parallel([Approx(1, "1e-6")], Replace()) == Approx(1, "1e-6").group(2)
    with pytest.raises(PriceError):
        parallel([ZCDP(1, "1e-6")], Replace())


def test_a_smaller_rho_of_the_largest_epsilon_does_not_hide_the_others() -> None:
    found = parallel([Pure(1, rho="1/8"), Pure("0.9")])
    assert found == Pure(1)
    assert found.zcdp().rho == Fraction(81, 200)


def test_parallel_refuses_what_is_no_loss() -> None:
    for losses in ([], [1], [Pure]):
        with pytest.raises(ArgumentError):
            parallel(losses)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        parallel([Pure(1)], AddRemove)  # type: ignore[arg-type]


def test_post_processing_is_free_and_its_law_is_the_image() -> None:
    inner = TruncatedGeometric(epsilon=1, sensitivity=1, n=5)
    folded = postprocess(inner, lambda k: abs(k - 2))
    assert folded.loss() == inner.loss()
    assert folded.curve() == inner.curve()
    law = folded.law(3)
    assert law.span() == (0, 3)
    with balls.working(128):
        for value in range(4):
            direct = sum((inner.law(3).pmf(k) for k in range(6) if abs(k - 2) == value), arb(0))
            assert law.pmf(value).overlaps(direct)
    assert verify(folded, [(x, x + 1) for x in range(5)]).holds
    assert folded.release(3) in range(4)


@pytest.mark.slow
@given(table=st.lists(st.integers(-3, 3), min_size=6, max_size=6), x=st.integers(0, 4))
def test_no_function_of_a_release_raises_its_loss(table: list[int], x: int) -> None:
    inner = TruncatedGeometric(epsilon="1/2", sensitivity=1, n=5)
    assert verify(postprocess(inner, table.__getitem__), [(x, x + 1)]).holds


def test_a_function_that_looks_at_the_data_is_not_post_processing() -> None:
    """The twin: adding the exact answer once more doubles the loss."""

    class Doubled:
        def loss(self) -> Loss:
            return Pure(1)

        def law(self, exact: int) -> Moved:
            return Moved(TwoSided(1), 2 * exact)

    assert not verify(Doubled(), [(3, 4)]).holds


def test_the_image_of_an_endless_release_is_not_listed() -> None:
    endless = postprocess(Geometric(epsilon=1, sensitivity=1), abs)
    assert endless.release(10) >= 0
    with pytest.raises(ArgumentError, match="no end"):
        endless.law(10)
    with pytest.raises(ArgumentError, match="whole number"):
        postprocess(TruncatedGeometric(epsilon=1, sensitivity=1, n=2), str).law(1)
    with pytest.raises(ArgumentError, match="callable"):
        postprocess(Geometric(epsilon=1, sensitivity=1), 3)  # type: ignore[arg-type]
