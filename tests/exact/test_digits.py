"""Digits, mixtures and buckets together give the law, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dither.exact import balls, entropy, replay
from dither.exact.laws.gaussian import Gaussian
from dither.exact.laws.geometric import Cut, OneSided, TwoSided
from dither.exact.samplers.buckets import Buckets, Sure, Unsure, zigzag
from dither.exact.samplers.digits import Digits, Middle, Top, split
from dither.exact.samplers.table import UNSURE
from dither.exact.samplers.uniform import MARGIN, Uniform
from exact.chosen import with_bits

scales = st.fractions(min_value=41, max_value=10**12, max_denominator=10**6)


def close(x: arb, y: arb) -> bool:
    """Equal to some two hundred bits."""
    return bool(x.overlaps(y)) and bool((x - y).rad() < arb(2) ** -200 * (abs(x) + abs(y)).upper())


def by_digits(scale: Fraction, x: int, two_sided: bool) -> arb:
    """Pr[x] as the product of its digits' probabilities."""
    m, low = split(scale)
    t, d = x >> m, x & ((1 << m) - 1)
    if t < 0:
        d ^= (1 << m) - 1
    h, e = d >> low, d & ((1 << low) - 1)
    middle = Middle(scale, m - low, low)
    last = Cut(scale, (1 << low) - 1)
    return Top(scale, m, two_sided).pmf(t) * middle.pmf(h) / middle.sure() * last.pmf(e)


@given(scale=scales, where=st.fractions(min_value=-5, max_value=5), two_sided=st.booleans())
def test_the_digits_of_geometric_noise_are_independent(scale: Fraction, where: Fraction, two_sided: bool) -> None:
    x = int(where * scale) if two_sided else abs(int(where * scale))
    law = TwoSided(scale) if two_sided else OneSided(scale)
    with balls.working(400):
        assert close(by_digits(scale, x, two_sided), law.pmf(x))


def test_digits_of_another_scale_do_not_multiply_up() -> None:
    with balls.working(400):
        assert not by_digits(Fraction(1000), 77, True).overlaps(TwoSided(Fraction(1001)).pmf(77))


@pytest.mark.parametrize(("scale", "bits"), [(Fraction(20), 3), (Fraction(1001, 7), 5), (Fraction(10**4), 6)])
def test_uniform_with_late_acceptance_is_the_cut_law(scale: Fraction, bits: int) -> None:
    size, cut = 1 << bits, Cut(scale, (1 << bits) - 1)
    with balls.working(400):
        q = balls.exp(-(size - 1) / scale)
        late = [(balls.exp(-e / scale) - q) / (1 - q) for e in range(size)]
        lost = 1 - sum(late, arb(0)) / size
        for e in range(size):
            together = q / size + (1 - q) * (late[e] / size + lost * cut.pmf(e))
            assert close(together, cut.pmf(e))
        assert not (q / size + (1 - q) * cut.pmf(0)).overlaps(cut.pmf(0))  # without the first try's share it is not


