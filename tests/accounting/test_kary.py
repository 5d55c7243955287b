"""k-ary response has its own worst pair: three losses, whose weights depend on k."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accounting import truth
from dither.mechanisms import RandomizedResponse
from dither.privacy import parts
from dither.privacy.losses import Curve, total

GAP = Fraction(1, 10**6)


@pytest.mark.parametrize("part", parts.KaryResponse.examples(), ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_a_few_responses_are_priced_as_their_reports_say(part: parts.KaryResponse, delta: float) -> None:
    n = 2 if part.categories > 50 else 4
    price = float(Curve.of(part, n).epsilon(delta))

    def exact(epsilon: float) -> float:
        return truth.stick([truth.outputs(part)] * n, epsilon)

    assert exact(price) <= delta * (1 + 1e-9)
    assert price == 0 or exact(price * (1 - 1e-6)) > delta


def test_a_hundred_responses_over_many_values_cost_much_less_than_binary_ones() -> None:
    price = {
        k: float(RandomizedResponse(epsilon="0.1", categories=k).curve().repeat(100).epsilon("1e-6")) for k in (2, 3, 10, 100)
    }
    assert price[2] == pytest.approx(4.774567588108, rel=1e-6)
    assert price[2] > price[3] > price[10] > price[100]
    assert price[10] < price[2] / 2.3
    assert price[100] < price[2] / 6
    # Three reports a hundred times over, by counting which of them came how often.
    assert truth.by_counts(parts.KaryResponse("0.1", 3), 100, price[3]) <= 1e-6 * (1 + 1e-9)
    assert truth.by_counts(parts.KaryResponse("0.1", 3), 100, price[3] * (1 - 1e-6)) > 1e-6


def test_a_price_for_more_values_than_there_are_is_too_small() -> None:
    """The twin: three values priced as four."""
    cheap = float(Curve.of(parts.KaryResponse("1/2", 4), 4).epsilon("1e-3"))
    assert truth.stick([truth.outputs(parts.KaryResponse("1/2", 3))] * 4, cheap) > 1e-3 * 1.1


@pytest.mark.parametrize("mechanism", [example.mechanism for example in RandomizedResponse.examples()], ids=str)
def test_the_mechanism_states_a_pair_that_covers_its_reports(mechanism: RandomizedResponse) -> None:
    curve = mechanism.curve()
    assert curve.epsilon() == mechanism.loss().epsilon()
    p, q = (float(share) for share in mechanism._shares())
    for at in (0.0, float(mechanism.loss().epsilon()) / 3):
        one, other = (max(x - 2.718281828459045**at * y, 0.0) for x, y in ((p, q), (q, p)))
        rest = (mechanism.categories - 2) * max(q - 2.718281828459045**at * q, 0.0)
        exact = one + other + rest
        assert exact * (1 - 1e-9) <= float(curve.delta(Fraction(at))) <= exact * (1 + 1e-6)


def test_a_response_that_hides_the_truth_most_is_another_law() -> None:
    honest, lying = (Curve.of(parts.KaryResponse(1, 5, each), 20).epsilon("1e-6") for each in (True, False))
    assert RandomizedResponse(p="1/20", categories=5).curve().parts[0][0].truthful is False  # type: ignore[attr-defined]
    assert abs(honest / lying - 1) > Fraction(1, 20)


def test_responses_stand_beside_other_releases() -> None:
    mixed = total([Curve.of(parts.KaryResponse("1/10", 10), 50), Curve.of(parts.Laplace("1/10"), 10)]).curve()
    assert Curve.of(parts.KaryResponse("1/10", 10), 50).epsilon("1e-6") < mixed.epsilon("1e-6")
    same = total([Curve.of(parts.KaryResponse("1/2", 3)), Curve.of(parts.Response("1/2"), 2)]).curve()
    exact = [truth.outputs(part) for part, n in same.parts for _ in range(n)]
    price = float(same.epsilon("1e-2"))
    assert truth.stick(exact, price) <= 1e-2 * (1 + 1e-9)
    assert truth.stick(exact, price * (1 - 1e-6)) > 1e-2


def test_a_group_is_priced_as_any_pure_release() -> None:
    assert parts.KaryResponse("1/10", 7).group(3) == parts.Response("3/10")
