"""Questions about a graph: what is counted, its noise and price, and how the noisy numbers are read.

A question is a frozen value that depends on no graph. `exact` is what it counts in one: private, one tuple for each noise.
`noises` draw and state the price, in one object each. What is made of the noisy numbers is post-processing. The same values are
asked of a graph in memory (graph.py) and of a table of edges in a catalog (plan.py).

What a bound leaves out. The number of edges that a bound on degrees removes moves without limit with one node. But the number
of edges that a bound of 4 theta keeps in addition does not: adding a node moves E_(4 theta) up by at most 4 theta, and E_theta
up by at most theta, so the difference moves by at most 4 theta either way. It is a part of what is left out: the answer says
"or more". For triangles, g_(4 tau) moves by -1 to 4 tau + 1 and g_tau by -1 to tau + 1 (programme.py): 4 tau + 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dither.graphs import choice, counts, programme, projection, shape, smooth
from dither.graphs.answer import Each, Margins, Together, Unknown
from dither.graphs.projection import project
from dither.graphs.reading import Content
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.norms import L1
from dither.privacy.losses import Pure

WIDER = 4  # the bound, in bounds of the question, up to which what is left out is counted
Numbers = NDArray[Any]


class Noise(Protocol):
    """Noise and its price."""

    def loss(self) -> Any: ...
    def record(self) -> dict[str, Any]: ...
    def release(self, *exact: Any) -> Any: ...


@dataclass(frozen=True)
class Question(ABC):
    """A question. `epsilon`: the price of its own numbers; `beside`: the price of an estimate of what its bound leaves out."""

    epsilon: Fraction
    beside: Fraction = Fraction(0)
    name: ClassVar[str]  # the method of a graph
    axes: ClassVar[tuple[str, ...]] = ()  # what the numbers of an answer are listed by
    wider: ClassVar[int] = WIDER

    @property
    @abstractmethod
    def what(self) -> str:
        """What is counted, in words."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The noise of its own numbers."""

    @abstractmethod
    def count(self, graph: Content) -> tuple[Any, ...]:
        """Returns what the noise is added to. Private."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What was asked for, in plain values. Public, and part of the question's identity."""
        return {}

    @property
    def measured(self) -> str:
        """The name of what is released. Questions that read the same numbers in two ways share it, and one answer."""
        return self.name

    @property
    def bound(self) -> dict[str, int]:
        """The bound beyond which something is left out, by its name."""
        return {}

    @property
    def noises(self) -> tuple[Noise, ...]:
        """All noise, in the order in which it is drawn."""
        return (self.noise, self.noise_beside) if self.beside else (self.noise,)

    @property
    def noise_beside(self) -> Geometric:
        raise TypeError("this question leaves nothing out")

    def count_beside(self, graph: Content, own: tuple[Any, ...]) -> tuple[Any, ...]:
        raise TypeError("this question leaves nothing out")

    def exact(self, graph: Content) -> tuple[tuple[Any, ...], ...]:
        """Returns what each noise is added to. Private."""
        own = self.count(graph)
        return (own, self.count_beside(graph, own)) if self.beside else (own,)

    def release(self, graph: Content) -> tuple[Numbers, ...]:
        """Returns the noisy numbers, one row for each noise. Public from here on."""
        found = zip(self.noises, self.exact(graph), strict=True)
        return tuple(as_row(noise.release(*exact)) for noise, exact in found)

    def loss(self) -> Pure:
        """Returns the price, read from the noise: an epsilon for each."""
        return Pure(sum((noise.loss().epsilon() for noise in self.noises), Fraction(0)))

    def records(self) -> tuple[dict[str, Any], ...]:
        """Returns a record of all noise, with what it is on."""
        words = (self.what, *(f"what {name} leaves out" for name in self.bound))
        return tuple({**noise.record(), "on": on} for noise, on in zip(self.noises, words, strict=False))

    def value(self, noisy: Sequence[Numbers], size: int) -> Any:
        """Returns the answer. `size`: the number of nodes, under edge privacy, where it is public."""
        return int(noisy[0][0, 0])

    def margins(self, noisy: Sequence[Numbers] | None, size: int) -> Margins:
        """Returns the margins; without noisy numbers, those that can be told beforehand."""
        return Each(self.noise)  # type: ignore[arg-type]

    def keys(self, size: int) -> list[tuple[Any, ...]]:
        """Returns what each number of an answer is about, by `axes`."""
        return [()]


def as_row(released: Any) -> Numbers:
    """Returns released numbers as a table of one row, in 64 bits where they fit."""
    values = [int(each) for each in np.atleast_1d(released).tolist()]
    wide = any(not -(1 << 63) <= each < 1 << 63 for each in values)
    return np.array([values], dtype=object if wide else np.int64)


