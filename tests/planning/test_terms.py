"""What a price means in a catalog: the delta that comes with an epsilon."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither.planning.terms import Terms
from dither.privacy.filters import Caps

CAPS = Caps.of(1, "1e-6")


@pytest.mark.parametrize("parts", [3, 7, 11, 9973])
def test_a_delta_that_nobody_wrote_is_rounded_down(parts: int) -> None:
    """So that the whole epsilon, spent in equal parts, never comes with more delta than there is."""
    delta = Terms.of(Fraction(1, parts)).price(CAPS).delta
    assert 0 <= CAPS.delta_sums - delta * parts < Fraction(parts, 10**30)


def test_more_epsilon_than_there_is_comes_with_no_more_delta() -> None:
    assert Terms.of(5).price(CAPS).delta == CAPS.delta_sums
