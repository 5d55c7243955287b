"""Planar Laplace noise: its law, its price, its lengths, and what snapping and regions do."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import dither as dt
from distribution.allowance import share
from distribution.fit import events_fit
from dither.exact import balls
from dither.metric.lattice import Lattice
from dither.metric.plane import PlanarLaplace
from dither.metric.price import PerDistance, Ratio, verify

RATES = [Fraction(1, 100), Fraction(1, 3), Fraction(2)]


@pytest.mark.parametrize("rate", RATES)
def test_the_normaliser_is_the_sum_over_the_lattice(rate: Fraction) -> None:
    line = np.arange(-math.ceil(50 / rate), math.ceil(50 / rate) + 1)
    total = sum(float(np.exp(-float(rate) * np.hypot(line, y)).sum()) for y in line.tolist())
    with balls.working(128):
        found = Lattice(rate).normaliser()
    assert abs(total - float(found)) <= 1e-9 * total + float(found.rad())
    assert float(found.rad()) < 1e-3 * total


@pytest.mark.parametrize("rate", RATES)
def test_probabilities_add_up_to_one(rate: Fraction) -> None:
    noise = PlanarLaplace(epsilon=rate)
    reach = math.ceil(6 / rate) if rate > 1 else 0
    cells = [float(noise.probability((0, 0), (i, j))) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    assert sum(cells) <= 1
    if reach:
        assert sum(cells) > 0.99


def drawn_as(rate: Fraction, law: Lattice, size: int = 100_000) -> bool:
    """Does a sample at one rate fit the law of another? Compares lengths, one coordinate, and single cells."""
    offsets = Lattice(rate).draw(size)
    line = np.arange(-math.ceil(40 / law.rate), math.ceil(40 / law.rate) + 1)
    grid = np.exp(-float(law.rate) * np.hypot(line[:, None], line[None, :]))
    grid /= grid.sum()
    lengths, squares = np.hypot(line[:, None], line[None, :]), (offsets.astype(float) ** 2).sum(axis=1)
    radii = [float(r) / float(law.rate) for r in (0.5, 1.0, 1.7, 3.0, 4.75)]
    columns = [round(float(c) / float(law.rate)) for c in (-3.0, -1.0, 0.0, 1.0, 3.0)]
    chances = [float(grid[lengths <= r].sum()) for r in radii] + [float(grid[line <= c].sum()) for c in columns]
    shares = [float((squares <= r * r).mean()) for r in radii] + [float((offsets[:, 0] <= c).mean()) for c in columns]
    for cell in ((0, 0), (1, 0), (0, -1), (2, 2)):
        chances.append(float(grid[line == cell[0]][:, line == cell[1]].sum()))
        shares.append(float((offsets == np.array(cell)).all(axis=1).mean()))
    return bool(events_fit(shares, chances, size, share("planar laplace", tests=4)))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(2)])
def test_draws_follow_the_law(rate: Fraction) -> None:
    assert drawn_as(rate, Lattice(rate))


def test_that_check_sees_a_rate_ten_percent_off() -> None:
    assert not drawn_as(Fraction(1, 2), Lattice(Fraction(11, 20)))


def test_balls_decide_as_floats_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every coin sent to the balls, the noise from the same bits is the same."""
    from dither.exact import replay
    from dither.metric import lattice

    with replay.stream(b"k" * 32):
        plain = Lattice(Fraction(1, 3)).draw(40)
    monkeypatch.setattr(lattice, "MARGIN", 2.0)
    with replay.stream(b"k" * 32):
        assert (Lattice(Fraction(1, 3)).draw(40) == plain).all()


def test_lengths_are_those_of_the_literature() -> None:
    """Mean 2/epsilon; half of the noise is within 1.678347/epsilon, 95 % within 4.743865, 99 % within 6.638352."""
    noise = PlanarLaplace(epsilon=1, step="1/4096")
    for confidence, radius in (("0.5", 1.678347), ("0.95", 4.743865), ("0.99", 6.638352)):
        assert radius <= noise.margin(confidence) <= radius * 1.001
    coarse = PlanarLaplace(epsilon=1, step="1/10")
    assert 4.743865 <= coarse.margin("0.95") <= 4.743865 + 0.15
    far = np.hypot(*noise.release(np.zeros((200_000, 2))).T)
    assert abs(far.mean() - 2) < 0.05
    for confidence in ("0.5", "0.95", "0.99"):
        beyond = float((far > noise.margin(confidence)).mean())
        assert events_fit([beyond], [1 - float(confidence)], len(far), share("other", tests=20)) or beyond < 1 - float(
            confidence
        )


PAIRS: list[tuple[Any, Any]] = [((0, 0), (3, 4)), ((0, 0), (0, 1)), ((-7, 2), (5, 5)), ((1, 1), (1, 1))]