# --- edges and degrees, for edge privacy -------------------------------------------------------------------------


@dataclass(frozen=True)
class EdgeCount(Question):
    """The number of edges."""

    name = "edge_count"
    what = "edges"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=counts.EDGES)

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (counts.edge_count(graph),)


@dataclass(frozen=True)
class Density(EdgeCount):
    """The share of all pairs of nodes that are connected."""

    name = "density"
    what = "density"
    measured = "edge_count"

    def value(self, noisy: Sequence[Numbers], size: int) -> Fraction:
        return int(noisy[0][0, 0]) * _pair(size)

    def margins(self, noisy: Sequence[Numbers] | None, size: int) -> Margins:
        return Each(self.noise, _pair(size))  # type: ignore[arg-type]


def _pair(size: int) -> Fraction:
    return Fraction(2, size * (size - 1))


@dataclass(frozen=True)
class DegreeHistogram(Question):
    """How many nodes have degree 0, 1, …, `largest`; the last number counts all that have more, too."""

    largest: int = 1
    name = "degree_histogram"
    axes = ("degree",)
    what = "nodes by degree"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=counts.HISTOGRAM)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"largest": self.largest}

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (counts.degree_histogram(graph, self.largest),)

    def value(self, noisy: Sequence[Numbers], size: int) -> Any:
        return noisy[0][0]

    def keys(self, size: int) -> list[tuple[Any, ...]]:
        return [(degree,) for degree in range(self.largest + 1)]


@dataclass(frozen=True)
class DegreeSequence(Question):
    """The degrees of all nodes, smallest first."""

    name = "degree_sequence"
    axes = ("place",)
    what = "degrees in order"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=counts.SEQUENCE)

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (counts.degree_sequence(graph),)

    def value(self, noisy: Sequence[Numbers], size: int) -> Any:
        return counts.rising(noisy[0][0], size - 1)

    def margins(self, noisy: Sequence[Numbers] | None, size: int) -> Margins:
        return Together(self.noise, size)  # type: ignore[arg-type]

    def keys(self, size: int) -> list[tuple[Any, ...]]:
        return [(place + 1,) for place in range(size)]


@dataclass(frozen=True)
class EdgesBetween(Question):
    """The number of edges for each pair of public groups."""

    groups: tuple[Any, ...] = ()
    by: str = ""
    name = "edges_between"
    axes = ("group", "and group")
    what = "edges by groups"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=counts.GROUPS)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"by": self.by}

    def count(self, graph: Content) -> tuple[Any, ...]:
        group = graph.groups if graph.groups is not None else np.zeros(graph.size, dtype=np.int64)
        inside = replace(graph, ends=graph.ends[(group[graph.ends] >= 0).all(axis=1)])
        return (counts.edges_by_group(inside, group, len(self.groups)),)

    def value(self, noisy: Sequence[Numbers], size: int) -> Any:
        return dict(zip(self.keys(size), map(int, noisy[0][0]), strict=True))

    def keys(self, size: int) -> list[tuple[Any, ...]]:
        places = zip(*np.triu_indices(len(self.groups)), strict=True)
        return [(self.groups[g], self.groups[h]) for g, h in places]


@dataclass(frozen=True)
class SmoothCount(Question):
    """The number of triangles or, with k, of k-stars. The noise depends on the graph. `share`: of the price, for a margin."""

    k: int | None = None
    share: Fraction = Fraction(0)

    @property
    def name(self) -> str:  # type: ignore[override]
        return "triangles" if self.k is None else "stars"

    @property
    def what(self) -> str:
        return "triangles" if self.k is None else f"{self.k}-stars"

    @property
    def noise(self) -> smooth.SmoothNoise:
        return smooth.SmoothNoise.of(self.epsilon * (1 - self.share))

    @property
    def level(self) -> Geometric:
        return Geometric(epsilon=self.epsilon * self.share, sensitivity=1)

    @property
    def noises(self) -> tuple[Noise, ...]:
        return (self.noise, self.level) if self.share else (self.noise,)

    def records(self) -> tuple[dict[str, Any], ...]:
        words = (self.what, "the level of its noise")
        return tuple({**noise.record(), "on": on} for noise, on in zip(self.noises, words, strict=False))

    @property
    def parameters(self) -> dict[str, Any]:
        return ({} if self.k is None else {"k": self.k}) | ({"margin_share": str(self.share)} if self.share else {})

    def count(self, graph: Content) -> tuple[Any, ...]:
        if self.k is None:
            return shape.triangle_count(graph), self.noise.bound(smooth.Triangles.of(graph))
        return shape.star_count(graph, self.k), self.noise.bound(smooth.Stars.of(graph, self.k))

    def exact(self, graph: Content) -> tuple[tuple[Any, ...], ...]:
        own = self.count(graph)
        return (own, (self.noise.level(own[1]),)) if self.share else (own,)

    def margins(self, noisy: Sequence[Numbers] | None, size: int) -> Margins:
        if noisy is None or not self.share:
            return Unknown()
        return smooth.SmoothMargins(self.noise, int(noisy[1][0, 0]), self.level)


