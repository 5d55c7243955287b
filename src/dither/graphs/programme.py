"""Triangles under node privacy: how many can be kept so that no node is in more than `tau` of them, in fractions.

    P(G) = max sum of x_t over all triangles t,  0 <= x_t <= 1,  and for each node the x_t of its triangles add up to <= tau

P is the number of triangles where no node is in more than tau. A node v with its edges moves it by at most tau: without v, the
other x_t are still allowed, and those of v's triangles add up to at most tau; with v, set the new x_t to 0.

The programme is solved in floats, and then bracketed in rationals:
    from below   the solution, rounded down and scaled where a node has more than tau, is allowed: its sum is at most P
    from above   for any y_v >= 0, P <= tau sum of y_v + sum over t of max(0, 1 - sum of y_v over the corners of t)
                 (each x_t <= x_t times the sum of its y_v, plus max(0, …) as x_t <= 1); y comes from the solver, rounded
If the two are further apart than ETA = 1/2, or the solver fails, the simplex method in rationals gives P itself; by Bland's
rule it always ends. What is released is g = floor(u) for a rational u with P <= u <= P + ETA. Its noise is for
tau + 2 ETA = tau + 1:

    with v more:   g' <= floor(P + tau + 1/2) <= floor(P) + tau + 1 <= g + tau + 1        (P' <= P + tau, tau whole)
                   g' >= floor(P') >= floor(P) >= floor(P + 1/2) - 1 >= g - 1             (P' >= P)

Which of the two ways was taken is not visible in anything but time. The time depends on the graph; how large it may become is
declared, and a declaration that is too large is refused before the graph is looked at.
Reference: Kasiviswanathan, Nissim, Raskhodnikova and Smith, TCC 2013.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.exact.laws.base import Integers
from dither.graphs.reading import Content
from dither.mechanisms.norms import L1

ETA = Fraction(1, 2)
MOST_NODES, MOST_EDGES = 2000, 10_000  # of a graph, as declared
MOST_TRIANGLES = 10**6  # tau
_ONE = 1 << 30  # rationals are multiples of 1 / _ONE


def sensitivity(tau: int) -> L1:
    """Returns how far one node moves `kept_triangles`: tau + 2 ETA."""
    return L1(tau + 2 * ETA)


def kept_triangles(graph: Content, tau: int) -> int:
    """Returns g, a whole number with P - 1 < g <= P + ETA."""
    corners = list_triangles(graph)
    crowded = np.bincount(corners.ravel(), minlength=graph.size) > tau
    free = int((~crowded[corners].any(axis=1)).sum())  # these can all be kept
    rest = corners[crowded[corners].any(axis=1)]
    return free + int(_upper(rest, crowded, tau) // 1)


def list_triangles(graph: Content) -> Integers:
    """Returns the three nodes of each triangle."""
    ahead: list[set[int]] = [set() for _ in range(graph.size)]
    for a, b in graph.ends.tolist():
        ahead[a].add(b)
    found = [(a, b, c) for a, b in graph.ends.tolist() for c in sorted(ahead[a] & ahead[b])]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _upper(corners: Integers, crowded: NDArray[np.bool_], tau: int) -> Fraction:
    """Returns a rational u with P <= u <= P + ETA. Only crowded nodes have a bound that can matter."""
    if not len(corners):
        return Fraction(0)
    table = incidence(corners, crowded)
    solved = _solve(table, tau)
    if solved is not None:
        low, high = bracket(table, tau, *solved)
        if high - low <= ETA:
            return high
    return exact_optimum(table, tau)


def incidence(corners: Integers, crowded: NDArray[np.bool_]) -> Any:
    """Returns the matrix with a row for each crowded node and a column for each triangle: 1 where it is a corner."""
    from scipy import sparse  # loaded only where it is used

    row = np.cumsum(crowded) - 1
    triangle, corner = np.nonzero(crowded[corners])
    rows = row[corners[triangle, corner]]
    ones = np.ones(len(rows), dtype=np.int64)
    return sparse.csr_array((ones, (rows, triangle)), shape=(int(crowded.sum()), len(corners)))


def _solve(table: Any, tau: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Returns the solver's x and y, or None if it fails."""
    from scipy.optimize import linprog

    try:
        found = linprog(-np.ones(table.shape[1]), A_ub=table, b_ub=np.full(table.shape[0], tau), bounds=(0, 1), method="highs")
        return (np.asarray(found.x), -np.asarray(found.ineqlin.marginals)) if found.status == 0 else None
    except (ValueError, ArithmeticError, AttributeError):
        return None


def bracket(table: Any, tau: int, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Fraction, Fraction]:
    """Returns rationals below and above P, for any x and y. How near they are depends on x and y, that they hold does not."""
    kept = _whole(np.clip(np.nan_to_num(x), 0.0, 1.0))
    load = table @ kept
    share = [min(_ONE, tau * _ONE * _ONE // int(each)) if each else _ONE for each in load]
    least = np.full(table.shape[1], _ONE, dtype=np.int64)
    entries = table.tocoo()
    np.minimum.at(least, entries.col, np.array(share, dtype=np.int64)[entries.row])
    low = sum(int(a) * int(b) // _ONE for a, b in zip(kept, least, strict=True))
    price = _whole(np.clip(np.nan_to_num(y), 0.0, 1.0))
    missing = np.maximum(_ONE - table.T @ price, 0)
    high = tau * int(price.sum()) + int(missing.sum())
    return Fraction(low, _ONE), Fraction(high, _ONE)


def _whole(values: NDArray[np.float64]) -> Integers:
    return np.floor(values * _ONE).astype(np.int64)


def exact_optimum(table: Any, tau: int) -> Fraction:
    """Returns P by the simplex method in rationals. It starts from x = 0, which is allowed, and ends by Bland's rule."""
    nodes, triangles = table.shape
    dense = table.toarray().tolist()
    bounds = [[int(i == j) for j in range(triangles)] for i in range(triangles)]
    rows = [
        [Fraction(each) for each in [*row, *(int(i == j) for j in range(nodes + triangles)), right]]
        for i, (row, right) in enumerate([*((row, tau) for row in dense), *((row, 1) for row in bounds)])
    ]
    basis = list(range(triangles, triangles + nodes + triangles))
    gain = [Fraction(1)] * triangles + [Fraction(0)] * (nodes + triangles + 1)
    while True:
        enter = next((j for j, each in enumerate(gain[:-1]) if each > 0), None)
        if enter is None:
            return -gain[-1]
        # x <= 1 bounds every direction, so some row has a positive entry.
        leave = min((i for i in range(len(rows)) if rows[i][enter] > 0), key=lambda i: (rows[i][-1] / rows[i][enter], basis[i]))
        pivot = [each / rows[leave][enter] for each in rows[leave]]
        rows = [pivot if i == leave else _less(row, pivot, row[enter]) for i, row in enumerate(rows)]
        gain = _less(gain, pivot, gain[enter])
        basis[leave] = enter


def _less(row: list[Fraction], pivot: list[Fraction], times: Fraction) -> list[Fraction]:
    return [a - times * b for a, b in zip(row, pivot, strict=True)] if times else row
