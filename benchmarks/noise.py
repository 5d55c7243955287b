"""Compares exact noise with numpy's float noise and OpenDP's exact noise: ratios of one run.

    python benchmarks/noise.py [--size 1048576] [--rounds 9]

The systems take turns in each round, so that a busy machine slows both alike; a ratio is the median over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dither.exact.laws.base import Law
from dither.exact.laws.coins import Coin, Flat
from dither.exact.laws.gaussian import Gaussian as GaussianLaw
from dither.exact.laws.geometric import TwoSided
from dither.mechanisms import Gaussian, Geometric

Job = Callable[[], object]
PEER_SIZE = 4000


def seconds(job: Job) -> float:
    start = time.thread_time()  # on a busy machine, wall-clock time counts the others too
    job()
    return time.thread_time() - start


def take_turns(jobs: list[Job], rounds: int) -> list[list[float]]:
    """Returns times[j][r] of job j in round r, after a warm-up round."""
    for job in jobs:
        job()
    rows = [[seconds(job) for job in jobs] for _ in range(rounds)]
    return [list(column) for column in zip(*rows, strict=True)]


def line(name: str, ours: float, ratio: float, peer: str, target: float | None) -> bool:
    """Prints one row and returns whether the target is met."""
    met = target is None or ratio >= target
    goal = "" if target is None else f"target {target:g}x  {'met' if met else 'MISSED'}"
    print(f"{name:<32}{ours / 1e6:>9.1f} M/s{ratio:>10.2f}x {peer:<22}{goal}")
    return met


def against_numpy(rows: list[tuple[str, Law, float | None]], peer_name: str, peer: Job, size: int, rounds: int) -> bool:
    jobs: list[Job] = [peer]
    for _, law, _ in rows:
        jobs.append(lambda law=law: law.draw(size))  # type: ignore[misc]
    theirs, *ours = take_turns(jobs, rounds)
    met = True
    print(f"{peer_name:<32}{size / statistics.median(theirs) / 1e6:>9.1f} M/s")
    for (name, _, target), mine in zip(rows, ours, strict=True):
        ratio = statistics.median(t / m for t, m in zip(theirs, mine, strict=True))
        met &= line(name, size / statistics.median(mine), ratio, "the same in numpy", target)
    return met


def releases(size: int, rounds: int) -> bool:
    """Compares releasing an array of zeros with drawing its noise, and with adding numpy's noise to it."""
    exact, floats, met = np.zeros(size, dtype=np.int64), np.random.default_rng(), True
    kinds = [
        ("Geometric", Geometric(epsilon="1/10", sensitivity=1), floats.laplace, 3.0),
        ("Geometric", Geometric(epsilon="1/1000000", sensitivity=1), floats.laplace, None),
        ("Gaussian", Gaussian(scale=10, sensitivity=1), floats.normal, None),
        ("Gaussian", Gaussian(scale=10**4, sensitivity=1), floats.normal, None),
    ]
    for name, mechanism, peer, target in kinds:
        jobs: list[Job] = [
            lambda m=mechanism: m.noise.draw(size),  # type: ignore[misc]
            lambda m=mechanism: m.release(exact),  # type: ignore[misc]
            lambda p=peer: exact + p(size=size),  # type: ignore[misc]
        ]
        drawn, ours, theirs = take_turns(jobs, 3 * rounds)
        cost = statistics.median(mine / alone for mine, alone in zip(ours, drawn, strict=True))
        ratio = statistics.median(t / m for t, m in zip(theirs, ours, strict=True))
        print(f"{'':<32}{cost:>13.2f}x its own draw      target 1.5x  {'met' if cost <= 1.5 else 'MISSED'}")
        met &= line(f"{name} release, scale {mechanism.noise_scale:g}", size / min(ours), ratio, "exact + numpy's", target)
        met &= cost <= 1.5
    return met


def opendp_job(scale: float, gaussian: bool) -> Job | None:
    """Returns OpenDP's exact integer vector noise; None if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    metric = dp.l2_distance(T=float) if gaussian else dp.l1_distance(T=int)
    make = dp.m.make_gaussian if gaussian else dp.m.make_laplace
    noise, zeros = make(domain, metric, scale=scale), [0] * PEER_SIZE
    return lambda: noise(zeros)


def against_opendp(size: int, rounds: int) -> bool:
    met = True
    for name, law, gaussian in (("Laplace, scale 10", TwoSided(10), False), ("Gaussian, sigma 10", GaussianLaw(100), True)):
        peer = opendp_job(10.0, gaussian)
        if peer is None:
            print(f"{name:<32}OpenDP: not installed")
            continue
        theirs, mine = take_turns([peer, lambda law=law: law.draw(size)], min(rounds, 5))  # type: ignore[misc]
        ratio = statistics.median(t / m for t, m in zip(theirs, mine, strict=True)) * size / PEER_SIZE
        met &= line(name, size / statistics.median(mine), ratio, "OpenDP, exact vector", 500.0)
    return met


def one_by_one(rounds: int) -> bool:
    """Measures a single warm draw in microseconds, and the first draw of a new parameter in milliseconds."""
    met = True
    laws: list[Law] = [
        TwoSided(1),
        TwoSided(10**6),
        TwoSided(10**12),
        GaussianLaw(100),
        GaussianLaw(10**12),
        Coin("1/3"),
        Flat(6),
    ]
    jobs: list[Job] = []
    for law in laws:
        jobs.append(lambda law=law: [law.draw() for _ in range(1000)])  # type: ignore[misc]
    for law, times in zip(laws, take_turns(jobs, rounds), strict=True):
        warm = statistics.median(times) * 1e3
        met &= warm <= 20
        print(f"{law!s:<48}{warm:>8.2f} µs   target 20 µs  {'met' if warm <= 20 else 'MISSED'}")
    fresh = [TwoSided(Fraction(10**9 + 7, k)) for k in range(1, 10)] + [
        GaussianLaw(Fraction(10**9 + 7, k)) for k in range(1, 10)
    ]
    cold = [seconds(law.draw) * 1e3 for law in fresh]
    print(f"{'first draw of a new large scale':<48}{statistics.median(cold[:9]):>8.2f} ms")
    print(f"{'first draw of a new large variance':<48}{statistics.median(cold[9:]):>8.2f} ms")
    return met


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--size", type=int, default=1 << 20)
    reader.add_argument("--rounds", type=int, default=9)
    asked = reader.parse_args()
    floats = np.random.default_rng()
    laplace: list[tuple[str, Law, float | None]] = [
        (f"two-sided geometric, scale {s:g}", TwoSided(s), {10: 2.0, 1000: 1.0, 10**6: 1.0, 10**9: 1.0}.get(s))
        for s in (1, 10, 10**3, 10**6, 10**9, 10**12)
    ]
    gaussian: list[tuple[str, Law, float | None]] = [
        (f"discrete Gaussian, sigma {s:g}", GaussianLaw(s * s), {10: 0.5}.get(s)) for s in (1, 10, 100, 10**4, 10**6)
    ]
    met = against_numpy(laplace, "numpy Generator.laplace", lambda: floats.laplace(size=asked.size), asked.size, asked.rounds)
    met &= against_numpy(gaussian, "numpy Generator.normal", lambda: floats.normal(size=asked.size), asked.size, asked.rounds)
    met &= releases(asked.size, asked.rounds)
    met &= against_opendp(asked.size, asked.rounds)
    met &= one_by_one(asked.rounds)
    print("all targets met" if met else "SOME TARGETS MISSED")


if __name__ == "__main__":
    main()