# --- for node privacy ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounded(Question):
    """A question about the edges that are left with `theta` edges for each node."""

    theta: int = 1
    sensitivity: ClassVar[Any] = staticmethod(projection.edges)

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=type(self).sensitivity(self.theta))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"most_degree": self.theta}

    @property
    def bound(self) -> dict[str, int]:
        return {"most_degree": self.theta}

    @property
    def noise_beside(self) -> Geometric:
        return Geometric(epsilon=self.beside, sensitivity=L1(WIDER * self.theta))

    def count_beside(self, graph: Content, own: tuple[Any, ...]) -> tuple[Any, ...]:
        return (counts.edge_count(project(graph, WIDER * self.theta)) - counts.edge_count(project(graph, self.theta)),)


@dataclass(frozen=True)
class BoundedEdgeCount(Bounded):
    """The number of edges that are left."""

    name = "edge_count"
    what = "edges"

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (counts.edge_count(project(graph, self.theta)),)


@dataclass(frozen=True)
class BoundedHistogram(Bounded):
    """How many nodes have degree 0, 1, …, theta."""

    name = "degree_histogram"
    axes = ("degree",)
    what = "nodes by degree"
    sensitivity = staticmethod(projection.histogram)

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (counts.degree_histogram(project(graph, self.theta), self.theta),)

    def value(self, noisy: Sequence[Numbers], size: int) -> Any:
        return noisy[0][0]

    def keys(self, size: int) -> list[tuple[Any, ...]]:
        return [(degree,) for degree in range(self.theta + 1)]


@dataclass(frozen=True)
class CumulativeDegrees(BoundedHistogram):
    """How many nodes have degree at most i, or at least i, for i = 0, …, theta."""

    at_most: bool = True
    name = "cumulative_degrees"

    @property
    def side(self) -> str:
        return "at most" if self.at_most else "at least"

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"nodes of degree {self.side} 0, 1, …"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=projection.cumulative(self.theta, at_most=self.at_most))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"most_degree": self.theta, "side": self.side}

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (projection.count_cumulative(project(graph, self.theta), self.theta, at_most=self.at_most),)


@dataclass(frozen=True)
class BoundedTriangles(Question):
    """The number of triangles that can be kept so that no node is in more than tau."""

    tau: int = 1
    name = "bounded_triangles"
    what = "triangles"

    @property
    def noise(self) -> Noise:
        return Geometric(epsilon=self.epsilon, sensitivity=programme.sensitivity(self.tau))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"most_triangles": self.tau}

    @property
    def bound(self) -> dict[str, int]:
        return {"most_triangles": self.tau}

    @property
    def noise_beside(self) -> Geometric:
        return Geometric(epsilon=self.beside, sensitivity=L1(WIDER * self.tau + 2))

    def count(self, graph: Content) -> tuple[Any, ...]:
        return (programme.kept_triangles(graph, self.tau),)

    def count_beside(self, graph: Content, own: tuple[Any, ...]) -> tuple[Any, ...]:
        return (programme.kept_triangles(graph, WIDER * self.tau) - own[0],)


@dataclass(frozen=True)
class SuggestDegree(Question):
    """A bound on degrees up to `largest` that suits an edge count at `for_epsilon`."""

    largest: int = 1
    for_epsilon: Fraction = Fraction(1)
    name = "suggest_degree"
    what = "degree bound"

    @property
    def noise(self) -> Noise:
        return choice.mechanism(self.epsilon, self.largest)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"largest": self.largest, "for_epsilon": str(self.for_epsilon)}

    @property
    def bound(self) -> dict[str, int]:
        return {"largest": self.largest}

    def count(self, graph: Content) -> tuple[Any, ...]:
        qualities = choice.qualities(graph, self.largest, 3 / self.for_epsilon)
        return (choice.scores(qualities, self.largest, self.epsilon),)

    def margins(self, noisy: Sequence[Numbers] | None, size: int) -> Margins:
        return Unknown()
