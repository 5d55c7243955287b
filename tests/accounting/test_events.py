"""Events of dp_accounting and parameters of Opacus are read as losses. Stand-ins have the names and fields of the real ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError, DitherError, PriceError
from dither.privacy import parts
from dither.privacy.events import from_dp_accounting, from_opacus
from dither.privacy.losses import ZCDP, Curve, total


@dataclass(frozen=True)
class NoOpDpEvent:
    pass


@dataclass(frozen=True)
class NonPrivateDpEvent:
    pass


@dataclass(frozen=True)
class GaussianDpEvent:
    noise_multiplier: float


@dataclass(frozen=True)
class LaplaceDpEvent:
    noise_multiplier: float


@dataclass(frozen=True)
class DiscreteLaplaceDpEvent:
    noise_parameter: float
    sensitivity: int


@dataclass(frozen=True)
class RandomizedResponseDpEvent:
    noise_parameter: float
    num_buckets: int


@dataclass(frozen=True)
class ZCDpEvent:
    rho: float
    xi: float = 0.0


@dataclass(frozen=True)
class PoissonSampledDpEvent:
    sampling_probability: float
    event: Any


@dataclass(frozen=True)
class SelfComposedDpEvent:
    event: Any
    count: int


@dataclass(frozen=True)
class ComposedDpEvent:
    events: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class SampledWithoutReplacementDpEvent:
    source_dataset_size: int
    sample_size: int
    event: Any


READ = [
    (NoOpDpEvent(), Curve(())),
    (GaussianDpEvent(2.0), Curve.of(parts.Gaussian("1/4"))),
    (LaplaceDpEvent(10.0), Curve.of(parts.Laplace("1/10"))),
    (DiscreteLaplaceDpEvent(0.1, 3), Curve.of(parts.DiscreteLaplace("3/10", 3))),
    (PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1)), Curve.of(parts.SubsampledGaussian("0.01", "1.1"))),
    (PoissonSampledDpEvent(0.1, LaplaceDpEvent(2)), Curve.of(parts.Subsampled(parts.Laplace("1/2"), "0.1"))),
    (
        PoissonSampledDpEvent(0.1, DiscreteLaplaceDpEvent(1, 2)),
        Curve.of(parts.Subsampled(parts.DiscreteLaplace(2, 2), "0.1")),
    ),
    (PoissonSampledDpEvent(1.0, LaplaceDpEvent(1)), Curve.of(parts.Laplace(1))),
    (PoissonSampledDpEvent(0.0, GaussianDpEvent(1)), Curve(())),
    (
        PoissonSampledDpEvent(0.5, PoissonSampledDpEvent(0.5, LaplaceDpEvent(1))),
        Curve.of(parts.Subsampled(parts.Laplace(1), "1/4")),
    ),
    (ZCDpEvent(0.5, 0.25), ZCDP("3/4")),
]


@pytest.mark.parametrize(("event", "loss"), READ, ids=str)
def test_each_event_is_read_as_its_loss(event: Any, loss: Any) -> None:
    assert from_dp_accounting(event) == loss
    # dp_accounting's own ladder drops the count of some events; here a count counts for every one.
    assert from_dp_accounting(SelfComposedDpEvent(event, 7)) == loss.repeat(7)
    assert from_dp_accounting(ComposedDpEvent([event, NoOpDpEvent(), event])) == total([loss, loss])


def test_a_whole_tree_is_priced() -> None:
    tree = ComposedDpEvent(
        [
            SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 1000),
            SelfComposedDpEvent(LaplaceDpEvent(50), 10),
        ]
    )
    price = float(from_dp_accounting(tree).epsilon("1e-6"))
    assert 2.1245 < price < 2.1245 + 0.2


def test_randomized_response_is_counted_and_about_a_replaced_value() -> None:
    event = RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=4)
    loss = from_dp_accounting(SelfComposedDpEvent(event, 100))
    part, count = loss.curve().parts[0]
    assert count == 100
    assert isinstance(part, parts.KaryResponse)
    assert float(part.epsilon) == pytest.approx(np.log(5))  # truth 5/8, each other 1/8
    with pytest.raises(PriceError, match="replaced"):
        from_dp_accounting(ComposedDpEvent([event, GaussianDpEvent(1)]))
    assert from_dp_accounting(RandomizedResponseDpEvent(1.0, 4)) == Curve(())
    assert from_dp_accounting(RandomizedResponseDpEvent(0.1, 1)) == Curve(())


@pytest.mark.parametrize(
    "event",
    [
        NonPrivateDpEvent(),
        GaussianDpEvent(0.0),
        GaussianDpEvent(float("nan")),
        LaplaceDpEvent(-1),
        RandomizedResponseDpEvent(0.0, 3),
        PoissonSampledDpEvent(1.5, GaussianDpEvent(1)),
        PoissonSampledDpEvent(0.5, ComposedDpEvent([GaussianDpEvent(1)])),
        PoissonSampledDpEvent(0.5, RandomizedResponseDpEvent(0.5, 3)),
        SampledWithoutReplacementDpEvent(100, 10, GaussianDpEvent(1)),
        SelfComposedDpEvent(GaussianDpEvent(1), -1),
        ComposedDpEvent(["no event"]),
        "an event",
        None,
    ],
    ids=str,
)
def test_what_cannot_be_priced_is_refused(event: Any) -> None:
    with pytest.raises(DitherError):
        from_dp_accounting(event)


def test_trees_without_end_are_refused() -> None:
    deep: Any = GaussianDpEvent(1)
    for _ in range(200):
        deep = SelfComposedDpEvent(deep, 1)
    with pytest.raises(PriceError, match="deep"):
        from_dp_accounting(deep)


def test_opacus_states_noise_rate_and_steps() -> None:
    run = from_opacus(1.0, 0.01, 1000)
    assert run == Curve.of(parts.SubsampledGaussian("0.01", 1), 1000)
    assert run == from_opacus([(1.0, 0.01, 600), (1.0, 0.01, 400)])
    assert from_opacus(np.float64(1.5), np.float64(0.25), 3) == Curve.of(parts.SubsampledGaussian("1/4", "3/2"), 3)
    assert from_opacus(1.0, 0.0, 10) == Curve(()) == from_opacus([])
    assert run.epsilon("1e-6") < Fraction("2.12452")


@pytest.mark.parametrize("bad", [(0.0, 0.1, 1), (1.0, 1.5, 1), (1.0, 0.1, -1), ("x", 0.1, 1), (1.0,), ([(1.0, 0.1)],), (None,)])
def test_bad_parameters_are_refused(bad: tuple[Any, ...]) -> None:
    with pytest.raises(ArgumentError):
        from_opacus(*bad)
