"""Graphs that grow, for bounds that small graphs cannot refute."""

from __future__ import annotations

import random
from collections.abc import Iterator

from dither.graphs.reading import Content
from graphs.small import content


def triangle_chain(k: int) -> tuple[Content, int]:
    """k triangles of maximum degree 3, and the node whose presence breaks them all if degrees are bounded by 2.

    The edges of z_i come first and fill it. Then x_0 takes v or y_0; y_i takes x_i or x_(i+1): one displaces the next.
    """
    v = k
    x, y = [k + 1 + 2 * i for i in range(k)], [k + 2 + 2 * i for i in range(k)]
    triangles = [edge for i in range(k) for edge in ((i, x[i]), (i, y[i]), (x[i], y[i]))]
    links = [(y[i], x[i + 1]) for i in range(k - 1)]
    return content(3 * k + 1, [*triangles, *links, (v, x[0])]), v


def growing(sizes: tuple[int, ...] = (7, 12, 25)) -> Iterator[Content]:
    """Paths, stars, cliques, caterpillars, chains and random graphs. Labels are shuffled, too: they are the order of edges."""
    draw = random.Random(20)
    for n in sizes:
        path = [(i, i + 1) for i in range(n - 1)]
        star = [(0, i) for i in range(1, n)]
        shapes = [path, star, [(a, b) for a in range(n) for b in range(a)], path + [(i, n - 1) for i in range(n // 2)]]
        shapes += [[(2 * i, 2 * i + 1) for i in range(n // 2)] + star, triangle_chain(max(2, n // 3))[0].ends.tolist()]
        for density in (0.1, 0.3, 0.6):
            shapes += [[(a, b) for a in range(n) for b in range(a) if draw.random() < density] for _ in range(3)]
        for edges in shapes:
            size = 1 + max(max(edge) for edge in [*edges, (0, n - 1)])
            yield content(size, edges)
            for _ in range(2):
                moved = draw.sample(range(size), size)
                yield content(size, [(moved[a], moved[b]) for a, b in edges])