def test_the_price_is_epsilon_times_the_distance() -> None:
    noise = PlanarLaplace(epsilon="1/2", step=1)
    assert dt.verify(noise, PAIRS).holds
    assert noise.between((0, 0), (3, 4)) == Fraction(5, 2)
    assert noise.loss() == PerDistance("1/2")


def test_no_output_of_a_window_tells_more() -> None:
    """The proof by the triangle inequality, against every output of a window around both places."""
    noise = PlanarLaplace(epsilon="1/2")
    for x, y in PAIRS:
        with balls.working(128):
            claim = noise.claim(x, y)()
            ratios = [noise.log_ratio((i, j), x, y) for i in range(-12, 13) for j in range(-12, 13)]
            assert all(abs(each) <= claim + arb(2) ** -100 for each in ratios)


class Renormalised:
    """Wrong: the full weight on a region, whose normaliser depends on the place."""

    def claim(self, x: Any, y: Any) -> balls.Real:
        return lambda: arb((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2).sqrt()

    def ratio(self, x: Any, y: Any) -> Ratio:
        cells = [(i, j) for i in range(5) for j in range(5)]
        laws = []
        for place in (x, y):
            weights = [(-self.claim(place, cell)()).exp() for cell in cells]
            laws.append([each / sum(weights, arb(0)) for each in weights])
        ratios = [abs(left.log() - right.log()) for left, right in zip(*laws, strict=True)]
        return Ratio(max(ratios, key=balls.upper), None)


def test_that_renormalising_on_a_region_breaks_it() -> None:
    assert not verify(Renormalised(), [((0, 0), (2, 2))]).holds


def test_places_are_snapped_and_clamped() -> None:
    noise = PlanarLaplace(epsilon=10**3, step=1, region=((0, 0), (10, 10)))
    assert noise.release((2.4, 3.6)) == (2, 4)
    assert noise.release((math.nan, math.inf)) == (0, 10)
    assert noise.release(np.array([[99.0, -99.0]])).tolist() == [[10, 0]]
    assert noise.between((-50, 0), (0, 0)) == 0
    assert float(noise.snapping) == pytest.approx(math.sqrt(2))


def test_types_follow_from_the_step() -> None:
    assert PlanarLaplace(epsilon=1, step=10).release(np.zeros((3, 2))).dtype == np.int64
    assert PlanarLaplace(epsilon=1, step="1/8").release(np.zeros((3, 2), dtype=int)).dtype == np.float64
    assert isinstance(PlanarLaplace(epsilon=1, step="1/3").release((0, 0))[0], Fraction)


def test_an_answer_of_two_numbers_counts_its_rounding() -> None:
    noise = PlanarLaplace.for_answer(epsilon=1, sensitivity=5, step=1)
    assert noise.epsilon * (5 + Fraction("1.41421356237309504")) <= 1
    assert noise.between((0, 0), (3, 4)) < 1


def test_remapping_goes_to_likely_places() -> None:
    noise = PlanarLaplace(epsilon=1)
    places = np.array([[0.0, 0.0], [1.0, 0.0], [50.0, 0.0]])
    assert noise.remap((0, 1), places, [0.01, 0.98, 0.01]) == 1
    assert noise.remap((49, 0), places, [1, 1, 1]) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: PlanarLaplace(epsilon=0),
        lambda: PlanarLaplace(epsilon=1, step=10**9),
        lambda: PlanarLaplace(epsilon=1, region=((5, 5), (0, 0))),
        lambda: PlanarLaplace(epsilon=1).release(3),
        lambda: PlanarLaplace(epsilon=1).release("ab"),
        lambda: PlanarLaplace(epsilon=1).release(np.zeros(3)),
        lambda: PlanarLaplace(epsilon=1).remap((0, 0), [[0, 0]], [0]),
        lambda: PlanarLaplace(epsilon=1, unit=""),
        lambda: PlanarLaplace(epsilon=1).margin(1),
        lambda: dt.verify(PlanarLaplace(epsilon=1), []),
        lambda: PerDistance(1) + dt.Pure(1),
        lambda: PerDistance(1, "metre") + PerDistance(1, "mile"),
    ],
)
def test_odd_arguments_are_refused_in_words(call: Any) -> None:
    with pytest.raises(dt.DitherError):
        call()


def test_prices_per_distance_add_up_alone() -> None:
    assert (PerDistance("1/2", "metre") + PerDistance("1/4", "metre")).between(4) == 3
    assert PerDistance(1).repeat(3) == PerDistance(3)


def test_the_picture(tmp_path: Any) -> None:
    assert PlanarLaplace(epsilon=1, step="1/64").plot(tmp_path / "plane.png").stat().st_size > 5000
