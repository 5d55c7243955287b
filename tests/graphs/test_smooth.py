"""Triangles and stars: the bound is smooth, the noise is exact, and the price holds on the exact laws of all small graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest

import dither as dt
from distribution.allowance import share
from dither.exact import balls
from dither.exact.samplers.quartic import Quartic
from dither.exact.samplers.quartic import at_most as below
from dither.graphs import shape, smooth
from dither.graphs.reading import Content
from dither.graphs.smooth import Levels, SmoothNoise, Stars, Triangles
from graphs.families import growing
from graphs.small import all_graphs, content, flipped, kinds, pairs

N = 5
PRICES = [Fraction(1, 10), Fraction(1), Fraction(6)]
Of = Callable[[Content], Levels]
Count = Callable[[Content], int]
KINDS: dict[str, tuple[Count, Of]] = {
    "triangles": (shape.triangle_count, Triangles.of),
    "2-stars": (lambda graph: shape.star_count(graph, 2), lambda graph: Stars.of(graph, 2)),
    "3-stars": (lambda graph: shape.star_count(graph, 3), lambda graph: Stars.of(graph, 3)),
}


# --- exact numbers ----------------------------------------------------------------------------------------------


def neighbour_sets(graph: Content) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(graph.size)]
    for a, b in graph.ends.tolist():
        found[a].add(b)
        found[b].add(a)
    return found


@pytest.mark.parametrize("work", [1, 1 << 22])
def test_counts_are_those_of_the_definition(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "_WORK", work)  # blocks of one row, and one block
    for graph in all_graphs(N)[:: 7 if work == 1 else 1]:
        near = neighbour_sets(graph)
        triples = combinations(range(N), 3)
        assert shape.triangle_count(graph) == sum(b in near[a] and c in near[a] and c in near[b] for a, b, c in triples)
        assert shape.most_common(graph) == max(len(near[a] & near[b]) for a, b in pairs(N))
        assert shape.largest_total(graph) == max(len(near[a] - {b}) + len(near[b] - {a}) for a, b in pairs(N))
        assert shape.star_count(graph, 3) == sum(math.comb(len(each), 3) for each in near)


# --- the bound --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def counted(kind: str) -> np.ndarray:
    return np.array([KINDS[kind][0](graph) for graph in all_graphs(N)])


def local(kind: str) -> Iterator[np.ndarray]:
    """What one edge changes at distance s = 0, 1, … of every graph: by definition."""
    values, masks, bits = counted(kind), np.arange(1 << len(pairs(N))), range(len(pairs(N)))
    now = np.max([np.abs(values - values[masks ^ (1 << b)]) for b in bits], axis=0)
    for _ in range(len(bits) + 1):
        yield now
        now = np.max([now, *(now[masks ^ (1 << b)] for b in bits)], axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_levels_bound_what_one_edge_changes_at_every_distance(kind: str) -> None:
    levels = [KINDS[kind][1](graph) for graph in all_graphs(N)]
    for s, change in enumerate(local(kind)):
        assert (np.array([each.at(s) for each in levels]) >= change).all()


def test_levels_of_triangles_are_the_known_formula_on_most_graphs() -> None:
    """ANCHORS: max over pairs of a + floor((s + min(s, b)) / 2), a common neighbours, b neighbours of exactly one."""
    same = 0
    for graph in all_graphs(N):
        near, levels = neighbour_sets(graph), Triangles.of(graph)
        both = [(len(near[i] & near[j]), len((near[i] ^ near[j]) - {i, j})) for i, j in pairs(N)]
        known = [max(min(a + (s + min(s, b)) // 2, N - 2) for a, b in both) for s in range(6)]
        mine = [levels.at(s) for s in range(6)]
        assert all(m >= k for m, k in zip(mine, known, strict=True))
        same += mine == known
    assert same > 900  # of 1024


def grows(of: Of) -> bool:
    """Whether U_s(G) <= U_(s+1)(G') for all neighbours."""
    levels = [of(graph) for graph in all_graphs(N)]
    table = np.array([[each.at(s) for s in range(12)] for each in levels])
    masks = np.arange(len(table))
    return all((table[:, :-1] <= table[masks ^ (1 << b), 1:]).all() for b in range(len(pairs(N))))


@pytest.mark.parametrize("kind", KINDS)
def test_levels_of_neighbours_are_one_step_apart(kind: str) -> None:
    assert grows(KINDS[kind][1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_levels_hold_on_larger_graphs(kind: str) -> None:
    """All kinds of graphs of six nodes, and families that grow: one step apart, and not below what one edge changes."""
    count, of = KINDS[kind]
    for graph in [*kinds(6), *growing((9, 16))]:
        here, now = of(graph), count(graph)
        for other in flipped(graph)[:: 1 if graph.size == 6 else 23]:
            there = of(other)
            assert abs(now - count(other)) <= min(here.at(0), there.at(0))
            assert all(here.at(s) <= there.at(s + 1) and there.at(s) <= here.at(s + 1) for s in range(2 * graph.size))


def with_own_edge(graph: Content) -> Levels:
    """A twin: the sum of two degrees with the edge between them moves by 2."""
    return Stars(3, int(graph.degrees().max()), int(np.sort(graph.degrees())[-2:].sum()), graph.size - 2)


def test_that_check_can_fail() -> None:
    assert not grows(with_own_edge)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", PRICES)
def test_the_bound_is_smooth(kind: str, epsilon: Fraction) -> None:
    noise = SmoothNoise.of(epsilon)
    assert is_smooth([noise.bound(KINDS[kind][1](graph)) for graph in all_graphs(N)], noise.beta)


def is_smooth(bounds: list[Fraction], beta: Fraction) -> bool:
    seen = {(bounds[m], bounds[m ^ (1 << b)]) for m in range(len(bounds)) for b in range(len(pairs(N)))}
    most = max(one / other for one, other in seen)
    return balls.certainly_at_most(lambda: balls.ball(most), balls.below(lambda: balls.exp(beta)))


def test_what_one_edge_changes_here_is_not_smooth() -> None:
    changes = next(iter(local("triangles"))) + 1
    assert not is_smooth([Fraction(int(each)) for each in changes], Fraction(1, 6))


@pytest.mark.parametrize("levels", [Triangles(3, 9, 60), Triangles(0, 0, 400), Stars(4, 30, 41, 300), Stars(2, 1, 2, 9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(300)])
def test_the_bound_is_the_largest_level(levels: Levels, epsilon: Fraction) -> None:
    """Rounded up by less than 2^-40. Rationals would be long, so it is compared in wide balls."""
    noise = SmoothNoise.of(epsilon)
    bound = noise.bound(levels)
    with balls.working(2000):
        c = balls.ball(noise.fall)
        largest = max(balls.lower(c**s * levels.at(s)) for s in range(levels.last + 3))
    assert largest <= bound <= largest * (1 + smooth.ROUNDING)


# --- noise and price --------------------------------------------------------------------------------------------


def test_the_slope_and_the_stretch_of_the_density() -> None:
    """27 * 25^4 < 57^4 is the constant of the proof, and the two derivatives are within their bounds on a fine grid."""
    assert 27 * 25**4 < 57**4
    z = np.linspace(-50, 50, 1_000_001)
    assert 2.279 < np.abs(4 * z**3 / (1 + z**4)).max() < float(smooth.SLIDE)
    stretch = 1 - 4 * z**4 / (1 + z**4)
    assert -smooth.STRETCH < stretch.min() < -2.99
    assert stretch.max() <= 1


def test_the_law_has_its_density() -> None:
    step = Fraction(1, 1 << 20)
    with balls.working(200):
        for z in (Fraction(0), Fraction(1, 3), Fraction(-7, 2), Fraction(40)):
            slope = float((below(z + step) - below(z - step)) / balls.ball(2 * step))
            assert slope == pytest.approx(math.sqrt(2) / math.pi / (1 + float(z) ** 4), rel=1e-9)
        assert float(below(Fraction(10) ** 9)) == 1
        law = Quartic(Fraction(3))
        assert float(sum(law.pmf(k) for k in range(-2000, 2001))) == pytest.approx(1, abs=1e-8)
        assert all(law.pmf(k).overlaps(law.pmf(-k)) for k in range(9))


def test_draws_follow_the_law() -> None:
    law, draws = Quartic(Fraction(2)), 4000
    drawn = np.array([law.draw() for _ in range(draws)])
    wide = math.sqrt(math.log(2 * 9 / share("other", 40)) / (2 * draws))  # Hoeffding, for nine events
    for k in range(-4, 5):
        assert abs(float((drawn <= k).mean()) - float(law.at_most(k))) <= wide


def test_that_check_can_fail_on_a_scale_that_is_off() -> None:
    law, off, draws = Quartic(Fraction(2)), Quartic(Fraction(3)), 4000
    wide = math.sqrt(math.log(2 * 9 / share("other", 40)) / (2 * draws))
    assert max(abs(float(law.at_most(k)) - float(off.at_most(k))) for k in range(-4, 5)) > wide


def worst_ratio(kind: str, noise: SmoothNoise, alpha: Fraction, local_only: bool = False) -> float:
    """The largest log ratio of the probabilities of one answer, over all neighbouring graphs and answers near and far."""
    values = counted(kind).tolist()
    if local_only:
        bounds = [Fraction(max(1, int(each))) for each in next(iter(local(kind)))]
    else:
        bounds = [noise.bound(KINDS[kind][1](graph)) for graph in all_graphs(N)]
    states = list(zip(values, bounds, strict=True))
    seen = {(states[m], states[m ^ (1 << b)]) for m in range(len(states)) for b in range(len(pairs(N)))}
    asked = [*range(-12, 25), -1000, 1000, 10**6]
    with balls.working(256):
        table = {each: [float(Quartic(each[1] / alpha).pmf(k - each[0]).log()) for k in asked] for each in set(states)}
    return max(max(a - b for a, b in zip(table[one], table[other], strict=True)) for one, other in seen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", PRICES)
def test_the_price_holds_on_all_small_graphs(kind: str, epsilon: Fraction) -> None:
    noise = SmoothNoise.of(epsilon)
    assert worst_ratio(kind, noise, noise.alpha) <= float(epsilon) * (1 + 1e-12)


def test_less_noise_exceeds_the_price() -> None:
    noise = SmoothNoise.of(1)
    assert worst_ratio("triangles", noise, 6 * noise.alpha) > 1


def test_noise_from_what_one_edge_changes_here_exceeds_the_price() -> None:
    noise = SmoothNoise.of("1/10")
    assert worst_ratio("triangles", noise, noise.alpha, local_only=True) > 0.1


# --- answers ----------------------------------------------------------------------------------------------------


def test_one_edge_moves_the_level_of_a_margin_by_at_most_one() -> None:
    noise = SmoothNoise.of("1/2")
    levels = np.array([noise.level(noise.bound(Triangles.of(graph))) for graph in all_graphs(N)])
    masks = np.arange(len(levels))
    assert max(int(np.abs(levels - levels[masks ^ (1 << b)]).max()) for b in range(len(pairs(N)))) == 1
    assert noise.level(Fraction(1)) == 0


def test_answers() -> None:
    full = dt.Graph(pairs(12), 12)
    plain = full.triangles(epsilon=1)
    assert plain.margin() is None
    assert "± ?" in str(plain)
    assert plain.loss() == dt.Pure(1)
    told = full.stars(3, epsilon=1, margin_share="1/4")
    assert told.loss() == dt.Pure(1)
    assert isinstance(told.margin(), int)
    assert told.margin("0.99") > told.margin("0.5")  # type: ignore[operator]
    assert abs(full.triangles(epsilon=1000).value - math.comb(12, 3)) < 10**6


def test_nothing_that_is_stated_depends_on_the_bound() -> None:
    """S is private: two graphs with very different S give the same record, text and price; the margin is noisy or none."""
    few, many = dt.Graph([], 12), dt.Graph(pairs(12), 12)
    for share_of_margin in (None, "1/4"):
        one, other = (each.triangles(epsilon=1, margin_share=share_of_margin) for each in (few, many))
        assert one.record() == other.record()
        assert one.loss() == other.loss()
    assert repr(few) == repr(many)
    assert {name for name in vars(one) if getattr(one, name) != getattr(other, name)} <= {"value", "margins"}
    assert repr(Triangles.of(content(3, []))).startswith("<")


def test_a_margin_holds_no_number_of_the_graph_but_the_noisy_level() -> None:
    full = dt.Graph(pairs(12), 12)
    margins = full.triangles(epsilon=1, margin_share="1/4").margins
    assert isinstance(margins, smooth.SmoothMargins)
    assert set(vars(margins)) == {"noise", "noisy", "levels"}
    assert margins.noise == SmoothNoise.of("3/4")
    assert margins.levels == dt.Geometric(epsilon="1/4", sensitivity=1)


def test_a_margin_is_a_function_of_the_noisy_level() -> None:
    noise, levels = SmoothNoise.of("3/4"), dt.Geometric(epsilon="1/4", sensitivity=1)
    low, high = (smooth.SmoothMargins(noise, at, levels).margin(Fraction(19, 20)) for at in (3, 9))
    assert low < high


@pytest.mark.parametrize(
    "ask",
    [
        lambda graph: graph.triangles(epsilon="1e-9"),
        lambda graph: graph.triangles(epsilon=1, margin_share=1),
        lambda graph: graph.stars(1, epsilon=1),
        lambda graph: graph.stars(9, epsilon=1),
        lambda graph: graph.stars(5, epsilon=1),
        lambda graph: dt.Graph([], 2).triangles(epsilon=1),
    ],
)
def test_what_cannot_be_asked_is_refused(ask: Callable[[dt.Graph], object]) -> None:
    with pytest.raises(dt.ArgumentError):
        ask(dt.Graph([], 5))
