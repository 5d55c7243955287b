"""The compositions of benchmarks/accounting.py, as our parts and as dp_accounting's, at deltas from 1e-5 to 1e-30."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.privacy import parts
from dither.privacy.events import from_dp_accounting
from dither.privacy.losses import Curve, total
from dither.privacy.parts import Part

Peer = Callable[[Any], Any]  # given dp_accounting's module of loss distributions, one of them


@dataclass(frozen=True)
class Row:
    """A composition at a delta, with the peer's distribution of each part (None: the peer has no such part)."""

    name: str
    listed: tuple[tuple[Part, int, Peer | None], ...]
    delta: Fraction

    @property
    def curve(self) -> Curve:
        return total([Curve.of(part, count) for part, count, _ in self.listed]).curve()


def laplace(scale: str) -> tuple[Part, Peer]:
    return parts.Laplace(1 / Fraction(scale)), lambda pld: pld.from_laplace_mechanism(float(scale))


def gaussian(sigma: str) -> tuple[Part, Peer]:
    return parts.Gaussian(1 / Fraction(sigma) ** 2), lambda pld: pld.from_gaussian_mechanism(float(sigma))


def geometric(rate: str, steps: int) -> tuple[Part, Peer]:
    part = parts.DiscreteLaplace(Fraction(rate) * steps, steps)
    return part, lambda pld: pld.from_discrete_laplace_mechanism(float(rate), sensitivity=steps)


def integers(sigma: str) -> tuple[Part, Peer]:
    part = parts.DiscreteGaussian(1, Fraction(sigma) ** 2)
    return part, lambda pld: pld.from_discrete_gaussian_mechanism(float(sigma))


def response(noise: str, k: int) -> tuple[Part, Peer]:
    event = type("RandomizedResponseDpEvent", (), {"noise_parameter": noise, "num_buckets": k})()
    return from_dp_accounting(event).curve().parts[0][0], lambda pld: pld.from_randomized_response(float(noise), k)


def steps(q: str, sigma: str) -> tuple[Part, Peer]:
    part = parts.SubsampledGaussian(q, sigma)
    return part, lambda pld: pld.from_gaussian_mechanism(float(sigma), sampling_prob=float(q))


def sampled_laplace(q: str, scale: str) -> tuple[Part, Peer]:
    part = parts.Subsampled(parts.Laplace(1 / Fraction(scale)), q)
    return part, lambda pld: pld.from_laplace_mechanism(float(scale), sampling_prob=float(q))


def sampled_integers(q: str, sigma: str) -> tuple[Part, Peer]:
    part = parts.Subsampled(parts.DiscreteGaussian(1, Fraction(sigma) ** 2), q)
    return part, lambda pld: pld.from_discrete_gaussian_mechanism(float(sigma), sampling_prob=float(q))


def sampled_geometric(q: str, rate: str, size: int) -> tuple[Part, Peer | None]:
    return parts.Subsampled(parts.DiscreteLaplace(Fraction(rate) * size, size), q), None


def rows() -> list[Row]:
    """Returns the table: equal releases, then mixtures, each at two or three deltas."""
    kinds: list[tuple[str, list[tuple[tuple[Part, Peer | None], int]], tuple[str, ...]]] = [
        ("100 Laplace, scale 10", [(laplace("10"), 100)], ("1e-6", "1e-12")),
        ("1000 Gaussian, sigma 50", [(gaussian("50"), 1000)], ("1e-5", "1e-30")),
        ("500 geometric 0.02 of 5 steps", [(geometric("0.02", 5), 500)], ("1e-6", "1e-20")),
        ("100 discrete Gaussian, sigma 10", [(integers("10"), 100)], ("1e-6", "1e-15")),
        ("100 response, 10 values, p 0.9", [(response("0.9", 10), 100)], ("1e-6", "1e-10")),
        ("301 steps, q 0.01, sigma 1", [(steps("0.01", "1"), 301)], ("1e-5", "1e-8")),
        ("1000 steps, q 0.01, sigma 1", [(steps("0.01", "1"), 1000)], ("1e-6", "1e-12", "1e-30")),
        ("2000 steps, q 0.001, sigma 0.7", [(steps("0.001", "0.7"), 2000)], ("1e-6", "1e-9")),
        ("5000 steps, q 0.02, sigma 1.5", [(steps("0.02", "1.5"), 5000)], ("1e-6", "1e-20")),
        ("1e6 steps, q 0.001, sigma 1", [(steps("0.001", "1"), 10**6)], ("1e-6", "1e-9")),
        ("200 Laplace on samples, q 0.1, scale 1", [(sampled_laplace("0.1", "1"), 200)], ("1e-6", "1e-15")),
        ("400 discrete Gaussian on samples, q 0.05, sigma 2", [(sampled_integers("0.05", "2"), 400)], ("1e-6", "1e-12")),
        ("300 geometric 0.25 of 4 steps on samples, q 0.1", [(sampled_geometric("0.1", "0.25", 4), 300)], ("1e-6",)),
        ("50 Laplace 10, 100 Gaussian 20", [(laplace("10"), 50), (gaussian("20"), 100)], ("1e-5", "1e-10", "1e-30")),
        (
            "500 steps of q 0.01 sigma 1, 500 of q 0.02 sigma 1.2",
            [(steps("0.01", "1"), 500), (steps("0.02", "1.2"), 500)],
            ("1e-6", "1e-15"),
        ),
        (
            "300 steps of q 0.01 sigma 1, 10 Laplace 20, 5 Gaussian 4",
            [(steps("0.01", "1"), 300), (laplace("20"), 10), (gaussian("4"), 5)],
            ("1e-6", "1e-12"),
        ),
        (
            "100 Laplace on samples, 20 geometric, 30 discrete Gaussian",
            [(sampled_laplace("0.05", "2"), 100), (geometric("0.1", 2), 20), (integers("15"), 30)],
            ("1e-6", "1e-30"),
        ),
    ]
    return [
        Row(name, tuple((part, count, peer) for (part, peer), count in listed), Fraction(d))
        for name, listed, deltas in kinds
        for d in deltas
    ]