@pytest.mark.parametrize("variance", [Fraction(128**2), Fraction(10**6), Fraction(10**24)])
def test_sure_and_unsure_buckets_add_up_to_the_bell(variance: Fraction) -> None:
    m = Buckets(variance).m
    w, sure = 1 << m, Sure(variance, m)
    unsure = Unsure(sure)
    with balls.working(400):
        none = sure.pmf(0)
        ratios = []
        for cell in (0, 1, 150):
            t = zigzag(cell)
            near, far = (t * w, t * w + w - 1) if t >= 0 else (t * w + w - 1, t * w)
            for x in {near, far, (near + far) // 2}:
                accept = (bell(x, variance) - bell(far, variance)) / (bell(near, variance) - bell(far, variance))
                at_once = sure.pmf(1 + cell) / w
                ratios.append((at_once + none * unsure.pmf(cell) * accept / w) / bell(x, variance))
        assert all(bool(r.overlaps(ratios[0])) and bool((r - ratios[0]).rad() < ratios[0] * arb(2) ** -100) for r in ratios)


def bell(x: int, variance: Fraction) -> arb:
    return balls.exp(-Fraction(x * x) / (2 * variance))


@pytest.mark.parametrize("sigma", [128, 10**3, 10**12])
def test_float_acceptance_is_far_closer_than_its_margin(sigma: int) -> None:
    sampler = Buckets(Fraction(sigma**2))
    with replay.stream(b"acceptance"):
        t = sampler.second.chunk(300)[0].astype(np.int64)
        x = (t << sampler.m) + entropy.low_bits(300, sampler.m)
    chance = sampler.chance(t, x)
    for i in range(300):
        with balls.working(128):
            truth = sampler.exact_chance(int(t[i]), int(x[i]))
            assert abs(truth - balls.ball(Fraction(float(chance[i])))) < MARGIN / 1000


def test_close_acceptances_are_left_to_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = Buckets(Fraction(10**8))
    asked: list[int] = []
    monkeypatch.setattr(sampler, "chance", lambda t, x: np.full(len(t), 0.5))
    monkeypatch.setattr(sampler, "accept", lambda t, x, u: asked.append(u.prefix) or True)
    half = np.array([1 << 63] * 4, dtype=np.uint64)
    monkeypatch.setattr(entropy, "words64", lambda size: half[:size])
    with replay.stream(b"close"):
        _, accepted = sampler.unsure(4)
    assert asked == [1 << 63] * 4
    assert accepted.all()


@pytest.mark.parametrize("scale", [Fraction(10**6), Fraction(10**12)])
def test_the_rare_cell_is_reached_and_gives_the_right_range(scale: Fraction) -> None:
    digits = Digits(scale, True)
    word = (2**64 - 9).to_bytes(8, "little")
    middle_rare = with_bits(word, digits.middle.one)
    assert middle_rare == 512
    for t in (-3, -1, 0, 2):
        x = with_bits(b"", lambda t=t: digits.rare(t))
        assert x >> digits.m == t


def test_rare_and_common_draws_of_an_array_are_all_filled_in() -> None:
    # every word of the middle table set so that the last cell comes out, in arrays as in single draws
    digits = Digits(Fraction(10**6), True)
    top = np.full(4, 0x8000, dtype=np.uint16)
    assert digits.top.arrays()[0][0x8000] != UNSURE
    rare = np.full(4, 0xFFFF, dtype=np.uint16).tobytes() + np.full(4, 2**64 - 2**17, dtype=np.uint64).tobytes()
    found = with_bits(top.tobytes() + rare, lambda: digits.many(4))
    assert set(found >> digits.m) == {int(digits.top.arrays()[0][0x8000])}


@pytest.mark.parametrize("scale", [Fraction(41), Fraction(1000), Fraction(10**6), Fraction(10**12)])
def test_arrays_put_digits_together_as_the_formula_says(scale: Fraction) -> None:
    digits = Digits(scale, True)
    bits = digits.m - digits.low
    t, h = (a.ravel().astype(np.int16) for a in np.meshgrid([-1400, -2, -1, 0, 1, 1400], range(1 << bits)))
    wanted = [(int(i) << bits) + (int(j) ^ ((1 << bits) - 1) if i < 0 else int(j)) for i, j in zip(t, h, strict=True)]
    out = np.empty(len(t), dtype=np.int64)
    digits.join(out, t, h.copy())
    assert (out >> digits.low).tolist() == wanted


@given(estimate=st.floats(0, 1), u=st.integers(0, 2**64 - 1))
def test_an_estimate_never_changes_the_answer(estimate: float, u: int) -> None:
    truth = Fraction(estimate)
    with replay.stream(b"estimate"):
        slow = Uniform(u, 64).below(lambda: balls.ball(truth))
    with replay.stream(b"estimate"):
        off = estimate + float(MARGIN) / 2000
        assert Uniform(u, 64).below_about(off, lambda: balls.ball(truth)) == slow


@pytest.mark.parametrize("law", [TwoSided(10**6), Gaussian(10**8)], ids=str)
def test_the_same_recorded_stream_gives_the_same_draws(law: TwoSided | Gaussian) -> None:
    def drawn(key: bytes) -> tuple[int, list[int]]:
        with replay.stream(key):
            return law.draw(), law.draw(1000).tolist()

    assert drawn(b"a") == drawn(b"a")
    assert drawn(b"a") != drawn(b"b")
