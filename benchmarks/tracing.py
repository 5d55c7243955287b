"""Measures traced programs: noise on every partial sum of a million records, and what tracing adds to a loop.

`python benchmarks/tracing.py`. The exit code is 1 if the memory of the whole process exceeds 2 GB.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np

import dither as dt

RECORDS, MOST = 10**6, 2.0


def main() -> int:
    noise = dt.Geometric(epsilon=1, sensitivity=1)
    data = dt.records(np.arange(RECORDS) % 2, 0, 1)
    begun = time.process_time()
    run = dt.trace(lambda x: x.cumsum().release(noise), data)
    took = time.process_time() - begun
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"noise on each cumulative sum of {RECORDS:,} records: {took:.2f} s, {used:.2f} GB, ε = {run.loss().epsilon(0)}")

    def loop(x: Any) -> Any:
        total, sums = 0, []
        for value in x:
            total = total + value
            sums.append(total.release(noise))
        return sums

    begun = time.process_time()
    dt.trace(loop, dt.records([0, 1] * 1000, 0, 1))
    print(f"a loop of 2000 releases: {(time.process_time() - begun) / 2000 * 1e6:.0f} microseconds each")
    return 1 if used > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
